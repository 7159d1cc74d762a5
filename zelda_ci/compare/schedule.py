"""What one suite's trials show at fixed looks, and which trials to run next. Pure: state in, next trials out.

Suite s of S owns the share ALPHA / S of the error, look k of it the weight w_k, and what is tested at a look is fixed
before the first trial. So the chance of any false call is at most ALPHA, whichever suites stop, and when. A fixed
number of trials is a plan with one look; suites with one look are corrected together, with the sum of their shares.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count, islice, takewhile, zip_longest
from typing import NamedTuple

from zelda_ci.compare.inference import ALPHA, adjust, pass_rate_test, permutation_test, significant
from zelda_ci.compare.questions import SESSION, Pair, Question, QuestionKey, Values, ask_overall, differences
from zelda_ci.compare.sides import RunMetrics, SuiteSide, mean
from zelda_ci.domain.measures import MEASURES, Measure
from zelda_ci.domain.run import StoredTrials
from zelda_ci.domain.trials import DoneReason, Plan, Side, TrialPlan, TrialSetting, plan_of

# One-sided p-values above which a number of the head looks as the other trials lead to expect. They carry no error:
# whoever stops calls nothing. Of a few trials that passed, a small p-value cannot be had, so the limit is higher.
EXPECTED_AT_FIRST = 0.2
EXPECTED = 0.12
EXPECTED_OF_FEW = 0.25
FEW = 10
# The same for a score that varies in every session.
EXPECTED_SCORE = 0.05
# The chance by itself below which a number over all suites that is worse than stored ones is tested beside the base.
SUSPICION = 0.1
# Shares of the error that the tests of a number may use, relative to those of a criterion. Resources vary in every
# session and quality does not: with equal shares, five resource tests per suite would use up the error that criteria
# need. At one look of several the score of the criteria, which is their mean, costs them little.
AT_ONCE: Mapping[str, float] = {measure: 0.1 for measure, spec in MEASURES.items() if spec.scale.varies}
AT_LOOKS: Mapping[str, float] = {Measure.REQUIREMENT_FULFILLMENT: 0.05, Measure.TOOL_USAGE: 0.1, Measure.TESTS: 0.1}
# The first look and two at which something is tested: only then is the last one made on a condition.
MANY_LOOKS = 3
# Trials of a side that may fail before nothing more is tried.
MAX_FAILED = 3
NOT_BESIDE = "not tested: the base did not run beside the first trials of every suite"


class AdjustedAnswer(NamedTuple):
    """P-values of both directions, corrected for everything: compared with ALPHA."""

    worse: float = 1.0
    better: float = 1.0
    regressed: bool = False
    """Whether it is worse beyond the threshold, and significantly so."""


Answers = dict[QuestionKey, AdjustedAnswer]


def answered(
    questions: Mapping[QuestionKey, Question],
    share: float = 1.0,
    *,
    alpha: float = ALPHA,
    weights: Mapping[str, float] = {},
) -> Answers:
    """The answers of one look, which owns a share of the error `alpha`; those to what is not tested are left out.

    `weights` are those of measures that have others than 1; the score of criteria has it only beside criteria.
    "Something got worse" and "something got better" are two families: what is promised is the error of the first.
    """
    tested = {key: question for key, question in questions.items() if question.is_tested}
    if not tested or not share:
        return {}
    alone = None if any(key.criterion for key in tested) else Measure.REQUIREMENT_FULFILLMENT
    own = [1.0 if key.criterion or key.name == alone else weights.get(key.name, 1.0) for key in tested]
    # P-values are compared with ALPHA, whatever the look owns.
    scale = ALPHA / (alpha * share)
    worse, better = (
        [min(1.0, p * scale) for p in adjust([*zip(tails, own, strict=True)], alpha * share)]
        for tails in ([each.tail(worse=is_worse) for each in tested.values()] for is_worse in (True, False))
    )
    return {
        key: AdjustedAnswer(p, q, significant(p) and question.is_worse)
        for (key, question), p, q in zip(tested.items(), worse, better, strict=True)
    }


class Look(NamedTuple):
    """When the sides are compared: valid trials of this job that each must have, and the share of the suite's error."""

    head: int
    base: int
    weight: float


