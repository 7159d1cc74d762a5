"""Lines that stay on the screen while runs go on: finished runs and warnings."""

from rich.text import Text

from zelda_ci.domain.outcome import run_outcome
from zelda_ci.events import RunFinished, Warned
from zelda_ci.reporter.terminal.page import Page
from zelda_ci.reporter.terminal.style import STYLES
from zelda_ci.reporter.view.escape import sentence
from zelda_ci.reporter.view.nouns import Cell, RunFiles, Tone
from zelda_ci.reporter.view.problems import problem
from zelda_ci.reporter.view.run import VERDICTS, run_facts


def announce(page: Page, event: RunFinished | Warned, label: str) -> None:
    """Print one of them; `label` names the run, and is empty where a warning concerns all."""
    match event:
        case RunFinished():
            _finished(page, event, label)
        case Warned():
            about = f"{label}: " if label else ""
            mark = page.ink.write("warning ", STYLES[Tone.WARN])
            page.beside(Text(" ") + mark, (Cell(about + sentence(event.message)),))
    page.show()


def _finished(page: Page, event: RunFinished, label: str) -> None:
    outcome = run_outcome(event.result)
    mark = page.ink.mark(outcome, VERDICTS[outcome])
    page.beside(Text(" ") + mark + " " + page.ink.write(label) + "  ", run_facts(event.result))
    if trouble := problem(event.result, RunFiles()):
        page.beside(Text("   "), (Cell(trouble.sentence, Tone.DIM),))
