"""Suites go on by themselves, and money that is promised to one is not spent on another."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import pytest

from tests.builders import safe
from tests.unit.compare.runs import efficiency, fulfillment, judged, trials
from zelda_ci.domain.run import Failure, RunResult, StoredTrials
from zelda_ci.domain.session import ApiUsage, ModelUsage
from zelda_ci.domain.suite import NAME
from zelda_ci.domain.trials import Side, TrialPlan, TrialPrice
from zelda_ci.events import Event
from zelda_ci.pipeline.batch import refused
from zelda_ci.pipeline.planning import Budget, PlannedRun, Rounds, label_of


def rounds_of(
    *names: str,
    budget: Budget | None = None,
    emitted: list[Event] | None = None,
    stored: Mapping[str, StoredTrials] | None = None,
) -> Rounds:
    suites = [judged("P", suite=name)[0].config.replace(name=name, trials=TrialPlan()) for name in names]
    emit = (lambda _: None) if emitted is None else emitted.append
    return Rounds(suites, emit, budget or Budget(), stored or {}, sides=2)


def ran(planned: PlannedRun, verdict: str) -> RunResult:
    (result,) = judged(verdict, suite=planned.suite.name, label=planned.label)
    return result.replace(trial=planned.trial, side=planned.side)


def of(planned: Sequence[PlannedRun], suite: str) -> list[PlannedRun]:
    return [each for each in planned if each.suite.name == suite]


def test_a_suite_goes_on_while_another_is_still_in_its_round() -> None:
    rounds = rounds_of("fallen", "slow")
    first = rounds.next()
    assert [each.label for each in first] == [
        f"{suite}@{number}" for number in (1, 2, 3) for suite in ("fallen", "slow")
    ]
    *early, last = of(first, "fallen")
    for each in early:
        rounds.take(each, ran(each, "F"))
        assert rounds.next() == []
    rounds.take(last, ran(last, "F"))
    more = rounds.next()
    assert {(each.suite.name, each.look) for each in more} == {("fallen", 2)}
    assert [each.side for each in more[:6]] == [Side.HEAD, Side.BASE] * 3
    # It is proven there while the other one has not ended a single trial.
    for each in more:
        assert rounds.next() == []
        rounds.take(each, ran(each, "F" if each.side is Side.HEAD else "P"))
    assert rounds.next() == []
    assert {arms.suite: arms.reason for arms in rounds.ends()} == {"fallen": "regressed", "slow": "interrupted"}


def paid(rounds: Rounds, budget: Budget, planned: Sequence[PlannedRun], end: Callable[[PlannedRun], RunResult]) -> None:
    for each in planned:
        assert budget.start(each.suite.name)
        budget.finish(each.suite.name, None)
        budget.spent_usd += 1.0
        rounds.take(each, end(each))


@pytest.mark.parametrize(("sessions", "together"), [(35, True), (34, False)])
def test_a_suite_waits_where_its_look_would_take_the_money_that_decides_another(sessions: int, together: bool) -> None:  # noqa: FBT001
    """Three trials of the one, and 32 to the look at 16 and 16 that decides most of the other: 35."""
    budget = Budget(float(sessions), {name: TrialPrice(usual=1.0, most=1.0, trials=3) for name in ("one", "other")})
    rounds = rounds_of("one", "other", budget=budget)
    first = rounds.next()
    assert bool(of(first, "other")) is together
    paid(rounds, budget, of(first, "one"), partial(ran, verdict="P"))
    assert bool(of(rounds.next(), "other")) is not together
    assert not budget.skipped


def test_money_for_half_of_the_suites_decides_one_instead_of_looking_at_all() -> None:
    """Of ten suites the first looks at three leave what the one of them needs that fails."""
    names = [f"suite-{number}" for number in range(10)]
    budget = Budget(40.0, {name: TrialPrice(usual=1.0, most=1.0, trials=3) for name in names})
    rounds = rounds_of(*names, budget=budget)
    first = rounds.next()
    assert len(first) == 9
    fallen = names[0]
    for name in names[:3]:
        paid(rounds, budget, of(first, name), partial(ran, verdict="F" if name == fallen else "P"))
    while planned := of(rounds.next(), fallen):
        planned.sort(key=lambda each: each.side is Side.BASE)
        paid(rounds, budget, planned, lambda each: ran(each, "F" if each.side is Side.HEAD else "P"))
    assert {arms.suite: arms.reason for arms in rounds.ends()}[fallen] == "regressed"


def test_trials_that_the_money_ended_before_end_their_suite() -> None:
    rounds = rounds_of("fallen", budget=(budget := Budget(1.0)))
    for each in rounds.next():
        budget.skipped[each.suite.name] += 1
        rounds.take(each, None)
    assert rounds.next() == []
    (end,) = rounds.ends()
    assert (end.reason, end.unpaid) == ("budget", 3)


def test_no_two_runs_of_an_invocation_have_one_label() -> None:
    """Cassettes are found by it: a suite may be called like another's base side, trial or judge."""
    suites = ("a", "a-1", "a-base", "a-base-1", "a.judge", "a-1.judge")
    labels = [label_of(suite, trial, side) for suite in suites for trial in (1, 2, 11) for side in Side]
    files = [f"{label}{judge}" for label in (*suites, *labels) for judge in ("", "@judge")]
    assert len({file.casefold() for file in files}) == len(files)
    assert not any(re.fullmatch(NAME, label) for label in labels)


