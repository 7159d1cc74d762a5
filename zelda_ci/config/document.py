"""A configuration file from disk to its keys, with every problem that can be seen without a model."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, Generic

import re2

from zelda_ci.config.check import Model, check
from zelda_ci.config.merge import Layer
from zelda_ci.config.messages import (
    MAX_PER_FILE,
    MAX_SHOWN_LENGTH,
    ConfigProblem,
    Position,
    Rejected,
    config_problem,
    shown,
)
from zelda_ci.config.source import Source, read
from zelda_ci.domain.suite import MODEL_CREDENTIALS
from zelda_ci.files import untrusted
from zelda_ci.named_secrets import is_secret_name
from zelda_ci.redact import KEY_SHAPES

MEGABYTE = 1_000_000
MAX_FILE_BYTES = MEGABYTE

# What YAML itself does not allow in a file; nobody types these.
_UNPRINTABLE = re.compile("[^\t\n\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")


def read_text(path: Path, file: str) -> str:
    """The file's text, every line break a newline, without a byte order mark.

    Args:
        path: Where it is. Links are not followed, nothing is opened that could block.
        file: Its name in messages.

    Raises:
        Rejected: it cannot be read as text.
    """
    try:
        data = untrusted.read(path, MAX_FILE_BYTES)
    except OSError as error:
        raise Rejected(config_problem(file, None, _objection(error, path))) from None
    text = _decode(data, file).replace("\r\n", "\n").replace("\r", "\n")
    character = _UNPRINTABLE.search(text)
    if character:
        mark = position(text, character.start())
        raise Rejected(config_problem(file, mark, f"a text file cannot hold the character U+{ord(character[0]):04X}"))
    return text


def lies_in(path: Path, folder: Path) -> bool:
    """Whether a path, links followed, leads into a folder; neither needs to exist."""
    try:
        return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))
    except (OSError, ValueError):
        return False


def position(text: str, offset: int) -> Position:
    """The place of a character."""
    return Position(text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))


def _objection(error: OSError, path: Path) -> str:
    match error:
        case untrusted.NotRegularError():
            return f"is {untrusted.kind_of(path) or 'something unknown'}; it must be a regular file"
        case untrusted.TooLargeError(size=size) if size > MAX_FILE_BYTES:
            return f"is {size / MEGABYTE:.1f} MB large; at most 1 MB is read"
        case untrusted.TooLargeError():
            return "grows while it is read"
        case _:
            return f"cannot be read: {error.strerror or error}"


def _decode(data: bytes, file: str) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise Rejected(config_problem(file, Position(1, 1), "is UTF-16 text; save it as UTF-8"))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        # A byte order mark is not part of what the codec counts.
        offset = exc.start + (3 if data.startswith(b"\xef\xbb\xbf") else 0)
        before = data[:offset].decode("utf-8-sig")
        message = f"is not UTF-8 text: byte 0x{data[offset]:02x} at offset {offset}; save it as UTF-8"
        raise Rejected(config_problem(file, position(before, len(before)), message)) from None


# By the name of the key that holds a credential, and by how the credential begins; others belong to other vendors.
_VARIABLES = (
    (re.compile("portkey|gateway"), "PORTKEY_API_KEY"),
    (re.compile(r"github|\bgh[pousr]_"), "GITHUB_TOKEN"),
    (re.compile("anthropic|claude|sk-ant-"), "ANTHROPIC_API_KEY"),
)
_ANY_VARIABLE = (
    "keep it in an environment variable (Zelda itself reads ANTHROPIC_API_KEY, and PORTKEY_API_KEY for the gateway)"
)
_BASE64_RUN = re.compile(r"[A-Za-z0-9+/=]{32}")


def credential_named(source: Source, file: str) -> Iterator[ConfigProblem]:
    """Keys with the name of a credential and a value that could be one."""
    for path, place in source.keys.items():
        name, value = str(path[-1]), source.value(path)
        if is_secret_name(name) and isinstance(value, str):
            is_variable = path[:2] == ("execution", "env") and name.upper() not in MODEL_CREDENTIALS
            instead = (
                f"set {shown(name)} where Zelda is started, and leave the value out here to pass it on"
                if is_variable
                else _elsewhere(name, value)
            )
            message = f"{shown(name)} looks like a credential, which does not belong in a file: {instead}"
            yield config_problem(file, place, message)


def shaped(text: str, file: str) -> Iterator[ConfigProblem]:
    """Anything in a file, comments and prompts included, that has the shape of a well-known credential."""
    for match in islice(_shapes().finditer(text), MAX_PER_FILE):
        credential = match.group()
        if "-----BEGIN" in credential and not _BASE64_RUN.search(credential):
            continue  # the header alone is no key
        begin = match.start() + len(credential) - len(credential.lstrip())
        message = (
            "this has the shape of a credential, which does not belong in a file: "
            f"{_elsewhere(credential)}, and revoke the credential if the file was ever committed"
        )
        yield config_problem(file, position(text, begin), message)


def _elsewhere(*hints: str) -> str:
    """Where a credential belongs, by the name of its key and by how it begins."""
    beginnings = [hint.strip()[:MAX_SHOWN_LENGTH].lower() for hint in hints]
    found = (variable for hint in beginnings for words, variable in _VARIABLES if words.search(hint))
    variable = next(found, None)
    return f"set the environment variable {variable} instead" if variable else _ANY_VARIABLE


@cache
def _shapes() -> Any:
    return re2.compile("|".join(KEY_SHAPES))


# Lists of sentences. One such as `Password: at least 8 characters` is a key and its value to YAML.
SENTENCES = ("acceptanceCriteria", "mustPass", "answerCriteria")


def _join_sentences(source: Source) -> None:
    """Make sentences that hold a colon the texts that they are."""
    for path in [path for path in source.keys if len(path) == 3 and path[0] in SENTENCES]:
        key, index, word = path
        items = source.values[key]
        if isinstance(index, int) and len(items[index]) == 1 and source.texts.get(path):
            sentence = f"{word}: {source.texts[path]}"
            source.values[key] = (*items[:index], sentence, *items[index + 1 :])
            del source.keys[path]


@dataclass(frozen=True)
class ConfigDocument(Generic[Model]):
    """What a file says. With problems, it holds the top-level keys that are right."""

    source: Source
    config: Model
    layer: Layer
    problems: tuple[ConfigProblem, ...]

    def problem(self, key: str, message: str) -> ConfigProblem:
        """Something wrong with the value of a top-level key, or with its default."""
        return config_problem(self.layer.file, self.source.at.get((key,)), f"{key} {message}")


def empty(file: str, model: type[Model], *problems: ConfigProblem) -> ConfigDocument[Model]:
    """Stands for a file that is missing or could not be used."""
    return ConfigDocument(Source(values={}), model(), Layer(file, model(), {}), problems)


def load_document(path: Path, file: str, model: type[Model]) -> ConfigDocument[Model]:
    """Read and check a file.

    Args:
        path: Where it is.
        file: Its path in the project, with forward slashes.
        model: What it must hold.

    Raises:
        Rejected: nothing in it can be used.
    """
    return parse_document(read_text(path, file), file, model)


def parse_document(text: str, file: str, model: type[Model]) -> ConfigDocument[Model]:
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
    _join_sentences(source)
    named = tuple(credential_named(source, file))
    lines = {it.line for it in named}
    leaked = (*named, *(it for it in leaked if it.line not in lines))
    config, problems = check(model, source, file)
    # A key with the name of a credential is unknown, too.
    known = {(it.line, it.column) for it in leaked}
    others = (it for it in problems if "is not a known key" not in it.message or (it.line, it.column) not in known)
    layer = Layer(file, config, dict(source.key_places()))
    return ConfigDocument(source, config, layer, (*leaked, *source.problems, *others))


def is_sound(text: str, model: type[Model]) -> bool:
    """Whether a file that says this has no problem."""
    try:
        return not _UNPRINTABLE.search(text) and not parse_document(text, "", model).problems
    except Rejected:
        return False
