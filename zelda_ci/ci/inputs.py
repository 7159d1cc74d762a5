"""The action's inputs and outputs: one table, with which action.yml and its documentation have to agree.

Inputs that are keys of the configuration come from their `KeySources`; `make schemas` writes them into action.yml.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from zelda_ci.config.source import plain_value
from zelda_ci.domain.shards import MAX_SHARDS, shard_of
from zelda_ci.github.archives import is_artifact_name
from zelda_ci.overrides import SOURCES, words


class Mode(StrEnum):
    """What the step is for; `auto` takes it from the event."""

    AUTO = "auto"
    RUN = "run"
    COMMENT = "comment"
    PLAN = "plan"
    MERGE = "merge"


class CommentWhen(StrEnum):
    """When a pull request gets a comment."""

    ALWAYS = "always"
    CHANGES = "changes"
    FAILURES = "failures"
    OFF = "off"


class Nightly(StrEnum):
    """What a scheduled run on the default branch does beside running suites."""

    WATCH = "watch"
    """Three trials per suite, a row in the history, and an issue where something fell."""
    QUIET = "quiet"
    """The same without an issue."""
    OFF = "off"
    """Nothing: it is a run like any other."""


class Untested(StrEnum):
    """What the check of a pull request says that could not be tested, since it gets no secrets."""

    NEUTRAL = "neutral"
    """Nothing: it is green, as that of a change that concerns no suite."""
    FAIL = "fail"
    """It is red, so that where the check is required nothing is merged untested."""


@dataclass(frozen=True)
class Input:
    """One input, and how its text is read; an empty default means "not given"."""

    default: str = ""
    parse: Callable[[str], Any] = str
    absent: Any = None
    """Its value where it is not given."""
    secret: bool = False

    @property
    def is_setting(self) -> bool:
        """Whether it is a setting of that name, whose text nothing else reads."""
        return self.parse is not str


_BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}


def whole(least: int, most: int) -> Callable[[str], int]:
    """A parser of whole numbers."""

    def parse(text: str) -> int:
        number = plain_value(text)
        if type(number) is not int or not least <= number <= most:
            raise ValueError(f"allowed are whole numbers from {least} to {most}")
        return number

    return parse


def boolean(text: str) -> bool:
    """A truth value as YAML 1.2 spells it."""
    if text not in _BOOLEANS:
        raise ValueError("allowed are true and false")
    return _BOOLEANS[text]


def artifact_name(name: str) -> str:
    """A name that GitHub accepts for an artifact."""
    if len(name) > 128 or not name.isprintable() or not is_artifact_name(name):
        raise ValueError('allowed are up to 128 printable characters without " : < > | * ? \\ /')
    return name


def workflow(text: str) -> str:
    """The name of a workflow's file, without folders."""
    if not re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}\.ya?ml", text):
        raise ValueError("allowed are names of files such as zelda.yml, without folders")
    return text


def digest(text: str) -> str:
    """A SHA-256 in hexadecimal digits."""
    if not re.fullmatch(r"[0-9a-f]{64}", text):
        raise ValueError("allowed is the output plan of the job with mode: plan")
    return text


def label(text: str) -> str:
    """A short text in one line."""
    if len(text) > 100 or not text.isprintable():
        raise ValueError("allowed are up to 100 printable characters")
    return text


def branch(text: str) -> str:
    """The name of a branch, without `refs/heads/`."""
    name = text.removeprefix("refs/heads/")
    if not name or len(name) > 255 or not name.isprintable() or re.search(r"[\s~^:?*\[\\]|\.\.|^-", name):
        raise ValueError("allowed are names of branches, such as main")
    return name


def one_of(kind: type[StrEnum]) -> Callable[[str], StrEnum]:
    """A parser of one of a few words."""

    def parse(text: str) -> StrEnum:
        if text not in {*kind}:
            raise ValueError(f"allowed are {', '.join(kind)}")
        return kind(text)

    return parse


# Name → what action.yml says of it besides the description, and its value.
INPUTS: Mapping[str, Input] = {
    "suites": Input(parse=words, absent=()),
    "run-all-label": Input("zelda-all", label),
    "config": Input(),
    "anthropic-api-key": Input(secret=True),
    "github-token": Input("${{ github.token }}", secret=True),
    "portkey-api-key": Input(secret=True),
    "jobs": Input("1", whole(1, 64)),
    "baseline-branch": Input(parse=branch),
    "baseline": Input("auto"),
    "artifact-name": Input(parse=artifact_name),
    "retention-days": Input(parse=whole(1, 400)),
    "comment": Input("always", one_of(CommentWhen)),
    "comment-id": Input(parse=label, absent=""),
    "junit-path": Input(),
    "working-directory": Input("."),
    "mode": Input("auto", one_of(Mode), Mode.AUTO),
    "shards": Input("4", whole(1, MAX_SHARDS)),
    "shard": Input(parse=shard_of),
    "plan": Input(parse=digest, absent=""),
    "include-transcripts": Input("true", boolean),
    "run-all": Input("false", boolean),
    "nightly": Input("watch", one_of(Nightly)),
    "untested": Input("neutral", one_of(Untested)),
    "replay": Input(),
    "workflow": Input("zelda.yml", workflow),
    # Those of keys of the configuration.
    **{sources.input: Input() for _, sources in SOURCES.values() if sources.input},
}

OUTPUTS: tuple[str, ...] = (
    "verdict",
    "regressions",
    "improvements",
    "score",
    "cost-usd",
    "comparison-path",
    "results-path",
    "junit-path",
    "artifact-id",
    "report-artifact-id",
    "transcripts-artifact-id",
    "comment-url",
    "baseline-sha",
    "run-commit",
    "shards",
    "matrix",
    "plan",
)


class Inputs:
    """Reads inputs as the runner passes them; what is wrong with any is collected, not raised."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self.problems: list[str] = []

    def text(self, name: str) -> str:
        """An input without blanks at its ends; its default where it is not given, which the runner spells as empty."""
        value = self._environ.get(variable(name), "").strip()
        default = INPUTS[name].default
        return value or ("" if default.startswith("${{") else default)

    def value(self, name: str) -> Any:
        """What an input stands for; as if it were absent where it is wrong."""
        text, row = self.text(name), INPUTS[name]
        try:
            return row.parse(text) if text else row.absent
        except ValueError as wrong:
            self.reject(name, str(wrong), text)
            return row.absent

    def reject(self, name: str, allowed: str, value: str) -> None:
        """Note that an input is wrong, and what would be right."""
        quoted = "" if INPUTS[name].secret else f" is {_short(value)}, which"
        self.problems.append(f"The input {name}{quoted} cannot be used: {allowed}.")


def variable(name: str) -> str:
    """The environment variable of an input: hyphens stay."""
    return f"INPUT_{name.replace(' ', '_').upper()}"


def misspelt(environ: Mapping[str, str]) -> Iterator[str]:
    """Variables that were meant as inputs and are none: a gate that nobody heeds is worse than an error."""
    for name in map(variable, INPUTS):
        wrong = name.replace("-", "_")
        if wrong != name and environ.get(wrong):
            yield f"The variable {wrong} is not read: hyphens stay in the names of inputs ({name})."


def _short(text: str) -> str:
    return ascii(str(text) if len(text) <= 60 else text[:59] + "...")
