"""Where workspaces lie, and where they must not."""

import os
from pathlib import Path

import pytest

from tests.support import needs
from zelda_ci.errors import WorkspaceError
from zelda_ci.workspace import folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "work" / "project"
    folder.mkdir(parents=True)
    return folder


def environ(tmp_path: Path, **more: str) -> dict[str, str]:
    return {"HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path / "tmp"), **more}


@pytest.mark.parametrize(
    ("variables", "chosen"),
    [
        ({"ZELDA_WORKSPACES": "{tmp}/mine", "RUNNER_TEMP": "/nowhere"}, "mine"),
        ({"ZELDA_WORKSPACES": "../ws"}, "work/ws"),
        ({"RUNNER_TEMP": "{tmp}/r"}, "r/zelda"),
        ({}, "home/.cache/zelda"),
        ({"XDG_CACHE_HOME": "{tmp}/c"}, "c/zelda"),
        ({"XDG_CACHE_HOME": "{tmp}/work/project/cache"}, f"tmp/zelda-{os.getuid()}"),
    ],
    ids=["explicit", "from the project", "of the runner", "cache", "the user's cache", "a cache inside the project"],
)
def test_the_folder_of_workspaces(tmp_path: Path, project: Path, variables: dict[str, str], chosen: str) -> None:
    given = {name: value.replace("{tmp}", str(tmp_path)) for name, value in variables.items()}
    found = folder.choose_location(project, environ(tmp_path, **given))
    assert found == tmp_path / chosen
    assert found.stat().st_mode & 0o777 == 0o700


STEERING = ("CLAUDE.md", "CLAUDE.local.md", "AGENTS.md", ".mcp.json", ".claude/rules/style.md")
# Claude Code does not load these from above a repository.
OTHERS = (".claude/settings.json", ".claude/skills/x/SKILL.md", ".claude/agents/a.md", ".claude/projects/p/s.jsonl")


@pytest.mark.parametrize("name", [*STEERING, *OTHERS])
def test_a_folder_below_steering_files_is_passed_over(tmp_path: Path, project: Path, name: str) -> None:
    file = tmp_path / "home" / name
    file.parent.mkdir(parents=True)
    file.write_text("be brief")
    chosen = f"tmp/zelda-{os.getuid()}" if name in STEERING else "home/.cache/zelda"
    assert folder.choose_location(project, environ(tmp_path)) == tmp_path / chosen


def test_an_explicit_folder_below_a_steering_file_is_an_error_that_names_it(tmp_path: Path, project: Path) -> None:
    (tmp_path / "work/AGENTS.md").write_text("x")
    with pytest.raises(WorkspaceError) as caught:
        folder.choose_location(project, environ(tmp_path, ZELDA_WORKSPACES=str(tmp_path / "work/ws/deep")))
    assert str(tmp_path / "work/AGENTS.md") in caught.value.message
    assert caught.value.code == "WORKSPACE_LOCATION"
    assert not (tmp_path / "work/ws").exists()


@pytest.mark.parametrize("place", ["work/project/ws", "work/project", "work", "link/ws"])
def test_workspaces_and_project_never_lie_in_one_another(tmp_path: Path, project: Path, place: str) -> None:
    (tmp_path / "link").symlink_to(project)
    with pytest.raises(WorkspaceError, match="lie in one another"):
        folder.choose_location(project, environ(tmp_path, ZELDA_WORKSPACES=str(tmp_path / place)))
    assert list(project.iterdir()) == []


@pytest.mark.parametrize(
    ("place", "problem"),
    [("shared", "can be written by other users"), ("file", "File exists"), ("new\nline", "not a plain absolute path")],
)
def test_what_is_no_private_folder_is_not_used(tmp_path: Path, project: Path, place: str, problem: str) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)
    (tmp_path / "file").write_text("")
    with pytest.raises(WorkspaceError, match=problem):
        folder.choose_location(project, environ(tmp_path, ZELDA_WORKSPACES=str(tmp_path / place)))


def test_a_planted_link_is_not_followed(tmp_path: Path, project: Path) -> None:
    """Anybody may put something under this name into a shared temporary folder."""
    (tmp_path / "tmp").mkdir()
    (tmp_path / "victim").mkdir()
    (tmp_path / f"tmp/zelda-{os.getuid()}").symlink_to(tmp_path / "victim")
    (tmp_path / "home").write_text("not a folder")
    chosen = folder.choose_location(project, environ(tmp_path))
    assert chosen.parent in {Path("/tmp"), Path("/var/tmp")}
    assert list((tmp_path / "victim").iterdir()) == []


@needs.ROOT
def test_a_folder_of_another_user_is_not_used(tmp_path: Path, project: Path) -> None:
    (tmp_path / "theirs").mkdir(mode=0o700)
    os.chown(tmp_path / "theirs", 65534, 65534)
    with pytest.raises(WorkspaceError, match="belongs to another user"):
        folder.choose_location(project, environ(tmp_path, ZELDA_WORKSPACES=str(tmp_path / "theirs")))
