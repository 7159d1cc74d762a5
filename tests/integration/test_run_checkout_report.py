"""A run after which the developer's tree is not what it was says so, at whatever level it happened."""

import subprocess
from pathlib import Path
from typing import Any

from tests.support.command import COMMAND, environment, the_result, zelda
from tests.support.patience import PATIENCE
from tests.support.projects import repository
from tests.support.scripted_api import ScriptedApi, text, tool_call

SUITE = """\
prompt: Tidy up.
execution: {maxTurns: 3, timeoutSeconds: 300}
metrics: {toolUsage: false}
isolation: {level: %s}
"""


def after_a_session_that_writes_outside(tmp_path: Path, level: str) -> tuple[dict[str, Any], str]:
    project = repository(tmp_path, {"README.md": "# Sample\n", "zelda/test-tidy.yaml": SUITE % level})
    outside = tool_call("Bash", {"command": f"echo gone > '{project.path}/planted'; rm -f '{project.path}/README.md'"})
    with ScriptedApi([outside, text("Done.")]) as api:
        done = zelda(project, "run", "--unsafe", api=api.url)
    return the_result(project)["isolation"]["tripwire"], done.stdout + done.stderr


def test_what_a_session_without_a_sandbox_did_to_the_developers_files_is_told(tmp_path):
    tripwire, output = after_a_session_that_writes_outside(tmp_path, "none")
    assert tripwire["changes"] == [{"path": "README.md", "kind": "removed"}, {"path": "planted", "kind": "added"}]
    assert "planted (added)" in output


def test_at_the_best_level_there_is_nothing_to_tell(tmp_path):
    tripwire, output = after_a_session_that_writes_outside(tmp_path, "auto")
    assert tripwire["entries"] > 10
    assert not tripwire.get("changes")
    assert "changed while" not in output


def test_what_zelda_prints_into_a_file_of_the_project_is_no_finding(tmp_path):
    project = repository(tmp_path, {"README.md": "# Sample\n", "zelda/test-tidy.yaml": SUITE % "auto"})
    log, errors = project.path / "run.log", project.path / "errors.log"
    with ScriptedApi([text("Done.")]) as api, log.open("w") as out, errors.open("w") as err:
        command = [*COMMAND, "run"]
        environ = environment(project, api.url)
        subprocess.run(command, cwd=project.path, env=environ, stdout=out, stderr=err, timeout=PATIENCE, check=True)
    assert "PASS" in log.read_text() or "MEASURED" in log.read_text()
    assert "changed while" not in log.read_text() + errors.read_text()
    assert not the_result(project)["isolation"]["tripwire"].get("changes")