class Wanted(NamedTuple):
    """A trial to run; its number counts the trials of that side from 1."""

    suite: str
    side: Side
    number: int
    look: int = 1
    """Which look of the suite it leads to, from 1: stored trials count for those before."""


@dataclass(frozen=True)
class SuiteTrials:
    """What is known of one suite, look by look; the trials of each kind are in any order, failed ones included."""

    suite: str
    head: tuple[RunMetrics, ...] = ()
    """Of this head: of this job, and of earlier jobs whose fingerprint is the same. They add up."""
    base: tuple[RunMetrics, ...] = ()
    """Of the base commit's files, run in the same job as those of the head, side by side."""
    stored: tuple[RunMetrics, ...] = ()
    """Trusted trials of the base that were made before: they say what to expect of the first trials, and no more."""
    plan: Plan = field(default_factory=TrialPlan)
    has_base: bool = True
    """Whether trials of the base can be run: the base has the suite, and its files can be had."""
    share: float = 1.0
    """Of the whole error; `sharing` settles it."""

    @property
    def adds(self) -> bool:
        return isinstance(self.plan, TrialPlan)

    @cached_property
    def looks(self) -> tuple[Look, ...]:
        """The looks of the plan, fixed before its first trial; without trials of the base nothing is tested."""
        # From the second look on both sides have as many trials, and these looks have equal shares of the error.
        if isinstance(self.plan, int):
            return (Look(self.plan, self.plan * self.has_base, float(self.has_base)),)
        first, *later = self.plan.counts
        weight = 1 / len(later) if self.has_base else 0.0
        return (Look(first, 0, 0.0), *(Look(count, count * self.has_base, weight) for count in later))

    @cached_property
    def sides(self) -> tuple[SuiteSide, SuiteSide, SuiteSide]:
        return SuiteSide(self.head), SuiteSide(self.base), SuiteSide(self.stored)

    @cached_property
    def valid(self) -> tuple[int, int, int]:
        """How many trials of head, base and stored ones count."""
        head, base, stored = (len(side.readings) for side in self.sides)
        return head, base, stored

    @cached_property
    def completed(self) -> int:
        """How many looks have their trials."""
        head, base, _ = self.valid
        return sum(1 for _ in takewhile(lambda look: head >= look.head and base >= look.base, self.looks))

    def at(self, look: Look, baseline: SuiteSide) -> Pair:
        head, *_ = self.sides
        return Pair(self.suite, baseline, head.first(look.head), head.tolerance, same_job=True, adds=self.adds)

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """The trials of each completed look; those of the first, at which nothing is tested, beside stored ones."""
        (_, base, stored), looks = self.sides, self.looks[: self.completed]
        return tuple(self.at(look, base.first(look.base) if index else stored) for index, look in enumerate(looks))

    @cached_property
    def whole(self) -> Pair:
        """All trials, of the base those beside them where there are any: what is shown, whatever was tested."""
        head, base, stored = self.sides
        is_beside = bool(base.readings or not self.adds)
        known = base if is_beside or (base.given and not stored.readings) else stored
        return Pair(self.suite, known, head, head.tolerance, same_job=is_beside, adds=self.adds)

    @cached_property
    def answers(self) -> Answers:
        """The smallest p-values of all completed looks: a call that was made at one of them stands."""
        found: Answers = {}
        for pair, look in zip(self.pairs, self.looks, strict=False):
            answers = answered(pair.questions if look.weight else {}, look.weight * self.share, weights=AT_LOOKS)
            for key, answer in answers.items():
                if self.whole.questions[key].is_tested:
                    known = found.get(key, answer)
                    worse, better = min(known.worse, answer.worse), min(known.better, answer.better)
                    found[key] = AdjustedAnswer(worse, better, known.regressed or answer.regressed)
        return found

    @cached_property
    def done(self) -> DoneReason | None:
        """Why there is no further look: decided on the same trials in the same order, whenever it is asked."""
        if self.adds and any(answer.regressed for answer in self.answers.values()):
            return DoneReason.REGRESSED
        if self.adds and any(_as_expected(pair, first=not index) for index, pair in enumerate(self.pairs)):
            return DoneReason.AS_EXPECTED
        if self.completed == len(self.looks):
            return DoneReason.PLAN_ENDED
        if self.completed and not self.has_base:
            return DoneReason.NO_BASE
        head, base, _ = self.sides
        if differences(SESSION, (*head.readings[:1], *base.readings[:1])):
            return DoneReason.NOT_COMPARABLE
        failed = ((sum(not trial.run.status.is_valid for trial in made), made) for made in (self.head, self.base))
        if any(count > max(MAX_FAILED, len(made) - count) for count, made in failed):
            return DoneReason.FAILED
        # The last look is not worth its trials where this suite, were it the only one and this the only look, would not
        # be called by now.
        if MANY_LOOKS <= len(self.looks) == self.completed + 1:
            answers = answered(self.pairs[-1].questions, weights=AT_LOOKS)
            return None if any(answer.regressed for answer in answers.values()) else DoneReason.NOT_PROVEN
        return None


