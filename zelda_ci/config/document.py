"""A configuration file from disk to its keys, with every problem that is in it."""

import re
from collections.abc import Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import re2

from zelda_ci.config.check import KEPT_ELSEWHERE, check
from zelda_ci.config.merge import Layer, Model
from zelda_ci.config.messages import MAX_PER_FILE, ConfigProblem, Position, Rejected, config_problem
from zelda_ci.config.source import read
from zelda_ci.files import untrusted
from zelda_ci.redact import KEY_SHAPES

MEGABYTE = 1_000_000
MAX_FILE_BYTES = MEGABYTE

# What YAML itself does not allow in a file; nobody types these.
_UNPRINTABLE = re.compile("[^\t\n\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_BASE64_RUN = re.compile(r"[A-Za-z0-9+/=]{32}")


def read_text(path: Path, file: str) -> str:
    """The file's text, every line break a newline, without a byte order mark.

    Args:
        path: Where it is. Links are not followed, nothing is opened that could block.
        file: Its name in messages.

    Raises:
        Rejected: it cannot be read as text.
    """
    try:
        data = untrusted.read(path, MAX_FILE_BYTES).removeprefix(b"\xef\xbb\xbf")
    except untrusted.NotRegularError:
        message = f"is {untrusted.kind_of(path) or 'something unknown'}; it must be a regular file"
        raise Rejected(config_problem(file, None, message)) from None
    except untrusted.TooLargeError as error:
        message = f"is {error.size / MEGABYTE:.1f} MB large; at most 1 MB is read"
        raise Rejected(config_problem(file, None, message)) from None
    except OSError as error:
        raise Rejected(config_problem(file, None, f"cannot be read: {error.strerror or error}")) from None
    try:
        text = data.decode().replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        before, message = (
            data[: error.start].decode(),
            f"is not UTF-8 text (byte 0x{data[error.start]:02x}); save it as UTF-8",
        )
        raise Rejected(config_problem(file, position(before, len(before)), message)) from None
    if character := _UNPRINTABLE.search(text):
        message = f"a text file cannot hold the character U+{ord(character[0]):04X}"
        raise Rejected(config_problem(file, position(text, character.start()), message))
    return text


def position(text: str, offset: int) -> Position:
    """The place of a character."""
    return Position(text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))


def shaped(text: str, file: str) -> Iterator[ConfigProblem]:
    """Anything in a file, comments and prompts included, that has the shape of a well-known credential."""
    for match in islice(_shapes().finditer(text), MAX_PER_FILE):
        credential = match.group()
        if "-----BEGIN" in credential and not _BASE64_RUN.search(credential):
            continue  # the header alone is no key
        begin = match.start() + len(credential) - len(credential.lstrip())
        message = (
            f"this has the shape of a credential, {KEPT_ELSEWHERE}, and revoke the credential if the file was ever "
            "committed"
        )
        yield config_problem(file, position(text, begin), message)


@cache
def _shapes() -> Any:
    return re2.compile("|".join(KEY_SHAPES))


def load_document(path: Path, file: str, model: type[Model]) -> Layer[Model]:
    """Read and check a file.

    Args:
        path: Where it is.
        file: Its path in the project, with forward slashes.
        model: What it must hold.

    Raises:
        Rejected: nothing in it can be used.
    """
    return parse_document(read_text(path, file), file, model)


def parse_document(text: str, file: str, model: type[Model]) -> Layer[Model]:
    """Check what a file says.

    Raises:
        Rejected: nothing in it can be used.
    """
    leaked = tuple(shaped(text, file))
    try:
        source = read(text, file)
    except Rejected as exc:
        raise Rejected(*leaked, *exc.problems) from None
    if source.values is None:
        source.values = {}
    if not isinstance(source.values, dict):
        what = "a list" if isinstance(source.values, tuple) else "a single text"
        message = f"the file holds {what}; it must hold keys, each followed by a colon and its value"
        raise Rejected(*leaked, *source.problems, config_problem(file, source.at[()], message))
    config, problems = check(model, source)
    return Layer(file, config, source, dict(source.key_places()), (*leaked, *source.problems, *problems))


def is_sound(text: str, model: type[Model]) -> bool:
    """Whether a file that says this has no problem."""
    try:
        return not _UNPRINTABLE.search(text) and not parse_document(text, "", model).problems
    except Rejected:
        return False
