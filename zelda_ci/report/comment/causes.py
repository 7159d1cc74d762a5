"""Why suites stand where they stand: one sentence per cause, with the judge's reason and what may have done it.

A criterion that is no longer met lowers scores and moves cost and turns, too. These are not counted again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from zelda_ci.domain import numbers
from zelda_ci.domain.comparison import (
    AcceptedReason,
    BelowMinimum,
    CommandsFailed,
    CriterionDelta,
    CriterionFailed,
    EndedAtLimit,
    GateReason,
    MeasureDelta,
    NotJudged,
    NotRun,
    Regression,
    Uncounted,
    Verdict,
)
from zelda_ci.domain.details import CriterionJudgement
from zelda_ci.domain.measures import MEASURES, Measure
from zelda_ci.domain.outcome import Outcome, failed_criteria, run_outcome
from zelda_ci.report.builders.anchors import suite_address
from zelda_ci.report.builders.correctness import correctness_problem, run_problem
from zelda_ci.report.builders.gate import MAX_CRITERION_LENGTH, fallen, finding
from zelda_ci.report.builders.phrases import base, change_words, joined, key, line, listed, name, quoted
from zelda_ci.report.builders.standings import SuiteStanding, SuiteVerdict, is_firm
from zelda_ci.report.comment.sources import citations, steering, tools
from zelda_ci.report.model import NO_FILES, Line, Phrase, plain
from zelda_ci.report.text import sentence
from zelda_ci.report.told import CiReport

MAX_BOXES = 3
MAX_REASON_LENGTH = 320
MAX_PROBLEMS = 3
MAX_FILES = 4
EXPLAINED = {SuiteVerdict.WORSE, SuiteVerdict.PERHAPS_WORSE, SuiteVerdict.UNCLEAR, SuiteVerdict.ACCEPTED}
FALLEN = (Verdict.REGRESSED, Verdict.CHANGED, Verdict.INCONCLUSIVE)
# What failed commands say better than the numbers that follow from them.
OF_COMMANDS = {Measure.FUNCTIONAL_CORRECTNESS, Measure.TESTS}


@dataclass(frozen=True)
class Cause:
    """One thing that is not as it should be."""

    suite: SuiteStanding
    words: Line
    """Without the suite's name."""
    why: Line = ()
    """The judge's reason with what it cites, or what to do."""
    note: Line = ()
    """Who has accepted it, and why."""
    is_red: bool = False
    """Whether the check is red for it."""
    criterion: str = ""
    """Its text, where it is one."""
    files: tuple[str, ...] = ()
    """Those to blame in place of what steers: they broke something before any session."""

    @property
    def sentence(self) -> str:
        """As plain text."""
        return " ".join(filter(None, map(plain, (self.words, self.why, self.note))))


def causes(report: CiReport, suites: Sequence[SuiteStanding]) -> list[list[Cause]]:
    """The causes of each suite that has any, the worst first."""
    told = (list(_of_suite(report, each)) for each in suites if each.is_bad or each.standing in EXPLAINED)
    return [found for found in told if found]


def boxes(report: CiReport, found: Sequence[Sequence[Cause]]) -> tuple[tuple[tuple[Line, ...], ...], str]:
    """The first causes as boxes, one of each suite before a second of any; and how many more there are."""
    rounds = max(map(len, found), default=0)
    ordered = [each[turn] for turn in range(rounds) for each in found if turn < len(each)]
    chosen = ordered[:MAX_BOXES]
    chosen.sort(key=lambda cause: next(place for place, each in enumerate(found) if cause in each))
    first = {id(each[0]) for each in found}
    shown = tuple(_box(report, cause, with_sources=id(cause) in first) for cause in chosen)
    more, among = len(ordered) - len(chosen), len(found) - len({cause.suite.suite for cause in chosen})
    if not more:
        return shown, ""
    which = f" in {numbers.format_count(among, 'further suite')}" if among else ""
    return shown, f"and {numbers.format_count(more, 'more cause')}{which}"


def _box(report: CiReport, cause: Cause, *, with_sources: bool) -> tuple[Line, ...]:
    """A cause; what may have done it stands with the first of its suite."""
    lines: list[Line] = [line("{}: {}", name(cause.suite.suite), cause.words), cause.why, cause.note]
    if with_sources and cause.suite.standing in EXPLAINED and not cause.files:
        sources = [*tools(cause.suite), *steering(report, cause.suite)]
        lines.append(joined(sources, " "))
    link = _link(report, cause.suite.suite)
    lines = [line for line in lines if line]
    return (*lines[:-1], line("{} {}", lines[-1], link)) if link else tuple(lines)


