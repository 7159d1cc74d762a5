"""Words of a text that may name files of the project, with how the text uses them. Pure; nothing is looked up here."""

import json
import posixpath
import re
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any, Literal, NamedTuple
from urllib.parse import unquote

from zelda_ci.execution.manifest.front_matter import mentioned, parse
from zelda_ci.selection.effects import is_code

# Programs that run the file, module or folder that follows.
INTERPRETERS = frozenset({
    "python", "python3", "node", "deno", "bun", "tsx", "ts-node", "bash", "sh", "zsh", "dash", "ruby", "perl", "php",
    "pwsh", "source", ".", "go", "cargo", "-m", "exec",
})  # fmt: skip
# Those that are words of everyday English only run something where code is written.
ENGLISH = frozenset({"node", "source", ".", "go", "-m", "exec"})
# What the files say that these programs run.
RUNNERS = {
    **dict.fromkeys(("npm", "npx", "pnpm", "yarn", "bun", "bunx"), ("package.json",)),
    **dict.fromkeys(("uv", "uvx", "poetry", "pdm", "hatch"), ("pyproject.toml",)),
    "make": ("Makefile", "makefile", "GNUmakefile"),
    "just": ("justfile", "Justfile", ".justfile"),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
    "rake": ("Rakefile",),
    "nox": ("noxfile.py",),
    "tox": ("tox.ini",),
    "pre-commit": (".pre-commit-config.yaml",),
    "docker": ("Dockerfile", "docker-compose.yml", "compose.yaml", "compose.yml"),
}
# Of these, files that change for many other reasons.
MANIFESTS = frozenset({"package.json", "pyproject.toml"})
DOCUMENT_ENDINGS = (".md", ".mdx", ".txt", ".rst", ".adoc")
# What recipes name and no program needs.
_OTHERS = (*DOCUMENT_ENDINGS, *MANIFESTS, ".lock")
SHELL_ENDINGS = (".sh", ".bash", ".zsh", ".ps1")


class Mention(NamedTuple):
    """A word that may be a file, a folder, a module, a pattern, or a program of `RUNNERS`."""

    word: str
    how: Literal["names", "reads", "runs", "imports"]
    """`names` only tells a reader of it; `reads` is what a program may open; `imports` is put in its place."""
    is_started: bool = False
    """Whether an interpreter stands right before it, so that it need not look like a path."""
    target: str = ""
    """Of a program of `RUNNERS`, the word behind it."""


def in_document(text: str) -> Iterator[Mention]:
    document = parse(text)
    yield from in_program(text[: len(text) - len(document.body)])
    yield from (Mention(name, "imports") for name in mentioned(text))
    yield from (Mention(unquote(target.strip()), "names") for target in _LINK.findall(document.body))
    for words, kind in _segments(_URL.sub(" ", _expanded(document.body))):
        for clause in _CLAUSES.split(words):
            yield from _in_clause(_words(clause), is_code=kind != "prose", is_run=kind == "run")


def in_program(text: str) -> Iterator[Mention]:
    """Words of a shell script, a configuration, or commands that are carried out."""
    for line in _URL.sub(" ", _expanded(text)).splitlines():
        for clause in _CLAUSES.split(line):
            for mention in _in_clause(_words(clause), is_code=True):
                if mention.how == "runs":
                    yield mention
                elif "/" in mention.word or "." in mention.word:
                    yield mention._replace(how="reads")


def in_code(text: str, path: str) -> Iterator[Mention]:
    """Modules that code imports, and paths in its strings."""
    for source, names in _IMPORT.findall(text):
        begin = source if not source.strip(".") else f"{source}."
        for name in ("", *re.findall(r"[\w.]+", re.sub(r"\bas\s+\w+", "", names))):
            yield Mention(f"{begin}{name}" if name else source, "runs", is_started=not (source and name))
    yield from (Mention(name, "runs", is_started=True) for name in _REQUIRE.findall(text))
    for string in dict.fromkeys(_STRING.findall(text)):
        for word in _words(_BRACES.sub("", string)) if "://" not in string else ():
            if "/" in word or "." in word:
                yield Mention(word, "runs" if "/" in word else "reads", is_started=path.endswith(".go"))


def in_settings(text: str) -> Iterator[Mention]:
    """Words of a JSON file whose commands are split into program and arguments."""
    try:
        settings = json.loads(text)
        if isinstance(settings, dict):
            # These allow something, and start nothing.
            settings.pop("permissions", None)
        lines = "\n".join(_lines(settings))
    except (ValueError, RecursionError):
        return
    yield from in_program(lines)


def _expanded(text: str) -> str:
    """With variables left out, or by their defaults where they have some; and with slashes of one kind."""
    for _ in range(3):
        text = _VARIABLE.sub(lambda match: match[1] or "", text)
    return _BACKSLASH.sub("/", text)


