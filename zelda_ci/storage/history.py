"""Stored runs: all of them in short, by an index, and each in full."""

import logging
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import orjson
from pydantic import ValidationError

from zelda_ci import __version__
from zelda_ci.domain.history import History, SkippedRun, StoredRun
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.session import SessionTranscript
from zelda_ci.errors import StorageError
from zelda_ci.files import untrusted
from zelda_ci.files.atomic import read_file, write_whole
from zelda_ci.storage import codec
from zelda_ci.storage.codec import UnreadableError, summarize_run
from zelda_ci.storage.result_store import RUNS
from zelda_ci.storage.run_folder import PATCH, RESULT, TRANSCRIPT, is_run_id

INDEX = "index.json"
FORMAT = f"zelda {__version__} index 4"

# The coarsest clock of a common file system ticks every two seconds.
YOUNG_NS = 2_000_000_000

log = logging.getLogger(__name__)


class FileStamp(NamedTuple):
    """Stamp of a file, which changes when the file does."""

    mtime_ns: int
    ctime_ns: int
    size: int
    inode: int

    @classmethod
    def of(cls, status: os.stat_result) -> "FileStamp":
        """The stamp of a file."""
        return cls(status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)


class IndexEntry(NamedTuple):
    """A result as it was when the file had this stamp."""

    stamp: FileStamp
    run: StoredRun


# By name of the run's folder.
Entries = Mapping[str, IndexEntry]


class RunIndex:
    """The file that holds the entries."""

    def __init__(self, results_dir: Path) -> None:
        self._file = results_dir / INDEX

    def read(self) -> dict[str, IndexEntry]:
        """The entries; none where the file is missing, damaged or of another Zelda."""
        try:
            tree = orjson.loads(read_file(self._file))
            # Made anew rather than converted: everything in it can be read from the results.
            if tree["format"] != FORMAT:
                return {}
            return {name: _entry(name, *stored) for name, stored in tree["entries"].items()}
        except StorageError:
            return {}
        except (orjson.JSONDecodeError, ValidationError, LookupError, TypeError, AttributeError, ValueError) as problem:
            log.warning("%s is made anew: %s", self._file, type(problem).__name__)
            return {}

    def write(self, entries: Entries) -> None:
        """Replace the index, without what is too young; where it cannot be written, the next list takes longer."""
        # A file that is written again within one tick of the clock keeps its times, and would be taken for unchanged.
        youngest = time.time_ns() - YOUNG_NS
        lasting = {name: entry for name, entry in entries.items() if max(entry.stamp[:2]) < youngest}
        tree = {"format": FORMAT, "entries": {name: _stored(entry) for name, entry in lasting.items()}}
        try:
            write_whole(self._file, [orjson.dumps(tree, option=orjson.OPT_NON_STR_KEYS)], durable=False)
        except StorageError as problem:
            log.info("the index was not written: %s", problem)


def _entry(name: str, stamp: list[int], stored: dict[str, Any]) -> IndexEntry:
    run = StoredRun.model_validate(stored)
    if run.run_id != name:
        raise ValueError(name)
    return IndexEntry(FileStamp(*stamp), run)


def _stored(entry: IndexEntry) -> list[Any]:
    # Nobody but `_entry` reads this, and it takes names as they are inside: dumping would cost as much as reading.
    return [list(entry.stamp), vars(entry.run)]


# Bytes; a result holds no transcript and stays far below.
MAX_RESULT_BYTES = 50_000_000


@dataclass(frozen=True)
class _Listing:
    """Everything in the folder of runs, by kind."""

    results: dict[str, FileStamp]
    unfinished: tuple[str, ...]
    foreign: tuple[SkippedRun, ...]


