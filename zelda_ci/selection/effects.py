"""Whom a changed file concerns: by its name and place, by what leads to it, and by the suites that name it. Pure."""

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import takewhile
from typing import Literal, NamedTuple

from zelda_ci.domain.kinds import CLAUDE, KINDS, MEMORY_FALLBACKS, MEMORY_FILES, SKILL_FILE, is_memory, may_steer
from zelda_ci.domain.run import Steers
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.files import globs

CONFIGURATION, BESIDE = "the configuration", "beside the suites"
# What a folder further down has for its own files.
_MEMORY = (*MEMORY_FILES, *MEMORY_FALLBACKS)
# What a word without an ending may stand for, where it is run or imported.
PROGRAM_ENDINGS = (
    ".py", ".js", ".mjs", ".cjs", ".ts", ".mts", ".tsx", ".jsx", ".sh", ".bash", ".rb", ".pl", ".php", ".ps1", ".go",
)  # fmt: skip
# The project's own code: what it is, no session is steered by, unless something that steers runs or names it.
CODE_ENDINGS = (
    *PROGRAM_ENDINGS, ".rs", ".java", ".kt", ".scala", ".c", ".cc", ".cpp", ".h", ".hpp", ".cs", ".swift", ".dart",
    ".vue", ".svelte", ".css", ".scss", ".html", ".sql", ".ex", ".exs", ".lua", ".zig",
)  # fmt: skip
_LOG = re.compile(r"(?i)(change|release|history|news)[\w-]*\.")


class FileText(NamedTuple):
    """A file on one side of a change, as far as it says when it is loaded."""

    head: str = ""
    """The front matter of a Markdown file, as it is written."""
    globs: tuple[str, ...] = ()
    """Of a rule, the files that it waits for; none where it is always there."""
    kind: Literal["text", "other", "link", "submodule"] = "text"
    """`other` is what is too large, no text, or not known."""


class FileChange(NamedTuple):
    """A file that differs; absent on the side that does not have it. A renamed file is two."""

    path: str
    """From the top of the repository, with forward slashes."""
    before: FileText | None
    after: FileText | None
    line: int | None = None
    """The first that differs, as it is after the change; absent where that is not known."""


@dataclass(frozen=True)
class Effect:
    """Whom a changed file concerns."""

    path: str
    scope: Literal["all", "unit", "files", "read"]
    why: str
    """Of `all`, what it is; else what a suite that is concerned does."""
    unit: str = ""
    """Path of the skill, command or sub-agent of which only the text changed, or of what leads to the file."""
    touches: Callable[[str], bool] | None = None
    read: frozenset[str] = frozenset()
    """Files and folders of which a suite that touched one, and did not change it itself, is concerned."""


@dataclass(frozen=True)
class ChangeSet:
    """What differs between two states of a repository."""

    files: tuple[FileChange, ...] = ()
    felt: Mapping[str, str] = field(default_factory=dict)
    """Files and folders that files which every suite feels import, run or link to, with a few words on how."""
    reached: Mapping[str, tuple[Effect, ...]] = field(default_factory=dict)
    """Effects of other files that files which steer lead to: who feels or reads what leads there may feel them."""
    problem: str | None = None
    """Why not every change is known, in words that follow "since"."""


class ProjectFiles(NamedTuple):
    """Where the project has its files; all paths from the top of the repository."""

    folder: str
    """In which its sessions begin; empty at the top."""
    config: str = ""
    test_dir: str = ""


def effects_of(change: FileChange, changes: ChangeSet, project: ProjectFiles) -> Iterator[Effect]:
    """Whom a changed file concerns, as far as no suite has it for its own; nothing where it can change no result."""
    own = _effect_by_place(change, changes.felt, project)
    if own:
        yield own
    for effect in changes.reached.get(change.path, ()) if own is None or own.scope != "all" else ():
        # That a skill or a sub-agent was read, its own effect knows.
        is_own = effect.read == {change.path} if effect.scope == "read" else own is not None and effect.unit == own.unit
        if own is None or not is_own:
            yield effect


def _effect_by_place(change: FileChange, felt: Mapping[str, str], project: ProjectFiles) -> Effect | None:
    """Whom a file concerns by its name and place, or because everybody feels what leads to it."""
    path, name = change.path, change.path.rpartition("/")[2]
    if path == project.config:
        return Effect(path, "all", CONFIGURATION)
    # A suite that was deleted has nothing to run, and no session could see it.
    is_gone = change.after is None and name.startswith("test-") and name.endswith((".yaml", ".yml"))
    if path.startswith(f"{project.test_dir}/") and not is_gone:
        return Effect(path, "all", BESIDE)
    # A file that steers may draw in a folder above it.
    if step := next((step for step in globs.upwards(path) if step in felt), None):
        return Effect(path, "all", felt[step])
    # What nobody can look into; large and binary files count only where they steer by their names.
    kinds = {side.kind for side in (change.before, change.after) if side}
    for kind, why in (("link", "a link"), ("submodule", "a submodule"), ("other", "uncommitted, too large or no text")):
        if kind in kinds and (kind != "other" or may_steer(path)):
            return Effect(path, "all", why)
    return steering_effect(change, project.folder) if may_steer(path) else None