def _as_expected(pair: Pair, *, first: bool) -> bool:
    """Whether nothing of the head looks worse than the other trials; without any, whether everything passes."""
    # At the first look, one failure is also enough to go on where the other trials never failed.
    old, new = pair.baseline, pair.candidate
    known = [(old.outcomes(name), new.outcomes(name)) for name in pair.criteria]
    known += [(old.values(Measure.FUNCTIONAL_CORRECTNESS), new.values(Measure.FUNCTIONAL_CORRECTNESS))]
    tests, usage = map(pair.numbers, (Measure.TESTS, Measure.TOOL_USAGE))
    if not all(_is_expected(*each, first=first) for each in known) or (tests.answerable and tests.is_worse):
        return False
    if not (usage.answerable and usage.is_worse):
        return True
    # Chance may make so low a score, unless few trials could not show one that is any rarer.
    lower = permutation_test(usage.baseline, usage.candidate).lower
    return lower.p > max(EXPECTED_SCORE, lower.floor)


def _is_expected(old: Values, new: Values, *, first: bool) -> bool:
    if not new or (old and mean(new) - mean(old) >= 0):
        return True
    # A single trial that passed says that it can: what fails beside it is not expected, however few trials there are.
    knows_little = first or len(old) == 1
    if not old or (knows_little and min(old) >= 100):
        return min(new) >= 100
    known = EXPECTED_OF_FEW if len(old) < FEW else EXPECTED
    test = pass_rate_test if {*old, *new} <= {0.0, 100.0} else permutation_test
    return test(old, new).lower.p > (EXPECTED_AT_FIRST if first else known)


def sharing(suites: Iterable[SuiteTrials]) -> list[SuiteTrials]:
    """All suites of a comparison, those without any trials too, with equal shares of the error."""
    listed = list(suites)
    share = 1 / max(1, sum(suite.has_base for suite in listed))
    return [replace(suite, share=share) for suite in listed]


# --- numbers over all suites -----------------------------------------------------------------------------------------
# They are tested once. Where trials are added as they are needed, that is on everybody's first trials against as many
# of the base in the same job: who goes on does so because of what it showed. Stored trials only say whether the base is
# to run for it; what they say costs no error.


def overall_questions(pairs: Sequence[Pair], measures: Iterable[Measure] = Measure) -> dict[QuestionKey, Question]:
    """One question per measure that at least two suites can answer."""
    found = {QuestionKey(None, measure.value): ask_overall(measure, pairs) for measure in measures}
    return {key: question for key, question in found.items() if question}


def first_trials(suites: Sequence[SuiteTrials]) -> dict[QuestionKey, Question]:
    """The questions on everybody's first trials: tested where the base ran beside them, otherwise only shown."""
    if all(suite.completed and not _missing_of_base(suite) for suite in suites):
        return overall_questions([it.at(it.looks[0], it.sides[1].first(it.looks[0].head)) for it in suites])
    shown = overall_questions([suite.pairs[0] for suite in suites if suite.completed])
    return {key: replace(question, method=None, not_tested=NOT_BESIDE) for key, question in shown.items()}


