"""Files that become links while they are read."""

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from zelda_ci.files import untrusted

LIMIT = 1000


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    place = tmp_path / "tree"
    place.mkdir()
    return place


@contextmanager
def repeated(action: Callable[[], object]) -> Iterator[None]:
    """Do it in another thread again and again."""
    over = threading.Event()

    def repeat() -> None:
        while not over.is_set():
            action()

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def seen_by(read: Callable[[], bytes]) -> set[bytes | None]:
    """What reading gives while somebody else works against it, None where it is refused; both have to occur often."""
    times = Counter[bytes | None]()
    end = time.monotonic() + 20
    while (min(times.values(), default=0) < 10 or len(times) < 2) and time.monotonic() < end:
        try:
            times[read()] += 1
        except OSError:
            times[None] += 1
    return set(times)


def test_a_folder_that_becomes_a_link_during_the_walk_is_not_followed(tree: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "b").mkdir(parents=True)
    (outside / "b" / "file").write_bytes(b"secret")
    (tree / "a" / "b").mkdir(parents=True)
    (tree / "a" / "b" / "file").write_bytes(b"plain")
    (tree / "link").symlink_to(outside)

    def swap() -> None:
        (tree / "a").rename(tree / "aside")
        (tree / "link").rename(tree / "a")
        (tree / "a").rename(tree / "link")
        (tree / "aside").rename(tree / "a")

    def read() -> bytes:
        with untrusted.entered(tree, ["a", "b"]) as folder:
            return untrusted.read("file", LIMIT, folder=folder)

    with repeated(swap):
        assert seen_by(read) == {b"plain", None}


def test_a_file_that_becomes_a_link_is_not_followed(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").write_bytes(b"secret")
    (tree / "a").write_bytes(b"plain")
    (tree / "plain").write_bytes(b"plain")

    def swap() -> None:
        (tree / "new").symlink_to(tmp_path / "outside")
        (tree / "new").rename(tree / "a")
        os.link(tree / "plain", tree / "new")
        (tree / "new").rename(tree / "a")

    with repeated(swap):
        assert seen_by(lambda: untrusted.read(tree / "a", LIMIT)) == {b"plain", None}
