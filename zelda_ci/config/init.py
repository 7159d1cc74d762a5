"""The files of a new project: configuration, first suite, `.gitignore`; decided first, written together.

Names, descriptions and texts are whatever somebody wrote into the project's files. They are cut to printable words
before anything is made of them, and quoted wherever they stand.
"""

import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from importlib.resources import files as packaged
from pathlib import Path
from posixpath import relpath
from textwrap import wrap
from typing import Any

from zelda_ci import __version__
from zelda_ci.config import document, schema
from zelda_ci.config.document import lies_in
from zelda_ci.config.messages import Rejected
from zelda_ci.config.schema import CONFIG_FILE, REPOSITORY, ConfigKey, ProjectConfig, SuiteConfig, keys
from zelda_ci.config.source import plain_value
from zelda_ci.domain import globs
from zelda_ci.domain.kinds import FOLLOWED, ItemKind
from zelda_ci.domain.manifest import ManifestItem
from zelda_ci.errors import ConfigError
from zelda_ci.files import ownership, untrusted
from zelda_ci.files.atomic import replacing, sync

IGNORE_FILE = ".gitignore"
EXAMPLE = "example"
WIDTH = 100
MAX_QUOTE = 240
MAX_TEXT = 20_000
MAX_SLUG = 40
WORDS = {
    ItemKind.SKILL: "the skill",
    ItemKind.RULE: "the rule",
    ItemKind.MEMORY: "the file",
    ItemKind.AGENT: "the sub-agent",
}


def printed(text: str) -> str:
    """The words of a text of somebody else's in one line: nothing in it steers a terminal, a reader or YAML."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


_PLAIN = re.compile(r"[\w./][^\n#:]*")


def scalar(text: str) -> str:
    """A printable line as YAML reads it back, in quotes where they are needed."""
    plain = _PLAIN.fullmatch(text) and text == text.strip() and plain_value(text) == text
    return text if plain else "'{}'".format(text.replace("'", "''"))


def _comment(text: str) -> Iterator[str]:
    return (f"# {line}" for line in wrap(text, WIDTH - 2, break_on_hyphens=False, break_long_words=False))


def seen_from(folder: str, path: str) -> str:
    """A path from the top of the tree, as it is called in one of its folders."""
    return relpath(path, folder) if folder and path else path


# --- the first suite ---------------------------------------------------------------------------------------------

# What the tasks of a language are about, and what refuses a wrong input there.
LANGUAGES: Mapping[str, tuple[str, str]] = {
    "JavaScript": ("exported function", "error"),
    "TypeScript": ("exported function", "error"),
    "Go": ("exported function", "error"),
    "Rust": ("pub function", "Err"),
    "Elixir": ("public function", "error tuple"),
    **dict.fromkeys(("Java", "C#", "PHP", "Ruby"), ("public method", "exception")),
}
ANY_LANGUAGE = ("public function", "exception")
ALONE = "Choose yourself, and do not ask back. Run the project's tests when you are done, if it has any."
COVER = (
    "Find one {function} of this project that no test covers yet, and write tests for it: the ordinary case, one edge "
    "case and one wrong input. Follow the conventions of the tests that are there, and run them. Do not change the "
    "{function} itself; if you find a bug in it, describe it instead of fixing it."
)
COVERED = (
    "At least three new tests call a {function} that no test called before.",
    "Every new test asserts on a result or an {error}, not only that nothing was raised.",
    "New tests stand where the project's other tests stand, and are named like them.",
    "No file other than tests was changed.",
    "After the last change the project's own tests were run, and they passed.",
)
REFUSE = (
    "Find one {function} {where} that accepts a wrong input, such as an empty or a negative one. Let it refuse that "
    "input with an {error} that says what is wrong, and test a right and a wrong input, with all that belongs to such "
    f"a change here. {ALONE}"
)
REFUSED = (
    "A {function} that was there before refuses an input that it accepted before.",
    "A new test asserts that the wrong input is refused.",
)
OCCASION = (
    f"Do one small piece of work {{where}}, with all that belongs to it here. The occasion: {{occasion}}. {ALONE}"
)
CALLED = "/{name} Do it once, in the smallest place {where} where it makes sense."
DONE = ("At least one file was changed or added.", "Every changed file has to do with the task.")
UNSAID = "# It does not name what it should use, or keep to: whether Claude Code finds that out is what is tested."
DRAWN = (
    "A first suite, drawn from {file}. Zelda knows of your project what stands there, and no more: make the prompt a "
    "task of yours, and the criteria what you would look at. `zelda validate` checks it without spending anything."
)
_OCCASION = re.compile(
    r"\b(?:use|invoke|call|trigger)\b[^.!?]*?\b(?:when(?:ever)?|if|for)\s+"
    r"(?:(?:the\s+)?(?:you|users?|somebody)\s+(?:asks?|wants?|needs?)\s+(?:(?:you|claude)\s+)?(?:to|for)\s+)?"
    r"(?P<what>[^.!?]+)",
    re.IGNORECASE,
)
_NO_TEXT = re.compile(
    r"^(```|~~~).*?(^\1|\Z)|<!--.*?(-->|\Z)|^\s*([#|>@]|---|\*\*\*|===).*?$", re.DOTALL | re.MULTILINE
)
_BULLET = re.compile(r"^\s*([-*+]|\d{1,3}[.)])\s+(\[[ xX]\]\s+)?")
_ORDER = re.compile(
    r"\b(always|never|must|should|do not|don't)\b"
    r"|^(use|prefer|run|write|add|keep|ensure|make|put|follow|include|update|create|validate|avoid)\b",
    re.IGNORECASE,
)
_PLAIN_FILE = re.compile(r"[\w@+-][\w./@+-]*")


@dataclass(frozen=True)
class FirstSuite:
    """A suite that is to be written."""

    name: str
    about: str | None
    """What it is about, for people; absent for the example, which is about no file of the project."""
    text: str


@dataclass(frozen=True)
class ProjectFacts:
    """What a suite is written for."""

    files: Sequence[str] = ()
    """The project's, from the top of the tree."""
    folder: str = ""
    """The project's, from which all paths count; a session works there."""
    language: str = ""


def subjects(items: Iterable[ManifestItem]) -> list[ManifestItem]:
    """What a first suite can be about, the most telling first: what says when to use it, or what to do."""
    order = [*WORDS]
    told = [
        item
        for item in items
        if item.kind in WORDS and not (item.problem or item.shadowed or item.denied) and told_by(item)
    ]
    return sorted(told, key=lambda item: (order.index(item.kind), bool(item.below), not item.is_open))


def told_by(item: ManifestItem) -> str | None:
    """The occasion that a description names, or the first sentence of a text that says what to do."""
    if item.kind not in FOLLOWED:
        found = _OCCASION.search(printed(item.description or "")[:MAX_TEXT])
        what = found["what"].strip(" :;,-\"'") if found else ""
        return _cut(what) if " " in what else None
    for line in _NO_TEXT.sub("", (item.text or "")[:MAX_TEXT]).splitlines():
        for said in re.split(r"(?<=[.!?])\s+", printed(_BULLET.sub("", line).replace("**", ""))):
            # What ends with a colon goes on in a list or in code.
            if " " in said and not said.endswith(":") and _ORDER.search(said):
                return _cut(said)
    return None


def _cut(words: str) -> str:
    return words if len(words) <= MAX_QUOTE else f"{words[: MAX_QUOTE - 4].rpartition(' ')[0] or words[:MAX_QUOTE]} ..."


def about(item: ManifestItem, folder: str = "") -> str:
    """The thing that a suite is about, in a few printable words, seen from the project's folder."""
    file = printed(seen_from(folder, item.file))
    return f"{WORDS[item.kind]} {file if item.kind in FOLLOWED else f'{printed(item.name)} ({file})'}"


def slug(item: ManifestItem) -> str:
    """A name for the suite that is a good name of a file, too."""
    name = item.name.removesuffix(".md").rpartition("/")[2] if item.kind in FOLLOWED else item.name
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:MAX_SLUG].strip("-")
    return plain or WORDS[item.kind].rpartition(" ")[2]


def first_suite(item: ManifestItem | None, facts: ProjectFacts) -> FirstSuite:
    """The suite about an item; the example where there is none, or where nothing that loads comes of it."""
    if item is not None:
        text = _about_an_item(item, facts)
        # The loader refuses, for example, what looks like a credential.
        if document.is_sound(text, SuiteConfig):
            return FirstSuite(slug(item), about(item, facts.folder), text)
    intro = (
        "A suite: one task for Claude Code, and what must be true of the result. Every zelda/test-*.yaml is one, "
        "called after its file. `zelda validate` checks it without spending anything, `zelda run` runs it: in a "
        "private copy of your files, never in your own."
    )
    description = "New tests follow the project's conventions."
    return FirstSuite(EXAMPLE, None, _filled(intro, description, "", COVER, COVERED, facts))


def _about_an_item(item: ManifestItem, facts: ProjectFacts) -> str:
    file, name, told = printed(seen_from(facts.folder, item.file)), printed(item.name), told_by(item)
    where = _place(item, facts)
    word = WORDS[item.kind].removeprefix("the ")
    if item.kind in FOLLOWED:
        kept = (f'All changes keep to this sentence of {file}: "{told}"',) if told else ()
        prompt, criteria = REFUSE, (*REFUSED, *kept)
        description = f"Claude Code keeps to {file}."
    else:
        before = " before the first file was changed" * (item.kind is ItemKind.SKILL)
        criteria = (f"The {word} {name} was called{before}.", *DONE)
        description = f"The {word} {name} is used where it is needed."
        by_people = not item.is_open and re.fullmatch(r"[\w:-]+", item.name)
        prompt = CALLED if by_people else OCCASION if told else REFUSE
    more = {"where": where, "name": name, "occasion": told or ""}
    unsaid = UNSAID if prompt is not CALLED else "# Only a person can call this skill, so the prompt calls it."
    if prompt is REFUSE and item.kind not in FOLLOWED:
        unsaid = f"# The description of the {word} does not say when to use it: write a task for which it is needed."
    return _filled(DRAWN.format(file=file), description, unsaid, prompt, criteria, facts, **more)


def _filled(
    intro: str, description: str, unsaid: str, prompt: str, criteria: Sequence[str], facts: ProjectFacts, **more: str
) -> str:
    function, error = LANGUAGES.get(facts.language, ANY_LANGUAGE)
    task = prompt.format(function=function, error=error, **more)
    seen = [each.replace("{function}", function).replace("{error}", error) for each in criteria]
    values = {
        "schema": schema.address("zelda.suite.schema.json"),
        "about": "\n".join(_comment(intro)),
        "description": scalar(description),
        "unsaid": unsaid,
        "prompt": "\n".join(f"  {line}" for line in wrap(task, WIDTH - 2)),
        "criteria": "\n".join(f"  - {scalar(each)}" for each in seen),
    }
    text = packaged("zelda_ci.config").joinpath("first-suite.yaml").read_text("utf-8")
    return re.sub(r"\{(\w+)\}", lambda slot: values[slot[1]], text).replace("\n\nprompt:", "\nprompt:")


def _place(item: ManifestItem, facts: ProjectFacts) -> str:
    """A file to which a rule applies, the folder of what lies in one, or the whole project."""
    base = f"{item.below or item.base}/" if item.below or item.base else ""
    inside = (file.removeprefix(base) for file in facts.files if item.paths and file.startswith(base))
    wanted = [f"{base}{file}" for file in inside if globs.matches(item.paths, file)]
    named = [seen_from(facts.folder, path) for path in wanted or ([item.below] if item.below else [])]
    return next((f"in {name}" for name in named if _PLAIN_FILE.fullmatch(name)), "in this project")


# --- the configuration -------------------------------------------------------------------------------------------

DOCUMENTATION = f"https://github.com/{REPOSITORY}/blob/v{__version__}/docs/configuration.md"
_HEAD = f"""\
What all suites of this project share; a suite overrides single keys. Here stands only what differs from the defaults.
All keys: {DOCUMENTATION}
"""
# What people change first; the rest is in the reference.
_SHOWN = ("trials", "judgeModel", "execution.model", "execution.maxTurns", "execution.maxCostUsd", "coverageThreshold")
_COMMANDS = ("setupCommand", "buildCommand", "testCommand")


@dataclass(frozen=True)
class CommandLine:
    """A command as it is to stand in the configuration."""

    key: str
    command: str
    source: str
    """The file that suggests it."""
    remark: str | None = None
    """Why it is left out; absent where it is not."""
    detail: str | None = None
    """The line that says it best, of what it printed; not for the file, since it may name places of this machine."""


def config_text(found: Sequence[str] = (), commands: Sequence[CommandLine] = (), programs: Sequence[str] = ()) -> str:
    """A short configuration that loads: what was found is left away where it could be taken for a credential.

    Args:
        found: What the project is, in sentences.
        commands: Those that its files suggest.
        programs: Folders in which the setup command, where it is not left out, installs programs.
    """
    has_setup = any(line.key == "setupCommand" and line.remark is None for line in commands)
    folders = programs if has_setup else ()
    text = "".join(f"{line}\n" for line in _config_lines(found, commands, folders))
    if document.is_sound(text, ProjectConfig):
        return text
    unsaid = "it did not work; `zelda check` says why."
    bare = [replace(line, source="", remark=line.remark and unsaid) for line in commands]
    return "".join(f"{line}\n" for line in _config_lines((), bare, folders))


def _config_lines(found: Sequence[str], commands: Sequence[CommandLine], programs: Sequence[str]) -> Iterator[str]:
    yield f"# yaml-language-server: $schema={schema.address('zelda.config.schema.json')}"
    yield "#"
    for text in (*_HEAD.splitlines(), *map(printed, found)):
        yield from _comment(text)
    yield ""
    for line in commands:
        yield from _command(line)
    every = {key.dotted: key for key in keys(ProjectConfig)}
    for name in () if commands else _COMMANDS:
        yield f"# {_line(every[name])}"
    yield ""
    yield from _comment("Often changed, here with their defaults; take away the number sign.")
    shown = [every[name] for name in _SHOWN]
    yield from (f"# {_line(key)}" for key in shown if len(key.path) == 1)
    # Keys of a group may be given once, so they stand where the group does.
    yield "execution:" if programs else "# execution:"
    if programs:
        yield f"  path: [{', '.join(programs)}]  # where setup installs programs: session and commands find them"
    yield from (f"{'  # ' if programs else '#   '}{_line(key)}" for key in shown if len(key.path) > 1)


def _line(key: ConfigKey) -> str:
    """The key with its default or an example, and what it means, in short."""
    default: Any = key.field.get_default()
    value = (key.field.examples or [""])[0] if default is None else default
    meaning = re.split(r"[:;.](?:\s|$)", key.field.description or "")[0]
    shown = value if isinstance(value, str) else json.dumps(value)
    return f"{key.name}: {shown}  # {meaning}{' (none)' if default is None else ''}"


def _command(line: CommandLine) -> Iterator[str]:
    key = f"{line.key}: {scalar(line.command)}"
    source = f"  # {printed(line.source)}" if line.source else ""
    if line.remark is None:
        yield f"{key}{source}"
        return
    yield from _comment(f"Left out: {printed(line.remark)}")
    yield f"# {key}{source}"
    if line.key == "setupCommand":
        yield "setupCommand: []  # no setup, whatever a lock file suggests"


# --- the files ---------------------------------------------------------------------------------------------------

# What tools of a language write beside the code, which a session's patch and a reader of `git status` need not see.
WRITTEN: Mapping[str, tuple[str, ...]] = {
    "Python": ("__pycache__", ".venv"),
    "JavaScript": ("node_modules",),
    "TypeScript": ("node_modules",),
    "Rust": ("target",),
    "Java": ("target",),
    "PHP": ("vendor",),
    "Ruby": ("vendor/bundle",),
    "Elixir": ("_build", "deps"),
    "Dart": (".dart_tool",),
    "Swift": (".build",),
    "C#": ("bin", "obj"),
    "F#": ("bin", "obj"),
}


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
    """A file of the project with this text.

    Raises:
        ConfigError: Something is in the way.
    """
    path = root / file
    if not lies_in(path.parent, root):
        raise ConfigError(f"{file} would lie outside the project: its folder is a symbolic link.", code="INIT_FAILED")
    with _explained(file):
        exists = os.path.lexists(path)
        if exists and not untrusted.is_regular(path.lstat()):
            raise ConfigError(
                f"{file} is there already, but it is not a regular file.", hint="Move it away.", code="INIT_FAILED"
            )
    return FileDraft(path, file, text if isinstance(text, bytes) else text.encode(), exists)


def ignored(root: Path, top: Path, wanted: Iterable[str]) -> tuple[FileDraft | None, list[str]]:
    """`.gitignore` with lines for folders that it does not ignore yet, and these folders; no draft where it has all.

    Args:
        root: The project.
        top: Of its repository: what a `.gitignore` on the way says holds, too.
        wanted: The folders.
    """
    empty = draft(root, IGNORE_FILE, b"")
    with _explained(IGNORE_FILE):
        content = untrusted.read(empty.path) if empty.exists else b""
    places = [place for place in (root, *root.parents) if place.is_relative_to(top)]
    missing = [
        folder
        for folder in wanted
        if not any(_ignores(place, (root / folder / "x").relative_to(place).as_posix()) for place in places)
    ]
    line_break = b"\r\n" if b"\r\n" in content else b"\n"
    separator = line_break if content and not content.endswith(b"\n") else b""
    lines = b"".join(f"{folder}/".encode() + line_break for folder in missing)
    return (replace(empty, content=content + separator + lines) if missing else None), missing


def _ignores(place: Path, file: str) -> bool:
    try:
        lines = untrusted.read(place / IGNORE_FILE).decode("utf-8", "replace").splitlines()
    except OSError:
        return False
    found = [pattern.include for pattern in globs.gitignore_patterns(lines) if pattern.match_file(file)]
    return bool(found and found[-1])


def kept_config(root: Path) -> ProjectConfig:
    """What an existing configuration says, as far as it is right."""
    try:
        return document.load_document(root / CONFIG_FILE, CONFIG_FILE, ProjectConfig).config
    except Rejected:
        return ProjectConfig()


def write(drafts: Iterable[FileDraft]) -> None:
    """Write all drafts. First each goes to a temporary file beside its place, so that a full disk changes nothing.

    Raises:
        ConfigError: a file cannot be written.
    """
    with ExitStack() as written:
        for each in drafts:
            written.enter_context(_explained(each.file))
            written.enter_context(_folder(each.path.parent))
            mode = stat.S_IMODE(each.path.stat().st_mode) if each.exists else None
            file = written.enter_context(replacing(each.path, mode=mode))
            file.write(each.content)
            sync(file)


@contextmanager
def _folder(folder: Path) -> Iterator[None]:
    """A folder, made where it is missing, and removed again where that turns out to be for nothing."""
    is_new = not folder.exists()
    ownership.make_folder(folder)
    try:
        yield
    except BaseException:
        with suppress(OSError):
            if is_new:
                folder.rmdir()
        raise


@contextmanager
def _explained(file: str) -> Iterator[None]:
    """Turn what the system says into a sentence about the file."""
    try:
        yield
    except OSError as exc:
        raise ConfigError(
            f"{file} cannot be written: {exc.strerror or exc}.",
            hint="Check that the folder exists, is yours and has room.",
            code="INIT_FAILED",
        ) from exc
