"""What the user's project is: a commit in a repository, or a plain folder. Nothing of it is ever written."""

import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path

from zelda_ci.domain.workspace import WorkspaceSource
from zelda_ci.errors import WorkspaceError
from zelda_ci.files import untrusted
from zelda_ci.process import git_settings
from zelda_ci.workspace import git
from zelda_ci.workspace.git import Git
from zelda_ci.workspace.large_files import LargeFile

# Settings on which the bytes of a checkout depend.
CHECKOUT_SETTINGS = r"^core\.(autocrlf|eol|symlinks|filemode|ignorecase|precomposeunicode|longpaths)$"

QUESTIONS = ("--show-object-format", "--show-cdup", "--git-common-dir")


@dataclass(frozen=True)
class Repository:
    """Where a commit comes from."""

    common_dir: Path
    top: Path
    object_format: str
    settings: Mapping[str, str]
    """Those of `CHECKOUT_SETTINGS` that the repository sets."""


@dataclass(frozen=True)
class TreeParts:
    """A commit, and what the checkout has of what it only names."""

    path: str
    """Where its files belong in the tree around it; empty for the tested commit itself."""
    gitlink: str
    """The commit that the tree around it names."""
    commit: str
    """The commit whose files take the place: another one only where the working tree is tested."""
    repository: Path
    """Where git finds that."""
    files: tuple[LargeFile, ...] = ()
    submodules: "tuple[TreeParts, ...]" = ()

    @cached_property
    def key(self) -> str:
        """The same for two with the same contents; empty where there are none."""
        if not (self.files or self.submodules):
            return ""
        return sha256("\n".join(_identity(self)).encode("utf-8", "surrogateescape")).hexdigest()[:12]


def _identity(parts: TreeParts) -> Iterator[str]:
    yield f"{parts.path!r} {parts.commit}"
    yield from (f"{file.pointer.path!r} {file.pointer.digest}" for file in parts.files)
    for part in parts.submodules:
        yield from _identity(part)
    yield "end"


@dataclass(frozen=True)
class Project:
    """The project as it is tested; a folder without a repository, as a snapshot in one of Zelda's own."""

    folder: Path
    source: WorkspaceSource
    repository: Repository | None = None
    objects: Path | None = None
    """The repository of Zelda's own that holds the tested commit, where the user's does not."""
    held: str | None = None
    """The commit in it that has the tested one's tree, where it could not have the tested one itself."""
    parts: TreeParts | None = None
    """What the checkout has of what the tested commit only names."""
    notes: tuple[str, ...] = ()
    """What is not in a snapshot, in sentences."""

    @property
    def identity(self) -> Path:
        """What makes two runs share a store: the repository, whichever worktree of it they start from."""
        return self.repository.common_dir if self.repository and self.source.commit else self.folder

    @property
    def checkout(self) -> str | None:
        """The commit that workspaces check out."""
        return self.held or self.source.commit

    @property
    def prefix(self) -> Path:
        """The project's place in the repository; `.` at its top."""
        return self.folder.relative_to(self.repository.top) if self.repository else Path()


async def inspect(
    project: Path, results_dir: Path, plumbing: Git, environ: Mapping[str, str], *, own: Collection[str] = ()
) -> Project:
    """Find out what is tested, which `check_committed` is to confirm; `own` files of the project are no part of it.

    Raises:
        WorkspaceError: It cannot be: no commit, a bare repository, a folder that is not committed, …
    """
    folder = _real_folder(project)
    ask = plumbing.within(folder)
    git.check_version(await ask("version"))
    repository = await _repository(folder, ask)
    if repository is None:
        return Project(folder, WorkspaceSource(kind="copy", commit=None, branch=None, dirty=False))
    if not folder.is_relative_to(repository.top):
        raise WorkspaceError(f"{folder} lies outside the work tree of its repository, {repository.top}.")
    source = await state_of(repository, results_dir, git.for_status(ask, environ), own)
    return Project(folder, source, repository)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _real_folder(project: Path) -> Path:
    folder = _real(project)
    if not folder.is_dir():
        raise WorkspaceError(f"{project} is not a folder.")
    return folder


async def _repository(folder: Path, ask: Git) -> Repository | None:
    outcome = await ask.attempt("rev-parse", *QUESTIONS)
    if outcome.exit_code != 0:
        if b"cannot use bare repository" in outcome.stderr:
            raise _bare(folder)
        if b"not a git repository (or any" not in outcome.stderr:
            raise ask.failure(("rev-parse",), outcome)
        _check_plain(folder)
        return None
    object_format, up, common_dir = outcome.stdout.removesuffix(b"\n").split(b"\n", 2)
    git_dir = (await ask("rev-parse", "--absolute-git-dir")).removesuffix(b"\n")
    # Before 2.38, git takes any folder for a repository that looks like one.
    if folder.is_relative_to(_real(Path(os.fsdecode(git_dir)))):
        raise _bare(folder)
    settings = await ask.attempt("config", "-z", "--get-regexp", CHECKOUT_SETTINGS)
    return Repository(
        common_dir=_real(folder / os.fsdecode(common_dir)),
        top=_real(folder / os.fsdecode(up)),
        object_format=object_format.decode(),
        settings=dict(_setting(entry) for entry in settings.stdout.decode("utf-8", "replace").split("\0") if entry),
    )


