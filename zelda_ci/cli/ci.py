"""`zelda ci`: one step of a GitHub workflow."""

import os
import sys
from typing import TextIO, cast

import click

from zelda_ci.ci import action, publish
from zelda_ci.cli.commands import PAGES_URL
from zelda_ci.errors import EXIT_INTERRUPTED, ZeldaError
from zelda_ci.github.workflow_commands import Log
from zelda_ci.report.terminal.pages import open_console
from zelda_ci.report.terminal.progress import Progress

UNEXPECTED = "Zelda failed unexpectedly; the end of the log has the details"


@click.command(
    epilog=f"{PAGES_URL}/examples/zelda.yml is a whole workflow. Exit codes: 0 the gate passes, or there was nothing "
    "to do or judge; 1 it does not pass; 2 Zelda could not do its work (a missing key, no suites, a broken session, a "
    "criterion without a verdict); 130 cancelled."
)
def ci() -> int:
    """Run in a GitHub workflow: run suites, compare with the base branch, comment.

    On a push to the default branch, the suites run and their results become the baseline. On a pull request, they run
    and are compared with the baseline; the report is one comment, the job's summary and annotations. The check is red
    exactly when the gate does not pass.

    You only need a workflow with a step that uses zelda-ci/zelda-ci, after actions/checkout. Where suites need a
    toolchain such as Node, use zelda-ci/zelda-ci/runner after the step that sets it up: it runs on the runner itself,
    the other in a container.

    The command has no options. It reads the step's inputs (INPUT_..., as in INPUT_FAIL-ON) and the variables of the
    runner. On your own machine, use `zelda run` and `zelda compare`. To run this command outside a workflow, set
    GITHUB_EVENT_NAME, GITHUB_EVENT_PATH, GITHUB_REPOSITORY, GITHUB_RUN_ID, GITHUB_SHA and GITHUB_WORKSPACE. The page
    below has every input and output.
    """
    # The runner looks for commands in both streams: from here on, whoever prints to either prints harmless text.
    log = Log(sys.stdout, os.environ)
    sys.stdout = sys.stderr = text = cast("TextIO", log)
    with Progress(open_console(text), plain=True) as emit:
        try:
            return action.ci(os.environ, log, emit)
        except ZeldaError as problem:
            if os.environ.get("GITHUB_ACTIONS"):
                log.report("error", problem.user_message, title="Zelda could not do its work")
            else:
                log.say(f"error: {problem.user_message}")
            publish.give_up(log, problem.user_message, "broken")
            return problem.exit_code
        except KeyboardInterrupt:
            log.report("error", publish.CANCELLED, title="Zelda")
            publish.give_up(log, publish.CANCELLED, "cancelled")
            return EXIT_INTERRUPTED
        except BaseException as problem:
            log.report("error", f"{UNEXPECTED} ({type(problem).__name__}).", title="Zelda")
            publish.give_up(log, UNEXPECTED, "broken")
            raise
