"""Trees that do not want to be deleted."""

import os
import stat
from pathlib import Path

import anyio
import pytest

from zelda_ci.files import removal


def discard(path: Path) -> list[str]:
    trash = path.parent / "trash"
    anyio.run(removal.discard, path, trash)
    assert not os.path.lexists(path)
    return [entry.name for entry in trash.iterdir()]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    folder.mkdir()
    return folder


def test_neither_modes_nor_kinds_nor_names_are_obstacles(tree: Path) -> None:
    inner = tree / "read-only" / "no-access" / "inner"
    inner.mkdir(parents=True)
    (inner / "file").write_text("x")
    (inner / "file").chmod(0)
    os.mkfifo(tree / "pipe")
    os.mknod(tree / "sock", stat.S_IFSOCK | 0o600)
    (tree / "big").touch()
    os.truncate(tree / "big", 1 << 40)
    for name in (b"new\nline", b"-rf", b"\xff"):
        (tree / os.fsdecode(name)).write_text("x")
    for folder, mode in ((inner, 0o000), (inner.parent, 0o100), (inner.parent.parent, 0o500)):
        folder.chmod(mode)
    assert discard(tree) == []


def test_depth_is_no_obstacle(tree: Path) -> None:
    at = os.open(tree, os.O_RDONLY)
    for _ in range(400):  # ten times as long as a path may be
        os.mkdir("d" * 100, dir_fd=at)
        below = os.open("d" * 100, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)
    assert discard(tree) == []


def test_links_are_removed_and_never_followed(tree: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "file").write_text("precious")
    (tree / "link").symlink_to(victim)
    (tree / "linked-file").symlink_to(victim / "file")
    (tree / "sub").mkdir()
    (tree / "sub" / "up").symlink_to("../../victim")
    mode = victim.stat().st_mode
    assert discard(tree) == []
    tree.symlink_to(victim)
    assert discard(tree) == []
    assert (victim / "file").read_text() == "precious"
    assert victim.stat().st_mode == mode
