"""A fresh checkout of what a session changed, except for protected files, which are as they were committed.

The suites may be among them, where commands need to see them. Nothing else of the session is in it: no ignored file
that the suite does not name, no HOME, no configuration or hook of its repository.
"""

import os
import secrets
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import anyio.to_thread

from zelda_ci.domain.numbers import some_of
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.domain.workspace import Confinement, Workspace
from zelda_ci.errors import WorkspaceError
from zelda_ci.files import moving, untrusted
from zelda_ci.redact import Redactor, SafeText
from zelda_ci.sandbox.confine import Needs
from zelda_ci.sandbox.run_folder import WorkspaceFolder
from zelda_ci.workspace import repositories, store
from zelda_ci.workspace.changes import RAW, measured
from zelda_ci.workspace.git import Git
from zelda_ci.workspace.ignored import Stamps
from zelda_ci.workspace.protection import Protection, protection
from zelda_ci.workspace.store import Start

MAX_NAMED = 20
PIECE_BYTES = 1 << 20
WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL


@dataclass(frozen=True)
class ProtectedFiles:
    """Copies of the files, by their path below the root, where no run can reach."""

    root: Path
    copies: Path
    files: Sequence[bytes]

    @classmethod
    def over(cls, root: Path, copies: Path, files: Sequence[bytes]) -> "ProtectedFiles":
        """Copy them from a fresh checkout; links and submodules are left alone."""
        copies.mkdir(mode=0o700)
        places = {name: root / os.fsdecode(name) for name in files}
        plain = {name: place for name, place in places.items() if untrusted.is_regular(place.lstat())}
        for number, place in enumerate(plain.values()):
            shutil.copy(place, copies / str(number), follow_symlinks=False)
        return cls(root, copies, tuple(plain))

    def restore(self) -> list[str]:
        """Put back what is different; returns its names."""
        return [os.fsdecode(name) for number, name in enumerate(self.files) if self._put_back(name, number)]

    def bring(self, source: Path, names: Sequence[bytes]) -> None:
        """Move files here from another tree, to the same places; no link is followed in either."""
        for name in names:
            *above, last = name.split(b"/")
            with suppress(OSError), untrusted.entered(source, above) as origin, self._inside(above) as folder:
                self._aside(last, folder)
                moving.move(os.fsdecode(last), origin, os.fsdecode(last), folder)

    def _put_back(self, name: bytes, number: int) -> bool:
        kept = self.copies / str(number)
        *above, last = name.split(b"/")
        with self._inside(above) as folder:
            if _is_same(last, folder, kept):
                return False
            self._aside(last, folder)
            mode = 0o755 if kept.stat().st_mode & stat.S_IXUSR else 0o644
            descriptor = untrusted.open_regular(last, WRITE, mode, folder=folder)
            with open(descriptor, "wb") as file, kept.open("rb") as copy:  # noqa: PTH123  # a descriptor
                shutil.copyfileobj(copy, file)
                self._hand_over(file.fileno())
        return True

    @contextmanager
    def _inside(self, parts: Sequence[bytes]) -> Iterator[int]:
        """A descriptor of a real folder below the root; whatever else stands in its way is moved aside."""
        current = untrusted.open_folder(self.root)
        try:
            for part in parts:
                above, current = current, self._entered(part, current)
                os.close(above)
            yield current
        finally:
            os.close(current)

    def _entered(self, part: bytes, above: int) -> int:
        with suppress(OSError):
            return untrusted.open_folder(part, folder=above)
        self._aside(part, above)
        os.mkdir(part, dir_fd=above)
        below = untrusted.open_folder(part, folder=above)
        try:
            self._hand_over(below)
        except OSError:
            os.close(below)
            raise
        return below

    def _aside(self, name: bytes, folder: int) -> None:
        top = untrusted.open_folder(self.copies)
        try:
            with suppress(FileNotFoundError):
                moving.move(os.fsdecode(name), folder, secrets.token_hex(8), top)
        finally:
            os.close(top)

    def _hand_over(self, descriptor: int) -> None:
        if os.geteuid() == 0:
            owner = self.root.lstat()
            os.fchown(descriptor, owner.st_uid, owner.st_gid)


@dataclass(frozen=True)
class UnderWay:
    """What it takes to measure a run that is under way."""

    folder: WorkspaceFolder
    start: Start
    home: Path
    suite: ResolvedSuite
    prefix: Path
    needs: Needs
    protected: ProtectedFiles | None = None
    before: Stamps = field(default_factory=dict)
    """The files of the work tree before the session, where setup made some."""
    kept: tuple[bytes, ...] = ()
    """Ignored files of the session that build and tests are to find."""


