"""Patterns of file names as `.gitignore` has them, which is how rules and skills say where they apply."""

import re
import warnings
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from typing import Any

import re2
from pathspec import GitIgnoreSpec
from pathspec.patterns.gitignore import GitIgnorePatternError

MAX_PATTERN_LENGTH = 300
MAX_ALTERNATIVES = 64

_UNCLOSED_BRACKET = re.compile(r"\[(?=[!^]?\]?[^\]]*$)")


def upwards(path: str) -> tuple[str, ...]:
    """A path, and each folder above it up to the top, which is empty."""
    parts = path.split("/")
    return (*("/".join(parts[:length]) for length in range(len(parts), 0, -1)), "") if path else ("",)


def matches(patterns: Iterable[str], path: str) -> bool:
    """True where one of the patterns covers a file, `path` being relative to where the patterns count from."""
    # As in `.gitignore`: a pattern without a slash counts at any depth, one that covers a folder covers what is in it.
    # What Claude Code does beyond that: braces list alternatives, case does not matter, `!` and `./` cover nothing, and
    # a bracket that nothing closes is a character.
    shown = path.encode("utf-8", "replace").decode()  # what is no UTF-8 in a name would end the search
    return any(expression.search(shown) for pattern in patterns for expression in _expressions(pattern))


def gitignore_patterns(lines: Iterable[str]) -> list[Any]:
    """Patterns of the lines of a `.gitignore`, without those that cannot be read: git passes over them too."""
    understood = list[Any]()
    for line in lines:
        with suppress(GitIgnorePatternError, re.error), warnings.catch_warnings():
            # What Python may one day read as a nested set is a bracket in brackets.
            warnings.simplefilter("ignore", FutureWarning)
            understood += GitIgnoreSpec.from_lines([line], backend="simple").patterns
    return [pattern for pattern in understood if pattern.include is not None]


@lru_cache(maxsize=1000)
def _expressions(pattern: str) -> list[Any]:
    expressions = list[Any]()
    for line in _alternatives(pattern) if len(pattern) <= MAX_PATTERN_LENGTH else ():
        if not line.startswith(("!", "./")):
            understood = gitignore_patterns([_UNCLOSED_BRACKET.sub(r"\[", line)])
            expressions += (expression(f"(?i){each.regex.pattern}") for each in understood)
    # What RE2 refuses makes no sense.
    return [each for each in expressions if each is not None]


@lru_cache(maxsize=1000)
def expression(pattern: str, max_memory: int = 8 << 20) -> Any:
    """An expression that is somebody else's, and takes no engine for ever; None for one that RE2 cannot read."""
    options = re2.Options()
    options.log_errors, options.max_mem = False, max_memory
    with suppress(re2.error):
        return re2.compile(pattern, options)
    return None


def _alternatives(pattern: str) -> list[str]:
    """The pattern once for each choice of its braces."""
    waiting, done = [pattern], list[str]()
    while waiting and len(waiting) + len(done) <= MAX_ALTERNATIVES:
        current = waiting.pop()
        closed = current.find("}")
        opened = current.rfind("{", 0, max(closed, 0))
        if closed < 0 or opened < 0:
            done.append(current)
        else:
            choices = current[opened + 1 : closed].split(",")
            waiting += [current[:opened] + choice + current[closed + 1 :] for choice in choices]
    return done