def costing(planned: PlannedRun | str, usd: float, number: int = 0) -> RunResult:
    name, label = (planned, f"{number}") if isinstance(planned, str) else (planned.suite.name, planned.label)
    (run,) = trials([fulfillment("P"), efficiency(cost=usd)], suite=name, label=label)
    return run if isinstance(planned, str) else run.replace(trial=planned.trial, side=planned.side)


@pytest.mark.parametrize(("usd", "limit", "beside"), [(0.1, None, 0), (0.2, None, 3), (0.2, 8.0, 0)])
def test_once_all_suites_are_decided_the_base_runs_in_all_or_none_for_numbers_over_all_of_them(
    usd: float, limit: float | None, beside: int
) -> None:
    """Six trials come first, and money for fewer than six more is spent on none, which leaves nothing unpaid."""
    names = ("one", "two")
    budget = Budget(limit, {name: TrialPrice(usual=1.0, most=1.0, trials=3) for name in names})
    stored = {name: StoredTrials(stored=tuple(costing(name, 0.1, number) for number in range(20))) for name in names}
    rounds = rounds_of(*names, budget=budget, stored=stored)
    sides: Counter[tuple[str, Side]] = Counter()
    while planned := rounds.next():
        sides.update((each.suite.name, each.side) for each in planned)
        paid(rounds, budget, planned, lambda each: costing(each, usd))
    assert {(name, side): sides[name, side] for name in names for side in Side} == {
        (name, side): count for name in names for side, count in ((Side.HEAD, 3), (Side.BASE, beside))
    }
    assert {(arms.reason, arms.unpaid) for arms in rounds.ends()} == {("asExpected", 0)}


def test_a_refused_key_ends_every_suite_and_what_was_not_begun_is_noted() -> None:
    """Of a session or of its judge; a replay asks nobody, and what one run met alone ends nothing."""
    budget = Budget()
    rounds = rounds_of("fallen", "slow", budget=budget)
    planned = rounds.next()
    result = ran(planned[0], "P")
    refused_key = Failure(code="AUTHENTICATION_FAILED", message=safe("401"))
    by_judge = {
        metric: each.replace(failed=True, code="JUDGE_BILLING_FAILED") for metric, each in result.evaluations.items()
    }
    assert refused(result.replace(failure=refused_key.replace(code="CLI_KILLED"))) is None
    assert refused(result.replace(failure=refused_key, replayed=True)) is None
    assert refused(result.replace(evaluations=by_judge)) == "the judge's account could not pay"
    denied, answered = refused_key.replace(code="ACCESS_DENIED"), ModelUsage()
    api = ApiUsage(requests=1, errors={"403": 1})
    assert refused(result.replace(failure=denied, api=api)) == "the API denied access"
    # By Zelda itself, which counts no such request; or one request among others.
    assert refused(result.replace(failure=denied, api=ApiUsage())) is None
    assert refused(result.replace(failure=denied, api=api.replace(models={"claude-sonnet-5-5": answered}))) is None
    budget.closed = refused(result.replace(failure=refused_key))
    assert budget.closed == "the API refused the key"
    rounds.take(planned[0], result)
    for each in planned[1:]:
        assert not budget.start(each.suite.name)
        rounds.take(each, None)
    assert rounds.next() == []
    assert {arms.suite: (arms.reason, arms.unpaid) for arms in rounds.ends()} == {
        "fallen": ("ended", 2),
        "slow": ("ended", 3),
    }
