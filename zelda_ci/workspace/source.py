"""What the user's project is: a commit in a repository, or a plain folder. Nothing of it is ever written."""

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from zelda_ci.domain.workspace import WorkspaceSource
from zelda_ci.errors import WorkspaceError
from zelda_ci.files import untrusted
from zelda_ci.process import git_settings
from zelda_ci.workspace import git
from zelda_ci.workspace.git import Git, TreeFile
from zelda_ci.workspace.large_files import LargeFile

# Settings on which the bytes of a checkout depend.
CHECKOUT_SETTINGS = r"^core\.(autocrlf|eol|symlinks|filemode|ignorecase|precomposeunicode|longpaths)$"
SETTINGS = rf"{CHECKOUT_SETTINGS}|^filter\.|^{git.CONFIGURED}$"
# What ends with a path comes last, since that may hold a line break.
QUESTIONS = ("--is-inside-git-dir", "--show-cdup", "--git-common-dir")
RESULTS = ".zelda"
UNAVAILABLE = "BASE_UNAVAILABLE"


@dataclass(frozen=True)
class Repository:
    """Where a commit comes from; a folder without Git stands for itself."""

    common_dir: Path
    top: Path
    settings: Mapping[str, str] = field(default_factory=dict)
    """Those of `CHECKOUT_SETTINGS` that the repository sets."""
    overrides: Mapping[str, str] = field(default_factory=dict)
    """Settings in place of all that the user has configured to be run."""


@dataclass(frozen=True)
class Submodule:
    """A submodule that is checked out."""

    path: str
    """From the top of the tested tree."""
    name: str
    """The commit that the tree around it names."""
    commit: str
    """The commit whose files take the place: another one only where the working tree is tested."""
    tree: str
    files: tuple[TreeFile, ...]
    """The files of the tree, by their paths in it."""
    repository: Path
    """Where git finds them."""


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
    """Files of the tested commit."""
    parts: tuple[Submodule | LargeFile, ...] = ()
    """What the checkout has of what the tested commit only names, sorted by path."""
    notes: tuple[str, ...] = ()
    """What is not in a snapshot, in sentences."""

    @property
    def identity(self) -> Path:
        """What makes two runs share a store: the repository, whichever worktree of it they start from."""
        return self.repository.common_dir

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
    project: Path, results_dir: Path, plumbing: Git, environ: Mapping[str, str], *, own: Collection[str] = ()
) -> Project:
    """Find out what is tested, which `check_folder` is to confirm; `own` files of the project are no part of it.

    Raises:
        WorkspaceError: It cannot be: no commit, a bare repository, a folder that is not committed, …
    """
    folder = _real(project)
    if not folder.is_dir():
        raise WorkspaceError(f"{project} is not a folder.")
    ask = plumbing.within(folder)
    status = git.for_status(ask, environ)
    settings = await read_settings(status)
    repository = await _repository(folder, ask, *settings)
    if repository is None:
        return Project(folder, WorkspaceSource(kind="copy"), Repository(folder, folder))
    if not folder.is_relative_to(repository.top):
        raise WorkspaceError(f"{folder} lies outside the work tree of its repository, {repository.top}.")
    state = await state_of(repository, results_dir, status, own)
    return Project(folder, state, repository, repository.common_dir, state.commit or "")


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


async def _repository(
    folder: Path, ask: Git, settings: Mapping[str, str], overrides: Mapping[str, str]
) -> Repository | None:
    outcome = await ask.attempt("rev-parse", *QUESTIONS)
    if outcome.exit_code != 0 and b"cannot use bare repository" not in outcome.stderr:
        if b"not a git repository (or any" not in outcome.stderr:
            raise ask.failure(("rev-parse",), outcome)
        _check_plain(folder)
        return None
    inside, _, answers = outcome.stdout.removesuffix(b"\n").partition(b"\n")
    # Before 2.38, git takes any folder for a repository that looks like one.
    if inside != b"false":
        raise WorkspaceError(
            f"{folder} is a repository without files, or lies in one (with HEAD, objects and refs): the commit in "
            "there would be tested, and not the files around it.",
            hint="Run Zelda in a checkout. If your project holds HEAD, objects and refs as ordinary files, remove "
            "them.",
            code="BARE_REPOSITORY",
        )
    up, common_dir = map(os.fsdecode, answers.split(b"\n", 1))
    return Repository(_real(folder / common_dir), _real(folder / up), settings, overrides)


async def read_settings(ask: Git) -> tuple[dict[str, str], dict[str, str]]:
    """Read a repository's own checkout settings, and make settings that override every command that is configured.

    Raises:
        WorkspaceError: Git is too old.
    """
    answer = (await ask.attempt("config", "-z", "--show-scope", "--get-regexp", SETTINGS)).stdout
    fields = answer.decode("utf-8", "surrogateescape").split("\0")[:-1]
    if not any(entry.startswith(git.CONFIGURED) for entry in fields):
        git.check_version(await ask("version"))
    own, overrides = dict[str, str](), dict(git_settings.SETTINGS)
    for scope, entry in zip(fields[::2], fields[1::2], strict=False):
        name, equals, value = entry.partition("\n")
        if name.startswith("filter."):
            overrides[name] = "false" if name.endswith(".required") else ""
        elif name.startswith("core.") and scope in {"local", "worktree"}:
            # A key alone means true.
            own[name] = value if equals else "true"
    return own, overrides


def _check_plain(folder: Path) -> None:
    """Refuse to copy what is a repository, only a damaged one."""
    for place in untrusted.repositories(folder):
        if os.path.lexists(place / ".git" / "HEAD"):
            raise WorkspaceError(
                f"{place / '.git'} is not a repository that git can read.", hint="Try git status there."
            )


async def state_of(repository: Repository, results_dir: Path, ask: Git, own: Collection[str]) -> WorkspaceSource:
    """The commit and whether anything differs from it: changed, staged or new files that git does not ignore.

    Zelda's own results do not count, nor suites and configuration, which are read as they lie there, nor what happened
    inside submodules. No command that the user has configured is run: a file under a content filter is compared as it
    is, and counts as changed if git is in doubt about it.
    """
    pathspecs = [*all_but(results_dir, repository.top), *(f":(exclude,literal){name}" for name in sorted(own))]
    options = ("--porcelain=v2", "--branch", "-z", "-unormal", "--ignore-submodules=dirty", "--no-renames")
    quiet = ask.within(ask.cwd, **git_settings.variables(repository.overrides))
    status = await quiet("status", *options, "--", *pathspecs)
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


def check_folder(project: Project, *, is_base: bool) -> None:
    """Refuse to test a folder that the tested commit does not have.

    Raises:
        WorkspaceError: It is not in it.
    """
    prefix = f"{project.prefix.as_posix()}/"
    if project.prefix == Path() or any(file.path.startswith(prefix) for file in project.files):
        return
    if is_base:
        raise WorkspaceError(f"The folder {prefix} is not in {(project.source.commit or '')[:12]}.", code=UNAVAILABLE)
    raise WorkspaceError(
        f"The folder {prefix} is not in the last commit, and what is tested is a commit.",
        hint="Commit the folder, or let `zelda run` without --commit test it as it is.",
        code="NOT_COMMITTED",
    )
