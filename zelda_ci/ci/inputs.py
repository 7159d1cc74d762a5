"""The action's inputs and outputs: one table, with which action.yml and its documentation have to agree."""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from zelda_ci.github.archives import is_artifact_name

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)


class Mode(StrEnum):
    """What the step is for; `auto` takes it from the event."""

    AUTO = "auto"
    RUN = "run"
    COMMENT = "comment"


class CommentWhen(StrEnum):
    """When a pull request gets a comment."""

    ALWAYS = "always"
    CHANGES = "changes"
    FAILURES = "failures"
    OFF = "off"


class Level(StrEnum):
    """How strictly session and commands are confined, as in a suite's `isolation.level`."""

    AUTO = "auto"
    FULL = "full"
    NAMESPACES = "namespaces"
    UID = "uid"
    LANDLOCK = "landlock"
    DEGRADED = "degraded"
    NONE = "none"


@dataclass(frozen=True)
class Input:
    """One input; an empty default means "not given"."""

    default: str = ""
    secret: bool = False


INPUTS: Mapping[str, Input] = {
    "suites": Input(),
    "config": Input(),
    "anthropic-api-key": Input(secret=True),
    "github-token": Input("${{ github.token }}", secret=True),
    "portkey-api-key": Input(secret=True),
    "gateway-url": Input(),
    "trials": Input(),
    "jobs": Input("1"),
    "max-cost-usd": Input(),
    "baseline-branch": Input(),
    "baseline": Input("auto"),
    "artifact-name": Input(),
    "retention-days": Input(),
    "comment": Input("always"),
    "comment-id": Input(),
    "fail-on": Input(),
    "junit-path": Input(),
    "working-directory": Input("."),
    "mode": Input("auto"),
    "include-transcripts": Input("true"),
    "isolation-level": Input(),
    "isolation-require": Input(),
    "replay": Input(),
}
"""Name → what action.yml says of it besides the description."""

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
    "comment-url",
    "baseline-sha",
)

FINDINGS = ("regression", "evaluation")
NEVER = "never"
_BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}


class Inputs:
    """Reads inputs as the runner passes them; what is wrong with any is collected, not raised."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self.problems: list[str] = []

    def text(self, name: str) -> str:
        """An input without blanks at its ends; its default where it is not given, which the runner spells as empty."""
        given = self._environ.get(variable(name), "").strip()
        default = INPUTS[name].default
        return given or ("" if default.startswith("${{") else default)

    def take(self, name: str, parse: Callable[[str], T]) -> T | None:
        """What `parse` makes of an input; nothing where it is not given, or wrong."""
        given = self.text(name)
        if not given:
            return None
        try:
            return parse(given)
        except ValueError as wrong:
            self.reject(name, str(wrong), given)
            return None

    def choose(self, name: str, kind: type[E]) -> E | None:
        """One of a few words."""
        return self.take(name, lambda given: _member(kind, given))

    def reject(self, name: str, allowed: str, given: str) -> None:
        """Note that an input is wrong, and what would be right."""
        shown = "" if INPUTS[name].secret else f" is {_short(given)}, which"
        self.problems.append(f"The input {name}{shown} cannot be used: {allowed}.")


def variable(name: str) -> str:
    """The environment variable of an input: hyphens stay."""
    return f"INPUT_{name.replace(' ', '_').upper()}"


def misspelt(environ: Mapping[str, str]) -> Iterator[str]:
    """Variables that were meant as inputs and are none: a gate that nobody heeds is worse than an error."""
    for name in map(variable, INPUTS):
        wrong = name.replace("-", "_")
        if wrong != name and environ.get(wrong):
            yield f"The variable {wrong} is not read: hyphens stay in the names of inputs ({name})."


def whole(least: int, most: int) -> Callable[[str], int]:
    """A parser of whole numbers."""

    def parse(given: str) -> int:
        if not re.fullmatch(r"[0-9]{1,9}", given) or not least <= int(given) <= most:
            raise ValueError(f"allowed are whole numbers from {least} to {most}")
        return int(given)

    return parse


def amount(given: str) -> float:
    """An amount of money above zero."""
    allowed = "allowed are numbers above 0, such as 2.5"
    try:
        value = float(given)
    except ValueError:
        raise ValueError(allowed) from None
    if not math.isfinite(value) or value <= 0:
        raise ValueError(allowed)
    return value


def boolean(given: str) -> bool:
    """A truth value as YAML 1.2 spells it."""
    if given not in _BOOLEANS:
        raise ValueError("allowed are true and false")
    return _BOOLEANS[given]


def words(given: str) -> tuple[str, ...]:
    """A list, separated by commas, blanks or line breaks."""
    return tuple(dict.fromkeys(filter(None, re.split(r"[\s,]+", given))))


def findings(given: str) -> tuple[str, ...]:
    """The kinds of finding that turn the check red; none for `never`."""
    named = words(given)
    if set(named) - {*FINDINGS, NEVER} or (NEVER in named and len(named) > 1):
        raise ValueError("allowed are regression, evaluation, both of them as a list, or never alone")
    return tuple(kind for kind in FINDINGS if kind in named)


def artifact_name(given: str) -> str:
    """A name that GitHub accepts for an artifact."""
    if len(given) > 128 or not given.isprintable() or not is_artifact_name(given):
        raise ValueError('allowed are up to 128 printable characters without " : < > | * ? \\ /')
    return given


def is_credential(given: str) -> bool:
    """Whether a key or token can be sent in a header."""
    return re.fullmatch(r"[!-~]+", given) is not None


def label(given: str) -> str:
    """A short text in one line."""
    if len(given) > 100 or not given.isprintable():
        raise ValueError("allowed are up to 100 printable characters")
    return given


def branch(given: str) -> str:
    """The name of a branch, without `refs/heads/`."""
    name = given.removeprefix("refs/heads/")
    if not name or len(name) > 255 or not name.isprintable() or re.search(r"[\s~^:?*\[\\]|\.\.|^-", name):
        raise ValueError("allowed are names of branches, such as main")
    return name


def web_address(given: str) -> str:
    """Where a gateway lives."""
    if not re.fullmatch(r"https?://[A-Za-z0-9._-]+(:[0-9]{1,5})?(/[^\s?#@]*)?", given):
        raise ValueError("allowed are http:// and https:// addresses without user name, query and fragment")
    return given


def _member(kind: type[E], given: str) -> E:
    try:
        return kind(given)
    except ValueError:
        raise ValueError(f"allowed are {', '.join(kind)}") from None


def _short(given: str) -> str:
    return ascii(str(given) if len(given) <= 60 else given[:59] + "...")
