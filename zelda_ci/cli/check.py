"""What is right before a run: `zelda check` tries what it needs, `zelda validate` reads files, `zelda lint` suites."""

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from zelda_ci import app
from zelda_ci.cli import options, reporters
from zelda_ci.cli.boundary import echo, echo_raw
from zelda_ci.config.document import DEFAULT
from zelda_ci.config.environment import read_environment
from zelda_ci.config.project import InvalidConfigError, load, select, without_suites
from zelda_ci.config.schema import entries
from zelda_ci.config.suites import LoadedSuite
from zelda_ci.domain.measures import Metric
from zelda_ci.domain.numbers import format_count, some_of
from zelda_ci.pipeline.comparing import newest_results
from zelda_ci.pipeline.fingerprints import MAX_TRIALS
from zelda_ci.pipeline.invocation import RunOrder, settled
from zelda_ci.pipeline.linting import Linter
from zelda_ci.report.builders.comparison import gate_sentence
from zelda_ci.report.builders.steering import context_report, too_large
from zelda_ci.report.terminal.pages import print_checks, print_details
from zelda_ci.report.text import inert, sentence
from zelda_ci.storage.result_store import ResultStore
from zelda_ci.survey.folder import survey


@click.command(
    epilog="Examples: `zelda check` looks at everything; `zelda check rest-endpoint --json` looks at one suite, for "
    "programs. Exit codes: 0 a run can begin, 2 something has to be mended first."
)
@options.tested("check")
@options.as_json
def check(order: RunOrder, *, project: Path, as_json: bool) -> int:
    """Try everything that a run needs, without a session.

    Setup, build and test commands run on the tested files, in the sandbox and environment that they have after a
    session; each model gets the smallest request (a fraction of a cent); Git, disk and isolation are looked at. What is
    the same in many suites is tried once.

    `zelda run` and `zelda ci` do the same before they spend anything, and remember what went well.
    """
    invocation = app.Invocation(app.load(project, order.names), order, read_environment(os.environ))
    found = reporters.carry_out(invocation, invocation.check, as_json=as_json)
    reporters.print_found(found, print_checks, as_json=as_json)
    return found.exit_code


@click.command(
    epilog="Examples: `zelda lint`; `zelda lint api --json`. Exit codes: 0 nothing found, 1 findings, 2 error."
)
@click.argument("names", **options.NAMES)
@options.project
@click.option("--judge", is_flag=True, help="Ask judges about a session that does nothing; needs a key, costs money.")
@options.as_json
def lint(*, names: tuple[str, ...], project: Path, judge: bool, as_json: bool) -> int:
    """Say what is weak in suites, with a better wording where one follows.

    Criteria that a session which does nothing passes, that were never decided or always wavered in stored trials, that
    repeat a rule, that are two in one, or that a check could decide; checks that can never match; and without SUITE
    also skills, rules and hooks that no suite touches. No session runs, and no judge is asked without --judge.
    """
    loaded = load(project, names)
    suites = [suite.resolved for suite in select(loaded, names)]
    trials = newest_results(ResultStore(loaded.results_dir), {suite.name: MAX_TRIALS for suite in suites})
    for notice in loaded.notices:
        echo(f"warning: {sentence(notice)}", err=True)
    settings, idle = read_environment(os.environ), {}
    if judge:
        with reporters.listener(as_json=True) as emit:
            idle = app.Invocation(loaded, RunOrder(names, working_tree=True), settings).judge_idle(emit)
    found = Linter(survey(loaded.root, settings), trials, idle).report(suites, whole=not names)
    if as_json:
        reporters.print_json(found)
    else:
        for each in found.findings:
            echo(f"{each.file}:{each.line}: {each.rule}: {sentence(each.subject)}\n  {each.reason}")
            for line in each.instead:
                echo(f"  {line}", fg="green")
        if found.not_tried:
            about = some_of([f'"{sentence(text)}"' for text in found.not_tried], MAX_NAMED)
            why = "could not be judged" if judge else "need a judge (--judge)"
            echo(f"Not tried on a session that does nothing, since they {why}: {about}.")
        count = format_count(len(found.findings), "finding")
        echo(f"{count} in {format_count(len(suites), 'suite')} and {format_count(len(trials), 'stored trial')}.")
    return 1 if found.findings else 0


MAX_VALUE_LENGTH, MAX_NAMED = 48, 3
MEASURED = "measured only: no criterion is judged and no build or test is run, so it can neither pass nor fail"


