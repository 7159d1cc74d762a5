"""All that commands print, besides what rich lays out in `report.terminal`."""

import os
from pathlib import Path

import click

from zelda_ci.report.text import inert


def echo(text: str = "", *, err: bool = False, nl: bool = True, fg: str | None = None, dim: bool = False) -> None:
    """Print a text for people: names and messages of a tested project cannot act on their terminal."""
    click.secho(inert(text), err=err, nl=nl, fg=fg, dim=dim or None, bold=fg == "red" or None)


def print_error(message: str, hint: str | None = None) -> None:
    """Print what is wrong, and on a line of its own what to do next."""
    echo("error: ", fg="red", nl=False, err=True)
    echo(message, err=True)
    if hint:
        echo(hint, dim=True, err=True)


def echo_raw(text: str, *, nl: bool = True) -> None:
    """Print a text for programs, which read it as it is."""
    click.echo(text, nl=nl)


def typed_path(path: Path) -> str:
    """A path that can be pasted into the shell that Zelda was started from."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative
