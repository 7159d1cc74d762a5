"""The small programs that every process of a run goes through, and the Python that runs them."""

import base64
import binascii
import marshal
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from zelda_ci.sandbox.closed_folders import is_open

LAUNCHER = Path(__file__).with_name("launcher")
START, UNREADABLE = LAUNCHER / "start.py", LAUNCHER / "unreadable.js"
OTHERS = ("/usr/bin/python3", "/usr/local/bin/python3")


def python(*, anybody: bool = False) -> list[str]:
    """The interpreter itself, not a virtual environment's link to it, without anything but the standard library.

    Args:
        anybody: Another where this one lies in a closed folder, such as root's home.
    """
    base = os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)
    # A copy of it runs where the original lies in a folder that is closed to this user, too.
    base = base if os.access(base, os.X_OK) else os.path.realpath(sys.executable)
    if anybody and not is_open(Path(base)):
        base = next((other for other in OTHERS if is_open(Path(other))), base)
    return [base, "-I", "-S"]


def inside(policy: Mapping[str, Any], *, anybody: bool = False, world: Sequence[str] = ()) -> list[str]:
    """What starts a program that first gives up rights.

    Args:
        policy: Which rights.
        anybody: As in `python`.
        world: Options for namespaces of its own, where bubblewrap does not make them.
    """
    # As one argument, which may not be longer than 128 KiB, and in a form that is read fast.
    packed = binascii.b2a_base64(marshal.dumps(dict(policy), 2), newline=False).decode()
    return [*python(anybody=anybody), str(START), "inside", packed, *world, "--"]


def unreadable() -> str:
    """A value of BUN_OPTIONS that keeps other processes from looking into Claude Code, whose runtime is Bun."""
    # As an address that holds the program itself: no file has to be within the reach of a run.
    return f"--preload=data:text/javascript;base64,{base64.b64encode(UNREADABLE.read_bytes()).decode()}"


def supervisor(parent: int) -> list[str]:
    """What starts a program whose descendants all end with it, and with the parent."""
    return [*python(), str(START), "supervisor", "--parent", str(parent)]
