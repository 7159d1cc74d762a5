"""A configuration file from disk to its tree of keys, with every problem that can be seen without a model."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, Generic

import re2

from zelda_ci.config import loader
from zelda_ci.config.loader import (
    MappingEntry,
    MappingNode,
    Node,
    ScalarNode,
    SequenceNode,
    child,
    key_places,
    value_of,
)
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
from zelda_ci.config.validation import Model, validate_tree
from zelda_ci.domain.suite import MODEL_CREDENTIALS
from zelda_ci.files import untrusted
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


_NAME = re.compile(
    r"(api|access|secret|private|auth|signing)_?keys?|key|(access_?|auth_?|oauth_?|bearer_?|github_?|gh_?)?token"
    r"|\w*_(token|key|secret|password)|\w*(apikey|authtoken|secret|passwor[dt]|passwd|passphrase|credentials?)|bearer"
)
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


def credential_named(root: Node | None, file: str) -> Iterator[ConfigProblem]:
    """Keys with the name of a credential and a value that could be one."""
    execution = child(root, "execution") if root else None
    own = child(execution, "env") if execution else None
    given = {(mark.line, mark.column) for _, mark, _ in _scalars(own)}
    for key, mark, node in _scalars(root):
        if _NAME.fullmatch(_snake(key)) and isinstance(value_of(node), str):
            instead = (
                f"set {shown(key)} where Zelda is started, and leave the value out here to pass it on"
                if (mark.line, mark.column) in given and key.upper() not in MODEL_CREDENTIALS
                else _elsewhere(key, str(value_of(node)))
            )
            message = f"{shown(key)} looks like a credential, which does not belong in a file: {instead}"
            yield config_problem(file, mark, message)


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


def _scalars(node: Node | None) -> Iterator[tuple[str, Position, ScalarNode]]:
    match node:
        case MappingNode():
            for key, entry in node.entries.items():
                if isinstance(entry.node, ScalarNode):
                    yield key, entry.key_at, entry.node
                yield from _scalars(entry.node)
        case SequenceNode():
            for item in node.items:
                yield from _scalars(item)
        case _:
            pass


def _snake(key: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|-", "_", key[:100]).lower()


def _elsewhere(*hints: str) -> str:
    """Where a credential belongs, by the name of its key and by how it begins."""
    beginnings = [hint.strip()[:MAX_SHOWN_LENGTH].lower() for hint in hints]
    found = (variable for hint in beginnings for words, variable in _VARIABLES if words.search(hint))
    variable = next(found, None)
    return f"set the environment variable {variable} instead" if variable else _ANY_VARIABLE


@cache
def _shapes() -> Any:
    return re2.compile("|".join(KEY_SHAPES))


def is_sound(text: str, model: type[Model]) -> bool:
    """Whether a file that says this would be taken without a word."""
    try:
        return not _UNPRINTABLE.search(text) and not parse_document(text, "", model).problems
    except Rejected:
        return False


TOP = Position(1, 1)
# Lists of sentences. One such as `Password: at least 8 characters` is a key and its value to YAML.
SENTENCES = ("acceptanceCriteria", "mustPass", "answerCriteria")


def _with_sentences(key: str, entry: MappingEntry) -> MappingEntry:
    """The entry with sentences that hold a colon as the texts that they are."""
    if key not in SENTENCES or not isinstance(entry.node, SequenceNode):
        return entry
    return MappingEntry(entry.key_at, SequenceNode(entry.node.at, tuple(map(_as_sentence, entry.node.items))))


def _as_sentence(item: Node) -> Node:
    match item:
        case MappingNode(entries=entries) if len(entries) == 1:
            ((key, entry),) = entries.items()
            if isinstance(entry.node, ScalarNode) and entry.node.text:
                return ScalarNode(item.at, f"{key}: {entry.node.text}", plain=False)
    return item


@dataclass(frozen=True)
class ConfigDocument(Generic[Model]):
    """What a file says. With problems, it holds the top-level keys that are right."""

    root: MappingNode
    config: Model
    layer: Layer
    problems: tuple[ConfigProblem, ...]

    def problem(self, key: str, message: str) -> ConfigProblem:
        """Something wrong with the value of a top-level key, or with its default."""
        entry = self.root.entries.get(key)
        return config_problem(self.layer.file, entry.node.at if entry else None, f"{key} {message}")


def empty(file: str, model: type[Model], *problems: ConfigProblem) -> ConfigDocument[Model]:
    """Stands for a file that is missing or could not be used."""
    return ConfigDocument(MappingNode(TOP, {}), model(), Layer(file, model(), {}), problems)


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
        node, problems = loader.parse(text, file)
    except Rejected as exc:
        raise Rejected(*leaked, *exc.problems) from None
    if node is None or (isinstance(node, ScalarNode) and value_of(node) is None):
        node = MappingNode(TOP, {})
    if not isinstance(node, MappingNode):
        what = "a single text" if isinstance(node, ScalarNode) else "a list"
        message = f"the file holds {what}; it must hold keys, each followed by a colon and its value"
        raise Rejected(*leaked, *problems, config_problem(file, node.at, message))
    node = MappingNode(node.at, {key: _with_sentences(key, entry) for key, entry in node.entries.items()})
    named = tuple(credential_named(node, file))
    lines = {it.line for it in named}
    leaked = (*named, *(it for it in leaked if it.line not in lines))
    checked = validate_tree(model, node, file, leaked)
    layer = Layer(file, checked.config, dict(key_places(node)))
    return ConfigDocument(node, checked.config, layer, (*leaked, *problems, *checked.problems))
