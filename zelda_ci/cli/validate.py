"""`zelda validate`: is everything right, what does each suite resolve to, and where does each value come from?"""

import json
import os
from pathlib import Path
from typing import Any

import click
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from zelda_ci.cli import options
from zelda_ci.cli.output import echo, echo_raw
from zelda_ci.config.merge import DEFAULT, LoadedSuite
from zelda_ci.config.project import examine
from zelda_ci.config.schema import entries
from zelda_ci.config.selection import select
from zelda_ci.domain.measures import Metric
from zelda_ci.domain.numbers import format_count
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.pipeline.invocation import settled
from zelda_ci.report.text import sentence

MAX_VALUE_LENGTH = 48
MEASURED = "measured only: no criterion is judged and no build or test is run, so it can neither pass nor fail"


@click.command()
@click.argument("names", **options.NAMES)
@options.project
@click.option("--settings", "whole", is_flag=True, help="Show every setting of each suite, and where it comes from.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, problems included.")
def validate(*, names: tuple[str, ...], project: Path, whole: bool, as_json: bool) -> None:
    """Check every file, and show what each suite asks for, in a line.

    With --settings each value is shown with its origin: a line of the suite or of zelda.config.yaml, or the default.
    SUITE is a name or a file: only this suite is shown, but all files are checked. Runs nothing and costs nothing.
    """
    examination = examine(project)
    loaded = examination.project
    if loaded is None:
        if as_json:
            keys = ("file", "line", "column", "message")
            problems = [
                {key: value for key in keys if (value := getattr(it, key)) is not None} for it in examination.problems
            ]
            echo_raw(json.dumps({"schemaVersion": 1, "valid": False, "problems": problems}, indent=2))
        raise examination.error()
    # As a run would have them here.
    suites = settled(loaded.root, select(loaded.suites, names, (), loaded.notices), os.environ)
    if as_json:
        told = {
            "schemaVersion": 1,
            "valid": True,
            "project": str(loaded.root),
            "testDir": loaded.config.test_dir,
            "resultsDir": loaded.config.results_dir,
            "suites": [
                {
                    "config": suite.resolved.model_dump(mode="json", by_alias=True, exclude_none=True),
                    "measured": _only_measures(suite.resolved),
                    "origins": {key: str(origin) for key, origin in suite.provenance.items()},
                }
                for suite in suites
            ],
        }
        echo_raw(json.dumps(told, indent=2))
        return
    for notice in loaded.notices:
        echo(f"warning: {sentence(notice)}", err=True)
    console = Console(highlight=False, soft_wrap=True)
    name_width = max((cell_len(suite.resolved.name) for suite in suites), default=0)
    for suite in suites:
        name = Text(suite.resolved.name, "bold")
        name.pad_right(name_width - name.cell_len)
        asked = _asked(suite)
        file = Text(suite.resolved.file, "dim")
        console.print(name, Text(asked, "yellow" if asked is MEASURED else ""), file, sep="  ")
        if whole:
            _print_settings(console, suite)
    count = "1 suite is" if len(suites) == 1 else f"{len(suites)} suites are"
    more = "" if whole else " `zelda validate --settings` shows every setting and where it comes from."
    console.print(Text(f"{count} valid.", "green") + Text(more, "dim"))


def _asked(loaded: LoadedSuite) -> str:
    """What decides over a suite's runs, or why it has none."""
    suite = loaded.resolved
    if loaded.skip:
        return f"skipped: {sentence(loaded.skip, 60)}"
    if _only_measures(suite):
        return MEASURED
    commands = [word for word in ("build", "test") if getattr(suite, f"{word}_command")]
    criteria = [format_count(len(suite.criteria), "criterion", "criteria")] if suite.criteria else []
    return ", ".join([*criteria, *commands])


def _print_settings(console: Console, suite: LoadedSuite) -> None:
    # The file stands above.
    rows = [(key, _shown(value), suite.provenance[key]) for key, value in entries(suite.resolved) if key != "file"]
    label, width = max(len(key) for key, _, _ in rows), max(len(value) for _, value, _ in rows)
    for key, value, origin in rows:
        style = "dim" if origin == DEFAULT else ""
        line = (f"  {key:{label}}", "cyan"), (f"  {value:{width}}", style), (f"  {origin}", "dim")
        console.print(Text.assemble(*line))
    console.print()


def _shown(value: Any) -> str:
    """A value on one line: `-` where nothing is set."""
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
    return sentence(text, MAX_VALUE_LENGTH) or "-"


def _only_measures(suite: ResolvedSuite) -> bool:
    """True where nothing is asked of a suite's runs that could pass or fail."""
    judged = suite.metrics.is_on(Metric.REQUIREMENT_FULFILLMENT) and suite.criteria
    commands = suite.build_command or suite.test_command
    tested = suite.metrics.is_on(Metric.FUNCTIONAL_CORRECTNESS) and commands
    return not (judged or tested)
