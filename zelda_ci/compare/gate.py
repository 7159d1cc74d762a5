"""The gate: which findings turn the check red. Regressions come from a comparison, failed evaluations from a batch."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import assert_never

from zelda_ci.compare.sides import LIMITS, Side, mean, sides
from zelda_ci.domain.comparison import (
    Comparison,
    CriterionDelta,
    GateReason,
    GateResult,
    MeasureDelta,
)
from zelda_ci.domain.measures import MEASURES
from zelda_ci.domain.outcome import Outcome, correctness_outcome
from zelda_ci.domain.run import BatchResult, RunResult
from zelda_ci.domain.session import SessionStatus
from zelda_ci.domain.suite import GateSettings, ScoreLimits

ENDINGS = {
    SessionStatus.MAX_TURNS: "ran out of turns",
    SessionStatus.BUDGET_EXCEEDED: "ran out of budget",
    SessionStatus.TIMED_OUT: "ran out of time",
}


def gate(judged: Comparison | BatchResult, settings: Mapping[str, GateSettings]) -> GateResult:
    """Every reason to turn the check red.

    Args:
        judged: A comparison is asked for regressions, a batch for evaluations that failed on their own.
        settings: By suite; a suite without settings has the defaults.
    """
    match judged:
        case Comparison():
            return GateResult(reasons=tuple(_regressions(judged, settings)))
        case BatchResult():
            return GateResult(reasons=(*_incomplete(judged.runs), *_evaluations(judged.runs, settings)))
        case _:
            assert_never(judged)


def missed_minimums(runs: Iterable[RunResult]) -> GateResult:
    """Scores that are lower than their suites, as they were configured when they ran, ask for."""
    settings = recorded_settings(runs := tuple(runs))
    asked = {name: chosen.min_score for name, chosen in settings.items() if "evaluation" in chosen.fail_on}
    reasons = [
        GateReason(kind="evaluation", suite=suite, sentence=f"{suite}: {finding}")
        for suite, side in sides(runs).items()
        if suite in asked and side.readings
        for finding in _minimums(side, asked[suite])
    ]
    return GateResult(reasons=tuple(reasons))


def recorded_settings(runs: Iterable[RunResult]) -> dict[str, GateSettings]:
    """The gate of each suite as its newest run was configured."""
    ordered = sorted(runs, key=lambda run: (run.started_at, run.run_id))
    return {run.suite: run.config.gate for run in ordered}


def _regressions(comparison: Comparison, settings: Mapping[str, GateSettings]) -> Iterator[GateReason]:
    for suite in comparison.suites:
        if "regression" in settings.get(suite.suite, GateSettings()).fail_on:
            deltas: list[MeasureDelta | CriterionDelta] = [*suite.criteria, *suite.measures]
            for delta in deltas:
                if delta.gates:
                    yield GateReason(kind="regression", suite=suite.suite, sentence=_regressed(suite.suite, delta))
    # One suite that opts out does not speak for all of them.
    if any("regression" in settings.get(suite.suite, GateSettings()).fail_on for suite in comparison.suites):
        for row in comparison.overall:
            if row.gates:
                yield GateReason(kind="regression", sentence=_regressed("all suites", row))


def _regressed(where: str, delta: MeasureDelta | CriterionDelta) -> str:
    assert delta.baseline is not None  # noqa: S101 - only deltas with both sides gate
    assert delta.candidate is not None  # noqa: S101
    old, new = delta.baseline.mean, delta.candidate.mean
    doubt = f" ({delta.reasons[0]})" if delta.reasons else ""
    match delta:
        case CriterionDelta():
            return f"{where}: criterion {delta.criterion!r} passed in {old:.0f} % of trials, now in {new:.0f} %{doubt}"
        case MeasureDelta():
            return f"{where}: {MEASURES[delta.measure].label} went from {_amount(old)} to {_amount(new)}{doubt}"


def _incomplete(runs: Iterable[RunResult]) -> Iterator[GateReason]:
    """Whatever the gate asks for: what was not judged must not pass for lack of evidence."""
    for suite, side in sides(runs).items():
        for found in [reading for reading in side.readings if not reading.is_complete][:1]:
            why = next((result.reasoning for result in found.run.evaluations.values() if result.failed), "not judged")
            sentence = f"{suite}: INCOMPLETE in {_of(side.trials.incomplete, side.trials.valid)}: {why}"
            yield GateReason(kind="incomplete", suite=suite, sentence=sentence)


def _evaluations(runs: Iterable[RunResult], settings: Mapping[str, GateSettings]) -> Iterator[GateReason]:
    for suite, side in sides(runs).items():
        chosen = settings.get(suite, GateSettings())
        if "evaluation" in chosen.fail_on and side.readings:
            for finding in (*_endings(side), *_minimums(side, chosen.min_score), *_failures(side, chosen.min_score)):
                yield GateReason(kind="evaluation", suite=suite, sentence=f"{suite}: {finding}")


def _endings(side: Side) -> Iterator[str]:
    for status in sorted(LIMITS):
        ended = side.trials.statuses.get(status, 0)
        if 2 * ended >= side.trials.valid:
            yield f"the session {ENDINGS[status]} in {_of(ended, side.trials.valid)}"


def _minimums(side: Side, limits: ScoreLimits) -> Iterator[str]:
    """Scores below what was asked for. A score that cannot be had is below: nothing vouches for it."""
    for measure, spec in MEASURES.items():
        least, values = spec.limit(limits), side.values(measure)
        if least is not None and not values:
            reason = side.unscored(measure) or "not computed"
            yield f"{spec.label} has no score though at least {_amount(least)} is required: {reason}"
        elif least is not None and mean(values) < least:
            yield f"{spec.label} is {_amount(mean(values))}, below the required {_amount(least)}"


def _failures(side: Side, limits: ScoreLimits) -> Iterator[str]:
    """Criteria without a required score, and commands, that fail in at least half of their trials."""
    if limits.requirement_fulfillment is None:
        for criterion in side.criteria:
            outcomes = side.outcomes(criterion)
            if _mostly(outcomes, lambda outcome: outcome == 0):
                yield f"criterion {criterion!r} failed in {_of(outcomes.count(0.0), len(outcomes))}"
    # A lower score that is enough says nothing of commands: one that fails is red beside any number.
    commands = [correctness_outcome(reading.run.evaluations) for reading in side.readings]
    failed, known = commands.count(Outcome.FAILED), len(commands) - commands.count(Outcome.MEASURED)
    if known and 2 * failed >= known:
        yield f"build, tests or coverage fell short in {_of(failed, known)}"


def _mostly(values: tuple[float, ...], fails: Callable[[float], bool]) -> bool:
    return bool(values) and 2 * sum(map(fails, values)) >= len(values)


def _of(part: int, whole: int) -> str:
    return f"{part} of {whole} trials" if whole > 1 else "the only trial"


def _amount(value: float) -> str:
    return f"{value:,.1f}" if abs(value) >= 1 else f"{value:.3g}"
