"""Front matter and text of Markdown files, as Claude Code reads them."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import re2
import yaml

from zelda_ci.imports import one_at_a_time

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

MAX_LENGTH = 32_000
# Each alias may repeat a value that holds aliases: what is short to write can be long to build.
MAX_ALIASES = 20

COMMENT = re2.compile(r"(?s)<!--.*?-->")  # re would look through the rest of a file for each that does not end
_BEGIN = re.compile(r"---\s*\n")
# What Claude Code puts into quotes where a head is no YAML: words with such a sign, unless a carriage return ends them.
_LINE = re.compile(r"^([a-zA-Z_-]+):[ \t]+(?!(?:\".*\"|'.*'|\[.*\])$)([^\s][^\r\n]*)$", re.MULTILINE)
_TABS = re.compile(r"^\t+", re.MULTILINE)
_SIGN = re.compile(r"[{}[\]*&#!|>%@`]|: ")
# A word with an @ before it; a blank in it has a backslash.
_IMPORT = re.compile(r"(?:^|\s)@((?:[^\s\\]|\\ )+)")
_PATH = re.compile(r"[a-zA-Z0-9._-]|~/|/.")


class _HeadLoader(yaml.CSafeLoader):
    """YAML 1.2 as Claude Code reads it, where yes and no are words, and dates too."""


_HeadLoader.yaml_implicit_resolvers = {}
for _tag, _pattern, _begins in (
    ("null", r"~|null|Null|NULL|", [*"~nN", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", [*"tTfF"]),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|0o[0-7]+|0x[0-9a-fA-F]+", [*"-+.0123456789"]),
    ("merge", r"<<", ["<"]),
):
    _HeadLoader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"(?:{_pattern})\Z"), _begins)


def _number(_: Any, node: Any) -> float:
    number = float(int(node.value, 0) if node.value[:2] in ("0x", "0o") else node.value)
    return int(number) if number.is_integer() else number


_HeadLoader.add_constructor("tag:yaml.org,2002:float", _number)


@dataclass(frozen=True)
class MarkdownDocument:
    """A Markdown file: the fields of its head, and its text."""

    fields: Mapping[str, Any] = field(default_factory=dict)
    body: str = ""

    def text(self, key: str) -> str | None:
        """Return a field that holds words, a number, or yes or no; a list or table counts as not given."""
        value = self.fields.get(key)
        words = str(value).lower() if isinstance(value, bool) else str(value)
        return words.strip() or None if isinstance(value, str | int | float) else None

    def words(self, key: str) -> str | None:
        """Return a field that holds words as they stand there, and nothing else."""
        value = self.fields.get(key)
        return value or None if isinstance(value, str) else None

    def says(self, key: str, *, default: bool) -> bool:
        """Return a field that says yes or no: as Claude Code reads it, whatever is not one of these words is a no."""
        return str(self.fields.get(key, default)).strip().lower() in ("true", "yes", "on", "1")

    def listed(self, key: str) -> tuple[str, ...]:
        """Return a field that lists texts, each of which may have several with commas between, but not in braces."""
        value = self.fields.get(key)
        texts = (text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str))
        pieces = (piece.strip() for text in texts for piece in re.findall(r"(?:[^,{]|\{[^}]*\}?)+", text))
        return tuple(filter(None, pieces))

    @property
    def paths(self) -> tuple[str, ...]:
        """Globs of the files that it waits for: none where all of them cover everything."""
        globs = [glob for each in self.listed("paths") if (glob := each.removesuffix("/**"))]
        return () if all(glob == "**" for glob in globs) else tuple(globs)

    @property
    def shown(self) -> str:
        """What the model sees of a file that it is given whole: neither its head nor its comments."""
        return str(COMMENT.sub("", self.body)).strip()

    @property
    def offer(self) -> str:
        """What a skill or command says of itself to whoever may call it: a description, and when to use it."""
        words = (self.text("description") or self.first_line, self.text("when_to_use"))
        return " ".join(filter(None, words))

    @property
    def first_line(self) -> str | None:
        """What stands for a description where none is given: the first line with words, a heading without its marks."""
        lines = (line.strip().lstrip("#").strip() for line in self.body[:MAX_LENGTH].split("\n"))
        return next((line for line in lines if line), None)


def parse(text: str) -> MarkdownDocument:
    """Split a file into head and text; the head begins on the first line, and ends at the next three dashes."""
    begin = _BEGIN.match(text)
    end = text.find("---", begin.end()) if begin else -1
    if begin is None or not begin.end() <= end <= MAX_LENGTH:
        return MarkdownDocument({}, text)
    return MarkdownDocument(_fields(text[begin.end() : end]), text[end + 3 :].lstrip())


def _fields(head: str) -> dict[str, Any]:
    """Read the head as YAML; else as YAML once it is repaired; else nothing of it."""
    for text in (head, _LINE.sub(_quoted, _TABS.sub(lambda tabs: "  " * len(tabs[0]), head))):
        with suppress(yaml.YAMLError, ValueError, OverflowError, RecursionError):
            aliases = sum(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=_HeadLoader))
            # A safe loader.
            fields = yaml.load(text, Loader=_HeadLoader) if aliases <= MAX_ALIASES else None  # noqa: S506
            return {key: fields[key] for key in fields if isinstance(key, str)} if isinstance(fields, dict) else {}
    return {}


def _quoted(line: re.Match[str]) -> str:
    return f"{line[1]}: {json.dumps(line[2], ensure_ascii=False)}" if _SIGN.search(line[2]) else line[0]


@cache
def _markdown() -> "MarkdownIt":
    """A parser of blocks alone: what is in them is parsed where it may name a file."""
    with one_at_a_time("markdown_it"):
        from markdown_it import MarkdownIt  # noqa: PLC0415 - most files mention no other
    return MarkdownIt("commonmark").disable(["inline", "text_join"])


def mentioned(text: str) -> Iterator[str]:
    """Yield paths after an @ in the running text of Markdown and beside comments: not in code or other HTML."""
    references: dict[str, Any] = {}
    for block in _markdown().parse(text, references) if "@" in text else ():
        for words in _words(block, references) if "@" in block.content else ():
            for match in _IMPORT.finditer(words):
                path = match[1].partition("#")[0].replace("\\ ", " ")
                if _PATH.match(path):
                    yield path


def _words(block: "Token", references: dict[str, Any]) -> Iterator[str]:
    """Yield texts of a block, from one mark to the next."""
    parts = [block] if block.type == "html_block" else []
    if block.type == "inline":
        _markdown().inline.parse(block.content, _markdown(), references, parts)
    words = ""
    for part in parts:
        if part.type == "text":
            words += part.content
        elif part.type == "text_special" and not (part.info == "escape" and part.content != part.markup):
            words += part.markup
        else:
            yield words
            words = ""
            is_comment = part.content.lstrip().startswith("<!--") and "-->" in part.content
            if part.type in ("html_block", "html_inline") and is_comment:
                yield COMMENT.sub("", part.content)
    yield words
