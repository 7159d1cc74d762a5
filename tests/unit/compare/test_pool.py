"""Which stored trials are counted together, and as whose."""

from datetime import datetime, timedelta
from itertools import permutations
from typing import Any

import pytest

from tests.builders import START, result, safe
from zelda_ci.compare.pool import TrialPool, is_beside, is_usable, pool_of, same_as, stored_trials, summarize_pool
from zelda_ci.domain.base import Record
from zelda_ci.domain.measures import EvalResult, Metric
from zelda_ci.domain.run import NAMED_FILES, STEERING, SUITE_FILES, Fingerprint, Pool, RunResult
from zelda_ci.domain.session import SessionStatus
from zelda_ci.domain.trials import PoolSettings, Side
from zelda_ci.storage import codec

NOW = START + timedelta(days=1)
OWN = Fingerprint(outcome="a", platform="Claude 1", tree="t")
DEFAULTS = PoolSettings()


def trial(name: str, at: datetime = START, fingerprint: Fingerprint | None = OWN, **fields: Any) -> RunResult:
    given = {"batch_id": name, "started_at": at, "finished_at": at, "fingerprint": fingerprint, **fields}
    return result(name, **given)


def pool(*groups: list[RunResult], now: datetime = NOW, **settings: Any) -> TrialPool:
    return pool_of(groups, lambda _: PoolSettings(**settings), now)


def names(runs: tuple[RunResult, ...]) -> list[str]:
    return [run.run_id for run in runs]


def test_trials_of_several_sources_count_once_each_and_their_order_says_nothing() -> None:
    runs = [trial(f"r{number}", START + timedelta(minutes=number)) for number in range(4)]
    groups = [[runs[0], runs[1]], [runs[1], runs[2]], [runs[3], runs[0]]]
    assert names(pool(*groups).trials) == ["r3", "r2", "r1", "r0"]
    for order in permutations(groups):
        assert pool(*order).trials == pool(runs).trials
    # Runs of two machines may have the same name.
    assert len(pool([trial("r"), trial("r", batch_id="other")]).trials) == 2


@pytest.mark.parametrize(
    "refused",
    [
        trial("failed", status=SessionStatus.FAILED),
        trial("interrupted", status=SessionStatus.INTERRUPTED),
        trial("old", NOW - timedelta(days=14, seconds=1)),
        trial("future", NOW + timedelta(minutes=6)),
        trial("without", fingerprint=None),
    ],
    ids=lambda run: run.run_id,
)
def test_what_says_nothing_is_too_old_or_comes_from_the_future_is_no_trial(refused: RunResult) -> None:
    assert names(pool([trial("good", status=SessionStatus.MAX_TURNS), refused]).trials) == ["good"]


def test_the_newest_are_kept_whatever_they_show() -> None:
    runs = [trial(f"r{number}", START + timedelta(minutes=number)) for number in range(9)]
    other = trial("other", fingerprint=OWN.replace(outcome="b"))
    kept = pool([*runs, other], max_trials=3)
    assert names(kept.of("example", "a")) == ["r8", "r7", "r6"]
    assert names(kept.of("example", "b")) == ["other"]
    assert pool(runs, max_trials=0).trials == ()
    assert names(pool([trial("r", NOW - timedelta(days=3))], max_age_days=3).trials) == ["r"]


def test_trials_of_the_same_state_are_stored_ones_of_the_base_whatever_they_ran_on_and_no_others() -> None:
    here, elsewhere, drifted = trial("r"), OWN.replace(tree="else"), OWN.replace(platform="Claude 2")
    others = [trial("other", fingerprint=OWN.replace(outcome="b")), trial("suite", suite="another")]
    trials = pool([here, *others], [trial("code", fingerprint=elsewhere), trial("platform", fingerprint=drifted)])
    assert sorted(names(trials.stored("example", OWN, DEFAULTS))) == ["code", "platform", "r"]
    assert names(trials.stored("example", OWN, PoolSettings(max_trials=1))) == ["r"]
    assert trials.stored("example", None, DEFAULTS) == ()


PARTS = {"agentSdk": "0.2", "system": "debian", "isolationLevel": "full", "models": "m", "cli": "2.1"}


@pytest.mark.parametrize("part", ["agentSdk", "system", "isolationLevel"])
def test_before_a_session_what_is_known_of_the_platform_decides(part: str) -> None:
    """Models and CLI show only then; the comparison looks again."""
    stored = OWN.replace(platform="all of it", parts=PARTS)
    expected = OWN.replace(platform="less", parts={**PARTS, "models": "", "cli": ""})
    trials = pool([trial("r", fingerprint=stored)])
    assert stored_trials(trials, "example", expected) == 1
    other = expected.replace(parts={**expected.parts, part: "other"})
    assert stored_trials(trials, "example", other) == 0
    runs = [trial("r", fingerprint=stored)]
    assert same_as(runs, expected) == runs
    assert same_as(runs, other) == []
    assert same_as(runs, expected.replace(tree="else")) == []
    assert is_beside(stored, expected)
    assert not is_beside(stored, other)


