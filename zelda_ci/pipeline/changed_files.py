"""What differs between two commits, as far as it says which suites may feel it: read by git, nothing is checked out."""

import os
import posixpath
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from zelda_ci.domain.kinds import may_steer
from zelda_ci.domain.run import Steers
from zelda_ci.execution.manifest.tree import MAX_FILE_BYTES
from zelda_ci.selection.effects import ChangeSet, FileChange, FileText, ProjectFiles, first_difference, how_it_steers
from zelda_ci.selection.reach import RECIPES, Graph, RepositoryFiles, described
from zelda_ci.workspace.git import LINK, SUBMODULE, Git, TreeFile, tree_files
from zelda_ci.workspace.objects import Objects
from zelda_ci.workspace.store import TestedFiles

# A repository of skills may have thousands; what all of them lead to is no longer looked for then.
MAX_FILES = 20_000


async def read_changes(git: Git, before: str, after: str, folder: str, dirty: Iterable[str] = ()) -> ChangeSet:
    """What differs between two commits, and what the files of the second that steer draw in.

    The repository has both commits, and of both the files that steer; `folder` is the project's, from the top of it.
    Of files in `dirty`, nothing is known but that they differ, too.
    """
    listings = [await git.attempt("ls-tree", "-r", "-z", "--full-tree", commit) for commit in (before, after)]
    if any(it.exit_code or it.truncated for it in listings):
        return ChangeSet(problem=f"what changed since {before[:7]} could not be read")
    olds, news = [{file.path: file for file in tree_files(it.stdout)} for it in listings]
    raw = [(printable(path), olds.get(path), news.get(path)) for path in sorted({*olds, *news})]
    raw, texts = [each for each in raw if each[1] != each[2]], _Texts(git)
    await texts.load(it for path, *sides in raw if may_steer(path) for it in sides if it and _has_text(it))
    changes = []
    for path, old, new in raw:
        was, now = [texts.of(side) if side else "" for side in (old, new)]
        is_known = new and was is not None and now is not None
        line = first_difference((was or "").splitlines(), (now or "").splitlines()) if is_known else None
        changes.append(FileChange(path, _side(path, old, texts), _side(path, new, texts), line))
    dirty = [*dict.fromkeys(dirty)]
    changes += [FileChange(path, FileText(kind="other"), FileText(kind="other")) for path in dirty]
    if not changes:
        return ChangeSet()
    # What is gone was drawn in by those who still name it.
    gone = [*(path for path, _, new in raw if new is None), *dirty]
    reached = await _reach(texts, {printable(path): file for path, file in news.items()}, folder, gone)
    return reached if reached.problem else replace(reached, files=tuple(changes))


async def read_steering(
    tested: TestedFiles, imported: Collection[str]
) -> tuple[dict[str, Steers] | None, dict[TreeFile, str | None]]:
    """How files of a tree steer, by path, and the texts of those that have one; `imported` are CLAUDE.md's imports."""
    known, texts = {printable(file.path): file for file in tested.files}, _Texts(tested.git)
    steers: dict[str, Steers] | None = None
    reached = await _reach(texts, known, tested.folder)
    if reached.problem is None:
        steers = {file.path: "drawn" for file in tested.files if file.path in imported}
        for path, file in known.items():
            if (side := _side(path, file, texts)) and (
                how := how_it_steers(path, side, reached, ProjectFiles(tested.folder))
            ):
                steers[file.path] = how
    steering = [file for file in tested.files if file.path in (steers or ())]
    await texts.load(filter(_has_text, steering))
    return steers, {file: texts.of(file) for file in steering}


def printable(path: str) -> str:
    """As paths are spelled where they are compared: names need not be text."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


async def _reach(texts: "_Texts", files: Mapping[str, TreeFile], folder: str, gone: Iterable[str] = ()) -> ChangeSet:
    """What files that steer lead to, or would if it were not gone."""
    links = [path for path, file in files.items() if file.mode == LINK]
    runners = [path for path in files if posixpath.basename(path) in RECIPES]
    await texts.load(files[path] for path in (*links, *runners))
    targets, recipes = [{path: texts.of(files[path]) or "" for path in paths} for paths in (links, runners)]
    graph = Graph(RepositoryFiles(dict.fromkeys((*gone, *files)), targets, folder), recipes)
    seen, places = set[str](), {path for path in files if graph.steers(path) and _has_text(files[path])}
    needed = {path for path in places if path.endswith((".md", ".json"))}
    # First all that is felt; then what is merely named, for who reads that.
    for lead in (graph.followed, graph.named):
        while waiting := {it for it in places if it in files and graph.tree.is_file(it)} - seen:
            seen |= waiting
            if len(seen) > MAX_FILES:
                return ChangeSet(problem=f"more than {MAX_FILES:,} files steer, or are named by those that do")
            await texts.load(files[path] for path in waiting)
            found = {path: texts.of(files[path]) for path in sorted(waiting)}
            if lost := [path for path, text in found.items() if text is None and path in needed]:
                return ChangeSet(problem=f"{lost[0]} could not be read")
            for path, text in found.items():
                if text:
                    graph.look_into(path, text)
            places = {place for path in found for place in lead(path)}
        places = {place for path in seen for place in graph.named(path)}
    return ChangeSet((), *graph.found())


def _has_text(file: TreeFile) -> bool:
    return file.mode not in (LINK, SUBMODULE)


def _side(path: str, file: TreeFile | None, texts: "_Texts") -> FileText | None:
    if file is None:
        return None
    if not _has_text(file):
        return FileText(kind="link" if file.mode == LINK else "submodule")
    text = texts.of(file) if may_steer(path) else ""
    return FileText(kind="other") if text is None else described(path, text)


class _Texts:
    """The texts of files as the scan reads them, whatever ends their lines; without what it would not read."""

    def __init__(self, git: Git) -> None:
        self._git = git
        self._known: dict[str, str | None] = {}

    def of(self, file: TreeFile) -> str | None:
        return self._known.get(file.content)

    async def load(self, files: Iterable[TreeFile]) -> None:
        """Read those that are there and not too large."""
        names = {file.content for file in files if file.mode != SUBMODULE} - self._known.keys()
        self._known |= dict.fromkeys(names)
        async with Objects(self._git) as objects:
            found = await objects.read(names, MAX_FILE_BYTES)
        for name, data in found.items():
            if b"\0" not in data:
                text = data.decode("utf-8", "replace").removeprefix("\ufeff")
                self._known[name] = text.replace("\r\n", "\n").replace("\r", "\n")
