"""What differs between two commits, as far as it says which suites may feel it: read by git, nothing is checked out."""

import json
import os
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from zelda_ci.compare.impact import (
    CLAUDE,
    SKILL_FILE,
    ChangeSet,
    FileChange,
    FileText,
    ProjectFiles,
    may_steer,
    part_of,
)
from zelda_ci.domain.fingerprint import SteeringFile, TreeFile
from zelda_ci.execution.manifest.documents import MarkdownDocument, parse
from zelda_ci.execution.manifest.scan import mentioned
from zelda_ci.execution.manifest.tree import MAX_FILE_BYTES, MAX_LINKS
from zelda_ci.workspace.git import Git

LINK, SUBMODULE = "120000", "160000"
MAX_IMPORT_DEPTH = 5
# A repository of skills may have thousands; what all of them draw in is no longer looked for then.
MAX_STEERING_FILES = 5_000
MAX_BYTES = 64_000_000

PLUGIN_FILE = re.compile(r"(?:(.*)/)?\.claude-plugin/[^/]+")
PLUGIN_PARTS = ("skills", "agents", "commands", "hooks", "output-styles", "hooks.json", ".mcp.json", ".lsp.json")


PROGRAM_ENDINGS = frozenset({".py", ".js", ".mjs", ".cjs", ".ts", ".mts", ".sh", ".bash", ".rb", ".pl", ".php"})
# What the files say that these programs run.
RUNNERS = {
    **dict.fromkeys(("npm", "npx", "pnpm", "yarn", "bun", "bunx"), ("package.json",)),
    **dict.fromkeys(("uv", "uvx", "poetry", "pdm", "hatch"), ("pyproject.toml",)),
    "make": ("Makefile", "makefile", "GNUmakefile"),
    "just": ("justfile", "Justfile", ".justfile"),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
    "docker": ("Dockerfile", "docker-compose.yml", "compose.yaml", "compose.yml"),
}


class Blob(NamedTuple):
    """A file of a tree, by git's names for mode and content."""

    mode: str
    name: str


async def read_changes(git: Git, before: str, after: str, folder: str, dirty: Iterable[str] = ()) -> ChangeSet:
    """What differs between two commits, and what the files of the second that steer draw in.

    Args:
        git: In a repository that has both commits, and of both the files that steer.
        before: The commit that results are compared with.
        after: The commit that is tested.
        folder: The project's, from the top of the repository; empty at the top.
        dirty: More files that differ, of which nothing else is known.
    """
    listing = await git.attempt("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", before, after)
    tree = await git.attempt("ls-tree", "-r", "-z", "--full-tree", after)
    if listing.exit_code or listing.truncated or tree.exit_code or tree.truncated:
        return unknown(f"what changed since {before[:7]} could not be read")
    raw, files = list(_changes(listing.stdout)), dict(_files(tree.stdout))
    wanted = {blob for path, *sides in raw if may_steer(path) for blob in sides if blob and _is_file(blob)}
    texts = await _texts(git, wanted)
    changes = [
        FileChange(path, _side(path, before, texts), _side(path, after, texts), _first_line(before, after, texts))
        for path, before, after in raw
    ]
    changes += [FileChange(path, FileText(kind="other"), FileText(kind="other")) for path in dict.fromkeys(dirty)]
    if not changes:
        return ChangeSet()
    try:
        # What is gone was drawn in by those who still name it.
        gone = {path: before for path, before, after in raw if before and after is None}
        return ChangeSet(tuple(changes), await draws(git, files, folder, gone))
    except _UnreadableSteeringError as problem:
        return unknown(str(problem))


async def steering_files(git: Git, files: Iterable[TreeFile], folder: str) -> dict[str, SteeringFile] | None:
    """Of the files of one tree those that steer, and how, by path; nothing where not all of it is known.

    Args:
        git: In a repository that has their contents.
        files: All of them.
        folder: The project's, from the top of the tree.
    """
    blobs = {printable(file.path): Blob(file.mode, file.content) for file in files}
    try:
        drawn = await draws(git, blobs, folder, {})
    except _UnreadableSteeringError:
        return None
    texts = await _texts(git, {blob for path, blob in blobs.items() if may_steer(path) and _is_file(blob)})
    project = ProjectFiles(folder, config="", test_dir="")
    found = {}
    for file in files:
        path = printable(file.path)
        text = _side(path, blobs[path], texts)
        if text and (part := part_of(path, text, drawn, project)):
            found[file.path] = part
    return found