def _bare(folder: Path) -> WorkspaceError:
    return WorkspaceError(
        f"{folder} is a repository without files, or lies in one (with HEAD, objects and refs): the commit in there "
        "would be tested, and not the files around it.",
        hint="Run Zelda in a checkout. If your project holds HEAD, objects and refs as ordinary files, remove them.",
        code="BARE_REPOSITORY",
    )


def _check_plain(folder: Path) -> None:
    """Refuse to copy what is a repository, only a damaged one."""
    for place in untrusted.repositories(folder):
        if os.path.lexists(place / ".git" / "HEAD"):
            raise WorkspaceError(
                f"{place / '.git'} is not a repository that git can read.", hint="Try git status there."
            )


def _setting(entry: str) -> tuple[str, str]:
    """A key alone means true."""
    name, _, value = entry.partition("\n")
    return name, value if "\n" in entry else "true"


async def state_of(repository: Repository, results_dir: Path, ask: Git, own: Collection[str]) -> WorkspaceSource:
    """The commit and whether anything differs from it: changed, staged or new files that git does not ignore.

    Zelda's own results do not count, nor suites and configuration, which are read as they lie there, nor what happened
    inside submodules. No command that the user has configured is run: a file under a content filter is compared as it
    is, and counts as changed if git is in doubt about it.
    """
    pathspecs = [*all_but(results_dir, repository.top), *(f":(exclude,literal){name}" for name in sorted(own))]
    options = ("--porcelain=v2", "--branch", "-z", "-unormal", "--ignore-submodules=dirty", "--no-renames")
    status = await (await without_commands(ask))("status", *options, "--", *pathspecs)
    lines = status.split(b"\0")
    headers = dict(line[2:].split(b" ", 1) for line in lines if line.startswith(b"# "))
    commit, branch = headers[b"branch.oid"].decode(), headers[b"branch.head"].decode("utf-8", "replace")
    if commit == "(initial)":
        raise WorkspaceError(
            "The repository has no commit yet, and what is tested is a commit.",
            hint="Commit the project first: it needs one commit.",
            code="NO_COMMIT",
        )
    changed = tuple(filter(None, map(_changed, lines)))
    return WorkspaceSource(
        kind="worktree",
        commit=commit,
        branch=None if branch == "(detached)" else branch,
        dirty=bool(changed),
        changed=changed,
    )


# Fields before the path, by the first letter of a line of `git status --porcelain=v2`.
FIELDS = {b"1": 8, b"u": 10, b"?": 1}


def _changed(line: bytes) -> str | None:
    """The file that a line is about."""
    number = FIELDS.get(line[:1])
    return os.fsdecode(line.split(b" ", number)[number]) if number else None


def all_but(results_dir: Path, top: Path) -> list[str]:
    """Pathspecs of the whole tree without Zelda's own results."""
    results = _real(results_dir)
    inside = results.is_relative_to(top)
    return [":(top)", *([f":(top,exclude,literal){results.relative_to(top)}"] if inside else [])]


async def without_commands(ask: Git, more: Mapping[str, str] | None = None) -> Git:
    """Git with every configured command overridden by none, and with more settings."""
    filters = (await ask.attempt("config", "-z", "--name-only", "--get-regexp", r"^filter\.")).stdout.split(b"\0")
    values = {os.fsdecode(name): "false" if name.endswith(b".required") else "" for name in filters if name}
    return ask.within(ask.cwd, **git_settings.variables({**values, **git_settings.SETTINGS, **(more or {})}))


async def check_committed(project: Project, plumbing: Git) -> None:
    """Refuse to test a folder that the tested commit does not have.

    Raises:
        WorkspaceError: It is not in it.
    """
    if project.prefix == Path():
        return
    place = project.objects
    ask = plumbing.within(place, GIT_DIR=str(place)) if place else plumbing.within(project.folder)
    outcome = await ask.attempt("rev-parse", "--verify", "-q", f"{project.checkout}:{project.prefix}/")
    if outcome.exit_code != 0:
        raise WorkspaceError(
            f"The folder {project.prefix}/ is not in the last commit, and what is tested is a commit.",
            hint="Commit the folder, or let `zelda run` without --commit test it as it is.",
            code="NOT_COMMITTED",
        )
