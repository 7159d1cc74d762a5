"""What the user's project is: a commit in a repository, or a plain folder. Nothing of it is ever written.

Functions raise `WorkspaceError` where it cannot be tested. No filter is run, and no program of Git LFS.
"""

import hashlib
import os
import re
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from zelda_ci.domain.numbers import some_of
from zelda_ci.domain.workspace import WorkspaceSource
from zelda_ci.errors import WorkspaceError
from zelda_ci.files import untrusted
from zelda_ci.process import Captured
from zelda_ci.workspace import git
from zelda_ci.workspace.git import Git, TreeFile
from zelda_ci.workspace.objects import Objects

# The first git that takes its global configuration from a file of our choice.
MIN_VERSION = (2, 32)
# Settings on which the bytes of a checkout depend. Not `ignorecase`: workspaces lie on a file system of their own.
CHECKOUT_SETTINGS = r"core\.(autocrlf|eol|symlinks|filemode|precomposeunicode|longpaths)"
# Each repository has one of the second group, and git says where it was found.
SETTINGS = rf"^({CHECKOUT_SETTINGS}|core\.(bare|repositoryformatversion|worktree)|zelda\.configured)$|^filter\."
# Fields before the path, by the first letter of a line of `git status --porcelain=v2`.
FIELDS = {b"1": 8, b"u": 10, b"?": 1}
RESULTS = ".zelda"
UNAVAILABLE = "BASE_UNAVAILABLE"
COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
# Larger files are no pointers to Git LFS either.
MAX_POINTER_BYTES = 1024

_POINTER = re.compile(rb"version https://git-lfs\.github\.com/spec/v1\noid sha256:([0-9a-f]{64})\nsize ([0-9]{1,15})\n")


@dataclass(frozen=True)
class Repository:
    """Where a commit comes from; a folder without Git stands for itself."""

    common_dir: Path
    top: Path
    git_dir: Path = Path()
    """Another one than the common one where the work tree is linked."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Those of `CHECKOUT_SETTINGS` that the repository sets."""
    overrides: Mapping[str, str] = field(default_factory=dict)
    """Settings in place of all that the user has configured to be run."""


@dataclass(frozen=True)
class Submodule:
    """A submodule that is checked out."""

    path: str
    name: str
    """The commit that the tree around it names."""
    content: str
    """The commit whose files take the place: another one only where the working tree is tested."""
    tree: str
    files: tuple[TreeFile, ...]
    """The files of the tree, by their paths in it."""
    repository: Path
    """Where git finds them."""


@dataclass(frozen=True)
class LargeFile:
    """A file of Git LFS: a pointer names its content by SHA-256 and size, so it does not matter who wrote it."""

    path: str
    mode: str
    name: str
    """Git's name for the pointer."""
    content: str
    """SHA-256 of the content."""
    size: int
    repository: Path
    """In whose storage the content may lie; below it no link is followed."""

    @property
    def place(self) -> str:
        """Where Git LFS keeps the content in the repository."""
        return f"lfs/objects/{self.content[:2]}/{self.content[2:4]}/{self.content}"

    def is_stored(self) -> bool:
        """Whether the storage has a content of the pointer's size; its hash is that of its name until it is read."""
        *above, name = self.place.split("/")
        with suppress(OSError), untrusted.entered(self.repository, above) as folder:
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            return untrusted.is_regular(status) and status.st_size == self.size
        return False

    def is_content(self, top: Path, path: str) -> bool:
        """Whether a file below a folder has the content; no more of it is read than the pointer says."""
        *above, name = path.split("/")
        with (
            suppress(OSError),
            untrusted.entered(top, above) as folder,
            open(untrusted.open_regular(name, folder=folder), "rb") as content,  # noqa: PTH123  # a descriptor
        ):
            is_whole = os.fstat(content.fileno()).st_size == self.size
            return is_whole and hashlib.file_digest(content, "sha256").hexdigest() == self.content
        return False


