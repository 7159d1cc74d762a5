"""`zelda why`: which part of a change made a suite worse."""

import os
import sys
from dataclasses import replace
from pathlib import Path

import click

from zelda_ci import app
from zelda_ci.app import Invocation
from zelda_ci.cli import completion, options, reporters
from zelda_ci.cli.options import of_order
from zelda_ci.cli.output import echo
from zelda_ci.cli.run import JOBS
from zelda_ci.config.environment import read_environment
from zelda_ci.config.project import LoadedProject
from zelda_ci.domain.run import RunResult
from zelda_ci.errors import StorageError
from zelda_ci.pipeline.attribution import asked_about
from zelda_ci.pipeline.invocation import RunOrder
from zelda_ci.report import terminal
from zelda_ci.report.builders.steering import attribution_details, attribution_line, subject_words
from zelda_ci.report.model import plain
from zelda_ci.report.text import sentence
from zelda_ci.storage.references import LATEST
from zelda_ci.workspace.source import BaseOrder


@click.command(
    epilog="Examples: `zelda why` after a `zelda run --against main` that found a regression; `zelda why "
    "latest:rest-endpoint --criterion 2 --budget-usd 5`. Exit codes: 0 there is an answer, be it that no part did it; "
    "2 it is not decided, or nothing got worse."
)
@click.argument("run", default=LATEST, metavar="[RUN]", shell_complete=completion.runs)
@options.project
@click.option(
    "--criterion",
    type=options.whole(1),
    metavar="N",
    help="Ask about this criterion of the suite, counted from 1; without it, about what got worse for sure.",
)
@of_order(
    "--against",
    type=BaseOrder,
    metavar="REF",
    help="Take what differs from this commit, branch or tag; without it, from the one that was compared with.",
)
@of_order(
    "--budget-usd",
    type=options.OptionType(options.amount, "amount"),
    help="Most that the search may cost, judges included; without it, what the comparison has left of its own budget.",
)
@of_order("--jobs", type=options.whole(1), default=JOBS, envvar="ZELDA_JOBS", show_default=True, help="In parallel.")
@of_order("--unsafe", is_flag=True, help="Run even without isolation: code then has all your rights.")
@options.no_check
@options.as_json
@click.make_pass_decorator(RunOrder, ensure=True)
def why(order: RunOrder, *, run: str, project: Path, criterion: int | None, as_json: bool) -> int:
    """Find out which lines of a change made a suite worse.

    RUN is a comparison that `zelda run --against REF` made (the id of its batch, or of one of its runs); `latest` is
    the newest, `latest:SUITE` the newest of a suite.

    The change is taken apart into hunks of the files that steer. Sessions run with some of them taken back, four at a
    time, until one is likely to be the cause, or no part of the change is; six more confirm it. Where only one
    part changed that the suite can feel, no session runs.
    """
    loaded = app.load(project)
    question = asked_about(loaded.results_dir, run, criterion)
    against = order.against or (BaseOrder(question.base) if question.base else None)
    if against is None:
        message = f"{run} was compared with nothing, so nobody knows what changed."
        hint = "Run it with `zelda run --against main`, or say with what: `zelda why --against main`."
        raise StorageError(message, hint=hint, code="NO_BASE")
    if not question.worse:
        hint = "`zelda compare` shows what changed; --criterion N asks about one that failed, proven or not."
        raise StorageError(f"Nothing got worse for sure in {run}.", hint=hint, code="NOTHING_WORSE")
    worse, *others = question.worse
    budget = order.budget_usd if order.budget_usd is not None else question.left_usd
    if others:
        named = "; ".join(f"{it.suite}: {it.subject}" for it in others)
        echo(f"The answer is about {sentence(worse.subject, 80)!r}. Also worse: {sentence(named, 300)}", err=True)
    invocation = _invocation(
        loaded, replace(order, names=(worse.suite,), against=against, budget_usd=budget), worse.heads[-1]
    )
    with terminal.Progress(terminal.open_console(sys.stderr if as_json else sys.stdout)) as emit:
        found = invocation.why(worse, emit)
    if as_json:
        reporters.print_json(found)
    else:
        echo(f"\n{sentence(f'{found.suite}: {subject_words(found)}')}\n{plain(attribution_line(found))}")
        for each in attribution_details(found):
            echo(f"   {sentence(each)}")
    return 2 if found.verdict == "undecided" else 0


def _invocation(loaded: LoadedProject, order: RunOrder, head: RunResult) -> Invocation:
    """The same files as a run had, if they are still there."""
    source = head.source
    commit = source.commit if source and not (source.parent or source.dirty) else None
    order = replace(order, commit=BaseOrder(commit) if commit else None, working_tree=commit is None)
    invocation = Invocation(loaded, order, read_environment(os.environ))
    now, then = invocation.fingerprints()[head.suite], head.fingerprint
    if then is None or (now.outcome, now.tree) != (then.outcome, then.tree):
        what = "The suite or its settings have" if commit else "The tested files, the suite or its settings have"
        raise StorageError(
            f"{what} changed since {head.run_id} ran: its sessions are no evidence any more.",
            hint="Compare again with `zelda run --against`, and ask `zelda why` then.",
            code="HEAD_CHANGED",
        )
    return invocation
