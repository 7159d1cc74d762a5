"""The comment's first lines: the verdict, what was compared with what, and how sure that is."""

from collections import Counter
from collections.abc import Collection, Iterator
from datetime import UTC, datetime

from zelda_ci.domain import numbers
from zelda_ci.domain.ci import BaselineOrigin, BaselineState, CiReport
from zelda_ci.domain.comparison import Comparison, Verdict
from zelda_ci.domain.outcome import Outcome, run_outcome
from zelda_ci.domain.run import BatchResult
from zelda_ci.domain.session import SessionStatus, Usage
from zelda_ci.domain.workspace import IsolationReport
from zelda_ci.report.builders.arms import spent
from zelda_ci.report.builders.baseline import pool_words
from zelda_ci.report.builders.ci_table import by_suite
from zelda_ci.report.builders.comparison import certainty, count_words
from zelda_ci.report.builders.judged import judge_cost
from zelda_ci.report.builders.usage import used
from zelda_ci.report.model import Cell, Details, Priority, Row, Section, Tone
from zelda_ci.report.text import sentence, visible

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
    if report.batch.runs or report.batch.base_runs:
        platform = _platform(report.batch)
        yield from (row for row in (platform, _money(report.batch)) if row.cells)


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
    return f"{numbers.format_count(int(seconds // unit), noun)} old"


def _findings(report: CiReport) -> Iterator[Cell]:
    """Regressions and improvements, or else what the runs showed by themselves."""
    compared = report.comparison.suites if report.comparison else ()
    # Of some, trials of earlier runs have decided.
    judged = {suite.suite for suite in compared if suite.candidate and suite.candidate.valid}
    suites = len(judged | {run.suite for run in report.batch.runs})
    if not suites:
        yield Cell("nothing was run", Tone.BAD)
        return
    failed = sum(reason.kind == "evaluation" for reason in report.gate.reasons)
    if report.comparison is None:
        yield _passed(report, suites)
    else:
        *first, last = _counted(report.comparison)
        yield from first
        yield Cell(f"{last.text} in {numbers.format_count(suites, 'suite')}", last.tone)
    if failed:
        yield Cell(f"{numbers.format_count(failed, 'evaluation')} failed", Tone.BAD)
    if same := len(report.gate.on_base):
        yield Cell(f"{numbers.whole(same)} failed on the base, too", Tone.WARN)


def _counted(comparison: Comparison) -> list[Cell]:
    counts = comparison.counts
    if all(suite.verdict in {Verdict.NEW, Verdict.REMOVED} for suite in comparison.suites):
        return [Cell("nothing that the baseline knows", Tone.WARN)]
    together = sum(row.gates for row in comparison.overall)
    cells = []
    if counts.regressed:
        cells.append(Cell(count_words(Verdict.REGRESSED, counts.regressed), Tone.BAD))
    elif together:
        cells.append(Cell(f"{numbers.format_count(together, 'regression')} of all suites together", Tone.BAD))
    else:
        cells.append(Cell("no regressions", Tone.GOOD))
    if counts.changed:
        cells.append(Cell(count_words(Verdict.CHANGED, counts.changed), Tone.WARN))
    if counts.improved:
        cells.append(Cell(count_words(Verdict.IMPROVED, counts.improved), Tone.GOOD))
    if counts.inconclusive and not (counts.regressed or counts.changed or counts.improved):
        cells.append(Cell(f"{numbers.whole(counts.inconclusive)} inconclusive", Tone.WARN))
    return cells


def _passed(report: CiReport, suites: int) -> Cell:
    outcomes = [suite.outcome for suite in by_suite(report.batch.runs).values()]
    measured, good = outcomes.count(Outcome.MEASURED), outcomes.count(Outcome.PASSED)
    if measured == suites:
        return Cell(f"{numbers.format_count(suites, 'suite')} measured")
    tone = Tone.GOOD if good + measured == suites else Tone.BAD
    aside = f", {numbers.whole(measured)} measured" if measured else ""
    return Cell(f"{numbers.whole(good)} of {numbers.format_count(suites, 'suite')} passed{aside}", tone)


