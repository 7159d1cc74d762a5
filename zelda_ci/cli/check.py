"""`zelda check`: would a run go well? Found out in seconds, before anything is spent."""

import os
import sys
from pathlib import Path

import click

from zelda_ci import app
from zelda_ci.cli import options, printing
from zelda_ci.config.environment import read_environment
from zelda_ci.pipeline.invocation import RunOrder
from zelda_ci.report import terminal
from zelda_ci.report.terminal.pages import print_checks


@click.command(
    epilog="Examples: `zelda check` looks at everything; `zelda check rest-endpoint --json` looks at one suite, for "
    "programs. Exit codes: 0 a run can begin, 2 something has to be mended first."
)
@click.argument("names", **options.NAMES, **options.OF_ORDER)
@options.project
@click.option("--tag", "tags", **options.TAGS, **options.OF_ORDER)
@options.order("check")
@options.unsafe
@options.commit
@click.option("--json", "as_json", is_flag=True, help="Print the checks as JSON; progress goes to standard error.")
def check(order: RunOrder, *, project: Path, as_json: bool) -> int:
    """Try everything that a run needs, without a session.

    Setup, build and test commands run on the tested files, in the sandbox and environment that they have after a
    session; each model gets the smallest request (a fraction of a cent); Git, disk and isolation are looked at. What is
    the same in many suites is tried once.

    `zelda run` and `zelda ci` do the same before they spend anything, and remember what went well.
    """
    invocation = app.Invocation(app.load(project, order.names), order, read_environment(os.environ))
    printing.ask_about_isolation(invocation)
    with printing.progress(as_json=as_json) as emit:
        found = invocation.check(emit)
    if as_json:
        printing.print_json(found)
    else:
        print_checks(terminal.open_console(sys.stdout), found)
    return found.exit_code
