"""Slow packages are imported late, and one after the other.

Two threads that import parts of one package in different order would wait for each other forever; Python notices that,
and gives one of them half a module.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.RLock()
_imported: set[str] = set()


@contextmanager
def one_at_a_time(name: str) -> Iterator[None]:
    """Around an import inside a function: it waits for any other, unless it was carried out before.

    Args:
        name: Of the import; all that use it import the same.
    """
    if name in _imported:
        yield
        return
    with _lock:
        yield
        _imported.add(name)