async def pointers(git: Git, repository: Path, prefix: str = "") -> list[LargeFile]:
    """Read the pointers of an index that the attributes give to Git LFS: in an empty work tree, those in the index."""
    listing = (await git("ls-files", "-s", "-z", "--", ":(top,attr:filter=lfs)")).split(b"\0")[:-1]
    entries = [os.fsdecode(entry).split(" ", 2) for entry in listing]
    async with Objects(git) as objects:
        texts = await objects.read((blob for _, blob, _ in entries), MAX_POINTER_BYTES)
    matches = ((mode, blob, path[2:], _POINTER.fullmatch(texts.get(blob, b""))) for mode, blob, path in entries)
    return [
        LargeFile(prefix + path, mode, blob, it[1].decode(), int(it[2]), repository)
        for mode, blob, path, it in matches
        if it
    ]


@dataclass(frozen=True)
class Project:
    """The project as it is tested; a folder without a repository, as a snapshot in one of Zelda's own."""

    folder: Path
    source: WorkspaceSource
    repository: Repository
    objects: Path = Path()
    """The repository that holds the tested commit: the user's, or one of Zelda's own."""
    commit: str = ""
    """The commit that workspaces check out: the tested one, or of a folder without Git one of Zelda's own."""
    files: tuple[TreeFile, ...] = ()
    parts: tuple[Submodule | LargeFile, ...] = ()
    """What the checkout has of what the tested commit only names, sorted by path."""
    filters: frozenset[str] = frozenset()
    """Content filters that its attributes name, other than that of Git LFS."""
    known: dict[str, bytes] = field(default_factory=dict)

    @property
    def notes(self) -> Iterator[str]:
        """What workspaces show otherwise than a checkout, in sentences."""
        if self.empty_submodules:
            yield f"Submodules are empty folders in the workspace: {some_of(self.empty_submodules)}."
        if pointers := self.source.contents.lfs.missing:
            yield f"Files of Git LFS are pointers in the workspace: {some_of(sorted(pointers))}."
        if self.filters and self.source.commit:
            yield f"Files with the content filter {some_of(sorted(self.filters))} are as Git stores them."

    @property
    def empty_submodules(self) -> tuple[str, ...]:
        """Submodules that a workspace has as empty folders."""
        empty = [part.path for part in self.parts if isinstance(part, Submodule) and not part.files]
        return tuple(sorted([*empty, *self.source.contents.submodules.missing]))

    @property
    def prefix(self) -> Path:
        """The project's place in the repository; `.` at its top."""
        return self.folder.relative_to(self.repository.top)


async def inspect(
    project: Path, results_dir: Path, internal_git: Git, environ: Mapping[str, str], *, own: Collection[str] = ()
) -> Project:
    """Find out what is tested, which `check_folder` is to confirm; `own` files of the project are no part of it."""
    folder = _real(project)
    status = git.for_status(internal_git.within(folder), environ)
    repository = await _repository(folder, status)
    if repository is None:
        inside = internal_git.within(folder)
        _check_plain(folder, inside, await inside.attempt("rev-parse", "--is-inside-git-dir"))
        return Project(folder, WorkspaceSource(kind="copy"), Repository(folder, folder))
    state = await _state_of(repository, results_dir, status, own)
    return Project(folder, state, repository, repository.common_dir, state.commit or "")


def _real(path: Path) -> Path:
    with suppress(ValueError):  # a `.git` file may name anything
        return Path(os.path.realpath(path))
    return path


