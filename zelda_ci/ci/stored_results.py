"""What one stored artifact holds, read: results, the trials of earlier runs, and the nights."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from zelda_ci.ci.stored_artifacts import NIGHTS, POOL, RESULTS, Opened
from zelda_ci.compare.pool import CLOCK_DIFFERENCE
from zelda_ci.domain.nights import NightlyHistory
from zelda_ci.domain.run import BatchResult, Pool, RunResult
from zelda_ci.domain.trials import Side
from zelda_ci.errors import StorageError
from zelda_ci.storage import codec

MAX_HISTORY_BYTES = 16 << 20


@dataclass(frozen=True)
class StoredResults:
    """What one artifact holds."""

    batch: BatchResult
    pool: Pool
    stored_at: datetime | None
    nights: NightlyHistory | None = None
    damage: str = ""
    """Why its history cannot be read, if it has one."""

    @property
    def trials(self) -> Iterator[RunResult]:
        """Of the run and of earlier ones, on both sides; none that is newer than the artifact."""
        latest = self.stored_at + CLOCK_DIFFERENCE if self.stored_at else None
        runs = (*self.batch.runs, *self.batch.base_runs, *self.pool.trials)
        return (run for run in runs if latest is None or run.finished_at <= latest)

    @property
    def own_trials(self) -> Iterator[RunResult]:
        """Those of the files that were tested."""
        return (run for run in self.trials if run.side is Side.HEAD)


def read_stored(stored: Opened) -> StoredResults:
    """Results and pool from the bytes of their files.

    Raises:
        StorageError: They are none, or none at all.
    """
    batch = codec.decode(BatchResult, stored.results, RESULTS)
    pool = codec.decode(Pool, stored.pool, POOL) if stored.pool is not None else Pool()
    # A push that changed nothing that a suite depends on has run none, and of a pull request all may have run before.
    if not batch.runs and not pool.suites and not pool.trials:
        raise StorageError("it holds no run", code="NO_RUNS")
    try:
        nights = _nights(stored.nights) if stored.nights is not None else None
    except StorageError as problem:
        # Results are worth keeping without it.
        return StoredResults(batch, pool, stored.stored_at, damage=problem.message)
    return StoredResults(batch, pool, stored.stored_at, nights)


def _nights(data: bytes) -> NightlyHistory:
    if len(data) > MAX_HISTORY_BYTES:
        raise StorageError(f"{NIGHTS} has more than {MAX_HISTORY_BYTES >> 20} MiB.", code="RESULT_FOREIGN")
    return codec.decode(NightlyHistory, data, NIGHTS)
