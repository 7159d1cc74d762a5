"""Finished runs, found by what a user types."""

import re
from dataclasses import dataclass
from pathlib import Path

from zelda_ci.domain.run import RunResult
from zelda_ci.domain.session import SessionTranscript
from zelda_ci.errors import StorageError
from zelda_ci.storage import codec
from zelda_ci.storage.atomic import write_whole
from zelda_ci.storage.result_store import RUNS
from zelda_ci.storage.run_folder import PATCH, RESULT, TRANSCRIPT
from zelda_ci.storage.run_id import is_run_id

LATEST = "latest"
MOST_NAMED = 5

_WHEN = re.compile(r"(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d)(?:-(\d+))?$")


@dataclass(frozen=True)
class StoredRun:
    """The folder of a finished run."""

    path: Path

    @property
    def patch_file(self) -> Path:
        """What the session changed; absent where it changed nothing."""
        return self.path / PATCH

    def result(self) -> RunResult:
        """Read the result.

        Raises:
            StorageError: It cannot be read.
        """
        return codec.decode_result(_bytes(self.path / RESULT), str(self.path / RESULT))

    def transcript(self) -> SessionTranscript:
        """Read the transcript; errors as for `result`."""
        return codec.decode_transcript(_bytes(self.path / TRANSCRIPT), str(self.path / TRANSCRIPT))

    def rewrite(self, result: RunResult) -> None:
        """Put another result in the place of the old one, whole.

        Raises:
            StorageError: It could not be written; the old one is as it was.
        """
        write_whole(self.path / RESULT, iter([codec.encode_result(result)]))


class StoredRuns:
    """All finished runs of a project."""

    def __init__(self, results_dir: Path) -> None:
        self._runs = results_dir / RUNS

    def find(self, name: str) -> StoredRun:
        """The run that a name means: its id, an unambiguous beginning of it, or `latest`.

        Raises:
            StorageError: None or several have that name.
        """
        names = self._names()
        found = [name] if name in names else [one for one in names if one.startswith(name)]
        if name == LATEST:
            found = sorted(names, key=_when)[-1:]
        if not found or not name:
            hint = f"The runs are the folders in {self._runs}."
            raise StorageError(f"There is no finished run {name!r}.", hint=hint, code="RUN_UNKNOWN")
        if len(found) > 1:
            shown = ", ".join(found[:MOST_NAMED]) + (", ..." if len(found) > MOST_NAMED else "")
            message = f"{len(found)} runs begin with {name!r}: {shown}"
            raise StorageError(message, hint="Give more of the name.", code="RUN_AMBIGUOUS")
        return StoredRun(self._runs / found[0])

    def _names(self) -> list[str]:
        try:
            folders = [one for one in self._runs.iterdir() if is_run_id(one.name)]
        except OSError:
            return []
        return sorted(one.name for one in folders if (one / RESULT).is_file())


def _when(name: str) -> tuple[str, int]:
    match = _WHEN.search(name)
    return (match[1], int(match[2] or 1)) if match else ("", 0)


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as problem:
        raise StorageError(f"{file} cannot be read: {problem.strerror}.", code="RESULT_UNREADABLE") from problem
