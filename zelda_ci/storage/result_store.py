"""The folder of all runs, and that of each: who writes it, what a kill leaves of it, and who reads it."""

import base64
import binascii
import hashlib
import logging
import os
import re
import shutil
import time
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from operator import attrgetter
from pathlib import Path
from typing import Self

import orjson
from pydantic import ValidationError

from zelda_ci import __version__
from zelda_ci.domain import session
from zelda_ci.domain.attribution import Attribution
from zelda_ci.domain.base import Record
from zelda_ci.domain.manifest import ToolsManifest
from zelda_ci.domain.outcome import History, SkippedRun, StoredRun, at_a_glance
from zelda_ci.domain.run import Failure, RunResult, StoredComparison
from zelda_ci.errors import StorageError, ZeldaError
from zelda_ci.files import atomic, locks, untrusted
from zelda_ci.files.atomic import TEMPORARY, read_file, storage_errors, write_whole
from zelda_ci.redact import Redactor
from zelda_ci.storage import codec
from zelda_ci.storage.codec import Stored, UnreadableError, transcript_of

RUNS, LOCK, INDEX = "runs", ".lock", "index.json"
RESULT, PROVISIONAL, TRANSCRIPT, JOURNAL = "result.json", "result.partial.json", "transcript.json", "transcript.jsonl"
PATCH, MANIFEST, STEERING, IMAGES = "changes.patch", "manifest.json", "steering.json", "images"
FORMAT = f"zelda {__version__} index 6"
MAX_NAME_LENGTH = 80
# Bytes; a result holds no transcript and stays far below.
MAX_RESULT_BYTES, MAX_STEERING_BYTES = 50_000_000, 64_000_000
# A larger transcript is not shown: it would take the memory of many.
MAX_TRANSCRIPT_BYTES, MAX_PATCH_BYTES = 500_000_000, 5_000_000
# Of a run: images that a transcript names, the same one several times included, and their bytes on disk.
MAX_IMAGES, MAX_TOTAL_BYTES = 100, 50_000_000
MAX_ATTRIBUTION_BYTES = 4_000_000
FILE_NAME = re.compile(r"[0-9a-f]{64}\.(?:png|jpg|gif|webp)")
# Text in the bytes of an image: its metadata, or what somebody has hidden behind the first bytes of one.
_TEXT = re.compile(rb"[\x20-\x7e]{6,}")
# More of it is no image, and would take seconds to look through.
MAX_TEXT_LENGTH = 500_000
# The coarsest clock of a common file system ticks every two seconds.
YOUNG_NS = 2_000_000_000
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*-\d{4}-\d{2}-\d{2}T\d{2}-\d{2}-\d{2}(-[1-9]\d*)?")

log = logging.getLogger(__name__)


