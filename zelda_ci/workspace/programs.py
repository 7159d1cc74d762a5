"""The small programs that every process of a run goes through, and the Python that runs them."""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SUPERVISOR = Path(__file__).with_name("supervisor.py")
INSIDE = Path(__file__).with_name("launcher") / "inside.py"

READY = 3
"""The descriptor on which a program tells the supervisor that it is confined."""


def python() -> list[str]:
    """The interpreter itself, not a virtual environment's link to it, without anything but the standard library."""
    base = getattr(sys, "_base_executable", None) or sys.executable
    return [os.path.realpath(base), "-I", "-S"]


def inside(policy: Mapping[str, Any]) -> list[str]:
    """What starts a program that first gives up rights."""
    return [*python(), str(INSIDE), json.dumps(policy, separators=(",", ":")), "--"]


def supervisor(parent: int) -> list[str]:
    """What starts a program whose descendants all end with it, and with the parent."""
    return [*python(), str(SUPERVISOR), "--parent", str(parent)]
