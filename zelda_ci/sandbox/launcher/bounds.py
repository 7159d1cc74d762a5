"""How much a program with all its descendants may take: watched once a second."""

import os
import time

from zelda_ci.sandbox.launcher.shared import suppress

TYPE_CHECKING = False  # what `typing` has of that name costs too much at every start
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# Bytes on the disk below which a run that has taken its share is ended, wherever its files are.
MIN_FREE_BYTES = 1 << 30

# Bytes of memory below which a run is ended since whose start more than its share is gone, whoever has it.
MIN_AVAILABLE_BYTES = 1 << 30

# A walk over a large tree takes a while, so the pause grows with it: 20 times what the last walk took.
WALK_SECONDS = 30.0


class Bounds:
    """The bounds of one program.

    Args:
        folder: Folder on whose disk its files lie.
        report: A file for the sentence that says which bound was reached.
        memory: Bytes of memory.
        disk: Bytes on the disk.
        processes: How many processes.
    """

    def __init__(self, folder: str, report: str, *, memory: int, disk: int, processes: int) -> None:
        self._folder, self._report = folder, report
        self._most_memory, self._most_disk, self._most_processes = memory, disk, processes
        self._free = _free(folder)
        self._available = _available()
        self._next_walk = time.monotonic() + WALK_SECONDS
        self._next_look = time.monotonic() + 1

    def reached(self, family: "Iterable[int]") -> bool:
        """Whether the family of processes takes more than it may; looks once a second, and writes the report."""
        if time.monotonic() < self._next_look:
            return False
        self._next_look = time.monotonic() + 1
        pids = list(family)
        sentence = self._crowd(pids) or self._memory(pids) or self._disk()
        if sentence is None:
            return False
        with suppress(OSError), open(self._report, "w") as file:  # noqa: PTH123  # pathlib would slow the start
            file.write(sentence)
        return True

    def _crowd(self, pids: "Sequence[int]") -> str | None:
        most = self._most_processes
        return None if len(pids) <= most else f"It was ended because it had more than {most} processes."

    def _memory(self, pids: "Sequence[int]") -> str | None:
        """Shared pages count once, which is costly to find out, so only where it matters."""
        most = self._most_memory
        if sum(map(_resident, pids)) > most and sum(map(_share, pids)) > most:
            return _sentence("memory", most)
        # What is in files of memory, sockets and pipes is no process's.
        available = _available()
        is_short = self._available - available > most and available < MIN_AVAILABLE_BYTES
        return _sentence("memory", most) if is_short else None

    def _disk(self) -> str | None:
        most, free = self._most_disk, _free(self._folder)
        used_by_all = self._free - free
        # Others write to the same disk, so its free bytes prove nothing; but while they hardly change, no walk is
        # needed.
        if used_by_all < most // 2 and time.monotonic() < self._next_walk:
            return None
        begun = time.monotonic()
        used = _used(self._folder, most)
        self._next_walk = time.monotonic() + max(WALK_SECONDS, 20 * (time.monotonic() - begun))
        # Files that are deleted and still open take room that no walk finds; then the disk itself must not run full.
        if used > most or (used_by_all > most and free < MIN_FREE_BYTES):
            return _sentence("room on the disk", most)
        return None


def _sentence(resource: str, most: int) -> str:
    return f"It was ended because it took more {resource} than a run may: {most / (1 << 30):.3g} GiB."


def _resident(pid: int) -> int:
    with suppress(OSError), open(f"/proc/{pid}/statm") as file:  # noqa: PTH123  # as above
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def _available() -> int:
    """Bytes of memory that are to be had on the machine; 0 where the kernel does not tell."""
    with suppress(OSError), open("/proc/meminfo") as file:  # noqa: PTH123  # as above
        return next((int(line.split()[1]) << 10 for line in file if line.startswith("MemAvailable:")), 0)
    return 0


def _share(pid: int) -> int:
    with suppress(OSError), open(f"/proc/{pid}/smaps_rollup") as file:  # noqa: PTH123  # as above
        return next((int(line.split()[1]) << 10 for line in file if line.startswith("Pss:")), 0)
    return _resident(pid)


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
                    # Blocks, not the size: a sparse file takes only what was written, and a file of one byte a whole
                    # block.
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
    return total
