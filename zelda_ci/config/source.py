"""YAML text to plain values that know where they stand: the only module of the configuration that knows PyYAML.

PyYAML's composer builds the nodes, over libyaml where there is one. Depth, size and aliases are bounded while it reads.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml
from yaml.composer import Composer
from yaml.parser import Parser
from yaml.reader import Reader
from yaml.resolver import BaseResolver
from yaml.scanner import Scanner

from zelda_ci.config.messages import ConfigProblem, Position, Rejected, config_problem, shown

MAX_VALUES = 10_000
MAX_DEPTH = 32
TOP = Position(1, 1)
# Eighteen digits fit into 64 bits.
_INT = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})")
_FLOAT = re.compile(r"[-+]?([0-9]{1,18}\.[0-9]{0,18}|\.[0-9]{1,18})")
# Words that YAML 1.1 gives another meaning than YAML 1.2, or that only some readers take for a number.
_YAML_1_1 = yaml.SafeLoader.yaml_implicit_resolvers
_SOME_READERS = re.compile(r"[yn]|[-+]?(0o[0-7_]+|([0-9][0-9_]*(\.[0-9_]*)?|\.[0-9_]+)(e[-+]?[0-9]+)?)", re.IGNORECASE)
_MAX_WORD = 64
_UNFIT = re.compile("[\x00\ud800-\udfff]")

Path = tuple[str | int, ...]


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

    values: Any = None
    at: dict[Path, Position] = field(default_factory=lambda: {(): TOP})
    keys: dict[Path, Position] = field(default_factory=dict)
    texts: dict[Path, str] = field(default_factory=dict)
    """Single values as they are written, without quotes."""
    problems: tuple[ConfigProblem, ...] = ()
    """What is wrong with the file and leaves its values usable."""

    def value(self, path: Path) -> Any:
        """What stands at a path that exists."""
        value = self.values
        for step in path:
            value = value[step]
        return value

    def key_places(self) -> Iterator[tuple[str, Position]]:
        """Every dotted key with a value, and where the key stands."""
        for path, place in self.keys.items():
            if all(isinstance(step, str) for step in path) and self.value(path) is not None:
                yield ".".join(map(str, path)), place

    def add(self, node: Any, path: Path = ()) -> Any:
        """Note where a node and all in it stand; its value."""
        self.at[path] = _position(node.start_mark)
        match node:
            case yaml.MappingNode():
                return {key: self.add(value, (*path, key)) for key, value in self._entries(node, path)}
            case yaml.SequenceNode():
                return tuple(self.add(item, (*path, index)) for index, item in enumerate(node.value))
            case _:
                self.texts[path] = node.value
                return node.value if node.style else plain_value(node.value)

    def _entries(self, node: yaml.MappingNode, path: Path) -> Iterator[tuple[str, yaml.Node]]:
        """The keys that are words; the first of those that are given twice counts."""
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode) and (*path, key.value) not in self.keys:
                self.keys[*path, key.value] = _position(key.start_mark)
                yield key.value, value


class _BoundedComposer(Composer, BaseResolver):
    """Builds nodes, and notes what is no value of a configuration."""

    def begin(self, file: str) -> None:
        Composer.__init__(self)
        BaseResolver.__init__(self)
        self.problems: list[ConfigProblem] = []
        self._file = file
        self._depth = self._count = 0
        self._sizes: dict[str, int] = {}
        self._keys: dict[tuple[int, str], Position] = {}

    def compose_node(self, parent: Any, index: Any) -> Any:
        event: Any = self.peek_event()  # type: ignore[attr-defined]  # of the parser that it is mixed with
        before = self._count
        mark = _position(event.start_mark)
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self._sizes:
                name = shown(event.anchor or "")
                raise self.rejected(mark, f"*{name} repeats a value, but no finished value above is marked &{name}")
            self._count += self._sizes[event.anchor]
        else:
            self._count += 1
            self._check(event, mark)
            self.anchors.pop(event.anchor, None)  # may be given again
        if self._count > MAX_VALUES:
            raise self.rejected(mark, f"the file holds more than {MAX_VALUES} values, repeated ones included")
        is_group = isinstance(event, yaml.CollectionStartEvent)
        self._depth += is_group
        if self._depth > MAX_DEPTH:
            raise self.rejected(mark, f"this is nested more than {MAX_DEPTH} levels deep")
        node = super().compose_node(parent, index)
        self._depth -= is_group
        if event.anchor:
            self._sizes[event.anchor] = self._count - before
        if isinstance(parent, yaml.MappingNode) and index is None:
            self._check_key(node, id(parent), mark)
        return node

    def rejected(self, mark: Position, message: str) -> Rejected:
        """The end of reading, with all that was noted before."""
        return Rejected(*self.problems, config_problem(self._file, mark, message))

    def _check(self, event: Any, mark: Position) -> None:
        if event.tag is not None:
            # libyaml ends a tag of one's own at the marks of lists and groups, the parser in Python does not.
            tag = re.split(r"[,\[\]{}]", event.tag)[0] if event.tag.startswith("!") else event.tag
            self._note(mark, f"the tag {shown(tag)} is not supported: write the value without it, or in quotes")
        if isinstance(event, yaml.ScalarEvent) and _UNFIT.search(event.value):
            self._note(mark, "an escape sequence stands for a character that no text can hold")

    def _check_key(self, key: Any, group: int, mark: Position) -> None:
        if not isinstance(key, yaml.ScalarNode):
            self._note(mark, "a key must be a single word, not a list or a group")
        elif (first := self._keys.setdefault((group, key.value), mark)) != mark:
            self._note(mark, f"{shown(key.value)} is given twice; the first time at {first}")

    def _note(self, mark: Position, message: str) -> None:
        self.problems.append(config_problem(self._file, mark, message))


class PythonLoader(_BoundedComposer, Reader, Scanner, Parser):
    """For a PyYAML that was built without libyaml."""

    def __init__(self, text: str, file: str) -> None:
        Reader.__init__(self, text)
        Scanner.__init__(self)
        Parser.__init__(self)
        self.begin(file)


LOADERS: list[Any] = [PythonLoader]
try:
    from yaml.cyaml import CParser  # type: ignore[attr-defined]  # missing in its stubs
except ImportError:
    pass
else:

    class LibyamlLoader(_BoundedComposer, CParser):
        """The fast one."""

        def __init__(self, text: str, file: str) -> None:
            CParser.__init__(self, text)
            self.begin(file)

    LOADERS.append(LibyamlLoader)


def read(text: str, file: str, loader: Any = LOADERS[-1]) -> Source:
    """Read a file.

    Raises:
        Rejected: It is not YAML, or larger or deeper than any configuration.
    """
    reading: Any = None
    try:
        reading = loader(text, file)
        node = reading.get_single_node()
    except yaml.MarkedYAMLError as error:
        raise reading.rejected(*_explain(error, text.split("\n"))) from None
    except (yaml.YAMLError, ValueError, OverflowError):
        # Absurd numbers in escapes and directives end the parser in Python without a place.
        message = "this is not valid YAML: an escape sequence or a % line holds an impossible number"
        problems = reading.problems if reading else ()
        raise Rejected(*problems, config_problem(file, TOP, message)) from None
    source = Source(problems=tuple(reading.problems))
    if node is not None:
        source.values = source.add(node)
    return source


def _position(mark: Any) -> Position:
    return Position(mark.line + 1, mark.column + 1) if mark else TOP


_UNCLOSED = "is opened here and never closed"
_NO_ESCAPE = (
    "inside double quotes a backslash begins an escape sequence, and this is none: write it twice, or use single quotes"
)
_INDENTATION = "the indentation does not fit the lines above"

# What the parser says, whether the construct's beginning is the place to show, and what it means.
_MEANINGS = (
    (r"another document", False, "a second document begins here: a file holds one"),
    (r"end of stream|document (separator|indicator)", True, f"a quote {_UNCLOSED}"),
    (r"expected ',' or '\]'", True, f"a list in square brackets {_UNCLOSED}, or a comma is missing in it"),
    (r"expected ',' or '\}'", True, f"a group in curly brackets {_UNCLOSED}, or a comma is missing in it"),
    (r"sequence entries are not allowed", False, "a list item must begin on a line of its own"),
    (r"could not find expected ':'", True, "this line is no key: a colon is missing, or it must be indented"),
    (r"block end|expected key|'-' indicator|document start", False, _INDENTATION),
    (r"unknown escape character|invalid Unicode|hexa?decimal", False, _NO_ESCAPE),
    (r"cannot start any token", False, "a value cannot begin with this character: put the value in quotes"),
    (r"alphabetic or numeric character", False, "a value cannot begin with & or *: put the value in quotes"),
    (r"chomping or indentation|comment or line break", False, "after | or > the text begins on the next line"),
    (r"node content", False, "a value is missing here, or must be put in quotes"),
    (r"tag handle", False, "a value cannot begin with an exclamation mark: put the value in quotes"),
    (r"directive|YAML document", False, "lines that begin with % are not supported"),
)


def _explain(error: yaml.MarkedYAMLError, lines: list[str]) -> tuple[Position, str]:
    """Where and what to correct."""
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