class RunHistory:
    """Reads the stored runs of a project; changes nothing but the index."""

    def __init__(self, results_dir: Path) -> None:
        self._runs = results_dir / RUNS
        self._index = RunIndex(results_dir)

    def overview(self) -> History:
        """All runs, newest first. What cannot be read is named, and no transcript is opened.

        Raises:
            StorageError: The folder of runs exists and cannot be read.
        """
        listing = self._scan()
        indexed = self._index.read()
        entries: dict[str, IndexEntry] = {}
        skipped = [*listing.foreign]
        for name, stamp in listing.results.items():
            entry = indexed.get(name)
            try:
                entries[name] = entry if entry and entry.stamp == stamp else IndexEntry(stamp, self._summary(name))
            except UnreadableError as problem:
                skipped.append(SkippedRun(name=name, code=problem.code, message=problem.message))
        # Only if something has changed, so that a list is a mere read for most of the time.
        if entries.keys() != indexed.keys() or any(indexed[name] is not entry for name, entry in entries.items()):
            self._index.write(entries)
        runs = [entry.run for entry in entries.values()]
        runs.sort(key=lambda run: (run.started_at.timestamp(), run.run_id), reverse=True)
        skipped.sort(key=attrgetter("name"))
        return History(runs=tuple(runs), skipped=tuple(skipped), unfinished=len(listing.unfinished))

    def names(self) -> tuple[str, ...]:
        """The ids of all runs that have a result."""
        return tuple(sorted(self._scan().results))

    def unfinished(self) -> tuple[str, ...]:
        """The ids of runs that have none: under way, or killed."""
        return self._scan().unfinished

    def result(self, run_id: str) -> RunResult:
        """The whole result of a run.

        Raises:
            StorageError: It cannot be read.
        """
        return FinishedRun(self.folder(run_id)).result()

    def transcript(self, run_id: str) -> SessionTranscript:
        """Transcript of a run's session; errors as for `result`."""
        return FinishedRun(self.folder(run_id)).transcript()

    def patch(self, run_id: str) -> bytes:
        """Patch of a run's session, empty where it is not known; errors as for `result`."""
        path = self._runs / run_id / PATCH
        return read_file(path) if path.exists() else b""

    def folder(self, run_id: str) -> Path:
        """Folder of a run."""
        return self._runs / run_id

    def _scan(self) -> _Listing:
        results: dict[str, FileStamp] = {}
        unfinished, foreign = [], []
        for entry in self._entries():
            if not is_run_id(entry.name) or not entry.is_dir(follow_symlinks=False):
                # Said rather than passed over: a folder that somebody has renamed would be missed otherwise.
                foreign.append(_foreign(entry.name, f"{entry.name} is not the folder of a run"))
                continue
            try:
                status = os.stat(f"{entry.path}/{RESULT}", follow_symlinks=False)  # noqa: PTH116 - ten thousand times
            except FileNotFoundError:
                unfinished.append(entry.name)
            except OSError as problem:
                foreign.append(_foreign(entry.name, f"{entry.name}/{RESULT} cannot be read: {problem.strerror}"))
            else:
                if untrusted.is_regular(status) and status.st_size <= MAX_RESULT_BYTES:
                    results[entry.name] = FileStamp.of(status)
                else:
                    foreign.append(_foreign(entry.name, f"{entry.name}/{RESULT} is no file, or too large"))
        return _Listing(results, tuple(sorted(unfinished)), tuple(foreign))

    def _entries(self) -> Iterator[os.DirEntry[str]]:
        try:
            with os.scandir(self._runs) as entries:
                yield from (entry for entry in entries if not entry.name.startswith("."))
        except FileNotFoundError:
            return
        except OSError as problem:
            hint = "Look at its permissions, or at resultsDir in zelda.config.yaml."
            raise StorageError(f"{self._runs} cannot be read: {problem.strerror}.", hint=hint) from problem

    def _summary(self, name: str) -> StoredRun:
        short = f"{name}/{RESULT}"
        run = summarize_run(self._read_result(name), short)
        if run.run_id != name:
            # Its id could not be told from that of the run it was copied from.
            raise UnreadableError(f"{short} is the result of another run.", code="RESULT_FOREIGN")
        return run

    def _read_result(self, name: str) -> bytes:
        try:
            return read_file(f"{self._runs}/{name}/{RESULT}", MAX_RESULT_BYTES)
        except StorageError as problem:
            raise UnreadableError(problem.message, hint=problem.hint, code="RESULT_UNREADABLE") from problem


def _foreign(name: str, message: str) -> SkippedRun:
    return SkippedRun(name=name, code="RESULT_FOREIGN", message=f"{message}.")


MAX_RECENT_RUNS = 5


def expected_seconds(history: RunHistory, *, replayed: bool) -> dict[str, float]:
    """Seconds that a run of each suite takes, by the median of the newest; failed and interrupted ones say nothing.

    Args:
        history: Stored runs; where they cannot be read, nothing is expected.
        replayed: Whether the runs to come replay a recording, which takes seconds.
    """
    try:
        runs = history.overview().runs
    except StorageError:
        return {}
    seconds: dict[str, list[float]] = {}
    for run in runs:
        if run.replayed is replayed and run.status.is_valid:
            seconds.setdefault(run.suite, []).append((run.finished_at - run.started_at).total_seconds())
    return {suite: median(newest[:MAX_RECENT_RUNS]) for suite, newest in seconds.items()}


@dataclass(frozen=True)
class FinishedRun:
    """The folder of a finished run."""

    path: Path

    @property
    def patch_file(self) -> Path:
        """Patch of the session; absent where it changed nothing."""
        return self.path / PATCH

    def result(self) -> RunResult:
        """Read the result.

        Raises:
            StorageError: It cannot be read.
        """
        file = self.path / RESULT
        return codec.decode(RunResult, read_file(file, MAX_RESULT_BYTES), str(file))

    def transcript(self) -> SessionTranscript:
        """Read the transcript; errors as for `result`."""
        file = self.path / TRANSCRIPT
        return codec.decode(SessionTranscript, read_file(file), str(file))

    def rewrite(self, result: RunResult) -> None:
        """Put another result in the place of the old one, whole.

        Raises:
            StorageError: It could not be written; the old one is as it was.
        """
        write_whole(self.path / RESULT, iter([codec.encode(result, indent=2)]))