async def _repository(folder: Path, status: Git) -> Repository | None:
    """The repository that git finds around a folder, with its own checkout settings."""
    options = ("-z", "--show-scope", "--show-origin", "--get-regexp", SETTINGS)
    fields = os.fsdecode((await status.attempt("config", *options)).stdout).split("\0")[:-1]
    if "zelda.configured\ntrue" not in fields:
        version = re.match(rb"git version ((\d+)\.(\d+))", await status("version"))
        if version and (int(version[2]), int(version[3])) < MIN_VERSION:
            needed = ".".join(map(str, MIN_VERSION))
            message = f"git {version[1].decode()} is too old: Zelda needs {needed} or newer."
            raise WorkspaceError(message, code="GIT_TOO_OLD")
    settings, overrides, files = dict[str, str](), dict(untrusted.GIT_SETTINGS), set[str]()
    for scope, origin, entry in zip(fields[::3], fields[1::3], fields[2::3], strict=False):
        name, equals, value = entry.partition("\n")
        if name.startswith("filter."):
            overrides[name] = "false" if name.endswith(".required") else ""
        elif scope in {"local", "worktree"}:
            files.add(origin.removeprefix("file:"))
            # A key alone means true.
            settings[name] = value if equals else "true"
    for top in untrusted.repositories(folder):
        own, *shared = map(_real, untrusted.git_folders(top))
        common_dir = shared[0] if shared else own
        if (common_dir / "config").is_file() and any(_real(top / file) == common_dir / "config" for file in files):
            tree = _real(own / settings.get("core.worktree", top))
            if tree != top:
                raise WorkspaceError(f"{folder} lies outside the work tree of its repository, {tree}.")
            settings = {name: value for name, value in settings.items() if re.fullmatch(CHECKOUT_SETTINGS, name)}
            return Repository(common_dir, top, own, settings, overrides)
    return None


def _check_plain(folder: Path, internal_git: Git, outcome: Captured) -> None:
    """Refuse to copy what is a repository, only a bare or damaged one, by what `git rev-parse` says."""
    # Before 2.38, git takes any folder for a repository that looks like one.
    if outcome.stdout == b"true\n" or b"cannot use bare repository" in outcome.stderr:
        where = f"{folder} is a repository without files, or lies in one (with HEAD, objects and refs)"
        message = f"{where}: the commit in there would be tested, and not the files around it."
        hint = "Run Zelda in a checkout. If your project holds HEAD, objects and refs as ordinary files, remove them."
        raise WorkspaceError(message, hint=hint, code="BARE_REPOSITORY")
    if outcome.exit_code != 0 and b"not a git repository (or any" not in outcome.stderr:
        raise internal_git.failure(("rev-parse",), outcome)
    for place in untrusted.repositories(folder):
        if outcome.exit_code == 0 or os.path.lexists(place / ".git" / "HEAD"):
            message = f"{place / '.git'} is not a repository that git can read."
            raise WorkspaceError(message, hint="Try git status there.")


async def _state_of(repository: Repository, results_dir: Path, status: Git, own: Collection[str]) -> WorkspaceSource:
    """The commit and whether anything differs from it: changed, staged or new files that git does not ignore."""
    # Zelda's own results do not count, nor suites and configuration, which are read as they lie there, nor what lies
    # inside submodules. No command that the user has configured is run: a file under a content filter is compared as it
    # is, and counts as changed if git is in doubt about it.
    pathspecs = [*all_but(results_dir, repository.top), *(f":(exclude,literal){name}" for name in sorted(own))]
    options = ("--porcelain=v2", "--branch", "-z", "-unormal", "--ignore-submodules=dirty", "--no-renames")
    places = {"GIT_DIR": str(repository.git_dir), "GIT_WORK_TREE": str(repository.top)}
    quiet = status.within(status.cwd, **places, **untrusted.git_variables(repository.overrides))
    lines = (await quiet("status", *options, "--", *pathspecs)).split(b"\0")
    headers = dict(line[2:].split(b" ", 1) for line in lines if line.startswith(b"# "))
    commit, head = headers[b"branch.oid"].decode(), headers[b"branch.head"].decode("utf-8", "replace")
    if commit == "(initial)":
        message = "The repository has no commit yet: make one, if only by `git commit --allow-empty -m start`."
        raise WorkspaceError(message, code="NO_COMMIT")
    named = ((line, FIELDS.get(line[:1])) for line in lines)
    changed = tuple(os.fsdecode(line.split(b" ", number)[number]) for line, number in named if number)
    branch = None if head == "(detached)" else head
    return WorkspaceSource(kind="worktree", commit=commit, branch=branch, dirty=bool(changed), changed=changed)


