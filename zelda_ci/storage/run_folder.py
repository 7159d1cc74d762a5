"""The folder of one run, from its first moment to its result, with its journal and its name."""

import logging
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import orjson

from zelda_ci.domain.manifest import ToolsManifest
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.session import SessionRecord, SessionTranscript
from zelda_ci.errors import StorageError
from zelda_ci.files import locks, ownership, untrusted
from zelda_ci.files.atomic import TEMPORARY, read_file, storage_errors, write_whole
from zelda_ci.redact import SafeText
from zelda_ci.storage import codec
from zelda_ci.storage.fold import transcript_of
from zelda_ci.storage.images import IMAGES

MAX_NAME_LENGTH = 80
MAX_STEERING_BYTES = 64_000_000

_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*-\d{4}-\d{2}-\d{2}T\d{2}-\d{2}-\d{2}(-[1-9]\d*)?")


def run_id(suite: str, started_at: datetime, number: int = 1) -> str:
    """The name of a run, in UTC, so that names of one suite sort by time on every machine.

    Args:
        suite: The suite's name; what does not belong in a file name is replaced.
        started_at: When the run began, with its time zone.
        number: From 2 on a suffix for runs of the same suite in the same second.
    """
    name = f"{file_name(suite)}-{started_at.astimezone(UTC):%Y-%m-%dT%H-%M-%S}"
    return name if number == 1 else f"{name}-{number}"


def is_run_id(name: str) -> bool:
    """True where a folder of this name may be a run, and is no path that leads elsewhere."""
    return _RUN_ID.fullmatch(name) is not None


def file_name(suite: str) -> str:
    """A suite's name as far as it can be part of the name of a file."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", suite).strip("-._")[:MAX_NAME_LENGTH].rstrip("-._")
    return name or "suite"


class Journal:
    """Lines that survive a kill as soon as they are appended, and a lock that ends with the process.

    The lock belongs to the open file, which no child process inherits.
    """

    def __init__(self, path: Path, handle: int) -> None:
        self.path = path
        self._handle: int | None = handle
        self._torn = False

    @classmethod
    def create(cls, path: Path) -> "Journal":
        """Begin a journal and lock it."""
        with storage_errors(path):
            handle = untrusted.open_regular(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL)
            ownership.hand_over(handle, path.parent)
            locks.lock_open(handle)
        return cls(path, handle)

    @classmethod
    def claim(cls, path: Path) -> "Journal | None":
        """Lock the journal of a dead process; nothing where there is none, or where its writer lives."""
        try:
            handle = untrusted.open_regular(path, os.O_RDWR | os.O_APPEND)
        except OSError:
            return None
        try:
            locks.lock_open(handle)
            # Its writer may have finished, and removed it, between opening and locking.
            if os.fstat(handle).st_nlink:
                return cls(path, handle)
        except OSError:
            pass
        os.close(handle)
        return None

    def append(self, line: bytes) -> None:
        """Hand a line to the operating system, which keeps it if this process is killed the next moment.

        Raises:
            StorageError: It could not be written whole; the lines before it are kept.
        """
        # A line that broke off must not swallow the next one.
        rest = memoryview(b"\n" + line if self._torn else line)
        self._torn = True
        with storage_errors(self.path):
            while rest:
                # Straight to the kernel: what a buffer of Python holds is lost with the process.
                rest = rest[os.write(self._open, rest) :]
        self._torn = False

    def lines(self) -> Iterator[bytes]:
        """All lines, even where the file was deleted meanwhile. Not to be mixed with appending."""
        with storage_errors(self.path), os.fdopen(os.dup(self._open), "rb") as file:
            file.seek(0)
            yield from file

    def is_empty(self) -> bool:
        """True where nothing was ever appended."""
        return os.fstat(self._open).st_size == 0

    def written_at(self) -> datetime:
        """Time at which the last line was appended."""
        return datetime.fromtimestamp(os.fstat(self._open).st_mtime, UTC)

    def close(self) -> None:
        """Let go of the lock."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    @property
    def _open(self) -> int:
        if self._handle is None:
            raise ValueError("the journal is closed")
        return self._handle


RESULT = "result.json"
TRANSCRIPT = "transcript.json"
PATCH = "changes.patch"
MANIFEST = "manifest.json"
STEERING = "steering.json"
JOURNAL = "transcript.jsonl"
PROVISIONAL = "result.partial.json"

log = logging.getLogger(__name__)


def log_name(step: str) -> str:
    """Name of the file with what the command of a step (setup, build, test) printed."""
    return f"{step}.log"


