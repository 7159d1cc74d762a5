"""Landlock in numbers: which rights a kernel knows, and the rules that a run gets."""

import ctypes
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

NEWEST = 7
"""The newest version whose rights are known here; a newer kernel is asked for these."""

OLDEST = 3
"""Before it, files could be truncated that cannot be written."""

SCOPED = 6
"""From here on signals and abstract sockets end at the border."""

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
MAKE_CHAR, MAKE_BLOCK = 1 << 6, 1 << 11
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
RIGHTS = {1: (1 << 13) - 1, 2: REFER, 3: TRUNCATE, 5: IOCTL_DEV}
"""Rights to files by the version that brought them."""

TCP = 0b11
"""To bind and to connect; from version 4 on."""
ABSTRACT_SOCKETS, SIGNALS = 1, 2

READ = EXECUTE | READ_FILE | READ_DIR
DEVICES = ("full", "null", "ptmx", "pts", "random", "tty", "urandom", "zero")

_CREATE_RULESET, _ASK_VERSION = 444, 1


def version() -> int:
    """The version of this kernel; 0 where there is none."""
    if sys.platform != "linux":
        return 0
    found: int = ctypes.CDLL(None, use_errno=True).syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _ASK_VERSION)
    return max(found, 0)


def rights(abi: int) -> int:
    """All rights to files that a version knows."""
    return sum(bits for since, bits in RIGHTS.items() if since <= abi)


def policy(
    abi: int, readable: Iterable[Path], writable: Iterable[Path], *, internet: bool, terminals: bool = True
) -> Mapping[str, Any]:
    """The rules of a run: what is not named cannot be opened at all.

    Args:
        abi: Version of Landlock, whose rights are all taken away first.
        readable: Files and folders given back for reading and running.
        writable: The same, with all that can be done with files and folders.
        internet: Whether TCP is left as it is.
        terminals: Whether terminals may be opened: they are the run's own, or closed to its user otherwise.
    """
    devices = [name for name in DEVICES if terminals or name != "pts"]
    every = rights(min(abi, NEWEST))
    write = every & ~(MAKE_CHAR | MAKE_BLOCK | IOCTL_DEV)
    return {
        **_handled(abi, every, tcp=not internet),
        "scoped": ABSTRACT_SOCKETS | SIGNALS if abi >= SCOPED else 0,
        "rules": [
            [READ, [*map(str, readable), "/proc"]],
            [write, list(map(str, writable))],
            [every & (READ_FILE | WRITE_FILE | READ_DIR | IOCTL_DEV), [f"/dev/{name}" for name in devices]],
        ],
    }


def nested(abi: int) -> Mapping[str, Any]:
    """Rules that take nothing away, and yet set a border: whoever is inside cannot look into processes outside."""
    every = rights(min(abi, NEWEST))
    return {**_handled(abi, every, tcp=False), "scoped": 0, "rules": [[every, ["/"]]]}


def _handled(abi: int, every: int, *, tcp: bool) -> Mapping[str, int]:
    """With the size of the structure, which grew."""
    return {"files": every, "tcp": TCP if tcp and abi >= 4 else 0, "size": 8 if abi < 4 else 16 if abi < SCOPED else 24}
