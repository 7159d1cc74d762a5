"""Slow packages are imported late, one after the other: two threads in parts of one would get half a module."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.RLock()
_imported: set[str] = set()


@contextmanager
def one_at_a_time(name: str) -> Iterator[None]:
    """Around an import inside a function: it waits for any other, unless what has this name was imported before."""
    if name in _imported:
        yield
        return
    with _lock:
        yield
        _imported.add(name)