def run_id(suite: str, started_at: datetime, number: int = 1) -> str:
    """The name of a run, in UTC, so that names of one suite sort by time; `number` tells apart those of one second."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", suite).strip("-._")[:MAX_NAME_LENGTH].rstrip("-._") or "suite"
    name = f"{stem}-{started_at.astimezone(UTC):%Y-%m-%dT%H-%M-%S}"
    return name if number == 1 else f"{name}-{number}"


def is_run_id(name: str) -> bool:
    """True where a folder of this name may be a run, and is no path that leads elsewhere."""
    return _RUN_ID.fullmatch(name) is not None


def log_name(step: str) -> str:
    """Name of the file with what the command of a step (setup, build, test) printed."""
    return f"{step}.log"


class RunFolder:
    """Folder of a run: anybody reads it, its run writes it, and no line of its journal is lost by a kill.

    As long as a journal is open, it is locked, and no other process takes the run for dead. The lock ends with the
    process: it belongs to the open file, which no child process inherits. What cannot be read is a `StorageError`.
    """

    def __init__(self, path: Path, journal: int = -1) -> None:
        self.path, self.run_id = path, path.name
        self.patch_file = path / PATCH
        """Patch of the session, written by the workspace; absent where it changed nothing."""
        self._journal, self._torn = journal, False

    @classmethod
    def claim(cls, path: Path) -> Self | None:
        """Lock the journal of a dead process; nothing where there is none, or where its writer lives."""
        with suppress(OSError):
            handle = untrusted.open_regular(path / JOURNAL, os.O_RDWR | os.O_APPEND)
            with suppress(OSError):
                locks.lock_open(handle)
                # Its writer may have finished, and removed it, between opening and locking.
                if os.fstat(handle).st_nlink:
                    return cls(path, handle)
            os.close(handle)
        return None

    def keep(self, name: str, data: bytes) -> None:
        """Write a file beside the result; it is worth less than the second that flushing takes on a busy machine."""
        write_whole(self.path / name, [data], durable=False)

    def announce(self, provisional: RunResult) -> None:
        """Write down the result of the run if nothing more is recorded; again whenever more is known."""
        self.keep(PROVISIONAL, codec.encode(provisional, indent=2))

    def append(self, record: session.SessionRecord) -> None:
        """Hand a record of the session to the operating system, which keeps it if this process is killed now."""
        line = codec.encode(record)
        # A line that broke off must not swallow the next one.
        rest = memoryview(b"\n" + line if self._torn else line)
        self._torn = True
        with storage_errors(self.path / JOURNAL):
            while rest:
                # Straight to the kernel: what a buffer of Python holds is lost with the process.
                rest = rest[os.write(self._journal, rest) :]
        self._torn = False

    def records(self) -> Iterator[session.SessionRecord]:
        """Read what was appended, even where the file was deleted meanwhile; a torn or foreign line is passed over."""
        passed = 0
        with storage_errors(self.path / JOURNAL), os.fdopen(os.dup(self._journal), "rb") as lines:
            lines.seek(0)
            for line in lines:
                if record := codec.decode_record(line):
                    yield record
                elif line.strip():
                    passed += 1
        if passed:
            log.warning("%s: lines that could not be read: %d", self.path / JOURNAL, passed)

    def finish(self, result: RunResult, transcript: session.SessionTranscript) -> None:
        """Write transcript and result, remove what led to them, and let go of the lock.

        After a `StorageError` the journal stays, and with it the result as announced: the next start finishes it.
        """
        with closing(self):
            # The small file first: where the large one finds no room, the outcome is not lost to the next start.
            self.announce(result)
            write_whole(self.path / TRANSCRIPT, codec.encode_transcript(transcript))
            self.rewrite(result)
            self._tidy()

    def announced(self) -> RunResult | None:
        """Result as a killed run announced it; what it left beside a result, or before any record, is removed."""
        file = self.path / PROVISIONAL
        if (self.path / RESULT).is_file():
            self._tidy()
        elif file.exists():
            try:
                return codec.decode(RunResult, read_file(file, MAX_RESULT_BYTES), str(file))
            except StorageError as problem:
                log.warning("%s is left as it is: %s", self.path, problem)
        elif os.fstat(self._journal).st_size:
            log.warning("%s is left as it is: its run is not known", self.path)
        else:
            self._tidy()
            with suppress(OSError):
                self.path.rmdir()
        return None

    @property
    def last_heard(self) -> datetime:
        return datetime.fromtimestamp(os.fstat(self._journal).st_mtime, UTC)

    def _tidy(self) -> None:
        """Remove what a finished run does not need."""
        temporary = (*self.path.glob(TEMPORARY), *(self.path / IMAGES).glob(TEMPORARY))
        for leftover in (self.path / PROVISIONAL, *temporary, self.path / JOURNAL):
            with suppress(OSError):
                leftover.unlink()

    def close(self) -> None:
        """Let go of the lock; without a result, the next start takes the run for killed."""
        if self._journal >= 0:
            os.close(self._journal)
            self._journal = -1

    def result(self) -> RunResult:
        return self._read(RunResult, RESULT, MAX_RESULT_BYTES)

    def transcript(self) -> session.SessionTranscript:
        return self._read(session.SessionTranscript, TRANSCRIPT)

    def patch(self) -> bytes:
        """Patch of the session, empty where it is not known."""
        return read_file(self.patch_file) if os.path.lexists(self.patch_file) else b""

    def manifest(self) -> ToolsManifest | None:
        """Which items the project offered; None where nobody looked, or that cannot be read."""
        with suppress(StorageError):
            return self._read(ToolsManifest, MANIFEST)
        return None

    def steering(self) -> Mapping[str, Sequence[str]] | None:
        """The digests of the lines of the files that steer; None where nobody knows."""
        with suppress(StorageError, orjson.JSONDecodeError):
            found = orjson.loads(read_file(self.path / STEERING, MAX_STEERING_BYTES))
            if isinstance(found, dict) and all(isinstance(lines, list) for lines in found.values()):
                return found
        return None

    def rewrite(self, result: RunResult) -> None:
        """Put another result in the place of the old one, which stays as it was where that fails."""
        # Its folder is not made: a run that was removed meanwhile stays so.
        with storage_errors(self.path / RESULT), atomic.replacing(self.path / RESULT) as file:
            file.write(codec.encode(result, indent=2))

    def _read(self, model: type[Stored], name: str, max_bytes: int | None = None) -> Stored:
        file = self.path / name
        return codec.decode(model, read_file(file, max_bytes), str(file))


def image_files(run: Path) -> tuple[str, ...]:
    """The images of a run, by path below its folder; what else lies beside them is none of ours."""
    folder = run / IMAGES
    found = folder.iterdir() if folder.is_dir() and not folder.is_symlink() else ()
    return tuple(sorted(f"{IMAGES}/{path.name}" for path in found if FILE_NAME.fullmatch(path.name)))


class ImageFolder:
    """Folder of a run's images that tools returned, which may be hostile: each is known by its bytes, not its name."""

    def __init__(self, run: Path, redact: Redactor) -> None:
        self.path = run / IMAGES
        # Without guessing by names: compressed bytes name nothing.
        self._redact, self._named, self._stored = redact.known_only(), 0, dict[str, int]()

    def keep(self, encoded: str) -> session.SessionImage | str:
        """Keep an image that came as base64; else why not, in a few words."""
        if self._named >= MAX_IMAGES:
            return f"the session had {MAX_IMAGES} images before"
        # Before it is decoded: a message may have 64 MB.
        if len(encoded) > session.MAX_IMAGE_BYTES * 4 // 3 + 4:
            return f"larger than {session.MAX_IMAGE_BYTES / 1_000_000:g} MB"
        try:
            data = base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            return "its base64 is damaged"
        if (media_type := session.media_type_of(data)) is None:
            return "not a PNG, JPEG, GIF or WebP"
        text = b"\n".join(_TEXT.findall(data)).decode("ascii")
        if len(text) > MAX_TEXT_LENGTH:
            return "most of it is text"
        if self._redact(text) != text:
            return "its metadata holds a secret"
        digest = hashlib.sha256(data).hexdigest()
        image = session.SessionImage(media_type=media_type, size_bytes=len(data), sha256=digest)
        if digest not in self._stored:
            if sum(self._stored.values()) + len(data) > MAX_TOTAL_BYTES:
                return f"the session's images have {MAX_TOTAL_BYTES // 1_000_000} MB without it"
            try:
                write_whole(self.path / image.file_name, [data], durable=False)
            except StorageError as problem:
                return f"it could not be stored: {problem.message}"
            self._stored[digest] = len(data)
        self._named += 1
        return image