def _missing_of_base(suite: SuiteTrials) -> int:
    """How many trials of the base a suite has less than first ones of the head."""
    return max(0, suite.looks[0].head - suite.valid[1])


def _beside_all(suites: Sequence[SuiteTrials]) -> dict[str, list[Wanted]]:
    """Trials of the base by suite, where a number that differs in every session looks worse than stored ones."""
    if not all(suite.has_base and suite.completed for suite in suites):
        return {}
    asked = (measure for measure, spec in MEASURES.items() if spec.scale.varies and not spec.scale.of_the_hour)
    # What else differs from stored trials does not matter to a suspicion.
    questions = overall_questions([suite.pairs[0] for suite in suites], asked).values()
    if not any(each.is_tested and each.is_worse and each.tail(worse=True).p <= SUSPICION for each in questions):
        return {}
    return {it.suite: _numbered(it.suite, Side.BASE, it.base, more) for it in suites if (more := _missing_of_base(it))}


# --- the next trials --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NextTrials:
    """What to run now, interleaved, the most useful first; suites that have enough are in `done`."""

    wanted: tuple[Wanted, ...] = ()
    done: dict[str, DoneReason] = field(default_factory=dict)


def next_trials(suites: Iterable[SuiteTrials], about: Collection[str] | None = None) -> NextTrials:
    """The trials that lead suites to their next look, or say why they need none.

    `suites` are all of the comparison, those without any trials too: each has its share of the error. Those that are
    asked `about` are looked at by themselves; where nothing is said, all, and what is over all of them. May be asked at
    any time; trials under way are asked for again, under the same numbers. Whoever runs out of money stops asking:
    fewer trials never make a verdict wrong, only less certain.
    """
    wanted: list[list[Wanted]] = []
    done: dict[str, DoneReason] = {}
    shared = sharing(suites)
    beside = _beside_all(shared) if about is None else {}
    for suite in shared if about is None else (suite for suite in shared if suite.suite in about):
        if suite.done is None:
            look, number = suite.looks[suite.completed], suite.completed + 1
            head, base, _ = suite.valid
            heads = _numbered(suite.suite, Side.HEAD, suite.head, look.head - head, number)
            bases = _numbered(suite.suite, Side.BASE, suite.base, look.base - base, number)
            wanted.append(list(_interleaved((heads, bases))))
        elif suite.suite in beside:
            wanted.append(beside[suite.suite])
        else:
            done[suite.suite] = suite.done
    return NextTrials(tuple(_interleaved(wanted)), done)


def _numbered(suite: str, side: Side, made: Sequence[RunMetrics], wanted: int, look: int = 1) -> list[Wanted]:
    taken = {trial.run.trial for trial in made}
    free = (number for number in count(1) if number not in taken)
    return [Wanted(suite, side, number, look) for number in islice(free, max(0, wanted))]


def _interleaved(lists: Iterable[Sequence[Wanted]]) -> Iterator[Wanted]:
    return (trial for row in zip_longest(*lists) for trial in row if trial is not None)


def of_stored(suite: str, trials: TrialSetting, stored: StoredTrials, *, has_base: bool) -> SuiteTrials:
    head, base, known = (tuple(map(RunMetrics, runs)) for runs in (stored.head, stored.base, stored.stored))
    return SuiteTrials(suite, head, base, known, plan_of(trials), has_base)


def trials_to_come(suites: Sequence[SuiteTrials]) -> dict[str, tuple[int, int]]:
    """By suite, the fewest and the most trials that will run, if none fails."""
    answer = next_trials(suites)
    fewest = Counter(trial.suite for trial in answer.wanted)
    found = {}
    for suite in suites:
        (head, base, _), last = suite.valid, suite.looks[-1]
        most = max(0, last.head - head) + max(0, last.base - base)
        found[suite.suite] = (fewest[suite.suite], 0 if suite.suite in answer.done else most)
    return found


def to_decide(suite: SuiteTrials) -> int:
    """Trials of both sides by which most suites are decided that look worse: those of the last look but one, if any."""
    look = suite.looks[-2:][0]
    return look.head + look.base if suite.has_base else 0
