"""Git as Zelda runs it, and bare repositories of its own, which may borrow the objects of others.

Its environment is built from nothing, its configuration Zelda's only, and errors are sentences.
"""

import errno
import logging
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from zelda_ci import process
from zelda_ci.errors import WorkspaceError
from zelda_ci.redact import Redactor

log = logging.getLogger(__name__)

# Of what a command prints.
MAX_BYTES = 256 << 20
# Of what is asked about a repository of the user's.
ANSWER_SECONDS = 30.0

NO_SPACE = "NO_SPACE"
MAKE_ROOM = "Make room, or set ZELDA_WORKSPACES to a folder of your own on another disk."
# Git does not always say why it could not write.
DISK_FULL = (
    *map(os.strerror, (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)), "Out of diskspace", "unable to write", "write error",
    "failed to write", "could not write", "unable to create temporary file",
)  # fmt: skip

# Objects, and nothing beside them.
FETCH = ("fetch", "-q", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--no-auto-maintenance")
# In place of the user's configuration, and of the system's where the user's own counts.
INTERNAL, STATUS = (Path(__file__).with_name(f"{name}.gitconfig") for name in ("internal", "status"))

# Of bare repositories of Zelda's own.
REPOSITORY = {
    "core.repositoryformatversion": "0", "core.filemode": "true", "core.logallrefupdates": "true",
    "core.hookspath": "/dev/null", "core.bare": "true", "gc.auto": "0", "maintenance.auto": "false",
}  # fmt: skip
NONE: Mapping[str, str] = {}
SHA256 = {"core.repositoryformatversion": "1", "extensions.objectformat": "sha256"}


@dataclass(frozen=True)
class Git:
    """The git program with the environment of one purpose."""

    program: str
    environment: Mapping[str, str]
    redact: Redactor
    cwd: Path
    timeout_seconds: float = field(default=600.0, kw_only=True)

    def within(self, cwd: Path, **variables: str) -> "Git":
        """The same in another folder, with more variables."""
        return replace(self, cwd=cwd, environment={**self.environment, **variables})

    async def __call__(self, *arguments: str, stdin: bytes = b"", inherit: Sequence[int] = ()) -> bytes:
        """Run a command that must succeed, and return what it printed; of one that fails, raise its last words."""
        outcome = await self.attempt(*arguments, stdin=stdin, inherit=inherit)
        if outcome.exit_code != 0 or outcome.truncated:
            raise self.failure(arguments, outcome)
        return outcome.stdout

    async def attempt(
        self, *arguments: str, stdin: bytes = b"", inherit: Sequence[int] = (), to: Path | None = None
    ) -> process.Captured:
        """Run a command that may fail, but must end in time; what it prints goes into the file `to`, if given."""
        argv, limit = [self.program, *arguments], self.timeout_seconds
        try:
            return await process.capture(
                argv, self.cwd, self.environment, limit, max_bytes=MAX_BYTES, input=stdin, inherit=inherit, to=to
            )
        except TimeoutError as error:
            raise WorkspaceError(f"git {_verb(arguments)} did not end in {self.timeout_seconds:.0f} s.") from error
        except OSError as error:
            raise WorkspaceError(f"git {_verb(arguments)} could not be run in {self.cwd}: {error.strerror}.") from error

    def failure(self, arguments: Sequence[str], outcome: process.Captured) -> WorkspaceError:
        """The error that a failed command means."""
        stderr = self.redact(outcome.stderr.decode("utf-8", "replace")).strip()
        log.info("git %s ended with %s: %s", _verb(arguments), outcome.exit_code, stderr)
        lines = re.sub(r":\n\s+", ": ", stderr).splitlines()
        full = [line for line in lines if any(sign in line for sign in DISK_FULL)]
        causes = full or [line for line in lines if line.startswith(("fatal: ", "error: "))] or lines
        reason = causes[0] if causes else f"exit code {outcome.exit_code}"
        code, hint = (NO_SPACE, MAKE_ROOM) if full else ("GIT_FAILED", None)
        return WorkspaceError(f"git {_verb(arguments)} failed: {reason}", hint=hint, code=code)


def prepare(folder: Path, environ: Mapping[str, str], redact: Redactor) -> Git:
    """Make the git of Zelda's own work in a folder: it knows the user's PATH and nothing else of the user."""
    path = environ.get("PATH", os.defpath)
    program = shutil.which("git", path=path)
    if program is None:
        raise WorkspaceError("git is not installed.", hint="Install git and try again.", code="GIT_MISSING")
    environment = {
        "PATH": path,
        # Its messages are compared with English ones.
        "LC_ALL": "C",
        "HOME": "/nonexistent",
        "GIT_CONFIG_GLOBAL": str(INTERNAL),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ATTR_NOSYSTEM": "1",
        # `git status` would otherwise write the index of the user's repository.
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        # In a partial clone, reading an object would reach for the network, with the user's credentials.
        "GIT_NO_LAZY_FETCH": "1",
        # What is tested is the commit itself, not what `refs/replace` says in its place.
        "GIT_NO_REPLACE_OBJECTS": "1",
        # A submodule or remote of the tested repository may name any address, and `ext::` runs a command.
        "GIT_ALLOW_PROTOCOL": "file",
        "GIT_DISCOVERY_ACROSS_FILESYSTEM": "1",
    }
    return Git(os.path.realpath(program), environment, redact, folder)


def for_status(internal_git: Git, environ: Mapping[str, str]) -> Git:
    """Git as the user has configured it, for the one question that depends on it: what is ignored, what is changed."""
    ours = {"GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "GIT_ATTR_NOSYSTEM"}
    environment = {name: value for name, value in internal_git.environment.items() if name not in ours}
    home = {name: environ[name] for name in ("HOME", "XDG_CONFIG_HOME") if name in environ}
    return replace(internal_git, environment={**environment, **home, "GIT_CONFIG_SYSTEM": str(STATUS)})


def configuration(settings: Mapping[str, str]) -> str:
    """Settings as git reads them in a file."""
    text = ""
    for setting, value in settings.items():
        section, name = setting.split(".", 1)
        escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        text += f'[{section}]\n\t{name} = "{escaped}"\n'
    return text


def _alternate(objects: Path) -> bytes:
    """A folder of objects as git reads it in a list; quoted only where needed, since other tools read them, too."""
    name = os.fsencode(objects)
    if not any(byte < 32 or byte in b'":' for byte in name):
        return name
    return b'"%b"' % b"".join(b"\\%03o" % byte if byte < 32 or byte in b'"\\' else bytes([byte]) for byte in name)


def create_repository(
    folder: Path, commit: str, settings: Mapping[str, str] = NONE, borrow: Path | None = None, cut: Path | None = None
) -> None:
    """Make an empty bare repository in a new folder: no remotes, no hooks, nothing of the user but settings."""
    # A commit that it will hold tells the format of names. One to borrow from is never written. `cut`, where it exists,
    # says where history is cut.
    format_of_names = SHA256 if len(commit) == 64 else {}
    with explained(folder):
        for place in ("refs/heads", "objects/info", "objects/pack", "info"):
            (folder / place).mkdir(parents=True)
        (folder / "HEAD").write_text("ref: refs/heads/main\n")
        (folder / "config").write_text(configuration({**REPOSITORY, **settings, **format_of_names}))
        if borrow is not None:
            borrow_from(folder, borrow)
        if cut and cut.exists():
            shutil.copyfile(cut, folder / "shallow")


def borrow_from(folder: Path, *objects: Path) -> None:
    """Let a repository of ours find the objects of others, whatever the names of the folders."""
    lines = dict.fromkeys(_alternate(each) + b"\n" for each in objects)
    with explained(folder):
        (folder / "objects" / "info" / "alternates").write_bytes(b"".join(lines))


def borrowing(git: Git, *repositories: Path) -> Git:
    """Git on a repository of ours that also finds the objects of others: their settings and hooks are nothing to it."""
    folders = dict.fromkeys(_alternate(repository / "objects") for repository in repositories)
    return git.within(git.cwd, GIT_ALTERNATE_OBJECT_DIRECTORIES=os.fsdecode(b":".join(folders)))


def _verb(arguments: Sequence[str]) -> str:
    """The command's name, without options and paths."""
    plain = (word for word, before in zip(arguments, ("", *arguments), strict=False) if before != "-c")
    return next((word for word in plain if not word.startswith("-")), "")


async def ask(folder: Path, environ: Mapping[str, str], *question: str, stdin: bytes = b"") -> bytes | None:
    """Git's answer about a repository of the user's; absent where it has none, or there is no git."""
    with suppress(WorkspaceError):
        git = replace(prepare(folder, environ, Redactor()), timeout_seconds=ANSWER_SECONDS)
        outcome = await git.attempt(*question, stdin=stdin)
        return outcome.stdout if outcome.exit_code == 0 else None
    return None


class CommitNames(NamedTuple):
    """A commit by its full name; its parents are those of its object, the only ones in a clone of depth 1."""

    sha: str
    parents: tuple[str, ...]


async def read_commit(folder: Path, environ: Mapping[str, str], name: str = "HEAD") -> CommitNames | None:
    """A commit; nothing where there is no repository, no such commit or no git."""
    answer = await ask(folder, environ, "cat-file", "--batch", stdin=os.fsencode(f"{name}^{{commit}}\n"))
    found = re.match(r"(\w+) commit \d+\ntree \w+\n((parent \w+\n)*)", (answer or b"").decode("latin-1"))
    return CommitNames(found[1], tuple(found[2].split()[1::2])) if found else None


# Modes of entries that are no regular files, and of what is not there.
LINK, SUBMODULE, ABSENT = "120000", "160000", "000000"


@dataclass(frozen=True)
class TreeFile:
    """A file of a commit's tree, by its path from the top, with forward slashes."""

    path: str
    mode: str
    content: str
    """Git's name for its content."""


def tree_files(listing: bytes) -> Iterator[TreeFile]:
    """Read the files that `git ls-tree -z` lists."""
    for about, _, path in (entry.partition(b"\t") for entry in listing.split(b"\0")[:-1]):
        mode, _, content = about.decode().split(" ")
        yield TreeFile(os.fsdecode(path), mode, content)


def split_names(listing: bytes) -> list[str]:
    """Read names as git prints them, each with a zero byte at its end."""
    return os.fsdecode(listing).split("\0")[:-1]


def join_names(names: Iterable[str]) -> bytes:
    """Write names as git reads them, each with a zero byte at its end."""
    return b"".join(os.fsencode(name) + b"\0" for name in names)


class RawChange(NamedTuple):
    """A file's mode and git's name for its content, before and after; zeros where there is no file."""

    old_mode: str
    mode: str
    old_content: str
    content: str


@contextmanager
def explained(place: Path) -> Iterator[None]:
    """Raise WorkspaceError, with a hint, for a full disk, a missing permission or what lies in the way.

    It names the file, or the `place` where the system names none.
    """
    try:
        yield
    except OSError as error:
        path = error.filename2 or error.filename
        where = os.fsdecode(path) if isinstance(path, (str, bytes)) else place
        elsewhere = "or set ZELDA_WORKSPACES to another folder of your own."
        hint: str | None = None
        match error.errno:
            case errno.ENOSPC | errno.EDQUOT | errno.EFBIG:
                hint = MAKE_ROOM
            case errno.EEXIST | errno.EISDIR | errno.ENOTDIR | errno.ELOOP | errno.ENXIO:
                in_the_way = "Something else lies there or in place of a folder above: move it away and start again,"
                hint = f"{in_the_way} {elsewhere}"
            case errno.EACCES | errno.EPERM | errno.EROFS:
                hint = f"Make it writable, {elsewhere}"
            case _:
                pass
        raise WorkspaceError(f"The workspace cannot be used: {where}: {error.strerror or error}.", hint=hint) from error
