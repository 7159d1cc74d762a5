"""The pool of a laptop: what lies in the project's results."""

from datetime import timedelta
from pathlib import Path

from tests.support.history import store
from tests.unit.compare.runs import START
from zelda_ci.domain.run import Fingerprint, RunResult
from zelda_ci.domain.trials import PoolSettings
from zelda_ci.pipeline.comparing import STATES_READ, stored_pool
from zelda_ci.storage.codec import encode
from zelda_ci.storage.result_store import ResultStore

OWN = Fingerprint(outcome="o", platform="p", tree="t")
NOW = START + timedelta(days=1)


def stored(results: Path, suite: str, minute: int, fingerprint: Fingerprint = OWN) -> RunResult:
    run = store(results, suite, minute).replace(fingerprint=fingerprint)
    (results / "runs" / run.run_id / "result.json").write_bytes(encode(run, indent=2))
    return run


def test_stored_runs_of_the_wanted_suites_are_pooled(tmp_path: Path) -> None:
    kept = stored(tmp_path, "alpha", 1)
    store(tmp_path, "alpha", 2)
    stored(tmp_path, "beta", 3)
    damaged = stored(tmp_path, "alpha", 4)
    history = ResultStore(tmp_path)
    history.overview()
    (tmp_path / "runs" / damaged.run_id / "result.json").write_text("{")
    pool = stored_pool(history, {"alpha": PoolSettings()}, NOW)
    assert [run.run_id for run in pool.trials] == [kept.run_id]


def test_old_runs_do_not_count_and_of_the_others_a_bounded_number(tmp_path: Path) -> None:
    for minute in range(STATES_READ + 3):
        stored(tmp_path, "alpha", minute, OWN.replace(outcome=f"{minute}"))
    history = ResultStore(tmp_path)
    assert len(stored_pool(history, {"alpha": PoolSettings(max_trials=1)}, NOW).trials) == STATES_READ
    later = NOW + timedelta(days=30)
    assert stored_pool(history, {"alpha": PoolSettings()}, later).trials == ()
