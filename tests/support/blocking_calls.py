"""Runs a `zelda` command and writes to a file which calls that may take long were made on the thread of its event loop.

Arguments: the file, then those of `zelda`.
"""

import asyncio
import fcntl
import os
import shutil
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

LONG: list[tuple[Any, str]] = [
    (os, "fsync"),
    (shutil, "copytree"),
    (shutil, "rmtree"),
    (shutil, "copy"),
    (subprocess, "run"),
    (time, "sleep"),
    (os, "walk"),
]
"""What may take longer than a few milliseconds, however small what it is given was in a test."""

SMALL = {"socket_folder"}
"""Functions of which it is known what they remove: a folder with one socket."""


def watched(function: Callable[..., Any], name: str, offences: list[str], *, harmless: Callable[..., bool]) -> Any:
    @wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        if asyncio._get_running_loop() is not None and not harmless(*arguments):
            place = next(
                (frame for frame in reversed(traceback.extract_stack()) if "/zelda_ci/" in frame.filename), None
            )
            if place and place.name not in SMALL:
                offences.append(f"{name} at {Path(place.filename).name}:{place.lineno}")
        return function(*arguments, **options)

    return call


def main() -> int:
    file, *arguments = sys.argv[1:]
    offences: list[str] = []
    for module, name in LONG:
        made = watched(getattr(module, name), name, offences, harmless=lambda *_: False)
        setattr(module, name, made)
    polled = watched(fcntl.flock, "flock", offences, harmless=lambda _, operation: bool(operation & fcntl.LOCK_NB))
    fcntl.flock = polled
    from zelda_ci.cli import boundary  # noqa: PLC0415  # after the calls are watched

    try:
        return boundary.run(arguments)
    finally:
        Path(file).write_text("\n".join(sorted(set(offences))))


if __name__ == "__main__":
    sys.exit(main())
