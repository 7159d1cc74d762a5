"""Reading a webhook's payload: others wrote it, and any part may be missing."""

from collections.abc import Mapping
from typing import Any


def at(event: Mapping[str, Any], *path: str) -> Any:
    """What lies at a path of keys; nothing where any of them is missing."""
    found: Any = event
    for key in path:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


def text(event: Mapping[str, Any], *path: str) -> str:
    """Text at a path; empty where there is none."""
    found = at(event, *path)
    return found if isinstance(found, str) else ""


def number(event: Mapping[str, Any], *path: str) -> int | None:
    """A whole number at a path."""
    found = at(event, *path)
    return found if isinstance(found, int) and not isinstance(found, bool) else None
