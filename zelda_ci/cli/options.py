"""Options that several commands share, and their types."""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click

from zelda_ci.cli import completion
from zelda_ci.config.schema import ConfigKey, choices, kinds
from zelda_ci.config.source import plain_value
from zelda_ci.domain.shards import ShardOf, shard_of
from zelda_ci.overrides import SOURCES, Given, Overrides, about, parsed
from zelda_ci.pipeline.invocation import RunOrder
from zelda_ci.workspace.base_commit import BaseOrder

LAST = "HEAD"

project = click.option(
    "--project",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    default=".",
    metavar="DIR",
    help="Folder of the project (default: the current one).",
)

suites = click.option(
    "--suite",
    "suites",
    multiple=True,
    metavar="NAME",
    shell_complete=completion.suites,
    help="Only this suite; may be given several times.",
)


unsafe = click.option("--unsafe", is_flag=True, help="Run even without isolation: code then has all your rights.")


no_check = click.option(
    "--no-check", is_flag=True, help="Do not try commands, models and credentials before anything is spent."
)
commit = click.option(
    "--commit",
    is_flag=False,
    flag_value=LAST,
    metavar="[REF]",
    help="Test this commit, branch or tag, without REF the last commit, and not the files as they are.",
)


def tested(order: RunOrder, commit: str | None) -> RunOrder:
    """The order with what `--commit` chose: the files as they are, the last commit, or another one."""
    other = None if commit in {None, LAST} else BaseOrder(str(commit))
    return replace(order, working_tree=commit is None, commit=other)


def selection(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options that narrow which suites run: `tags`, `grep` and `last_failed`."""
    for option in (
        click.option("--last-failed", is_flag=True, help="Only suites that did not pass when they were last run."),
        click.option(
            "--grep", metavar="PATTERN", help="Only suites whose name, description, prompt or criteria match."
        ),
        click.option("--tag", "tags", multiple=True, help="Only suites with this tag; may be given several times."),
    ):
        function = option(function)
    return function


def overrides(command: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The options of a command that go above the suites; its function takes them as one `Overrides`."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        function = click.make_pass_decorator(Overrides, ensure=True)(function)
        for name, (key, sources) in reversed([*SOURCES.items()]):
            if sources.option and command in sources.commands:
                function = _option(name, sources.option, key)(function)
        return function

    return add


def _option(key: str, name: str, place: ConfigKey) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def keep(ctx: click.Context, _: click.Parameter, value: Any) -> None:
        if value is not None:
            ctx.obj = Overrides({key: Given(parsed(key, value), "option", name)}).above(ctx.obj or Overrides())

    words = choices(place.field.annotation)
    is_choice = len(words) > 0 and len(kinds(place.field.annotation)) == 1
    return click.option(
        name,
        type=click.Choice(words) if is_choice else str,
        metavar=None if is_choice else name.rpartition("-")[2].upper(),
        help=about(place),
        expose_value=False,
        callback=keep,
    )


class Whole(click.IntRange):
    """A whole number in a range, spelled as in the files."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read it; a usage error says what is wrong."""
        if isinstance(value, str) and type(plain_value(value)) is not int:
            self.fail(f"{value!r} is not a whole number.", param, ctx)
        number: int = super().convert(value, param, ctx)
        return number


class Amount(click.FloatRange):
    """A number in a range, spelled as in the files, which know neither `nan` nor `inf`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read it; a usage error says what is wrong."""
        if isinstance(value, str) and type(plain_value(value)) not in {int, float}:
            self.fail(f"{value!r} is not a number.", param, ctx)
        number: float = super().convert(value, param, ctx)
        return number


class ShardType(click.ParamType[ShardOf]):
    """`2/4`."""

    name = "shard"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """As the help shows it."""
        return "I/N"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> ShardOf:
        """Read it; a usage error says how to write it."""
        if isinstance(value, ShardOf):
            return value
        try:
            return shard_of(str(value))
        except ValueError as wrong:
            self.fail(f"{value!r} is no shard: {wrong}.", param, ctx)


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
