"""How much a program with all its descendants may take: kept by control groups where they can be made, or watched."""

import contextlib
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

TYPE_CHECKING = False  # what `typing` has of that name costs too much at every start
if TYPE_CHECKING:
    from typing import Any

CGROUPS = "/sys/fs/cgroup"
# Bytes on the disk below which a run that has taken its share is ended, wherever its files are.
MIN_FREE_BYTES = 1 << 30

# Bytes of memory below which a run is ended since whose start more than its share is gone, whoever has it.
MIN_AVAILABLE_BYTES = 1 << 30

# A walk over a large tree takes a while, so the pause grows with it: 20 times what the last walk took.
WALK_SECONDS = 30.0
# How often a control group that is still in use is tried to be removed.
GRACE_TURNS = 50
# Files of a control group by controller, of either version, and which bound they take.
LIMITS = {
    "memory": {"memory.limit_in_bytes": "memory", "memory.max": "memory", "memory.swap.max": "none"},
    "pids": {"pids.max": "processes"},
}


class Bounds:
    """The bounds of one program.

    Args:
        order: `memory` and `disk` in bytes, `processes`; `folder`, on whose disk use `disk` is a bound; `report`, a
            file for the sentence that says which was reached. Without `cgroups`, none is made.
    """

    def __init__(self, order: "Mapping[str, Any]") -> None:
        """Make the control groups that can be made here."""
        self._order = order
        self._groups = dict(_groups(order)) if order.get("cgroups", True) else {}
        self._free = _free(order["folder"])
        self._available = _available()
        self._next_walk = time.monotonic() + WALK_SECONDS
        self._next_look = time.monotonic() + 1

    def enter(self) -> None:
        """In the child: what it starts is counted with it."""
        for group in self._groups.values():
            _write(f"{group}/cgroup.procs", str(os.getpid()))

    def reached(self, family: Iterable[int]) -> bool:
        """Whether the family of processes takes more than it may; looks once a second, and writes the report."""
        if time.monotonic() < self._next_look:
            return False
        self._next_look = time.monotonic() + 1
        pids = list(family)
        sentence = self._crowd(pids) or self._memory(pids) or self._disk()
        return sentence is not None and self._report(sentence)

    def close(self) -> None:
        """Tell what the kernel has ended, and remove the groups."""
        if "memory" in self._groups and _killed(self._groups["memory"]):
            self._report(
                f"The kernel ended a process of it: {_gib(self._order['memory'])} of memory are all that it may take."
            )
        for group in self._groups.values():
            _remove(group)

    def _report(self, sentence: str) -> bool:
        with contextlib.suppress(OSError), open(self._order["report"], "w") as file:  # noqa: PTH123  # as above
            json.dump({"sentence": sentence}, file)
        return True

    def _sentence(self, resource: str, most: int) -> str:
        return f"It was ended because it took more {resource} than a run may: {_gib(most)}."

    def _crowd(self, pids: Sequence[int]) -> str | None:
        most = self._order["processes"]
        return None if len(pids) <= most else f"It was ended because it had more than {most} processes."

    def _memory(self, pids: Sequence[int]) -> str | None:
        """Shared pages count once, which is costly to find out, so only where it matters."""
        most = self._order["memory"]
        # There the kernel itself ends what takes more.
        if "memory" in self._groups:
            return None
        if sum(map(_resident, pids)) > most and sum(map(_share, pids)) > most:
            return self._sentence("memory", most)
        # What is in files of memory, sockets and pipes is no process's.
        available = _available()
        is_short = self._available - available > most and available < MIN_AVAILABLE_BYTES
        return self._sentence("memory", most) if is_short else None

    def _disk(self) -> str | None:
        most, free = self._order["disk"], _free(self._order["folder"])
        used_by_all = self._free - free
        # Others write to the same disk, so its free bytes prove nothing; but while they hardly change, no walk is
        # needed.
        if used_by_all < most // 2 and time.monotonic() < self._next_walk:
            return None
        begun = time.monotonic()
        used = _used(self._order["folder"], most)
        self._next_walk = time.monotonic() + max(WALK_SECONDS, 20 * (time.monotonic() - begun))
        # Files that are deleted and still open take room that no walk finds; then the disk itself must not run full.
        if used > most or (used_by_all > most and free < MIN_FREE_BYTES):
            return self._sentence("room on the disk", most)
        return None


def _gib(count: int) -> str:
    return f"{count / (1 << 30):.3g} GiB"


def _groups(order: "Mapping[str, Any]") -> Iterator[tuple[str, str]]:
    """Control groups of our own below ours, where that is allowed; of version 1, or of 2 where it is delegated."""
    for controller, files in LIMITS.items():
        for above in _homes(controller):
            group = f"{above}/{group_name()}"
            if _made(group, {name: str(order[bound]) for name, bound in files.items() if bound in order}):
                yield controller, group
                break


