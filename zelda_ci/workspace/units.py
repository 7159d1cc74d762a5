"""The units of a change in git, and commits without some of them, made in a repository of Zelda's own.

Lines of a file are taken back by putting those of the base in their place, so each hunk can be without any other.
"""

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import cycle, groupby, islice
from pathlib import Path
from typing import Literal

from zelda_ci.domain.attribution import ChangeUnit
from zelda_ci.domain.kinds import may_steer
from zelda_ci.workspace import history
from zelda_ci.workspace.git import ABSENT, LINK, SUBMODULE, Git, RawChange, borrow_from, create_repository
from zelda_ci.workspace.objects import Objects

# A line between two changes joins them.
HUNKS = ("diff", "-U0", "--inter-hunk-context=1", "--no-ext-diff", "--no-textconv", "--no-color")
CHANGED = ("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--find-renames", "-l0")
HUNK = re.compile(rb"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)
MADE = b"refs/zelda/made"
# The folder of a skill: what comes and goes in it does so together.
SKILL_FOLDER = re.compile(r"(?:^|.*/)skills/[^/]+/")


@dataclass(frozen=True)
class Lines:
    """Lines of a file of the head, from 0 and without the last, and what the base has in their place."""

    path: str
    mode: str
    content: str
    """Git's name for what the head has in the file."""
    start: int
    end: int
    old: bytes


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
        """Make the commit of the head with parts taken back: always the same one for the same parts.

        Raises:
            WorkspaceError: Git failed, for instance for want of room.
        """
        parts = [part for index, part in enumerate(self.parts) if index in reverted]
        files = {path: change for part in parts for path, change in (part.files or {}).items()}
        lines = sorted((it for part in parts for it in part.lines), key=lambda it: it.path)
        texts = dict[str, tuple[str, bytes]]()
        for path, edits in groupby(lines, key=lambda it: it.path):
            *_, last = backwards = sorted(edits, key=lambda it: -it.start)
            content = _split(await self.git("cat-file", "blob", last.content))
            for edit in backwards:
                content[edit.start : edit.end] = [edit.old]
            texts[path] = last.mode, b"".join(content)
        old = {path: (change.old_mode, change.old_content) for path, change in files.items()}
        return await commit_with(self.git, self.head, {**old, **texts})


def prepare(folder: Path, git: Git, head: str, *repositories_of: Path) -> Git:
    """Make a repository in a new folder that finds the objects of others, for commits that are made of theirs."""
    create_repository(folder, head)
    borrow_from(folder, *(repository / "objects" for repository in repositories_of))
    return git.within(folder, GIT_DIR=str(folder))


async def commit_with(git: Git, head: str, files: Mapping[str, tuple[str, str | bytes]]) -> str:
    """Make a commit like the head, with other files: of each its mode, zeros where it goes, and content or its name.

    Raises:
        WorkspaceError: Git failed, for instance for want of room.
    """
    if not files:
        return head
    async with Objects(git) as objects:
        commit = await objects.commit(head)
        await objects.read(commit.parents)
    # What goes makes room for what comes: a folder may take the place of a file.
    stream = [b"commit %b\n%bdata %d\n%b\n" % (MADE, commit.head, len(commit.message), commit.message)]
    parents = [parent for parent in commit.parents if parent not in objects.missing]
    stream += [b"%b %b\n" % (b"merge" if number else b"from", it.encode()) for number, it in enumerate(parents)]
    stream += [b'M 040000 %b ""\n' % commit.tree.encode()]
    stream += [history.remove(path) for path, (mode, _) in sorted(files.items()) if mode == ABSENT]
    for path, (mode, content) in sorted(files.items()):
        if isinstance(content, bytes):
            stream.append(history.insert(mode, content, path))
        elif mode != ABSENT:
            stream.append(history.modify(mode, content, path))
    await git(*history.IMPORT, stdin=b"reset %b\n" % MADE + b"".join(stream))
    return (await git("rev-parse", MADE.decode())).decode().strip()


async def read_units(git: Git, base: str, head: str, is_felt: Callable[[str], bool]) -> ChangeUnits:
    """Read what a head has changed since its base; files that are not felt are one unit together.

    Submodules stay as the head has them: the commit that the base names need not be there.

    Args:
        git: Set to a repository made by `prepare`.
        base: A commit.
        head: Another one.
        is_felt: Whether a file, by its path from the top, can steer what is tested.

    Raises:
        WorkspaceError: Git failed.
    """
    hunks, whole, code = list[Lines](), dict[str, dict[str, RawChange]](), dict[str, RawChange]()
    counts, renamed = dict[Lines, tuple[tuple[int, int], bytes]](), dict[str, list[tuple[bytes, bytes]]]()
    for old, path, change in _changes(await git(*CHANGED, base, head)):
        places = {path: change} if old is None else _renamed(old, path, change)
        if SUBMODULE in (change.old_mode, change.mode):
            continue
        if not any(map(is_felt, places)):
            code |= places
        elif old is None and change.old_mode == change.mode != LINK and (found := await _hunks(git, path, change)):
            counts |= found
            hunks += found
        else:
            folder = SKILL_FOLDER.match(path)
            key = folder[0] if folder else path
            whole[key] = whole.get(key, {}) | places
            if old is not None:
                renamed.setdefault(key, []).append(_names(old, path))
    parts = []
    for key, places in whole.items():
        # A hunk that only follows a rename belongs to it.
        own = [it for it in hunks if any(a in it.old and b in counts[it][1] for a, b in renamed.get(key, ()))]
        hunks = [it for it in hunks if it not in own]
        files = (*places, *(it.path for it in own))
        sizes = [await _size(git, it.content) - await _size(git, it.old_content) for it in places.values()]
        added = sum(sizes) + sum(_length(counts[it][1]) - _length(it.old) for it in own)
        parts.append(Part(_unit(git, "file", files), added, tuple(own), places))
    for it in hunks:
        lines, new = counts[it]
        parts.append(Part(_unit(git, "hunk", [it.path], lines), _length(new) - _length(it.old), (it,)))
    parts.sort(key=lambda part: (part.unit.files[0], part.unit.lines or (0, 0)))
    if code:
        parts.append(Part(_unit(git, "code", sorted(code)), files=code))
    return ChangeUnits(git, head, tuple(parts))


def _changes(listing: bytes) -> Iterator[tuple[str | None, str, RawChange]]:
    """Of each changed file its old path where it was renamed, its path, and how it changed."""
    fields = iter(os.fsdecode(listing).split("\0")[:-1])
    for about in fields:
        old_mode, mode, old_content, content, status = about.removeprefix(":").split(" ")
        old = next(fields) if status[0] == "R" else None
        yield old, next(fields), RawChange(old_mode, mode, old_content, content)


def _renamed(old: str, path: str, change: RawChange) -> dict[str, RawChange]:
    nothing = "0" * len(change.content)
    return {
        path: change._replace(old_mode=ABSENT, old_content=nothing),
        old: change._replace(mode=ABSENT, content=nothing),
    }


def _names(old: str, path: str) -> tuple[bytes, bytes]:
    """What text that names a renamed file has in it, before and after: the part of the paths that differs."""
    sides = zip(old.split("/"), path.split("/"), strict=False)
    before, after = next((pair for pair in sides if pair[0] != pair[1]), (old, path))
    return os.fsencode(before.removesuffix(".md")), os.fsencode(after.removesuffix(".md"))


async def _hunks(git: Git, path: str, change: RawChange) -> dict[Lines, tuple[tuple[int, int], bytes]]:
    """The hunks of a text, each with its lines in the head, from 1 to the last, and what they say."""
    diff = await git(*HUNKS, change.old_content, change.content)
    old, new = [_split(await git("cat-file", "blob", it)) for it in (change.old_content, change.content)]
    found = {}
    for hunk in HUNK.finditer(diff):
        (was, had), (start, has) = [(int(hunk[it]), int(hunk[it + 1] or 1)) for it in (1, 3)]
        # Of nothing, git names the line before.
        first, begin = was - (had > 0), start - (has > 0)
        lines = Lines(path, change.mode, change.content, begin, begin + has, b"".join(old[first : first + had]))
        found[lines] = (max(start, 1), max(start + has - 1, start, 1)), b"".join(new[begin : begin + has])
    return found


def _split(content: bytes) -> list[bytes]:
    """Lines with what ends them, which for git is nothing but a line feed."""
    return re.findall(rb"[^\n]*\n|[^\n]+", content)


def _length(text: bytes) -> int:
    return len(text.decode("utf-8", "replace"))


async def _size(git: Git, content: str) -> int:
    return 0 if not content.strip("0") else _length(await git("cat-file", "blob", content))


def _unit(
    git: Git, kind: Literal["hunk", "file", "code"], files: Iterable[str], lines: tuple[int, int] | None = None
) -> ChangeUnit:
    names = (os.fsencode(path).decode("utf-8", "backslashreplace") for path in dict.fromkeys(files))
    return ChangeUnit(kind=kind, files=tuple(map(git.redact, names)), lines=lines)


# The front matter stays but for what describes: it says when a file is loaded.
FRONT_MATTER = re.compile(r"\A---\r?\n.*?^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
DESCRIPTION = re.compile(r"^(description:[ \t]*)(.*(?:\n[ \t]+.*)*)", re.MULTILINE)
HEADING = re.compile(r"^ {0,3}(#{1,6})[ \t]+(.*?)[ \t#]*$")
FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
INERT = "This text has no bearing on what is done here. "


@dataclass(frozen=True)
class Removed:
    """A skill, rule, agent, file or section that is taken out of a head: two commits."""

    files: tuple[str, ...]
    gone: str
    inert: str
    """With text of the same length in its place, which says nothing."""


async def without(git: Git, head: str, name: str) -> Removed | None:
    """Take out what has a name or a path, with `:SECTION` a section of it by its heading; nothing where there is none.

    Raises:
        WorkspaceError: Git failed.
    """
    async with Objects(git) as objects:
        tree = {file.path: file for file in await objects.files((await objects.commit(head)).tree)}
        (files, heading) = (_named(name, tree), "")
        if not files:
            place, _, heading = name.partition(":")
            files = [path for path in _named(place, tree) if heading and path.lower().endswith(".md")]
        contents = await objects.read(tree[path].content for path in files if tree[path].mode not in (LINK, SUBMODULE))
    gone, inert = dict[str, tuple[str, str | bytes]](), dict[str, tuple[str, str | bytes]]()
    for file in (tree[path] for path in files):
        text = _text(contents.get(file.content))
        if not heading:
            gone[file.path] = ABSENT, "0" * len(file.content)
            if text is not None:
                inert[file.path] = file.mode, _without_meaning(text).encode()
        elif text is not None and (found := _section(text, heading)):
            before, section, after = text[: found[0]], text[slice(*found)], text[found[1] :]
            gone[file.path] = file.mode, (before + after).encode()
            inert[file.path] = file.mode, (before + _filled(section) + after).encode()
    if not gone:
        return None
    return Removed(tuple(gone), await commit_with(git, head, gone), await commit_with(git, head, inert))


def _named(name: str, paths: Iterable[str]) -> list[str]:
    """Files of a path, or else of a skill, a command, an agent or a rule of that name."""
    name = name.removeprefix("./").rstrip("/")
    by_path = [path for path in paths if path == name or path.startswith(f"{name}/")]
    own = re.compile(
        rf"(?:.*/)?(?:skills/{re.escape(name)}/.+|(?:agents|commands|rules)/(?:.*/)?{re.escape(name)}\.md)"
    )
    return by_path or [path for path in paths if may_steer(path) and own.fullmatch(path)]


def _text(content: bytes | None) -> str | None:
    try:
        return None if content is None or b"\0" in content else content.decode()
    except UnicodeDecodeError:
        return None


def _section(text: str, heading: str) -> tuple[int, int] | None:
    """Where the section with a heading begins and ends: at the next one of its level or above."""
    start, level, fence, place = -1, 0, "", 0
    for line in text.splitlines(keepends=True):
        mark = FENCE.match(line)
        if mark:
            fence = "" if fence and mark[1].startswith(fence) else fence or mark[1]
        elif not fence and (found := HEADING.match(line.rstrip("\r\n"))):
            if start >= 0 and len(found[1]) <= level:
                return start, place
            if start < 0 and found[2].casefold() == heading.strip().casefold():
                start, level = place, len(found[1])
        place += len(line)
    return (start, place) if start >= 0 else None


def _without_meaning(text: str) -> str:
    """A file that is loaded and offered as before, and says nothing."""
    front = FRONT_MATTER.match(text)
    end = front.end() if front else 0
    return DESCRIPTION.sub(lambda it: it[1] + _filled(it[2]), text[:end]) + _filled(text[end:])


def _filled(text: str) -> str:
    """Text that says nothing, in lines of the same lengths."""
    inert = cycle(INERT)
    return re.sub(r"[^\r\n]+", lambda line: "".join(islice(inert, len(line[0]))), text)
