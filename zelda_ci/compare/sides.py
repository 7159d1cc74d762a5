"""One suite on one side: the metrics of its valid trials, and their statistics."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import fsum, sqrt

from zelda_ci.domain import measures
from zelda_ci.domain.comparison import Trials, TrialStatistics
from zelda_ci.domain.details import (
    CriterionJudgement,
    CriterionVerdict,
    EfficiencyDetails,
    FulfillmentDetails,
    ToolUsageDetails,
)
from zelda_ci.domain.measures import METRIC_OF, Measure
from zelda_ci.domain.outcome import Outcome, correctness_outcome, run_outcome
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.session import SessionStatus
from zelda_ci.domain.test_run import CorrectnessDetails


@dataclass(frozen=True, slots=True)
class RunMetrics:
    """The numbers and judgements of one run; what was not computed is missing."""

    run: RunResult
    values: Mapping[Measure, float]
    unscored: dict[Measure, str]
    """Measures that were asked for and could not be computed, and why."""
    judgements: dict[str, CriterionJudgement]
    """By `FulfillmentDetails.by_name`."""
    outcomes: dict[str, float]
    """Criteria that count, 100 or 0: pass rates are in percent. What nobody judged, or is ignored, is missing."""
    is_complete: bool
    """False where not everything could be judged that was asked for."""
    fulfillment: FulfillmentDetails | None
    correctness: CorrectnessDetails | None
    tool_usage: ToolUsageDetails | None
    tools_used: frozenset[str]
    tools_missed: frozenset[str]

    @property
    def key(self) -> tuple[str, str]:
        """Which trial it is: ids of runs hold a time in seconds, so two machines may give one twice."""
        return self.run.batch_id, self.run.run_id


def read_metrics(run: RunResult) -> RunMetrics:
    """Take a result apart. Details of an unknown shape count as missing."""
    efficiency = run.details(EfficiencyDetails)
    fulfillment = run.details(FulfillmentDetails)
    tool_usage = run.details(ToolUsageDetails)
    values = measures.values(run.evaluations)
    used = tool_usage.used if tool_usage and tool_usage.used else efficiency.tool_calls if efficiency else {}
    judgements = fulfillment.by_name if fulfillment else {}
    worth = {CriterionVerdict.PASS: 100.0, CriterionVerdict.FAIL: 0.0}
    if run.config.undecided == "fail":
        worth[CriterionVerdict.UNDECIDED] = 0.0
    return RunMetrics(
        run=run,
        values=values,
        unscored={
            measure: run.evaluations[metric].reasoning
            for measure, metric in METRIC_OF.items()
            if measure.value == metric.value in run.evaluations and measure not in values
        },
        judgements=judgements,
        outcomes={
            name: worth[judgement.verdict] for name, judgement in judgements.items() if judgement.verdict in worth
        },
        is_complete=run_outcome(run) is not Outcome.INCOMPLETE,
        fulfillment=fulfillment,
        correctness=run.details(CorrectnessDetails),
        tool_usage=tool_usage,
        tools_used=frozenset(tool for tool, calls in used.items() if calls),
        tools_missed=frozenset(missed.tool for missed in tool_usage.missed) if tool_usage else frozenset(),
    )


def mean(values: Sequence[float]) -> float:
    """Arithmetic mean of at least one value."""
    return fsum(values) / len(values)


def deviation(values: Sequence[float]) -> float:
    """Sample standard deviation of at least two values."""
    center = mean(values)
    return sqrt(fsum((value - center) ** 2 for value in values) / (len(values) - 1))


def mostly(part: int, whole: int) -> bool:
    """Whether at least half: how often something has to happen in trials to count as what usually happens."""
    return whole > 0 and 2 * part >= whole


def summarize(values: Sequence[float]) -> TrialStatistics | None:
    """Mean, range and spread; nothing without values."""
    if not values:
        return None
    spread = deviation(values) if len(values) > 1 else None
    return TrialStatistics(
        trials=len(values), mean=mean(values), minimum=min(values), maximum=max(values), deviation=spread
    )


# Statuses of sessions that ended at a limit of their suite.
LIMITS = frozenset({SessionStatus.MAX_TURNS, SessionStatus.BUDGET_EXCEEDED, SessionStatus.TIMED_OUT})


@dataclass(frozen=True)
class SuiteSide:
    """The trials of one suite on one side, in any order; one that is given twice counts once."""

    suite: str
    given: tuple[RunMetrics, ...] = ()

    @cached_property
    def _ordered(self) -> tuple[RunMetrics, ...]:
        unique = {trial.key: trial for trial in self.given}
        return tuple(sorted(unique.values(), key=lambda trial: (trial.run.started_at, trial.run.run_id)))

    @cached_property
    def readings(self) -> tuple[RunMetrics, ...]:
        """The valid trials, oldest first."""
        return tuple(trial for trial in self._ordered if trial.run.status.is_valid)

    def first(self, trials: int) -> "SuiteSide":
        """So many valid trials, the oldest."""
        return SuiteSide(self.suite, self.readings[:trials])

    @property
    def file(self) -> str:
        """The suite's file in the newest trial."""
        return self._ordered[-1].run.config.file

    @cached_property
    def trials(self) -> Trials:
        """What became of all of them."""
        valid = [trial.run for trial in self.readings]
        sources = [run.source for run in valid if run.source]
        return Trials(
            run_ids=tuple(trial.run.run_id for trial in self._ordered),
            valid=len(valid),
            invalid=len(self._ordered) - len(valid),
            incomplete=sum(not trial.is_complete for trial in self.readings),
            statuses=dict(Counter(trial.run.status for trial in self._ordered)),
            replayed=sum(run.replayed for run in valid),
            models=tuple(sorted({run.config.execution.model for run in valid})),
            commits=tuple(sorted({source.commit for source in sources if source.commit})),
            dirty=any(source.dirty for source in sources),
        )

    def values(self, measure: Measure) -> tuple[float, ...]:
        """One number per trial that has it."""
        return tuple([reading.values[measure] for reading in self.readings if measure in reading.values])

    def unscored(self, measure: Measure) -> str | None:
        """Why trials lack a number that was asked for."""
        return next((reading.unscored[measure] for reading in self.readings if measure in reading.unscored), None)

    @cached_property
    def criteria(self) -> tuple[str, ...]:
        """Every criterion that a judge looked at, in the suite's order."""
        return tuple(dict.fromkeys(name for reading in self.readings for name in reading.judgements))

    @property
    def must_pass(self) -> frozenset[str]:
        """Criteria that the newest trial's suite marks so."""
        return frozenset(self.readings[-1].run.config.must_pass)

    def outcomes(self, criterion: str) -> tuple[float, ...]:
        """100 or 0 per trial in which the criterion was judged and counts."""
        return tuple(self._outcomes.get(criterion, ()))

    @cached_property
    def _outcomes(self) -> dict[str, list[float]]:
        outcomes: dict[str, list[float]] = {}
        for reading in self.readings:
            for name, outcome in reading.outcomes.items():
                outcomes.setdefault(name, []).append(outcome)
        return outcomes

    @cached_property
    def commands(self) -> tuple[int, int]:
        """Trials in which build, tests or coverage fell short, and trials in which they were measured."""
        outcomes = [correctness_outcome(reading.run) for reading in self.readings]
        return outcomes.count(Outcome.FAILED), len(outcomes) - outcomes.count(Outcome.MEASURED)

    @cached_property
    def commands_short(self) -> Counter[str]:
        """In how many trials each of build, tests and coverage fell short."""
        return Counter(name for reading in self.readings for name in _fell_short(reading))

    @cached_property
    def tools_used(self) -> Counter[str]:
        """In how many trials each tool was called."""
        return Counter(tool for reading in self.readings for tool in reading.tools_used)

    @cached_property
    def tools_missed(self) -> Counter[str]:
        """In how many trials each tool was missed."""
        return Counter(tool for reading in self.readings for tool in reading.tools_missed)


def _fell_short(reading: RunMetrics) -> Iterator[str]:
    if correctness_outcome(reading.run) is not Outcome.FAILED:
        return
    details = reading.correctness
    named = {"build": details.build, "tests": details.test} if details else {}
    failed = {name for name, command in named.items() if command and command.exit_code != 0}
    if details and details.tests and details.tests.failed + details.tests.errored:
        failed.add("tests")
    # Where no command failed, something else about them did: coverage, or what an older result does not name.
    yield from failed or {"coverage"}


def sides(runs: Iterable[RunResult]) -> dict[str, SuiteSide]:
    """Runs by suite, in any order; a run given twice counts once."""
    by_suite: dict[str, list[RunMetrics]] = {}
    for run in {(run.batch_id, run.run_id): run for run in runs}.values():
        by_suite.setdefault(run.suite, []).append(read_metrics(run))
    return {suite: SuiteSide(suite, tuple(by_suite[suite])) for suite in sorted(by_suite)}
