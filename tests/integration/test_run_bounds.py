"""A session that takes too much of the machine is ended, and its result says why instead of speaking of a crash."""

import shutil
from pathlib import Path

import pytest

from tests.support.command import the_result, zelda
from tests.support.projects import repository
from tests.support.scripted_api import ScriptedApi, text, tool_call

SUITE = """\
prompt: Fill the disk.
execution: {maxTurns: 3, timeoutSeconds: 300}
metrics: {toolUsage: false}
"""


def test_a_session_that_fills_the_disk_is_ended_and_its_result_says_so(tmp_path: Path) -> None:
    if shutil.disk_usage(tmp_path).free < 30 << 30:
        pytest.skip("needs 30 GiB of free disk, to go beyond a bound of 10")
    project = repository(tmp_path, {"README.md": "# Sample\n", "zelda/test-greedy.yaml": SUITE})
    fill = "for n in 1 2 3 4 5 6; do fallocate -l 1900M big-$n || exit 9; done; sleep 200"
    with ScriptedApi([tool_call("Bash", {"command": fill}), text("Done.")]) as api:
        done = zelda(project, "run", api=api.url)
    failure = the_result(project)["failure"]
    assert failure["code"] == "BOUND_REACHED"
    assert "room on the disk" in failure["message"]
    assert "what took so much" in done.stdout
    assert done.returncode == 2
