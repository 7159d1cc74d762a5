"""A comparison of two sides: suite by suite, then over all suites.

There is one way to a verdict. Two sets of results, and a fixed number of trials, are a plan with one look; where trials
were added as they were needed, there are several.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from zelda_ci.compare.compatibility import notes
from zelda_ci.compare.deltas import describe
from zelda_ci.compare.figures import figure_deltas
from zelda_ci.compare.looks import AT_ONCE, AdjustedAnswer, Answers, SuiteLooks, answered
from zelda_ci.compare.multiplicity import ALPHA
from zelda_ci.compare.overall import first_trials, overall_questions
from zelda_ci.compare.questions import OVERALL_ALPHA, Pair, Question, QuestionKey
from zelda_ci.compare.schedule import SuiteTrials, looks_of_all, reason_to_end
from zelda_ci.compare.sides import SuiteSide, sides
from zelda_ci.domain.comparison import (
    Comparison,
    CriterionDelta,
    Delta,
    FamilySize,
    MeasureDelta,
    SuiteComparison,
    ToolChange,
    ToolDelta,
    TrialSources,
    Verdict,
)
from zelda_ci.domain.details import CriterionJudgement
from zelda_ci.domain.measures import MEASURES, Measure
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.trials import DoneReason, Plan

GRAVITY = (Verdict.REGRESSED, Verdict.CHANGED, Verdict.IMPROVED, Verdict.INCONCLUSIVE)

EXPECTED = "as expected: no worse than the base but for one trial, so no more were made"
NOT_SHOWN = "not shown to be worse: chance often makes such a difference, so no more trials were made"
PASSES = "as expected: it passes in all first trials, so the base was not run"
NOT_STORED = "nothing is stored to compare it with, and the base was not run"
NOT_PROVEN = "changed, not proven"
UNFINISHED = "changed, not proven: more trials were wanted than were made"
NOT_RUN = "not run"
MORE_WANTED = "more trials were wanted than were made"
ONCE = "differs between any two sessions: compared over all suites, on their first trials"

# A difference that was seen, and is no call.
UNPROVEN = {Verdict.CHANGED, Verdict.INCONCLUSIVE}

# Of what no look tested: it is never significant.
UNTESTED = AdjustedAnswer()

Row = TypeVar("Row", MeasureDelta, CriterionDelta)


def compare(
    baseline: Iterable[RunResult],
    candidate: Iterable[RunResult],
    *,
    allow_mixed: bool = False,
    pair_suites: bool = False,
) -> Comparison:
    """Compare the runs of any number of suites, several trials each; their order does not matter.

    Args:
        baseline: What the candidate is measured against.
        candidate: What is judged.
        allow_mixed: Give verdicts even where the sides differ in prompt, models or versions; they never gate.
        pair_suites: Compare the only suite of one side with the only suite of the other even if they are not the
            same; such verdicts never gate either.
    """
    old, new = sides(baseline), sides(candidate)
    pairs = [Pair(suite, old.get(suite), new.get(suite), allow_mixed) for suite in sorted({*old, *new})]
    if pair_suites and len(old) == len(new) == 1 and len(pairs) == 2:
        (before,), (after,) = old.values(), new.values()
        pairs = [Pair(f"{before.suite} -> {after.suite}", before, after, mixed=True)]
    return _compared([_Suite(pair) for pair in pairs])


def compare_trials(plan: Plan, suites: Sequence[SuiteTrials]) -> Comparison:
    """Compare what the schedule asked for, whether or not it came to its end.

    Args:
        plan: Of the job.
        suites: All suites that `next_trials` was asked about.
    """
    all_looks = looks_of_all(plan, suites)
    found = [
        _Suite(_at_once(looks))
        if isinstance(trials.plan or plan, int)
        else _Suite(looks.whole, looks, reason_to_end(trials, looks, plan))
        for trials, looks in zip(suites, all_looks, strict=True)
    ]
    return _compared(found, all_looks)


def _at_once(looks: SuiteLooks) -> Pair:
    base, head = (side if side.given else None for side in (looks.base, looks.head))
    return Pair(looks.suite, base, head, side_by_side=True)


@dataclass(frozen=True)
class _Suite:
    """One suite on its way to a verdict."""

    pair: Pair
    looks: SuiteLooks | None = None
    """Of a plan that adds trials."""
    done: DoneReason | None = None

    @property
    def questions(self) -> Mapping[QuestionKey, Question]:
        """With those that are only shown."""
        if self.looks is None:
            return self.pair.questions
        shown = self.pair.questions
        others = {key: replace(question, method=None, not_tested=ONCE) for key, question in shown.items()}
        # The schedule asks for more trials, which tell facts from chance.
        tested = {key: replace(it, is_fact=False) for key, it in shown.items() if not it.scale.varies}
        return others | tested

    def compared(self, answers: Answers) -> SuiteComparison:
        """The suite's record."""
        pair, old, new = self.pair, self.pair.baseline, self.pair.candidate
        rows = [self._row(key, question, answers.get(key, UNTESTED)) for key, question in self.questions.items()]
        found = SuiteComparison(
            suite=pair.suite,
            file=pair.present[-1].file,
            verdict=self._verdict(rows),
            baseline=old.trials if old else None,
            candidate=new.trials if new else None,
            reasons=(*pair.obstacles, *self._shortage()),
            notes=notes(pair.readings),
            measures=tuple(row for row in rows if isinstance(row, MeasureDelta)),
            criteria=tuple(row for row in rows if isinstance(row, CriterionDelta)),
            sources=self._sources(),
        )
        if not (old and new and old.readings and new.readings):
            return found
        comparable = pair.mixed or not pair.obstacles
        return found.replace(
            figures=figure_deltas(old.readings, new.readings, comparable=comparable), tools=_tools(old, new)
        )

    def _row(self, key: QuestionKey, question: Question, answer: AdjustedAnswer) -> MeasureDelta | CriterionDelta:
        fields = describe(question, answer)
        if not key.criterion:
            return self._settled(MeasureDelta(measure=Measure(key.name), **fields))
        if fields["verdict"] is not Verdict.UNCHANGED:
            sides = ("baseline", self.pair.baseline), ("candidate", self.pair.candidate)
            for name, side in sides:
                fields[f"{name}_judgement"] = _typical(side, key.name)
        return self._settled(CriterionDelta(criterion=key.name, **fields))

    def _settled(self, row: Row) -> Row:
        """What the end of a plan that adds trials makes of a row."""
        if self.looks is None:
            return row
        if not self.looks.head.given:
            return row.replace(verdict=Verdict.INCONCLUSIVE, reasons=(NOT_RUN,))
        if row.verdict is Verdict.NEW and self.has_base and self.done is DoneReason.AS_EXPECTED:
            passes = row.candidate is not None and row.candidate.minimum >= 100 and _has_a_best(row)
            verdict, reason = (Verdict.UNCHANGED, PASSES) if passes else (Verdict.NEW, NOT_STORED)
            return row.replace(verdict=verdict, reasons=(reason,))
        if row.verdict not in UNPROVEN or row.change is None or not row.is_tested:
            return row
        if self.done is DoneReason.AS_EXPECTED:
            is_expected = row.effect == "better" or _rests_on_one_trial(row)
            verdict, reason = (Verdict.UNCHANGED, EXPECTED) if is_expected else (Verdict.INCONCLUSIVE, NOT_SHOWN)
            return row.replace(verdict=verdict, reasons=(reason,))
        if self.done is None:
            return row.replace(reasons=(UNFINISHED,))
        # Of one trial the verdict itself says that it proves nothing.
        return row if row.verdict is Verdict.CHANGED else row.replace(reasons=(NOT_PROVEN,))

    @property
    def has_base(self) -> bool:
        """Whether the plan has looks at trials of the base."""
        return self.looks is not None and self.looks.looks[-1].base > 0

    def _verdict(self, rows: Sequence[Delta]) -> Verdict:
        pair = self.pair
        if self.looks:
            verdicts = [row.verdict for row in rows if _decides(row)]
            if Verdict.REGRESSED in verdicts:
                return Verdict.REGRESSED
            if self._shortage():
                return Verdict.INCONCLUSIVE
            if pair.baseline is None and Verdict.UNCHANGED not in verdicts:
                return Verdict.NEW  # which outweighs nothing in the verdict on all suites
            return Verdict.INCONCLUSIVE if pair.obstacles else gravest(verdicts)
        if pair.baseline is None:
            return Verdict.NEW
        if pair.candidate is None:
            return Verdict.REMOVED
        if pair.obstacles and not pair.mixed:
            return Verdict.INCONCLUSIVE
        return gravest(row.verdict for row in rows if row.is_tested)

    def _shortage(self) -> tuple[str, ...]:
        """Why the suite is not decided although more trials could have decided it."""
        if self.looks is None:
            return ()
        if not self.looks.head.readings:
            return (NOT_RUN,)
        return (MORE_WANTED,) if self.done in {None, DoneReason.FAILED} else ()

    def _sources(self) -> TrialSources | None:
        if self.looks is None:
            return None
        looks = self.looks
        head, base, stored = (len(side.readings) for side in (looks.head, looks.base, looks.stored))
        return TrialSources(head=head, base=base, stored=stored, ended=self.done)


