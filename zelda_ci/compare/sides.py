"""One suite on one side: the metrics of its valid trials, and their statistics."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import fsum, sqrt

from zelda_ci.domain import measures
from zelda_ci.domain.comparison import Trials, TrialStatistics
from zelda_ci.domain.details import CriterionJudgement, CriterionVerdict, FulfillmentDetails
from zelda_ci.domain.measures import METRIC_OF, Measure
from zelda_ci.domain.outcome import Outcome, correctness_outcome, run_outcome
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.session import SessionStatus
from zelda_ci.domain.suite import ScoreLimits

# Statuses of sessions that ended at a limit of their suite.
LIMITS = frozenset({SessionStatus.MAX_TURNS, SessionStatus.BUDGET_EXCEEDED, SessionStatus.TIMED_OUT})
WORTH = {CriterionVerdict.PASS: 100.0, CriterionVerdict.FAIL: 0.0}


@dataclass(frozen=True)
class RunMetrics:
    """The numbers and judgements of one run; what was not computed, or has an unknown shape, is missing."""

    run: RunResult

    @cached_property
    def values(self) -> Mapping[Measure, float]:
        return measures.values(self.run.evaluations)

    @cached_property
    def judgements(self) -> dict[str, CriterionJudgement]:
        details = self.run.details(FulfillmentDetails)
        return details.by_name if details else {}

    @cached_property
    def outcomes(self) -> dict[str, float]:
        """Criteria that count, 100 or 0: pass rates are in percent. What nobody judged, or is ignored, is missing."""
        worth = WORTH | ({CriterionVerdict.UNDECIDED: 0.0} if self.run.config.undecided == "fail" else {})
        return {name: worth[each.verdict] for name, each in self.judgements.items() if each.verdict in worth}


def mean(values: Sequence[float]) -> float:
    return fsum(values) / len(values)


def deviation(values: Sequence[float]) -> float:
    center = mean(values)
    return sqrt(fsum((value - center) ** 2 for value in values) / (len(values) - 1))


def mostly(part: int, whole: int) -> bool:
    """Whether at least half: how often something has to happen in trials to count as what usually happens."""
    return whole > 0 and 2 * part >= whole


def summarize(values: Sequence[float]) -> TrialStatistics | None:
    if not values:
        return None
    spread, least, most = deviation(values) if len(values) > 1 else None, min(values), max(values)
    return TrialStatistics(trials=len(values), mean=mean(values), minimum=least, maximum=most, deviation=spread)


@dataclass(frozen=True)
class SuiteSide:
    """The trials of one suite on one side, in any order, each once; without any, the side lacks the suite."""

    given: tuple[RunMetrics, ...] = ()

    @cached_property
    def _ordered(self) -> tuple[RunMetrics, ...]:
        # Ids of runs hold a time in seconds, so two machines may give one twice.
        unique = {(trial.run.batch_id, trial.run.run_id): trial for trial in self.given}
        return tuple(sorted(unique.values(), key=lambda trial: (trial.run.started_at, trial.run.run_id)))

    @cached_property
    def readings(self) -> tuple[RunMetrics, ...]:
        """The valid trials, oldest first."""
        return tuple(trial for trial in self._ordered if trial.run.status.is_valid)

    def first(self, trials: int) -> "SuiteSide":
        """So many valid trials, the oldest."""
        return SuiteSide(self.readings[:trials])

    @property
    def newest(self) -> RunResult:
        return self._ordered[-1].run

    @property
    def tolerance(self) -> ScoreLimits:
        """What the gate of the newest valid trial tolerates: a changed gate is meant to take effect."""
        return self.readings[-1].run.config.gate.tolerance if self.readings else ScoreLimits()

    @cached_property
    def trials(self) -> Trials:
        """What became of all of them."""
        valid = [trial.run for trial in self.readings]
        sources = [run.source for run in valid if run.source]
        return Trials(
            run_ids=tuple(trial.run.run_id for trial in self._ordered),
            valid=len(valid),
            invalid=len(self._ordered) - len(valid),
            incomplete=sum(run_outcome(run) is Outcome.INCOMPLETE for run in valid),
            statuses=dict(Counter(trial.run.status for trial in self._ordered)),
            replayed=sum(run.replayed for run in valid),
            models=tuple(sorted({run.config.execution.model for run in valid})),
            commits=tuple(sorted({source.commit for source in sources if source.commit})),
            dirty=any(source.dirty for source in sources),
        )

    def values(self, measure: Measure) -> tuple[float, ...]:
        return tuple([reading.values[measure] for reading in self.readings if measure in reading.values])

    def unscored(self, measure: Measure) -> str | None:
        """Why trials lack a number that was asked for."""
        metric = METRIC_OF[measure]
        runs = [reading.run for reading in self.readings if measure not in reading.values]
        reasons = (run.evaluations[metric].reasoning for run in runs if metric in run.evaluations)
        return next(reasons, None) if measure.value == metric.value else None

    @cached_property
    def criteria(self) -> tuple[str, ...]:
        """Every criterion that a judge looked at, in the suite's order."""
        return tuple(dict.fromkeys(name for reading in self.readings for name in reading.judgements))

    def outcomes(self, criterion: str) -> tuple[float, ...]:
        """100 or 0 per trial in which the criterion was judged and counts."""
        return tuple([reading.outcomes[criterion] for reading in self.readings if criterion in reading.outcomes])

    @cached_property
    def commands(self) -> tuple[int, int]:
        """Trials in which build, tests or coverage fell short, and trials in which they were measured."""
        outcomes = [correctness_outcome(reading.run) for reading in self.readings]
        return outcomes.count(Outcome.FAILED), len(outcomes) - outcomes.count(Outcome.MEASURED)


def sides(runs: Iterable[RunResult]) -> dict[str, SuiteSide]:
    """Runs by suite, in any order."""
    by_suite: dict[str, list[RunMetrics]] = {}
    for run in runs:
        by_suite.setdefault(run.suite, []).append(RunMetrics(run))
    return {suite: SuiteSide(tuple(by_suite[suite])) for suite in sorted(by_suite)}
