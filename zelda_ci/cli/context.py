"""`zelda context`: what a fresh session is given, before anybody has asked it anything."""

import os
import sys
from dataclasses import replace
from pathlib import Path

import click

from zelda_ci import app
from zelda_ci.cli import options, reporters
from zelda_ci.cli.output import echo
from zelda_ci.config.environment import read_environment
from zelda_ci.config.project import without_suites
from zelda_ci.pipeline.invocation import RunOrder
from zelda_ci.report import terminal
from zelda_ci.report.builders.gate import gate_sentence
from zelda_ci.report.builders.steering import context_report, too_large
from zelda_ci.report.terminal.pages import print_details
from zelda_ci.workspace.source import BaseOrder


@click.command(
    epilog="Examples: `zelda context` lists the files as they are; `zelda context --against main` shows what a branch "
    "changes; `zelda context --max-always-on 12k` fails above that. Exit codes: 0 listed, 1 more is always there "
    "than --max-always-on or gate.maxAlwaysOnTokens allows, 2 it could not be listed."
)
@click.argument("folder", type=options.FOLDER, default=".", metavar="[PATH]")
@click.option("--against", metavar="REF", help="Show what differs from this branch, tag or commit.")
@options.overrides("context")
@options.as_json
def context(order: RunOrder, *, folder: Path, against: str | None, as_json: bool) -> int:
    """Show what your steering files take of every session's context, in tokens.

    Claude Code starts in a private copy of the project at PATH, and lists what a session is given: CLAUDE.md files,
    rules, skills, sub-agents, MCP tools. Shown is what is always in context, what comes on demand, and which
    descriptions are cut. No model is asked and nothing is spent; no suite is needed.

    With a key, Anthropic counts the tokens, which is free. Without one all numbers are estimates, and say so.
    """
    order = replace(order, working_tree=True, against=BaseOrder(against) if against else None)
    invocation = app.Invocation(without_suites(folder), order, read_environment(os.environ))
    reporters.ask_about_isolation(invocation)
    with terminal.Progress(terminal.open_console(sys.stderr if as_json else sys.stdout)) as emit:
        report = invocation.context(emit)
    limit = invocation.suites[0].gate.max_always_on_tokens
    excess = too_large(report.head, limit)
    if as_json:
        reporters.print_json(report)
        if excess:
            echo(f"error: {gate_sentence(excess)}", err=True)
    else:
        print_details(terminal.open_console(sys.stdout), context_report(report, limit=limit))
    return 1 if excess else 0