def _decides(row: Delta) -> bool:
    """Whether the verdict on the suite rests on it, where trials are added."""
    return row.is_tested and not (isinstance(row, MeasureDelta) and MEASURES[row.measure].scale.varies)


def _has_a_best(row: Delta) -> bool:
    """Whether 100 is the most that it can reach, so that no base is better."""
    return not isinstance(row, MeasureDelta) or (_decides(row) and MEASURES[row.measure].limit is not None)


def _rests_on_one_trial(row: Delta) -> bool:
    """Whether the head would be no worse if its worst trial were as good as the best of the base."""
    old, new = row.baseline, row.candidate
    if old is None or new is None:
        return False
    return new.mean + (old.maximum - new.minimum) / new.trials >= old.mean * (1 - 1e-9)


def _compared(suites: Sequence[_Suite], looks: Sequence[SuiteLooks] = ()) -> Comparison:
    """All suites, and the numbers over all of them.

    Args:
        suites: Each with what it is judged by; one that has no trials at all is left out.
        looks: Of all suites, where some have a plan.
    """
    adding = [suite for suite in suites if suite.looks]
    found = sorted((suite for suite in suites if suite.pair.present), key=lambda suite: suite.pair.suite)
    questions = {key: question for suite in found if not suite.looks for key, question in suite.questions.items()}
    share = 1 - sum(suite.looks.share for suite in adding if suite.looks and suite.has_base)
    answers = answered(questions, share, weights=AT_ONCE)
    for suite in adding:
        answers |= suite.looks.answers if suite.looks else {}
    overall = first_trials(looks) if adding else overall_questions([suite.pair for suite in found])
    answers |= answered(overall, alpha=OVERALL_ALPHA)
    compared = tuple(suite.compared(answers) for suite in found)
    rows = [
        MeasureDelta(measure=Measure(key.name), **describe(question, answers.get(key, UNTESTED)))
        for key, question in overall.items()
    ]
    if not adding:
        rows += _of_one_suite(compared, {row.measure for row in rows})
    asked = (*questions.values(), *overall.values())
    return Comparison(
        verdict=gravest([*(suite.verdict for suite in compared), *(row.verdict for row in rows if row.is_tested)]),
        counts=count_verdicts(compared),
        single_trial=any(question.method == "threshold" for question in asked),
        mixed=any(question.sample.is_mixed for question in asked),
        family=FamilySize(hypotheses=len(answers), alpha=ALPHA),
        overall=tuple(sorted(rows, key=lambda row: list(Measure).index(row.measure))),
        suites=compared,
    )


