"""What a hostile tree may hold in the place of a file, and what the one reader makes of it."""

import os
import stat
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from zelda_ci.files import atomic, untrusted
from zelda_ci.files.untrusted import NotRegularError, TooLargeError
from zelda_ci.process import removal

LIMIT = 1000


def socket_at(path: Path) -> None:
    os.mknod(path, stat.S_IFSOCK | 0o600)


def device_at(path: Path) -> None:
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("needs root and a file system that takes devices")


def link_out(path: Path) -> None:
    outside = path.parent.parent / "outside"
    outside.write_text("secret")
    path.symlink_to(outside)


NOT_REGULAR: dict[str, tuple[Callable[[Path], object], str]] = {
    "folder": (Path.mkdir, "a folder"),
    "pipe": (os.mkfifo, "a named pipe"),
    "socket": (socket_at, "a socket"),
    "device": (device_at, "a device"),
    "link out": (link_out, "a symbolic link"),
    "link to itself": (lambda path: path.symlink_to(path), "a symbolic link"),
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    place = tmp_path / "tree"
    place.mkdir()
    return place


@contextmanager
def without_rights() -> Iterator[None]:
    """Root may read everything, so for a moment this process is somebody else."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(before)


@pytest.mark.parametrize("content", [b"", b"x", b"x" * LIMIT])
def test_a_regular_file_is_read_up_to_the_limit(tree: Path, content: bytes) -> None:
    (tree / "a").write_bytes(content)
    assert untrusted.read(tree / "a", LIMIT) == content
    assert untrusted.read_head(tree / "a", LIMIT) == content
    assert untrusted.read(tree / "a") == content
    assert untrusted.read(Path("/proc/self/status"), 100_000).startswith(b"Name:")
    with pytest.raises(FileNotFoundError):
        untrusted.read(tree / "b", LIMIT)


@pytest.mark.parametrize("kind", NOT_REGULAR)
def test_what_is_no_regular_file_is_not_read_and_not_waited_for(tree: Path, kind: str) -> None:
    make, name = NOT_REGULAR[kind]
    make(tree / "a")
    assert untrusted.kind_of(tree / "a") == name
    with untrusted.entered(tree) as folder:
        readers: list[Callable[[], object]] = [
            lambda: untrusted.read(tree / "a", LIMIT),
            lambda: untrusted.read("a", LIMIT, folder=folder),
            lambda: untrusted.read_head(tree / "a", LIMIT),
            lambda: untrusted.open_regular(tree / "a"),
            lambda: untrusted.open_regular(tree / "a", os.O_WRONLY | os.O_APPEND | os.O_CREAT),
        ]
        for read in readers:
            with pytest.raises(NotRegularError, match="not a regular file"):
                read()


def test_a_link_that_the_user_named_is_followed_but_only_to_a_regular_file(tree: Path) -> None:
    (tree / "file").write_bytes(b"x")
    (tree / "link").symlink_to("file")
    os.mkfifo(tree / "pipe")
    (tree / "other").symlink_to("pipe")
    assert untrusted.read(tree / "link", LIMIT, follow_link=True) == b"x"
    with pytest.raises(NotRegularError):
        untrusted.read(tree / "other", LIMIT, follow_link=True)


@pytest.mark.parametrize("size", [LIMIT + 1, 10 << 30])
def test_a_file_that_is_too_large_is_not_read(tree: Path, size: int) -> None:
    with (tree / "a").open("wb") as file:
        file.truncate(size)
    tracemalloc.start()
    with pytest.raises(TooLargeError, match="larger than 1000 bytes") as caught:
        untrusted.read(tree / "a", LIMIT)
    head = untrusted.read_head(tree / "a", LIMIT)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert caught.value.size == size
    assert head == bytes(LIMIT)
    assert peak < 1 << 20


def test_a_file_that_has_grown_beyond_the_limit_since_it_was_opened_is_too_large(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tree / "a"
    file.write_bytes(b"x")
    before = file.stat()

    def and_then_it_grows(_: int) -> os.stat_result:
        file.write_bytes(b"x" * (LIMIT + 1))
        return before

    monkeypatch.setattr(os, "fstat", and_then_it_grows)
    with pytest.raises(TooLargeError) as caught:
        untrusted.read(file, LIMIT)
    assert caught.value.size == 1


def test_a_file_that_may_not_be_read_is_told_with_the_systems_reason(tree: Path) -> None:
    (tree / "a").write_bytes(b"secret")
    (tree / "a").chmod(0)
    tree.chmod(0o755)
    with untrusted.entered(tree) as folder, without_rights(), pytest.raises(PermissionError):
        untrusted.read("a", LIMIT, folder=folder)


def test_a_name_need_not_be_utf_8(tree: Path) -> None:
    name = b"caf\xe9\xff"
    with (tree / os.fsdecode(name)).open("wb") as file:
        file.write(b"x")
    with untrusted.entered(tree) as folder:
        assert untrusted.read(name, LIMIT, folder=folder) == b"x"
    assert untrusted.read(os.fsencode(tree) + b"/" + name, LIMIT) == b"x"
    assert untrusted.read(tree / os.fsdecode(name), LIMIT) == b"x"


@pytest.mark.parametrize("name", ["a\0b", "x" * 300, "\ud800"])
def test_an_impossible_name_is_an_error_of_the_system(tree: Path, name: str) -> None:
    for read in (untrusted.read, untrusted.read_head):
        with pytest.raises(OSError, match=r"impossible name|too long"):
            read(tree / name, LIMIT)
    with pytest.raises(OSError, match=r"impossible name|too long"), untrusted.entered(tree, [name]):
        pass


def test_folders_are_entered_step_by_step_and_what_is_no_real_folder_leads_nowhere(tree: Path, tmp_path: Path) -> None:
    (tree / "a" / "b").mkdir(parents=True)
    (tree / "a" / "b" / "file").write_bytes(b"x")
    with untrusted.entered(tree, ["a"]) as outer, untrusted.entered(outer, [b"b"]) as inner:
        assert untrusted.read("file", LIMIT, folder=inner) == b"x"
        assert [entry.name for entry in os.scandir(outer)] == ["b"]
    (tmp_path / "outside").mkdir()
    (tree / "link").symlink_to(tmp_path / "outside")
    (tree / "file").touch()
    os.mkfifo(tree / "pipe")
    for step in ("link", "file", "pipe", "absent"):
        for way in ([step], [step, "more"]):
            with pytest.raises(OSError, match=r"Not a directory|No such file"), untrusted.entered(tree, way):
                pass


def test_no_descriptor_is_left_open(tree: Path) -> None:
    (tree / "a").mkdir()
    (tree / "file").write_bytes(b"x" * (LIMIT + 1))
    before = len(list(Path("/proc/self/fd").iterdir()))
    for way in (["a"], ["a", "b"], ["file"]):
        with suppress(OSError), untrusted.entered(tree, way):
            pass
    for name in ("a", "file", "absent"):
        with suppress(OSError):
            untrusted.read(tree / name, LIMIT)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_file_that_is_replaced_is_never_seen_half_and_leaves_no_litter(tree: Path) -> None:
    target = tree / "a"
    target.write_bytes(b"old")
    with pytest.raises(TypeError), atomic.replacing(target) as file:
        file.writelines([b"half", "no bytes"])  # type: ignore[list-item]
    assert target.read_bytes() == b"old"
    left, fresh = tree / ".a.0badc0de.tmp", tree / ".a.1badc0de.tmp"
    for temporary, age in ((left, 7200), (fresh, 0)):
        temporary.touch()
        os.utime(temporary, (time.time() - age,) * 2)
    with atomic.replacing(target, mode=0o640) as file:
        file.write(b"new")
        file.flush()
        assert target.read_bytes() == b"old"
    assert target.read_bytes() == b"new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert sorted(tree.iterdir()) == [fresh, target]


def test_an_entry_that_vanishes_hides_none_of_the_rest(tmp_path: Path) -> None:
    names = {f"file-{number}" for number in range(9)}
    for name in names:
        (tmp_path / name).touch()
    found = removal.older_than(tmp_path, -1)
    kept = max(names - {next(found).name})
    for name in names - {kept}:
        (tmp_path / name).unlink()
    assert [entry.name for entry in found] == [kept]
