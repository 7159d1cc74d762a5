"""One suite on one side: its valid trials and what they say."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from zelda_ci.compare.readings import Reading, read
from zelda_ci.compare.summary import summarize
from zelda_ci.domain.comparison import CriterionSummary, Measure, SuiteSummary, Trials
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.session import SessionStatus

INVALID = frozenset({SessionStatus.FAILED, SessionStatus.INTERRUPTED})
"""Statuses of runs that broke for reasons outside the tested files. A session that ended at a limit is not among
them: the limit is part of the suite, and running into it is how the session went."""

LIMITS = frozenset({SessionStatus.MAX_TURNS, SessionStatus.BUDGET_EXCEEDED, SessionStatus.TIMED_OUT})
"""Statuses of sessions that ended at a limit of their suite."""


@dataclass(frozen=True)
class Side:
    """The runs of one suite; `readings` are of the valid ones, oldest first."""

    suite: str
    file: str
    trials: Trials
    readings: tuple[Reading, ...]

    def values(self, measure: Measure) -> tuple[float, ...]:
        """One number per trial that has it."""
        return tuple(reading.values[measure] for reading in self.readings if measure in reading.values)

    def unscored(self, measure: Measure) -> str | None:
        """Why trials lack a number that was asked for."""
        return next((reading.unscored[measure] for reading in self.readings if measure in reading.unscored), None)

    @cached_property
    def criteria(self) -> tuple[str, ...]:
        """Every criterion that a judge looked at, in the suite's order."""
        return tuple(dict.fromkeys(name for reading in self.readings for name in reading.judgements))

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
    def tools_used(self) -> Counter[str]:
        """In how many trials each tool was called."""
        return Counter(tool for reading in self.readings for tool in reading.tools_used)

    @cached_property
    def tools_missed(self) -> Counter[str]:
        """In how many trials each tool was missed."""
        return Counter(tool for reading in self.readings for tool in reading.tools_missed)


def sides(runs: Iterable[RunResult]) -> dict[str, Side]:
    """Runs by suite, in any order; a run given twice counts once."""
    unique = {run.run_id: run for run in runs}
    ordered = sorted(unique.values(), key=lambda run: (run.suite, run.started_at, run.run_id))
    by_suite: dict[str, list[RunResult]] = {}
    for run in ordered:
        by_suite.setdefault(run.suite, []).append(run)
    return {suite: _side(suite, found) for suite, found in by_suite.items()}


def summarize_trials(runs: Iterable[RunResult]) -> tuple[SuiteSummary, ...]:
    """Mean, range and spread of every number and the pass rate of every criterion, suite by suite."""
    return tuple(
        SuiteSummary(
            suite=side.suite,
            trials=side.trials,
            measures={measure: found for measure in Measure if (found := summarize(side.values(measure)))},
            criteria=tuple(
                CriterionSummary(criterion=name, passes=summarize(side.outcomes(name))) for name in side.criteria
            ),
        )
        for side in sides(runs).values()
    )


def _side(suite: str, runs: Sequence[RunResult]) -> Side:
    valid = [run for run in runs if run.status not in INVALID]
    sources = [run.source for run in valid if run.source]
    readings = tuple(map(read, valid))
    trials = Trials(
        run_ids=tuple(run.run_id for run in runs),
        valid=len(valid),
        invalid=len(runs) - len(valid),
        incomplete=sum(not reading.is_complete for reading in readings),
        statuses=dict(Counter(run.status for run in runs)),
        replayed=sum(run.replayed for run in valid),
        models=tuple(sorted({run.config.execution.model for run in valid})),
        commits=tuple(sorted({source.commit for source in sources if source.commit})),
        dirty=any(source.dirty for source in sources),
    )
    return Side(suite, runs[-1].config.file, trials, readings)
