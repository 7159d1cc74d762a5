"""While one run is stored, copied or removed, the loop that streams the others goes on."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command import environment
from tests.support.projects import ENVIRON, Project, folder, repository
from tests.support.scripted_api import ScriptedApi, text, tool_call

ROOT = Path(__file__).parents[2]
SUITE = """\
prompt: Add a greeting.
setupCommand: echo ready
testCommand: echo '2 passed in 0.1s'
protectedPaths: [tests/**]
"""
FILES = {"README.md": "# Sample\n", "tests/test_it.txt": "as it was\n", "zelda/test-greeting.yaml": SUITE}
CHANGE = tool_call("Bash", {"command": "echo hello > greeting.txt; echo changed > tests/test_it.txt"})


def offences(project: Project, *arguments: str) -> tuple[int, str, str]:
    """Exit code, the calls that held up the loop, and the output."""
    file = project.home / "offences"
    with ScriptedApi([CHANGE, text("Done.")]) as api:
        done = subprocess.run(
            [sys.executable, "-m", "tests.support.blocking_calls", str(file), "run", "--project", *arguments],
            cwd=ROOT,
            env={**ENVIRON, **environment(project, api.url)},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert file.exists(), done.stdout + done.stderr
    return done.returncode, file.read_text(), done.stdout + done.stderr


def test_no_call_that_may_take_long_is_made_on_the_event_loop(tmp_path: Path) -> None:
    project = folder(tmp_path, FILES)
    code, found, output = offences(project, str(project.path), "--record", str(tmp_path / "recorded"))
    assert found == ""
    assert code == 0, output


def test_nor_in_a_repository_where_runs_are_other_users(tmp_path: Path) -> None:
    project = repository(tmp_path, FILES)
    _, found, output = offences(project, str(project.path), "--isolation", "uid")
    if "is not available on this machine" in output:
        pytest.skip("needs root, and folders that other users can reach: isolation level uid")
    assert found == ""
