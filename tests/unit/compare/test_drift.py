"""What fell without anybody's commit: found, followed, over, and rarely claimed in vain."""

from itertools import product
from typing import Any

import pytest

from tests.unit.compare.nights import PLATFORM, history_of, night
from tests.unit.compare.runs import correctness, fulfillment, run
from zelda_ci.compare.drift import (
    MAX_NIGHTS,
    MONTHLY_ALPHA,
    NIGHTLY_ALPHA,
    merged,
    needing_more,
    night_of,
    watch,
    with_night,
)
from zelda_ci.domain.fingerprint import Fingerprint
from zelda_ci.domain.nights import WINDOW, Night, NightlyHistory, Passes
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.session import SessionStatus
from zelda_ci.domain.trials import MAX_TRIALS

NEW = {**PLATFORM, "cli": "2.1.330"}


def nights(*passed: str, first: int = 0, trials: int = 3, **how: Any) -> list[Night]:
    """A night per text, a check per letter: P passes in all trials, F in none."""
    return [
        night(
            first + number,
            {"s": {f"c{i}": (trials if letter == "P" else 0, trials) for i, letter in enumerate(text)}},
            **how,
        )
        for number, text in enumerate(passed)
    ]


GOOD = nights(*["PP"] * 12)


def told(history: NightlyHistory) -> list[tuple[str, str, str, str]]:
    return [(drift.suite, drift.check, str(drift.before), str(drift.lately)) for drift in history.drifts]


def test_a_check_that_falls_is_named_with_what_lies_between() -> None:
    fallen = nights("PF", first=12, platform=NEW, tree="other")
    (drift,) = history_of([*GOOD, *fallen]).drifts
    assert (drift.suite, drift.check, str(drift.before), str(drift.after)) == ("s", "c1", "36/36", "0/3")
    assert (drift.platform_before["cli"], drift.platform_after["cli"]) == ("2.1.329", "2.1.330")
    assert drift.since == fallen[0].at
    assert drift.p <= NIGHTLY_ALPHA == pytest.approx(MONTHLY_ALPHA / 31)
    assert drift.code_changed
    assert (drift.commit_before, drift.commit_after) == (GOOD[-1].commit, fallen[0].commit)


def test_one_bad_trial_is_no_drift_but_gets_more() -> None:
    bad = nights("PF", first=12, trials=1)
    history = history_of(GOOD)
    assert history_of([*GOOD, *bad]).drifts == ()
    assert needing_more(history, bad[0], {"s": PLATFORM}) == ("s",)
    good = nights("PP", first=12, trials=1)
    assert needing_more(history, good[0], {"s": PLATFORM}) == ()


def test_no_night_ends_early_with_a_call() -> None:
    """Whoever stopped as soon as something is proven would look up to five times a night, each with the whole error."""
    history = history_of(GOOD)
    called = 0
    for trials in (1, 3, 5, 7):
        for passed in product(range(trials + 1), repeat=2):
            tonight = night(12, {"s": {f"c{check}": (count, trials) for check, count in enumerate(passed)}})
            wants_more = needing_more(history, tonight, {"s": PLATFORM})
            if watch(with_night(history, tonight)).drifts:
                called += 1
                assert wants_more == ("s",)
    assert called


def test_a_night_makes_no_more_trials_than_it_needs_and_never_more_than_nine() -> None:
    history = history_of(GOOD)
    half = night(12, {"s": {"c0": (9, 9), "c1": (7, 9)}})
    assert history_of([*GOOD, half]).drifts == ()
    assert needing_more(history, half, {"s": PLATFORM}) == ()
    fewer = night(12, {"s": {"c0": (7, 7), "c1": (5, 7)}})
    assert needing_more(history, fewer, {"s": PLATFORM}) == ("s",)


def test_a_drift_stays_until_most_of_it_is_made_good() -> None:
    fallen = history_of([*GOOD, *nights("PF", "PF", "PF", first=12)])
    assert told(fallen) == [("s", "c1", "36/36", "0/9")]
    number = 15
    history = fallen
    while history.drifts:
        history = watch(with_night(history, nights("PP", first=number)[0]))
        number += 1
    # Five nights are looked at: four of them good is enough.
    assert number == 19
    assert watch(with_night(history, nights("PP", first=number)[0])).drifts == ()


