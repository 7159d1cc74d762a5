"""What a user calls a stored run, side or batch, and the stored noise of suites."""

import logging
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import orjson

from zelda_ci.domain.comparison import Calibration
from zelda_ci.domain.run import RunResult
from zelda_ci.errors import StorageError
from zelda_ci.files import ownership
from zelda_ci.files.atomic import read_file, storage_errors, write_whole
from zelda_ci.storage import codec
from zelda_ci.storage.history import MAX_RESULT_BYTES, RunHistory
from zelda_ci.storage.run_folder import file_name

FOLDER = "calibration"

log = logging.getLogger(__name__)


class Calibrations:
    """The latest calibration of each suite."""

    def __init__(self, results_dir: Path) -> None:
        self._folder = results_dir / FOLDER

    def save(self, calibration: Calibration) -> Path:
        """Replace the suite's calibration; where it is.

        Raises:
            StorageError: It could not be written.
        """
        path = self._path(calibration.suite)
        with storage_errors(path):
            ownership.make_folder(path.parent)
        write_whole(path, [codec.encode_calibration(calibration)])
        return path

    def read(self, suites: Iterable[str]) -> dict[str, Calibration]:
        """Those that exist, by suite; one that cannot be read is as good as none."""
        calibrations = {}
        for suite in suites:
            path = self._path(suite)
            if path.exists():
                calibration = self._read(path)
                # Two names may make one file name.
                if calibration and calibration.suite == suite:
                    calibrations[suite] = calibration
        return calibrations

    def _read(self, path: Path) -> Calibration | None:
        with suppress(StorageError):
            return codec.decode_calibration(read_file(path, MAX_RESULT_BYTES), str(path))
        log.warning("%s cannot be read and is passed over", path)
        return None

    def _path(self, suite: str) -> Path:
        return self._folder / f"{file_name(suite)}.json"


LATEST = "latest"
MAX_NAMED = 5
MAX_RESULTS_BYTES = 1_000_000_000


@dataclass(frozen=True)
class SideReference:
    """Runs under one name."""

    name: str
    runs: tuple[RunResult, ...]


def find_run(history: RunHistory, reference: str) -> str:
    """The id of the run that is meant.

    Raises:
        StorageError: No run is, or several are; the message names those that may be.
    """
    if reference == LATEST:
        return _latest(history)
    names = history.names()
    if reference in names:
        return reference
    matches = [name for name in names if reference and name.startswith(reference)]
    if len(matches) == 1:
        return matches[0]
    raise _ambiguous(reference, matches) if matches else _unknown(history, reference, names)


def read_side(history: RunHistory, reference: str) -> SideReference:
    """The runs of one side: a results file, a run, or all runs of a batch.

    Raises:
        StorageError: It is none of these, or cannot be read.
    """
    if os.sep in reference or reference.endswith(".json"):
        return SideReference(Path(reference).name, read_results(Path(reference)))
    runs = history.overview().runs if reference != LATEST else ()
    batch = [run.run_id for run in runs if run.batch_id == reference]
    names = batch or [find_run(history, reference)]
    return SideReference(reference if batch else names[0], tuple(history.result(name) for name in names))


def read_results(path: Path) -> tuple[RunResult, ...]:
    """The runs in a file: what `zelda run --json` printed, or one result.

    Raises:
        StorageError: It is neither.
    """
    data = read_file(path, MAX_RESULTS_BYTES)
    if _holds_runs(data):
        return codec.decode_batch(data, str(path)).runs
    return (codec.decode_result(data, str(path)),)


def _holds_runs(data: bytes) -> bool:
    try:
        tree = orjson.loads(data)
    except orjson.JSONDecodeError:
        return False
    return isinstance(tree, dict) and "runs" in tree


def _latest(history: RunHistory) -> str:
    runs = history.overview().runs
    if not runs:
        raise StorageError("There is no stored run yet.", hint="Make one with `zelda run`.", code="NO_RUNS")
    return runs[0].run_id


def _ambiguous(reference: str, matches: Sequence[str]) -> StorageError:
    return StorageError(
        f"{len(matches)} runs begin with {reference!r}: {_named(matches)}.",
        hint="Give more of the id; `zelda list` shows all.",
        code="RUN_AMBIGUOUS",
    )


def _unknown(history: RunHistory, reference: str, names: Sequence[str]) -> StorageError:
    if reference in history.unfinished():
        hint = "It is under way; or it was killed, and the next `zelda run` makes a result of what was captured."
        return StorageError(f"The run {reference} has no result yet.", hint=hint, code="RUN_UNFINISHED")
    near = get_close_matches(reference, names, n=3, cutoff=0.5)
    guess = f" The nearest: {_named(near)}." if near else ""
    hint = "`zelda list` shows all runs; `latest` is the newest." if names else "Make one with `zelda run`."
    return StorageError(f"There is no run {reference!r}.{guess}", hint=hint, code="RUN_UNKNOWN")


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return ", ".join(names[:MAX_NAMED]) + more
