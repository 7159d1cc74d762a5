"""What the numbers rest on: baseline, trials, isolation, cost, versions."""

from collections import Counter
from collections.abc import Collection, Iterator
from datetime import UTC

from zelda_ci.domain.ci import BaselineOrigin, CiReport
from zelda_ci.domain.isolation import IsolationReport
from zelda_ci.domain.run import BatchResult
from zelda_ci.domain.session import Usage
from zelda_ci.reporter.view import numbers
from zelda_ci.reporter.view.ci.nouns import Fold, Worth
from zelda_ci.reporter.view.ci.verdict import age, commit_name
from zelda_ci.reporter.view.comparison import certainty
from zelda_ci.reporter.view.criteria import judge_cost
from zelda_ci.reporter.view.escape import sentence, visible
from zelda_ci.reporter.view.nouns import Cell, Row, Section, Tone
from zelda_ci.reporter.view.usage import used

MOST_NAMES = 5


def about_fold(report: CiReport) -> Fold:
    """Everything that a sceptic asks."""
    rows = [*_baseline(report), *_trials(report)]
    if report.comparison:
        rows += certainty(report.comparison)
    rows += [*_cost(report.batch), *_isolation(report.batch), *_made_with(report.batch)]
    title = "About this run and its baseline" if report.comparison else "About this run"
    return Fold(title, Worth.ABOUT, (Section("", tuple(rows)),))


def _baseline(report: CiReport) -> Iterator[Row]:
    origin = report.baseline
    cells = []
    if name := commit_name(origin.branch, origin.commit):
        cells.append(Cell(name, whole=True))
    cells += _when(origin, report)
    # Where a comparison is there, the facts say it all.
    told = () if report.comparison and cells else (Cell(sentence(origin.sentence)),)
    yield Row("Baseline", (*cells, *told))


def _when(origin: BaselineOrigin, report: CiReport) -> Iterator[Cell]:
    if origin.created_at:
        stamp = f"{origin.created_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
        yield Cell(f"of {stamp}, {age(origin.created_at, report.batch.started_at)}")
    if origin.behind is not None and origin.wanted:
        wanted = commit_name(None, origin.wanted)
        which = f"{numbers.count(origin.behind, 'commit')} behind the wanted {wanted}"
        yield Cell(which if origin.behind else "the wanted commit itself")


def _trials(report: CiReport) -> Iterator[Row]:
    suites = Counter(run.suite for run in report.batch.runs)
    if suites:
        here = _span(suites.values())
        there = (
            [suite.baseline.valid for suite in report.comparison.suites if suite.baseline] if report.comparison else []
        )
        cells = [Cell(f"{here} per suite")]
        if there:
            cells.append(Cell(f"{_span(there)} in the baseline"))
        yield Row("Trials", tuple(cells))


def _span(sizes: Collection[int]) -> str:
    least, most = min(sizes), max(sizes)
    return numbers.count(most, "trial") if least == most else f"{numbers.whole(least)} to {numbers.whole(most)} trials"


def _cost(batch: BatchResult) -> Iterator[Row]:
    uses = [use for run in batch.runs if (use := used(run))]
    judges = [run.judge for run in batch.runs if run.judge]
    cells = []
    if uses:
        spent, known = sum(use.cost_usd for use in uses), all(use.cost_known for use in uses)
        cells.append(Cell(f"sessions {numbers.money(spent, known=known)}"))
    if judges:
        cells.append(Cell(f"judge {judge_cost(judges)}"))
    if uses:
        cells.append(Cell(f"{numbers.whole(sum((use.tokens for use in uses), Usage()).total)} tokens"))
    cells.append(Cell(numbers.duration((batch.finished_at - batch.started_at).total_seconds())))
    yield Row("Cost of this run", tuple(cells))


def _isolation(batch: BatchResult) -> Iterator[Row]:
    """How sessions and commands were confined, and what stood out; results of older versions do not say it."""
    reports = [found for run in batch.runs if (found := run.isolation) is not None]
    if reports:
        levels = Counter(str(found.level) for found in reports)
        told = tuple(Cell(f"{visible(level)} ({numbers.count(runs, 'run')})") for level, runs in levels.items())
        remarks = dict.fromkeys(remark for found in reports for remark in _remarkable(found))
        yield Row("Isolation", told, tuple(Cell(remark, Tone.WARN) for remark in list(remarks)[:MOST_NAMES]))


def _remarkable(found: IsolationReport) -> Iterator[str]:
    for setting in found.findings:
        yield f"{visible(setting.file)}: {sentence(setting.effect)}"
    if found.protected:
        names = ", ".join(visible(name) for name in found.protected[:MOST_NAMES])
        yield f"the session changed protected files, and build and tests saw them as committed: {names}"
    if found.tripwire and found.tripwire.changes:
        changes = len(found.tripwire.changes) + found.tripwire.more
        yield f"the checkout was not the same after a run as before: {numbers.count(changes, 'difference')}"


def _made_with(batch: BatchResult) -> Iterator[Row]:
    models = sorted({model for run in batch.runs for model in run.models})
    if models:
        yield Row("Models", tuple(Cell(visible(name)) for name in models[:MOST_NAMES]))
    if any(run.replayed for run in batch.runs):
        yield Row("Replayed", (Cell("the model's words came from a cassette", Tone.WARN),))
    versions = {f"Zelda {run.versions.zelda}, Claude Code {run.versions.cli or 'unknown'}" for run in batch.runs}
    if versions:
        yield Row("Versions", tuple(Cell(visible(version)) for version in sorted(versions)[:MOST_NAMES]))