class RunFolder:
    """Folder that a run writes into. As long as this object is open, no other process takes the run for dead."""

    def __init__(self, path: Path, journal: Journal) -> None:
        self.path = path
        self._journal = journal

    @property
    def run_id(self) -> str:
        return self.path.name

    @property
    def result_file(self) -> Path:
        """Appears when the run is over."""
        return self.path / RESULT

    @property
    def patch_file(self) -> Path:
        """File of the session's changes; written by the workspace."""
        return self.path / PATCH

    def keep_manifest(self, manifest: ToolsManifest) -> None:
        """Write down what the project offered; once the session is over, with what its model was told.

        Raises:
            StorageError: It could not be written.
        """
        self._write(MANIFEST, iter([codec.encode(manifest, indent=2)]), durable=False)

    def keep_steering(self, lines: Mapping[str, Sequence[str]]) -> None:
        """Write down a digest of each line of the files that steer; errors as for `keep_manifest`."""
        self._write(STEERING, iter([orjson.dumps(lines)]), durable=False)

    def announce(self, provisional: RunResult, prompt: SafeText) -> None:
        """Say what will be true if nothing more is heard; may be said again whenever more is known."""
        data = codec.encode(codec.Provisional(result=provisional, prompt=prompt), indent=2)
        self._write(PROVISIONAL, iter([data]), durable=False)

    def append(self, record: SessionRecord) -> None:
        """Keep a record of the session, at once.

        Raises:
            StorageError: It could not be kept; those before it are.
        """
        self._journal.append(codec.encode(record))

    def records(self) -> Iterator[SessionRecord]:
        """Read what was appended; a torn or foreign line is passed over."""
        passed = 0
        for line in self._journal.lines():
            record = codec.decode_record(line)
            if record:
                yield record
            elif line.strip():
                passed += 1
        if passed:
            log.warning("%s: lines that could not be read: %d", self._journal.path, passed)

    def finish(self, result: RunResult, transcript: SessionTranscript) -> None:
        """Write transcript and result, and remove what led to them.

        Raises:
            StorageError: There was no room or no permission. The journal stays, and with it the result as announced:
                `close` the folder, and the next start finishes it.
        """
        # The small file first: where the large one finds no room, the outcome is not lost to the next start.
        self.announce(result, transcript.prompt)
        self._write(TRANSCRIPT, codec.encode_transcript(transcript))
        self._write(RESULT, iter([codec.encode(result, indent=2)]))
        self.tidy()
        self.close()

    def interrupted_run(self) -> "InterruptedRun | None":
        """Rest of a killed run; what it left beside a result, or before any record, is removed."""
        announced = self.path / PROVISIONAL
        if self.result_file.is_file():
            self.tidy()
        elif announced.exists():
            return self._read(announced)
        elif self._journal.is_empty():
            self.tidy()
            with suppress(OSError):
                self.path.rmdir()
        else:
            log.warning("%s is left as it is: its run is not known", self.path)
        return None

    def _read(self, announced: Path) -> "InterruptedRun | None":
        try:
            provisional = codec.decode(codec.Provisional, read_file(announced), str(announced))
        except StorageError as problem:
            log.warning("%s is left as it is: %s", self.path, problem)
            return None
        return InterruptedRun(self, provisional.result, provisional.prompt, self._journal.written_at())

    def tidy(self) -> None:
        """Remove what a finished run does not need."""
        for leftover in [
            self.path / PROVISIONAL,
            *self.path.glob(TEMPORARY),
            *(self.path / IMAGES).glob(TEMPORARY),
            self._journal.path,
        ]:
            with suppress(OSError):
                leftover.unlink()

    def close(self) -> None:
        """Leave the run as it is; without a result, the next start takes it for killed."""
        self._journal.close()

    def _write(self, name: str, chunks: Iterator[bytes], *, durable: bool = True) -> None:
        target = self.path / name
        with storage_errors(target):
            # Somebody may have deleted the folder meanwhile; what was captured is still known here.
            ownership.make_folder(self.path)
        write_whole(target, chunks, durable=durable)


def stored_manifest(folder: Path) -> ToolsManifest | None:
    """Read which items the project offered; None where nobody looked, or that cannot be read."""
    target = folder / MANIFEST
    try:
        return codec.decode(ToolsManifest, read_file(target), str(target))
    except StorageError:
        return None


def stored_steering(folder: Path) -> Mapping[str, Sequence[str]] | None:
    """Read the digests of the lines of the files that steer; None where nobody knows."""
    try:
        found = orjson.loads(read_file(folder / STEERING, MAX_STEERING_BYTES))
    except (StorageError, orjson.JSONDecodeError):
        return None
    is_right = isinstance(found, dict) and all(isinstance(lines, list) for lines in found.values())
    return found if is_right else None


@dataclass(frozen=True)
class InterruptedRun:
    """Rest of a killed run: its folder, locked for us, and what it announced."""

    folder: RunFolder
    provisional: RunResult
    """Result as announced; to be completed and given to `folder.finish`."""
    prompt: SafeText
    last_heard: datetime

    def transcript(self) -> SessionTranscript:
        """The session as far as it was recorded."""
        return transcript_of(self.provisional, self.prompt, tuple(self.folder.records()))
