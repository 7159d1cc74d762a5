"""Options that several commands share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import click

from zelda_ci.domain.suite import IsolationLevel

project = click.option(
    "--project",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    default=".",
    metavar="DIR",
    help="Folder of the project (default: the current one).",
)


def isolation(command: Callable[..., Any]) -> Callable[..., Any]:
    """How strictly sessions are confined."""
    levels = get_args(IsolationLevel)
    added = [
        click.option(
            "--isolation",
            type=click.Choice(["auto", *levels]),
            metavar="LEVEL",
            help=f"How strictly to confine, whatever the suites say: auto, {', '.join(levels)}.",
        ),
        click.option(
            "--require-isolation",
            type=click.Choice(levels),
            metavar="LEVEL",
            help="Refuse to run below this level, before anything is spent.",
        ),
        click.option("--unsafe", is_flag=True, help="Run even where there is no isolation: code then runs as you."),
    ]
    for option in reversed(added):
        command = option(command)
    return command
