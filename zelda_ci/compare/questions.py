"""The questions a comparison asks: one per criterion and measure, and what stands in the way of an answer.

What is tested here, and nothing else, can be called better or worse, end a suite, and turn the check red.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple

from zelda_ci.compare import inference
from zelda_ci.compare.inference import OneSided, Tails, significant
from zelda_ci.compare.sides import RunMetrics, SuiteSide, mean, mostly
from zelda_ci.domain.details import (
    CorrectnessDetails,
    CriterionVerdict,
    FulfillmentDetails,
    JudgeIdentity,
    ToolUsageDetails,
)
from zelda_ci.domain.kinds import ItemKind
from zelda_ci.domain.measures import MEASURES, METRIC_OF, PASS_RATE, Measure, Scale
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.suite import ScoreLimits

Method = Literal["threshold", "fisherExact", "permutation"]
Values = tuple[float, ...]

# The error of the overall rows, beside that of the suites: 5 % in all.
OVERALL_ALPHA = 0.01
OTHER_HOUR = "not tested: time also shows how busy machine and API were, so only trials of one job can be compared"
TOLERATED = "not tested: with `gate.tolerance.requirementFulfillment` single criteria may fail, and the score is tested"
ONCE = "differs between any two sessions: compared over all suites, on their first trials"

# Of two sides that differ in more than the steering files, a difference has no single cause.
Aspects = Mapping[str, Callable[[RunResult], Hashable]]


def _session_settings(run: RunResult) -> Hashable:
    config = run.config
    execution = tuple(value for name, value in config.execution if name != "model")
    return (execution, config.setup_command, config.shell if config.setup_command else None, config.history_depth)


def _commands(run: RunResult) -> Hashable:
    config = run.config
    commands = (config.build_command, config.test_command, config.command_timeout_seconds, config.coverage_threshold)
    # Of an older Zelda, an empty list meant that nothing was said.
    files = (config.test_report, config.coverage_report, config.protected_paths or None, config.keep_ignored)
    return (*commands, config.shell, *files)


def _test_formats(run: RunResult) -> str:
    """What counted the tests: packages of one runner cannot be compared with tests of another."""
    details = run.details(CorrectnessDetails)
    runners = details.tests.runners if details and details.tests else ()
    return ", ".join(sorted({f"{runner.format} ({runner.unit})" for runner in runners}))


def _judging(kind: type[FulfillmentDetails | ToolUsageDetails]) -> Aspects:
    def judge(run: RunResult) -> JudgeIdentity:
        details = run.details(kind)
        known = details.judge if details else None
        return known or JudgeIdentity(model=run.config.judge_model, prompt_version="")

    return {
        "judge models": lambda run: judge(run).model,
        "judge prompt versions": lambda run: judge(run).prompt_version,
        "numbers of judge votes": lambda run: run.config.judge.votes,
    }


# What shapes the session itself, and with it every number.
SESSION: Aspects = {
    "suite prompts": lambda run: run.config.prompt,
    "session models": lambda run: run.config.execution.model,
    "session settings": _session_settings,
    "sources of the model's words (live and replayed)": lambda run: run.replayed,
}

# What shapes one measure only.
EVALUATION: Mapping[Measure, Aspects] = {
    Measure.EFFICIENCY: {"efficiency targets": lambda run: run.config.efficiency_targets},
    Measure.FUNCTIONAL_CORRECTNESS: {"build and test settings": _commands},
    Measure.TESTS: {"build and test settings": _commands, "formats of test output": _test_formats},
    Measure.REQUIREMENT_FULFILLMENT: {
        "treatments of undecided criteria": lambda run: run.config.undecided,
        "acceptance criteria": lambda run: tuple(sorted(run.config.must_pass + run.config.acceptance_criteria)),
        "answer criteria": lambda run: run.config.answer_criteria,
        "checks": lambda run: tuple(sorted(check.text for check in run.config.checks)),
        **_judging(FulfillmentDetails),
    },
    Measure.TOOL_USAGE: _judging(ToolUsageDetails),
}


def _plugins(run: RunResult) -> str:
    uses = [use for use in run.steering or () if use.unit.kind is ItemKind.PLUGIN and use.loaded]
    return " and ".join(sorted({use.unit.name for use in uses})) or "none"


# Differences that are told but do not stand in the way.
NOTEWORTHY: Aspects = {
    "Claude Code versions": lambda run: run.versions.cli,
    "isolation levels": lambda run: run.isolation.level if run.isolation else None,
    "networks of the session": lambda run: run.isolation.network.session if run.isolation else None,
    "plugins of the session": _plugins,
    "models that answered": lambda run: ", ".join(run.models),
}

REPLAYED = "both sides replay recorded sessions: trials of one recording repeat it and are no evidence of their own"
MODELS = "models"
# What changes without anybody's commit, and with it the results.
PLATFORM: Mapping[str, Callable[[RunResult], Iterable[str]]] = {
    "Claude Code": lambda run: (run.versions.cli or "",),
    MODELS: lambda run: run.models,
    "system": lambda run: (run.fingerprint.parts.get("system", ""),) if run.fingerprint else (),
}


def platform_change(stored: Sequence[RunMetrics], today: Sequence[RunMetrics]) -> tuple[str, ...]:
    """A sentence where the stored trials of the base ran on another platform than those that are judged.

    What nobody recorded is not known to differ. Sub-agents may answer in one trial and not in the next, so models
    differ only where each side has one that the other never met.
    """
    found = []
    for name, of in PLATFORM.items():
        before, now = ({value for trial in side for value in of(trial.run) if value} for side in (stored, today))
        is_other = before - now and now - before if name == MODELS else before and now and before != now
        if is_other:
            found.append(f"{name} {', '.join(sorted(before))} before, {', '.join(sorted(now))} now")
    if not found:
        return ()
    return (f"the platform changed ({'; '.join(found)}): only new trials of the base show what is to blame",)


def measure_obstacles(measure: Measure, readings: Sequence[RunMetrics]) -> tuple[str, ...]:
    """Why one measure may not be compared; only trials that have it are asked."""
    metric = METRIC_OF[measure]
    versions: Aspects = {
        f"{metric} evaluator versions": lambda run: run.evaluations[metric].version if metric in run.evaluations else ""
    }
    having = [reading for reading in readings if measure in reading.values]
    return differences({**versions, **EVALUATION.get(measure, {})}, having)


def differences(aspects: Aspects, readings: Sequence[RunMetrics]) -> tuple[str, ...]:
    """A few words for each aspect in which trials differ; empty when they may be compared."""
    found = []
    for name, aspect in aspects.items():
        values = {aspect(reading.run) for reading in readings}
        if len(values) > 1:
            short = sorted(value for value in values if isinstance(value, str) and 0 < len(value) <= 60)
            is_short = len(short) == len(values) and name != "suite prompts"
            found.append(f"different {name}: {', '.join(short)}" if is_short else f"different {name}")
    return tuple(found)


class QuestionKey(NamedTuple):
    """Which number of which suite; the overall numbers have no suite."""

    suite: str | None
    name: str
    criterion: bool = False


@dataclass(frozen=True)
class Question:
    """Did one number change between two sides? Without a test only the threshold decides, or nothing does."""

    scale: Scale
    baseline: Values
    candidate: Values
    obstacles: tuple[str, ...] = ()
    """Why the answer means nothing; it is `inconclusive` unless `mixed`."""
    doubts: tuple[str, ...] = ()
    """What else may have caused a change, so that none is called; it is, without consequences, if `mixed`."""
    mixed: bool = False
    """Answer in spite of obstacles, without consequences."""
    method: Method | None = None
    strata: tuple[tuple[Values, Values], ...] = ()
    """Of a number over all suites, both sides of each suite."""
    is_fact: bool = False
    """Whether a single trial is enough to call a change: commands failed that had passed, or tests are gone."""
    not_tested: str = ""
    """Why the numbers are shown and never called better or worse."""

    def by(self, test: Method) -> "Question":
        """The question with its test; of one trial on a side, with the threshold alone."""
        if not self.answerable or self.not_tested:
            return self
        return replace(self, method="threshold" if self.trials == 1 else test)

    @property
    def answerable(self) -> bool:
        """Both sides have the number and may be compared."""
        return bool(self.baseline and self.candidate) and (self.mixed or not self.obstacles)

    @property
    def trials(self) -> int:
        """Of the side that has fewer."""
        return min(len(self.baseline), len(self.candidate))

    @cached_property
    def tails(self) -> Tails:
        a, b = self.baseline, self.candidate
        if self.method == "fisherExact":
            return inference.pass_rate_test(a, b)
        return inference.stratified_permutation_test(self.strata) if self.strata else inference.permutation_test(a, b)

    def tail(self, *, worse: bool) -> OneSided:
        """The test for a change in the worse, or better, direction."""
        return self.tails.lower if (self.scale.better == "higher") == worse else self.tails.higher

    @property
    def is_tested(self) -> bool:
        """Whether chance is reckoned with."""
        return self.method in ("fisherExact", "permutation")

    @property
    def change(self) -> float:
        return mean(self.candidate) - mean(self.baseline)

    @property
    def effect(self) -> Literal["better", "worse", "same"]:
        return "same" if not self.change else "worse" if self.scale.is_worse(self.change) else "better"

    @property
    def threshold(self) -> float:
        """The largest change, in the direction of the one that was seen, that does not matter."""
        return self.scale.threshold(mean(self.baseline), self.change)

    @property
    def matters(self) -> bool:
        """Whether the change is beyond the threshold."""
        return abs(self.change) > self.threshold * (1 + 1e-9)

    @property
    def is_worse(self) -> bool:
        """Whether the change is a worsening beyond the threshold: only such a one can gate."""
        return self.effect == "worse" and self.matters


@dataclass(frozen=True)
class Pair:
    """One suite on two sides; the side that has no trials lacks it."""

    suite: str
    baseline: SuiteSide
    candidate: SuiteSide
    tolerance: ScoreLimits
    mixed: bool = False
    same_job: bool = False
    """Whether the baseline's trials were run beside the candidate's."""
    adds: bool = False
    """Whether trials are added where they are needed: they tell facts from chance."""

    @cached_property
    def sides(self) -> dict[str, SuiteSide]:
        both = {"base": self.baseline, "head": self.candidate}
        return {name: side for name, side in both.items() if side.given}

    @cached_property
    def readings(self) -> tuple[RunMetrics, ...]:
        return (*self.baseline.readings, *self.candidate.readings)

    @cached_property
    def doubts(self) -> tuple[str, ...]:
        """What else than the steering files may have changed the results: stored trials are of their day."""
        return () if self.same_job else platform_change(self.baseline.readings, self.candidate.readings)

    @cached_property
    def obstacles(self) -> tuple[str, ...]:
        """Why the suite as a whole cannot be compared."""
        empty = (
            f"no valid run on the {name}'s side: {side.trials.invalid} failed or interrupted"
            for name, side in self.sides.items()
            if not side.readings
        )
        suites = dict.fromkeys(side.newest.suite for side in self.sides.values())
        different = (f"different suites: {', '.join(suites)}",) if len(suites) > 1 else ()
        return (*empty, *different, *differences(SESSION, self.readings))

    @cached_property
    def criteria(self) -> tuple[str, ...]:
        """In the candidate's order, those removed last."""
        return tuple(dict.fromkeys((*self.candidate.criteria, *self.baseline.criteria)))

    @cached_property
    def questions(self) -> dict[QuestionKey, Question]:
        """Of each measure and each criterion that at least one side has."""
        having = (each for each in Measure if self.baseline.values(each) or self.candidate.values(each))
        found = {QuestionKey(self.suite, measure.value): self.ask(measure) for measure in having}
        common = (*self.obstacles, *measure_obstacles(Measure.REQUIREMENT_FULFILLMENT, self.readings))
        return found | {QuestionKey(self.suite, it, criterion=True): self._ask(it, common) for it in self.criteria}

    def numbers(self, measure: Measure) -> Question:
        """Did a measure change, by more than the suite's gate tolerates? Whatever stands between the sides."""
        scale = replace(MEASURES[measure].scale, tolerated_drop=self.tolerance.of(measure))
        return Question(scale, self.baseline.values(measure), self.candidate.values(measure), mixed=self.mixed)

    def ask(self, measure: Measure) -> Question:
        """Did a measure change? With what stands between the sides, and the test."""
        lacking = ((name, side.unscored(measure)) for name, side in self.sides.items() if not side.values(measure))
        unscored = (f"unscored on the {name}'s side: {reason}" for name, reason in lacking if reason)
        question = self.numbers(measure)
        obstacles = (*self.obstacles, *measure_obstacles(measure, self.readings), *unscored)
        not_tested = ""
        if self.adds and question.scale.varies:
            not_tested = ONCE
        elif question.scale.of_the_hour and not self.same_job and question.trials > 1:
            not_tested = OTHER_HOUR
        # Commands pass on one side only, or tests are gone; all else may come out otherwise in the next trial.
        commands = [side.commands for side in self.sides.values()]
        differ = all(counted for _, counted in commands) and len({mostly(*each) for each in commands}) > 1
        is_fact = not self.adds and {Measure.TESTS: True, Measure.FUNCTIONAL_CORRECTNESS: differ}.get(measure, False)
        asked = replace(question, obstacles=obstacles, doubts=self.doubts, is_fact=is_fact, not_tested=not_tested)
        return asked.by("permutation")

    def _ask(self, criterion: str, common: tuple[str, ...]) -> Question:
        """Did a criterion's pass rate change? Where a drop of their score is tolerated, criteria are not asked for."""
        missing = tuple(self._missing(criterion))
        is_on_both = all(criterion in side.criteria for side in (self.baseline, self.candidate))
        is_tolerated = self.tolerance.of(Measure.REQUIREMENT_FULFILLMENT) is not None
        return Question(
            PASS_RATE,
            self.baseline.outcomes(criterion),
            self.candidate.outcomes(criterion),
            (*common, *missing) if missing or is_on_both else (),
            self.doubts,
            self.mixed,
            not_tested=TOLERATED if is_tolerated else "",
        ).by("fisherExact")

    def _missing(self, criterion: str) -> Iterator[str]:
        """Reasons for a criterion that a side has and could not judge."""
        for name, side in self.sides.items():
            if side.outcomes(criterion):
                continue
            if criterion in side.criteria:
                known = (reading.judgements.get(criterion) for reading in side.readings)
                is_undecided = {each.verdict for each in known if each} == {CriterionVerdict.UNDECIDED}
                yield f"{'undecided' if is_undecided else 'not judged'} on the {name}'s side"
            elif not side.readings:
                yield f"no valid run on the {name}'s side"
            elif reason := side.unscored(Measure.REQUIREMENT_FULFILLMENT):
                yield f"unscored on the {name}'s side: {reason}"


def ask_overall(measure: Measure, pairs: Sequence[Pair]) -> Question | None:
    """Did a measure change over all suites? The test is on their trials; shown are the means, of each suite one."""
    # A single suite that can answer speaks for itself: nothing is asked then.
    having = (pair for pair in pairs if pair.numbers(measure).answerable)
    asked = [(question, pair.same_job) for pair in having if (question := pair.ask(measure)).answerable]
    suites = [question for question, _ in asked]
    if len(suites) <= 1:
        return None
    scale, drops = MEASURES[measure].scale, [question.scale.tolerated_drop for question in suites]
    if any(drop is not None for drop in drops):
        # A mean of suites may fall by the mean of what each tolerates.
        scale = replace(scale, tolerated_drop=mean([scale.amount if drop is None else drop for drop in drops]))
    # Multiples of the common mean: a dear suite counts as much as a cheap one.
    common = ((it, mean((*it.baseline, *it.candidate)) or 1.0) for it in suites)
    strata = [
        (tuple(value / center for value in it.baseline), tuple(value / center for value in it.candidate))
        for it, center in common
    ]
    whole = Question(
        scale,
        tuple(mean(question.baseline) for question in suites),
        tuple(mean(question.candidate) for question in suites),
        tuple(dict.fromkeys(obstacle for question in suites for obstacle in question.obstacles)),
        tuple(dict.fromkeys(doubt for question in suites for doubt in question.doubts)),
        any(question.mixed for question in suites),
        strata=tuple(strata),
    )
    single = [question.trials == 1 for question in suites]
    if any(single) if scale.varies else all(single) and not significant(0.5 ** len(suites), OVERALL_ALPHA):
        return replace(whole, method="threshold")
    if scale.of_the_hour and not all(same_job for _, same_job in asked):
        return replace(whole, not_tested=OTHER_HOUR)
    return replace(whole, method="permutation")
