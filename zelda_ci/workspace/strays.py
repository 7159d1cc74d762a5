"""Processes of a run that escaped its supervisor: found by the variable that every process of a run inherits."""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import anyio

from zelda_ci.workspace import programs

MARKER = "ZELDA_RUN"
"""Holds the run's own folder, which no two runs share."""

PATIENCE_SECONDS = 2.0


async def end(run_folder: Path) -> int:
    """Kill the strays of one run and wait until they are gone; returns how many there were."""
    killed = 0
    with anyio.move_on_after(PATIENCE_SECONDS):
        while found := _kill(run_folder):
            killed += found
            await anyio.sleep(0.01)
    return killed


def kill_supervised() -> None:
    """Have every supervisor that this process has started kill at once what it supervises."""
    for process in _processes():
        with suppress(OSError, IndexError):
            handle = os.pidfd_open(int(process.name))
            try:
                if _is_supervisor_of_ours(process):
                    signal.pidfd_send_signal(handle, signal.SIGQUIT)
            finally:
                os.close(handle)


def _is_supervisor_of_ours(process: Path) -> bool:
    parent = (process / "stat").read_bytes().rpartition(b")")[2].split()[1]
    return int(parent) == os.getpid() and os.fsencode(programs.SUPERVISOR) in _argv(process)


def _argv(process: Path) -> list[bytes]:
    return (process / "cmdline").read_bytes().split(b"\0")


def _kill(run_folder: Path) -> int:
    return sum(_killed(process, os.fsencode(f"{MARKER}={run_folder}")) for process in _processes())


def _processes() -> Iterator[Path]:
    with suppress(OSError):  # no /proc: a system without this means
        for name in os.listdir("/proc"):  # noqa: PTH208  # names only, and there may be thousands
            if name.isdecimal() and int(name) != os.getpid():
                yield Path("/proc", name)


def _killed(process: Path, mark: bytes) -> bool:
    """Kill it if it bears the mark. The descriptor, taken before the look, cannot come to mean another process."""
    try:
        if mark not in (process / "environ").read_bytes().split(b"\0"):
            return False
        handle = os.pidfd_open(int(process.name))
    except OSError:
        return False
    try:
        if mark not in (process / "environ").read_bytes().split(b"\0"):
            return False
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True