def _of_one_suite(suites: Sequence[SuiteComparison], known: Collection[Measure]) -> Iterator[MeasureDelta]:
    """The rows of the one suite that has a measure on both sides; the gate already counts them there."""
    rows = (row for suite in suites for row in suite.measures if row.change is not None and row.measure not in known)
    yield from {row.measure: row.replace(gates=False) for row in rows}.values()


def gravest(verdicts: Iterable[Verdict]) -> Verdict:
    """One verdict for many: a regression outweighs all, and doubt outweighs calm."""
    occurring = set(verdicts)
    return next((verdict for verdict in GRAVITY if verdict in occurring), Verdict.UNCHANGED)


def _typical(side: SuiteSide | None, criterion: str) -> CriterionJudgement | None:
    """The newest judgement with the more frequent verdict; of a tie, a failure, which tells more."""
    if side is None:
        return None
    judged = [reading for reading in reversed(side.readings) if criterion in reading.judgements]
    outcomes = side.outcomes(criterion)
    usual = 100.0 if 2 * sum(outcomes) > 100 * len(outcomes) else 0.0
    typical = (reading for reading in judged if reading.outcomes.get(criterion) == usual)
    chosen = next(typical, judged[0] if judged else None)
    return chosen.judgements[criterion] if chosen else None


def _tools(old: SuiteSide, new: SuiteSide) -> ToolDelta:
    return ToolDelta(
        newly_used=_seen_on_one_side(old.tools_used, new.tools_used, new.tools_used),
        no_longer_used=_seen_on_one_side(old.tools_used, new.tools_used, old.tools_used),
        newly_missed=_seen_on_one_side(old.tools_missed, new.tools_missed, new.tools_missed),
        no_longer_missed=_seen_on_one_side(old.tools_missed, new.tools_missed, old.tools_missed),
    )


def _seen_on_one_side(old: Counter[str], new: Counter[str], side: Counter[str]) -> tuple[ToolChange, ...]:
    return tuple(
        ToolChange(tool=tool, baseline_trials=old[tool], candidate_trials=new[tool])
        for tool in sorted(side)
        if not (old[tool] and new[tool])
    )


def count_verdicts(suites: Iterable[SuiteComparison]) -> dict[Verdict, int]:
    """Criteria and measures of all suites by verdict."""
    counts = Counter(delta.verdict for suite in suites for delta in (*suite.measures, *suite.criteria))
    return {verdict: counts[verdict] for verdict in Verdict}
