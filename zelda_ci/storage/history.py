"""What was stored: all runs at a glance, and each in full."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from zelda_ci.domain.history import History, SkippedRun, StoredRun
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.session import SessionTranscript
from zelda_ci.errors import StorageError
from zelda_ci.storage import codec
from zelda_ci.storage.atomic import read_file
from zelda_ci.storage.codec import UnreadableError
from zelda_ci.storage.glance import glance
from zelda_ci.storage.index import Entry, Index, Stamp
from zelda_ci.storage.result_store import RUNS
from zelda_ci.storage.run_folder import PATCH, RESULT, TRANSCRIPT
from zelda_ci.storage.run_id import is_run_id

LARGEST_RESULT = 50_000_000
"""Bytes; a result holds no transcript and stays far below."""


@dataclass(frozen=True)
class _Found:
    """Everything in the folder of runs, by kind."""

    results: dict[str, Stamp]
    unfinished: tuple[str, ...]
    foreign: tuple[SkippedRun, ...]


class RunHistory:
    """Reads the stored runs of a project; changes nothing but the index."""

    def __init__(self, results_dir: Path) -> None:
        self._runs = results_dir / RUNS
        self._index = Index(results_dir)

    def overview(self) -> History:
        """All runs, newest first. What cannot be read is named, and no transcript is opened.

        Raises:
            StorageError: The folder of runs exists and cannot be read.
        """
        found = self._look()
        known = self._index.read()
        entries: dict[str, Entry] = {}
        skipped = [*found.foreign]
        for name, stamp in found.results.items():
            entry = known.get(name)
            try:
                entries[name] = entry if entry and entry.stamp == stamp else Entry(stamp, self._glance(name))
            except UnreadableError as problem:
                skipped.append(SkippedRun(name=name, code=problem.code, message=problem.message))
        if entries.keys() != known.keys() or any(known[name] is not entry for name, entry in entries.items()):
            self._index.write(entries)
        runs = sorted((entry.run for entry in entries.values()), key=_age, reverse=True)
        return History(runs=tuple(runs), skipped=tuple(sorted(skipped, key=_name)), unfinished=len(found.unfinished))

    def names(self) -> tuple[str, ...]:
        """The ids of all runs that have a result."""
        return tuple(sorted(self._look().results))

    def unfinished(self) -> tuple[str, ...]:
        """The ids of runs that have none: under way, or killed."""
        return self._look().unfinished

    def result(self, run_id: str) -> RunResult:
        """The whole result of a run.

        Raises:
            StorageError: It cannot be read.
        """
        path = self._runs / run_id / RESULT
        return codec.decode_result(read_file(path, LARGEST_RESULT), str(path))

    def transcript(self, run_id: str) -> SessionTranscript:
        """What happened in the session of a run; errors as for `result`."""
        path = self._runs / run_id / TRANSCRIPT
        return codec.decode_transcript(read_file(path), str(path))

    def patch(self, run_id: str) -> bytes:
        """What the session changed, empty where it is not known; errors as for `result`."""
        path = self._runs / run_id / PATCH
        return read_file(path) if path.exists() else b""

    def folder(self, run_id: str) -> Path:
        """Where a run lies."""
        return self._runs / run_id

    def _look(self) -> _Found:
        results: dict[str, Stamp] = {}
        unfinished, foreign = [], []
        for each in self._entries():
            if not is_run_id(each.name) or not each.is_dir(follow_symlinks=False):
                foreign.append(_foreign(each.name, f"{each.name} is not the folder of a run"))
                continue
            try:
                status = os.stat(f"{each.path}/{RESULT}", follow_symlinks=False)  # noqa: PTH116 - ten thousand times
            except FileNotFoundError:
                unfinished.append(each.name)
            except OSError as problem:
                foreign.append(_foreign(each.name, f"{each.name}/{RESULT} cannot be read: {problem.strerror}"))
            else:
                if stat.S_ISREG(status.st_mode) and status.st_size <= LARGEST_RESULT:
                    results[each.name] = Stamp.of(status)
                else:
                    foreign.append(_foreign(each.name, f"{each.name}/{RESULT} is no file, or too large"))
        return _Found(results, tuple(sorted(unfinished)), tuple(foreign))

    def _entries(self) -> Iterator[os.DirEntry[str]]:
        try:
            with os.scandir(self._runs) as found:
                yield from (each for each in found if not each.name.startswith("."))
        except FileNotFoundError:
            return
        except OSError as problem:
            hint = "Look at its permissions, or at resultsDir in zelda.config.yaml."
            raise StorageError(f"{self._runs} cannot be read: {problem.strerror}.", hint=hint) from problem

    def _glance(self, name: str) -> StoredRun:
        short = f"{name}/{RESULT}"
        run = glance(self._read_result(name), short)
        if run.run_id != name:
            # Its id could not be told from that of the run it was copied from.
            raise UnreadableError(f"{short} is the result of another run.", code="RESULT_FOREIGN")
        return run

    def _read_result(self, name: str) -> bytes:
        try:
            return read_file(f"{self._runs}/{name}/{RESULT}", LARGEST_RESULT)
        except StorageError as problem:
            raise UnreadableError(problem.message, hint=problem.hint, code="RESULT_UNREADABLE") from problem


def _foreign(name: str, message: str) -> SkippedRun:
    return SkippedRun(name=name, code="RESULT_FOREIGN", message=f"{message}.")


def _age(run: StoredRun) -> tuple[float, str]:
    return (run.started_at.timestamp(), run.run_id)


def _name(skipped: SkippedRun) -> str:
    return skipped.name