def _link(report: CiReport, suite: str) -> Phrase | None:
    """Where all of it can be read."""
    if address := suite_address(report, suite):
        return Phrase("Report", url=address)
    return Phrase("Transcripts", url=report.links.transcripts) if report.links.transcripts else None


def _of_suite(report: CiReport, suite: SuiteStanding) -> Iterator[Cause]:
    if suite.standing is SuiteVerdict.NOT_TESTED:
        yield from _untested(suite)
        return
    criteria = [_noted(cause) for cause in _criteria(report, suite)]
    yield from criteria
    known = {cause.criterion for cause in criteria}
    others = [*_commands(report, suite), *_failing(report, suite, known)]
    yield from others
    if not criteria and not others:
        yield from _measures(suite)
    yield from _accepted(suite, known)


def _criteria(report: CiReport, suite: SuiteStanding) -> Iterator[Cause]:
    """Criteria that are met less often than before; where one surely is, no others that only may be."""
    compared = suite.compared
    if compared is None or suite.standing not in EXPLAINED:
        return
    if compared.reasons:
        yield Cause(suite, line("cannot be compared: {}.", sentence("; ".join(compared.reasons))), is_red=False)
        return
    worse = [delta for delta in compared.criteria if delta.effect == "worse" and delta.verdict in FALLEN]
    firmest = min((FALLEN.index(delta.verdict) for delta in worse), default=0)
    for delta in worse:
        if FALLEN.index(delta.verdict) == firmest:
            why = _judged(report, suite, delta.candidate_judgement)
            is_red = _is_reason(suite, delta.criterion)
            yield Cause(suite, line("{}.", fallen(delta, base(report))), why, is_red=is_red, criterion=delta.criterion)


def _is_reason(suite: SuiteStanding, criterion: str) -> bool:
    return any(_criterion_of(reason) == criterion for reason in suite.reasons)


def _criterion_of(reason: GateReason) -> str | None:
    if isinstance(reason, Regression):
        return reason.delta.criterion if isinstance(reason.delta, CriterionDelta) else None
    return reason.criterion if isinstance(reason, CriterionFailed) else None


def _judged(report: CiReport, suite: SuiteStanding, judgement: CriterionJudgement | None) -> Line:
    if judgement is None:
        return ()
    reason = sentence(judgement.reasoning, MAX_REASON_LENGTH)
    return line("{}{}", reason, citations(report, suite, judgement.evidence))


def _failing(report: CiReport, suite: SuiteStanding, known: set[str]) -> Iterator[Cause]:
    """What the gate found without a comparison."""
    for reason in _found(suite):
        words, is_red = line("{}.", finding(reason)), reason in suite.reasons
        match reason:
            case CriterionFailed(criterion=criterion) if criterion not in known:
                why = _judged(report, suite, _judgement(suite, criterion))
                yield Cause(suite, words, why, is_red=is_red, criterion=criterion)
            case BelowMinimum() if known:
                pass
            case BelowMinimum() | NotJudged() | NotRun() | EndedAtLimit():
                yield Cause(suite, words, is_red=is_red)
            case _:
                pass


def _judgement(suite: SuiteStanding, criterion: str) -> CriterionJudgement | None:
    """That of the newest session of this run in which it was not met."""
    runs = reversed(suite.ran.valid) if suite.ran else iter(())
    return next((it for run in runs for it in failed_criteria(run) if it.criterion == criterion), None)


