"""Stored runs: all of them in short, by an index, and each in full."""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC
from operator import attrgetter
from pathlib import Path

from pydantic import ValidationError

from zelda_ci import __version__
from zelda_ci.domain.base import Record
from zelda_ci.domain.history import History, SkippedRun, StoredRun, at_a_glance
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.session import MAX_IMAGE_BYTES, SessionImage, SessionTranscript
from zelda_ci.errors import StorageError
from zelda_ci.files import untrusted
from zelda_ci.files.atomic import read_file, write_whole
from zelda_ci.storage import codec
from zelda_ci.storage.codec import UnreadableError
from zelda_ci.storage.images import IMAGES
from zelda_ci.storage.result_store import MAX_RESULT_BYTES, PATCH, RESULT, RUNS, TRANSCRIPT, RunFolder, is_run_id

INDEX = "index.json"
FORMAT = f"zelda {__version__} index 5"

# The coarsest clock of a common file system ticks every two seconds.
YOUNG_NS = 2_000_000_000

# A larger transcript is not shown: it would take the memory of many.
MAX_TRANSCRIPT_BYTES, MAX_PATCH_BYTES = 500_000_000, 5_000_000

# Times of change, size and inode of a file: another one when the file changes.
Stamp = tuple[int, int, int, int]


class _Index(Record):
    """What was read of results, by name of the run's folder, with the stamp that the file had."""

    format: str
    entries: dict[str, tuple[Stamp, StoredRun]]


class RunHistory:
    """Reads the stored runs of a project; changes nothing but the index."""

    def __init__(self, results_dir: Path) -> None:
        self._runs = results_dir / RUNS
        self._index = results_dir / INDEX

    def overview(self) -> History:
        """All runs, newest first. What cannot be read is named, and no transcript is opened.

        Raises:
            StorageError: The folder of runs exists and cannot be read.
        """
        indexed = self._read_index()
        entries: dict[str, tuple[Stamp, StoredRun]] = {}
        skipped: list[SkippedRun] = []
        unfinished = 0
        for folder in self._folders():
            try:
                if stamp := _stamp_of(folder):
                    known = indexed.get(folder.name)
                    fresh = known if known and known[0] == stamp else (stamp, self._summary(folder.name))
                    entries[folder.name] = fresh
                else:
                    unfinished += 1
            except UnreadableError as problem:
                skipped.append(SkippedRun(name=folder.name, code=problem.code, message=problem.message))
        # Only if something has changed, so that a list is a mere read for most of the time.
        if entries.keys() != indexed.keys() or any(indexed[name] is not entry for name, entry in entries.items()):
            self._write_index(entries)
        runs = [run for _, run in entries.values()]
        runs.sort(key=lambda run: (run.started_at.timestamp(), run.run_id), reverse=True)
        skipped.sort(key=attrgetter("name"))
        return History(runs=tuple(runs), skipped=tuple(skipped), unfinished=unfinished)

    def run(self, run_id: str) -> RunFolder:
        """Reader of a run's folder."""
        return RunFolder(self._runs / run_id)

    def result(self, run_id: str) -> RunResult:
        """The whole result of a run."""
        return self.run(run_id).result()

    def size(self, run_id: str) -> int:
        """Bytes of a transcript; zero where there is none that is shown."""
        with suppress(OSError):
            # Results may come from a file that somebody else has made: an id is no path that leads elsewhere.
            size = (self._runs / run_id / TRANSCRIPT).stat().st_size if is_run_id(run_id) else 0
            return size if size <= MAX_TRANSCRIPT_BYTES else 0
        return 0

    def transcript(self, run_id: str) -> SessionTranscript | None:
        """A transcript; nothing where it is not stored, cannot be read, or is too large to be shown."""
        with suppress(StorageError):
            return self.run(run_id).transcript() if self.size(run_id) else None
        return None

    def patch(self, run_id: str) -> bytes:
        """The patch of a session; empty where it is not known, or too large to be shown."""
        return self._kept(run_id, PATCH, MAX_PATCH_BYTES)

    def image(self, run_id: str, image: SessionImage) -> bytes:
        """An image that a tool returned; empty where it is not kept."""
        return self._kept(run_id, f"{IMAGES}/{image.file_name}", MAX_IMAGE_BYTES)

    def _kept(self, run_id: str, name: str, max_bytes: int) -> bytes:
        with suppress(StorageError):
            return read_file(self._runs / run_id / name, max_bytes) if is_run_id(run_id) else b""
        return b""

    def _folders(self) -> Iterator[os.DirEntry[str]]:
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
        try:
            data = read_file(f"{self._runs}/{short}", MAX_RESULT_BYTES)
        except StorageError as problem:
            raise UnreadableError(problem.message, hint=problem.hint, code="RESULT_UNREADABLE") from problem
        run = codec.decode(RunResult, data, short)
        if run.run_id != name:
            # Its id could not be told from that of the run it was copied from.
            raise UnreadableError(f"{short} is the result of another run.", code="RESULT_FOREIGN")
        try:
            # Shown, sorted and chosen by the moment it began, which has to exist in every time zone.
            run.started_at.astimezone(UTC)
        except OverflowError:
            raise UnreadableError(f"{short} contains a time that does not exist.", code="RESULT_FOREIGN") from None
        return at_a_glance(run)

    def _read_index(self) -> Mapping[str, tuple[Stamp, StoredRun]]:
        """The entries; none where the file is missing, damaged or of another Zelda, since results tell them all."""
        try:
            index = _Index.model_validate_json(read_file(self._index))
        except (StorageError, ValidationError):
            return {}
        return index.entries if index.format == FORMAT else {}

    def _write_index(self, entries: Mapping[str, tuple[Stamp, StoredRun]]) -> None:
        """Replace the index, without what is too young; where it cannot be written, the next list takes longer."""
        # A file that is written again within one tick of the clock keeps its times, and would be taken for unchanged.
        youngest = time.time_ns() - YOUNG_NS
        lasting = {name: entry for name, entry in entries.items() if max(entry[0][:2]) < youngest}
        with suppress(StorageError):
            index = _Index.model_construct(format=FORMAT, entries=lasting)
            write_whole(self._index, [codec.encode(index)], durable=False)


def _stamp_of(folder: os.DirEntry[str]) -> Stamp | None:
    """The stamp of the result in a folder; nothing where a run has none yet."""
    name = folder.name
    if not is_run_id(name) or not folder.is_dir(follow_symlinks=False):
        # Said rather than passed over: a folder that somebody has renamed would be missed otherwise.
        raise UnreadableError(f"{name} is not the folder of a run.", code="RESULT_FOREIGN")
    try:
        status = os.stat(f"{folder.path}/{RESULT}", follow_symlinks=False)  # noqa: PTH116 - ten thousand times
    except FileNotFoundError:
        return None
    except OSError as problem:
        message = f"{name}/{RESULT} cannot be read: {problem.strerror}."
        raise UnreadableError(message, code="RESULT_FOREIGN") from None
    if not untrusted.is_regular(status) or status.st_size > MAX_RESULT_BYTES:
        raise UnreadableError(f"{name}/{RESULT} is no file, or too large.", code="RESULT_FOREIGN")
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino
