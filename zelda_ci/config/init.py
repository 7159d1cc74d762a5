"""The files of a new project: configuration, first suite, `.gitignore`; decided first, written together.

Names, descriptions and texts are whatever somebody wrote into the project's files. They are cut to printable words
before anything is made of them, and quoted wherever they stand.
"""

import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from posixpath import relpath
from textwrap import wrap
from typing import Any

from zelda_ci import __version__
from zelda_ci.config import document, schema
from zelda_ci.config.files import lies_in
from zelda_ci.config.schema import CONFIG_FILE, MAX_PROMPTS, REPOSITORY, ProjectConfig, SuiteConfig, keys
from zelda_ci.config.source import plain_value
from zelda_ci.domain.kinds import FOLLOWED, ItemKind
from zelda_ci.domain.manifest import ManifestItem
from zelda_ci.domain.suite import TARGET
from zelda_ci.errors import ConfigError
from zelda_ci.files import globs, untrusted
from zelda_ci.files.atomic import make_folder, replacing, storage_errors
from zelda_ci.imports import one_at_a_time

IGNORE_FILE = ".gitignore"
EXAMPLE = "example"
MAX_QUOTE = 240
MAX_TEXT = 20_000
WORDS = {
    ItemKind.SKILL: "the skill", ItemKind.RULE: "the rule", ItemKind.MEMORY: "the file", ItemKind.AGENT: "the sub-agent"
}  # fmt: skip


def printed(text: str) -> str:
    """The words of a text of somebody else's in one line: nothing in it steers a terminal, a reader or YAML."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


_PLAIN = re.compile(r"[\w./][^\n#:]*")


def scalar(text: str) -> str:
    """A printable line as YAML reads it back, in quotes where they are needed."""
    plain = _PLAIN.fullmatch(text) and text == text.strip() and plain_value(text) == text
    return text if plain else "'{}'".format(text.replace("'", "''"))


def _rendered(template: str, **values: object) -> str:
    with one_at_a_time("jinja2"):
        from jinja2 import Environment, PackageLoader  # noqa: PLC0415 - 30 ms, and few commands write files

    def lines(text: str, mark: str, *, breaks: bool = True) -> str:
        wrapped = wrap(text, 98, break_on_hyphens=breaks, break_long_words=breaks)
        return "".join(f"{mark}{line}\n" for line in wrapped)

    environment = Environment(  # noqa: S701 - what is written is no HTML
        loader=PackageLoader("zelda_ci", "config"), trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    environment.filters |= {
        "comment": lambda text: lines(printed(text), "# ", breaks=False),
        "key": lambda text, key: f"{key}{'' if key.endswith('-') else ':'} {scalar(printed(text))}\n",
        "prompt": lambda text: lines(text, "  "),
        "row": _row,
        "scalar": scalar,
    }
    common = {"schema": schema.address, "repository": REPOSITORY, "version": __version__, "printed": printed}
    return environment.get_template(template).render(common, **values)


def seen_from(folder: str, path: str) -> str:
    """A path from the top of the tree, as it is called in one of its folders."""
    return relpath(path, folder) if folder and path else path


_NO_TEXT = re.compile(
    r"^(```|~~~).*?(^\1|\Z)|<!--.*?(-->|\Z)|^\s*([#|>@]|---|\*\*\*|===).*?$", re.DOTALL | re.MULTILINE
)
_BULLET = re.compile(r"\s*([-*+]|\d{1,3}[.)])\s+(\[[ xX]\]\s+)?")
# "Use when adding a route", "Use proactively after writing code": what a description names as the time for it.
_OCCASION = re.compile(
    r"\b(?:use|invoke|call|trigger)\b[^.!?]*?\b(?:when(?:ever)?|if|for|after|before)\s+"
    r"(?:(?:the\s+)?(?:you|users?|somebody)\s+(?:asks?|wants?|needs?)\s+(?:(?:you|claude)\s+)?(?:to|for)\s+)?([^.!?]+)",
    re.IGNORECASE,
)
_PLAIN_FILE = re.compile(r"[\w@+-][\w./@+-]*")


@dataclass(frozen=True)
class FirstSuite:
    name: str
    about: str | None
    """What it is about, for people; absent for the example, which is about no file of the project."""
    text: str


def subjects(items: Iterable[ManifestItem]) -> list[ManifestItem]:
    """What a first suite can be about, the most telling first."""
    order = [*WORDS]
    usable = [it for it in items if it.kind in WORDS and not (it.problem or it.shadowed or it.denied) and quoted(it)]
    return sorted(usable, key=lambda it: (order.index(it.kind), bool(it.below), not it.is_open, occasion(it) is None))


def occasion(item: ManifestItem) -> str | None:
    """When something is to be called, as its description says; the rest of it is for Claude Code to find."""
    found = _OCCASION.search(printed(item.description or "")[:MAX_TEXT])
    return _cut(found[1].strip(" :;,-\"'")) if found else None


def quoted(item: ManifestItem) -> str | None:
    """A description; of a rule or a CLAUDE.md file the first item of a list, or else the first line of text."""
    words = printed(item.description or "")
    if item.kind in FOLLOWED:
        text = _NO_TEXT.sub("", (item.text or "")[:MAX_TEXT])
        # What ends with a colon goes on in a list or in code.
        lines = [line for line in text.splitlines() if " " in line.strip() and not line.rstrip().endswith(":")]
        line = next(filter(_BULLET.match, lines), next(iter(lines), ""))
        words = printed(_BULLET.sub("", line, count=1).replace("**", ""))
    return _cut(words)


def _cut(words: str) -> str | None:
    # Some languages write no blanks between words.
    cut = words if len(words) <= MAX_QUOTE else re.sub(r" \S{,40}$", "", words[: MAX_QUOTE - 4]) + " ..."
    return cut if " " in words or not words.isascii() else None


def about(item: ManifestItem, folder: str = "") -> str:
    """The thing that a suite is about, in a few printable words, seen from the project's folder."""
    file = printed(seen_from(folder, item.file))
    return f"{WORDS[item.kind]} {file if item.kind in FOLLOWED else f'{printed(item.name)} ({file})'}"


def slug(item: ManifestItem) -> str:
    """A name for the suite that is a good name of a file, too."""
    name = item.name.removesuffix(".md").rpartition("/")[2] if item.kind in FOLLOWED else item.name
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40].strip("-")
    return plain or WORDS[item.kind].rpartition(" ")[2]


def first_suite(item: ManifestItem | None, files: Sequence[str] = (), folder: str = "") -> FirstSuite:
    """The suite about an item, seen from the project's folder; the example where nothing that loads comes of it."""
    if item is not None:
        text = _rendered(
            "first-suite.yaml.j2",
            word=WORDS[item.kind].removeprefix("the "),
            name=printed(item.name),
            file=printed(seen_from(folder, item.file)),
            where=_place(item, files, folder),
            quote=quoted(item) if item.kind in FOLLOWED else occasion(item),
            is_followed=item.kind in FOLLOWED,
            by_person=item.kind not in FOLLOWED and not item.is_open and re.fullmatch(r"[\w:-]+", item.name),
        )
        # The loader refuses, for example, what looks like a credential.
        if document.is_sound(text, SuiteConfig):
            return FirstSuite(slug(item), about(item, folder), text)
    return FirstSuite(EXAMPLE, None, _rendered("first-suite.yaml.j2", word=""))


ROUTED = {ItemKind.SKILL: "skill", ItemKind.AGENT: "agent", ItemKind.COMMAND: "command"}
FOR_NOBODY = ("What is two and two?", "Thank you, that is all for today.")


def routing_suite(items: Iterable[ManifestItem]) -> str | None:
    """A routing suite with two prompts for each thing to call, of its description's words; None without any."""
    usable = (it for it in items if it.kind in ROUTED and it.is_open and not (it.problem or it.shadowed))
    drafts = [(prompt, f"{ROUTED[it.kind]} {printed(it.name)}") for it in usable for prompt in _drafted(it)]
    named = [each for each in drafts if re.fullmatch(TARGET, each[1]) and not any(document.shaped(each[0], ""))]
    prompts = [*named[: MAX_PROMPTS - len(FOR_NOBODY)], *((prompt, "none") for prompt in FOR_NOBODY)]
    return _rendered("routing-suite.yaml.j2", prompts=prompts) if named else None


def _drafted(item: ManifestItem) -> Sequence[str]:
    words = printed(item.description or "")[:MAX_TEXT]
    first, *others = [*filter(_cut, re.split(r"(?<=[.!?;])\s+|(?<=[\u3002\uff01\uff1f])", words))] or [""]
    second = occasion(item) or next(iter(others), f"I need help with this: {first}")
    return [text for text in map(_cut, dict.fromkeys((first, second))) if text and first]


def _place(item: ManifestItem, files: Sequence[str], folder: str) -> str:
    """A file to which a rule applies, the folder of what lies in one, or the whole project."""
    base = f"{item.below or item.base}/" if item.below or item.base else ""
    inside = (file.removeprefix(base) for file in files if item.paths and file.startswith(base))
    wanted = [f"{base}{file}" for file in inside if globs.matches(item.paths, file)]
    named = [seen_from(folder, path) for path in wanted or ([item.below] if item.below else [])]
    return next((f"in {name}" for name in named if _PLAIN_FILE.fullmatch(name)), "in this project")


@dataclass(frozen=True)
class CommandLine:
    """A command as it is to stand in the configuration."""

    key: str
    command: str
    source: str
    """The file that suggests it."""
    remark: str | None = None
    """Why it is left out; absent where it is not."""


def config_text(found: Sequence[str] = (), commands: Sequence[CommandLine] = (), programs: Sequence[str] = ()) -> str:
    """A short configuration that loads: what was found is left away where it could be taken for a credential."""
    has_setup = any(line.key == "setupCommand" and line.remark is None for line in commands)
    folders = programs if has_setup else ()
    text = _rendered("config.yaml.j2", found=found, commands=commands, programs=folders)
    if document.is_sound(text, ProjectConfig):
        return text
    unsaid = "it did not work; `zelda check` says why."
    bare = [replace(line, source="", remark=line.remark and unsaid) for line in commands]
    return _rendered("config.yaml.j2", found=(), commands=bare, programs=folders)


def _row(name: str) -> str:
    """A key of the configuration with its default or an example, and what it means, in short."""
    key = next(key for key in keys(ProjectConfig) if key.dotted == name)
    default: Any = key.field.get_default()
    value, end = ((key.field.examples or [""])[0], " (none)") if default is None else (default, "")
    meaning = re.split(r"[:;.](?:\s|$)", key.description)[0]
    return f"{key.name}: {value if isinstance(value, str) else json.dumps(value)}  # {meaning}{end}"


# What tools of a language write beside the code, which a session's patch and a reader of `git status` need not see.
WRITTEN: Mapping[str, tuple[str, ...]] = {
    "Python": ("__pycache__", ".venv"), "PHP": ("vendor",), "Ruby": ("vendor/bundle",), "Elixir": ("_build", "deps"),
    "Dart": (".dart_tool",), "Swift": (".build",), **dict.fromkeys(("JavaScript", "TypeScript"), ("node_modules",)),
    **dict.fromkeys(("Rust", "Java"), ("target",)), **dict.fromkeys(("C#", "F#"), ("bin", "obj")),
}  # fmt: skip


@dataclass(frozen=True)
class FileDraft:
    """A file to be written; `exists` where something is there that it would replace."""

    path: Path
    file: str
    content: bytes
    exists: bool


def written_beside(languages: Iterable[str], tracked: Sequence[str]) -> Iterator[str]:
    """Folders that tools write and that no repository wants: those that hold tracked files are wanted."""
    folders = dict.fromkeys(folder for language in languages for folder in WRITTEN.get(language, ()))
    return (folder for folder in folders if not any(f"/{folder}/" in f"/{file}" for file in tracked))


def draft(root: Path, file: str, text: str | bytes) -> FileDraft:
    """A file of the project with this text; raises ConfigError where something is in the way."""
    path = root / file
    if not lies_in(path.parent, root):
        raise ConfigError(f"{file} would lie outside the project: its folder is a symbolic link.", code="INIT_FAILED")
    with storage_errors(Path(file)):
        exists = os.path.lexists(path)
        if exists and not untrusted.is_regular(path.lstat()):
            raise ConfigError(
                f"{file} is there already, but it is not a regular file.", hint="Move it away.", code="INIT_FAILED"
            )
    return FileDraft(path, file, text if isinstance(text, bytes) else text.encode(), exists)


def ignored(root: Path, top: Path, wanted: Iterable[str]) -> tuple[FileDraft | None, list[str]]:
    """`.gitignore` with lines for folders that none on the way to the top ignores, and these; no draft without any."""
    empty = draft(root, IGNORE_FILE, b"")
    with storage_errors(Path(IGNORE_FILE)):
        content = untrusted.read(empty.path) if empty.exists else b""
    places = [place for place in (root, *root.parents) if place.is_relative_to(top)]
    missing = [folder for folder in wanted if not any(_ignores(place, root / folder / "x") for place in places)]
    line_break = b"\r\n" if b"\r\n" in content else b"\n"
    separator = line_break if content and not content.endswith(b"\n") else b""
    lines = b"".join(f"{folder}/".encode() + line_break for folder in missing)
    return (replace(empty, content=content + separator + lines) if missing else None), missing


def _ignores(place: Path, file: Path) -> bool:
    lines, name = list[str](), file.relative_to(place).as_posix()
    with suppress(OSError):
        lines = untrusted.read(place / IGNORE_FILE).decode("utf-8", "replace").splitlines()
    found = [pattern.include for pattern in globs.gitignore_patterns(lines) if pattern.match_file(name)]
    return bool(found and found[-1])


def kept_config(root: Path) -> ProjectConfig:
    """What an existing configuration says, as far as it is right."""
    return document.load_document(root / CONFIG_FILE, CONFIG_FILE, ProjectConfig).config


def write(drafts: Iterable[FileDraft]) -> None:
    """Write all drafts. First each goes to a temporary file beside its place, so that a full disk changes nothing."""
    with ExitStack() as written:
        for each in drafts:
            written.enter_context(storage_errors(Path(each.file)))
            make_folder(each.path.parent)
            mode = stat.S_IMODE(each.path.stat().st_mode) if each.exists else None
            file = written.enter_context(replacing(each.path, mode=mode))
            file.write(each.content)
            file.flush()  # where a lack of room shows
