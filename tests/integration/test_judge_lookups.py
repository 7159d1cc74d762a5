"""A judge that looks things up, from the developer's chair: run, recorded, replayed, and judged again."""

import json
from pathlib import Path
from typing import Any

from tests.support.command import KEY, zelda
from tests.support.judging import verdict
from tests.support.projects import Project, repository
from tests.support.scripted_api import ApiRequest, Reply, ScriptedApi, text, tool_call, tool_calls

SUITE = """\
prompt: Add a greeting.
acceptanceCriteria: [The licence is still MIT., The last line of the long output tells of 3 rows.]
judge: {timeoutSeconds: 300, maxLookups: 5}
metrics: {toolUsage: false}
"""
WORK = [tool_call("Bash", {"command": "echo hello > greeting.txt; cat import.log"}), text("Done.")]
LICENCE = [{"where": "LICENSE:1", "quote": "MIT License"}]
ROWS = [{"where": "turn 1 call 1", "quote": "lost 3 rows"}]
VERDICTS = {"criteria": [verdict(1, evidence=LICENCE), verdict(2, evidence=ROWS)]}


def script(request: ApiRequest) -> Reply:
    """The session; and a judge who looks at a file that the session did not change, and at what it printed."""
    position = sum(message["role"] == "assistant" for message in request.messages)
    if request.answer_tool is None:
        said: Reply = WORK[position]
        return said
    looks = [
        tool_calls([("search_files", {"pattern": "License"}), ("search_transcript", {"pattern": "lost"})]),
        tool_call("read_file", {"path": "LICENSE"}),
    ]
    return looks[position] if position < len(looks) else tool_call(request.answer_tool, VERDICTS)


def judged(project: Project) -> list[dict[str, Any]]:
    """What became of every run, the latest last."""
    files = sorted(project.results.glob("runs/greeting-*/result.json"))
    return [json.loads(file.read_bytes())["evaluations"]["requirementFulfillment"] for file in files]


def test_what_no_prompt_shows_is_looked_up_recorded_and_replayed(tmp_path: Path) -> None:
    files = {"README.md": "# Sample\n", "LICENSE": "MIT License\n", "zelda/test-greeting.yaml": SUITE}
    files["import.log"] = "".join(f"row {number}\n" for number in range(500)) + "lost 3 rows\n"
    project, cassettes = repository(tmp_path, files), tmp_path / "cassettes"
    with ScriptedApi(script) as api:
        done = zelda(project, "run", "--record", str(cassettes), api=api.url)
        asked = [request for request in api.requests if request.answer_tool]
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(asked) == 3
    found = [result["content"][0]["text"] for result in asked[-1].tool_results]
    assert "LICENSE:1: MIT License" in found[0]
    assert "lost 3 rows" in found[1]
    assert "1 | MIT License" in found[2]
    assert KEY not in json.dumps([request.body for request in asked])

    replayed = zelda(project, "run", "--replay", str(cassettes))
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr
    first, second = judged(project)
    assert first == second
    assert first["score"] == 100.0

    where_the_workspace_is_gone_the_transcript_can_be_looked_up(project)


def where_the_workspace_is_gone_the_transcript_can_be_looked_up(project: Project) -> None:
    def answers(request: ApiRequest) -> Reply:
        return script(request) if request.tool_results else tool_call("search_transcript", {"pattern": "lost"})

    with ScriptedApi(answers) as api:
        zelda(project, "rejudge", "latest", api=api.url)
    offered = {tool["name"] for tool in api.requests[0].body["tools"]}
    assert {"list_turns", "read_turn", "search_transcript"} <= offered
    assert not {"list_files", "read_file", "search_files"} & offered
    assert "The final workspace is gone" in api.requests[0].messages[0]["content"][-1]["text"]
    assert "lost 3 rows" in api.requests[1].tool_results[0]["content"][0]["text"]
