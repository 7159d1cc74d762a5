"""A comparison whose trials were added where they were needed: the same record as `compare` makes, at fixed looks."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from zelda_ci.compare.comparison import (
    SuiteQuestions,
    ask_suite,
    compare,
    count_verdicts,
    finish_suite,
    gravest,
)
from zelda_ci.compare.deltas import HypothesisResult, QuestionKey
from zelda_ci.compare.looks import SCORES, SuiteLooks
from zelda_ci.compare.multiplicity import ALPHA
from zelda_ci.compare.overall import FirstTrials
from zelda_ci.compare.questions import Pair
from zelda_ci.compare.schedule import SuiteTrials, looks_of_all, reason_to_end
from zelda_ci.compare.sides import suite_side
from zelda_ci.domain.comparison import (
    Comparison,
    CriterionDelta,
    Delta,
    FamilySize,
    MeasureDelta,
    SuiteComparison,
    TrialSources,
    Verdict,
)
from zelda_ci.domain.measures import MEASURES, Measure
from zelda_ci.domain.trials import DoneReason, FixedTrials, Plan

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

Row = TypeVar("Row", MeasureDelta, CriterionDelta)


def compare_trials(plan: Plan, suites: Sequence[SuiteTrials]) -> Comparison:
    """Compare what the schedule asked for, whether or not it came to its end.

    Args:
        plan: Of the job.
        suites: All suites that `next_trials` was asked about.
    """
    if all(isinstance(suite.plan or plan, FixedTrials) for suite in suites):
        return _fixed(suites)
    all_looks = looks_of_all(plan, suites)
    judged = [_Judged(*each, reason_to_end(*each, plan)) for each in zip(suites, all_looks, strict=True)]
    judged = [each for each in judged if each.trials.head or each.trials.base or each.trials.stored]
    compared = tuple(each.comparison() for each in sorted(judged, key=lambda each: each.trials.suite))
    overall = FirstTrials(all_looks).rows()
    return Comparison(
        verdict=gravest([*(suite.verdict for suite in compared), *(row.verdict for row in overall if row.is_tested)]),
        counts=count_verdicts(compared),
        single_trial=False,
        family=_size(judged),
        overall=overall,
        suites=compared,
    )


def _fixed(suites: Sequence[SuiteTrials]) -> Comparison:
    """The design of the same number for everybody, corrected over the whole comparison."""
    old = [trial.run for suite in suites for trial in suite.base]
    new = [trial.run for suite in suites for trial in suite.head]
    return compare(old, new, side_by_side=True)


def _size(judged: Iterable["_Judged"]) -> FamilySize:
    tested = [each.looks.best for each in judged]
    return FamilySize(
        hypotheses=sum(map(len, tested)),
        testable=sum(answer.worse < 1 for answers in tested for answer in answers.values()),
        alpha=ALPHA,
    )


@dataclass(frozen=True)
class _Judged:
    """One suite on its way to a verdict."""

    trials: SuiteTrials
    looks: SuiteLooks
    done: DoneReason | None

    def comparison(self) -> SuiteComparison:
        suite = self._asked()
        answers = {key: self._answer(key) for key in suite.measures | suite.criteria}
        found = finish_suite(suite, answers)
        measures = tuple(map(self._settled, found.measures))
        criteria = tuple(map(self._settled, found.criteria))
        return found.replace(
            verdict=self._verdict(found, [row.verdict for row in (*measures, *criteria) if _decides(row)]),
            reasons=(*found.reasons, *self._shortage()),
            measures=measures,
            criteria=criteria,
            sources=self._sources(),
        )

    def _asked(self) -> SuiteQuestions:
        """What was tested, and the other numbers to be shown."""
        trials, looks = self.trials, self.looks
        old = looks.base or looks.stored or trials.base or trials.stored
        pair = Pair(
            trials.suite,
            suite_side(trials.suite, old) if old else None,
            suite_side(trials.suite, trials.head) if trials.head else None,
            mixed=False,
            side_by_side=bool(looks.base),
        )
        suite = ask_suite(pair)
        untested = {
            key: replace(question, is_fact=False)  # the schedule asks for more trials, which tell facts from chance
            if Measure(key.name) in SCORES
            else replace(question, method=None, tails=None, not_tested=ONCE)
            for key, question in suite.measures.items()
        }
        return replace(suite, measures=untested)

    def _answer(self, key: QuestionKey) -> HypothesisResult:
        """The smallest p-value of all looks; what no look tested is never significant."""
        answer = self.looks.best.get(key)
        worse, better = (answer.worse, answer.better) if answer else (1.0, 1.0)
        return HypothesisResult(worse, better, key in self.looks.regressed)

    def _settled(self, row: Row) -> Row:
        if not self.trials.head:
            return row.replace(verdict=Verdict.INCONCLUSIVE, reasons=(NOT_RUN,))
        if row.verdict is Verdict.NEW and self.trials.has_base and self.done is DoneReason.AS_EXPECTED:
            passes = row.candidate is not None and row.candidate.minimum >= 100 and _has_a_best(row)
            return row.replace(
                verdict=Verdict.UNCHANGED if passes else row.verdict, reasons=(PASSES if passes else NOT_STORED,)
            )
        is_open = row.verdict in UNPROVEN and row.change is not None and row.is_tested
        return self._unproven(row) if is_open else row

    def _unproven(self, row: Row) -> Row:
        if self.done is DoneReason.AS_EXPECTED:
            is_expected = row.effect == "better" or _rests_on_one_trial(row)
            verdict, reason = (Verdict.UNCHANGED, EXPECTED) if is_expected else (Verdict.INCONCLUSIVE, NOT_SHOWN)
            return row.replace(verdict=verdict, reasons=(reason,))
        if self.done is None:
            return row.replace(reasons=(UNFINISHED,))
        # Of one trial the verdict itself says that it proves nothing.
        return row if row.verdict is Verdict.CHANGED else row.replace(reasons=(NOT_PROVEN,))

    def _verdict(self, found: SuiteComparison, verdicts: Collection[Verdict]) -> Verdict:
        gravest_row = gravest(verdicts)
        if gravest_row is Verdict.REGRESSED:
            return gravest_row
        if self._shortage():
            return Verdict.INCONCLUSIVE
        if found.verdict is Verdict.NEW and Verdict.UNCHANGED not in verdicts:
            return found.verdict  # which outweighs nothing in the verdict on all suites
        return Verdict.INCONCLUSIVE if found.reasons else gravest_row

    def _shortage(self) -> tuple[str, ...]:
        """Why the suite is not decided although more trials could have decided it."""
        if not self.looks.head:
            return (NOT_RUN,)
        return (MORE_WANTED,) if self.done in {None, DoneReason.FAILED} else ()

    def _sources(self) -> TrialSources:
        looks = self.looks
        return TrialSources(
            head=len(looks.head),
            base=len(looks.base),
            stored=len(looks.stored),
            ended=self.done,
        )


def _decides(row: Delta) -> bool:
    """Whether the verdict on the suite rests on it."""
    return row.is_tested and not (isinstance(row, MeasureDelta) and row.measure not in SCORES)


def _has_a_best(row: Delta) -> bool:
    """Whether 100 is the most that it can reach, so that no base is better."""
    return not isinstance(row, MeasureDelta) or (row.measure in SCORES and MEASURES[row.measure].limit is not None)


def _rests_on_one_trial(row: Delta) -> bool:
    """Whether the head would be no worse if its worst trial were as good as the best of the base."""
    old, new = row.baseline, row.candidate
    if old is None or new is None:
        return False
    return new.mean + (old.maximum - new.minimum) / new.trials >= old.mean * (1 - 1e-9)