def own_places(suite: ResolvedSuite, folder: str, files: Iterable[str] = ()) -> frozenset[str]:
    """Files that a suite names, and words of its commands that may be files or folders of the project, from the top."""
    # What checks the result is part of a suite, and what setup copies may have any name.
    words = (word for command in suite.deciding_commands for word in _words(command) if "." in word or "/" in word)
    names = (*files, *_words(suite.setup_command), *words)
    places = {posixpath.normpath(posixpath.join(folder, name)) for name in names if not name.startswith("/")}
    # Neither the project as a whole nor what lies outside is its own.
    return frozenset(place for place in places if place not in (".", "..") and not _is_above(place, folder))


def _words(command: str | Sequence[str] | None) -> Iterator[str]:
    for text in (command,) if isinstance(command, str) else command or ():
        for word in re.split(r"[\s\"'`;|&()<>=]+", text):
            # $PWD/fixtures/x is fixtures/x, and of fixtures/*.md the folder.
            name, *pattern = re.split(r"[*?\[{$]", re.sub(r"^\$\{?\w+\}?/", "", word), maxsplit=1)
            if name := name.rpartition("/")[0] if pattern else name:
                yield name


def is_meant(path: str, suite: ResolvedSuite, folder: str) -> bool:
    """Whether a suite's `gate.paths` name a file."""
    return _is_above(folder, path) and globs.matches(suite.gate.paths, path.removeprefix(f"{folder}/"))


def how_it_steers(path: str, text: FileText, changes: ChangeSet, project: ProjectFiles) -> Steers | None:
    """How a file steers: the rule by which suites are chosen, asked what another text of the file would do."""
    effects = list(effects_of(FileChange(path, text, text), changes, project))
    if not effects:
        return None
    if may_steer(path) or text.kind in ("link", "submodule"):
        return "itself"
    # Code that is only read stays the project's own; a log is written by every change.
    is_only_read = all(effect.scope == "read" for effect in effects)
    return None if is_only_read and (is_code(path) or _LOG.match(path.rpartition("/")[2])) else "drawn"


def is_code(path: str) -> bool:
    """Whether a file is the project's own code, by its ending."""
    return path.lower().endswith(CODE_ENDINGS)


def steering_effect(change: FileChange, folder: str) -> Effect:
    """The effect of a file that steers by its name or place: on all, but for texts that are loaded on demand."""
    # Sessions begin in `folder`.
    path, sides = change.path, [side for side in (change.before, change.after) if side]
    *folders, name = path.split("/")
    home = folders[: folders.index(CLAUDE)] if CLAUDE in folders else folders
    base, inside = "/".join(home), folders[len(home) + 1 :]
    kind = next((row for row in KINDS.values() if inside and row.folder == inside[0]), None)
    on_all = Effect(path, "all", "always in context" if is_memory(name) else "every suite may use it")
    if change.after is None:
        return replace(on_all, why="it is gone")
    if name not in _MEMORY and (CLAUDE not in folders or not (inside or _is_above(base, folder))):
        return on_all
    if not _is_above(base, folder):
        return Effect(path, "files", f"touched a file below {base}/", touches=lambda file: _is_above(base, file))
    if kind and kind.felt == "touchers" and name.endswith(kind.files):
        if not all(side.globs for side in sides):
            return replace(on_all, why="a rule that is always in context")
        patterns = [pattern for side in sides for pattern in side.globs]

        @cache  # many suites touch the same files, and patterns are slow
        def touches(file: str) -> bool:
            return _is_above(base, file) and globs.matches(patterns, file.removeprefix(f"{base}/"))

        return Effect(path, "files", f"touched a file that {path} is for", touches=touches)
    if change.before is None or change.before.head != change.after.head:
        return on_all if change.before else replace(on_all, why="it is new")
    if kind and kind.own_folder and len(inside) > 1:
        called, unit = inside[1], "/".join((*home, CLAUDE, kind.folder, inside[1], SKILL_FILE))
    elif kind and kind.felt == "callers" and not kind.own_folder and name.endswith(kind.files):
        called, unit = name.rpartition(".")[0], path
    else:
        return on_all
    return Effect(path, "unit", f"called the {kind.word} {called} or missed it", unit=unit)


def _is_above(base: str, path: str) -> bool:
    """Whether a folder is the one that a path means, or above it."""
    return not base or f"{path}/".startswith(f"{base}/")


def first_difference(before: Iterable[str], after: Sequence[str]) -> int:
    """Number of the first line that differs, as it is after a change."""
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False)))
    return max(1, min(same + 1, len(after)))
