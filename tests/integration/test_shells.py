"""Commands that are lines: a part that fails fails the whole, unless the suite says otherwise."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.projects import Project, repository
from zelda_ci.domain.workspace import Workspace
from zelda_ci.errors import WorkspaceError
from zelda_ci.workspace.workspaces import Workspaces


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = repository(tmp_path)
    made.level = "none"
    return made


def codes(project: Project, *lines: str, shell: Any = None) -> list[int | None]:
    """How lines end, each run in the same workspace."""

    async def work(workspaces: Workspaces, workspace: Workspace) -> list[int | None]:
        return [(await workspaces.run_command(workspace, line, 60)).exit_code for line in lines]

    result: list[int | None] = project.work(work, shell=shell)
    return result


FAILING = ["false; true", "false\ntrue\n", "false | true", "exit 3 | cat", "(exit 3); echo on", "cd nowhere; true"]
FINE = ["true; true", "true | true", "false || true", "if false; then exit 1; fi; true", "! false", "true &\nwait"]


@pytest.mark.parametrize("shell", [None, "bash", "sh"])
def test_a_part_that_fails_fails_the_command_and_what_is_meant_to_fail_may(project: Project, shell: Any) -> None:
    failing = [line for line in FAILING if shell != "sh" or "|" not in line]
    found = dict(zip([*failing, *FINE], codes(project, *failing, *FINE, shell=shell), strict=True))
    assert [line for line in failing if found[line] in {0, None}] == []
    assert [line for line in FINE if found[line] != 0] == []


@pytest.mark.parametrize("shell", ["bash -c", ["sh", "-c"], "/bin/sh  -c"])
def test_a_suite_may_ask_for_a_shell_that_goes_on(project: Project, shell: Any) -> None:
    assert codes(project, "false; true", "false | true", shell=shell) == [0, 0]


def test_it_need_not_be_a_shell(project: Project) -> None:
    assert codes(project, "import sys; sys.exit(7)", shell="python3 -c") == [7]


def without_bash(project: Project, tmp_path: Path) -> None:
    """A PATH with all that is needed but bash."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("git", "sh", "cat", "true", "python3"):
        (tools / name).symlink_to(shutil.which(name) or name)
    project.environ["PATH"] = str(tools)


def test_where_there_is_no_bash_it_is_said_what_is_not_noticed(project: Project, tmp_path: Path) -> None:
    without_bash(project, tmp_path)

    async def notes(_: Workspaces, workspace: Workspace) -> tuple[str, ...]:
        return workspace.notes

    assert any("no bash on PATH" in note for note in project.work(notes, shell=None, testCommand="true"))
    assert not project.work(notes, shell=None, testCommand=["true"])
    assert not project.work(notes, shell="sh", testCommand="true")
    assert codes(project, "false; true") == [1]


def test_a_shell_that_is_not_there_is_told_before_anything_runs(project: Project, tmp_path: Path) -> None:
    without_bash(project, tmp_path)

    async def nothing(_: Workspaces, workspace: Workspace) -> None:
        raise AssertionError("it was opened")

    with pytest.raises(WorkspaceError) as raised:
        project.work(nothing, shell="bash", testCommand="true")
    assert (raised.value.code, raised.value.exit_code) == ("SHELL_MISSING", 2)
    assert str(tmp_path / "tools") in raised.value.message
