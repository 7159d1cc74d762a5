"""Options that several commands share, and their types."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
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
            help=f"Isolation level, overrides the suites: auto, {', '.join(levels)}.",
        ),
        click.option(
            "--require-isolation",
            type=click.Choice(levels),
            metavar="LEVEL",
            help="Refuse to run below this level, before anything is spent.",
        ),
        click.option("--unsafe", is_flag=True, help="Run even without isolation: code then has all your rights."),
    ]
    for option in reversed(added):
        command = option(command)
    return command


UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


class Moment(click.ParamType[datetime]):
    """`2026-02-13`, `2026-02-13T14:30`, `7d`, `24h`; without a time zone in UTC, as in run ids."""

    name = "moment"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """Read it; a usage error says how to write it."""
        if isinstance(value, datetime):
            return value
        try:
            return since(str(value).strip(), datetime.now(UTC))
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is neither a date like 2026-02-13 nor a time like 7d, 24h or 30m.", param, ctx)


def since(text: str, now: datetime) -> datetime:
    """The moment that a text means.

    Raises:
        ValueError: It means none.
        OverflowError: It means one that no calendar has.
    """
    if ago := re.fullmatch(r"([0-9]{1,9}) ?([mhdw])", text):
        return now - timedelta(**{UNITS[ago[2]]: int(ago[1])})
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
