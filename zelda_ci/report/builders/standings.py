"""Where each suite stands: the one judgement that headline, causes, table and annotations share."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from zelda_ci.domain import comparison as findings
from zelda_ci.domain.comparison import CriterionDelta, Delta, MeasureDelta, SuiteComparison, Verdict
from zelda_ci.domain.measures import MEASURES
from zelda_ci.domain.outcome import Outcome, run_outcome
from zelda_ci.domain.run import RunResult
from zelda_ci.report.ci_report import CiReport


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


V = SuiteVerdict
ORDER = tuple(V)
CALM = {V.AS_BEFORE, V.PASSES, V.MEASURED, V.RAN}


@dataclass(frozen=True)
class SuiteStanding:
    """A suite, where it stands, and all that is known of it."""

    suite: str
    runs: tuple[RunResult, ...]
    """Its sessions in this run."""
    compared: SuiteComparison | None = None
    reasons: tuple[findings.GateReason, ...] = ()
    """Why it makes the check red."""
    uncounted: tuple[findings.UncountedReason, ...] = ()
    """What fails and does not make it red."""
    accepted: tuple[findings.AcceptedReason, ...] = ()
    is_cut_short: bool = False
    """Whether the whole run was ended before its time."""

    @cached_property
    def standing(self) -> SuiteVerdict:
        """Its verdict: the first rule that fits holds."""
        if self.is_cut_short:
            ended = V.CUT_SHORT if self.outcome is Outcome.INTERRUPTED else V.RAN
            return ended if self.runs else V.NOT_RUN
        alone = self.compared is None
        candidate = self.compared.candidate if self.compared else None
        unpaid = [reason for reason in self.reasons if isinstance(reason, findings.NotRun)]
        # Of some, trials of earlier runs have decided.
        is_known = bool(self.valid) or (candidate is not None and candidate.valid > 0)
        incomplete = self.outcome > Outcome.FAILED or any(reason.kind == "incomplete" for reason in self.reasons)
        firm = {(it.verdict, it.effect) for it in self.deltas if it.is_tested and is_firm(it)}
        doubtful = any(verdict is Verdict.INCONCLUSIVE and effect != "better" for verdict, effect in firm)
        rules = (
            (V.REMOVED, not (self.runs or alone or candidate or unpaid)),
            (V.NOT_TESTED, not is_known or any(not reason.made for reason in unpaid)),
            (V.ACCEPTED, self.accepted and not self.reasons),
            (V.WORSE, any(it.verdict is Verdict.REGRESSED for it in self.deltas)),
            (V.NOT_TESTED, incomplete),
            (V.PERHAPS_WORSE, any(it.verdict is Verdict.CHANGED and it.effect == "worse" for it in self.deltas)),
            (V.UNCLEAR, unpaid or doubtful or (self.compared and self.compared.reasons)),
            (V.MEASURED, alone and self.outcome is Outcome.MEASURED),
            # A gate that does not ask for it does not make a pass of a failure.
            (V.FAILS, alone and self.outcome is Outcome.FAILED),
            (V.PASSES, alone),
            (V.NEW_FAILS, self.is_new and (self.reasons or self.uncounted)),
            (V.NEW, self.is_new),
            (V.BETTER, any(it.verdict is Verdict.IMPROVED for it in self.deltas)),
            (V.PERHAPS_BETTER, firm & {(Verdict.CHANGED, "better"), (Verdict.INCONCLUSIVE, "better")}),
            (V.FAILS, self.reasons),
            (V.ON_BASE, any(each.because is findings.Uncounted.ON_BASE for each in self.uncounted)),
            (V.FAILS, self.uncounted),
        )
        return next((word for word, holds in rules if holds), V.AS_BEFORE)

    @property
    def valid(self) -> tuple[RunResult, ...]:
        """The sessions that say something."""
        return tuple(run for run in self.runs if run.status.is_valid)

    @property
    def outcome(self) -> Outcome:
        return max(map(run_outcome, self.runs), default=Outcome.PASSED)

    @property
    def deltas(self) -> tuple[CriterionDelta | MeasureDelta, ...]:
        return (*self.compared.criteria, *self.compared.measures) if self.compared else ()

    @property
    def fails_by_itself(self) -> bool:
        """Whether something stands against it that needs no comparison."""
        return any(reason.kind == "evaluation" for reason in self.reasons)

    @property
    def is_bad(self) -> bool:
        """Whether a reader has to do something about it."""
        return bool(self.reasons) or self.standing in {V.WORSE, V.NOT_TESTED, V.FAILS, V.NEW_FAILS}

    @property
    def is_new(self) -> bool:
        return self.compared is not None and self.compared.verdict is Verdict.NEW

    @property
    def fail_on(self) -> Collection[str] | None:
        """What its gate asks for; absent where none of its runs is at hand."""
        return self.runs[-1].config.gate.fail_on if self.runs else None


def standings(report: CiReport) -> tuple[SuiteStanding, ...]:
    """Every suite of either side, the one that a reader has to know first at the beginning."""
    gate, runs = report.gate, report.batch.runs
    compared = {suite.suite: suite for suite in report.comparison.suites} if report.comparison else {}
    names = [*(run.suite for run in runs), *compared, *(each.suite for each in report.batch.unpaid)]
    found = []
    for name in dict.fromkeys([*names, *(report.planned if report.is_cut_short else ())]):
        own = tuple(run for run in runs if run.suite == name)
        if report.is_cut_short:
            found.append(SuiteStanding(name, own, is_cut_short=True))
            continue
        reasons = tuple(reason for reason in gate.reasons if reason.suite == name)
        uncounted = tuple(each for each in gate.uncounted if each.reason.suite == name)
        accepted = tuple(each for each in gate.accepted if each.reason.suite == name)
        found.append(SuiteStanding(name, own, compared.get(name), reasons, uncounted, accepted))
    return tuple(sorted(found, key=lambda each: (not each.is_bad, ORDER.index(each.standing))))


def tested(suites: Iterable[SuiteStanding]) -> list[SuiteStanding]:
    """Those that the tested files have."""
    return [each for each in suites if each.standing is not V.REMOVED]


def of(suites: Iterable[SuiteStanding], *wanted: SuiteVerdict) -> list[SuiteStanding]:
    """Suites with one of these verdicts."""
    return [each for each in suites if each.standing in wanted]


def untested_words(suites: Iterable[SuiteStanding]) -> str:
    """What became of suites that show nothing, or not all."""
    judged = [bool(each.valid) for each in suites]
    return "could not be judged completely" if judged and all(judged) else "could not be tested"


def is_firm(delta: Delta) -> bool:
    """Whether it is more than cost, turns and time, which differ between any two sessions."""
    return not (isinstance(delta, MeasureDelta) and MEASURES[delta.measure].scale.varies)