@click.command()
@click.argument("names", **options.NAMES)
@options.project
@click.option("--settings", "whole", is_flag=True, help="Show every setting of each suite, and where it comes from.")
@options.as_json
def validate(*, names: tuple[str, ...], project: Path, whole: bool, as_json: bool) -> None:
    """Check every file, and show what each suite asks for, in a line.

    With --settings each value is shown with its origin: a line of the suite or of zelda.config.yaml, or the default.
    SUITE is a name or a file: only this suite is shown, but all files are checked. Runs nothing and costs nothing.
    """
    try:
        loaded = load(project)
    except InvalidConfigError as invalid:
        if as_json:
            problems = [{key: it for key, it in vars(each).items() if it is not None} for each in invalid.problems]
            _print_json({"valid": False, "problems": problems})
        raise
    # As a run would have them here.
    suites = settled(loaded.root, select(loaded, names), os.environ)
    if as_json:
        described = [
            {
                "config": suite.resolved.model_dump(mode="json", by_alias=True, exclude_none=True),
                "measured": suite.resolved.only_measures,
                "origins": {key: str(origin) for key, origin in suite.provenance.items()},
            }
            for suite in suites
        ]
        folders = {"testDir": loaded.config.test_dir, "resultsDir": loaded.config.results_dir}
        _print_json({"valid": True, "project": str(loaded.root), **folders, "suites": described})
        return
    for notice in loaded.notices:
        echo(f"warning: {sentence(notice)}", err=True)
    console = Console(highlight=False, soft_wrap=True)
    lines = [((suite.resolved.name, "bold"), (suite.resolved.file, "dim"), _asked(suite)) for suite in suites]
    if whole:
        for suite, line in zip(suites, lines, strict=True):
            _print_rows(console, [line])
            # The file stands above.
            values = ((key, value) for key, value in entries(suite.resolved) if key != "file")
            _print_rows(console, [_setting(key, value, suite.provenance[key]) for key, value in values])
            console.print()
    else:
        _print_rows(console, lines)
    count = "1 suite is" if len(suites) == 1 else f"{len(suites)} suites are"
    more = "" if whole else " `zelda validate --settings` shows every setting and where it comes from."
    console.print(Text(f"{count} valid.", "green") + Text(more, "dim"))


def _print_json(told: dict[str, Any]) -> None:
    echo_raw(json.dumps({"schemaVersion": 1, **told}, indent=2))


def _print_rows(console: Console, rows: Sequence[Sequence[tuple[str, str]]]) -> None:
    """Print rows of texts and their styles, all but the last as wide as the widest that stands there."""
    widths = [max(cell_len(text) for text, _ in column) for column in zip(*rows, strict=True)][:-1]
    for row in rows:
        line = Text()
        for (text, style), width in zip(row, [*widths, 0], strict=True):
            line.append(inert(text), style).append(" " * (width and width - cell_len(text) + 2))
        console.print(line)


def _asked(loaded: LoadedSuite) -> tuple[str, str]:
    """What decides over a suite's runs, or why it has none."""
    suite = loaded.resolved
    if loaded.skip:
        return f"skipped: {sentence(loaded.skip, 60)}", ""
    if suite.only_measures:
        return MEASURED, "yellow"
    criteria = [format_count(len(suite.criteria), "criterion", "criteria")] if suite.criteria else []
    checks = [format_count(len(suite.checks), "check")] if suite.checks else []
    commands = [word for word in ("build", "test") if getattr(suite, f"{word}_command")]
    asked = {Metric.REQUIREMENT_FULFILLMENT: (*criteria, *checks), Metric.FUNCTIONAL_CORRECTNESS: commands}
    parts = [", ".join(words) for metric, words in asked.items() if words and suite.metrics.is_on(metric)]
    off = [metric for metric, words in asked.items() if words and not suite.metrics.is_on(metric)]
    parts += [f"without {', '.join(asked[metric])}: metrics.{metric} is off" for metric in off]
    return ", ".join(parts), "yellow" if off else ""


def _setting(key: str, value: Any, origin: object) -> tuple[tuple[str, str], ...]:
    """A setting on one line: `-` where nothing is set."""
    match value:
        case bool():
            text = str(value).lower()
        case float():
            text = f"{value:.15g}"
        case dict():
            text = ", ".join(name if each is None else f"{name}={each}" for name, each in value.items())
        case tuple():
            text = ", ".join(map(str, value))
        case _:
            text = "" if value is None else str(value)
    style = "dim" if origin == DEFAULT else ""
    return (f"  {key}", "cyan"), (sentence(text, MAX_VALUE_LENGTH) or "-", style), (str(origin), "dim")


@click.command(
    epilog="Examples: `zelda context` lists the files as they are; `zelda context --against main` shows what a branch "
    "changes; `zelda context --max-always-on 12k` fails above that. Exit codes: 0 listed, 1 more is always there "
    "than --max-always-on or gate.maxAlwaysOnTokens allows, 2 it could not be listed."
)
@click.argument("folder", type=options.FOLDER, default=".", metavar="[PATH]")
@options.against(help="Show what differs from this branch, tag or commit.")
@options.overrides("context")
@options.as_json
def context(order: RunOrder, *, folder: Path, as_json: bool) -> int:
    """Show what your steering files take of every session's context, in tokens.

    Claude Code starts in a private copy of the project at PATH, and lists what a session is given: CLAUDE.md files,
    rules, skills, sub-agents, MCP tools. Shown is what is always in context, what comes on demand, and which
    descriptions are cut. No model is asked and nothing is spent; no suite is needed.

    With a key, Anthropic counts the tokens, which is free. Without one all numbers are estimates, and say so.
    """
    order = replace(order, working_tree=True)
    invocation = app.Invocation(without_suites(folder), order, read_environment(os.environ))
    found = reporters.carry_out(invocation, invocation.context, as_json=as_json)
    limit = invocation.suites[0].gate.max_always_on_tokens
    excess, details = too_large(found.head, limit), context_report(found, limit=limit)
    reporters.print_found(found, lambda console, _: print_details(console, details), as_json=as_json)
    if as_json and excess:
        echo(f"error: {gate_sentence(excess)}", err=True)
    return 1 if excess else 0