async def restored(protected: ProtectedFiles | None) -> list[str]:
    """Put back what is different, and say so in a sentence."""
    names = await anyio.to_thread.run_sync(protected.restore) if protected else []
    if not names:
        return []
    listing = some_of(names, MAX_NAMED)
    return [f"Protected files that an earlier command had changed were restored before this one: {listing}"]


def _is_same(name: bytes, folder: int, kept: Path) -> bool:
    """Whether a file still has the content of its copy; piece by piece, since it may be one of Git LFS."""
    with (
        suppress(OSError),
        open(untrusted.open_regular(name, folder=folder), "rb") as file,  # noqa: PTH123  # a descriptor
        kept.open("rb") as copy,
    ):
        if os.fstat(file.fileno()).st_size != kept.stat().st_size:
            return False
        while piece := copy.read(PIECE_BYTES):
            if file.read(len(piece)) != piece:
                return False
        return not file.read(1)
    return False


NAME = "checked"
ABSENT = b"000000"


@dataclass(frozen=True)
class CleanCheckout:
    """The checkout, and what it does not hold of the session's work."""

    folder: WorkspaceFolder
    restored: tuple[str, ...]
    """Protected files that the session had changed, added or removed, relative to the top of the tree."""
    left_out: tuple[str, ...]
    """Changes that could not be taken over, such as very large files."""
    protected: ProtectedFiles
    """Over the protected files."""
    protection: Protection
    update: tuple[str, ...] | None
    """What brings the session's changes into it, where they are not there yet."""


@dataclass(frozen=True)
class CheckedOut:
    """A fresh checkout of what a session changed."""

    workspace: Workspace
    restored: tuple[SafeText, ...]
    """Protected files that the session had changed."""
    left_out: tuple[SafeText, ...]
    """Changes that are not in it, such as very large files."""
    update: tuple[str, ...] | None = None
    """What brings the session's changes into it after setup: a command that runs confined, without a network."""


def is_setup_first(suite: ResolvedSuite) -> bool:
    """Whether setup runs on the files of the tested commit, and the session's changes come after it.

    Else setup, which may have a network where the session had none, would run what the session wrote.
    """
    network = suite.isolation.network
    return suite.setup_command is not None and network.setup == "open" and network.session == "none"


async def check_out(under_way: UnderWay, scratch: Path, plumbing: Git) -> CleanCheckout:
    """Make the checkout inside the run's folder, where no session could reach.

    Args:
        under_way: The run.
        scratch: An empty folder to work in.
        plumbing: Git of Zelda's own.

    Raises:
        WorkspaceError: It cannot be made, for instance because a changed file has an impossible name.
    """
    run, start, suite, prefix = under_way.folder, under_way.start, under_way.suite, under_way.prefix.as_posix()
    staged = await measured(run, start, under_way.before, scratch, plumbing)
    git = staged.git
    changed = _changed(await git(*RAW, start.commit))
    committed = (await git("ls-tree", "-r", "-z", "--name-only", "--full-tree", start.commit)).split(b"\0")
    protected = protection(suite, prefix, frozenset(committed))
    restored = {path: change[:2] for path, change in changed.items() if protected.covers(path)}
    uncovered = await _shown(start, scratch, plumbing)
    places = {place for path in uncovered for place in _places(path)}
    forged = {
        path for path in changed if path in places and (path not in uncovered or changed[path][2] != uncovered[path][1])
    }
    # The uncovered win: what the session has put in the place of a suite or criterion must not be run.
    await _restore(git, {**restored, **uncovered})
    tree = (await git("write-tree")).decode().strip()
    folder = WorkspaceFolder(run.path / NAME, run.number)
    await _fill(folder, start, tree, scratch / "git" / "objects", plumbing)
    store.make_folder(folder.root, Path(prefix))
    tracked = (await git("ls-files", "-z")).split(b"\0")[:-1]
    protected_files = [path for path in tracked if path in uncovered or protected.covers(path)]
    protector = await anyio.to_thread.run_sync(ProtectedFiles.over, folder.root, folder.path / "kept", protected_files)
    back = {*restored, *forged}
    names, left_out = (tuple(sorted(map(os.fsdecode, paths))) for paths in (back, staged.left_out))
    update = None
    if is_setup_first(suite):
        await _inside(folder, plumbing)("read-tree", "-m", "-u", tree, start.commit, inherit=(folder.number,))
        update = ("git", "read-tree", "--reset", "-u", tree)
    return CleanCheckout(folder, names, left_out, protector, protected, update)


