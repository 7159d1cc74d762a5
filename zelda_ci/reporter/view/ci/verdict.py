"""The first line: what became of it, against what, and how sure that is."""

from collections.abc import Iterator
from datetime import datetime

from zelda_ci.domain.ci import BaselineOrigin, BaselineState, CiReport
from zelda_ci.domain.comparison import Comparison, Verdict
from zelda_ci.domain.outcome import Outcome, run_outcome
from zelda_ci.domain.session import SessionStatus
from zelda_ci.reporter.view import numbers
from zelda_ci.reporter.view.ci.readings import by_suite
from zelda_ci.reporter.view.escape import visible
from zelda_ci.reporter.view.nouns import Cell, Row, Tone

HASH = 7
DAY = 86_400
HOUR = 3_600

MISSING = {
    BaselineState.NONE_YET: "no baseline yet",
    BaselineState.EXPIRED: "the baseline has expired",
    BaselineState.NOT_PERMITTED: "no permission to read the baseline",
    BaselineState.INVALID: "the baseline cannot be used",
    BaselineState.UNREACHABLE: "the baseline could not be fetched",
    BaselineState.OFF: "not compared",
}


def verdict_rows(report: CiReport) -> Iterator[Row]:
    """The parts of the sentence."""
    if report.batch.interrupted:
        yield Row("", (Cell("cancelled before everything had run", Tone.WARN),))
    yield Row("", tuple(_findings(report)))
    if broken := tuple(_broken(report)):
        yield Row("", broken)
    yield _against(report)
    if report.comparison:
        yield _certainty(report.comparison)


def commit_name(branch: str | None, commit: str | None) -> str:
    """`main@abc1234`."""
    short = visible(commit, 80)[:HASH] if commit else ""
    return "@".join(part for part in (visible(branch, 100) if branch else "", short) if part)


def age(then: datetime, now: datetime) -> str:
    """How old something is, as precisely as it matters."""
    seconds = (now - then).total_seconds()
    if seconds < HOUR:
        return "less than an hour old"
    unit, noun = (HOUR, "hour") if seconds < 2 * DAY else (DAY, "day")
    return f"{numbers.count(int(seconds // unit), noun)} old"


def _findings(report: CiReport) -> Iterator[Cell]:
    """Regressions and improvements, or else what the runs showed by themselves."""
    suites = len({run.suite for run in report.batch.runs})
    if not report.batch.runs:
        yield Cell("nothing was run", Tone.BAD)
        return
    failed = sum(reason.kind == "evaluation" for reason in report.gate.reasons)
    if report.comparison is None:
        yield _passed(report, suites)
    else:
        *first, last = _counted(report.comparison)
        yield from first
        yield Cell(f"{last.text} in {numbers.count(suites, 'suite')}", last.tone)
    if failed:
        yield Cell(f"{numbers.count(failed, 'evaluation')} failed", Tone.BAD)


def _counted(comparison: Comparison) -> list[Cell]:
    counts = comparison.counts
    if all(suite.verdict in {Verdict.NEW, Verdict.REMOVED} for suite in comparison.suites):
        return [Cell("nothing that the baseline knows", Tone.WARN)]
    together = sum(row.gates for row in comparison.overall)
    found = []
    if counts.regressed:
        found.append(Cell(numbers.count(counts.regressed, "regression"), Tone.BAD))
    elif together:
        found.append(Cell(f"{numbers.count(together, 'regression')} of all suites together", Tone.BAD))
    else:
        found.append(Cell("no regressions", Tone.GOOD))
    if counts.improved:
        found.append(Cell(numbers.count(counts.improved, "improvement"), Tone.GOOD))
    if counts.inconclusive and not (counts.regressed or counts.improved):
        found.append(Cell(f"{numbers.whole(counts.inconclusive)} inconclusive", Tone.WARN))
    return found


def _passed(report: CiReport, suites: int) -> Cell:
    outcomes = [suite.outcome for suite in by_suite(report.batch.runs).values()]
    measured, good = outcomes.count(Outcome.MEASURED), outcomes.count(Outcome.PASSED)
    if measured == suites:
        return Cell(f"{numbers.count(suites, 'suite')} measured")
    tone = Tone.GOOD if good + measured == suites else Tone.BAD
    aside = f", {numbers.whole(measured)} measured" if measured else ""
    return Cell(f"{numbers.whole(good)} of {numbers.count(suites, 'suite')} passed{aside}", tone)


def _broken(report: CiReport) -> Iterator[Cell]:
    """Runs that say nothing, or not all."""
    for status in (SessionStatus.FAILED, SessionStatus.INTERRUPTED):
        if found := sum(run.status is status for run in report.batch.runs):
            yield Cell(f"{numbers.count(found, 'run')} {status.value}", Tone.BAD)
    if found := sum(run_outcome(run) is Outcome.INCOMPLETE for run in report.batch.runs):
        yield Cell(f"{numbers.count(found, 'run')} INCOMPLETE", Tone.BAD)


def _against(report: CiReport) -> Row:
    origin = report.baseline
    if report.comparison is None:
        known = origin.state is BaselineState.FOUND
        return Row("", (Cell("not compared" if known else MISSING[origin.state], Tone.WARN),))
    return Row("baseline", tuple(_baseline(origin, report.batch.started_at)))


def _baseline(origin: BaselineOrigin, now: datetime) -> Iterator[Cell]:
    name = commit_name(origin.branch, origin.commit)
    yield Cell(name, whole=True) if name else Cell("as given")
    if origin.behind:
        yield Cell(f"{numbers.count(origin.behind, 'commit')} behind", Tone.WARN)
    if origin.created_at and (now - origin.created_at).total_seconds() > DAY:
        yield Cell(age(origin.created_at, now))


def _certainty(comparison: Comparison) -> Row:
    if comparison.single_trial:
        return Row("", (Cell("1 trial", Tone.WARN), Cell("differences may be noise", Tone.WARN)))
    sizes = [suite.candidate.valid for suite in comparison.suites if suite.candidate and suite.candidate.valid]
    if not sizes:
        return Row("", (Cell("no valid run", Tone.BAD),))
    span = numbers.count(sizes[0], "trial") if len(set(sizes)) == 1 else f"{min(sizes)} to {max(sizes)} trials"
    return Row("", (Cell(span),))
