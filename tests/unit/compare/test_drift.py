"""What fell without anybody's commit: found, followed, over, and rarely claimed in vain."""

from typing import Any

import pytest

from tests.unit.compare.nights import PLATFORM, history_of, night
from tests.unit.compare.runs import correctness, fulfillment, run
from zelda_ci.compare.drift import (
    MAX_NIGHTS,
    MONTHLY_ALPHA,
    NIGHTLY_ALPHA,
    merged,
    night_of,
    watch,
    with_night,
)
from zelda_ci.domain.nights import MIN_NIGHTS, WINDOW, Night, NightlyHistory, Passes
from zelda_ci.domain.run import Fingerprint, RunResult
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
BAD = nights(*["PF"] * 5, first=12)


def told(history: NightlyHistory) -> list[tuple[str, str, str, str]]:
    return [(drift.suite, drift.check, str(drift.before), str(drift.lately)) for drift in history.drifts]


def test_a_check_that_falls_is_named_with_what_lies_between() -> None:
    fallen = nights(*["PF"] * 4, first=12, platform=NEW, tree="other")
    (drift,) = history_of([*GOOD, *fallen]).drifts
    assert (drift.suite, drift.check, str(drift.before), str(drift.after)) == ("s", "c1", "36/36", "0/12")
    assert (drift.platform_before["cli"], drift.platform_after["cli"]) == ("2.1.329", "2.1.330")
    assert drift.since == fallen[0].at
    assert drift.p <= NIGHTLY_ALPHA == pytest.approx(MONTHLY_ALPHA / 31)
    assert drift.code_changed
    assert (drift.commit_before, drift.commit_after) == (GOOD[-1].commit, fallen[0].commit)


def test_a_bad_night_or_three_are_no_drift_however_many_trials_they_had() -> None:
    """Trials of one night fail together where nights differ, so a night counts once."""
    for trials in (1, 3, 100):
        assert history_of([*GOOD, *nights("PF", "PF", "PF", first=12, trials=trials)]).drifts == ()


def test_twelve_nights_are_the_fewest_in_which_a_fall_can_be_seen() -> None:
    for good in range(12):
        found = history_of([*GOOD[:good], *nights(*["PF"] * 5, first=good)]).drifts
        assert bool(found) == (good + 5 >= MIN_NIGHTS), good


def test_a_drift_stays_until_most_of_it_is_made_good() -> None:
    fallen = history_of([*GOOD, *BAD])
    assert told(fallen) == [("s", "c1", "36/36", "0/15")]
    number = 17
    history = fallen
    while history.drifts:
        history = watch(with_night(history, nights("PP", first=number)[0]))
        number += 1
    # Five nights are looked at: four of them good is enough.
    assert number == 21
    assert watch(with_night(history, nights("PP", first=number)[0])).drifts == ()


def test_a_drift_is_none_and_is_over_where_files_or_criteria_were_changed() -> None:
    assert history_of([*GOOD, *nights(*["PF"] * 5, first=12, outcome="another state")]).drifts == ()
    fallen = history_of([*GOOD, *BAD])
    assert fallen.drifts
    for later in (nights("PF", first=17, outcome="edited"), nights("P", first=17)):
        assert watch(with_night(fallen, later[0])).drifts == ()


def test_a_suite_that_is_gone_is_waited_for_a_few_nights_only() -> None:
    history = history_of([*GOOD, *BAD])
    waited = 0
    # As long the drift stays what it was.
    assert watch(with_night(history, night(17, {"other": {"c0": (1, 1)}}))).drifts == history.drifts
    while history.drifts:
        waited += 1
        history = watch(with_night(history, night(16 + waited, {"other": {"c0": (1, 1)}})))
    assert waited == WINDOW


def test_nights_are_bounded_merged_once_each_and_never_of_the_future() -> None:
    many = nights(*["P"] * (MAX_NIGHTS + 5))
    history = NightlyHistory()
    for each in many:
        history = with_night(history, each)
    assert history.nights == tuple(many[5:])
    older = NightlyHistory(nights=tuple(many[:3]), drifts=())
    newer = NightlyHistory(nights=tuple(many[2:6]), drifts=history_of([*GOOD, *BAD]).drifts)
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