def checked(
    workspace: Workspace, fresh: CleanCheckout, prefix: Path, confinement: Confinement, redact: Redactor
) -> CheckedOut:
    """The checkout as a workspace."""
    folder = fresh.folder
    place = replace(
        workspace,
        base=folder.path,
        root=folder.root,
        path=folder.root / prefix,
        home=folder.home,
        tmp=folder.tmp,
        git_dir=folder.git_dir,
        confinement=confinement,
    )
    return CheckedOut(place, tuple(map(redact, fresh.restored)), tuple(map(redact, fresh.left_out)), fresh.update)


async def _shown(start: Start, scratch: Path, plumbing: Git) -> dict[bytes, tuple[bytes, bytes]]:
    """Path → mode and blob of what the session did not see and commands shall; copies the objects."""
    if start.whole is None or not start.store.withheld.paths:
        return {}
    whole = plumbing.within(start.whole.folder, GIT_DIR=str(start.whole.folder))
    lines = (await whole("ls-tree", "-r", "-z", "--full-tree", start.whole.commit)).split(b"\0")[:-1]
    hidden = {os.fsencode(path) for path in start.store.withheld.paths}
    entries = {}
    for head, _, path in (entry.partition(b"\t") for entry in lines):
        mode, kind, blob = head.split(b" ")
        if kind == b"blob" and any(place in hidden for place in _places(path)):
            entries[path] = (mode, blob)
    blobs = b"".join(b"%b\n" % blob for _, blob in entries.values())
    packs = scratch / "git" / "objects" / "pack"
    packs.mkdir(exist_ok=True)
    await whole("pack-objects", "-q", str(packs / "pack"), stdin=blobs)
    return entries


def _places(path: bytes) -> Iterator[bytes]:
    """The path and every folder above it."""
    while path:
        yield path
        path = path.rpartition(b"/")[0]


async def _restore(git: Git, entries: Mapping[bytes, tuple[bytes, bytes]]) -> None:
    """Put index entries back; a file or link that has taken the place of a folder gives way."""
    removals = [b"0 %b\t%b" % (b"0" * len(blob), path) for path, (mode, blob) in entries.items() if mode == ABSENT]
    updates = [b"%b %b 0\t%b" % (mode, blob, path) for path, (mode, blob) in entries.items() if mode != ABSENT]
    if removals or updates:
        options = ("update-index", "-z", "--replace", "--index-info")
        outcome = await git.attempt(*options, stdin=b"".join(line + b"\0" for line in [*removals, *updates]))
        if outcome.exit_code != 0:
            raise git.failure(options, outcome)


async def _fill(folder: WorkspaceFolder, start: Start, tree: str, objects: Path, plumbing: Git) -> None:
    folder.path.mkdir(mode=0o700)
    for place in (folder.home, folder.tmp):
        place.mkdir(mode=0o700)
    repositories.create(
        folder.git_dir,
        object_format=start.object_format,
        settings=start.settings,
        borrow=start.store.objects,
        shallow=start.store.shallow,
    )
    ignored = shutil.ignore_patterns("info", "tmp_*")
    copy = partial(shutil.copytree, objects, folder.git_dir / "objects", dirs_exist_ok=True, ignore=ignored)
    await anyio.to_thread.run_sync(copy)
    git = plumbing.within(folder.git_dir, GIT_DIR=str(folder.git_dir))
    await git("worktree", "add", "-q", "--detach", str(folder.root), start.commit, inherit=(folder.number,))
    # From there to the session's state: what is the same in both is not written again, and so keeps the bytes that the
    # committed attributes give it, whatever the session's own say.
    await _inside(folder, plumbing)("read-tree", "-m", "-u", start.commit, tree, inherit=(folder.number,))
    if not folder.is_intact():
        raise WorkspaceError("The fresh checkout is not where it should be.")


def _inside(folder: WorkspaceFolder, plumbing: Git) -> Git:
    """Git on the checkout; only as long as nothing has run in it."""
    return plumbing.within(folder.root, GIT_DIR=str(folder.session_index.parent), GIT_WORK_TREE=str(folder.root))


def _changed(raw: bytes) -> dict[bytes, tuple[bytes, bytes, bytes]]:
    """Path → mode and blob at the start, and blob now: `:oldmode newmode oldblob newblob status`, then the path."""
    fields = raw.split(b"\0")[:-1]
    changes = zip(fields[1::2], (change.split(b" ") for change in fields[::2]), strict=True)
    return {path: (change[0][1:], change[2], change[3]) for path, change in changes}
