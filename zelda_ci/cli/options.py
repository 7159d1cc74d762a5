"""Options that several commands share."""

from pathlib import Path

import click

project = click.option(
    "--project",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    default=".",
    metavar="DIR",
    help="Folder of the project (default: the current one).",
)