# Times of change, size and inode of a file: another one when the file changes.
Stamp = tuple[int, int, int, int]
_Entry = tuple[Stamp, StoredRun]


class _Index(Record):
    """What was read of results, by name of the run's folder, with the stamp that the file had."""

    format: str
    entries: dict[str, _Entry]


class ResultStore:
    """Results of all runs of a project, shared by every Zelda process that works on it.

    Raises `StorageError` where their folder cannot be used, and `LockError` where another Zelda is at it for too long.
    """

    def __init__(self, results_dir: Path) -> None:
        self._runs, self._comparisons = results_dir / RUNS, results_dir / "comparisons"
        self._index, self._attributions = results_dir / INDEX, results_dir / "attributions"

    def begin(self, suite: str, started_at: datetime) -> RunFolder:
        """Make a folder for a new run, and lock its journal; where the name is taken, the next number is used."""
        with self.locked(), storage_errors(self._runs):
            for number in count(1):
                path = self._runs / run_id(suite, started_at, number)
                with suppress(FileExistsError):
                    atomic.make_new_folder(path)
                    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL
                    journal = untrusted.open_regular(path / JOURNAL, flags)
                    atomic.hand_over(journal, path)
                    locks.lock_open(journal)
                    return RunFolder(path, journal)
        raise AssertionError("numbers do not end")

    def remove(self, run_id: str) -> None:
        """Remove a finished run with all its files; one that somebody is at stays."""
        path = self._runs / run_id
        with self.locked(), storage_errors(path):
            if (path / RESULT).exists() and not (path / JOURNAL).exists():
                atomic.remove_whole(path)

    def keep_comparison(self, comparison: StoredComparison) -> None:
        """Store what a comparison rests on, so that later commands show the very same one."""
        target = self._comparisons / f"{comparison.batch.batch_id}.json"
        write_whole(target, [codec.encode(comparison)], durable=False)

    def keep_attribution(self, batch_id: str, found: Attribution) -> None:
        """Store what a search has found, by the batch of its sessions."""
        write_whole(self._attributions / f"{batch_id}.json", [codec.encode(found, indent=2)], durable=False)

    def attributions(self, batch_id: str) -> tuple[Attribution, ...]:
        """Read what searches have found about a batch, of each suite and subject the newest: it has the older ones'."""
        found = dict[tuple[str, str], Attribution]()
        # Their names have the second only.
        for path in sorted(self._attributions.glob("*.json"), key=lambda it: it.stat().st_mtime_ns):
            with suppress(StorageError):
                each = codec.decode(Attribution, read_file(path, MAX_ATTRIBUTION_BYTES), str(path))
                if each.batch_id == batch_id:
                    found[each.suite, each.subject] = each
        return tuple(found.values())

    def comparison(self, batch_id: str) -> StoredComparison | None:
        """Read what the comparison of a batch rests on; None where it compared nothing."""
        path = self._comparisons / f"{batch_id}.json"
        # A result may come from elsewhere: an id is no path that leads elsewhere.
        if Path(batch_id).name != batch_id or not os.path.lexists(path):
            return None
        return codec.decode(StoredComparison, read_file(path, MAX_RESULT_BYTES), str(path))

    def compared_without(self, runs: Iterable[StoredRun]) -> set[str]:
        """Batches whose comparison needed no run of its own, and counts of these runs only."""
        stored, found = {run.run_id: run.batch_id for run in runs}, set[str]()
        for name in {path.stem for path in self._comparisons.glob("*.json")} - {*stored.values()}:
            with suppress(StorageError):
                if (kept := self.comparison(name)) and not kept.runs and stored.keys() >= {*kept.all}:
                    found.add(name)
        return found

    def forget_comparisons(self, run_ids: Collection[str], batch_ids: Collection[str]) -> None:
        """Remove comparisons that rest on runs or batches that are gone."""
        for path in self._comparisons.glob("*.json"):
            # What cannot be read is left as it is; what cannot be removed is not shown either, since its runs are gone.
            with suppress(OSError, StorageError):
                kept = None if path.stem in batch_ids else self.comparison(path.stem)
                if kept is None or not set(kept.all).isdisjoint(run_ids):
                    path.unlink()
        for batch_id in batch_ids:
            with suppress(OSError):
                (self._attributions / f"{batch_id}.json").unlink()

    def unfinished(self) -> Generator[tuple[RunFolder, RunResult], None, None]:
        """Runs that were killed, as announced, one at a time, each locked for us until the next is asked for.

        None has a process that lives, and of several that look, one gets each. What had nothing to tell is removed.
        """
        for left in self._runs.glob(TEMPORARY):
            with self.locked():
                shutil.rmtree(left, ignore_errors=True)
        for path in sorted(it for it in self._runs.glob("*") if is_run_id(it.name)):
            # A journal beside a result is what a kill at the very end leaves.
            is_finished = (path / RESULT).is_file() and not (path / JOURNAL).exists()
            if is_finished or path.is_symlink() or not path.is_dir():
                continue
            with self.locked():
                folder = RunFolder.claim(path)
                if folder is None:
                    # Killed between making the folder and its journal. It is empty, or it stays.
                    with suppress(OSError):
                        path.rmdir()
                    continue
            with closing(folder):
                if announced := folder.announced():
                    yield folder, announced

    def overview(self) -> History:
        """All runs, newest first, without opening a transcript. What cannot be read is named; of the folder, raises."""
        indexed, entries, skipped = dict[str, _Entry](), dict[str, _Entry](), list[SkippedRun]()
        unfinished, folders = 0, list[os.DirEntry[str]]()
        # A file that is written again within one tick of the clock keeps its times, and would be taken for unchanged.
        # From before they are read, which may take longer than a tick.
        youngest = time.time_ns() - YOUNG_NS
        # Where it is missing, damaged or of another Zelda, results tell all of it.
        with suppress(StorageError, ValidationError):
            index = _Index.model_validate_json(read_file(self._index))
            indexed = index.entries if index.format == FORMAT else indexed
        try:
            with suppress(FileNotFoundError), os.scandir(self._runs) as listing:
                folders = sorted((it for it in listing if not it.name.startswith(".")), key=attrgetter("name"))
        except OSError as problem:
            hint = "Look at its permissions, or at resultsDir in zelda.config.yaml."
            raise StorageError(f"{self._runs} cannot be read: {problem.strerror}.", hint=hint) from problem
        for folder in folders:
            try:
                if entry := _entry(folder, indexed.get(folder.name)):
                    entries[folder.name] = entry
                else:
                    unfinished += 1
            except UnreadableError as problem:
                skipped.append(SkippedRun(name=folder.name, code=problem.code, message=problem.message))
        # Only if something has changed, so that a list is a mere read for most of the time.
        if entries != indexed:
            # Where it cannot be written, the next list takes longer.
            lasting = {name: entry for name, entry in entries.items() if max(entry[0][:2]) < youngest}
            with suppress(StorageError):
                index = _Index.model_construct(format=FORMAT, entries=lasting)
                write_whole(self._index, [codec.encode(index)], durable=False)
        runs = [run for _, run in entries.values()]
        runs.sort(key=lambda run: (run.started_at.timestamp(), run.run_id), reverse=True)
        return History(runs=tuple(runs), skipped=tuple(skipped), unfinished=unfinished)

    def run(self, run_id: str) -> RunFolder:
        return RunFolder(self._runs / run_id)

    def result(self, run_id: str) -> RunResult:
        return self.run(run_id).result()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody else begins, claims or merges runs meanwhile: no new folder is seen before its journal is locked."""
        with storage_errors(self._runs):
            atomic.make_below(self._runs.parent, self._runs)
            handle = locks.wait_for(self._runs / LOCK, mode=0o666)
        try:
            atomic.hand_over(handle, self._runs)
            yield
        finally:
            os.close(handle)

    def size(self, run_id: str) -> int:
        """Bytes of a transcript; zero where there is none that is shown."""
        with suppress(OSError):
            # Results may come from a file that somebody else has made: an id is no path that leads elsewhere.
            size = (self._runs / run_id / TRANSCRIPT).stat().st_size if is_run_id(run_id) else 0
            return size if size <= MAX_TRANSCRIPT_BYTES else 0
        return 0

    def transcript(self, run_id: str) -> session.SessionTranscript | None:
        """A transcript; nothing where it is not stored, cannot be read, or is too large to be shown."""
        with suppress(StorageError):
            return self.run(run_id).transcript() if self.size(run_id) else None
        return None

    def patch(self, run_id: str) -> bytes:
        """The patch of a session; empty where it is not known, or too large to be shown."""
        return self._kept(run_id, PATCH, MAX_PATCH_BYTES)

    def image(self, run_id: str, image: session.SessionImage) -> bytes:
        """An image that a tool returned; empty where it is not kept."""
        return self._kept(run_id, f"{IMAGES}/{image.file_name}", session.MAX_IMAGE_BYTES)

    def _kept(self, run_id: str, name: str, max_bytes: int) -> bytes:
        with suppress(StorageError):
            return read_file(self._runs / run_id / name, max_bytes) if is_run_id(run_id) else b""
        return b""


def _entry(folder: os.DirEntry[str], known: _Entry | None) -> _Entry | None:
    """A run as lists show it: as it is `known`, if its result has not changed; nothing where it has none yet."""
    name, short = folder.name, f"{folder.name}/{RESULT}"
    if not is_run_id(name) or not folder.is_dir(follow_symlinks=False):
        # Said rather than passed over: a folder that somebody has renamed would be missed otherwise.
        raise UnreadableError(f"{name} is not the folder of a run.", code="RESULT_FOREIGN")
    try:
        status = os.stat(f"{folder.path}/{RESULT}", follow_symlinks=False)  # noqa: PTH116 - ten thousand times
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise UnreadableError(f"{short} cannot be read: {problem.strerror}.", code="RESULT_FOREIGN") from None
    if not untrusted.is_regular(status) or status.st_size > MAX_RESULT_BYTES:
        raise UnreadableError(f"{short} is no file, or too large.", code="RESULT_FOREIGN")
    stamp = status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino
    if known and known[0] == stamp:
        return known
    try:
        data = read_file(f"{folder.path}/{RESULT}", MAX_RESULT_BYTES)
    except StorageError as problem:
        raise UnreadableError(problem.message, hint=problem.hint, code="RESULT_UNREADABLE") from problem
    run = codec.decode(RunResult, data, short)
    if run.run_id != name:
        # Its id could not be told from that of the run it was copied from.
        raise UnreadableError(f"{short} is the result of another run.", code="RESULT_FOREIGN")
    return stamp, at_a_glance(run)


@dataclass
class RunState:
    """One run's result in the making. Until something better is known, the run counts as interrupted."""

    folder: RunFolder
    known: RunResult
    redact: Redactor
    interrupted: Failure
    """Why it has no other end, if it is killed."""
    records: list[session.SessionRecord] = field(default_factory=list)
    responses: set[str] = field(default_factory=set)
    """Of the model in the main thread, by id."""
    wall_seconds: float = 0.0
    began: float = field(default_factory=time.monotonic)
    """When the run began, by a clock that nobody sets."""

    def update(self, **facts: object) -> None:
        self.known = self.known.replace(**facts)

    def keep_cost(self, **costs: object) -> None:
        """Note what was spent, so that a kill does not lose it; where there is no room, the run goes on."""
        self.update(**costs)
        self.update(models=tuple(sorted(self.known.api.models)))
        with suppress(StorageError):
            as_killed = {"status": session.SessionStatus.INTERRUPTED, "failure": self.interrupted, "evaluations": {}}
            self.folder.announce(self.known.replace(**as_killed))

    def record(self, record: session.SessionRecord) -> None:
        # First to disk: what was shown to somebody must still be there after a kill.
        self.folder.append(record)
        self.records.append(record)
        if isinstance(record, session.Started):
            self.update(versions=self.known.versions.replace(cli=record.cli_version))
        elif (
            isinstance(record, session.AssistantSaid | session.ToolCalled)
            and record.parent_tool_call_id is None
            and record.model != session.SYNTHETIC_MODEL
        ):
            self.responses.add(record.message_id)

    def fail(self, exc: ZeldaError) -> None:
        """Settle that the run could not be carried out."""
        hint = self.redact(exc.hint) if exc.hint else None
        failure = Failure(code=exc.code, message=self.redact(exc.message), hint=hint)
        self.update(status=session.SessionStatus.FAILED, failure=failure)

    def transcript(self) -> session.SessionTranscript:
        """The session as far as it was heard."""
        prompt = self.redact(self.known.config.prompt)
        return transcript_of(self.known, prompt, self.records, self.wall_seconds or None)

    def store(self) -> RunResult:
        """Write result and transcript. Where that fails, the result says so and what was captured stays on disk."""
        self.update(finished_at=self.known.started_at + timedelta(seconds=time.monotonic() - self.began))
        try:
            self.folder.finish(self.known, self.transcript())
        except StorageError as exc:
            self.fail(exc)
        return self.known
