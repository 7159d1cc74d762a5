"""All that commands print, besides what rich lays out in `report.terminal`."""

import os
from pathlib import Path
from typing import IO

import click

from zelda_ci.report.text import inert


def echo(
    text: str = "",
    *,
    err: bool = False,
    nl: bool = True,
    file: IO[str] | None = None,
    fg: str | None = None,
    dim: bool | None = None,
) -> None:
    """Print a text for people: names and messages of a tested project cannot act on their terminal."""
    click.secho(inert(text), file, nl, err, fg=fg, dim=dim, bold=fg == "red" or None)


def echo_raw(text: str, *, nl: bool = True) -> None:
    """Print a text for programs, which read it as it is."""
    click.echo(text, nl=nl)


def typed_path(path: Path) -> str:
    """A path that can be pasted into the shell that Zelda was started from."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative
