"""The folder of all runs, and which of them are under way, finished or left by a killed process."""

import os
import shutil
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from zelda_ci.domain.run import Failure, RunResult
from zelda_ci.domain.session import AssistantSaid, SessionRecord, SessionStatus, SessionTranscript, Started, ToolCalled
from zelda_ci.errors import StorageError, ZeldaError
from zelda_ci.files import locks, ownership
from zelda_ci.files.atomic import storage_errors, write_whole
from zelda_ci.redact import Redactor, SafeText
from zelda_ci.storage.fold import SYNTHETIC_MODEL, transcript_of
from zelda_ci.storage.run_folder import JOURNAL, RESULT, RunFolder, is_run_id, log_name, run_id

RUNS = "runs"
LOCK = ".lock"


class ResultStore:
    """Results of all runs of a project, shared by every Zelda process that works on it."""

    def __init__(self, results_dir: Path) -> None:
        self._runs = results_dir / RUNS

    def begin(self, suite: str, started_at: datetime) -> RunFolder:
        """Make a folder for a new run; where the name is taken, by whomever, the next number is used.

        Raises:
            StorageError: The results folder cannot be used.
            LockError: Another Zelda is at it for too long.
        """
        with self._locked(), storage_errors(self._runs):
            for number in count(1):
                path = self._runs / run_id(suite, started_at, number)
                with suppress(FileExistsError):
                    ownership.make_new_folder(path)
                    return RunFolder.begin(path)
        raise AssertionError("numbers do not end")

    def remove(self, run_id: str) -> None:
        """Remove a finished run with all its files; one that somebody is at stays.

        Raises:
            StorageError: There is no permission.
            LockError: Another Zelda is at it for too long.
        """
        path = self._runs / run_id
        with self._locked(), storage_errors(path):
            if not (path / JOURNAL).exists():
                # First the result: what is removed by halves is not taken for a run.
                (path / RESULT).unlink(missing_ok=True)
                shutil.rmtree(path)

    def keep_log(self, run_id: str, step: str, output: SafeText) -> None:
        """Keep what a command of a run printed beside the run's result."""
        # Not flushed to the disk: a log is worth less than the second that takes on a busy machine.
        write_whole(self._runs / run_id / log_name(step), [output.encode()], durable=False)

    def unfinished(self) -> Generator[tuple[RunFolder, RunResult], None, None]:
        """Runs that were killed, as announced, one at a time, each locked for us until the next is asked for.

        A run whose process lives is never among them, and of several processes that look, one gets each. What died
        before it had anything to tell is removed on the way.
        """
        folders: list[Path] = []
        with suppress(OSError), os.scandir(self._runs) as entries:
            folders = [Path(each) for each in entries if is_run_id(each.name) and each.is_dir(follow_symlinks=False)]
        for path in sorted(folders):
            # A journal beside a result is what a kill at the very end leaves.
            if (path / RESULT).is_file() and not (path / JOURNAL).exists():
                continue
            with self._locked():
                folder = RunFolder.claim(path)
                if folder is None:
                    # Killed between making the folder and its journal. It is empty, or it stays.
                    with suppress(OSError):
                        path.rmdir()
                    continue
            with closing(folder):
                if announced := folder.announced():
                    yield folder, announced

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Nobody else begins or claims a run meanwhile: a new folder is not seen before its journal is locked."""
        with ExitStack() as stack:
            with storage_errors(self._runs):
                ownership.make_folder(self._runs)
                handle = stack.enter_context(locks.held(self._runs / LOCK, mode=0o666))
                ownership.hand_over(handle, self._runs)
            yield


class RunState:
    """One run's result in the making. Until something better is known, the run counts as interrupted."""

    def __init__(self, folder: RunFolder, provisional: RunResult, redact: Redactor) -> None:
        self.folder = folder
        self.known = provisional
        self.records: list[SessionRecord] = []
        self.wall_seconds = 0.0
        self._redact = redact
        self._prompt = redact(provisional.config.prompt)
        self._responses: set[str] = set()
        folder.announce(provisional)

    @property
    def turns(self) -> int:
        """Model responses of the main thread so far."""
        return len(self._responses)

    def update(self, **facts: object) -> None:
        """Replace fields of the result by what is known now."""
        self.known = self.known.replace(**facts)

    def record(self, record: SessionRecord) -> None:
        """Take a record of the session."""
        # First to disk: what was shown to somebody must still be there after a kill.
        self.folder.append(record)
        self.records.append(record)
        if isinstance(record, Started):
            self.update(versions=self.known.versions.replace(cli=record.cli_version))
        elif (
            isinstance(record, AssistantSaid | ToolCalled)
            and record.parent_tool_call_id is None
            and record.model != SYNTHETIC_MODEL
        ):
            self._responses.add(record.message_id)

    def end(self, status: SessionStatus, failure: Failure | None = None) -> None:
        """Settle how the run ended; `failure` is absent when the session completed."""
        self.update(status=status, failure=failure)

    def fail(self, exc: ZeldaError) -> None:
        """Settle that the run could not be carried out."""
        hint = self._redact(exc.hint) if exc.hint else None
        self.end(SessionStatus.FAILED, Failure(code=exc.code, message=self._redact(exc.message), hint=hint))

    def transcript(self) -> SessionTranscript:
        """The session as far as it was heard."""
        return transcript_of(self.known, self._prompt, self.records, self.wall_seconds or None)

    def store(self, transcript: SessionTranscript) -> RunResult:
        """Write result and transcript. Where that fails, the result says so and what was captured stays on disk."""
        self.update(finished_at=datetime.now(UTC))
        try:
            self.folder.finish(self.known, transcript)
        except StorageError as exc:
            self.fail(exc)
            self.folder.close()
        return self.known
