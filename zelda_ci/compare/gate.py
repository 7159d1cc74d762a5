"""The gate: which findings turn the check red. Regressions come from a comparison, failed evaluations from a batch."""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import assert_never

from zelda_ci.compare.sides import LIMITS, SuiteSide, mean, mostly, sides
from zelda_ci.domain.comparison import (
    BelowMinimum,
    CommandsFailed,
    Comparison,
    CriterionDelta,
    CriterionFailed,
    EndedAtLimit,
    GateReason,
    GateResult,
    MeasureDelta,
    NotJudged,
    NotRun,
    Regression,
)
from zelda_ci.domain.measures import MEASURES, Measure
from zelda_ci.domain.run import BatchResult, RunResult
from zelda_ci.domain.suite import GateSettings, ScoreLimits


def gate(judged: Comparison | BatchResult, settings: Mapping[str, GateSettings]) -> GateResult:
    """Every reason to turn the check red.

    Args:
        judged: A comparison is asked for regressions, a batch for evaluations that failed on their own. What failed
            in the same way on the base, which ran beside the batch, is no reason.
        settings: By suite; a suite without settings has the defaults.
    """
    match judged:
        case Comparison():
            return GateResult(reasons=tuple(_regressions(judged, settings)))
        case BatchResult():
            unpaid = (NotRun(suite=each.suite, trials=each.unpaid, made=each.head) for each in judged.unpaid)
            reasons, on_base = _beside_base(judged, settings)
            return GateResult(reasons=(*unpaid, *_not_judged(judged.runs), *reasons), on_base=on_base)
        case _:
            assert_never(judged)


def joined(*results: GateResult) -> GateResult:
    """All findings of several."""
    return GateResult(
        reasons=tuple(reason for result in results for reason in result.reasons),
        on_base=tuple(reason for result in results for reason in result.on_base),
        accepted=tuple(noted for result in results for noted in result.accepted),
    )


def missed_minimums(runs: Iterable[RunResult]) -> GateResult:
    """Scores that are lower than their suites, as they were configured when they ran, ask for."""
    settings = recorded_settings(runs := tuple(runs))
    minimums = {name: chosen.min_score for name, chosen in settings.items() if "evaluation" in chosen.fail_on}
    reasons = [
        finding
        for suite, side in sides(runs).items()
        if suite in minimums and side.readings
        for finding in _minimums(side, minimums[suite])
    ]
    return GateResult(reasons=tuple(reasons))


def recorded_settings(runs: Iterable[RunResult]) -> dict[str, GateSettings]:
    """The gate of each suite as its newest run was configured."""
    ordered = sorted(runs, key=lambda run: (run.started_at, run.run_id))
    return {run.suite: run.config.gate for run in ordered}


def _regressions(comparison: Comparison, settings: Mapping[str, GateSettings]) -> Iterator[Regression]:
    gated = [suite for suite in comparison.suites if "regression" in settings.get(suite.suite, GateSettings()).fail_on]
    for suite in gated:
        deltas: list[MeasureDelta | CriterionDelta] = [*suite.criteria, *suite.measures]
        yield from (Regression(suite=suite.suite, delta=delta) for delta in deltas if delta.gates)
    # One suite that opts out does not speak for all of them.
    if gated:
        yield from (Regression(suite=None, delta=row) for row in comparison.overall if row.gates)


def _not_judged(runs: Iterable[RunResult]) -> Iterator[NotJudged]:
    """Whatever the gate asks for: what was not judged must not pass for lack of evidence."""
    for suite, side in sides(runs).items():
        for metrics in [metrics for metrics in side.readings if not metrics.is_complete][:1]:
            reasons = (result.reasoning for result in metrics.run.evaluations.values() if result.failed)
            reason = next(reasons, "not judged")
            yield NotJudged(suite=suite, trials=side.trials.incomplete, of=side.trials.valid, reason=reason)


