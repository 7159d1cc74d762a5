"""Variants of the tested tree, as commits in repositories of Zelda's own: without units of a change, or a part of it.

Lines of a file are taken back by putting those of the base in their place, so each hunk can be without any other. Where
git fails, for instance for want of room, functions raise `WorkspaceError`.
"""

import os
import posixpath
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate, cycle, groupby, islice, pairwise
from pathlib import Path
from typing import Literal, NamedTuple

from zelda_ci.domain.attribution import ChangeUnit
from zelda_ci.domain.kinds import may_steer
from zelda_ci.domain.numbers import some_of
from zelda_ci.errors import ConfigError
from zelda_ci.imports import one_at_a_time
from zelda_ci.workspace.git import ABSENT, LINK, SUBMODULE, Git, RawChange, borrow_from, create_repository
from zelda_ci.workspace.objects import IMPORT, Objects, commit_stream, put
from zelda_ci.workspace.source import Project

# A line between two changes joins them.
HUNKS = ("diff", "-U0", "--inter-hunk-context=1", "--no-ext-diff", "--no-textconv", "--no-color")
CHANGED = ("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--find-renames", "-l0")
HUNK = re.compile(rb"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)
MADE = "refs/zelda/made"
# Of files, by path, their mode, zeros where one goes, and content or its name.
Entries = dict[str, tuple[str, str | bytes]]
# The folder of a skill: what comes and goes in it does so together.
SKILL_FOLDER = re.compile(r"(?:^|.*/)skills/[^/]+/")


@dataclass(frozen=True)
class Variant:
    """What is changed of the tested tree, and how."""

    name: str
    """In words that follow "the tested files"."""
    edit: Callable[[Git, str], Awaitable[str]]
    """Makes a commit of another, in the repository to which the given git is set; raises `WorkspaceError`."""
    borrow: tuple[Path, ...] = ()


def prepare(folder: Path, git: Git, head: str, *repositories_of: Path) -> Git:
    """Make a repository in a new folder that finds the objects of others, for commits that are made of theirs."""
    create_repository(folder, head)
    borrow_from(folder, *(repository / "objects" for repository in repositories_of))
    return git.within(folder, GIT_DIR=str(folder))


async def vary(project: Project, variant: Variant, folder: Path, git: Git) -> Project:
    """The project as the variant has it; its commit lies in a new repository `folder`."""
    commit = await variant.edit(prepare(folder, git, project.commit, project.objects, *variant.borrow), project.commit)
    before = project.source
    source = before.replace(commit=commit, parent=before.parent or before.commit) if before.commit else before
    return replace(project, source=source, objects=folder, commit=commit)


async def commit_with(git: Git, head: str, files: Entries) -> str:
    """Make a commit like the head, with other files."""
    if not files:
        return head
    async with Objects(git) as objects:
        commit = await objects.commit(head)
        await objects.read(commit.parents)
    parents = [parent for parent in commit.parents if parent not in objects.missing]
    # What goes makes room for what comes: a folder may take the place of a file.
    order = sorted(files.items(), key=lambda file: (file[1][0] != ABSENT, file[0]))
    await git(*IMPORT, stdin=commit_stream(MADE, commit, parents, (put(path, *entry) for path, entry in order)))
    return (await git("rev-parse", MADE)).decode().strip()


class Lines(NamedTuple):
    """Lines of a file of the head, from 0 and without the last, and what the base has in their place."""

    path: str
    mode: str
    content: str
    """Git's name for what the head has in the file."""
    start: int
    end: int
    old: bytes
    new: bytes

    @property
    def numbers(self) -> tuple[int, int]:
        """The first line and the last, counted from 1; where the head has none, the last is the one before."""
        return self.start + 1, self.end


@dataclass(frozen=True)
class Part:
    """A unit, and what is done to take it back."""

    unit: ChangeUnit
    characters: int = 0
    """How many it adds, fewer than none where it removes text."""
    lines: tuple[Lines, ...] = ()
    files: Mapping[str, RawChange] | None = None
    """Files that come, go, or change as a whole."""


@dataclass(frozen=True)
class ChangeUnits:
    """What a head has changed since its base, in parts that can be taken back by themselves."""

    git: Git
    head: str
    parts: tuple[Part, ...]

    async def without(self, reverted: Collection[int]) -> str:
        """Make the commit of the head with parts taken back: always the same one for the same parts."""
        parts = [part for index, part in enumerate(self.parts) if index in reverted]
        files = {path: change for part in parts for path, change in (part.files or {}).items()}
        lines = sorted((it for part in parts for it in part.lines), key=lambda it: (it.path, -it.start))
        entries: Entries = {path: (change.old_mode, change.old_content) for path, change in files.items()}
        for path, edits in groupby(lines, key=lambda it: it.path):
            first, *_ = backwards = [*edits]
            content = _split(await self.git("cat-file", "blob", first.content))
            for edit in backwards:
                content[edit.start : edit.end] = [edit.old]
            entries[path] = first.mode, b"".join(content)
        return await commit_with(self.git, self.head, entries)


async def read_units(git: Git, base: str, head: str, is_felt: Callable[[str], bool | None]) -> ChangeUnits:
    """Read what a head has changed since its base; files that are not felt are one unit together.

    `git` is set to a repository made by `prepare`, and `is_felt` says whether a file, by its path from the top, can
    steer what is tested; None where no session sees it. Submodules stay as the head has them: the commit that the base
    names need not be there. Only Markdown is taken apart: lines of settings and of scripts need each other.
    """
    hunks, code = list[Lines](), dict[str, RawChange]()
    whole, renamed = dict[str, dict[str, RawChange]](), dict[str, list[list[re.Pattern[bytes]]]]()
    for old, path, change in _changes(await git(*CHANGED, base, head)):
        nothing, places = "0" * len(change.content), {path: change}
        if old is not None:
            places = {path: change._replace(old_mode=ABSENT, old_content=nothing)}
            places[old] = change._replace(mode=ABSENT, content=nothing)
        felt = {*map(is_felt, places)}
        if SUBMODULE in (change.old_mode, change.mode) or felt == {None}:
            continue
        is_text = old is None and change.old_mode == change.mode != LINK and path.lower().endswith(".md")
        if True not in felt:
            code |= places
        elif is_text and (found := await _hunks(git, path, change)):
            hunks += found
        else:
            folder = SKILL_FOLDER.match(path)
            key = folder[0] if folder else path
            whole.setdefault(key, {}).update(places)
            if old is not None:
                renamed.setdefault(key, []).append([*_names(old, path)])
    parts = []
    for key, places in whole.items():
        # A hunk that only follows a rename belongs to it.
        own = [it for it in hunks if any(all(map(re.search, pair, (it.old, it.new))) for pair in renamed.get(key, ()))]
        hunks = [it for it in hunks if it not in own]
        sizes = [await _size(git, it.content) - await _size(git, it.old_content) for it in places.values()]
        files = (*places, *(it.path for it in own))
        parts.append(Part(_unit(git, "file", files), sum(sizes) + sum(map(_added, own)), tuple(own), places))
    parts += [Part(_unit(git, "hunk", [it.path], it.numbers), _added(it), (it,)) for it in hunks]
    parts.sort(key=lambda part: (part.unit.files[0], part.unit.lines or (0, 0)))
    if code:
        parts.append(Part(_unit(git, "code", sorted(code)), files=code))
    return ChangeUnits(git, head, tuple(parts))


def _changes(listing: bytes) -> Iterator[tuple[str | None, str, RawChange]]:
    """Of each changed file its old path where it was renamed, its path, and how it changed."""
    fields = iter(os.fsdecode(listing).split("\0")[:-1])
    for about in fields:
        *change, status = about.removeprefix(":").split(" ")
        yield next(fields) if status[0] == "R" else None, next(fields), RawChange(*change)


def _names(old: str, path: str) -> Iterator[re.Pattern[bytes]]:
    """What text that names a renamed file has in it, before and after: the part of the paths that differs, a word."""
    sides = zip(old.split("/"), path.split("/"), strict=False)
    for name in next((pair for pair in sides if pair[0] != pair[1]), (old, path)):
        yield re.compile(rb"(?<![\w-])%b(?![\w-])" % re.escape(os.fsencode(name.removesuffix(".md"))))


async def _hunks(git: Git, path: str, change: RawChange) -> list[Lines]:
    diff = await git(*HUNKS, change.old_content, change.content)
    old, new = [_split(await git("cat-file", "blob", it)) for it in (change.old_content, change.content)]
    found = []
    for hunk in HUNK.finditer(diff):
        (was, had), (start, has) = [(int(hunk[it]), int(hunk[it + 1] or 1)) for it in (1, 3)]
        # Of nothing, git names the line before.
        first, begin = was - (had > 0), start - (has > 0)
        end, texts = begin + has, (b"".join(old[first : first + had]), b"".join(new[begin : begin + has]))
        found.append(Lines(path, change.mode, change.content, begin, end, *texts))
    return found


def _split(content: bytes) -> list[bytes]:
    """Lines with what ends them, which for git is nothing but a line feed."""
    return re.findall(rb"[^\n]*\n|[^\n]+", content)


def _added(lines: Lines) -> int:
    return len(lines.new.decode("utf-8", "replace")) - len(lines.old.decode("utf-8", "replace"))


async def _size(git: Git, content: str) -> int:
    """How many characters a content has; zeros for one that is not there."""
    return len((await git("cat-file", "blob", content)).decode("utf-8", "replace")) if content.strip("0") else 0


def _unit(
    git: Git, kind: Literal["hunk", "file", "code"], files: Iterable[str], lines: tuple[int, int] | None = None
) -> ChangeUnit:
    names = (os.fsencode(path).decode("utf-8", "backslashreplace") for path in dict.fromkeys(files))
    return ChangeUnit(kind=kind, files=tuple(map(git.redact, names)), lines=lines)


# The front matter stays but for what describes: it says when a file is loaded.
FRONT_MATTER = re.compile(r"\A---\r?\n.*?^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
DESCRIPTION = re.compile(r"^((?:description|when_to_use):[ \t]*)(.*(?:\n(?:[ \t].*|\r)?)*)", re.MULTILINE)
LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+")
INERT = "This text has no bearing on what is done here. "


async def without(git: Git, head: str, name: str, folder: str = "") -> tuple[str, str] | None:
    """Take out what has a name or a path, with `:SECTION` a section of it by its heading; None where nothing has.

    Paths count from the project's `folder`, or else from the top. The second commit has text of the same length in its
    place, which says nothing; it is the first one where there was no text.
    """
    async with Objects(git) as objects:
        tree = {file.path: file for file in await objects.files((await objects.commit(head)).tree)}
        (files, heading) = (_named(name, tree, folder), "")
        if not files:
            place, _, heading = name.partition(":")
            files = _named(place, tree, folder) if heading else []
        texts = [path for path in files if path.lower().endswith(".md") and tree[path].mode not in (LINK, SUBMODULE)]
        contents = await objects.read(tree[path].content for path in texts)
    gone, inert = Entries(), Entries()
    for file in (tree[path] for path in files):
        text = _text(contents.get(file.content)) if file.path in texts else None
        front = match.end() if (match := FRONT_MATTER.match(text or "")) else 0
        if not heading:
            gone[file.path] = inert[file.path] = ABSENT, ""
            if text is not None:
                fields = DESCRIPTION.sub(lambda it: it[1] + _filled(it[2]), text[:front])
                inert[file.path] = file.mode, (fields + _filled(text[front:])).encode()
        elif text is not None and (found := _section(text, front, heading)):
            before, section, after = text[: found[0]], text[slice(*found)], text[found[1] :]
            gone[file.path] = file.mode, (before + after).encode()
            inert[file.path] = file.mode, (before + _filled(section) + after).encode()
    return (await commit_with(git, head, gone), await commit_with(git, head, inert)) if gone else None


def _named(name: str, paths: Collection[str], folder: str) -> list[str]:
    """Files of a path, or else of the skill, command, agent or rule of that name, with its plugin as `plugin:name`.

    Raises `ConfigError` where several have the name.
    """
    name = name.rstrip("/")
    at = dict.fromkeys(posixpath.normpath(posixpath.join(it, name)) for it in (folder, "")) if name else ()
    by_path = ([path for path in paths if path == it or path.startswith(f"{it}/")] for it in at)
    *owners, word = map(re.escape, name.split(":"))
    within = "".join(f"(?=(?:.*/)?{owner}/)" for owner in owners)
    own = re.compile(rf"{within}((?:.*/)?(?:skills/{word}(?=/|$)|(?:agents|commands|rules)/(?:.*/)?{word}\.md))")
    found = next(filter(None, by_path), None)
    named = {path: match[1] for path in paths if may_steer(path) and (match := own.match(path))}
    if not found and len(places := sorted({*named.values()})) > 1:
        message = f"--without {name}: {len(places)} parts have this name: {some_of(places, 5)}."
        raise ConfigError(message, hint="Give the path of the one that you mean.", code="UNKNOWN_PART")
    return found or [*named]


def _text(content: bytes | None) -> str | None:
    try:
        return None if content is None or b"\0" in content else content.decode()
    except UnicodeDecodeError:
        return None


def _section(text: str, begin: int, heading: str) -> tuple[int, int] | None:
    """Where the section with a heading begins, after the front matter, and ends: at the next of its level or above."""
    with one_at_a_time("markdown_it"):
        from markdown_it import MarkdownIt  # noqa: PLC0415 - only sections need it
    places = [*accumulate(map(len, LINE.findall(text[begin:])), initial=begin)]
    marks = pairwise(MarkdownIt("commonmark").disable("inline").parse(text[begin:]))
    found = [
        (places[it.map[0]], it.tag, words.content)
        for it, words in marks
        if it.type == "heading_open" and it.map and not it.level
    ]
    for number, (start, level, words) in enumerate(found, 1):
        if words.casefold() == heading.strip().casefold():
            return start, next((place for place, tag, _ in found[number:] if tag <= level), len(text))
    return None


def _filled(text: str) -> str:
    """Text that says nothing, in lines of the same lengths; what YAML folds stays indented."""
    inert = cycle(INERT)
    return re.sub(r"\S[^\r\n]*", lambda line: "".join(islice(inert, len(line[0]))), text)