def _remove(group: str) -> None:
    # Whoever has just died may still be counted for a moment.
    for _ in range(GRACE_TURNS):
        with contextlib.suppress(OSError):
            os.rmdir(group)  # noqa: PTH106  # pathlib would slow the start
            return
        time.sleep(0.002)


def group_name() -> str:
    """Names this process among all of the machine: namespaces of process numbers and times, number, moment of start."""
    return f"zelda-{_namespace('pid')}-{_namespace('time')}-{os.getpid()}-{_started('self')}"


def forget_dead(above: str) -> None:
    """Remove the groups of supervisors that are provably dead; one that still holds processes cannot be removed."""
    for name in os.listdir(above):  # noqa: PTH208  # as above
        if name.startswith("zelda-") and _is_dead(name):
            with contextlib.suppress(OSError):
                os.rmdir(f"{above}/{name}")  # noqa: PTH106  # as above


def _is_dead(name: str) -> bool:
    """Whether the process that is named is known to be gone; what lives in other namespaces is out of sight."""
    namespace = (_namespace("pid"), _namespace("time"))
    _, *namespaces, pid, start = name.split("-") if name.count("-") == 4 else ("", "", "", "", "")
    if tuple(namespaces) != namespace or namespace[0] == "0" or not pid.isdecimal() or not start.isdecimal():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass
    # The number may be another process's by now; only this namespace's own /proc can tell.
    running = _started(pid) if _sees_itself() else "0"
    return running not in {"0", start}


def _namespace(kind: str) -> str:
    """The number of one of our namespaces; 0 where it cannot be known."""
    with contextlib.suppress(OSError):
        return os.readlink(f"/proc/self/ns/{kind}").partition("[")[2].rstrip("]")  # noqa: PTH115  # as above
    return "0"


def _started(pid: str) -> str:
    """When a process was started, in ticks; 0 where that cannot be known."""
    with contextlib.suppress(OSError, IndexError), open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123  # as above
        # A program may put blanks and brackets into its name, which stands in brackets before the numbers.
        return file.read().rpartition(b")")[2].split()[19].decode()
    return "0"


def _sees_itself() -> bool:
    """Whether /proc shows the namespace in which we are, and not one around it."""
    with contextlib.suppress(OSError), open("/proc/self/status") as file:  # noqa: PTH123  # as above
        return any(line.split() == ["NSpid:", str(os.getpid())] for line in file)
    return False


def _homes(controller: str) -> Iterator[str]:
    with contextlib.suppress(OSError), open("/proc/self/cgroup") as file:  # noqa: PTH123  # as above
        for line in file:
            _, names, path = line.rstrip("\n").split(":", 2)
            if controller in names.split(","):
                yield f"{CGROUPS}/{controller}{path.rstrip('/')}"
            elif not names:
                yield f"{CGROUPS}{path.rstrip('/')}"


def _made(group: str, values: Mapping[str, str]) -> bool:
    try:
        forget_dead(group.rpartition("/")[0])
        os.makedirs(group, exist_ok=True)  # noqa: PTH103  # as above
        files = [name for name in values if os.path.exists(f"{group}/{name}")]  # noqa: PTH110  # as above
        for name in files:
            _write(f"{group}/{name}", values[name])
    except OSError:
        files = []
    if not files:
        with contextlib.suppress(OSError):
            os.rmdir(group)  # noqa: PTH106  # as above
    return bool(files)


def _write(file: str, value: str) -> None:
    with open(file, "w") as opened:  # noqa: PTH123  # as above
        opened.write(value)


def _killed(group: str) -> bool:
    """Whether the kernel has killed for want of memory there."""
    for name in ("memory.oom_control", "memory.events"):
        with contextlib.suppress(OSError), open(f"{group}/{name}") as file:  # noqa: PTH123  # as above
            if any(line.startswith("oom_kill ") and int(line.split()[1]) for line in file):
                return True
    return False


def _resident(pid: int) -> int:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/statm") as file:  # noqa: PTH123  # as above
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def _available() -> int:
    """Bytes of memory that are to be had on the machine; 0 where the kernel does not tell."""
    with contextlib.suppress(OSError), open("/proc/meminfo") as file:  # noqa: PTH123  # as above
        return next((int(line.split()[1]) << 10 for line in file if line.startswith("MemAvailable:")), 0)
    return 0


def _share(pid: int) -> int:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/smaps_rollup") as file:  # noqa: PTH123  # as above
        return next((int(line.split()[1]) << 10 for line in file if line.startswith("Pss:")), 0)
    return _resident(pid)


def _free(folder: str) -> int:
    status = os.statvfs(folder)
    return status.f_bfree * status.f_frsize


def _used(folder: str, enough: int) -> int:
    """Bytes on the disk below a folder; stops counting where it is enough."""
    total, waiting = 0, [folder]
    while waiting and total <= enough:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    # Blocks, not the size: a sparse file takes only what was written, and a file of one byte a whole
                    # block.
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
    return total
