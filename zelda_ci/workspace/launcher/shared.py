"""A program of its own: removes the shared memory, semaphores and message queues of the user who runs it.

They outlive all processes, and where runs have no namespace of their own they are the machine's. Only their owner may
remove them, or a root that can do more than the one of a container.
"""

import contextlib
import ctypes
import os

REMOVE = 0
TABLES = {"shm": ("shmctl", "shmid"), "sem": ("semctl", "semid"), "msg": ("msgctl", "msqid")}
FOLDER = "/proc/sysvipc"


def owned(table: str, uid: int) -> "list[int]":
    """Ids in a table of the kernel's whose owner or creator is the user."""
    with contextlib.suppress(OSError), open(f"{FOLDER}/{table}") as file:  # noqa: PTH123  # pathlib would slow the start
        names, *rows = [line.split() for line in file]
        places = [names.index(name) for name in ("uid", "cuid")]
        number = names.index(TABLES[table][1])
        return [int(row[number]) for row in rows if str(uid) in {row[place] for place in places}]
    return []


def main() -> None:
    """Remove them."""
    libc = ctypes.CDLL(None, use_errno=True)
    for table, (control, _) in TABLES.items():
        for number in owned(table, os.getuid()):
            arguments = (number, 0, REMOVE) if table == "sem" else (number, REMOVE, None)
            getattr(libc, control)(*arguments)


if __name__ == "__main__":
    main()
