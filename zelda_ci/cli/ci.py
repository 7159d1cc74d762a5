"""`zelda ci`: one step of a GitHub workflow."""

import os
import sys
from contextlib import ExitStack
from typing import TextIO, cast

import click

from zelda_ci.ci import action, publish
from zelda_ci.errors import EXIT_INTERRUPTED, ZeldaError
from zelda_ci.events import BatchStarted, Emit, Event, RoundStarted, RunFinished, RunStarted
from zelda_ci.github.workflow_commands import Log
from zelda_ci.report import terminal

CANCELLED = "The run was cancelled before there were results."
UNEXPECTED = "Zelda failed unexpectedly; the end of the log has the details"


HELP = """\
Run in a GitHub workflow: run suites, compare with the base branch, comment.

On a push to the default branch, the suites run and their results become the baseline. On a pull request, they run and
are compared with the baseline; the report is one comment, the job's summary and annotations. The check is red exactly
when the gate does not pass. You only need a workflow:

\b
  on: { pull_request: {}, push: { branches: [main] } }
  permissions: { contents: read, actions: read, pull-requests: write }
  jobs:
    zelda:
      runs-on: ubuntu-latest
      steps:
        - uses: actions/checkout@8e8c483db84b4bee98b60c0593521ed34d9990e8 # v6.0.1
        - uses: zelda-ci/zelda-ci@COMMIT # the full commit of a release
          with:
            anthropic-api-key: ${{ secrets.ANTHROPIC_API_KEY }}

Where suites need a toolchain such as Node, write zelda-ci/zelda-ci/runner after the step that sets it up: it runs on
the runner itself, the other in a container.

The command has no options. It reads the step's inputs (INPUT_..., as in INPUT_FAIL-ON) and the variables of the runner.
On your own machine, use `zelda run` and `zelda compare`. To run this command outside a workflow, set GITHUB_EVENT_NAME,
GITHUB_EVENT_PATH, GITHUB_REPOSITORY, GITHUB_RUN_ID, GITHUB_SHA and GITHUB_WORKSPACE. The page below has every input
and output.
"""
EXIT_CODES = (
    "Exit codes: 0 the gate passes, or there was nothing to do or judge; 1 it does not pass; 2 Zelda could not do its "
    "work (a missing key, no suites, a broken session, a criterion without a verdict); 130 cancelled."
)


@click.command(help=HELP, epilog=EXIT_CODES)
def ci() -> int:
    """Carry out the step; everything that is printed is for the runner."""
    # The runner looks for commands in both streams: from here on, whoever prints to either prints harmless text.
    log = Log(sys.stdout, masking=os.environ.get("GITHUB_ACTIONS") == "true")
    sys.stdout = sys.stderr = text = cast("TextIO", log.text)
    with terminal.Progress(terminal.open_console(text), plain=True) as emit:
        try:
            return action.ci(os.environ, log, _Grouped(log, emit))
        except ZeldaError as problem:
            if os.environ.get("GITHUB_ACTIONS"):
                log.report("error", problem.user_message, title="Zelda could not do its work")
            else:
                log.say(f"error: {problem.user_message}")
            publish.give_up(os.environ, log, problem.user_message, "broken")
            return problem.exit_code
        except KeyboardInterrupt:
            log.report("error", CANCELLED, title="Zelda")
            publish.give_up(os.environ, log, CANCELLED, "cancelled")
            return EXIT_INTERRUPTED
        except BaseException as problem:
            log.report("error", f"{UNEXPECTED} ({type(problem).__name__}).", title="Zelda")
            publish.give_up(os.environ, log, UNEXPECTED, "broken")
            raise


class _Grouped:
    """Folds each run's lines where runs come one after the other, and all of them together where they do not."""

    def __init__(self, log: Log, emit: Emit) -> None:
        self._log, self._emit = log, emit
        self._open = ExitStack()
        self._together = 0
        self._jobs = 1

    def __call__(self, event: Event) -> None:
        if isinstance(event, RunStarted) and not self._together:
            self._open.enter_context(self._log.group(event.label))
        self._emit(event)
        match event:
            case BatchStarted() if event.jobs > 1:
                self._jobs = event.jobs
                self._together = len(event.runs)
                self._open.enter_context(self._log.group("Runs"))
            case RoundStarted() if self._jobs > 1:
                if not self._together:
                    self._open.enter_context(self._log.group("More runs"))
                self._together += len(event.runs)
            case RunFinished():
                self._together = max(0, self._together - 1)
                if not self._together:
                    self._open.close()
            case _:
                pass
