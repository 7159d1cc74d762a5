"""YAML text to plain values that know where they stand: the only module of the configuration that knows PyYAML."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml
from yaml.composer import Composer
from yaml.cyaml import CParser  # type: ignore[attr-defined]  # missing in its stubs

from zelda_ci.config.messages import ConfigProblem, Position, Rejected, config_problem, shown

MAX_VALUES = 10_000
MAX_DEPTH = 32
TOP = Position(1, 1)
# Lists of sentences. One such as `Password: at least 8 characters` is a key and its value to YAML.
SENTENCES = ("acceptanceCriteria", "mustPass", "answerCriteria")

# Eighteen digits fit into 64 bits.
_INT = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})")
_FLOAT = re.compile(r"[-+]?([0-9]{1,18}\.[0-9]{0,18}|\.[0-9]{1,18})")
# Words that YAML 1.1 gives another meaning than YAML 1.2, or that only some readers take for a number.
_YAML_1_1 = yaml.SafeLoader.yaml_implicit_resolvers
_SOME_READERS = re.compile(r"[yn]|[-+]?(0o[0-7_]+|([0-9][0-9_]*(\.[0-9_]*)?|\.[0-9_]+)(e[-+]?[0-9]+)?)", re.IGNORECASE)
_MAX_WORD = 64
_UNFIT = re.compile("[\x00\ud800-\udfff]")
_TOO_DEEP = f"this is nested more than {MAX_DEPTH} levels deep"
_TOO_MANY = f"the file holds more than {MAX_VALUES} values, repeated ones included"

Steps = tuple[str | int, ...]


@dataclass(frozen=True)
class Ambiguous:
    """A word without quotes that YAML readers understand in different ways, such as `yes` or `012`."""

    text: str


def plain_value(text: str) -> str | int | float | bool | Ambiguous | None:
    """The value of a word without quotes."""
    if text in {"", "~", "null", "Null", "NULL"}:
        return None
    if text in {"true", "True", "TRUE", "false", "False", "FALSE"}:
        return text.lower() == "true"
    if _INT.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    resolvers = _YAML_1_1.get(text[0], ()) if len(text) < _MAX_WORD else ()
    is_ambiguous = any(pattern.match(text) for _, pattern in resolvers) or _SOME_READERS.fullmatch(text)
    return Ambiguous(text) if is_ambiguous else text


@dataclass
class Source:
    """The values of a file, lists as tuples, and by path where they and their keys stand."""

    file: str = ""
    values: Any = None
    at: dict[Steps, Position] = field(default_factory=lambda: {(): TOP})
    keys: dict[Steps, Position] = field(default_factory=dict)
    texts: dict[Steps, str] = field(default_factory=dict)
    """Single values as they are written, without quotes."""
    problems: list[ConfigProblem] = field(default_factory=list)
    """What is wrong with the file and leaves its values usable."""

    def value(self, path: Steps) -> Any:
        """What stands at a path that exists."""
        value = self.values
        for step in path:
            value = value[step]
        return value

    def key_places(self) -> dict[str, Position]:
        return {".".join(map(str, path)): place for path, place in self.keys.items() if self.value(path) is not None}

    def add(self, node: Any, path: Steps) -> Any:
        """Note where a node and all in it stand, and return its value; raise where it is larger or deeper than any."""
        place = self.at[path] = _position(node.start_mark)
        if len(self.at) + len(self.keys) > MAX_VALUES:
            raise Rejected(*self.problems, config_problem(self.file, place, _TOO_MANY))
        if isinstance(node, yaml.CollectionNode) and len(path) >= MAX_DEPTH:
            raise Rejected(*self.problems, config_problem(self.file, place, _TOO_DEEP))
        if node.tag:
            self._note(place, f"the tag {shown(node.tag)} is not supported: write the value without it, or in quotes")
        match node:
            case yaml.MappingNode(value=[(yaml.ScalarNode() as key, yaml.ScalarNode() as rest)]) if (
                path[:1] and path[0] in SENTENCES and len(path) == 2 and rest.value
            ):
                return f"{key.value}: {rest.value}"
            case yaml.MappingNode():
                return {key: self.add(value, (*path, key)) for key, value in self._entries(node, path)}
            case yaml.SequenceNode():
                return tuple(self.add(item, (*path, index)) for index, item in enumerate(node.value))
            case _:
                if _UNFIT.search(node.value):
                    self._note(place, "an escape sequence stands for a character that no text can hold")
                self.texts[path] = node.value
                return node.value if node.style else plain_value(node.value)

    def _entries(self, node: yaml.MappingNode, path: Steps) -> Iterator[tuple[str, yaml.Node]]:
        """The keys that are words; the first of those that are given twice counts."""
        for key, value in node.value:
            place = _position(key.start_mark)
            if not isinstance(key, yaml.ScalarNode):
                self._note(place, "a key must be a single word, not a list or a group")
            elif first := self.keys.get((*path, key.value)):
                self._note(place, f"{shown(key.value)} is given twice; the first time at {first}")
            else:
                self.keys[*path, key.value] = place
                yield key.value, value

    def _note(self, place: Position, message: str) -> None:
        self.problems.append(config_problem(self.file, place, message))


class _Loader(Composer, CParser):
    """PyYAML's composer over libyaml's parser; a node has a tag only where the file gives it one."""

    def __init__(self, text: str, file: str) -> None:
        CParser.__init__(self, text)
        Composer.__init__(self)
        self._file, self._count = file, 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Stop before a huge file has become objects."""
        self._count += 1
        if self._count > MAX_VALUES:
            event: Any = self.peek_event()
            raise Rejected(config_problem(self._file, _position(event.start_mark), _TOO_MANY))
        return super().compose_node(parent, index)

    def resolve(self, *_: Any) -> str:
        """No tag: plain words get their meaning later."""
        return ""

    descend_resolver = ascend_resolver = resolve