def printable(path: str) -> str:
    """As paths are spelled where they are compared: names need not be text."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def unknown(problem: str) -> ChangeSet:
    """Changes of which not all are known."""
    return ChangeSet(problem=problem)


class _UnreadableSteeringError(Exception):
    """Nobody knows what the files that steer draw in; the message follows "since"."""


async def draws(git: Git, files: Mapping[str, Blob], folder: str, gone: Mapping[str, Blob]) -> Mapping[str, str]:
    """Files and folders that the files which steer draw in, or would if they were not gone; with words on how."""
    links = {path: blob for path, blob in files.items() if blob.mode == LINK}
    targets = await _texts(git, links.values())
    drawn = _Drawn(
        {**gone, **files},
        folder,
        {path: targets.get(it.name, b"").decode("utf-8", "replace") for path, it in links.items()},
    )
    for path in files:
        if path in links and may_steer(path):
            drawn.add_steering(drawn.real(path), f"{path} leads there")
        elif match := PLUGIN_FILE.fullmatch(path):
            for part in PLUGIN_PARTS:
                drawn.add_steering(posixpath.normpath(f"{match[1] or '.'}/{part}"), "part of a plugin")
    waiting = {path for path, blob in files.items() if drawn.steers(path) and _is_file(blob)}
    for _ in range(MAX_IMPORT_DEPTH + 1):
        if len(waiting) > MAX_STEERING_FILES:
            raise _UnreadableSteeringError(f"more than {MAX_STEERING_FILES:,} files steer")
        contents = await _texts(git, {files[path] for path in waiting})
        found = {path: _decoded(contents.get(files[path].name)) for path in waiting}
        if lost := [path for path, text in found.items() if text is None and path.endswith((".md", ".json"))]:
            raise _UnreadableSteeringError(f"{lost[0]} could not be read")
        drawn_in = {file for path, text in found.items() if text for file in drawn.look_into(path, text)}
        waiting = drawn_in & files.keys()
    return drawn.how


@dataclass
class _Drawn:
    """Collects what files that steer draw in."""

    files: Mapping[str, Blob]
    folder: str
    links: Mapping[str, str]
    """Where each link leads, as it is written."""
    how: dict[str, str] = field(default_factory=dict)
    steering: set[str] = field(default_factory=set)
    """Files that steer although neither name nor place says so: a link or a plugin leads there."""

    def add(self, path: str, how: str) -> None:
        if path not in (".", "", self.folder):
            self.how.setdefault(path, how)

    @cached_property
    def folders(self) -> frozenset[str]:
        """All of the tree, apart from its top."""
        return frozenset(above for path in self.files for above in _above(path))

    def add_steering(self, place: str, how: str) -> None:
        """A file or folder whose files steer, wherever it lies; links in it lead on."""
        places = [place]
        for each in places:
            self.add(each, how)
            if each not in self.folders and each not in self.files:
                continue
            inside = [path for path in self.files if f"{path}/".startswith(f"{each}/")]
            self.steering.update(path for path in inside if _READ_OF_STEERING.search(path))
            further = {self.real(path) for path in inside if path in self.links}
            places += [path for path in sorted(further) if path not in self.how and len(places) <= MAX_LINKS]

    def steers(self, path: str) -> bool:
        return may_steer(path) or path in self.steering

    def real(self, path: str) -> str:
        """A path without the links that are on its way."""
        for _ in range(MAX_LINKS):
            folders = path.split("/")
            steps = ("/".join(folders[:length]) for length in range(1, len(folders) + 1))
            link = next((step for step in steps if step in self.links), None)
            if link is None:
                break
            path = posixpath.normpath(posixpath.join(posixpath.dirname(link), self.links[link]) + path[len(link) :])
        return path

    def look_into(self, path: str, text: str) -> Iterator[str]:
        """Note what a file draws in; returns the imports that were not known yet."""
        if path.endswith(".json") and self.steers(path):
            for program in self._programs(path, text):
                self.add(program, f"run by {path}")
                if posixpath.basename(posixpath.dirname(program)) != CLAUDE:
                    self.add(posixpath.dirname(program), f"beside a program that {path} runs")
            return
        if not path.endswith(".md") and self.steers(path):
            return
        for name in mentioned(text):
            file = self._existing(name, path)
            if file and file not in self.how:
                self.add(file, f"imported by {path}")
                yield file
        if self.steers(path):
            self._of_document(path, text)

    def _of_document(self, path: str, text: str) -> None:
        for command in _RUN_AT_ONCE.finditer(text):
            for word in _WORDS.split(command[1] or command[2]):
                if file := self._existing(word, path):
                    self.add(file, f"read by {path}")
        for script in _SCRIPT.finditer(text):
            for program in self._programs_called(script[1] or script[2], path):
                self.add(program, f"run by {path}")
        document = parse(text)
        if "/agents/" in path:
            for skill in _preloaded(document):
                home = path.rpartition("/agents/")[0]
                self.add(f"{home}/skills/{skill}", f"preloaded by {path}")

    def _programs(self, path: str, text: str) -> Iterator[str]:
        """Files of the tree that settings or servers name in a command; and note the main agent, if one is chosen."""
        try:
            settings = json.loads(text)
        except (ValueError, RecursionError):
            return
        if isinstance(settings, dict) and isinstance(settings.get("agent"), str):
            self.add(f"{posixpath.dirname(path)}/agents", f"chosen by {path}")
        for value in _strings(settings):
            for word in _WORDS.split(value):
                # `$CLAUDE_PROJECT_DIR/tools/x` and `"$CLAUDE_PROJECT_DIR"/tools/x` are the same.
                bare = _VARIABLE.sub("", word).lstrip("/")
                module = bare.replace(".", "/")
                for candidate in (bare, f"{module}.py", f"{module}/__main__.py", *RUNNERS.get(bare, ())):
                    yield from self._programs_called(candidate, path)
                # The folder of a plugin, or of a program that is built or found there.
                if "/" in word and (folder := self._folder(bare, path)):
                    self.add(folder, f"named by {path}")

    def _programs_called(self, name: str, caller: str) -> Iterator[str]:
        """The files that a name in a command may mean; a program's also where the command went elsewhere first."""
        if file := self._existing(name, caller):
            yield file
        elif posixpath.splitext(name)[1] in PROGRAM_ENDINGS and not name.startswith(("~", ".")):
            yield from (file for file in self.files if f"/{file}".endswith(f"/{name}") and _is_file(self.files[file]))

    def _existing(self, name: str, importer: str) -> str | None:
        """The file of the tree that a name means."""
        places = self._places(name, importer)
        return next((path for path in places if path in self.files and _is_file(self.files[path])), None)

    def _folder(self, name: str, importer: str) -> str | None:
        """The folder of the tree that a name means; not the top of the tree, nor the project."""
        places = (path for path in self._places(name, importer) if path != self.folder)
        return next((path for path in places if path in self.folders), None)

    def _places(self, name: str, importer: str) -> Iterator[str]:
        """Where a name may lead: from the importer's folder, the project's, or the top."""
        if name and not name.startswith(("~", "/")):
            for base in (posixpath.dirname(importer), self.folder, ""):
                yield self.real(posixpath.normpath(posixpath.join(base, name)))