def all_but(results_dir: Path, top: Path) -> list[str]:
    """Pathspecs of the whole tree without Zelda's own results."""
    results = _real(results_dir)
    inside = results.is_relative_to(top)
    return [":(top)", *([f":(top,exclude,literal){results.relative_to(top)}"] if inside else [])]


def check_folder(project: Project, *, is_base: bool) -> None:
    """Refuse to test a folder that the tested commit does not have."""
    prefix = f"{project.prefix.as_posix()}/"
    if project.prefix == Path() or any(file.path.startswith(prefix) for file in project.files):
        return
    if is_base:
        raise WorkspaceError(f"The folder {prefix} is not in {(project.source.commit or '')[:7]}.", code=UNAVAILABLE)
    message = f"The folder {prefix} is not in the last commit, and what is tested is a commit."
    hint = "Commit the folder, or let `zelda run` without --commit test it as it is."
    raise WorkspaceError(message, hint=hint, code="NOT_COMMITTED")


@dataclass(frozen=True)
class BaseOrder:
    """Which commit is wanted: a branch, a tag, a commit, or an expression like `HEAD~1`."""

    ref: str
    fetch: Callable[[Git, str], Awaitable[None]] | None = None
    """Fetches a commit that is not whole here into an empty bare repository, to which git is set; or raises why not."""


UNKNOWN_COMMIT_HINT = (
    "Give a branch, a tag, a commit or HEAD~1; `git fetch` brings what only the server has, and in a shallow clone "
    "`git fetch --unshallow` older commits."
)


async def at_commit(project: Project, order: BaseOrder, folder: Path, internal_git: Git) -> Project:
    """The project as it is in another commit: found where it lies, or fetched into a repository in a new folder."""
    # A commit is named by its hash, so git checks what it is handed.
    if project.source.commit is None:
        message = f"{project.folder} is no git repository, so it has no commit {order.ref}."
        raise WorkspaceError(message, hint="Make it one with git init, and commit.", code=UNAVAILABLE)
    here, commit = internal_git.within(project.folder), order.ref
    if not COMMIT.fullmatch(commit):
        known = await git.read_commit(project.folder, internal_git.environment, commit)
        if known is None:
            message = f"There is no commit {here.redact(ascii(commit))} in this repository."
            raise WorkspaceError(message, hint=UNKNOWN_COMMIT_HINT, code=UNAVAILABLE)
        commit = known.sha
    source = project.source.replace(commit=commit, branch=None, dirty=False, changed=(), parent=None, left_out=())
    based = replace(project, source=source, commit=commit)
    if await _is_whole(here, commit):
        return based
    if order.fetch is None:
        hint = "`git fetch` it, or `git fetch --unshallow` in a shallow clone."
        message = f"The commit {commit[:7]} is not in this repository with all its files."
        raise WorkspaceError(message, hint=hint, code=UNAVAILABLE)
    git.create_repository(folder, commit)
    there = internal_git.within(folder, GIT_DIR=str(folder))
    await order.fetch(there, commit)
    # A server may have handed over less than all.
    if not await _is_whole(there, commit):
        raise WorkspaceError(f"What was fetched of {commit[:7]} is not whole.", code=UNAVAILABLE)
    return replace(based, objects=folder)


async def _is_whole(git: Git, commit: str) -> bool:
    """Whether all files of a commit are there: a shallow or partial clone may know of it and lack them."""
    return (await git.attempt("rev-list", "--objects", "--quiet", "--no-walk", commit)).exit_code == 0
