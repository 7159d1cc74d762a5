"""What a session changed: its work tree staged into an index of Zelda's own, the patch, and files that git ignores.

Nothing that the session could have configured is read: not its repository, hooks, filters or its own list of ignored
files, only `.gitignore` and `.gitattributes` of the tree. Paths are relative to the top of the tree; bytes that are no
UTF-8 are surrogates in them. Where git fails altogether, as for want of room, functions raise `WorkspaceError`.
"""

import os
import re
import secrets
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO

import anyio.to_thread
from pathspec import PathSpec

from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.domain.workspace import Changes, IgnoredFiles, TreeChange
from zelda_ci.files import untrusted
from zelda_ci.files.atomic import replacing
from zelda_ci.redact import Redactor
from zelda_ci.sandbox.confine import Needs
from zelda_ci.sandbox.run_folder import WorkspaceFolder
from zelda_ci.workspace.git import ABSENT, NO_SPACE, Git, RawChange, create_repository, join_names, split_names
from zelda_ci.workspace.objects import is_below
from zelda_ci.workspace.source import Project
from zelda_ci.workspace.store import Store

READ_BY_GIT = frozenset({".gitignore", ".gitattributes", ".gitmodules"})
MAX_SETTINGS_BYTES = 1 << 20
MAX_FILE_BYTES = 10 << 20
MAX_INDEX_BYTES = 64 << 20
DEADLINE_SECONDS = 120.0
MAX_LISTED = 50
# Nothing of the repository is kept.
CONFIGURATION = {"core.compression": "1", "core.fsync": "none"}

# Inode, mode, owner, group, links, size and times of an entry.
Stamp = tuple[int, ...]
# The stamps of files and links by their paths.
Stamps = Mapping[str, Stamp]

# What setup commands install dependencies into. Programs write caches there later, which are nobody's work.
INSTALLED = frozenset({".venv", "node_modules"})
# Git decides by content what is text: a tree's own opinion could hide readable changes.
ATTRIBUTES = "* !diff\n"
# For trees with a file that does not fit the encoding its attributes promise.
PLAIN_ATTRIBUTES = "* !diff -text -ident -filter -working-tree-encoding\n"
# Many files go into one pack rather than into a file each.
ADD = ("-c", "core.bigFileThreshold=1", "add", "-A", "--ignore-errors", "--pathspec-from-file=-", "--pathspec-file-nul")
UPDATE = ("update-index", "--add", "--remove", "-z", "--stdin")
STATUS = ("status", "--porcelain=v2", "-z", "--no-renames", "--ignored", "--ignore-submodules=all")
ADDED = ("diff-index", "--cached", "--name-only", "--diff-filter=A", "--no-renames", "-z", "HEAD")

MAX_PATCH_BYTES = 20 << 20
MAX_NAMED = 50
# As arguments of a command.
MAX_EXCLUDED = 500
BORDER = b"diff --git "
# Lines of a file's own begin with a sign.
BINARY = b"\nGIT binary patch\n"
# First the counts of all files, then, behind an empty field, the patch.
PATCH = (
    "diff-index", "--cached", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all", "-M", "-l1000",
    "--numstat", "-z", "--patch", "--binary", "--no-color",
)  # fmt: skip


def scan_tree(root: Path) -> tuple[list[str], list[str], list[str]]:
    """Walk a tree without opening a file; returns what git must not meet, large files, and closed folders."""
    # Git must not meet pipes and devices, files that it reads by name and that are links or huge, and the `.git` of
    # every repository inside, without which its files count as what they are. A folder may be too deep to be listed.
    aside, large, closed, waiting = list[str](), list[str](), list[str](), [""]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(root / folder) as entries:
                for entry in entries:
                    path = os.path.join(folder, entry.name)  # noqa: PTH118  # there may be many thousand
                    is_repository = entry.name == ".git"
                    if entry.is_dir(follow_symlinks=False) and not is_repository:
                        waiting.append(path)
                        continue
                    size = entry.stat(follow_symlinks=False).st_size
                    is_huge = entry.name in READ_BY_GIT and size > MAX_SETTINGS_BYTES
                    # Git follows a link only from `.gitmodules`.
                    is_trap = entry.name == ".gitmodules" if entry.is_symlink() else is_huge or not entry.is_file()
                    if (is_repository or is_trap) and path != ".git":
                        aside.append(path)
                    elif size > MAX_FILE_BYTES:
                        large.append(path)
        except OSError:
            closed.append(folder)
    return aside, large, closed


@contextmanager
def set_aside(root: Path, paths: Iterable[str], shelf: Path) -> Iterator[list[str]]:
    """Move entries out of a tree for a while; yields those that cannot be moved."""
    shelf.mkdir(mode=0o700)
    moved, left = [], []
    try:
        for path in paths:
            place = shelf / secrets.token_hex(8)
            try:
                (root / path).rename(place)
                moved.append((root / path, place))
            except OSError:
                left.append(path)
        yield left
    finally:
        for origin, place in reversed(moved):
            with suppress(OSError):
                place.rename(origin)


