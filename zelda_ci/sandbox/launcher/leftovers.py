"""Removes the shared memory, semaphores and message queues of a user, whose number it is given.

They outlive all processes, and where runs have no namespace of their own they are the machine's. Only their owner may
remove them, or a root that can do more than the one of a container: so it becomes that user first.
"""

from zelda_ci.sandbox.launcher import shared
from zelda_ci.sandbox.launcher.shared import LIBC, suppress

# The kernel's tables of them, and the column with their ids.
TABLES = {"shm": "shmid", "sem": "semid", "msg": "msqid"}
REMOVE = 0


def owned(uid: int) -> list[tuple[str, int]]:
    """Table and id of all whose owner or creator is the user."""
    found: list[tuple[str, int]] = []
    for table, column in TABLES.items():
        with suppress(OSError), open(f"/proc/sysvipc/{table}") as file:
            names, *rows = [line.split() for line in file]
            places = [names.index(name) for name in ("uid", "cuid")]
            ids = [int(row[names.index(column)]) for row in rows if str(uid) in {row[place] for place in places}]
            found += [(table, number) for number in ids]
    return found


def main(arguments: list[str]) -> None:
    """Remove them."""
    uid = int(arguments[0])
    shared.become_user(uid)
    for table, number in owned(uid):
        getattr(LIBC, f"{table}ctl")(number, *([0] if table == "sem" else []), REMOVE, None)
