"""Where each suite stands: the one judgement that headline, causes, table and annotations share."""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from zelda_ci.domain.comparison import (
    AcceptedReason,
    CriterionDelta,
    Delta,
    GateReason,
    MeasureDelta,
    NotRun,
    SuiteComparison,
    Uncounted,
    UncountedReason,
    Verdict,
)
from zelda_ci.domain.measures import MEASURES
from zelda_ci.domain.outcome import Outcome, run_outcome
from zelda_ci.domain.run import RunResult
from zelda_ci.report.told import CiReport

GRAVE = {Outcome.INCOMPLETE, Outcome.BROKEN, Outcome.INTERRUPTED}


class SuiteVerdict(Enum):
    """What is said of a suite in a word, in the order in which a reader has to know it."""

    WORSE = "worse"
    NOT_TESTED = "could not be tested"
    PERHAPS_WORSE = "perhaps worse"
    """Seen once on a side: it proves nothing."""
    FAILS = "fails"
    """By itself, and no worse than before as far as that is known."""
    NEW_FAILS = "new, fails"
    UNCLEAR = "not enough evidence"
    ACCEPTED = "accepted"
    """What would be red, somebody who may has accepted."""
    ON_BASE = "fails on the base, too"
    BETTER = "better"
    PERHAPS_BETTER = "perhaps better"
    NEW = "new"
    REMOVED = "removed"
    AS_BEFORE = "as before"
    PASSES = "passes"
    """There is nothing to compare it with."""
    MEASURED = "measured"
    CUT_SHORT = "cut short"
    NOT_RUN = "not run"
    RAN = "ran"
    """Before the run was cancelled, so that nothing is said of it."""


ORDER = tuple(SuiteVerdict)
CALM = frozenset({SuiteVerdict.AS_BEFORE, SuiteVerdict.PASSES, SuiteVerdict.MEASURED, SuiteVerdict.RAN})
BAD = frozenset({SuiteVerdict.WORSE, SuiteVerdict.NOT_TESTED, SuiteVerdict.FAILS, SuiteVerdict.NEW_FAILS})


@dataclass(frozen=True)
class SuiteRuns:
    """Every trial of one suite."""

    suite: str
    runs: tuple[RunResult, ...]

    @property
    def valid(self) -> tuple[RunResult, ...]:
        """The runs that say something."""
        return tuple(run for run in self.runs if run.status.is_valid)

    @property
    def outcome(self) -> Outcome:
        return max(map(run_outcome, self.runs))


def by_suite(runs: Iterable[RunResult]) -> dict[str, SuiteRuns]:
    """Suites in the order in which they ran."""
    runs_of: dict[str, list[RunResult]] = {}
    for run in runs:
        runs_of.setdefault(run.suite, []).append(run)
    return {suite: SuiteRuns(suite, tuple(those)) for suite, those in runs_of.items()}


@dataclass(frozen=True)
class SuiteStanding:
    """A suite, where it stands, and all that is known of it."""

    suite: str
    standing: SuiteVerdict
    ran: SuiteRuns | None
    """Absent where no session of it was made in this run."""
    compared: SuiteComparison | None
    reasons: tuple[GateReason, ...] = ()
    """Why it makes the check red."""
    uncounted: tuple[UncountedReason, ...] = ()
    """What fails and does not make it red."""
    accepted: tuple[AcceptedReason, ...] = ()

    @property
    def valid(self) -> tuple[RunResult, ...]:
        """The runs of it that say something."""
        return self.ran.valid if self.ran else ()

    @property
    def fails_by_itself(self) -> bool:
        """Whether something stands against it that needs no comparison."""
        return any(reason.kind == "evaluation" for reason in self.reasons)

    @property
    def is_bad(self) -> bool:
        """Whether a reader has to do something about it."""
        return bool(self.reasons) or self.standing in BAD

    @property
    def is_new(self) -> bool:
        return self.compared is not None and self.compared.verdict is Verdict.NEW

    @property
    def single(self) -> bool:
        """Whether a side has one session only, which proves no change."""
        sides = (self.compared.baseline, self.compared.candidate) if self.compared else ()
        return any(side is not None and side.valid == 1 for side in sides)

    @property
    def fail_on(self) -> Collection[str] | None:
        """What its gate asks for; absent where none of its runs is at hand."""
        return self.ran.runs[-1].config.gate.fail_on if self.ran else None


def standings(report: CiReport) -> tuple[SuiteStanding, ...]:
    """Every suite of either side, the one that a reader has to know first at the beginning."""
    ran = by_suite(report.batch.runs)
    compared = {suite.suite: suite for suite in report.comparison.suites} if report.comparison else {}
    unpaid = (each.suite for each in report.batch.unpaid)
    names = dict.fromkeys([*ran, *compared, *unpaid, *(report.planned if report.is_cut_short else ())])
    found = (_standing(name, ran.get(name), compared.get(name), report) for name in names)
    return tuple(sorted(found, key=lambda each: (not each.is_bad, ORDER.index(each.standing))))


def tested(suites: Iterable[SuiteStanding]) -> list[SuiteStanding]:
    """Those that the tested files have."""
    return [each for each in suites if each.standing is not SuiteVerdict.REMOVED]


def of(suites: Iterable[SuiteStanding], *wanted: SuiteVerdict) -> list[SuiteStanding]:
    """Those that stand so."""
    return [each for each in suites if each.standing in wanted]


