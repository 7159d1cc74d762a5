"""A run after which the developer's tree is not what it was says so, and takes no work of its own for it."""

import subprocess
from pathlib import Path

from tests.support.command import COMMAND, environment, the_result
from tests.support.patience import PATIENCE
from tests.support.projects import repository
from tests.support.scripted_api import ScriptedApi, text, tool_call

SUITE = "prompt: Tidy up.\nmetrics: {toolUsage: false}\nisolation: {level: none}\n"


def test_what_a_session_without_a_sandbox_did_to_the_developers_files_is_told(tmp_path: Path) -> None:
    project = repository(tmp_path, {"README.md": "# Sample\n", "zelda/test-tidy.yaml": SUITE})
    outside = tool_call("Bash", {"command": f"echo gone > '{project.path}/planted'; rm -f '{project.path}/README.md'"})
    log = project.path / "run.log"
    with ScriptedApi([outside, text("Done.")]) as api, log.open("w") as out:
        command, environ = [*COMMAND, "run", "--unsafe"], environment(project, api.url)
        subprocess.run(command, cwd=project.path, env=environ, stdout=out, stderr=out, timeout=PATIENCE, check=False)
    changes = the_result(project)["isolation"]["tripwire"]["changes"]
    assert changes == [{"path": "README.md", "kind": "removed"}, {"path": "planted", "kind": "added"}]
    assert "planted (added)" in log.read_text()
