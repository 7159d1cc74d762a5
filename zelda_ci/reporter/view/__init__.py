"""The only place that sorts, rounds, labels and escapes: from results to finished strings; pure."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from zelda_ci.domain.comparison import GateResult
from zelda_ci.domain.outcome import run_outcome
from zelda_ci.domain.run import BatchResult, RunResult
from zelda_ci.reporter.view.escape import visible
from zelda_ci.reporter.view.nouns import NO_FILES, ReportView, RunFiles, RunView, Section, SuiteView
from zelda_ci.reporter.view.run import VERDICTS, run_view
from zelda_ci.reporter.view.summary import about, summary
from zelda_ci.reporter.view.trials import passed, spread

__all__ = ["ReportView", "RunFiles", "report_view", "stored_run_view"]

NOTHING_AGAINST = GateResult()


def report_view(batch: BatchResult, files: Mapping[str, RunFiles], gate: GateResult = NOTHING_AGAINST) -> ReportView:
    """The report on one invocation; `files` says by run id where each run's files are."""
    by_suite: dict[str, list[RunResult]] = {}
    for run in batch.runs:
        by_suite.setdefault(run.suite, []).append(run)
    suites = tuple(_suite_view(name, runs, files) for name, runs in by_suite.items())
    return ReportView(suites, summary(batch, suites, gate))


def stored_run_view(run: RunResult, files: RunFiles) -> RunView:
    """One stored run in full, whichever trial it was."""
    view = run_view(run, files)
    return replace(view, sections=(*view.sections, Section("About", about(run))))


def _suite_view(name: str, runs: Sequence[RunResult], files: Mapping[str, RunFiles]) -> SuiteView:
    # What the suite asks for may have been overruled: only the runs themselves tell how many trials there were.
    several = max(run.trial for run in runs) > 1
    views = tuple(run_view(run, files.get(run.run_id, NO_FILES), several=several) for run in runs)
    outcome = max(map(run_outcome, runs))
    facts = passed(runs) if several else views[0].facts
    return SuiteView(visible(name), outcome, VERDICTS[outcome], facts, spread(runs), views)