def test_a_drift_is_none_and_is_over_where_files_or_criteria_were_changed() -> None:
    assert history_of([*GOOD, *nights("PF", "PF", first=12, outcome="another state")]).drifts == ()
    fallen = history_of([*GOOD, *nights("PF", first=12)])
    assert fallen.drifts
    for later in (nights("PF", first=13, outcome="edited"), nights("P", first=13)):
        assert watch(with_night(fallen, later[0])).drifts == ()


def test_what_has_fallen_gets_three_trials_a_night_unless_somebody_closed_the_issue() -> None:
    fallen = history_of([*GOOD, *nights("PF", first=12)])
    tonight = nights("PP", first=13, trials=1)[0]
    assert needing_more(fallen, tonight, {"s": PLATFORM}) == ("s",)
    (drift,) = fallen.drifts
    closed = fallen.replace(drifts=(drift.replace(accepted=True),))
    assert needing_more(closed, tonight, {"s": PLATFORM}) == ()


def test_a_suite_that_is_gone_is_waited_for_a_few_nights_only() -> None:
    history = history_of([*GOOD, *nights("PF", first=12)])
    waited = 0
    # As long the drift stays what it was.
    assert watch(with_night(history, night(13, {"other": {"c0": (1, 1)}}))).drifts == history.drifts
    while history.drifts:
        waited += 1
        history = watch(with_night(history, night(12 + waited, {"other": {"c0": (1, 1)}})))
    assert waited == WINDOW


def test_nights_are_bounded_merged_once_each_and_never_of_the_future() -> None:
    many = nights(*["P"] * (MAX_NIGHTS + 5))
    history = NightlyHistory()
    for each in many:
        history = with_night(history, each)
    assert history.nights == tuple(many[5:])
    older = NightlyHistory(nights=tuple(many[:3]), drifts=())
    newer = NightlyHistory(nights=tuple(many[2:6]), drifts=history_of([*GOOD, *nights("PF", first=12)]).drifts)
    for order in ([older, newer], [newer, older]):
        both = merged(order, many[4].at)
        assert both.nights == tuple(many[:5])
        assert both.drifts == newer.drifts
    assert merged([], many[0].at) == NightlyHistory()


def trial(run_id: str, *evaluations: Any, outcome: str = "a", at: int = 0, **fields: Any) -> RunResult:
    state = Fingerprint(outcome=outcome, platform="x", tree="t", parts={"cli": "2.1.0", "models": "m", "prompt": "d"})
    return run(evaluations, run_id=run_id, at=at).replace(fingerprint=state, **fields)


def test_a_night_counts_valid_trials_by_criterion_and_commands_together() -> None:
    runs = [
        trial("1", fulfillment("PF"), correctness(), at=1),
        trial("2", fulfillment("PP"), correctness(0), at=2),
        trial("broken", fulfillment("FF"), at=3, status=SessionStatus.FAILED),
        trial("not judged", fulfillment("F?"), at=4),
        run([fulfillment("FF")], run_id="without fingerprint", at=5),
    ]
    row = night_of(runs)
    assert row
    (suite,) = row.suites.values()
    assert {name: str(tally) for name, tally in suite.checks.items()} == {
        "criterion 1": "2/2",
        "criterion 2": "1/2",
        "build and tests": "1/2",
    }
    assert str(suite.whole) == "0/2"
    assert suite.platform == {"cli": "2.1.0", "models": "m"}
    assert night_of(runs[2:]) is None
    # Of two states the newest counts, and more runs than a suite can have are no error.
    row = night_of([trial("1", fulfillment("F")), trial("2", fulfillment("P"), outcome="b", at=9)])
    assert row
    assert (row.suites["alpha"].outcome, str(row.suites["alpha"].checks["criterion 1"])) == ("b", "1/1")
    row = night_of([trial(f"{number:04d}", fulfillment("P"), at=number) for number in range(MAX_TRIALS + 5)])
    assert row
    assert row.suites["alpha"].trials == MAX_TRIALS


@pytest.mark.parametrize(
    "tally", [{"passed": 2, "trials": 1}, {"passed": -1, "trials": 1}, {"passed": 1, "trials": MAX_TRIALS + 1}]
)
def test_impossible_counts_are_damage(tally: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"passed|greater|less"):
        Passes.model_validate(tally)