def test_beside_the_head_a_trial_of_the_base_may_differ_in_the_projects_files_alone() -> None:
    own = OWN.replace(parts={**PARTS, "prompt": "p"})
    for part in (STEERING, SUITE_FILES, NAMED_FILES, "models"):
        assert is_beside(own.replace(parts={**own.parts, part: "x"}), own)
    for parts in ({**own.parts, "prompt": "q"}, PARTS, {**own.parts, "new": "x"}):
        assert not is_beside(own.replace(parts=parts), own)
        assert not is_beside(own, own.replace(parts=parts))


def test_a_trial_that_was_not_judged_whole_is_valid_and_of_no_use() -> None:
    unjudged = EvalResult(
        metric=Metric.TOOL_USAGE, version="1", score=None, reasoning=safe("away"), details=Record(), failed=True
    )
    runs = [trial("whole"), trial("part", evaluations={Metric.TOOL_USAGE: unjudged}), trial("x", fingerprint=None)]
    assert [is_usable(run) for run in runs] == [True, False, False]


def test_on_a_laptop_trials_are_told_apart_by_their_fingerprints() -> None:
    changed = OWN.replace(outcome="changed")
    trials = pool([trial("base"), trial("head", fingerprint=changed), trial("old", fingerprint=OWN.replace(tree="x"))])
    found = trials.of_laptop("example", OWN, changed, DEFAULTS)
    assert (names(found.head), sorted(names(found.stored))) == (["head"], ["base", "old"])
    # Without a change nothing counts on both sides.
    found = trials.of_laptop("example", OWN, OWN, DEFAULTS)
    assert (names(found.head), sorted(names(found.stored))) == ([], ["base", "old"])
    # Where only code changed, a trial of the head's code is the head's.
    code = OWN.replace(tree="x")
    found = trials.of_laptop("example", OWN, code, DEFAULTS)
    assert (names(found.head), names(found.stored)) == (["old"], ["base"])
    # A suite that the base lacks has trials of the head alone.
    assert names(trials.of_laptop("example", None, changed, DEFAULTS).all) == ["head"]


def test_on_a_laptop_trials_that_ran_beside_those_of_the_head_are_of_the_same_looks() -> None:
    changed = OWN.replace(outcome="changed")
    base: dict[str, Any] = {"side": Side.BASE}
    hours = [START + timedelta(hours=number) for number in range(4)]
    trials = pool(
        [
            trial("other comparison", hours[0], **base),
            trial("beside", hours[1], **base, batch_id="same"),
            trial("head", hours[2], changed, batch_id="same"),
            trial("went on", hours[3], **base),
            trial("the base alone", hours[3]),
            trial("other code", hours[3], OWN.replace(tree="else"), **base),
            trial("other platform", hours[3], OWN.replace(platform="Claude 2"), **base),
        ]
    )
    found = trials.of_laptop("example", OWN, changed, DEFAULTS)
    assert (names(found.head), sorted(names(found.base))) == (["head"], ["beside", "went on"])
    assert sorted(names(found.stored)) == ["other code", "other comparison", "other platform", "the base alone"]
    other = trials.of_laptop("example", OWN, OWN.replace(outcome="new"), DEFAULTS)
    assert (len(other.stored), other.base) == (6, ())


def test_a_stored_pool_is_summed_up_read_as_it_was_and_loses_its_oldest_where_it_is_too_large() -> None:
    runs = tuple(
        trial(f"r{number}", START + timedelta(hours=number), batch_id=f"b{number // 2}") for number in range(4)
    )
    summary = summarize_pool(runs[1:])
    assert summary
    assert (summary.trials, summary.per_suite, summary.runs) == (3, 3, 2)
    assert summary.newest_at == START + timedelta(hours=3)
    assert summarize_pool([]) is None
    stored = Pool(suites={"example": OWN}, trials=runs)
    whole = codec.encode_within(stored, 1 << 20)
    assert codec.decode(Pool, whole, "zelda-pool.json") == stored
    cut = codec.decode(Pool, codec.encode_within(stored, len(whole) - 1), "zelda-pool.json")
    assert names(cut.trials) == ["r1", "r2", "r3"]
    assert cut.suites == stored.suites
    assert codec.decode(Pool, codec.encode_within(Pool(), 100), "zelda-pool.json") == Pool()
