"""Credentials that somebody wrote into a file: they belong in the environment, and are never repeated."""

import re
from collections.abc import Iterator
from functools import cache
from itertools import islice
from typing import Any

import re2

from zelda_ci.config.files import position
from zelda_ci.config.nodes import Grouping, Node, Scalar, Sequence, value_of
from zelda_ci.config.problems import MOST_PER_FILE, Position, Problem, problem, shown
from zelda_ci.redact import KEY_SHAPES

_NAME = re.compile(
    r"(api|access|secret|private|auth|signing)_?keys?|key|(access_?|auth_?|oauth_?|bearer_?|github_?|gh_?)?token"
    r"|\w*_(token|key|secret|password)|\w*(apikey|authtoken|secret|passwor[dt]|passwd|passphrase|credentials?)|bearer"
)
_VARIABLES = (
    ("portkey", "PORTKEY_API_KEY"),
    ("gateway", "PORTKEY_API_KEY"),
    ("github", "GITHUB_TOKEN"),
    ("anthropic", "ANTHROPIC_API_KEY"),
    ("claude", "ANTHROPIC_API_KEY"),
    ("sk-ant-", "ANTHROPIC_API_KEY"),
)
_BASE64_RUN = re.compile(r"[A-Za-z0-9+/=]{32}")


def named(root: Node | None, file: str) -> Iterator[Problem]:
    """Keys with the name of a credential and a value that could be one."""
    for key, at, node in _scalars(root):
        if _NAME.fullmatch(_snake(key)) and isinstance(value_of(node), str):
            message = (
                f"{shown(key)} looks like a credential, which does not belong in a file: "
                f"set the environment variable {_variable(key)} instead"
            )
            yield problem(file, at, message)


def shaped(text: str, file: str) -> Iterator[Problem]:
    """Anything in a file, comments and prompts included, that has the shape of a well-known credential."""
    for match in islice(_shapes().finditer(text), MOST_PER_FILE):
        found = match.group()
        if "-----BEGIN" in found and not _BASE64_RUN.search(found):
            continue  # the header alone is no key
        begin = match.start() + len(found) - len(found.lstrip())
        message = (
            "this has the shape of a credential, which does not belong in a file: set the environment variable "
            f"{_variable(found)} instead, and revoke the credential if the file was ever committed"
        )
        yield problem(file, position(text, begin), message)


def _scalars(node: Node | None) -> Iterator[tuple[str, Position, Scalar]]:
    match node:
        case Grouping():
            for key, entry in node.entries.items():
                if isinstance(entry.node, Scalar):
                    yield key, entry.key_at, entry.node
                yield from _scalars(entry.node)
        case Sequence():
            for item in node.items:
                yield from _scalars(item)
        case _:
            pass


def _snake(key: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|-", "_", key[:100]).lower()


def _variable(hint: str) -> str:
    known = (variable for word, variable in _VARIABLES if word in hint.lower())
    return next(known, "ANTHROPIC_API_KEY (PORTKEY_API_KEY for the gateway)")


@cache
def _shapes() -> Any:
    return re2.compile("|".join(KEY_SHAPES))
