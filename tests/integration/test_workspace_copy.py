"""Folders without a repository: a snapshot in one of Zelda's own, measured in the same way."""

import os
import socket
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE
from tests.support.projects import folder
from zelda_ci.domain.workspace import Workspace
from zelda_ci.errors import WorkspaceError
from zelda_ci.workspace.workspaces import Workspaces


async def names(_: Workspaces, workspace: Workspace) -> set[str]:
    found = (path for path in workspace.root.rglob("*") if not path.is_dir() or path.is_symlink())
    return {str(path.relative_to(workspace.root)) for path in found if path.name != ".git"}


def test_the_copy_is_a_repository_and_its_changes_are_found(tmp_path: Path) -> None:
    project = folder(tmp_path, {"a.txt": "one\n", "sub/b.txt": "two\n", "run": "#!/bin/sh\n"})
    (project.path / "run").chmod(0o755)
    before = project.fingerprint()

    async def work(workspaces: Workspaces, workspace: Workspace) -> None:
        source = workspace.source
        assert (source.kind, source.commit, source.branch, source.dirty) == ("copy", None, None, False)
        assert os.access(workspace.root / "run", os.X_OK)
        line = "git status -s; git log --format=%s; echo more >> a.txt; git add .; git commit -qm more; rm sub/b.txt"
        done = await workspaces.run_command(workspace, line, PATIENCE)
        assert (done.exit_code, done.output) == (0, "The files as they were found\n")
        changes = await workspaces.changes(workspace, tmp_path / "patch")
        assert (changes.files, changes.insertions, changes.deletions) == (("a.txt", "sub/b.txt"), 1, 1)

    project.work(work)
    assert project.fingerprint() == before
    assert project.leftovers() == []


def test_results_and_repositories_inside_stay_behind(tmp_path: Path) -> None:
    odd: dict[str, str | bytes] = {
        os.fsdecode(name): "x" for name in (b"new\nline", b"-rf", b"\xff\xfe", b":(top)", b"a b")
    }
    project = folder(tmp_path, {"a.txt": "a", ".zelda/runs/x/result.json": "{}", "lib/code.py": "x", **odd})
    project.git("init", "-q", cwd=project.path / "lib")
    project.write({"lib/.git/config": "[remote]\n\turl = https://token@example.com\n"})
    (project.path / "lib").chmod(0o555)
    assert project.work(names) == {"a.txt", "lib/code.py", *odd}
    (project.path / "lib").chmod(0o755)
    assert project.leftovers() == []


def test_links_stay_links_and_special_files_stay_behind(tmp_path: Path) -> None:
    project = folder(tmp_path, {"a.txt": "a"})
    (project.path / "link").symlink_to("a.txt")
    (project.path / "dangling").symlink_to("/no/such/file")
    (project.path / "up").symlink_to("..")
    os.mkfifo(project.path / "pipe")
    listener = socket.socket(socket.AF_UNIX)
    here = Path.cwd()
    os.chdir(project.path)  # the whole path would be too long for a socket
    listener.bind("sock")
    os.chdir(here)

    async def work(_: Workspaces, workspace: Workspace) -> tuple[str, ...]:
        assert (workspace.root / "link").readlink() == Path("a.txt")
        assert (workspace.root / "dangling").is_symlink()
        assert (workspace.root / "up").is_symlink()
        assert not (workspace.root / "pipe").exists()
        return workspace.notes

    assert project.work(work) == ()
    listener.close()


def test_a_folder_that_is_too_large_is_refused(tmp_path: Path) -> None:
    project = folder(tmp_path, {"a.txt": "a"})
    with (project.path / "huge").open("wb") as file:
        file.truncate(5 << 30)
    before = project.fingerprint()
    with pytest.raises(WorkspaceError, match="too large to be copied") as caught:
        project.work(names)
    assert caught.value.hint is not None
    assert "git init" in caught.value.hint
    assert project.leftovers() == []
    assert project.fingerprint() == before


def test_credentials_and_ignored_files_stay_behind_and_the_run_says_so(tmp_path: Path) -> None:
    kept = {"a.py": "x = 1\n", ".env.example": "KEY=\n", ".gitignore": "*.log\n", "lib/.gitignore": "out/\n"}
    left = {".env": "KEY=s3cr3t\n", "lib/server.key": "k", "x.log": "l", "lib/out/y": "y", "lib/.ssh/config": "c"}
    project = folder(tmp_path, {**kept, **left})

    async def work(workspaces: Workspaces, workspace: Workspace) -> tuple[str, ...]:
        assert await names(workspaces, workspace) == set(kept)
        return workspace.source.left_out

    assert project.work(work) == (".env", "lib/.ssh", "lib/server.key")
    done, patch = project.changes_after("git cat-file --batch-all-objects --batch | grep -c s3cr3t | grep -x 0")
    assert (done.files, patch) == ((), "")
