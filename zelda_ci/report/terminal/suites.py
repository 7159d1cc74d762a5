"""Suites as they finish: one that passes in a line, one that fails in full, while others are still under way."""

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.text import Text

from zelda_ci.domain.arms import SuiteArms
from zelda_ci.domain.outcome import Outcome, run_outcome
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.trials import DoneReason, Side, trials_alone
from zelda_ci.events import BatchStarted, Event, RunFinished, RunStarted, Warned
from zelda_ci.report.builders.arms import forecast_lines, suite_done
from zelda_ci.report.builders.correctness import run_problem
from zelda_ci.report.builders.run import VERDICTS, run_facts
from zelda_ci.report.builders.summary import suite_view
from zelda_ci.report.model import Cell, Detail, RunFiles, SuiteView, Tone
from zelda_ci.report.terminal.console import STYLES
from zelda_ci.report.terminal.layout import Page
from zelda_ci.report.terminal.pages import print_head, print_suite
from zelda_ci.report.text import sentence, visible

# Of a command's output, in a warning.
MAX_LINE_LENGTH = 300
# Ways in which a suite ends of which its own rows say enough.
USUAL_ENDS = {DoneReason.AS_EXPECTED, DoneReason.REGRESSED, DoneReason.PLAN_ENDED, DoneReason.NOT_PROVEN}


class FinishedSuites:
    """Prints the report of each suite as soon as its last trial is over."""

    def __init__(
        self,
        detail: Detail,
        files_of: Callable[[str], RunFiles],
        is_red: Callable[[Sequence[RunResult]], bool],
    ) -> None:
        """How.

        Args:
            detail: How much of each suite.
            files_of: Where the files of a run lie, by its id.
            is_red: Whether something beside the outcomes of these runs turns the invocation red.
        """
        self._detail, self._files_of, self._is_red = detail, files_of, is_red
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
        view = suite_view(suite, ordered, {run.run_id: self._files_of(run.run_id) for run in ordered})
        # Of a suite that only measures, the numbers are what it was run for.
        passed = view.outcome is Outcome.PASSED and not self._is_red(ordered)
        measured = view.outcome is Outcome.MEASURED
        page = Page(console)
        if self._detail is Detail.FULL or (self._detail is Detail.FAILURES and not passed):
            page.line(Text())
            print_suite(page, view)
            page.line(Text())
        elif not ((passed or measured) and self._detail is Detail.QUIET):
            _line(page, view)
        if page.lines:
            page.show()


def _line(page: Page, view: SuiteView) -> None:
    print_head(page, view)
    reasons = dict.fromkeys(run.problem.sentence for run in view.runs if run.problem)
    for reason in reasons:
        page.beside(Text("   "), (Cell(reason, Tone.DIM),))


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
    mark = page.style.mark(outcome, VERDICTS[outcome])
    page.beside(Text(" ") + mark + " " + page.style.write(label) + "  ", run_facts(event.result))
    if trouble := run_problem(event.result, RunFiles()):
        page.beside(Text("   "), (Cell(trouble.sentence, Tone.DIM),))


def show_finished(suites: FinishedSuites, console: Console, event: RunFinished, label: str) -> None:
    """Print the suite if this was its last trial; of several trials each in a line before."""
    if trials_alone(event.result.config.trials) > 1 or event.result.look or event.result.side is Side.BASE:
        announce(Page(console), event, label)
    suites.take(console, event.result)


class QuietProgress:
    """A context manager that takes events, and shows only what failed and what somebody must know."""

    def __init__(self, console: Console, suites: FinishedSuites | None) -> None:
        self._console, self._suites = console, suites
        self._labels: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def __call__(self, event: Event) -> None:
        """Note the event and print what has to be known."""
        match event:
            case RunStarted():
                self._labels[event.run_id] = visible(event.label, 60)
            case RunFinished() if self._suites:
                self._suites.take(self._console, event.result)
            case SuiteArms() if self._suites and event.reason not in USUAL_ENDS:
                self._suites.done(self._console, event)
            case Warned():
                announce(Page(self._console), event, self._labels.get(event.run_id or "", ""))
            case _:
                pass
