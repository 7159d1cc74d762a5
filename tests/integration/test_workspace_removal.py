"""Trees that do not want to be deleted, other processes, and mounts."""

import os
import shlex
import stat
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from zelda_ci.process import removal


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


def test_a_missing_folder_is_no_problem(tmp_path: Path) -> None:
    anyio.run(removal.discard, tmp_path / "nothing", tmp_path / "trash")


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
    (tmp_path / "elsewhere").symlink_to(victim)
    anyio.run(removal.empty, tmp_path / "elsewhere")
    assert (victim / "file").read_text() == "precious"
    assert victim.stat().st_mode == mode


MOUNTS = """
set -e
mkdir -p {tree}/inner/mounted {victim}
touch {victim}/precious {tree}/inner/other
chmod 500 {victim}
mount --bind {victim} {tree}/inner/mounted
{python} -c '
import shlex
import sys
from pathlib import Path
import anyio
from zelda_ci.process import removal
anyio.run(removal.discard, Path(sys.argv[1]), Path(sys.argv[2]))
' {tree} {trash}
"""


def test_a_mount_inside_is_not_entered(tmp_path: Path) -> None:
    """In a mount namespace of its own; where the machine allows none, there is no way for a session to mount either."""
    if subprocess.run(["unshare", "-Urm", "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs user and mount namespaces")
    tree, victim, trash = (tmp_path / name for name in ("tree", "victim", "trash"))
    script = MOUNTS.format(tree=tree, victim=victim, trash=trash, python=shlex.quote(sys.executable))
    argv = ["unshare", "-Urm", "sh", "-c", script]
    done = subprocess.run(argv, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "cannot be deleted" in done.stderr
    assert (victim / "precious").exists()
    assert victim.stat().st_mode & 0o777 == 0o500
    anyio.run(removal.empty, trash)
    assert list(trash.iterdir()) == []
    assert (victim / "precious").exists()
