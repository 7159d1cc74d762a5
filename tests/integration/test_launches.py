"""A command that could not be confined is Zelda's failure, whatever number a command itself may end with."""

import json
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support import needs
from tests.support.command import gone, the_result, zelda
from tests.support.projects import Project, repository
from tests.support.scripted_api import ScriptedApi, text
from zelda_ci.domain.run import CommandResult
from zelda_ci.domain.workspace import PHASES, Confinement, Workspace
from zelda_ci.errors import WorkspaceError
from zelda_ci.workspace import levels
from zelda_ci.workspace.workspaces import Workspaces

WALLS = [level for level in reversed(levels.STRENGTH) if level != "none"]
"""Levels with a launcher."""

Change = Callable[[Confinement], Confinement]


@pytest.fixture(params=reversed(levels.STRENGTH))
def project(request: pytest.FixtureRequest, place: Path) -> Project:
    needs.level(request.param)
    made = repository(place)
    made.level = request.param
    return made


def run(project: Project, line: str, change: Change = lambda found: found, timeout: float = 60) -> CommandResult:
    async def work(workspaces: Workspaces, workspace: Workspace) -> CommandResult:
        changed = replace(workspace, confinement=change(workspace.confinement))
        return await workspaces.run_command(changed, line, timeout)

    result: CommandResult = project.work(work)
    return result


@pytest.mark.parametrize("code", [0, 1, 2, 125, 126, 127, 137, 255])
def test_whatever_number_a_command_ends_with_is_its_own(project: Project, code: int) -> None:
    assert run(project, f"echo ran; exit {code}").exit_code == code


def test_a_command_that_says_what_a_launcher_would_say_is_a_command(project: Project) -> None:
    # At level none a command may do all that Zelda may; below, nothing of it can be reached.
    files = "/proc/self/fd/3" if project.level == "none" else "../test.status /proc/self/fd/3"
    line = f"echo 'could not be confined'; for file in {files}; do echo x > $file; done"
    assert run(project, f"({line}) 2>&1; exit 125").exit_code == 125


def starting_with(*argv: str) -> Change:
    return lambda found: replace(found, starts=dict.fromkeys(PHASES, argv))


BROKEN: dict[str, Change] = {
    "fails": starting_with("sh", "-c", "exit 1"),
    "fails with a number of a runner": starting_with("sh", "-c", "echo 5 passed in 0.1s; exit 0"),
    "fails with 125": starting_with("sh", "-c", "exit 125"),
    "fails with 127": starting_with("sh", "-c", "exit 127"),
    "is missing": starting_with("/nowhere/bwrap"),
    "is killed": starting_with("sh", "-c", "kill -9 $$"),
    "never ends": starting_with("sleep", "30"),
}


@pytest.mark.parametrize("how", BROKEN)
@pytest.mark.parametrize("project", WALLS, indirect=True)
def test_a_launcher_that_does_not_come_to_its_end_is_no_result(project: Project, how: str) -> None:
    with pytest.raises(WorkspaceError) as raised:
        run(project, "echo ran", BROKEN[how], timeout=3)
    assert raised.value.code == "COMMAND_NOT_CONFINED"
    assert raised.value.exit_code == 2


SUPERVISORS: dict[str, tuple[str, ...]] = {
    "is missing": (sys.executable, "/nowhere/supervisor.py"),
    "ends well without having done anything": ("true",),
    "fails": ("sh", "-c", "exit 125"),
}


@pytest.mark.parametrize("how", SUPERVISORS)
def test_a_supervisor_that_fails_is_no_result(project: Project, how: str) -> None:
    with pytest.raises(WorkspaceError) as raised:
        run(project, "echo ran", lambda found: replace(found, supervisor=SUPERVISORS[how]))
    assert raised.value.code == "COMMAND_NOT_CONFINED"


def test_a_supervisor_that_is_killed_is_no_result(place: Path) -> None:
    project = repository(place)
    project.level = "none"
    with pytest.raises(WorkspaceError) as raised:
        run(project, "kill -9 $PPID; sleep 1")
    assert raised.value.code == "SUPERVISOR_LOST"


FAULT = "the-command-that-cannot-be-confined"
CASES = {
    "setup": f"setupCommand: echo {FAULT}\ntestCommand: echo fine\n",
    "build": f"buildCommand: echo {FAULT}\ntestCommand: echo fine\n",
    "test": f"testCommand: echo {FAULT}\n",
    "session": "testCommand: echo fine\n",
}


@pytest.mark.parametrize("what", CASES)
def test_in_a_run_it_is_never_a_failure_of_the_code_and_never_a_score(place: Path, what: str) -> None:
    """Bubblewrap refuses one command of a run, and does all others."""
    needs.level("namespaces")
    project = repository(place, {"zelda/test-a.yaml": f"prompt: Greet.\n{CASES[what]}"})
    marker = "/_bundled/claude" if what == "session" else FAULT
    tools = place / "tools"
    tools.mkdir()
    (tools / "bwrap").write_text(f'#!/bin/sh\ncase "$*" in *{marker}*-p*|*{FAULT}|*"-- "*{marker}*) exit 1;; esac\n')
    real = shutil.which("bwrap")
    with (tools / "bwrap").open("a") as file:
        file.write(f'exec {real} "$@"\n')
    (tools / "bwrap").chmod(0o755)
    with ScriptedApi([text("Done.")]) as api:
        done = zelda(project, "run", api=api.url, PATH=f"{tools}{os.pathsep}{os.environ['PATH']}")
    assert done.returncode == 2, done.stdout + done.stderr
    assert "could not be confined" in " ".join(done.stdout.split())
    assert " PASS " not in done.stdout
    found = the_result(project)
    assert "score" not in found["evaluations"].get("functionalCorrectness", {})
    outcome = json.loads(zelda(project, "list", "--json").stdout)["runs"][0]["outcome"]
    assert outcome == ("incomplete" if what in {"build", "test"} else "broken")
    assert gone(project)
