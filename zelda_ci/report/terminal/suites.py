"""Suites as they finish, while others are still under way."""

from collections.abc import Callable, Sequence

from rich.console import Console
from rich.text import Text

from zelda_ci.domain.arms import SuiteArms
from zelda_ci.domain.outcome import Outcome, run_outcome
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.trials import Side, trials_alone
from zelda_ci.events import BatchStarted, RunFinished, Warned
from zelda_ci.report.builders.arms import forecast_lines, suite_done
from zelda_ci.report.builders.correctness import run_problem
from zelda_ci.report.builders.run import run_facts
from zelda_ci.report.builders.summary import suite_view
from zelda_ci.report.model import Cell, Detail, RunFiles, Tone
from zelda_ci.report.terminal.console import STYLES
from zelda_ci.report.terminal.layout import Page
from zelda_ci.report.terminal.pages import print_head, print_suite
from zelda_ci.report.text import sentence, visible
from zelda_ci.report.words import OUTCOMES

# Of a command's output, in a warning.
MAX_LINE_LENGTH = 300


class FinishedSuites:
    """Prints each suite as soon as its last trial is over.

    Args:
        detail: How much of it.
        files_of: Where the files of a run lie, by its id.
    """

    def __init__(self, detail: Detail, files_of: Callable[[str], RunFiles]) -> None:
        self._detail, self._files_of = detail, files_of
        self._runs: dict[str, list[RunResult]] = {}
        self._printed: set[str] = set()

    def take(self, console: Console, result: RunResult) -> None:
        """Note a run that is over; of an adaptive plan, it may not be the last."""
        if result.side is Side.BASE:
            return
        runs = self._runs.setdefault(result.suite, [])
        runs.append(result)
        if result.look is None and len(runs) >= trials_alone(result.config.trials):
            self._print(console, runs)

    def done(self, console: Console, event: SuiteArms) -> None:
        """Print a suite that gets no further trial, and why."""
        runs = self._runs.get(event.suite, [])
        if runs and event.suite not in self._printed:
            self._print(console, runs)
        remark(console, Cell(f"{visible(event.suite)}: {suite_done(event)}", Tone.DIM))

    def print_rest(self, console: Console, runs: Sequence[RunResult]) -> None:
        """Print suites of which not every trial was carried out."""
        for suite in dict.fromkeys(run.suite for run in runs):
            if suite not in self._printed:
                self._print(console, [run for run in runs if run.suite == suite])

    def _print(self, console: Console, runs: Sequence[RunResult]) -> None:
        ordered = sorted(runs, key=lambda run: run.trial)
        suite = ordered[0].suite
        self._printed.add(suite)
        files = {run.run_id: self._files_of(run.run_id) for run in ordered}
        view = suite_view(suite, ordered, files, whole=self._detail is Detail.FULL)
        page = Page(console)
        if self._detail is Detail.FULL:
            page.line(Text())
            print_suite(page, view)
            page.line(Text())
        elif self._detail is Detail.LINES or view.outcome > Outcome.PASSED:
            print_head(page, view)
            for reason in dict.fromkeys(run.problem.sentence for run in view.runs if run.problem):
                page.beside(Text("   "), (Cell(reason, Tone.DIM),))
        if page.lines:
            page.show()


def remark(console: Console, *cells: Cell) -> None:
    """Print what is said about no single run, a line each."""
    page = Page(console)
    for cell in cells:
        page.beside(Text("   "), (cell,))
    if cells:
        page.show()


def beginning(event: BatchStarted) -> list[Cell]:
    """What is said once before anything is spent: how runs are confined, and what they may cost."""
    costs = [Cell(line) for line in forecast_lines(event.forecast)] if event.forecast else []
    return [*([Cell(sentence(event.isolation), Tone.DIM)] if event.isolation else []), *costs]


def announce(page: Page, event: RunFinished | Warned, label: str) -> None:
    """Print one of them; `label` names the run, and is empty where a warning concerns all."""
    match event:
        case RunFinished():
            _finished(page, event, label)
        case Warned():
            about = f"{label}: " if label else ""
            mark = page.style.write("warning ", STYLES[Tone.WARN])
            page.beside(Text(" ") + mark, (Cell(about + sentence(event.message)),))
            for line in event.output.splitlines():
                page.beside(Text("         "), (Cell(visible(line, MAX_LINE_LENGTH), Tone.DIM),))
    page.show()


def _finished(page: Page, event: RunFinished, label: str) -> None:
    outcome = run_outcome(event.result)
    mark = page.style.mark(outcome, OUTCOMES[outcome].verdict)
    page.beside(Text(" ") + mark + " " + page.style.write(label) + "  ", run_facts(event.result))
    if trouble := run_problem(event.result, RunFiles()):
        page.beside(Text("   "), (Cell(trouble.sentence, Tone.DIM),))


def show_finished(suites: FinishedSuites, console: Console, event: RunFinished, label: str) -> None:
    """Print the suite if this was its last trial; of several trials each in a line before."""
    if trials_alone(event.result.config.trials) > 1 or event.result.look or event.result.side is Side.BASE:
        announce(Page(console), event, label)
    suites.take(console, event.result)
