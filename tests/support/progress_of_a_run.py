"""Progress of one run without an end, for tests that cut it off: `python progress_of_a_run.py [ROUNDS]`."""

import sys
import time

from tests.golden.batches import run, safe
from zelda_ci.cli import boundary
from zelda_ci.domain.session import Retried
from zelda_ci.events import Phase, PhaseStarted, RunFinished, RunsPlanned, RunStarted, SessionProgressed
from zelda_ci.report.terminal.pages import open_console
from zelda_ci.report.terminal.progress import Progress

boundary.take_over()
rounds = int(sys.argv[1])
console = open_console(sys.stdout)
with Progress(console) as emit:
    emit(RunsPlanned({"example": None, "other": None}, 2))
    emit(RunStarted("example", "example"))
    for number in range(rounds):
        emit(PhaseStarted("example", Phase.SESSION))
        retried = Retried(at=1, attempt=1, status=529, error=safe("overloaded"))
        emit(SessionProgressed("example", retried, number, 0.01 * number))
        time.sleep(0.01)
    emit(RunFinished(run("example")))
sys.stderr.write("the end\n")
