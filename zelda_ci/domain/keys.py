"""What a key of the settings carries besides its type and limits, as metadata of its field.

Options, inputs, variables, the settings of a pull request and their tables in the docs are made from it.
"""

from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Literal

SourceKind = Literal["option", "input", "variable"]


@dataclass(frozen=True)
class KeySources:
    """Option, input and variable that give a key above the files, for all suites of a command."""

    option: str | None = None
    input: str | None = None
    variable: str | None = None
    commands: tuple[str, ...] = ("run", "check")
    help: str | None = None
    """Help of option and input, where the description of the key does not fit."""
    none: str | None = None
    """The word for an empty list."""


class Decider(StrEnum):
    """Whose value counts on a pull request, which anybody may have written."""

    BASE = "base"
    """Value of the commit that it is merged into: what gives rights, or says where credentials and results go."""
    LOWER = "lower"
    """The lower of the two: a pull request may spend less, not more."""
    JUDGING = "judging"
    """The base's until the merge: how results are judged. A suite that the base lacks brings its own."""
    HEAD = "head"
    """Its own: what is tested, about which those decide who review the suites."""


@dataclass(frozen=True)
class KeyDecision:
    """Decision on whose value of a key, or of a group's keys, counts on a pull request."""

    by: Decider
    effect: str = ""
    """Effect that another value of the pull request would have had, to be read after "It"."""


HEAD = KeyDecision(Decider.HEAD)
# A key about which nobody has decided is the base's.
UNDECIDED = KeyDecision(Decider.BASE, "would have changed a setting whose decision is missing")
base, lower, judging = (partial(KeyDecision, by) for by in (Decider.BASE, Decider.LOWER, Decider.JUDGING))
