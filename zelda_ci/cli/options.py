"""Options that several commands share, and their types."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial, reduce
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from zelda_ci.config import files
from zelda_ci.config.project import load, results_folder
from zelda_ci.config.schema import ConfigKey, choices, kinds
from zelda_ci.config.source import plain_value
from zelda_ci.config.suites import usual_name
from zelda_ci.errors import ConfigError, ZeldaError
from zelda_ci.overrides import SOURCES, Given, Overrides, about, value_of
from zelda_ci.pipeline.invocation import RunOrder
from zelda_ci.storage.result_store import ResultStore
from zelda_ci.workspace.source import BaseOrder

MAX_OFFERED = 200
# A session mostly waits for the model: two processors carry more, and the lowest rate limits this many.
JOBS = 4


class OptionType(click.ParamType[Any]):
    """What a reader makes of a text; its ValueError says what is allowed."""

    def __init__(self, read: Callable[[str], Any], name: str) -> None:
        self._read, self.name = read, name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read it; a usage error says what is wrong."""
        try:
            return self._read(value) if isinstance(value, str) else value
        except ValueError as wrong:
            self.fail(f"{value!r} cannot be used: {wrong}.", param, ctx)


def whole(least: int, most: int = 10**9) -> OptionType:
    """A whole number, spelled as in the files, which do not know `1_000`."""

    def read(text: str) -> int:
        number = plain_value(text)
        if type(number) is not int or not least <= number <= most:
            raise ValueError(f"allowed are whole numbers from {least} to {most:,}")
        return number

    return OptionType(read, "number")


def amount(text: str) -> float:
    """Read a sum of money, spelled as in the files; `nan` would be a budget that nothing exceeds."""
    number = plain_value(text)
    if not isinstance(number, int | float) or isinstance(number, bool) or not 0 < number < math.inf:
        raise ValueError("allowed are numbers above zero, such as 2.5")
    return number


UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def moment(text: str) -> datetime:
    """Read `2026-02-13`, `2026-02-13T14:30`, `7d` or `24h`; without a time zone in UTC, as in run ids."""
    try:
        if ago := re.fullmatch(r"([0-9]{1,9}) ?([mhdw])", text.strip()):
            return datetime.now(UTC) - timedelta(**{UNITS[ago[2]]: int(ago[1])})
        found = datetime.fromisoformat(text.strip())
    except (ValueError, OverflowError):
        raise ValueError("allowed are a date like 2026-02-13 and a time like 7d, 24h or 30m") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


LAST = "HEAD"
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def together(*options: Decorator) -> Decorator:
    """Several options as one, in the order in which the help lists them."""
    return lambda function: reduce(lambda inner, option: option(inner), reversed(options), function)


