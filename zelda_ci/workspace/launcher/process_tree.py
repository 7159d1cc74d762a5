"""Who descends from whom, as the kernel tells; for programs that start without site-packages."""

import contextlib
import os
import sys
from collections.abc import Iterator

LINUX = sys.platform == "linux"


def descendants() -> Iterator[int]:
    """Every living process below this one, orphans included: the kernel makes them our children."""
    tree = children()
    waiting = [os.getpid()]
    while waiting:
        found = [pid for _, pid in tree.get(waiting.pop(), [])]
        waiting += found
        yield from found


def children() -> dict[int, list[tuple[int, int]]]:
    """Start time and number of every living process, by its parent."""
    tree: dict[int, list[tuple[int, int]]] = {}
    for name in os.listdir("/proc") if LINUX else ():  # noqa: PTH208  # pathlib would slow the start
        with contextlib.suppress(OSError, ValueError):
            pid = int(name)
            with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123  # pathlib would slow the start
                fields = file.read().rpartition(b")")[2].split()
            if fields[0] not in {b"Z", b"X"}:
                tree.setdefault(int(fields[1]), []).append((int(fields[19]), pid))
    return tree
