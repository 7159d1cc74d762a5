"""However a run ends, nothing behind its walls outlives it; and what can end in good order may."""

import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from tests.integration.test_isolation_levels import project
from tests.support import needs
from tests.support.patience import PATIENCE
from tests.support.projects import Project, wait_until
from zelda_ci.domain.workspace import Workspace
from zelda_ci.errors import WorkspaceError
from zelda_ci.sandbox import programs
from zelda_ci.workspace.workspaces import Workspaces

__all__ = ["project"]

ROOT = Path(__file__).parents[2]
DAEMONS = "(setsid sleep 300 &); (env -i setsid sh -c 'trap \"\" TERM HUP INT; sleep 301; sleep 302' &); sleep 303"


def sleepers(project: Project) -> list[str]:
    """Living processes that work below the project's workspaces, as the machine sees them."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            here = (process / "cwd").readlink().is_relative_to(project.base)
            if here and b"sleep" in (process / "cmdline").read_bytes():
                found.append(process.name)
        except OSError:
            continue
    return found


def test_nothing_outlives_a_zelda_that_is_killed(project: Project) -> None:
    argv = [sys.executable, "-m", "tests.support.hold_workspace", str(project.path), "run-1", "hold", DAEMONS]
    environ = {**project.environ, "PYTHONPATH": str(ROOT), "LEVEL": project.level}
    with subprocess.Popen(argv, cwd=ROOT, env=environ, stdout=subprocess.PIPE) as zelda:
        wait_until(lambda: len(sleepers(project)) >= 3)
        zelda.kill()
    wait_until(lambda: not sleepers(project))


def test_exit_codes_come_through_and_at_its_deadline_a_command_may_end_in_good_order(project: Project) -> None:
    async def work(workspaces: Workspaces, workspace: Workspace) -> list[int | None]:
        line = f"trap 'echo > $TMPDIR/tidied; exit 0' TERM; ({DAEMONS}) & wait"
        for seconds in (1, 10, 60):
            # A busy machine may not come that far.
            with suppress(WorkspaceError):
                assert (await workspaces.run_command(workspace, line, seconds)).timed_out
            assert sleepers(project) == []
            if (workspace.tmp / "tidied").exists():
                break
        assert (workspace.tmp / "tidied").exists()
        lines = ("exit 7", "kill -9 $$", "kill -TERM $$", "no-such-program")
        return [(await workspaces.run_command(workspace, line, PATIENCE)).exit_code for line in lines]

    assert project.work(work, isolation={"level": project.level}) == [7, 137, 143, 127]


SLOW_FORKS = """
import os, runpy, sys, time
fork = os.fork
os.fork = lambda: (child := fork()) and (time.sleep(0.2) or child)
runpy.run_path(sys.argv.pop(1), run_name="__main__")
"""


def test_a_world_is_made_however_late_those_who_wait_for_it_are() -> None:
    needs.level("full")
    options = ["--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev"]
    start = programs.inside({}, world=options)
    launcher = start[start.index(str(programs.START)) :]
    argv = [sys.executable, "-I", "-S", "-c", SLOW_FORKS, *launcher, "sh", "-c", "echo $0; exit 7", "in"]
    ended = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (7, "in\n", "")
