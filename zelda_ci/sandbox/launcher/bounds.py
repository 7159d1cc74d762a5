"""How much a program with all its descendants may take: watched once a second."""

import os
import time

from zelda_ci.sandbox.launcher import shared
from zelda_ci.sandbox.launcher.shared import suppress

# Bytes on the disk below which a run that has taken its share is ended, wherever its files are; the same of memory.
MIN_FREE_BYTES = 1 << 30

# A walk over a large tree takes a while, so the pause grows with it: 20 times what the last walk took.
WALK_SECONDS = 30.0


class Bounds:
    """Bounds of a program, as options: bytes of memory and disk, number of processes, and the folder of its files.

    The file `--report` gets the sentence that says which bound was reached.
    """

    def __init__(self, options: dict[str, str]) -> None:
        self._folder, self._report = options["--folder"], options["--report"]
        self._memory, self._disk, self._processes = (int(options[f"--{it}"]) for it in ("memory", "disk", "processes"))
        self._free_at_start, self._available_at_start = _free(self._folder), _available()
        self._next_walk = time.monotonic() + WALK_SECONDS
        self._next_look = time.monotonic() + 1

    def reached(self) -> bool:
        """Whether the program takes more than it may; looks once a second, and writes the report."""
        if time.monotonic() < self._next_look:
            return False
        self._next_look = time.monotonic() + 1
        pids = shared.descendants()
        if len(pids) > self._processes:
            excess = f"had more than {self._processes} processes"
        elif self._takes_memory(pids):
            excess = f"took more memory than a run may: {self._memory / (1 << 30):.3g} GiB"
        elif self._takes_disk():
            excess = f"took more room on the disk than a run may: {self._disk / (1 << 30):.3g} GiB"
        else:
            return False
        with suppress(OSError), open(self._report, "w") as file:
            file.write(f"It was ended because it {excess}.")
        return True

    def _takes_memory(self, pids: list[int]) -> bool:
        # Shared pages count once, which is costly to find out, so only where it matters.
        if sum(map(_resident, pids)) > self._memory and sum(map(_share, pids)) > self._memory:
            return True
        # What is in files of memory, sockets and pipes is no process's: it counts where the machine runs short.
        available = _available()
        return self._available_at_start - available > self._memory and available < MIN_FREE_BYTES

    def _takes_disk(self) -> bool:
        free = _free(self._folder)
        used_by_all, begun = self._free_at_start - free, time.monotonic()
        # Others write to the same disk, so its free bytes prove nothing; but while they hardly change, no walk is
        # needed.
        if used_by_all < self._disk // 2 and begun < self._next_walk:
            return False
        used = _used(self._folder, self._disk)
        self._next_walk = time.monotonic() + max(WALK_SECONDS, 20 * (time.monotonic() - begun))
        # Files that are deleted and still open take room that no walk finds; then the disk itself must not run full.
        return used > self._disk or (used_by_all > self._disk and free < MIN_FREE_BYTES)


def _resident(pid: int) -> int:
    with suppress(OSError), open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def _share(pid: int) -> int:
    found = _field(f"/proc/{pid}/smaps_rollup", "Pss:")
    return _resident(pid) if found is None else found


def _available() -> int:
    return _field("/proc/meminfo", "MemAvailable:") or 0


def _field(path: str, name: str) -> int | None:
    """Bytes that a file of the kernel's gives in kB."""
    with suppress(OSError), open(path) as file:
        return next((int(line.split()[1]) << 10 for line in file if line.startswith(name)), None)
    return None


def _free(folder: str) -> int:
    status = os.statvfs(folder)
    return status.f_bfree * status.f_frsize


def _used(folder: str, enough: int) -> int:
    """Bytes on the disk below a folder; stops counting where it is enough."""
    total, waiting = 0, [folder]
    while waiting and total <= enough:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                with suppress(OSError):
                    # Blocks, not the size: a sparse file takes what was written, a file of one byte a whole block.
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
    return total