@dataclass
class StagedTree:
    """A repository whose index is the state of a work tree."""

    git: Git
    repository: Path
    changed: Mapping[str, RawChange] = field(default_factory=dict)
    """What differs from the start state."""
    left_out: dict[str, str] = field(default_factory=dict)
    """What changed and could not be staged, with the reason in a few words."""
    ignored: Collection[str] = ()
    """What git ignores: files, and folders that end with a slash."""

    async def read_status(self, root: Path) -> None:
        """Ask git what differs between the start state, the index and the tree."""
        left, hidden, changed = list[str](), set[str](), dict[str, RawChange]()
        for entry in split_names(await self.git(*STATUS)):
            match entry.split(" ", 8):
                case ["1", state, _, old_mode, mode, _, old_content, content, path]:
                    if state[0] != ".":
                        changed[path] = RawChange(old_mode, mode, old_content, content)
                    if state[1] != ".":
                        left.append(path)
                case ["?", *_]:
                    left.append(entry[2:])
                case _:
                    hidden.add(entry[2:])
        self.changed, self.ignored = changed, hidden
        # Of a folder, the files in it that git does not ignore.
        found = await anyio.to_thread.run_sync(read_stamps, root, left)
        names = (name for name in found if not is_below(name, hidden))
        self.left_out = {name: _objection(root, name) for name in names}


@dataclass
class OpenRun:
    """A run whose workspace is open, with the state before its session, beyond that one's reach."""

    folder: WorkspaceFolder
    project: Project
    suite: ResolvedSuite
    needs: Needs
    stack: AsyncExitStack
    """Ends with the run."""
    store: Store
    whole: Store | None
    """With what the session does not see, where build and test commands do."""
    index: bytes
    """Git index of the fresh work tree. It tells unchanged files by their times, so that only the others are read."""
    index_written_ns: int
    """Git trusts a file's own times only where they are older than its index."""
    before: Stamps = field(default_factory=dict)
    """The files of the work tree before the session, where setup made some."""
    staged: StagedTree | None = None
    """The state of the work tree, once it was measured."""
    kept: tuple[str, ...] = ()
    """Ignored files of the session that build and tests are to find."""
    restore: Callable[[], list[str]] | None = None
    """In a fresh checkout, puts protected files back that are different; returns their names."""


async def stage_tree(run: OpenRun, scratch: Path, git: Git) -> StagedTree:
    """Stage a run's work tree, without what setup made and the session left alone; `scratch` is an empty folder."""
    repository, nowhere, index = scratch / "git", scratch / "nowhere", scratch / "git" / "index"
    nowhere.mkdir()
    settings, commit = {**run.project.repository.settings, **CONFIGURATION}, run.store.commit
    create_repository(repository, commit, settings=settings, borrow=run.store.objects)
    (repository / "HEAD").write_text(f"{commit}\n")
    await anyio.to_thread.run_sync(index.write_bytes, run.index)
    os.utime(index, ns=(run.index_written_ns, run.index_written_ns))
    root = run.folder.root if run.folder.is_intact() else nowhere
    git = replace(git, timeout_seconds=DEADLINE_SECONDS).within(root, GIT_DIR=str(repository), GIT_WORK_TREE=str(root))
    staged = StagedTree(git, repository)
    aside, large, closed = await anyio.to_thread.run_sync(scan_tree, root)
    with set_aside(root, aside, scratch / "aside") as unmoved:
        if run.before:
            # Git ignores the dependencies that setup installed, and what else it made and the session left alone.
            exclude, own = repository / "info" / "exclude", installed(run.before)
            exclude.write_bytes(exclude_patterns(own))
            others = split_names(await staged.git("ls-files", "--others", "--exclude-standard", "-z"))
            now = await anyio.to_thread.run_sync(read_stamps, root, others)
            untouched = {path for path, stamp in now.items() if run.before.get(path) == stamp}
            exclude.write_bytes(exclude_patterns(own | untouched))
        await _add(staged, large)
        await staged.read_status(root)
        if forced := await _forced(staged, root, run):
            await staged.git.attempt(*UPDATE, stdin=join_names(forced))
            await staged.read_status(root)
    traps = (path for path in aside if path.rpartition("/")[2] in READ_BY_GIT)
    staged.left_out |= dict.fromkeys(traps, "not a plain file") | dict.fromkeys(closed, "cannot be listed")
    staged.left_out |= {path.removesuffix("/.git"): "a repository" for path in unmoved if path.endswith("/.git")}
    for name in run.project.empty_submodules:
        with suppress(OSError):
            if not (root / name).is_symlink() and any((root / name).iterdir()):
                staged.left_out[name] = "a submodule"
    # From here on nothing of the work tree is read, where the traps are back.
    staged.git = staged.git.within(nowhere, GIT_WORK_TREE=str(nowhere))
    return staged


