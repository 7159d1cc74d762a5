"""The story of a calibration: trials of one suite and one commit against each other."""

from collections.abc import Sequence

from zelda_ci.compare.calibration import calibrate
from zelda_ci.domain.comparison import Calibration
from zelda_ci.domain.history import StoredRun
from zelda_ci.domain.run import RunResult
from zelda_ci.errors import StorageError
from zelda_ci.storage.history import RunHistory

FEWEST = 2


def stored_trials(history: RunHistory, suite: str) -> tuple[RunResult, ...]:
    """The runs of the commit of the suite's newest run.

    Raises:
        StorageError: There is no run of the suite, or one cannot be read.
    """
    runs = [run for run in history.overview().runs if run.suite == suite]
    if not runs:
        hint = "`zelda list` shows all stored runs; without --stored the suite is run."
        raise StorageError(f"There is no stored run of the suite {suite!r}.", hint=hint, code="NO_RUNS")
    return tuple(history.result(run.run_id) for run in _of_one_commit(runs))


def calibrate_suite(suite: str, runs: Sequence[RunResult]) -> Calibration:
    """The suite's noise.

    Raises:
        StorageError: Fewer than two of the runs count.
    """
    found = next(iter(calibrate(run for run in runs if run.suite == suite)), None)
    valid = found.trials.valid if found else 0
    if found is None or valid < FEWEST:
        counted = f"{len(runs)} run{'' if len(runs) == 1 else 's'}, of which {valid} count"
        hint = "Run it more often. Failed and interrupted runs do not count; `zelda show latest` says what happened."
        message = f"Noise shows between two runs at least; there are {counted}{'s' if valid == 1 else ''}."
        raise StorageError(message, hint=hint, code="TOO_FEW_TRIALS")
    return found


def _of_one_commit(runs: Sequence[StoredRun]) -> list[StoredRun]:
    """Of the newest commit; runs that know none are alike in that."""
    return [run for run in runs if run.commit == runs[0].commit]
