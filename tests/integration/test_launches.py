"""A command that could not be confined is Zelda's failure, whatever number a command itself may end with."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support import needs
from tests.support.command import environment, gone, results, zelda
from tests.support.projects import Project, repository
from tests.support.scripted_api import ScriptedApi, text
from zelda_ci.domain.details import CommandResult
from zelda_ci.domain.workspace import PHASES, Confinement, Workspace
from zelda_ci.errors import WorkspaceError
from zelda_ci.workspace.workspaces import Workspaces

ROOT = Path(__file__).parents[2]
WALLS = ["full", "uid", "landlock"]
"""Levels with a launcher."""

Change = Callable[[Confinement], Confinement]


@pytest.fixture(params=[*WALLS, "none"])
def project(request: pytest.FixtureRequest, place: Path) -> Project:
    needs.level(request.param)
    made = repository(place)
    made.level = request.param
    return made


def runs(project: Project, *tries: tuple[str, Change], timeout: float = 60) -> list[CommandResult | WorkspaceError]:
    """What became of commands in one workspace, each with its own change to how it is confined."""

    async def work(workspaces: Workspaces, workspace: Workspace) -> list[CommandResult | WorkspaceError]:
        found: list[CommandResult | WorkspaceError] = []
        for line, change in tries:
            changed = replace(workspace, confinement=change(workspace.confinement))
            try:
                found.append(await workspaces.run_command(changed, line, timeout))
            except WorkspaceError as error:
                found.append(error)
        return found

    done: list[CommandResult | WorkspaceError] = project.work(work)
    return done


def as_it_is(found: Confinement) -> Confinement:
    return found


def run(project: Project, line: str) -> CommandResult | WorkspaceError:
    (found,) = runs(project, (line, as_it_is))
    return found


def exit_code(found: CommandResult | WorkspaceError) -> int | None:
    assert isinstance(found, CommandResult), found
    return found.exit_code


def failure(found: CommandResult | WorkspaceError) -> tuple[str, int]:
    assert isinstance(found, WorkspaceError), found
    return found.code, found.exit_code


def test_whatever_number_a_command_ends_with_is_its_own(project: Project) -> None:
    codes = [0, 1, 2, 125, 126, 127, 137, 255]
    found = runs(project, *((f"echo ran; exit {code}", as_it_is) for code in codes))
    assert list(map(exit_code, found)) == codes


def test_a_command_that_says_what_a_launcher_would_say_is_a_command(project: Project) -> None:
    # At level none a command may do all that Zelda may; below, nothing of it can be reached.
    files = "/proc/self/fd/3" if project.level == "none" else "../test.status /proc/self/fd/3"
    line = f"echo 'could not be confined'; for file in {files}; do echo x > $file; done"
    assert exit_code(run(project, f"({line}) 2>&1; exit 125")) == 125


def starting_with(*argv: str) -> Change:
    return lambda found: replace(found, starts=dict.fromkeys(PHASES, argv))


BROKEN: dict[str, Change] = {
    "fails": starting_with("sh", "-c", "exit 1"),
    "fails with a number of a runner": starting_with("sh", "-c", "echo 5 passed in 0.1s; exit 0"),
    "fails with 127": starting_with("sh", "-c", "exit 127"),
    "is missing": starting_with("/nowhere/bwrap"),
    "is killed": starting_with("sh", "-c", "kill -9 $$"),
    "never ends": starting_with("sleep", "30"),
}


@pytest.mark.parametrize("project", WALLS, indirect=True)
def test_a_launcher_that_does_not_come_to_its_end_is_no_result(project: Project) -> None:
    found = runs(project, *(("echo ran", change) for change in BROKEN.values()), timeout=1)
    told = dict(zip(BROKEN, map(failure, found), strict=True))
    assert told == dict.fromkeys(BROKEN, ("COMMAND_NOT_CONFINED", 2))


SUPERVISORS: dict[str, tuple[str, ...]] = {
    "is missing": (sys.executable, "/nowhere/supervisor.py"),
    "ends well without having done anything": ("true",),
    "fails": ("sh", "-c", "exit 125"),
}


def supervised_by(argv: tuple[str, ...]) -> Change:
    return lambda found: replace(found, supervisor=argv)


def test_a_supervisor_that_fails_is_no_result(project: Project) -> None:
    found = runs(project, *(("echo ran", supervised_by(argv)) for argv in SUPERVISORS.values()))
    told = dict(zip(SUPERVISORS, map(failure, found), strict=True))
    assert told == dict.fromkeys(SUPERVISORS, ("COMMAND_NOT_CONFINED", 2))


def test_a_supervisor_that_is_killed_is_no_result(place: Path) -> None:
    project = repository(place)
    project.level = "none"
    line = "until grep -q begun ../test.status; do sleep 0.1; done; kill -9 $PPID; sleep 1"
    assert failure(run(project, line))[0] == "SUPERVISOR_LOST"


FAULT = "the-command-that-cannot-be-confined"
CASES = {
    "setup": f"setupCommand: echo {FAULT}\ntestCommand: echo fine\n",
    "build": f"buildCommand: echo {FAULT}\ntestCommand: echo fine\n",
    "test": f"testCommand: echo {FAULT}\n",
    "session": "execution: {maxTurns: 7}\ntestCommand: echo fine\n",
}
OUTCOMES = {"setup": "broken", "session": "broken", "build": "incomplete", "test": "incomplete"}


@needs.BWRAP
def test_in_a_run_it_is_never_a_failure_of_the_code_and_never_a_score(place: Path) -> None:
    """Bubblewrap refuses one command of each suite, or its session, and does all others."""
    needs.level("full")
    project = repository(place, {f"zelda/test-{name}.yaml": f"prompt: Greet.\n{CASES[name]}" for name in CASES})
    tools = place / "tools"
    tools.mkdir()
    (tools / "bwrap").write_text(
        f"""#!/bin/sh
case "$*" in *{FAULT}*-p*|*{FAULT}|*"/_bundled/claude "*"--max-turns 7 "*) exit 1;; esac
exec {shutil.which("bwrap")} "$@"
"""
    )
    (tools / "bwrap").chmod(0o755)
    argv = [sys.executable, "-m", "tests.support.only_bubblewrap", "zelda_ci", "run"]
    path = {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    with ScriptedApi(lambda _: text("Done.")) as api:
        environ = environment(project, api.url, **path)
        done = subprocess.run(argv, cwd=project.path, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stdout + done.stderr
    assert " ".join(done.stdout.split()).count("could not be confined") >= len(CASES)
    assert " PASS " not in done.stdout
    found = results(project)
    assert not any("score" in run["evaluations"].get("functionalCorrectness", {}) for run in found)
    listed = json.loads(zelda(project, "list", "--json").stdout)["runs"]
    assert {run["suite"]: run["outcome"] for run in listed} == {name: OUTCOMES[name] for name in CASES}
    assert len(found) == len(CASES)
    assert gone(project)
