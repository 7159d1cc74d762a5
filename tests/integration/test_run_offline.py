"""`zelda run` of a suite that closes the network: the model is there, and nothing else."""

import json
from pathlib import Path

import pytest

from tests.support import needs
from tests.support.command import the_result, transcript, zelda
from tests.support.projects import repository
from tests.support.scripted_api import ApiRequest, Message, ScriptedApi, text, tool_call


def knock(url: str) -> str:
    """A shell line that tells whether a server of this machine can be reached."""
    host, _, port = url.removeprefix("http://").partition(":")
    return f"bash -c 'echo > /dev/tcp/{host}/{port}' 2>/dev/null && echo it is open || echo it is closed"


@pytest.mark.parametrize("level", ["full", "uid", "landlock"])
def test_a_run_without_network_has_its_model_all_the_same(place: Path, level: str) -> None:
    needs.level(level)

    def script(request: ApiRequest) -> Message:
        return tool_call("Bash", {"command": knock(api.url)}) if request.index == 0 else text("All quiet.")

    with ScriptedApi(script) as api:
        suite = f"""\
prompt: Look around.
isolation: {{network: {{session: none, test: none}}}}
buildCommand: {json.dumps(knock(api.url))}
testCommand: {json.dumps(knock(api.url))}
"""
        project = repository(place, {"README.md": "# Sample\n", "zelda/test-offline.yaml": suite})
        done = zelda(project, "run", "--verbose", "--isolation", level, api=api.url)
    assert done.returncode == 0, done.stdout + done.stderr
    (call,) = [call for entry in transcript(project)["entries"] for call in entry.get("toolCalls", ())]
    assert call["output"] == "it is closed"
    said = {step: next(project.results.glob(f"runs/*/{step}.log")).read_text().strip() for step in ("build", "test")}
    assert said == {"build": "it is open", "test": "it is closed"}
    assert the_result(project)["isolation"]["network"]["session"] == "none"
    assert "no network for session, test" in done.stdout
