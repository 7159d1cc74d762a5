"""Efficiency: the numbers, their witnesses, and the score made of them."""

from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import MODEL, records, safe, session, suite, transcript
from zelda_ci.domain.details import EfficiencyDetails
from zelda_ci.domain.run import EvalContext
from zelda_ci.domain.session import ApiUsage, Denied, ModelUsage, Retried, SessionStatus, SessionTranscript
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.metrics.base import Outcome, Scored, Unscored
from zelda_ci.metrics.efficiency import Efficiency

DONE = '"Done."'
# It needs none.
SERVICES: Any = None


def score_efficiency(resolved: ResolvedSuite, transcript: SessionTranscript, api: ApiUsage) -> Outcome:
    return anyio.run(Efficiency(SERVICES).evaluate, EvalContext(resolved, None, transcript, api, None))


def turns(number: int) -> tuple[str, ...]:
    return (*["Read a.py"] * (number - 1), DONE)


def targets(**values: float) -> ResolvedSuite:
    return suite(efficiencyTargets=values)


def scored(outcome: Outcome) -> float:
    assert isinstance(outcome, Scored)
    assert outcome.score is not None
    return outcome.score


def details(outcome: Outcome) -> EfficiencyDetails:
    assert isinstance(outcome.details, EfficiencyDetails)
    return outcome.details


def measured(transcript: SessionTranscript, api: ApiUsage | None = None) -> EfficiencyDetails:
    return details(score_efficiency(suite(), transcript, api or ApiUsage()))


@pytest.mark.parametrize(
    ("used", "allowed", "expected"),
    [(1, 30, 100), (3, 30, 93.33), (10, 30, 70), (30, 30, 3.33), (1, 1, 100), (9, 2, 0)],
)
def test_without_targets_each_turn_after_the_first_costs_the_same(used: int, allowed: int, expected: float) -> None:
    """Background work that ends later may add turns beyond the limit."""
    outcome = score_efficiency(suite(execution={"maxTurns": allowed}), session(*turns(used)), ApiUsage())
    assert scored(outcome) == pytest.approx(expected, abs=0.01)
    assert details(outcome).parts == {"maxTurns": scored(outcome)}


@pytest.mark.parametrize(("used", "expected"), [(5, 100), (10, 100), (20, 50), (40, 25)])
def test_a_part_has_full_marks_up_to_its_target_and_half_at_twice_the_target(used: int, expected: float) -> None:
    assert scored(score_efficiency(targets(turns=10), session(*turns(used)), ApiUsage())) == expected


def test_the_score_is_the_mean_of_the_parts_that_have_a_target_and_names_each() -> None:
    wanted = targets(costUsd=0.1, tokens=740, turns=4, durationSeconds=60)
    outcome = score_efficiency(wanted, session(*turns(4), cost=0.4, seconds=30), ApiUsage())
    assert details(outcome).parts == {"costUsd": 25, "tokens": 50, "turns": 100, "durationSeconds": 100}
    assert scored(outcome) == 68.75
    assert isinstance(outcome, Scored)
    parts = "session cost $0.4000 of $0.1000 (25.0), tokens 1,480 of 740 (50.0), turns 4 of 4 (100.0)"
    assert outcome.reasoning.startswith(f"{parts}, session time 30.0 s of 1m 00s (100.0).")
    nothing = score_efficiency(targets(costUsd=1, durationSeconds=1), session(DONE, cost=0, seconds=0), ApiUsage())
    assert scored(nothing) == 100


def test_a_guessed_cost_is_no_part_of_the_score() -> None:
    guessed = session(*turns(2), cost=9, cost_known=False)
    assert details(score_efficiency(targets(costUsd=1, turns=4), guessed, ApiUsage())).parts == {"turns": 100}
    outcome = score_efficiency(targets(costUsd=1), guessed, ApiUsage())
    assert isinstance(outcome, Unscored)
    assert outcome.reason == f"The cost is not known: no list price of {MODEL}."