def complete_suites(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of the project's suites; of files that are broken, those that they probably have."""
    folder = Path(ctx.params.get("project") or ".")
    try:
        names = [suite.resolved.name for suite in load(folder).suites]
    except ZeldaError:
        found = files.suite_files(files.find_root(folder), files.DEFAULTS.test_dir)
        names = [usual_name(path.name) for path in found]
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def complete_runs(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Runs and batches, the newest first."""
    try:
        stored = ResultStore(results_folder(Path(ctx.params.get("project") or "."))).overview().runs
    except ZeldaError:
        return []
    items = {"latest": "the newest", "latest~1": "the one before"} if stored else {}
    items |= {f"latest:{run.suite}": f"the newest of {run.suite}" for run in stored}
    items |= {run.batch_id: f"batch of {run.started_at:%Y-%m-%d %H:%M} UTC" for run in stored}
    items |= {run.run_id: run.outcome.value for run in stored}
    offered = [CompletionItem(name, help=meaning) for name, meaning in items.items() if name.startswith(incomplete)]
    return offered[:MAX_OFFERED]


MOMENT = OptionType(moment, "time")
FILE = click.Path(path_type=Path, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False, exists=True)
NAMES: dict[str, Any] = {"nargs": -1, "metavar": "[SUITE]...", "shell_complete": complete_suites}

project = click.option(
    "--project", type=FOLDER, default=".", metavar="DIR", help="Folder of the project (default: the current one)."
)
suites = click.option(
    "--suite",
    "suites",
    multiple=True,
    metavar="NAME",
    shell_complete=complete_suites,
    help="Only this suite; may be given several times.",
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON; all else goes to standard error.")

allow_mixed = click.option("--allow-mixed", is_flag=True, help="Show deltas even if suites, models or versions differ.")


def limit(default: int | None = None, most: int = 10**9) -> Decorator:
    """How many rows of a list are wanted."""
    return click.option(
        "--limit", type=whole(1, most), metavar="N", default=default, show_default=True, help="Only the newest N."
    )


def exclusive(**given: object) -> None:
    """Refuse options, by their names, of which only one may be given."""
    if len(names := [f"--{name.replace('_', '-')}" for name, value in given.items() if value]) > 1:
        raise ConfigError(f"{' and '.join(names)} exclude each other.", hint="Give one of them.", code="USAGE")


def alone(option: str, *, given: object, beside: Mapping[str, object]) -> None:
    """Refuse every other option beside one."""
    for name, value in beside.items():
        exclusive(**{option: given, name: value})


def check_folder(file: Path) -> None:
    """Refuse a file that is to be written where there is no folder."""
    if not file.parent.is_dir():
        raise ConfigError(f"The folder {file.parent} does not exist.", hint="Make it first.", code="USAGE")


def _enter(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    if value is not None:
        ctx.obj = replace(ctx.ensure_object(RunOrder), **{str(param.name): value})


# An option named as a field of `RunOrder`: it enters its value there, and the command's function takes the whole order.
of_order = partial(click.option, expose_value=False, callback=_enter)
against = partial(of_order, "--against", type=BaseOrder, metavar="REF")
budget = partial(of_order, "--budget-usd", type=OptionType(amount, "amount"))
jobs = partial(of_order, "--jobs", type=whole(1), default=JOBS, envvar="ZELDA_JOBS", show_default=True)
unsafe = of_order("--unsafe", is_flag=True, help="Run even without isolation: code then has all your rights.")


def overrides(command: str) -> Decorator:
    """The options of a command that go above the suites; its function takes them in a `RunOrder`."""
    keys = ((name, sources.option, key) for name, (key, sources) in SOURCES.items() if command in sources.commands)
    above = (_override(name, option, key) for name, option, key in keys if option)
    return together(*above, click.make_pass_decorator(RunOrder, ensure=True))


def tested(command: str) -> Decorator:
    """What is tested and how: suites, what goes above them, the files or a commit."""
    return together(
        click.argument("names", **NAMES, expose_value=False, callback=_enter),
        project,
        of_order("--tag", "tags", multiple=True, help="Only suites with this tag; may be given several times."),
        overrides(command),
        click.option(
            "--commit",
            is_flag=False,
            flag_value=LAST,
            metavar="[REF]",
            expose_value=False,
            callback=_enter_commit,
            help="Test this commit, branch or tag, without REF the last commit, and not the files as they are.",
        ),
        unsafe,
    )


def _override(key: str, name: str, place: ConfigKey) -> Decorator:
    def enter(ctx: click.Context, _: click.Parameter, value: Any) -> None:
        if value is not None:
            order = ctx.ensure_object(RunOrder)
            given = Overrides({key: Given(value_of(place.field, value), "option", name)})
            ctx.obj = replace(order, overrides=given.above(order.overrides))

    words = choices(place.field.annotation)
    is_choice = len(words) > 0 and len(kinds(place.field.annotation)) == 1
    metavar = "N" if kinds(place.field.annotation) == [int] else name.rpartition("-")[2].upper()
    return click.option(
        name,
        type=click.Choice(words) if is_choice else str,
        metavar=None if is_choice else metavar,
        help=about(place),
        expose_value=False,
        callback=enter,
    )


def _enter_commit(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
    """The files as they are, the last commit, or another one."""
    other = None if value in {None, LAST} else BaseOrder(str(value))
    ctx.obj = replace(ctx.ensure_object(RunOrder), working_tree=value is None, commit=other)


no_check = of_order(
    "--no-check",
    "check",
    flag_value=False,
    type=click.UNPROCESSED,
    help="Do not try commands, models and credentials before anything is spent.",
)
