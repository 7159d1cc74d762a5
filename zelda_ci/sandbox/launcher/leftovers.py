"""Ends the processes of a user, whose number it is given, and removes its shared memory, semaphores and queues.

These outlive all processes, and processes a supervisor that was killed. Only their owner may remove or look into them,
or a root that can do more than the one of a container: so it becomes that user first.
"""

import os
import time

from zelda_ci.sandbox.launcher import shared
from zelda_ci.sandbox.launcher.shared import LIBC, signal, suppress

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


def running(uid: int) -> list[int]:
    """Numbers of the living processes of the user."""
    found = []
    for pid in (pid for siblings in shared.children().values() for _, pid in siblings):
        with suppress(OSError), open(f"/proc/{pid}/status") as file:
            found += [pid for line in file if line.startswith(f"Uid:\t{uid}\t")]
    return found


def main(arguments: list[str]) -> None:
    """End and remove them."""
    uid = int(arguments[0])
    shared.become_user(uid)
    with open("/proc/self/status") as file:
        # What the kernel reports counts: as anybody else this would end much more.
        if f"Uid:\t{uid}\t{uid}\t{uid}\t{uid}\n" not in file:
            shared.fail(1, "the user could not be changed")
    with suppress(ProcessLookupError):
        # All at once, but this one: none can start another meanwhile.
        os.kill(-1, signal.SIGKILL)
    for _ in range(200):  # until they are gone
        if running(uid) == [os.getpid()]:
            break
        time.sleep(0.01)
    for table, number in owned(uid):
        getattr(LIBC, f"{table}ctl")(number, *([0] if table == "sem" else []), REMOVE, None)
