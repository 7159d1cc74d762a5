"""The gate: which findings turn the check red. Regressions come from a comparison, failed evaluations from a batch."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

from zelda_ci.compare.inference import ALPHA, of_pass_rates, pass_rate_test, significant
from zelda_ci.compare.sides import LIMITS, RunMetrics, SuiteSide, mean, mostly, sides, summarize
from zelda_ci.domain import comparison as findings
from zelda_ci.domain.comparison import Acceptance, Comparison, GateReason, GateResult, criterion_of
from zelda_ci.domain.details import CorrectnessDetails
from zelda_ci.domain.measures import MEASURES, Measure
from zelda_ci.domain.outcome import Outcome, correctness_outcome, run_outcome
from zelda_ci.domain.run import BatchResult, RunResult
from zelda_ci.domain.suite import GateSettings, ScoreLimits
from zelda_ci.domain.trials import DoneReason

NONE = SuiteSide()


def gate(
    batch: BatchResult,
    settings: Mapping[str, GateSettings],
    comparison: Comparison | None = None,
    stored: Iterable[RunResult] = (),
) -> GateResult:
    """Return every reason to turn the check red, as `settings` by suite ask for it; each other failure with its excuse.

    Red is what is proven to be worse than the base, what must hold whatever the base does (commands that pass on the
    base, required scores, criteria that are marked so), and what could not be run or judged. Stored trials speak for
    suites whose base did not run beside the head.
    """
    unpaid = (
        findings.NotRun(suite=each.suite, trials=each.unpaid, made=each.head, why=batch.ended or findings.BUDGET_ENDED)
        for each in batch.unpaid
    )
    regressions = tuple(_regressions(comparison, settings)) if comparison else ()
    proven = {(each.suite, name) for each in regressions if (name := criterion_of(each)) is not None}
    heads, beside = sides(batch.runs), sides(batch.base_runs)
    known = {**sides(stored), **beside}
    reasons: list[GateReason] = []
    uncounted: list[findings.UncountedReason] = []
    for reason in _evaluations(heads, settings):
        suite = reason.suite
        listed = _excuse(reason, heads[suite], known.get(suite, NONE), beside.get(suite, NONE), ALPHA / len(heads))
        if listed is None:
            reasons.append(reason)
        elif listed.because is not findings.Uncounted.NOT_PROVEN or (suite, criterion_of(reason)) not in proven:
            uncounted.append(listed)
    return GateResult(
        reasons=(*_plugins(heads, known), *regressions, *unpaid, *_not_compared(batch), *_not_judged(heads), *reasons),
        uncounted=tuple(uncounted),
    )


def failures(batch: BatchResult, settings: Mapping[str, GateSettings]) -> GateResult:
    """Return what fails in a batch that is not part of a comparison: there every failure is red."""
    heads = sides(batch.runs)
    return GateResult(reasons=(*_not_judged(heads), *_evaluations(heads, settings)))


def missed_minimums(runs: Iterable[RunResult]) -> GateResult:
    """Scores that are lower than their suites, as they were configured when they ran, ask for."""
    wanted = ((side, side.newest.config.gate) for side in sides(runs).values() if side.readings)
    found = (_minimums(side, chosen.min_score) for side, chosen in wanted if "evaluation" in chosen.fail_on)
    return GateResult(reasons=tuple(finding for each in found for finding in each))


def recorded_settings(runs: Iterable[RunResult]) -> dict[str, GateSettings]:
    """The gate of each suite as its newest run was configured."""
    return {suite: side.newest.config.gate for suite, side in sides(runs).items()}


def _regressions(comparison: Comparison, settings: Mapping[str, GateSettings]) -> Iterator[findings.Regression]:
    gated = [suite for suite in comparison.suites if "regression" in settings.get(suite.suite, GateSettings()).fail_on]
    for suite in gated:
        yield from (findings.Regression(suite=suite.suite, delta=each) for each in suite.criteria if each.gates)
        yield from (findings.Regression(suite=suite.suite, delta=each) for each in suite.measures if each.gates)
    # One suite that opts out does not speak for all of them.
    yield from (findings.Regression(suite=None, delta=row) for row in comparison.overall if gated and row.gates)


def _plugins(heads: Mapping[str, SuiteSide], bases: Mapping[str, SuiteSide]) -> list[findings.NotLoaded]:
    """Plugins that no trial of the head has whole, although a trial of the base has them, or none knows of them."""
    found: dict[tuple[str, str], str] = {}
    for suite in sorted(heads.keys() & bases.keys()):
        here, before = (_plugin_problems(side.readings) for side in (heads[suite], bases[suite]))
        if here is not None and before is not None:
            found |= {key: f"not loaded, {key[1]}: {problem}" for key, problem in here.items() if key not in before}
    return [findings.NotLoaded(file=file, effect=effect) for (file, _), effect in found.items()]


def _plugin_problems(trials: Sequence[RunMetrics]) -> dict[tuple[str, str], str] | None:
    """What is wrong in every trial with a plugin that the project wants, by file and name; nothing without trials."""
    steering = (trial.run.steering or () for trial in trials)
    each = [{(use.unit.path, use.unit.name): use.problem for use in uses if use.problem} for uses in steering]
    return {key: each[-1][key] for key in each[-1] if all(key in problems for problems in each)} if each else None


def _not_judged(heads: Mapping[str, SuiteSide]) -> Iterator[findings.NotJudged]:
    """Whatever the gate asks for: what was not judged must not pass for lack of evidence."""
    for suite, side in heads.items():
        for run in [it.run for it in side.readings if run_outcome(it.run) is Outcome.INCOMPLETE][:1]:
            reason = next((result.reasoning for result in run.evaluations.values() if result.failed), "not judged")
            yield findings.NotJudged(suite=suite, trials=side.trials.incomplete, of=side.trials.valid, reason=reason)


def _not_compared(batch: BatchResult) -> Iterator[findings.NotJudged]:
    """Suites that look worse and whose base could not be run: without it nobody knows whether they are."""
    for suite in (each.suite for each in batch.arms if each.reason is DoneReason.FAILED):
        base = [run for run in batch.base_runs if run.suite == suite]
        if failed := [run for run in base if not run.status.is_valid]:
            problem = failed[-1].failure.message if failed[-1].failure else "they ended early"
            reason = f"sessions of the base failed, so nothing could be compared: {problem}"
            yield findings.NotJudged(suite=suite, trials=len(failed), of=len(base), reason=reason)


def _excuse(
    reason: findings.Evaluation, head: SuiteSide, base: SuiteSide, beside: SuiteSide, alpha: float
) -> findings.UncountedReason | None:
    """Return why a failure of the head does not turn the check red, or nothing where it does."""
    # Trials of the base are stored ones where none ran `beside` the head's. Equal sides may be told apart with `alpha`.
    excuse = partial(findings.UncountedReason, reason=reason)
    on_base = excuse(because=findings.Uncounted.ON_BASE)
    if isinstance(reason, findings.CommandsFailed):
        (commands, short), (others, known) = map(_commands, (head, base))
        return on_base if commands == others and short <= known else None
    if isinstance(reason, findings.BelowMinimum):
        values = base.values(reason.measure) if reason.mean is not None else ()
        return on_base if values and mean(values) < reason.minimum else None
    if isinstance(reason, findings.CriterionFailed):
        if reason.criterion in head.readings[-1].run.config.required:
            return None
        old, new = (side.outcomes(reason.criterion) for side in (base, head))
    else:
        near, old, new = (
            tuple(100.0 * (trial.run.status is not reason.status) for trial in side.readings)
            for side in (beside, base, head)
        )
        if near and significant(pass_rate_test(near, new).lower.p, alpha):
            return None
    if not old:
        return excuse(because=findings.Uncounted.NO_BASE)
    if mostly(old.count(0.0), len(old)):
        return on_base
    interval = of_pass_rates(old, new) if min(len(old), len(new)) > 1 else None
    return excuse(because=findings.Uncounted.NOT_PROVEN, baseline=summarize(old), interval=interval)


def _commands(side: SuiteSide) -> tuple[set[object], set[str]]:
    """The commands of a side's trials, and those of build, tests and coverage that fell short in some of them."""
    runs, short = [reading.run for reading in side.readings], set[str]()
    for run in (run for run in runs if correctness_outcome(run) is Outcome.FAILED):
        details = run.details(CorrectnessDetails) or CorrectnessDetails(passed=False)
        named = {"build": details.build, "tests": details.test}
        failed = {name for name, command in named.items() if command and command.exit_code != 0}
        if details.tests and details.tests.failed + details.tests.errored:
            failed.add("tests")
        # Where no command failed, something else about them did: coverage, or what an older result does not name.
        short |= failed or {"coverage"}
    configs = [run.config for run in runs]
    return {(each.build_command, each.test_command, each.coverage_threshold) for each in configs}, short


