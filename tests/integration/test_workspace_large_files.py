"""Files of Git LFS whose content the checkout has are in the workspace whole; no filter runs, and hashes decide."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.test_workspace_submodules import CLEAN, files_of, look
from tests.support.named_contents import clone, keep, pointer, use_lfs
from tests.support.patience import PATIENCE
from tests.support.projects import Project, repository
from zelda_ci.domain.workspace import Workspace
from zelda_ci.errors import WorkspaceError
from zelda_ci.workspace.workspaces import Workspaces

CONTENT = bytes(range(256)) * 40
OTHER = b"text\r\nof the other\n"


def project_of(tmp_path: Path) -> Project:
    """Two large files with content, and one that is a pointer in the eyes of nobody."""
    project = repository(tmp_path, {"README.md": "hello\n"})
    use_lfs(project)
    project.write({"big.bin": CONTENT, "data/other.bin": OTHER, "data/fake.txt": pointer(b"never")})
    project.commit()
    for content in (CONTENT, OTHER):
        keep(project.path / ".git", content)
    assert project.git("cat-file", "blob", "HEAD:big.bin").encode() + b"\n" == pointer(CONTENT).encode()
    return project


def pointers(project: Project) -> dict[str, str]:
    return dict(project.inspected().contents.lfs.missing)


def test_a_session_finds_the_contents_and_a_clean_tree(tmp_path: Path) -> None:
    project = project_of(tmp_path)
    files, status, notes = look(project, f"git add big.bin; git stash; {CLEAN}")
    assert files == files_of(project.path)
    assert files["big.bin"] == CONTENT
    assert files["data/fake.txt"] == pointer(b"never").encode()
    assert status.strip() == "No local changes to save"
    assert notes == ()


def test_contents_come_from_the_storage_where_the_file_is_another(tmp_path: Path) -> None:
    project = project_of(tmp_path)
    # Contents that no filter has compared are no change.
    os.utime(project.path / "big.bin", (2, 2))
    source = project.inspected()
    assert (source.changed, source.dirty) == ((), False)

    (project.path / "big.bin").write_bytes(CONTENT[:-1] + b"x")
    assert look(project)[0]["big.bin"] == CONTENT
    source = project.inspected()
    assert (source.changed, source.dirty) == (("big.bin",), True)

    # In a clone without the filter the working files are pointers.
    cloned = clone(project, tmp_path / "clone")
    keep(cloned.path / ".git", OTHER)
    files, status, notes = look(cloned)
    assert (files["data/other.bin"], files["big.bin"], status) == (OTHER, pointer(CONTENT).encode(), "")
    assert notes == ("Files of Git LFS are pointers in the workspace: big.bin.",)
    assert pointers(cloned) == {"big.bin": ""}


def _link(stored: Path, tmp_path: Path) -> None:
    stored.symlink_to(keep(tmp_path, CONTENT))


def _linked_storage(stored: Path, tmp_path: Path) -> None:
    stored.parent.rmdir()
    stored.parent.symlink_to(keep(tmp_path, CONTENT).parent)


def _pipe(stored: Path, _: Path) -> None:
    os.mkfifo(stored)


def _other_size(stored: Path, _: Path) -> None:
    stored.write_bytes(CONTENT[:-1])


@pytest.mark.parametrize("spoil", [_link, _linked_storage, _pipe, _other_size])
def test_what_is_not_the_content_is_not_taken(tmp_path: Path, spoil: Callable[[Path, Path], None]) -> None:
    project = project_of(tmp_path)
    stored = keep(project.path / ".git", CONTENT)
    stored.unlink()
    spoil(stored, tmp_path)
    assert pointers(project) == {"big.bin": ""}
    assert look(project)[0]["big.bin"] == pointer(CONTENT).encode()


def test_a_damaged_storage_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    project = project_of(tmp_path)
    keep(project.path / ".git", CONTENT).write_bytes(b"x" * len(CONTENT))
    with pytest.raises(WorkspaceError) as caught:
        look(project)
    assert caught.value.code == "LFS_DAMAGED"
    assert "big.bin" in caught.value.message
    assert "git lfs fsck" in (caught.value.hint or "")
    assert project.leftovers() == []


def test_what_a_session_does_to_large_files_is_in_the_patch_and_the_fresh_checkout(tmp_path: Path) -> None:
    project = project_of(tmp_path)
    patch = tmp_path / "patch"

    async def work(workspaces: Workspaces, workspace: Workspace) -> tuple[tuple[str, ...], dict[str, bytes]]:
        await workspaces.run_command(workspace, "printf changed > data/other.bin; echo x > new.bin", PATIENCE)
        changes = await workspaces.changes(workspace, patch)
        assert not changes.truncated
        checked = await workspaces.check_out_again(workspace)
        return changes.files, files_of(checked.workspace.root)

    changed, fresh = project.work(work)
    assert changed == ("data/other.bin", "new.bin")
    assert fresh == files_of(project.path) | {"data/other.bin": b"changed", "new.bin": b"x\n"}


LIKE_POINTERS: dict[str, str | bytes] = {
    "extended.bin": pointer(CONTENT).replace("oid", "ext-0-x sha256:" + "0" * 64 + "\noid"),
    "negative.bin": pointer(CONTENT).replace(str(len(CONTENT)), "-1"),
    "endings.bin": pointer(CONTENT).replace("\n", "\r\n"),
    "path.bin": pointer(CONTENT).replace("sha256:", "sha256:../../"),
    "more.bin": pointer(CONTENT) + "x",
    "long.bin": "version https://git-lfs.github.com/spec/v1\n" + "x" * 2000,
}


def test_what_only_looks_like_a_pointer_is_a_file(tmp_path: Path) -> None:
    project = repository(tmp_path, {".gitattributes": "*.bin filter=lfs -text\n", **LIKE_POINTERS})
    keep(project.path / ".git", CONTENT)
    files = look(project)[0]
    assert {name: files[name].decode() for name in LIKE_POINTERS} == LIKE_POINTERS
    assert pointers(project) == {}
