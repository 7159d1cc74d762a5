"""The names of runs: `<suite>-<timestamp>`, fit for a file, a URL and a command line."""

import re
from datetime import UTC, datetime

LONGEST_NAME = 80

_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*-\d{4}-\d{2}-\d{2}T\d{2}-\d{2}-\d{2}(-[1-9]\d*)?")


def run_id(suite: str, at: datetime, number: int = 1) -> str:
    """The name of a run, in UTC, so that names of one suite sort by time on every machine.

    Args:
        suite: The suite's name; what does not belong in a file name is replaced.
        at: When the run began, with its time zone.
        number: From 2 on a suffix for runs of the same suite in the same second.
    """
    name = f"{file_name(suite)}-{at.astimezone(UTC):%Y-%m-%dT%H-%M-%S}"
    return name if number == 1 else f"{name}-{number}"


def is_run_id(name: str) -> bool:
    """Whether a folder of this name may be a run, and is no path that leads elsewhere."""
    return _RUN_ID.fullmatch(name) is not None


def file_name(suite: str) -> str:
    """A suite's name as far as it can be part of the name of a file."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", suite).strip("-._")[:LONGEST_NAME].rstrip("-._")
    return name or "suite"