def _evaluations(heads: Mapping[str, SuiteSide], settings: Mapping[str, GateSettings]) -> Iterator[findings.Evaluation]:
    for suite, side in heads.items():
        chosen = settings.get(suite, GateSettings())
        if "evaluation" not in chosen.fail_on or not side.readings:
            continue
        for status in sorted(LIMITS):
            trials = side.trials.statuses.get(status, 0)
            if mostly(trials, side.trials.valid):
                yield findings.EndedAtLimit(suite=suite, status=status, trials=trials, of=side.trials.valid)
        yield from _minimums(side, chosen.min_score)
        # Where a score is required instead, single criteria may fail.
        for criterion in side.criteria if chosen.min_score.of(Measure.REQUIREMENT_FULFILLMENT) is None else ():
            outcomes = side.outcomes(criterion)
            if mostly(failed := outcomes.count(0.0), len(outcomes)):
                yield findings.CriterionFailed(suite=suite, criterion=criterion, trials=failed, of=len(outcomes))
        # A lower score that is enough says nothing of commands: one that fails is red beside any number.
        failed, counted = side.commands
        if mostly(failed, counted):
            yield findings.CommandsFailed(suite=suite, trials=failed, of=counted)


def _minimums(side: SuiteSide, limits: ScoreLimits) -> Iterator[findings.BelowMinimum]:
    for measure in MEASURES:
        minimum, values = limits.of(measure), side.values(measure)
        if minimum is not None and (not values or mean(values) < minimum):
            found, why = (mean(values), None) if values else (None, side.unscored(measure) or "not computed")
            suite = side.newest.suite
            yield findings.BelowMinimum(suite=suite, measure=measure, minimum=minimum, mean=found, reason=why)


