"""The folder of all runs."""

import os
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from itertools import count
from pathlib import Path

from zelda_ci import locks, ownership
from zelda_ci.redact import SafeText
from zelda_ci.storage.atomic import storage_errors, write_whole
from zelda_ci.storage.journal import Journal
from zelda_ci.storage.run_folder import JOURNAL, RESULT, Remains, RunFolder, log_name
from zelda_ci.storage.run_id import is_run_id, run_id

RUNS = "runs"
LOCK = ".lock"


class ResultStore:
    """Results of all runs of a project, shared by every Zelda process that works on it."""

    def __init__(self, results_dir: Path) -> None:
        self._runs = results_dir / RUNS

    def begin(self, suite: str, at: datetime) -> RunFolder:
        """Make a folder for a new run; where the name is taken, by whomever, the next number is used.

        Raises:
            StorageError: The results folder cannot be used.
            LockError: Another Zelda is at it for too long.
        """
        with self._locked(), storage_errors(self._runs):
            for number in count(1):
                path = self._runs / run_id(suite, at, number)
                with suppress(FileExistsError):
                    ownership.make_new_folder(path)
                    return RunFolder(path, Journal.create(path / JOURNAL))
        raise AssertionError("numbers do not end")

    def keep_log(self, run_id: str, step: str, output: SafeText) -> None:
        """Keep what a command of a run printed beside the run's result.

        Raises:
            StorageError: There was no room or no permission.
        """
        target = self._runs / run_id / log_name(step)
        with storage_errors(target):
            ownership.make_folder(target.parent)
        write_whole(target, [output.encode()], durable=False)

    def unfinished(self) -> Generator[Remains, None, None]:
        """The remains of killed runs, one at a time, each locked for us until the next is asked for.

        A run whose process lives is never among them, and of several processes that look, one gets each. What died
        before it had anything to tell is removed on the way.
        """
        for path in self._without_result():
            folder = self._claim(path)
            if folder is None:
                continue
            try:
                if remains := folder.remains():
                    yield remains
            finally:
                folder.close()

    def _without_result(self) -> list[Path]:
        try:
            with os.scandir(self._runs) as found:
                folders = [Path(each) for each in found if is_run_id(each.name) and each.is_dir(follow_symlinks=False)]
        except OSError:
            return []
        # A journal beside a result is what a kill at the very end leaves.
        return sorted(path for path in folders if not (path / RESULT).is_file() or (path / JOURNAL).exists())

    def _claim(self, path: Path) -> RunFolder | None:
        with self._locked():
            if journal := Journal.claim(path / JOURNAL):
                return RunFolder(path, journal)
            # Killed between making the folder and its journal. It is empty, or it stays.
            with suppress(OSError):
                path.rmdir()
        return None

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Nobody else begins or claims a run meanwhile: a new folder is not seen before its journal is locked."""
        with storage_errors(self._runs):
            ownership.make_folder(self._runs)
        with ExitStack() as stack:
            with storage_errors(self._runs):
                handle = stack.enter_context(locks.held(self._runs / LOCK, mode=0o666))
                ownership.hand_over(handle, self._runs)
            yield
