"""What a comment on a pull request asks for: parsed strictly, into data that no shell and no reader has to fear.

A command is the first line of a comment, at its very beginning: neither a quote nor a block of code begins with
`/zelda`. Whatever does not fit the grammar is answered with help, never guessed.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from zelda_ci.domain.suite import NAME
from zelda_ci.judge.characters import acts

MAX_REASON_LENGTH = 500
MAX_SUITES = 20
# Of a comment, as much as any command needs; the rest is not read.
MAX_COMMAND_LENGTH = 2_000
MAX_SHOWN_LENGTH = 40

# Phones and pages put other spaces than ours after a word.
_COMMAND = re.compile(r"/zelda(?=\s|\Z)", re.IGNORECASE)
_BLANK_LINE = re.compile(r"\n[ \t]*\n")
_SUITE = re.compile(NAME)
_TARGET = re.compile(r"([^#]+)(?:#([1-9][0-9]{0,2}))?")
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_BECAUSE = re.compile(r"(\S+)\s+because\b[\s:,]*(.*)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class RunAgain:
    """Run the pull request's workflow again, or only some suites beside it."""

    suites: tuple[str, ...] = ()


@dataclass(frozen=True)
class RunCommit:
    """Run a commit of a pull request whose own workflow may not."""

    commit: str | None
    """Its full name; absent where none was given, and nothing is run."""
    suites: tuple[str, ...] = ()


@dataclass(frozen=True)
class AcceptCriteria:
    """Take failing criteria of a suite for what they are."""

    suite: str
    number: int | None
    """Of the criterion in the suite, from 1; absent for all that fail now."""
    reason: str


@dataclass(frozen=True)
class AskHelp:
    """Which commands there are."""

    problem: str = ""
    """What was not understood; empty where help is all that was asked for."""


Command = RunAgain | RunCommit | AcceptCriteria | AskHelp


def is_command(body: str) -> bool:
    """Whether a comment speaks to Zelda at all."""
    return _COMMAND.match(body) is not None


def parse_command(body: str) -> Command:
    """The command that a comment begins with."""
    paragraph = _BLANK_LINE.split(body[: MAX_COMMAND_LENGTH + 1].replace("\r\n", "\n"), 1)[0]
    if len(paragraph) > MAX_COMMAND_LENGTH:
        return AskHelp(f"A command has at most {MAX_COMMAND_LENGTH:,} characters.")
    if sum(map(is_command, body.splitlines())) > 1:
        return AskHelp("A comment holds one command: write a comment for each.")
    words = (paragraph.splitlines() or [""])[0].split()
    match [word.lower() for word in words[1:3]]:
        case [] | ["help", *_]:
            return AskHelp()
        case ["accept", *_]:
            return _accept(paragraph)
        case ["rerun", *_]:
            return _of_suites(words[2:], RunAgain)
        case ["run", commit] if _COMMIT.fullmatch(commit):
            return _of_suites(words[3:], partial(RunCommit, commit))
        case ["run", *_]:
            return RunCommit(None)
        case _:
            return AskHelp(f"There is no command {_shown(words[1])}.")


def _of_suites(words: Sequence[str], make: Callable[[tuple[str, ...]], Command]) -> Command:
    names = tuple(dict.fromkeys(name for word in words for name in word.split(",") if name))
    if len(names) > MAX_SUITES:
        return AskHelp(f"A command names at most {MAX_SUITES} suites.")
    strange = next((name for name in names if not _SUITE.fullmatch(name)), None)
    return make(names) if strange is None else AskHelp(f"{_shown(strange)} is not the name of a suite.")


def _accept(paragraph: str) -> Command:
    parts = _BECAUSE.fullmatch(" ".join(paragraph.split()[2:]))
    if parts is None or not parts[2]:
        return AskHelp("To accept something, name one suite and say why: accept SUITE because REASON.")
    target, reason = _TARGET.fullmatch(parts[1]), parts[2]
    if target is None or not _SUITE.fullmatch(target[1]):
        return AskHelp(f"{_shown(parts[1])} is neither a suite nor a criterion of one, as in greeting#2.")
    if len(reason) > MAX_REASON_LENGTH:
        return AskHelp(f"A reason has at most {MAX_REASON_LENGTH} characters.")
    if not any(char.isalnum() for char in reason):
        return AskHelp("The reason says nothing.")
    return AcceptCriteria(target[1], int(target[2]) if target[2] else None, reason)


def _shown(word: str) -> str:
    """A word of a comment within a sentence; the renderer escapes it."""
    hidden = " (with characters that cannot be seen)" if any(map(acts, word)) else ""
    return f"“{word if len(word) <= MAX_SHOWN_LENGTH else word[:MAX_SHOWN_LENGTH] + '…'}”{hidden}"
