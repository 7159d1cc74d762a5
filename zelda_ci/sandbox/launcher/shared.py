"""Removes the shared memory, semaphores and message queues of a user, whose number it is given; a program of its own.

They outlive all processes, and where runs have no namespace of their own they are the machine's. Only their owner may
remove them, or a root that can do more than the one of a container: so it becomes that user first.
"""

import ctypes
import os
import sys

TYPE_CHECKING = False  # what `typing` has of that name costs too much at every start
if TYPE_CHECKING:
    from collections.abc import Iterator

LINUX = sys.platform == "linux"


class suppress:  # noqa: N801  # as contextlib's, whose import takes longer than the rest of a start
    """Ends a block quietly where one of these errors is raised in it."""

    def __init__(self, *errors: type[BaseException]) -> None:
        self._errors = errors

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: "type[BaseException] | None", *_: object) -> bool:
        return kind is not None and issubclass(kind, self._errors)


def descendants() -> "Iterator[int]":
    """Every living process below this one, orphans included: the kernel makes them our children."""
    tree = children()
    waiting = [os.getpid()]
    while waiting:
        pids = [pid for _, pid in tree.get(waiting.pop(), [])]
        waiting += pids
        yield from pids


def children() -> dict[int, list[tuple[int, int]]]:
    """Start time and number of every living process, by its parent."""
    tree: dict[int, list[tuple[int, int]]] = {}
    for name in os.listdir("/proc") if LINUX else ():  # noqa: PTH208  # pathlib would slow the start
        with suppress(OSError, ValueError):
            pid = int(name)
            with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123  # pathlib would slow the start
                fields = file.read().rpartition(b")")[2].split()
            if fields[0] not in {b"Z", b"X"}:
                tree.setdefault(int(fields[1]), []).append((int(fields[19]), pid))
    return tree


REMOVE = 0
TABLES = {"shm": ("shmctl", "shmid"), "sem": ("semctl", "semid"), "msg": ("msgctl", "msqid")}
FOLDER = "/proc/sysvipc"


def owned(table: str, uid: int) -> "list[int]":
    """Ids in a table of the kernel's whose owner or creator is the user."""
    with suppress(OSError), open(f"{FOLDER}/{table}") as file:  # noqa: PTH123  # pathlib would slow the start
        names, *rows = [line.split() for line in file]
        places = [names.index(name) for name in ("uid", "cuid")]
        number = names.index(TABLES[table][1])
        return [int(row[number]) for row in rows if str(uid) in {row[place] for place in places}]
    return []


def main() -> None:
    """Remove them."""
    uid = int(sys.argv[1])
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    libc = ctypes.CDLL(None, use_errno=True)
    for table, (control, _) in TABLES.items():
        for number in owned(table, uid):
            arguments = (number, 0, REMOVE) if table == "sem" else (number, REMOVE, None)
            getattr(libc, control)(*arguments)


if __name__ == "__main__":
    main()
