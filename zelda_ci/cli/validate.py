"""`zelda validate`: is everything right, what does each suite resolve to, and where does each value come from?"""

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from zelda_ci.cli import completion
from zelda_ci.cli.output import echo_raw
from zelda_ci.config.merge import DEFAULT, LoadedSuite, Origin
from zelda_ci.config.project import Examination, LoadedProject, examine
from zelda_ci.config.schema import entries
from zelda_ci.config.selection import select
from zelda_ci.domain.outcome import only_measures
from zelda_ci.pipeline.settling import settled

_MAX_VALUE_LENGTH = 48
MEASURED = "Measured only: no criterion is judged and no build or test is run, so it can neither pass nor fail."


@click.command(short_help="Check every file and show the final settings of each suite.")
@click.argument("names", nargs=-1, metavar="[SUITE]...", shell_complete=completion.suites)
@click.option(
    "--project",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    default=".",
    metavar="DIR",
    help="Folder of the project (default: the current one).",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, problems included.")
def validate(*, names: tuple[str, ...], project: Path, as_json: bool) -> None:
    """Check every file and show the final settings of each suite.

    Each value is shown with its origin: a line of the suite or of zelda.config.yaml, or the default. SUITE is a name or
    a file: only this suite is shown, but all files are checked. Runs nothing and costs nothing.
    """
    examination = examine(project)
    if examination.project is None:
        if as_json:
            echo_raw(json.dumps(_problems_json(examination), indent=2))
        raise examination.error()
    # As a run would have them here.
    suites = settled(examination.project.root, select(examination.project.suites, names), os.environ)
    if as_json:
        echo_raw(json.dumps(_project_json(examination.project, suites), indent=2))
    else:
        _print(suites)


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
                "measured": only_measures(suite.resolved),
                "origins": {key: str(origin) for key, origin in suite.provenance.items()},
            }
            for suite in suites
        ],
    }


def _print(suites: Sequence[LoadedSuite]) -> None:
    console = Console(highlight=False, soft_wrap=True)
    for suite in suites:
        console.print(Text.assemble((suite.resolved.name, "bold"), "  ", (suite.resolved.file, "dim")))
        rows = [(key, _shown(value), suite.provenance[key]) for key, value in _settings(suite)]
        label, width = (max(map(len, column)) for column in ([row[0] for row in rows], [row[1] for row in rows]))
        for key, value, origin in rows:
            line = (f"  {key:{label}}", "cyan"), (f"  {value:{width}}", _style(origin)), (f"  {origin}", "dim")
            console.print(Text.assemble(*line))
        if only_measures(suite.resolved):
            console.print(Text(f"  {MEASURED}", "yellow"))
        console.print()
    count = "1 suite is" if len(suites) == 1 else f"{len(suites)} suites are"
    console.print(Text(f"{count} valid.", "green"))


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
