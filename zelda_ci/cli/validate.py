"""`zelda validate`: is everything right, what does each suite resolve to, and where does each value come from?"""

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from zelda_ci.cli import completion
from zelda_ci.cli.output import echo, echo_raw
from zelda_ci.config.merge import DEFAULT, LoadedSuite, Origin
from zelda_ci.config.project import Examination, LoadedProject, examine
from zelda_ci.config.schema import entries
from zelda_ci.config.selection import select
from zelda_ci.domain.measures import Metric
from zelda_ci.domain.numbers import format_count
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.pipeline.settling import settled
from zelda_ci.report.text import sentence

_MAX_VALUE_LENGTH = 48
MEASURED = "measured only: no criterion is judged and no build or test is run, so it can neither pass nor fail"


@click.command(short_help="Check every file, and show what each suite asks for.")
@click.argument("names", nargs=-1, metavar="[SUITE]...", shell_complete=completion.suites)
@click.option(
    "--project",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    default=".",
    metavar="DIR",
    help="Folder of the project (default: the current one).",
)
@click.option("--settings", "whole", is_flag=True, help="Show every setting of each suite, and where it comes from.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, problems included.")
def validate(*, names: tuple[str, ...], project: Path, whole: bool, as_json: bool) -> None:
    """Check every file, and show what each suite asks for, in a line.

    With --settings each value is shown with its origin: a line of the suite or of zelda.config.yaml, or the default.
    SUITE is a name or a file: only this suite is shown, but all files are checked. Runs nothing and costs nothing.
    """
    examination = examine(project)
    if examination.project is None:
        if as_json:
            echo_raw(json.dumps(_problems_json(examination), indent=2))
        raise examination.error()
    # As a run would have them here.
    suites = settled(
        examination.project.root, select(examination.project.suites, names, (), examination.project.notices), os.environ
    )
    if as_json:
        echo_raw(json.dumps(_project_json(examination.project, suites), indent=2))
    else:
        for notice in examination.project.notices:
            echo(f"warning: {sentence(notice)}", err=True)
        _print(suites, whole=whole)


def _problems_json(examination: Examination) -> dict[str, Any]:
    problems = [
        {"file": it.file, "line": it.line, "column": it.column, "message": it.message} for it in examination.problems
    ]
    present = [{key: value for key, value in it.items() if value is not None} for it in problems]
    return {"schemaVersion": 1, "valid": False, "problems": present}


def _project_json(project: LoadedProject, suites: Sequence[LoadedSuite]) -> dict[str, Any]:
    return {
        "schemaVersion": 1,
        "valid": True,
        "project": str(project.root),
        "testDir": project.config.test_dir,
        "resultsDir": project.config.results_dir,
        "suites": [
            {
                "config": suite.resolved.model_dump(mode="json", by_alias=True, exclude_none=True),
                "measured": _only_measures(suite.resolved),
                "origins": {key: str(origin) for key, origin in suite.provenance.items()},
            }
            for suite in suites
        ],
    }


def _print(suites: Sequence[LoadedSuite], *, whole: bool) -> None:
    console = Console(highlight=False, soft_wrap=True)
    name_width = max((cell_len(suite.resolved.name) for suite in suites), default=0)
    for suite in suites:
        name = Text(suite.resolved.name, "bold")
        name.pad_right(name_width - name.cell_len)
        asked = _asked(suite)
        console.print(
            name, Text(asked, "yellow" if asked is MEASURED else ""), Text(suite.resolved.file, "dim"), sep="  "
        )
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
    rows = [(key, _shown(value), suite.provenance[key]) for key, value in _settings(suite)]
    label, width = (max(map(len, column)) for column in ([row[0] for row in rows], [row[1] for row in rows]))
    for key, value, origin in rows:
        line = (f"  {key:{label}}", "cyan"), (f"  {value:{width}}", _style(origin)), (f"  {origin}", "dim")
        console.print(Text.assemble(*line))
    console.print()


def _settings(suite: LoadedSuite) -> Iterable[tuple[str, Any]]:
    """All but the file, which stands above."""
    return ((key, value) for key, value in entries(suite.resolved) if key != "file")


def _style(origin: Origin) -> str:
    return "dim" if origin == DEFAULT else ""


def _shown(value: Any) -> str:
    """A value on one line: `-` where nothing is set."""
    match value:
        case None | ():
            return "-"
        case bool():
            return str(value).lower()
        case float():
            return f"{value:.15g}"
        case dict():
            pairs = (name if text is None else f"{name}={text}" for name, text in value.items())
            return _one_line(", ".join(pairs)) or "-"
        case tuple():
            return _one_line(", ".join(map(str, value)))
        case _:
            return _one_line(str(value))


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    printable = "".join(char if char.isprintable() else "?" for char in line)
    return printable if len(printable) <= _MAX_VALUE_LENGTH else f"{printable[: _MAX_VALUE_LENGTH - 3]}..."


def _only_measures(suite: ResolvedSuite) -> bool:
    """True where nothing is asked of a suite's runs that could pass or fail."""
    judged = suite.metrics.is_on(Metric.REQUIREMENT_FULFILLMENT) and suite.criteria
    commands = suite.build_command or suite.test_command
    tested = suite.metrics.is_on(Metric.FUNCTIONAL_CORRECTNESS) and commands
    return not (judged or tested)
