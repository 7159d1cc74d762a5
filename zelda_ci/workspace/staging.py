"""The state of a work tree after a session, staged into an index of Zelda's own.

Nothing that the session could have configured is read: not its repository, hooks, filters or its own list of ignored
files, only `.gitignore` and `.gitattributes` of the tree. Paths are relative to the top of the tree; bytes that are no
UTF-8 are surrogates in them.
"""

import os
import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio.to_thread

from zelda_ci.files import untrusted
from zelda_ci.sandbox.run_folder import WorkspaceFolder
from zelda_ci.workspace import repositories
from zelda_ci.workspace.git import NO_SPACE, Git, RawChange
from zelda_ci.workspace.ignored import Stamps, exclude_patterns, installed, is_below, read_stamps
from zelda_ci.workspace.store import Start

READ_BY_GIT = frozenset({".gitignore", ".gitattributes", ".gitmodules"})
MAX_SETTINGS_BYTES = 1 << 20
MAX_FILE_BYTES = 10 << 20
MAX_INDEX_BYTES = 64 << 20
DEADLINE_SECONDS = 120.0

# Nothing of it is kept.
CONFIGURATION = {"core.compression": "1", "core.fsync": "none"}

# Git decides by content what is text: a tree's own opinion could hide readable changes.
ATTRIBUTES = "* !diff\n"
# For trees with a file that does not fit the encoding its attributes promise.
PLAIN_ATTRIBUTES = "* !diff -text -ident -filter -working-tree-encoding\n"

# Many files go into one pack rather than into a file each.
ADD = ("-c", "core.bigFileThreshold=1", "add", "-A", "--ignore-errors", "--pathspec-from-file=-", "--pathspec-file-nul")
UPDATE = ("update-index", "--add", "--remove", "-z", "--stdin")
STATUS = ("status", "--porcelain=v2", "-z", "--no-renames", "--ignored", "--ignore-submodules=all")
ADDED = ("diff-index", "--cached", "--name-only", "--diff-filter=A", "--no-renames", "-z")


def scan_tree(root: Path) -> tuple[list[str], list[str], list[str]]:
    """Walk a tree without opening a file, and find what needs care, by path.

    Returns:
        What git must not meet: pipes and devices, files that it reads by name and that are links or huge, and the
        `.git` of every repository inside, without which its files count as what they are. Large files. Folders that
        cannot be listed, or are deeper than a path may be long.
    """
    aside, large, closed, waiting = list[str](), list[str](), list[str](), [""]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(root / folder) as entries:
                for entry in entries:
                    path = os.path.join(folder, entry.name)  # noqa: PTH118  # there may be many thousand
                    if entry.is_dir(follow_symlinks=False) and entry.name != ".git":
                        waiting.append(path)
                    elif must_go_aside(entry) and path != ".git":
                        aside.append(path)
                    elif entry.stat(follow_symlinks=False).st_size > MAX_FILE_BYTES:
                        large.append(path)
        except OSError:
            closed.append(folder)
    return aside, large, closed


def must_go_aside(entry: os.DirEntry[str]) -> bool:
    """Whether git must not meet an entry that is no folder; it follows a link only from `.gitmodules`."""
    if entry.is_symlink():
        return entry.name in {".git", ".gitmodules"}
    is_huge = entry.name in READ_BY_GIT and entry.stat().st_size > MAX_SETTINGS_BYTES
    return entry.name == ".git" or is_huge or not entry.is_file()


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
        for entry in _split(await self.git(*STATUS)):
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


async def stage_tree(folder: WorkspaceFolder, start: Start, before: Stamps, scratch: Path, git: Git) -> StagedTree:
    """Stage the state of a run's work tree; `scratch` is an empty folder to work in.

    What setup made and the session left alone is no change of the session's: `before` are the stamps of the tree's
    files after setup, or none where there was no setup.

    Raises:
        WorkspaceError: Git failed altogether, for instance for want of room.
    """
    repository, nowhere = scratch / "git", scratch / "nowhere"
    nowhere.mkdir()
    settings, commit = {**start.project.repository.settings, **CONFIGURATION}, start.store.commit
    repositories.create(repository, commit, settings=settings, borrow=start.store.objects)
    (repository / "HEAD").write_text(f"{commit}\n")
    await anyio.to_thread.run_sync(start.write_index, repository / "index")
    root = folder.root if folder.is_intact() else nowhere
    git = replace(git, timeout_seconds=DEADLINE_SECONDS).within(root, GIT_DIR=str(repository), GIT_WORK_TREE=str(root))
    staged = StagedTree(git, repository)
    aside, large, closed = await anyio.to_thread.run_sync(scan_tree, root)
    with set_aside(root, aside, scratch / "aside") as unmoved:
        await _exclude(staged, root, before)
        await _add(staged, large)
        await staged.read_status(root)
        if forced := await _forced(staged, root, start, folder.session_index, before):
            await staged.git.attempt(*UPDATE, stdin=_joined(forced))
            await staged.read_status(root)
    traps = (path for path in aside if path.rpartition("/")[2] in READ_BY_GIT)
    staged.left_out |= dict.fromkeys(traps, "not a plain file") | dict.fromkeys(closed, "cannot be listed")
    staged.left_out |= {path.removesuffix("/.git"): "a repository" for path in unmoved if path.endswith("/.git")}
    staged.left_out |= {name: "a submodule" for name in start.project.empty_submodules if _holds_something(root / name)}
    # From here on nothing of the work tree is read, where the traps are back.
    staged.git = staged.git.within(nowhere, GIT_WORK_TREE=str(nowhere))
    return staged


async def _exclude(staged: StagedTree, root: Path, before: Stamps) -> None:
    """Have git ignore the dependencies that setup installed, and what else it made and the session left alone."""
    if before:
        exclude = staged.repository / "info" / "exclude"
        exclude.write_bytes(exclude_patterns(installed(before)))
        others = _split(await staged.git("ls-files", "--others", "--exclude-standard", "-z"))
        now = await anyio.to_thread.run_sync(read_stamps, root, others)
        untouched = {path for path, stamp in now.items() if before.get(path) == stamp}
        exclude.write_bytes(exclude_patterns(installed(before) | untouched))


async def _add(staged: StagedTree, large: Iterable[str]) -> None:
    """Bring the index from the start state to that of the tree, but for files that are large."""
    specs = _joined([":/", *(f":(top,exclude,literal){path}" for path in large)])
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


async def _forced(staged: StagedTree, root: Path, start: Start, session_index: Path, before: Stamps) -> list[str]:
    """Ignored files that the session made git track all the same, by what its index says."""
    content = None
    if staged.ignored:
        with suppress(OSError):  # a session may have put anything there
            content = await anyio.to_thread.run_sync(untrusted.read, session_index, MAX_INDEX_BYTES)
    if content is None or content == start.index:
        return []
    copy = staged.repository / "session-index"
    copy.write_bytes(content)
    outcome = await staged.git.within(root, GIT_INDEX_FILE=str(copy)).attempt(*ADDED, start.store.commit)
    names = _split(outcome.stdout) if outcome.exit_code == 0 else []
    now = read_stamps(root, [name for name in names if is_below(name, staged.ignored)])
    return [path for path, stamp in now.items() if before.get(path) != stamp]


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


def _holds_something(submodule: Path) -> bool:
    with suppress(OSError):
        return not submodule.is_symlink() and any(submodule.iterdir())
    return False


def _split(listing: bytes) -> list[str]:
    return os.fsdecode(listing).split("\0")[:-1]


def _joined(names: Iterable[str]) -> bytes:
    return b"".join(os.fsencode(name) + b"\0" for name in names)
