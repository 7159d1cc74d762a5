"""Patterns of file names as `.gitignore` has them, which is how rules and skills say where they apply."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import re2

MAX_PATTERN_LENGTH = 300
MAX_ALTERNATIVES = 64


def matches(patterns: Iterable[str], path: str) -> bool:
    """Whether one of the patterns covers a file, `path` being relative to where the patterns count from.

    As in `.gitignore`: a pattern without a slash counts at any depth, one that covers a folder covers what lies in it.
    Braces list alternatives; case does not matter; `!` and `./` cover nothing.
    """
    return any(_compiled(alternative).fullmatch(path) for pattern in patterns for alternative in _alternatives(pattern))


@lru_cache(maxsize=1000)
def _compiled(pattern: str) -> Any:
    options = re2.Options()
    options.case_sensitive = False
    options.log_errors = False
    return re2.compile(_regex(pattern), options)


def _regex(pattern: str) -> str:
    if not pattern or pattern.startswith(("!", "./")) or len(pattern) > MAX_PATTERN_LENGTH:
        return r"[^\s\S]"
    inside = pattern.rstrip("/")
    start = "" if "/" in inside else "(?:.*/)?"
    end = "/.*" if pattern.endswith("/") else "(?:/.*)?"
    return f"{start}{_body(inside.removeprefix('/'))}{end}"


def _body(pattern: str) -> str:
    regex, position = "", 0
    while position < len(pattern):
        piece, position = _step(pattern, position)
        regex += piece
    return regex


def _step(pattern: str, position: int) -> tuple[str, int]:
    if pattern.startswith("**/", position):
        return "(?:.*/)?", position + 3
    if pattern.startswith("**", position):
        return ".*", position + 2
    char = pattern[position]
    if char == "[" and (closed := pattern.find("]", position + 2)) > 0:
        inner = pattern[position + 1 : closed]
        negated = "^" if inner[0] in "!^" else ""
        return f"[{negated}{_class(inner[bool(negated) :])}]", closed + 1
    wild = {"*": "[^/]*", "?": "[^/]"}
    return wild.get(char) or re2.escape(char), position + 1


def _class(inner: str) -> str:
    return "".join(char if char.isalnum() or char == "-" else re2.escape(char) for char in inner) or "/"


def _alternatives(pattern: str) -> list[str]:
    """The pattern once for each choice of its braces."""
    pending, done = [pattern], list[str]()
    while pending and len(pending) + len(done) <= MAX_ALTERNATIVES:
        candidate = pending.pop()
        closed = candidate.find("}")
        opened = candidate.rfind("{", 0, max(closed, 0))
        if closed < 0 or opened < 0:
            done.append(candidate)
        else:
            pending += [
                candidate[:opened] + choice + candidate[closed + 1 :]
                for choice in candidate[opened + 1 : closed].split(",")
            ]
    return done