def _broken(report: CiReport) -> Iterator[Cell]:
    """Runs that say nothing, or not all."""
    for status in (SessionStatus.FAILED, SessionStatus.INTERRUPTED):
        if count := sum(run.status is status for run in report.batch.runs):
            yield Cell(f"{numbers.format_count(count, 'run')} {status.value}", Tone.BAD)
    if count := sum(run_outcome(run) is Outcome.INCOMPLETE for run in report.batch.runs):
        yield Cell(f"{numbers.format_count(count, 'run')} INCOMPLETE", Tone.BAD)


def _against(report: CiReport) -> Row:
    origin = report.baseline
    if report.comparison is None:
        is_found = origin.state is BaselineState.FOUND
        return Row("", (Cell("not compared" if is_found else MISSING[origin.state], Tone.WARN),))
    return Row("baseline", tuple(_baseline(origin, report.batch.started_at)))


def _baseline(origin: BaselineOrigin, now: datetime) -> Iterator[Cell]:
    name = commit_name(origin.branch, origin.commit)
    yield Cell(name, whole=True) if name else Cell("as given")
    if origin.behind:
        yield Cell(f"{numbers.format_count(origin.behind, 'commit')} behind", Tone.WARN)
    if origin.created_at and (now - origin.created_at).total_seconds() > DAY:
        yield Cell(age(origin.created_at, now))
    for fact in pool_words(origin.pool, now) if origin.pool else ():
        yield Cell(fact)


def _certainty(comparison: Comparison) -> Row:
    sizes = [suite.candidate.valid for suite in comparison.suites if suite.candidate and suite.candidate.valid]
    if not sizes:
        return Row("", (Cell("no valid run", Tone.BAD),))
    beside = [suite.sources.base for suite in comparison.suites if suite.sources and suite.sources.base]
    stored = [suite.baseline.valid for suite in comparison.suites if suite.baseline and suite.baseline.valid]
    if beside:
        return Row("", (Cell(_span(sizes)), Cell(f"{_span(beside)} of the base side by side")))
    against = f" against {_range(stored)}" if stored else ""
    if comparison.single_trial:
        return Row("", (Cell(f"{_span(sizes)}{against}", Tone.WARN), Cell("differences may be noise", Tone.WARN)))
    return Row("", (Cell(f"{_span(sizes)}{against}"),))


MAX_MODELS = 2


def _platform(batch: BatchResult) -> Row:
    """What the sessions ran on: another one may give other results for the same files."""
    runs = (*batch.runs, *batch.base_runs)
    versions = sorted({run.versions.cli for run in runs if run.versions.cli})
    models = sorted({model for run in runs for model in run.models})
    more = len(models) - MAX_MODELS
    names = [*(visible(name, 60) for name in models[:MAX_MODELS]), *([f"{more} more models"] if more > 0 else [])]
    return Row("", (*(Cell(f"Claude Code {visible(version, 40)}") for version in versions), *map(Cell, names)))


def _money(batch: BatchResult) -> Row:
    """Of all sessions and judges, those of the base too."""
    if all(run.replayed for run in (*batch.runs, *batch.base_runs)):
        return Row("", (Cell("replayed, nothing was spent"),))
    judged = any(run.judge for run in (*batch.runs, *batch.base_runs))
    return Row("", (Cell(f"{spent(batch)}{' with the judge' if judged else ''}"),))


MAX_NAMES = 5


def about_details(report: CiReport) -> Details:
    """Everything that a sceptic asks."""
    rows = [*_about_baseline(report), *_trials(report)]
    if report.comparison:
        rows += certainty(report.comparison)
    rows += [*_cost(report.batch), *_isolation(report.batch), *_made_with(report.batch)]
    title = "About this run and its baseline" if report.comparison else "About this run"
    return Details(title, Priority.ABOUT, (Section("", tuple(rows)),))


def _about_baseline(report: CiReport) -> Iterator[Row]:
    origin = report.baseline
    cells = []
    if name := commit_name(origin.branch, origin.commit):
        cells.append(Cell(name, whole=True))
    cells += _when(origin, report)
    # Where a comparison is there, the facts say it all.
    explanation = () if report.comparison and cells else (Cell(sentence(origin.sentence)),)
    yield Row("Baseline", (*cells, *explanation))