@pytest.mark.parametrize("status", [SessionStatus.MAX_TURNS, SessionStatus.BUDGET_EXCEEDED, SessionStatus.TIMED_OUT])
def test_a_session_that_used_up_a_limit_scores_nothing(status: SessionStatus) -> None:
    outcome = score_efficiency(targets(turns=100), session(*turns(2), status=status), ApiUsage())
    assert scored(outcome) == 0
    assert details(outcome).turns == 2


@pytest.mark.parametrize(("status", "ended"), [(SessionStatus.FAILED, True), (SessionStatus.INTERRUPTED, False)])
def test_a_session_that_broke_off_has_numbers_but_no_score(status: SessionStatus, *, ended: bool) -> None:
    outcome = score_efficiency(targets(turns=100), session(*turns(2), status=status, ended=ended), ApiUsage())
    assert isinstance(outcome, Unscored)
    assert outcome.reason == "The session did not complete: It did not."
    assert details(outcome).usage.output_tokens == 40


PROXY = ApiUsage(requests=3, retries=2, models={"m": ModelUsage(output_tokens=500, cost_usd=0.7)}, api_seconds=4)


def test_two_counts_that_disagree_are_both_told() -> None:
    outcome = score_efficiency(suite(), session(DONE), PROXY)
    assert isinstance(outcome, Scored)
    assert outcome.reasoning.endswith("counted 370 tokens and the model proxy 500; the former are used.")


def test_a_session_without_a_result_message_is_counted_by_the_proxy_or_by_what_was_heard() -> None:
    found = measured(session(*turns(2), ended=False), PROXY)
    assert (found.counted_by, found.cost_usd, found.usage.total, found.api_seconds) == ("proxy", 0.7, 500, 4)
    found = measured(session(*turns(3), ended=False))
    assert (found.counted_by, found.usage.total, found.cost_known) == ("transcript", 3 * 370, False)


def test_what_came_after_the_last_result_message_is_counted_by_the_proxy() -> None:
    first, later = records("Read a.py"), records('"Late."', ended=False)
    late = [record.model_copy(update={"at": record.at + 100, "message_id": safe("late")}) for record in later[1:]]
    went_on = transcript([*first, *late])
    assert measured(went_on, PROXY).counted_by == "proxy"
    assert measured(went_on).counted_by == "claudeCode"


def test_tool_calls_are_counted_by_tool_and_named() -> None:
    steps = ("Read a.py + Read b.py", "Skill commit", "Skill", "Task tester", "> Grep x", "mcp__tickets__create x")
    assert measured(session(*steps)).tool_calls == {
        "Agent(tester)": 1,
        "Grep": 1,
        "Read": 2,
        "Skill": 1,
        "Skill(commit)": 1,
        "mcp__tickets__create": 1,
    }


def test_errors_and_denials_are_counted_apart_and_one_told_twice_is_one() -> None:
    found = measured(session("Bash a -> error", "Bash b -> denied", "Bash c", "Bash d -> nothing"))
    assert (found.tool_errors, found.denied_calls) == (1, 1)
    happened = records("Bash b -> denied")
    [told] = [record for record in happened if isinstance(record, Denied)]
    again = transcript([*happened, told, told.model_copy(update={"tool_call_id": None})])
    assert measured(again).denied_calls == 2


def test_retries_are_those_the_proxy_saw_or_else_those_claude_code_told() -> None:
    told = transcript([Retried(at=1, attempt=1, error=safe("overloaded")), *records(DONE)])
    assert measured(told).api_retries == 1
    assert measured(told, PROXY).api_retries == 2


@settings(deadline=None)
@given(st.floats(0, 1e6), st.floats(0, 1e6), st.floats(0.001, 1e6))
def test_using_more_never_scores_more(one: float, other: float, target: float) -> None:
    less, more = sorted([one, other])

    def at(cost: float) -> float:
        return scored(score_efficiency(targets(costUsd=target), session(DONE, cost=cost), ApiUsage()))

    assert 0 <= at(more) <= at(less) <= 100