def read(text: str, file: str) -> Source:
    """Read a file; raises Rejected where it is not YAML, or larger or deeper than any configuration."""
    source = Source(file)
    try:
        if (node := _Loader(text, file).get_single_node()) is not None:
            source.values = source.add(node, ())
    except yaml.MarkedYAMLError as error:
        raise Rejected(config_problem(file, *_explain(error, text.split("\n")))) from None
    except RecursionError:
        raise Rejected(config_problem(file, TOP, _TOO_DEEP)) from None
    except (yaml.YAMLError, ValueError):
        raise Rejected(config_problem(file, TOP, "this holds characters that YAML does not allow")) from None
    return source


def _position(mark: Any) -> Position:
    return Position(mark.line + 1, mark.column + 1) if mark else TOP


_UNCLOSED = "is opened here and never closed"
_NO_ESCAPE = "inside double quotes a backslash begins an escape sequence, and this is none: "
_INDENTATION = "the indentation does not fit the lines above"

# What the parser says, whether the construct's beginning is the place to show, and what it means.
_MEANINGS = (
    (r"another document", False, "a second document begins here: a file holds one"),
    (r"undefined alias", False, "a value that begins with * repeats one that is marked with & above, and none is"),
    (r"second occurrence", False, "the same mark after & is given to two values"),
    (r"end of stream|document indicator", True, f"a quote {_UNCLOSED}"),
    (r"expected ',' or '\]'", True, f"a list in square brackets {_UNCLOSED}, or a comma is missing in it"),
    (r"expected ',' or '\}'", True, f"a group in curly brackets {_UNCLOSED}, or a comma is missing in it"),
    (r"sequence entries are not allowed", False, "a list item must begin on a line of its own"),
    (r"could not find expected ':'", True, "this line is no key: a colon is missing, or it must be indented"),
    (r"expected key|'-' indicator|document start", False, _INDENTATION),
    (r"unknown escape|invalid Unicode|hexdecimal", False, f"{_NO_ESCAPE}write it twice, or use single quotes"),
    (r"cannot start any token", False, "a value cannot begin with this character: put the value in quotes"),
    (r"alphabetic or numeric character", False, "a value cannot begin with & or *: put the value in quotes"),
    (r"comment or line break", False, "after | or > the text begins on the next line"),
    (r"node content", False, "a value is missing here, or must be put in quotes"),
    (r"tag handle", False, "a value cannot begin with an exclamation mark: put the value in quotes"),
    (r"directive|YAML document", False, "lines that begin with % are not supported"),
)


def _explain(error: yaml.MarkedYAMLError, lines: list[str]) -> tuple[Position, str]:
    said, at = str(error.problem or error.context or ""), _position(error.problem_mark)
    line = lines[at.line - 1] if at.line <= len(lines) else ""
    indentation = line[: len(line) - len(line.lstrip())]
    if "\t" in indentation:
        return Position(at.line, indentation.index("\t") + 1), "a tab is used to indent: use spaces"
    if "mapping values are not allowed" in said:
        # A colon where no key can be: in a text without quotes, or on a line that is indented too far.
        if re.search(r":\s", line[: at.column - 1]):
            return at, "a colon followed by a space cannot stand in a text without quotes: put the value in quotes"
        return Position(at.line, len(indentation) + 1), _INDENTATION
    for pattern, at_beginning, meaning in _MEANINGS:
        if re.search(pattern, said):
            return (_position(error.context_mark) if at_beginning and error.context_mark else at), meaning
    return at, f"this is not valid YAML ({said})"