_WORDS = re.compile(r"[\s\"'`;|&()<>=,:]+")
# Of a skill or command, whose output is part of its text: !`git status`, and blocks that begin with ```!.
_RUN_AT_ONCE = re.compile(r"!`([^`\n]+)`|^```!\n(.*?)^```", re.MULTILINE | re.DOTALL)
_READ_OF_STEERING = re.compile(r"\.md$|(^|/)(hooks|settings|settings\.local|plugin|\.mcp|\.lsp)\.json$")
_VARIABLE = re.compile(r"^\$\{?\w+\}?/")
_SHELL = r"(?:python3?|node|deno(?: run)?|bun(?: run)?|tsx|ts-node|bash|sh|zsh|ruby|perl|php|pwsh|uv run|npx tsx)"
_SCRIPT = re.compile(
    rf"(?:\b{_SHELL}(?: -{{1,2}}[\w-]+)* +|(?<![\w/])\./)([\w.@/-]+)|([\w.@/-]+\.(?:sh|bash|zsh|ps1))\b"
)


def _above(path: str) -> Iterator[str]:
    folders = path.split("/")[:-1]
    return ("/".join(folders[:length]) for length in range(1, len(folders) + 1))


def _preloaded(document: MarkdownDocument) -> Iterator[str]:
    yield from (name for name in document.globs("skills") if re.fullmatch(r"[\w.:-]+", name))


