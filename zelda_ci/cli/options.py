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

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


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


def _enter(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    if value is not None:
        ctx.obj = replace(ctx.ensure_object(RunOrder), **{str(param.name): value})


# For an option or argument named as a field of `RunOrder`: it enters its value there, and the command's function takes
# the whole order, by `order` below.
OF_ORDER: dict[str, Any] = {"expose_value": False, "callback": _enter}
NAMES: dict[str, Any] = {"nargs": -1, "metavar": "[SUITE]...", "shell_complete": completion.suites}
TAGS: dict[str, Any] = {"multiple": True, "help": "Only suites with this tag; may be given several times."}


def order(command: str) -> Decorator:
    """The options of a command that go above the suites; its function takes them in a `RunOrder`, beside `OF_ORDER`."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        function = click.make_pass_decorator(RunOrder, ensure=True)(function)
        for name, (key, sources) in reversed([*SOURCES.items()]):
            if sources.option and command in sources.commands:
                function = _override(name, sources.option, key)(function)
        return function

    return add


def _override(key: str, name: str, place: ConfigKey) -> Decorator:
    def enter(ctx: click.Context, _: click.Parameter, value: Any) -> None:
        if value is not None:
            order = ctx.ensure_object(RunOrder)
            given = Overrides({key: Given(parsed(key, value), "option", name)})
            ctx.obj = replace(order, overrides=given.above(order.overrides))

    words = choices(place.field.annotation)
    is_choice = len(words) > 0 and len(kinds(place.field.annotation)) == 1
    return click.option(
        name,
        type=click.Choice(words) if is_choice else str,
        metavar=None if is_choice else name.rpartition("-")[2].upper(),
        help=about(place),
        expose_value=False,
        callback=enter,
    )


unsafe = click.option(
    "--unsafe", is_flag=True, help="Run even without isolation: code then has all your rights.", **OF_ORDER
)


def _enter_no_check(ctx: click.Context, _: click.Parameter, value: Any) -> None:
    ctx.obj = replace(ctx.ensure_object(RunOrder), check=not value)


no_check = click.option(
    "--no-check",
    is_flag=True,
    expose_value=False,
    callback=_enter_no_check,
    help="Do not try commands, models and credentials before anything is spent.",
)


def _enter_commit(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
    """The files as they are, the last commit, or another one."""
    other = None if value in {None, LAST} else BaseOrder(str(value))
    ctx.obj = replace(ctx.ensure_object(RunOrder), working_tree=value is None, commit=other)


commit = click.option(
    "--commit",
    is_flag=False,
    flag_value=LAST,
    metavar="[REF]",
    expose_value=False,
    callback=_enter_commit,
    help="Test this commit, branch or tag, without REF the last commit, and not the files as they are.",
)


class _AsInFiles(click.ParamType[Any]):
    """A number, spelled as in the files, which know neither `nan` nor `1_000`."""

    kinds: frozenset[type] = frozenset()
    called = ""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read it; a usage error says what is wrong."""
        if isinstance(value, str) and type(plain_value(value)) not in self.kinds:
            self.fail(f"{value!r} is not {self.called}.", param, ctx)
        return super().convert(value, param, ctx)


class Whole(_AsInFiles, click.IntRange):
    """A whole number in a range."""

    kinds, called = frozenset({int}), "a whole number"


class Amount(_AsInFiles, click.FloatRange):
    """A number in a range."""

    kinds, called = frozenset({int, float}), "a number"


def shard(text: str) -> ShardOf:
    """Read `2/4`; a usage error says how to write it."""
    try:
        return shard_of(text)
    except ValueError as wrong:
        raise click.BadParameter(f"{text!r} is no shard: {wrong}.") from None


UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def moment(text: str, now: datetime | None = None) -> datetime:
    """Read `2026-02-13`, `2026-02-13T14:30`, `7d` or `24h`; without a time zone in UTC, as in run ids."""
    try:
        if ago := re.fullmatch(r"([0-9]{1,9}) ?([mhdw])", text.strip()):
            return (now or datetime.now(UTC)) - timedelta(**{UNITS[ago[2]]: int(ago[1])})
        found = datetime.fromisoformat(text.strip())
    except (ValueError, OverflowError):
        wrong = f"{text!r} is neither a date like 2026-02-13 nor a time like 7d, 24h or 30m."
        raise click.BadParameter(wrong) from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