def _beside_base(
    batch: BatchResult, settings: Mapping[str, GateSettings]
) -> tuple[tuple[GateReason, ...], tuple[GateReason, ...]]:
    """What failed on the head alone, and what failed on the base, too, by the same rules in the same job."""
    heads, bases = sides(batch.runs), sides(batch.base_runs)
    known = {_cause(reason) for reason in _evaluations(batch.base_runs, settings)}
    alone: list[GateReason] = []
    on_base: list[GateReason] = []
    for reason in _evaluations(batch.runs, settings):
        is_same = _cause(reason) in known and _is_comparable(reason, heads, bases)
        (on_base if is_same else alone).append(reason)
    return tuple(alone), tuple(on_base)


def _cause(reason: GateReason) -> Hashable:
    """What failed, however often."""
    match reason:
        case CriterionFailed():
            what: Hashable = reason.criterion
        case EndedAtLimit():
            what = reason.status
        case BelowMinimum():
            # A score that is missing says nothing of the platform.
            what = (reason.measure, None if reason.mean is None else reason.minimum)
        case _:
            what = None
    return (type(reason), reason.suite, what)


def _is_comparable(reason: GateReason, heads: Mapping[str, SuiteSide], bases: Mapping[str, SuiteSide]) -> bool:
    """Whether the same command or score fell short on both sides; criteria and limits are the same by name."""
    if isinstance(reason, BelowMinimum):
        return reason.mean is not None
    if not isinstance(reason, CommandsFailed):
        return True
    head, base = heads[reason.suite], bases[reason.suite]
    known = {name for name, failed in base.commands_short.items() if mostly(failed, base.commands[1])}
    return _commands(head) == _commands(base) and set(head.commands_short) <= known


def _commands(side: SuiteSide) -> set[Hashable]:
    configs = (reading.run.config for reading in side.readings)
    return {(config.build_command, config.test_command, config.coverage_threshold) for config in configs}


def _evaluations(runs: Iterable[RunResult], settings: Mapping[str, GateSettings]) -> Iterator[GateReason]:
    for suite, side in sides(runs).items():
        gate_settings = settings.get(suite, GateSettings())
        if "evaluation" in gate_settings.fail_on and side.readings:
            yield from _ends_at_limits(side)
            yield from _minimums(side, gate_settings.min_score)
            if gate_settings.min_score.of(Measure.REQUIREMENT_FULFILLMENT) is None:
                yield from _failed_criteria(side)
            yield from _failed_commands(side)


def _ends_at_limits(side: SuiteSide) -> Iterator[EndedAtLimit]:
    for status in sorted(LIMITS):
        trials = side.trials.statuses.get(status, 0)
        if mostly(trials, side.trials.valid):
            yield EndedAtLimit(suite=side.suite, status=status, trials=trials, of=side.trials.valid)


def _minimums(side: SuiteSide, limits: ScoreLimits) -> Iterator[BelowMinimum]:
    for measure in MEASURES:
        minimum, values = limits.of(measure), side.values(measure)
        if minimum is None:
            continue
        if not values:
            reason = side.unscored(measure) or "not computed"
            yield BelowMinimum(suite=side.suite, measure=measure, minimum=minimum, mean=None, reason=reason)
        elif mean(values) < minimum:
            yield BelowMinimum(suite=side.suite, measure=measure, minimum=minimum, mean=mean(values))


def _failed_criteria(side: SuiteSide) -> Iterator[CriterionFailed]:
    """Where a score is required instead, single criteria may fail."""
    for criterion in side.criteria:
        outcomes = side.outcomes(criterion)
        failed = outcomes.count(0.0)
        if mostly(failed, len(outcomes)):
            yield CriterionFailed(suite=side.suite, criterion=criterion, trials=failed, of=len(outcomes))


def _failed_commands(side: SuiteSide) -> Iterator[CommandsFailed]:
    """A lower score that is enough says nothing of commands: one that fails is red beside any number."""
    failed, counted = side.commands
    if mostly(failed, counted):
        yield CommandsFailed(suite=side.suite, trials=failed, of=counted)