# --- what somebody has accepted on a pull request ---------------------------------------------------------------------


def failing_criteria(runs: Iterable[RunResult], suite: str) -> Mapping[int, str] | None:
    """The criteria of a suite that were not met in some trial, by their number in it; absent without a valid trial."""
    side = sides(runs).get(suite)
    return _failing(side) if side and side.readings else None


def _failing(side: SuiteSide) -> dict[int, str]:
    return {place: name for place, name in enumerate(side.criteria, 1) if 0.0 in side.outcomes(name)}


def is_about_criteria(found: GateResult) -> bool:
    return any(criterion_of(reason) is not None or _is_score(reason) for reason in found.reasons)


def accept(
    found: GateResult, acceptances: Sequence[Acceptance], comparison: Comparison | None, runs: Iterable[RunResult]
) -> GateResult:
    """The gate's result with what was accepted taken out of its reasons; `runs` are all trials of the tested files.

    An acceptance covers its criterion as long as that has the same text, and the score that the criteria make where
    everything that lowers it is accepted. Nothing else: no command, no limit, no cost, nothing that was not judged.
    """
    accepted = {(each.suite, each.criterion): each for each in reversed(acceptances)}
    heads = sides(runs) if accepted else {}
    left: list[GateReason] = []
    noted = [*found.accepted]
    for reason in found.reasons:
        criterion = criterion_of(reason)
        about = [(reason.suite or "", criterion)] if criterion is not None else _lowering(reason, comparison, heads)
        by = [accepted.get(each) for each in about]
        if by and by[0] and all(by):
            noted.append(findings.AcceptedReason(reason=reason, acceptance=by[0]))
        else:
            left.append(reason)
    return found.replace(reasons=tuple(left), accepted=tuple(noted))


def _lowering(
    reason: GateReason, comparison: Comparison | None, heads: Mapping[str, SuiteSide]
) -> Iterator[tuple[str, str]]:
    """The criteria without which a score that a finding is about would be full: those that became worse, if at all."""
    if not _is_score(reason):
        return
    if isinstance(reason, findings.BelowMinimum):
        yield from ((reason.suite, name) for name in _failing(heads.get(reason.suite, NONE)).values())
        return
    for compared in comparison.suites if comparison else ():
        for delta in compared.criteria if reason.suite in {None, compared.suite} else ():
            new = delta.candidate if delta.baseline is None else None
            if delta.effect == "worse" or (new and new.mean < 100):
                yield compared.suite, delta.criterion


def _is_score(reason: GateReason) -> bool:
    """Whether it is about the score that criteria make; one that is missing says nothing of them."""
    if isinstance(reason, findings.BelowMinimum):
        return reason.measure is Measure.REQUIREMENT_FULFILLMENT and reason.mean is not None
    delta = reason.delta if isinstance(reason, findings.Regression) else None
    return isinstance(delta, findings.MeasureDelta) and delta.measure is Measure.REQUIREMENT_FULFILLMENT
