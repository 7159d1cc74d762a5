"""A cache of what lists show, so that results that did not change are not read again. The files stay the truth.

An entry holds for a file of the same name, size, inode and times; every other file is read. A file that was written
so lately that a second writing could leave all of these as they are is not entered. The index may be deleted,
damaged, out of date or written by several processes at once: the next list is right all the same.
"""

import logging
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from pydantic import ValidationError

from zelda_ci import __version__
from zelda_ci.domain.history import StoredRun
from zelda_ci.errors import StorageError
from zelda_ci.storage.atomic import write_whole

INDEX = "index.json"
FORMAT = f"zelda {__version__} index 2"

YOUNG_NS = 2_000_000_000
"""The coarsest clock of a common file system ticks every two seconds."""

log = logging.getLogger(__name__)


class Stamp(NamedTuple):
    """What changes when a file does."""

    mtime_ns: int
    ctime_ns: int
    size: int
    inode: int

    @classmethod
    def of(cls, status: os.stat_result) -> "Stamp":
        """The stamp of a file."""
        return cls(status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)


class Entry(NamedTuple):
    """A result as it was when the file had this stamp."""

    stamp: Stamp
    run: StoredRun


Entries = Mapping[str, Entry]
"""By name of the run's folder."""


class Index:
    """The file that holds the entries."""

    def __init__(self, results_dir: Path) -> None:
        self._file = results_dir / INDEX

    def read(self) -> dict[str, Entry]:
        """The entries; none where the file is missing, damaged or of another Zelda."""
        try:
            tree = orjson.loads(self._file.read_bytes())
            if tree["format"] != FORMAT:
                return {}
            return {name: _entry(name, *stored) for name, stored in tree["entries"].items()}
        except OSError:
            return {}
        except (orjson.JSONDecodeError, ValidationError, LookupError, TypeError, AttributeError, ValueError) as problem:
            log.warning("%s is made anew: %s", self._file, type(problem).__name__)
            return {}

    def write(self, entries: Entries) -> None:
        """Replace the index, without what is too young; where it cannot be written, the next list takes longer."""
        youngest = time.time_ns() - YOUNG_NS
        lasting = {name: each for name, each in entries.items() if max(each.stamp[:2]) < youngest}
        tree = {"format": FORMAT, "entries": {name: _stored(each) for name, each in lasting.items()}}
        try:
            write_whole(self._file, [orjson.dumps(tree, option=orjson.OPT_NON_STR_KEYS)], durable=False)
        except StorageError as problem:
            log.info("the index was not written: %s", problem)


def _entry(name: str, stamp: list[int], stored: dict[str, Any]) -> Entry:
    run = StoredRun.model_validate(stored)
    if run.run_id != name:
        raise ValueError(name)
    return Entry(Stamp(*stamp), run)


def _stored(entry: Entry) -> list[Any]:
    # Nobody but `_entry` reads this, and it takes names as they are inside: dumping would cost as much as reading.
    return [list(entry.stamp), vars(entry.run)]