def untested_words(suites: Iterable[SuiteStanding]) -> str:
    """What became of suites that show nothing, or not all."""
    judged = [each.ran is not None and bool(each.ran.valid) for each in suites]
    return "could not be judged completely" if judged and all(judged) else "could not be tested"


def deltas(suite: SuiteComparison | None) -> Iterator[CriterionDelta | MeasureDelta]:
    """Criteria and numbers of a suite."""
    if suite:
        yield from suite.criteria
        yield from suite.measures


def is_firm(delta: Delta) -> bool:
    """Whether it is more than cost, turns and time, which differ between any two sessions."""
    return not (isinstance(delta, MeasureDelta) and MEASURES[delta.measure].scale.varies)


def _standing(name: str, ran: SuiteRuns | None, compared: SuiteComparison | None, report: CiReport) -> SuiteStanding:
    gate = report.gate
    reasons = tuple(reason for reason in gate.reasons if reason.suite == name)
    uncounted = tuple(each for each in gate.uncounted if each.reason.suite == name)
    accepted = tuple(each for each in gate.accepted if each.reason.suite == name)
    if report.is_cut_short:
        return SuiteStanding(name, _cut_short(ran), ran, None)
    known = _Facts(ran, compared, reasons, uncounted, accepted)
    return SuiteStanding(name, known.word, ran, compared, reasons, uncounted, accepted)


def _cut_short(ran: SuiteRuns | None) -> SuiteVerdict:
    if ran is None:
        return SuiteVerdict.NOT_RUN
    return SuiteVerdict.CUT_SHORT if ran.outcome is Outcome.INTERRUPTED else SuiteVerdict.RAN


@dataclass(frozen=True)
class _Facts:
    """What a suite's standing is judged by; the first rule that fits holds."""

    ran: SuiteRuns | None
    compared: SuiteComparison | None
    reasons: tuple[GateReason, ...]
    uncounted: tuple[UncountedReason, ...]
    accepted: tuple[AcceptedReason, ...]

    @property
    def word(self) -> SuiteVerdict:
        rules = (
            (SuiteVerdict.REMOVED, self.is_removed),
            (SuiteVerdict.NOT_TESTED, not self.is_known),
            (SuiteVerdict.ACCEPTED, bool(self.accepted) and not self.reasons),
            (SuiteVerdict.WORSE, self.has(lambda delta: delta.verdict is Verdict.REGRESSED)),
            (SuiteVerdict.NOT_TESTED, self.is_incomplete),
            (SuiteVerdict.PERHAPS_WORSE, self.has(lambda it: it.verdict is Verdict.CHANGED and it.effect == "worse")),
            (SuiteVerdict.UNCLEAR, self.is_unclear),
        )
        return next((word for word, holds in rules if holds), None) or self.word_without_change

    @property
    def word_without_change(self) -> SuiteVerdict:
        """Of a suite that may fail, but no more than before as far as that is known."""
        outcome = self.ran.outcome if self.ran else Outcome.PASSED
        if self.compared is None:
            # A gate that does not ask for it does not make a pass of a failure.
            words = {Outcome.MEASURED: SuiteVerdict.MEASURED, Outcome.FAILED: SuiteVerdict.FAILS}
            return words.get(outcome, SuiteVerdict.PASSES)
        is_new = self.compared.verdict is Verdict.NEW
        rules = (
            (SuiteVerdict.NEW_FAILS, is_new and bool(self.reasons or self.uncounted)),
            (SuiteVerdict.NEW, is_new),
            (SuiteVerdict.BETTER, self.has(lambda delta: delta.verdict is Verdict.IMPROVED)),
            (SuiteVerdict.PERHAPS_BETTER, self.has(_seems_better)),
            (SuiteVerdict.FAILS, bool(self.reasons)),
            (SuiteVerdict.ON_BASE, any(each.because is Uncounted.ON_BASE for each in self.uncounted)),
            (SuiteVerdict.FAILS, bool(self.uncounted)),
        )
        return next((word for word, holds in rules if holds), SuiteVerdict.AS_BEFORE)

    @property
    def is_removed(self) -> bool:
        is_absent = self.ran is None and self.compared is not None and self.compared.candidate is None
        return is_absent and not any(isinstance(reason, NotRun) for reason in self.reasons)

    @property
    def is_known(self) -> bool:
        """Whether anything is known of the suite: of some, trials of earlier runs have decided."""
        counted = self.compared.candidate.valid if self.compared and self.compared.candidate else 0
        unpaid = any(isinstance(reason, NotRun) and not reason.made for reason in self.reasons)
        return bool(counted or (self.ran and self.ran.valid)) and not unpaid

    @property
    def is_incomplete(self) -> bool:
        grave = self.ran is not None and self.ran.outcome in GRAVE
        return grave or any(reason.kind == "incomplete" for reason in self.reasons)

    @property
    def is_unclear(self) -> bool:
        unpaid = any(isinstance(reason, NotRun) for reason in self.reasons)
        return unpaid or self.has(_is_doubtful) or bool(self.compared and self.compared.reasons)

    def has(self, test: Callable[[Delta], bool]) -> bool:
        """Whether a criterion or a number of it is such a one."""
        return any(test(delta) for delta in deltas(self.compared))


def _is_doubtful(delta: Delta) -> bool:
    return delta.verdict is Verdict.INCONCLUSIVE and delta.is_tested and is_firm(delta) and delta.effect != "better"


def _seems_better(delta: Delta) -> bool:
    seen = delta.verdict in {Verdict.CHANGED, Verdict.INCONCLUSIVE}
    return seen and delta.is_tested and is_firm(delta) and delta.effect == "better"