def _when(origin: BaselineOrigin, report: CiReport) -> Iterator[Cell]:
    if origin.created_at:
        stamp = f"{origin.created_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
        yield Cell(f"of {stamp}, {age(origin.created_at, report.batch.started_at)}")
    if origin.behind is not None and origin.wanted:
        base_commit = commit_name(None, origin.wanted)
        which = f"{numbers.format_count(origin.behind, 'commit')} behind the wanted {base_commit}"
        yield Cell(which if origin.behind else "the wanted commit itself")


def _trials(report: CiReport) -> Iterator[Row]:
    suites = Counter(run.suite for run in report.batch.runs)
    if suites:
        current = _span(suites.values())
        stored = (
            [suite.baseline.valid for suite in report.comparison.suites if suite.baseline] if report.comparison else []
        )
        cells = [Cell(f"{current} per suite")]
        if stored:
            cells.append(Cell(f"{_span(stored)} in the baseline"))
        yield Row("Trials", tuple(cells))


def _span(sizes: Collection[int]) -> str:
    return numbers.format_count(max(sizes), "trial") if len(set(sizes)) == 1 else f"{_range(sizes)} trials"


def _range(sizes: Collection[int]) -> str:
    least, most = min(sizes), max(sizes)
    return numbers.whole(most) if least == most else f"{numbers.whole(least)} to {numbers.whole(most)}"


def _cost(batch: BatchResult) -> Iterator[Row]:
    runs = (*batch.runs, *batch.base_runs)
    uses = [use for run in runs if (use := used(run))]
    judges = [run.judge for run in runs if run.judge]
    cells = []
    if uses:
        cost, is_known = sum(use.cost_usd for use in uses), all(use.cost_known for use in uses)
        cells.append(Cell(f"sessions {numbers.money(cost, exact=is_known)}"))
    if judges:
        cells.append(Cell(f"judge {judge_cost(judges)}"))
    if uses:
        cells.append(Cell(f"{numbers.whole(sum((use.tokens for use in uses), Usage()).total)} tokens"))
    cells.append(Cell(numbers.duration((batch.finished_at - batch.started_at).total_seconds())))
    yield Row("Cost of this run", tuple(cells))


def _isolation(batch: BatchResult) -> Iterator[Row]:
    """How sessions and commands were confined, and what stood out; results of older versions do not say it."""
    reports = [report_of_run for run in batch.runs if (report_of_run := run.isolation) is not None]
    if reports:
        levels = Counter(str(report_of_run.level) for report_of_run in reports)
        cells = tuple(Cell(f"{visible(level)} ({numbers.format_count(runs, 'run')})") for level, runs in levels.items())
        remarks = dict.fromkeys(remark for report_of_run in reports for remark in _remarkable(report_of_run))
        yield Row("Isolation", cells, tuple(Cell(remark, Tone.WARN) for remark in list(remarks)[:MAX_NAMES]))


def _remarkable(report: IsolationReport) -> Iterator[str]:
    for setting in report.findings:
        yield f"{visible(setting.file)}: {sentence(setting.effect)}"
    if report.protected:
        names = ", ".join(visible(name) for name in report.protected[:MAX_NAMES])
        yield f"the session changed protected files, and build and tests saw them as committed: {names}"
    if report.ignored.kept:
        names = ", ".join(visible(name) for name in report.ignored.kept[:MAX_NAMES])
        yield f"build and tests saw files that git ignores as the session left them: {names}"
    if report.tripwire and report.tripwire.changes:
        changes = len(report.tripwire.changes) + report.tripwire.more
        yield f"the checkout was not the same after a run as before: {numbers.format_count(changes, 'difference')}"


def _made_with(batch: BatchResult) -> Iterator[Row]:
    models = sorted({model for run in batch.runs for model in run.models})
    if models:
        yield Row("Models", tuple(Cell(visible(name)) for name in models[:MAX_NAMES]))
    if any(run.replayed for run in batch.runs):
        yield Row("Replayed", (Cell("the model's words came from a cassette", Tone.WARN),))
    versions = {f"Zelda {run.versions.zelda}, Claude Code {run.versions.cli or 'unknown'}" for run in batch.runs}
    if versions:
        yield Row("Versions", tuple(Cell(visible(version)) for version in sorted(versions)[:MAX_NAMES]))