async def _add(staged: StagedTree, large: Iterable[str]) -> None:
    """Bring the index from the start state to that of the tree, but for files that are large."""
    specs = join_names([":/", *(f":(top,exclude,literal){path}" for path in large)])
    for attributes in (ATTRIBUTES, PLAIN_ATTRIBUTES):
        (staged.repository / "info" / "attributes").write_text(attributes)
        outcome = await staged.git.attempt(*ADD, stdin=specs)
        if outcome.exit_code == 0:
            return
        problem = staged.git.failure(ADD, outcome)
        # At 1 it left files out, which its status names.
        if outcome.exit_code == 1 and problem.code != NO_SPACE:
            return
        if attributes is PLAIN_ATTRIBUTES:
            raise problem


async def _forced(staged: StagedTree, root: Path, run: OpenRun) -> list[str]:
    """Ignored files that the session made git track all the same, by what its index says."""
    content = None
    if staged.ignored:
        with suppress(OSError):  # a session may have put anything there
            content = await anyio.to_thread.run_sync(untrusted.read, run.folder.session_index, MAX_INDEX_BYTES)
    if content is None or content == run.index:
        return []
    copy = staged.repository / "session-index"
    copy.write_bytes(content)
    outcome = await staged.git.within(root, GIT_INDEX_FILE=str(copy)).attempt(*ADDED)
    names = split_names(outcome.stdout) if outcome.exit_code == 0 else []
    now = read_stamps(root, [name for name in names if is_below(name, staged.ignored)])
    return [path for path, stamp in now.items() if run.before.get(path) != stamp]


def _objection(root: Path, path: str) -> str:
    """Why a file could not be staged."""
    if any(part.lower() == ".git" for part in path.split("/")):
        return "named like Git's own"
    with suppress(OSError):
        status = (root / path).lstat()
        if untrusted.is_regular(status) and status.st_size > MAX_FILE_BYTES:
            return f"{status.st_size} bytes"
        if not os.access(root / path, os.R_OK):
            return "unreadable"
    return "not accepted by Git"


async def write_patch(staged: StagedTree, target: Path, redact: Redactor) -> Changes:
    """Write the masked patch from the start commit to a staged tree, and count what is in it."""
    old = {path: change.old_content for path, change in staged.changed.items() if change.old_mode != ABSENT}
    blobs = "".join(f"{blob}\n" for blob in old.values()).encode()
    sizes = await staged.git("cat-file", "--batch-check=%(objectsize)", stdin=blobs) if old else b""
    known = ((path, int(size)) for path, size in zip(old, sizes.splitlines(), strict=True) if size.isdigit())
    large = dict(islice((file for file in known if file[1] > MAX_FILE_BYTES), MAX_EXCLUDED))
    left_out = staged.left_out | {path: f"{size} bytes before" for path, size in large.items()}
    # Git would print all of a large file that is gone, and what comes after it would not fit any more.
    places = ("--", ":(top)", *(f":(top,exclude,literal){path}" for path in large))
    raw = staged.repository / "raw.patch"
    outcome = await staged.git.attempt(*PATCH, "HEAD", *places, to=raw)
    if outcome.exit_code and not outcome.truncated:
        raise staged.git.failure(PATCH, outcome)

    # Lines for people, which `git apply` skips.
    preface = [f"not in this patch: {name!r} ({why})" for name, why in sorted(left_out.items())[:MAX_NAMED]]
    preface += [f"and {len(left_out) - MAX_NAMED} more"] if len(left_out) > MAX_NAMED else []

    def write() -> tuple[dict[str, tuple[int, int]], int, bool]:
        with raw.open("rb") as source, replacing(target) as file:
            file.write(redact("".join(f"# {line}\n" for line in preface)).encode())
            counts = read_counts(source)
            cut = copy_sections(source, file, redact, complete=not outcome.truncated)
            return counts, file.tell(), cut

    counts, size, cut = await anyio.to_thread.run_sync(write)
    return Changes(
        files=tuple(map(redact, sorted({*counts, *left_out}))),
        insertions=sum(added for added, _ in counts.values()),
        deletions=sum(removed for _, removed in counts.values()),
        patch=target,
        patch_bytes=size,
        truncated=cut or bool(left_out),
    )