def in_recipe(name: str, text: str) -> Iterator[Mention]:
    """Programs that a file of `RUNNERS` has them run, for any of its targets, and configuration and data for these."""
    try:
        if name in MANIFESTS:
            own = json.loads(text)["scripts"].values() if name == "package.json" else _VALUE.findall(text)
            # An entry point is a module with a function.
            text = "\n".join(re.sub(r"^([\w.]+):\w+$", r"python -m \1", value) for value in own)
    except (ValueError, RecursionError, LookupError, AttributeError, TypeError):
        return
    for mention in in_program(text):
        if mention.how == "runs" or not (is_code(mention.word) or mention.word.endswith(_OTHERS)):
            yield mention


_LINK = re.compile(r"\]\(\s*<?([^)>\n]{1,300})>?\s*\)")
_URL = re.compile(r"\b[a-z][a-z+]{1,10}://[^\s)>\"']*")
_VARIABLE = re.compile(r"\$\{[\w.]+(?::?[-=+?]([^${}]*)|[^${}]*)\}|\$\w+|%\w+%")
_BACKSLASH = re.compile(r"\\(?=[\w.])")
_CLAUSES = re.compile(r"&&|\|\|?|;(?:\s|$)|\$\(")
_SPLIT = re.compile(r"[\s\"'`;|&()<>=:\[\]!]+|,(?![^{}\s]*\})")
_IMPORT = re.compile(r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import|import|use)[ \t]+(\([^()]*\)|[\w., \t]+)", re.MULTILINE)
_REQUIRE = re.compile(r"\b(?:require|require_relative|load|source)[ (]+[\"']([\w./-]+)")
_STRING = re.compile(r"[\"'`]([^\"'`\n]*)[\"'`]")
_BRACES = re.compile(r"\$?\{[^{}]*\}/?")
_VALUE = re.compile(r"=\s*\"([^\"\n]*)\"")
_BOLD = re.compile(r"^[*_]{1,3}(?=\w)|(?<=\w)\*{2,3}$|(?<=\.\w\w)[*_]$|(?<=\.\w\w\w)[*_]$")
_RUN_VERB = re.compile(r"(?:\b(?:run|runs|execute|call|invoke|start|launch|use)\s*|!)$", re.IGNORECASE)


def _segments(body: str) -> Iterator[tuple[str, Literal["prose", "code", "run"]]]:
    """Lines of a body in pieces of prose and of code; of code, whether the words before it say that it is run."""
    is_fenced = False
    for line in body.splitlines():
        if re.match(r"\s*(```|~~~)", line):
            is_fenced = not is_fenced
        elif is_fenced or line.lstrip().startswith("$ "):
            yield line.lstrip().removeprefix("$ "), "code"
        else:
            prose, *pieces = re.split(r"`+", line)
            yield prose, "prose"
            for code, after in zip_longest(pieces[::2], pieces[1::2], fillvalue=""):
                yield code, "run" if _RUN_VERB.search(prose) else "code"
                yield after, "prose"
                prose = after


def _words(clause: str) -> list[str]:
    pieces = (piece for piece in _SPLIT.split(clause) if piece)
    plain = (_BOLD.sub("", piece.rstrip(".,;?")) or piece for piece in pieces)
    bare = (piece.removeprefix("@").partition("#")[0] or piece for piece in plain)
    return [unquote(word) if "%" in word else word for word in bare]


def _in_clause(words: list[str], *, is_code: bool, is_run: bool = False) -> Iterator[Mention]:
    """Words of one command or one line of prose. In prose, only what follows an interpreter at once is run by it."""
    started = running = False
    for number, word in enumerate(words):
        is_program = (
            running
            or word.startswith("./")
            or word.endswith(SHELL_ENDINGS)
            or (is_run and number == 0)
            or (is_code and number == 0 and "/" in word and (len(words) > 1 or "." not in posixpath.basename(word)))
        )
        target = words[number + 1] if word in RUNNERS and number + 1 < len(words) else ""
        yield Mention(word, "runs" if is_program or (target and is_code) else "names", started, target)
        is_interpreter = word in INTERPRETERS and (is_code or word not in ENGLISH)
        is_between = started and (word.startswith("-") or word == "run")
        started = is_interpreter or is_between
        running = started or (is_code and running)


def _lines(value: Any) -> Iterator[str]:
    """The strings of a JSON value; those of one object, with its lists of strings, on one line."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    words = (word for it in inner for word in (it if isinstance(it, list) else [it]))
    yield " ".join(word for word in words if isinstance(word, str))
    for it in inner:
        yield from _lines(it)
