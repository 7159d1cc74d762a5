"""Secrets that lie in files of the user's, so that they are masked should a session or a command ever print them."""

import base64
import binascii
import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from zelda_ci.config.settings import worth_masking
from zelda_ci.redact import SHORTEST_SECRET, Secret

LARGEST_FILE = 1 << 20
LARGEST_SUM = 60_000
"""Characters of secrets that are looked for; what is masked has many spellings, and a limit of its own."""

EXAMPLES = (".example", ".sample", ".template", ".dist", ".defaults")
"""Endings of files that are meant to be read."""

_ASSIGNMENT = re.compile(r"^[ \t]*(?:export[ \t]+)?([\w.-]+)[ \t]*[=:][ \t]*(.*?)[ \t]*$", re.MULTILINE)
_HEADER = re.compile(r"extraheader[ \t]*=[ \t]*\"?authorization:[ \t]*(?:basic|bearer|token)[ \t]+([^\s\"]+)", re.IGNORECASE)
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/@:]*:([^\s/@]+)@", re.IGNORECASE)
_NPM = re.compile(r"_(?:authToken|auth|password)[ \t]*=[ \t]*\"?([^\s\"]+)")
_MACHINE = re.compile(r"\bpassword[ \t\n]+(\S+)")


def secrets(project: Path, environ: Mapping[str, str]) -> tuple[Secret, ...]:
    """The values of credentials in `.env` files and Git's configuration of the project, of the runner and of the home.

    Files that cannot be read, are large or are no text hold nothing: this is a net below the others.
    """
    found = (value for value in _values(project, environ) if len(value) >= SHORTEST_SECRET)
    return tuple(Secret(value) for value in _within_limits(dict.fromkeys(found)))


def _within_limits(values: Iterable[str]) -> Iterator[str]:
    left = LARGEST_SUM
    for value in values:
        left -= len(value)
        if left < 0:
            return
        yield value


def _values(project: Path, environ: Mapping[str, str]) -> Iterator[str]:
    for text in map(_text, _environment_files(project)):
        pairs = {name: value.strip("\"'") for name, value in _ASSIGNMENT.findall(text)}
        yield from worth_masking({name.upper(): value for name, value in pairs.items()})
    for text in map(_text, _git_files(project, environ)):
        yield from _of_git(text)
    home = environ.get("HOME")
    if home:
        yield from _of_home(Path(home))


def _environment_files(project: Path) -> list[Path]:
    try:
        return sorted(path for path in project.glob(".env*") if not path.name.endswith(EXAMPLES))
    except OSError:
        return []


def _git_files(project: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    """The project's own, and what the checkout action leaves beside it; in a worktree or subfolder only the latter."""
    yield project / ".git" / "config"
    if environ.get("HOME"):
        yield Path(environ["HOME"], ".gitconfig")
        yield Path(environ["HOME"], ".git-credentials")
    if environ.get("RUNNER_TEMP"):
        yield from sorted(Path(environ["RUNNER_TEMP"]).glob("git-credentials-*"))


def _of_git(text: str) -> Iterator[str]:
    for encoded in _HEADER.findall(text):
        yield encoded
        yield from _password(encoded)
    yield from _ADDRESS.findall(text)


def _of_home(home: Path) -> Iterator[str]:
    pairs = dict(_ASSIGNMENT.findall(_text(home / ".aws" / "credentials")))
    yield from worth_masking({name.upper(): value for name, value in pairs.items()})
    yield from _NPM.findall(_text(home / ".npmrc"))
    yield from _MACHINE.findall(_text(home / ".netrc"))
    try:
        entries = json.loads(_text(home / ".docker" / "config.json") or "{}").get("auths", {}).values()
        for encoded in [entry["auth"] for entry in entries if "auth" in entry]:
            yield encoded
            yield from _password(encoded)
    except (ValueError, TypeError, AttributeError):
        return


def _password(encoded: str) -> Iterator[str]:
    """The second half of `user:password` in base64."""
    try:
        yield base64.b64decode(encoded, validate=True).decode().partition(":")[2]
    except (binascii.Error, UnicodeDecodeError):
        return


def _text(file: Path) -> str:
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK)
        with open(descriptor, "rb") as opened:  # noqa: PTH123  # a descriptor
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return ""
            return opened.read(LARGEST_FILE).decode("utf-8", "ignore").replace("\0", "")
    except OSError:
        return ""
