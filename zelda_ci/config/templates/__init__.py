"""The files that `zelda init` writes. What they say of keys is derived from the model, so that it cannot drift."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from textwrap import wrap
from typing import Any

from zelda_ci import __version__
from zelda_ci.config import schema
from zelda_ci.config.schema import REPOSITORY, ConfigKey, ProjectConfig, keys
from zelda_ci.config.source import plain_value

DOCUMENTATION = f"https://github.com/{REPOSITORY}/blob/v{__version__}/docs/configuration.md"
DIRECTIONS = "Run the project's tests when you are done, if it has any."
_WIDTH = 100
_HEAD = f"""\
What all suites of this project share; a suite overrides single keys. Here stands only what differs from the defaults.
All keys: {DOCUMENTATION}
"""
# What people change first; the rest is in the reference.
_SHOWN = ("trials", "judgeModel", "execution.model", "execution.maxTurns", "execution.maxCostUsd", "coverageThreshold")
_COMMANDS = ("setupCommand", "buildCommand", "testCommand")
_PLAIN = re.compile(r"[\w./][^\n#:]*")


@dataclass(frozen=True)
class CommandLine:
    """A command as it is to stand in the configuration."""

    key: str
    command: str
    source: str
    """The file that suggests it."""
    remark: str | None = None
    """Why it is left out; absent where it is not."""
    detail: str | None = None
    """The line that says it best, of what it printed; not for the file, since it may name places of this machine."""


def printed(text: str) -> str:
    """The words of a text of somebody else's in one line: nothing in it steers a terminal, a reader or YAML."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def scalar(text: str) -> str:
    """A printable line as YAML reads it back, in quotes where they are needed."""
    plain = _PLAIN.fullmatch(text) and text == text.strip() and plain_value(text) == text
    return text if plain else "'{}'".format(text.replace("'", "''"))


def project_config(
    found: Sequence[str] = (), commands: Sequence[CommandLine] = (), programs: Sequence[str] = ()
) -> str:
    """A short `zelda.config.yaml`.

    Args:
        found: What the project is, in sentences.
        commands: Those that its files suggest.
        programs: Folders in which the setup command, where it is not left out, installs programs.
    """
    has_setup = any(line.key == "setupCommand" and line.remark is None for line in commands)
    return "".join(f"{line}\n" for line in _project_lines(found, commands, programs if has_setup else ()))


def example_suite() -> str:
    """A suite that makes sense in nearly every project."""
    text = files(__name__).joinpath("test-example.yaml").read_text("utf-8")
    return text.replace("{schema}", schema.address("zelda.suite.schema.json"))


def _project_lines(found: Sequence[str], commands: Sequence[CommandLine], programs: Sequence[str]) -> Iterator[str]:
    yield f"# yaml-language-server: $schema={schema.address('zelda.config.schema.json')}"
    yield "#"
    for text in (*_HEAD.splitlines(), *map(printed, found)):
        yield from _comment(text)
    yield ""
    for line in commands:
        yield from _command(line)
    every = {key.dotted: key for key in keys(ProjectConfig)}
    for name in () if commands else _COMMANDS:
        yield f"# {_line(every[name])}"
    yield ""
    yield from _comment("Often changed, here with their defaults; take away the number sign.")
    shown = [every[name] for name in _SHOWN]
    yield from (f"# {_line(key)}" for key in shown if len(key.path) == 1)
    # Keys of a group may be given once, so they stand where the group does.
    yield "execution:" if programs else "# execution:"
    if programs:
        yield f"  path: [{', '.join(programs)}]  # where setup installs programs: session and commands find them"
    yield from (f"{'  # ' if programs else '#   '}{_line(key)}" for key in shown if len(key.path) > 1)


def _line(key: ConfigKey) -> str:
    return f"{key.name}: {_value(key)}  # {_first_words(key)}"


def _command(line: CommandLine) -> Iterator[str]:
    key = f"{line.key}: {scalar(line.command)}"
    source = f"  # {printed(line.source)}" if line.source else ""
    if line.remark is None:
        yield f"{key}{source}"
        return
    yield from _comment(f"Left out: {printed(line.remark)}")
    yield f"# {key}{source}"
    if line.key == "setupCommand":
        yield "setupCommand: []  # no setup, whatever a lock file suggests"


def _value(key: ConfigKey) -> str:
    default = key.field.get_default()
    value = _example(key) if default is None else default
    return value if isinstance(value, str) else json.dumps(value)


def _example(key: ConfigKey) -> Any:
    return (key.field.examples or [""])[0]


def _first_words(key: ConfigKey) -> str:
    """What a key means, in short; that there is no default, where there is none."""
    meaning = re.split(r"[:;.](?:\s|$)", key.field.description or "")[0]
    return meaning if key.field.get_default() is not None else f"{meaning} (none)"


def _comment(text: str) -> Iterator[str]:
    return (f"# {line}" for line in wrap(text, _WIDTH - 2, break_on_hyphens=False, break_long_words=False))
