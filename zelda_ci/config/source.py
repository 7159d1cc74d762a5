"""YAML text to plain values that know where they stand, and problems with them: the only one here that knows PyYAML."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from difflib import SequenceMatcher, get_close_matches
from functools import cache, reduce
from itertools import combinations, groupby
from operator import attrgetter, getitem
from typing import Any

import yaml
from yaml.composer import Composer
from yaml.cyaml import CParser  # type: ignore[attr-defined]  # missing in its stubs

from zelda_ci.redact import Redactor

MAX_SHOWN_LENGTH = 60
MAX_PER_FILE = 100


@dataclass(frozen=True, order=True)
class Position:
    """A place in a file, counted from 1 in characters."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.line}:{self.column}"


@dataclass(frozen=True)
class ConfigProblem:
    """One thing to correct. Line and column are absent where the file as a whole, or a folder, is meant."""

    file: str
    line: int | None
    column: int | None
    message: str

    def __str__(self) -> str:
        return f"{self.file}{f':{self.line}:{self.column}' if self.line else ''}: {self.message}"


_redactor = cache(Redactor)


class Rejected(Exception):  # noqa: N818 - what happened to a file; never leaves this package
    """The file cannot be used; carries all problems found in it."""

    def __init__(self, *problems: ConfigProblem) -> None:
        super().__init__(*problems)
        self.problems = problems


def config_problem(file: str, position: Position | None, message: str) -> ConfigProblem:
    """A problem whose texts are fit to be printed: one line each, no control characters, no credentials."""
    clean = _redactor()
    line, column = (position.line, position.column) if position else (None, None)
    return ConfigProblem(printable(clean(file)), line, column, printable(clean(message)))


def ordered(problems: Iterable[ConfigProblem]) -> tuple[ConfigProblem, ...]:
    """By file, then by place; each once, and no file takes the whole screen."""
    ranked = sorted(set(problems), key=lambda it: (it.file, it.line or 0, it.column or 0, it.message))
    kept: list[ConfigProblem] = []
    for file, group in groupby(ranked, attrgetter("file")):
        of_file = list(group)
        kept += of_file[:MAX_PER_FILE]
        if len(of_file) > MAX_PER_FILE:
            kept.append(ConfigProblem(file, None, None, f"has {len(of_file) - MAX_PER_FILE} more problems"))
    return tuple(kept)


def shown(text: str) -> str:
    """A key, name or path from a file, short enough for a sentence."""
    return text if len(text) <= MAX_SHOWN_LENGTH else f"{text[: MAX_SHOWN_LENGTH - 3]}..."


def printable(text: str) -> str:
    """Text on one line that cannot move the cursor: control characters as escape sequences."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def folded(word: str) -> str:
    """Letters and digits alone, small."""
    return "".join(char for char in word.lower() if char.isalnum())


def nearest(word: str, choices: Iterable[str]) -> str | None:
    """The choice that is most like a word, or a part of which is: `timeout` means `timeoutSeconds`."""
    sought, meant = folded(word[:MAX_SHOWN_LENGTH]), dict[str, str]()
    for choice in choices:
        words = re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+", choice)
        parts = ("".join(words[first:last]).lower() for first, last in combinations(range(len(words) + 1), 2))
        for part in (it for it in parts if min(len(it), len(sought)) >= 4):
            meant.setdefault(part, choice)
        meant[folded(choice)] = choice
    return next((meant[form] for form in get_close_matches(sought, meant, 1, 0.74)), None)


def is_alike(word: str, choice: str) -> bool:
    """Whether one is the other but for a letter or so."""
    return SequenceMatcher(None, folded(word), folded(choice), autojunk=False).ratio() > 0.85


MAX_VALUES = 10_000
MAX_DEPTH = 32
TOP = Position(1, 1)
# Lists of sentences. One such as `Password: at least 8 characters` is a key and its value to YAML.
SENTENCES = ("acceptanceCriteria", "mustPass", "answerCriteria")
# Eighteen digits fit into 64 bits.
_INT = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})")
_FLOAT = re.compile(r"[-+]?([0-9]{1,18}\.[0-9]{0,18}|\.[0-9]{1,18})")
# Words that YAML 1.1 gives another meaning than YAML 1.2, or that only some readers take for a number.
_SOME_READERS = re.compile(r"[yn]|[-+]?(0o[0-7_]+|([0-9][0-9_]*(\.[0-9_]*)?|\.[0-9_]+)(e[-+]?[0-9]+)?)", re.IGNORECASE)
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
    resolvers = yaml.SafeLoader.yaml_implicit_resolvers.get(text[0], ()) if len(text) < 64 else ()
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
    merges: bool = False
    """Whether `<<` puts the keys of another group in, as in files of other tools."""

    def value(self, path: Steps) -> Any:
        """What stands at a path that exists."""
        return reduce(getitem, path, self.values)

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
        """The keys that are words; the first of those that are given twice counts, and own ones before merged ones."""
        groups, known = [node], {id(node)}
        for group in groups:
            for key, value in group.value:
                place = _position(key.start_mark)
                if not isinstance(key, yaml.ScalarNode):
                    self._note(place, "a key must be a single word, not a list or a group")
                elif self.merges and key.value == "<<":
                    others = [it for it in (value, *value.value) if isinstance(it, yaml.MappingNode)]
                    groups += [it for it in others if id(it) not in known]
                    known |= {*map(id, others)}
                elif (first := self.keys.get((*path, key.value))) is None:
                    self.keys[*path, key.value] = place
                    yield key.value, value
                elif group is node:
                    self._note(place, f"{shown(key.value)} is given twice; the first time at {first}")

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


def read(text: str, file: str, *, merges: bool = False) -> Source:
    """Read a file; raises Rejected where it is not YAML, or larger or deeper than any configuration."""
    source = Source(file, merges=merges)
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