def _commands(report: CiReport, suite: SuiteStanding) -> Iterator[Cause]:
    """Build, tests and coverage that fall short, in the words of the newest session in which they did.

    What failed before any session is blamed on the files that steer nothing: where none of them is changed, it is the
    task of the suite.
    """
    failed = next((reason for reason in suite.reasons if isinstance(reason, CommandsFailed)), None)
    compared = suite.compared.measures if suite.compared else ()
    fallen = [it for it in compared if it.measure in OF_COMMANDS and it.verdict is Verdict.REGRESSED]
    if failed is None and not fallen:
        return
    runs = reversed(suite.ran.valid) if suite.ran else iter(())
    problem = next((found for run in runs if (found := correctness_problem(run, NO_FILES))), None)
    words = problem.sentence.rstrip(".") if problem else "build, tests or coverage fall short"
    often = f" in {failed.trials} of {failed.of} sessions" if failed and failed.of > 1 else ""
    before = f" ({change_words(fallen[0])})" if fallen and not problem else ""
    is_red = failed is not None or any(_gates(suite, it) for it in fallen)
    files = report.changes.others if (early := report.batch.failing_before.get(suite.suite)) else ()
    why: Line = ()
    if early and files:
        why = line(
            "It fails on this commit before any session: {}. What breaks it is among {}, which this pull request "
            "changes and which steer nothing.",
            sentence(early).rstrip("."),
            listed([key(file) for file in files], MAX_FILES, "file"),
        )
    yield Cause(suite, line(f"{{}}{often}{before}.", words), why, is_red=is_red, files=files)


def _found(suite: SuiteStanding) -> tuple[GateReason, ...]:
    """What the gate found, that included which is not proven."""
    uncounted = (each.reason for each in suite.uncounted if each.because is not Uncounted.ON_BASE)
    return (*suite.reasons, *uncounted)


def _measures(suite: SuiteStanding) -> Iterator[Cause]:
    """Numbers that are worse by themselves: scores each, what sessions use together."""
    compared = suite.compared
    if compared is None or suite.standing not in EXPLAINED or compared.reasons:
        return
    found = [it for it in compared.measures if it.effect != "better" and it.verdict in FALLEN]
    scores = [it for it in found if is_firm(it)]
    firmest = min((FALLEN.index(delta.verdict) for delta in scores), default=0)
    for delta in scores:
        if FALLEN.index(delta.verdict) == firmest:
            yield Cause(suite, line("{}", _measure(delta)), is_red=_gates(suite, delta))
    used = [it for it in found if not is_firm(it) and it.verdict is Verdict.REGRESSED]
    if used and not scores:
        changes = ", ".join(change_words(delta) for delta in used)
        yield Cause(suite, line(f"{changes} per session on the mean."), is_red=any(_gates(suite, it) for it in used))


def _measure(delta: MeasureDelta) -> str:
    if delta.change is None:
        return f"{MEASURES[delta.measure].label} cannot be compared: {sentence('; '.join(delta.reasons))}."
    doubt = "" if delta.verdict is Verdict.REGRESSED else ", which may be chance"
    return f"{change_words(delta)}{doubt}."


def _gates(suite: SuiteStanding, delta: MeasureDelta) -> bool:
    return any(isinstance(reason, Regression) and reason.delta == delta for reason in suite.reasons)


def _untested(suite: SuiteStanding) -> Iterator[Cause]:
    """Each problem once, however many sessions have it."""
    problems: dict[str, Cause] = {}
    for run in suite.ran.runs if suite.ran else ():
        problem = run_problem(run, NO_FILES) if run_outcome(run) >= Outcome.INCOMPLETE else None
        if problem:
            found = Cause(suite, line("{}", problem.sentence), line("{}", problem.advice), is_red=True)
            problems.setdefault(problem.sentence, found)
    yield from list(problems.values())[:MAX_PROBLEMS]
    if not problems:
        yield Cause(suite, line("no session of it could be counted."), is_red=True)


def _accepted(suite: SuiteStanding, known: set[str]) -> Iterator[Cause]:
    """What somebody has taken for what it is; where the comparison has shown it already, only by whom."""
    for each in suite.accepted:
        criterion = _criterion_of(each.reason)
        if criterion and criterion not in known:
            words = line("{} is not met.", quoted(criterion, MAX_CRITERION_LENGTH))
            yield Cause(suite, words, note=_acceptance(each), criterion=criterion)


def _acceptance(accepted: AcceptedReason) -> Line:
    """`Noted: accepted by @login because …`."""
    found = accepted.acceptance
    link = line(" ({})", Phrase("comment", url=found.url)) if found.url else ()
    because = sentence(found.because, MAX_REASON_LENGTH)
    return line("Noted: accepted by {} because {}{}.", key(f"@{found.by}"), because, link)


def _noted(cause: Cause) -> Cause:
    """A cause with what was said about it, where somebody has accepted it."""
    found = next((it for it in cause.suite.accepted if _criterion_of(it.reason) == cause.criterion), None)
    if not cause.criterion or found is None or cause.is_red:
        return cause
    return replace(cause, note=_acceptance(found))