def read_counts(source: BinaryIO) -> dict[str, tuple[int, int]]:
    """Read git's counts of added and removed lines by file, up to the patch behind them."""
    # A renamed file stands by its new name, and a binary one has no lines.
    head = b""
    while (end := head.find(b"\0\0")) < 0 and (chunk := source.read(1 << 20)):
        head += chunk
    if end < 0:
        return {}
    source.seek(end + 2)
    counts = {}
    fields = iter(os.fsdecode(head[:end]).split("\0"))
    for entry in fields:
        added, removed, name = entry.split("\t", 2)
        if not name:
            _, name = next(fields), next(fields)
        counts[name] = int(added.replace("-", "0")), int(removed.replace("-", "0"))
    return counts


def copy_sections(source: BinaryIO, file: BinaryIO, redact: Redactor, *, complete: bool) -> bool:
    """Append git's patch to a file, masked, as far as there is room; returns whether a file's section was left out."""
    # The last section is dropped where git's output broke off.
    is_cut, section = not complete, bytearray()
    for line in chain(source, [BORDER] if complete else []):
        if line.startswith(BORDER) and section:
            # Compressed data says nothing, but letters by chance look like a name with a value.
            mask = redact.known_only() if BINARY in section else redact
            text = section.decode("utf-8", "replace")
            masked = mask(text) if len(section) <= MAX_PATCH_BYTES else text
            # What is no UTF-8 stays as it is where there is nothing to mask.
            content = section if masked == text else masked.encode()
            is_cut |= file.tell() + len(content) > MAX_PATCH_BYTES
            if file.tell() + len(content) <= MAX_PATCH_BYTES:
                file.write(content)
            section.clear()
        # Of a section that can never fit, only enough to show that.
        if len(section) <= MAX_PATCH_BYTES:
            section += line
    return is_cut


def read_stamps(root: Path, places: Iterable[str] = ("",)) -> dict[str, Stamp]:
    """Read the stamps of all files and links at places of a tree or below them, without its `.git`; blocks."""
    # Links are not followed, and what cannot be read is passed over.
    top = f"{root}/"
    found: dict[str, Stamp] = {}
    # Without recursion: a tree may be deeper than the stack.
    waiting = [(top + place).rstrip("/") for place in places]
    while waiting:
        path = waiting.pop()
        try:
            status = os.lstat(path)
            if stat.S_ISDIR(status.st_mode):
                with os.scandir(path) as entries:
                    waiting += [entry.path for entry in entries if entry.path != f"{top}.git"]
                continue
        except OSError:
            continue
        kind = (status.st_ino, status.st_mode, status.st_uid, status.st_gid, status.st_nlink, status.st_size)
        found[path.removeprefix(top)] = (*kind, status.st_mtime_ns, status.st_ctime_ns)
    return found


def folders_above(path: str) -> Iterator[str]:
    """The folders that a path lies in, outermost first, each with a slash at its end."""
    return (path[:end] for end, sign in enumerate(path, 1) if sign == "/")


def installed(paths: Iterable[str]) -> set[str]:
    """The outermost folders for dependencies that paths lie in."""
    above = (next((it for it in folders_above(path) if it.split("/")[-2] in INSTALLED), "") for path in paths)
    return {*filter(None, above)}


def exclude_patterns(paths: Iterable[str]) -> bytes:
    """Lines for git's list of ignored files; a name with a line break cannot be written as one."""
    return os.fsencode("".join(f"/{escaped(path)}\n" for path in sorted(paths) if "\n" not in path))


def escaped(name: str) -> str:
    """A name as a pattern of git's: without what it takes for something else."""
    return re.sub(r"[\\*?\[\]! #]", r"\\\g<0>", name)


def find_changes(run: OpenRun, staged: StagedTree, keep: PathSpec[Any], redact: Redactor) -> IgnoredFiles:
    """Find what of the ignored files of a work tree is not as before the session, and note what to `keep`; blocks."""
    root, before, now = run.folder.root, run.before, read_stamps(run.folder.root, staged.ignored)
    kinds = {path: "changed" if path in before else "added" for path, stamp in now.items() if before.get(path) != stamp}
    kept = dict.fromkeys(path for path in kinds if keep.match_file(path))
    run.kept = tuple(kept)
    # What is there and no longer ignored stands in the patch.
    gone = before.keys() - now.keys() - staged.changed.keys() - staged.left_out.keys()
    kinds |= dict.fromkeys((path for path in gone if not os.path.lexists(root / path)), "removed")
    old = {folder for path in before for folder in folders_above(path)}
    new = {place for place in staged.ignored if place.endswith("/") and place not in old}
    shown = {path: next((folder for folder in folders_above(path) if folder in new), path) for path in kinds}
    changes = sorted({(shown[path], kind) for path, kind in kinds.items() if path not in kept})
    listed = [TreeChange.model_validate({"path": redact(path), "kind": kind}) for path, kind in changes[:MAX_LISTED]]
    names, more = sorted({shown[path] for path in kept})[:MAX_LISTED], max(0, len(changes) - MAX_LISTED)
    return IgnoredFiles(changes=tuple(listed), more=more, kept=tuple(map(redact, names)))