def _strings(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for inner in value.values():
                yield from _strings(inner)
        case list():
            for inner in value:
                yield from _strings(inner)
        case _:
            pass


def _changes(listing: bytes) -> Iterator[tuple[str, Blob | None, Blob | None]]:
    """Path and both sides of each entry of `git diff-tree --raw -z`."""
    fields = listing.split(b"\0")
    for about, path in zip(fields[::2], fields[1::2], strict=False):
        old_mode, mode, old, new, _ = about.decode("ascii", "replace").lstrip(":").split(" ")
        sides = (Blob(m, name) if m != "000000" else None for m, name in ((old_mode, old), (mode, new)))
        yield path.decode("utf-8", "backslashreplace"), *sides  # type: ignore[misc]


def _files(listing: bytes) -> Iterator[tuple[str, Blob]]:
    for entry in listing.split(b"\0"):
        about, _, path = entry.partition(b"\t")
        if path:
            mode, _, name = about.decode("ascii", "replace").split(" ")[:3]
            yield path.decode("utf-8", "backslashreplace"), Blob(mode, name)


def _is_file(blob: Blob) -> bool:
    return blob.mode not in (LINK, SUBMODULE)


def _side(path: str, blob: Blob | None, texts: Mapping[str, bytes]) -> FileText | None:
    if blob is None:
        return None
    if not _is_file(blob):
        return FileText(kind="link" if blob.mode == LINK else "submodule")
    text = _decoded(texts.get(blob.name)) if may_steer(path) else ""
    if text is None:
        return FileText(kind="other")
    return _described(path, text) if path.endswith(".md") else FileText()


def _first_line(before: Blob | None, after: Blob | None, texts: Mapping[str, bytes]) -> int | None:
    """Where a reader finds the change; nothing where a side's text is not known."""
    old, new = ((_decoded(texts.get(side.name)) if side else "") for side in (before, after))
    if after is None or old is None or new is None:
        return None
    lines = new.splitlines()
    pairs = zip(old.splitlines(), lines, strict=False)
    same = next((number for number, (was, now) in enumerate(pairs) if was != now), min(old.count("\n"), len(lines)))
    return max(1, min(same + 1, len(lines)))


def _described(path: str, text: str) -> FileText:
    document = parse(text)
    head = text[: len(text) - len(document.body)]
    # Of skills and commands without a description, Claude Code shows the first line of the text.
    if not document.text("description") and (path.endswith(SKILL_FILE) or "/commands/" in path):
        head += f"\0{document.first_line}"
    waits = document.globs("paths")
    return FileText(head, () if "**" in waits else waits)


def _decoded(data: bytes | None) -> str | None:
    """As the scan reads files; nothing where it would not."""
    if data is None or len(data) > MAX_FILE_BYTES or b"\0" in data:
        return None
    return data.decode("utf-8", "replace").removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


async def _texts(git: Git, blobs: Iterable[Blob]) -> dict[str, bytes]:
    """The contents of blobs that are there and not too large."""
    names = dict.fromkeys(blob.name for blob in blobs)
    if not names:
        return {}
    sizes = await git.attempt("cat-file", "--batch-check", stdin="".join(f"{name}\n" for name in names).encode())
    wanted, total = [], 0
    for line in sizes.stdout.decode("ascii", "replace").splitlines():
        name, kind, *size = line.split(" ")
        if kind == "blob" and int(size[0]) <= MAX_FILE_BYTES and total <= MAX_BYTES:
            wanted.append(name)
            total += int(size[0])
    if not wanted:
        return {}
    contents = await git.attempt("cat-file", "--batch", stdin="".join(f"{name}\n" for name in wanted).encode())
    return dict(_batch(contents.stdout)) if contents.exit_code == 0 and not contents.truncated else {}


def _batch(output: bytes) -> Iterator[tuple[str, bytes]]:
    """What `git cat-file --batch` prints."""
    start = 0
    while (end := output.find(b"\n", start)) >= 0:
        name, _, size = output[start:end].decode("ascii", "replace").split(" ")
        start = end + 1 + int(size) + 1
        yield name, output[end + 1 : start - 1]
