"""A against A: how much a suite varies when nothing changes, and what its comparisons can therefore tell."""

from collections.abc import Iterable
from math import inf, sqrt

from zelda_ci.compare.compatibility import measure_obstacles, session_obstacles
from zelda_ci.compare.multiplicity import ALPHA
from zelda_ci.compare.power import detectable_difference, detectable_pass_drop, student_t_quantile
from zelda_ci.compare.sides import SuiteSide, sides, summarize
from zelda_ci.domain.comparison import Calibration, CriterionNoise, MeasureNoise, TrialStatistics
from zelda_ci.domain.measures import Measure
from zelda_ci.domain.run import RunResult

TRIALS = (1, 3, 5, 10)


def calibrate(runs: Iterable[RunResult]) -> tuple[Calibration, ...]:
    """The noise of each suite from trials of one commit; what was not measured twice is left out."""
    return tuple(_calibration(side) for side in sides(runs).values())


def flip_rate(passed: int, trials: int) -> float:
    """Share of pairs among the trials that disagree, in percent: the unbiased estimate of 2 p (1 - p)."""
    return 100 * passed * (trials - passed) / (trials * (trials - 1) / 2)


def criterion_noise(calibration: Calibration, criterion: str) -> float:
    """The change between two single runs that is no longer noise: any, or none where the criterion wavers."""
    rates = (noise.passes.mean / 100 for noise in calibration.criteria if noise.criterion == criterion)
    return next((inf if _wavers(rate) else 0.0 for rate in rates), 0.0)


def measure_noise(calibration: Calibration, measure: Measure) -> float:
    """The change between two single runs that is no longer noise."""
    return next((noise.detectable.get(1, 0.0) for noise in calibration.measures if noise.measure is measure), 0.0)


def _wavers(rate: float) -> bool:
    """Whether one trial passes and the next one fails too often by chance: with probability p (1 - p)."""
    return rate * (1 - rate) > ALPHA


def _calibration(side: SuiteSide) -> Calibration:
    criteria = {name: repeated for name in side.criteria if (repeated := _repeated(side.outcomes(name)))}
    measures = {measure: repeated for measure in Measure if (repeated := _repeated(side.values(measure)))}
    varying = sum(bool(repeated.deviation) for repeated in (*criteria.values(), *measures.values()))
    level = ALPHA / max(1, varying)
    return Calibration(
        suite=side.suite,
        trials=side.trials,
        hypotheses=varying,
        criteria=tuple(_criterion_noise(name, repeated, level) for name, repeated in criteria.items()),
        measures=tuple(_measure_noise(measure, repeated, level) for measure, repeated in measures.items()),
        reasons=tuple(_inequalities(side)),
    )


def _repeated(values: tuple[float, ...]) -> TrialStatistics | None:
    return summarize(values) if len(values) > 1 else None


def _criterion_noise(criterion: str, passes: TrialStatistics, level: float) -> CriterionNoise:
    rate = passes.mean / 100
    drops = {n: detectable_pass_drop(round(rate * n), n, n, level) for n in TRIALS if n > 1}
    drops[1] = 100.0 if rate > 0 and not _wavers(rate) else None
    return CriterionNoise(
        criterion=criterion,
        passes=passes,
        flip_rate=flip_rate(round(rate * passes.trials), passes.trials),
        detectable=_without_gaps(drops),
    )


def _measure_noise(measure: Measure, summary: TrialStatistics, level: float) -> MeasureNoise:
    spread = summary.deviation or 0.0
    drops = {n: detectable_difference(spread, n, n, level) for n in TRIALS if n > 1}
    # Two single trials have no spread of their own: this calibration's stands in, with its degrees of freedom.
    drops[1] = student_t_quantile(ALPHA, summary.trials - 1) * spread * sqrt(2)
    return MeasureNoise(measure=measure, summary=summary, detectable=_without_gaps(drops))


def _without_gaps(drops: dict[int, float | None]) -> dict[int, float]:
    return {trials: drop for trials in TRIALS if (drop := drops[trials]) is not None}


def _inequalities(side: SuiteSide) -> Iterable[str]:
    yield from session_obstacles(side.readings)
    if len(side.trials.commits) > 1:
        yield f"different commits: {', '.join(side.trials.commits)}"
    if side.trials.dirty:
        yield "uncommitted changes in the tested tree"
    yield from dict.fromkeys(reason for measure in Measure for reason in measure_obstacles(measure, side.readings))
