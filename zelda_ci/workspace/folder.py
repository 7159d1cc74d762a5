"""Where workspaces lie, private folders of runs and their environment, and the end of what a dead Zelda left.

All are in a folder outside the project, with nothing above it that would steer a session. Each run has one with a lock
that shows whether its Zelda lives. The environment is built from nothing by an allow-list: no credential slips in.
"""

import hashlib
import json
import os
import re
import secrets
import shutil
import signal
import stat
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

import anyio

from zelda_ci.domain.kinds import KINDS, ItemKind
from zelda_ci.domain.suite import ExecutionSettings
from zelda_ci.domain.workspace import MARKER
from zelda_ci.errors import LockError, WorkspaceError
from zelda_ci.files import locks
from zelda_ci.process import removal
from zelda_ci.sandbox import programs
from zelda_ci.sandbox.readable_paths import CERTIFICATES, SDKS, TOOLCHAINS
from zelda_ci.sandbox.run_folder import WorkspaceFolder, read_json_object
from zelda_ci.workspace.git import configuration

TIMEOUT_SECONDS = 2.0
# Looks one after another that find none of the processes looked for: on a busy machine, some other ends amid each.
LOOKS = 3
# PF_EXITING of the kernel.
EXITING = 4
# Longer than any run lives.
DOUBTFUL_SECONDS = 86_400.0
# Folders of runs; repositories of Zelda's own, which hold what is tested and what is measured.
RUNS, TREES = "runs", "trees"

# What Claude Code reads from every folder above its own. Not the rest of `.claude`: skills, agents, commands and
# settings of an outer folder stay out of a repository's session.
STEERING = (*KINDS[ItemKind.MEMORY].files, *KINDS[ItemKind.MCP_SERVER].files, ".claude/CLAUDE.md", ".claude/rules")

TAKEN_OVER = frozenset({
    "COLORTERM", "LANG", "LANGUAGE", "LOGNAME", "TERM", "TZ", "USER",
    # Without a certificate authority of one's own, nothing could be installed.
    *CERTIFICATES, *SDKS,
})  # fmt: skip

GIT_SETTINGS = {
    "user.name": "Zelda CI", "user.email": "zelda-ci@localhost", "init.defaultBranch": "main",
    "commit.gpgSign": "false", "gc.auto": "0",
}  # fmt: skip


def choose_location(project: Path, environ: Mapping[str, str], *, passable: bool = False) -> Path:
    """The base folder of all workspaces of this user, created; the first candidate that is suitable."""
    # Runs that are other users' must be able to pass through to it.
    explicit, problems = environ.get("ZELDA_WORKSPACES"), list[str]()
    for candidate in [project / Path(explicit).expanduser()] if explicit else _candidates(environ):
        # Of a shared folder, a link that anybody could have put there is refused.
        base = Path(os.path.realpath(candidate if explicit else candidate.parent), "" if explicit else candidate.name)
        problem = _problem(base, project, passable=passable)
        if problem is None:
            return base
        problems.append(problem)
    subject = "ZELDA_WORKSPACES cannot be used" if explicit else "No place for workspaces"
    hint = "Set ZELDA_WORKSPACES to a folder of your own outside the project."
    raise WorkspaceError(f"{subject}: {'; '.join(problems)}.", hint=hint, code="WORKSPACE_LOCATION")


def project_folder(base: Path, identity: Path) -> Path:
    """The folder of one project in the base: a short name, since paths of sockets end at 108 bytes."""
    return base / hashlib.sha256(os.fsencode(os.path.realpath(identity))).hexdigest()[:8]


def project_folders(base: Path) -> list[Path]:
    """The folders of all projects that have had workspaces here, or were looked at before they had one."""
    return sorted(entry for entry in base.iterdir() if re.fullmatch(r"[0-9a-f]{8}", entry.name))


def _candidates(environ: Mapping[str, str]) -> Iterator[Path]:
    runner, cache, home = (environ.get(name) for name in ("RUNNER_TEMP", "XDG_CACHE_HOME", "HOME"))
    if runner:
        yield Path(runner, "zelda")
    if cache or home:
        yield Path(cache or Path(home or "", ".cache"), "zelda")
    for folder in dict.fromkeys((environ.get("TMPDIR") or "/tmp", "/tmp", "/var/tmp")):  # noqa: S108  # made private below
        yield Path(folder, f"zelda-{os.getuid()}")


def _problem(base: Path, project: Path, *, passable: bool) -> str | None:
    """Why the folder cannot be used, in a few words; creates it where nothing speaks against it."""
    if not base.is_absolute() or not str(base).isprintable():
        return f"{str(base)!r} is not a plain absolute path"
    real = Path(os.path.realpath(project))
    if base.is_relative_to(real) or real.is_relative_to(base):
        return f"{base} and the project lie in one another"
    steering = (folder / name for folder in base.parents for name in STEERING)
    if found := next(filter(os.path.lexists, steering), None):
        return f"Claude Code would read {found} in every workspace in {base}"
    closed = (folder for folder in base.parents if folder.exists() and not folder.stat().st_mode & 0o001)
    if passable and (folder := next(closed, None)):
        return f"{folder} is closed to other users, and runs are other users' here"
    try:
        base.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = base.lstat()
        objections = {
            "is not a folder": not stat.S_ISDIR(status.st_mode),
            "belongs to another user": status.st_uid != os.geteuid(),
            "can be written by other users": bool(status.st_mode & 0o022),
            "holds files that steer Claude Code": any(os.path.lexists(base / name) for name in STEERING),
            "cannot be written": not os.access(base, os.W_OK | os.X_OK),
            "allows no program to be run (mounted noexec)": bool(os.statvfs(base).f_flag & os.ST_NOEXEC),
        }
    except OSError as error:
        return f"{base}: {error.strerror}"
    return next((f"{base} {objection}" for objection, applies in objections.items() if applies), None)


async def end_orphans(run_folder: Path) -> None:
    """Kill the processes that bear the mark of a run and wait until they are gone."""
    mark, looks, known = os.fsencode(f"{MARKER}={run_folder}"), LOOKS, set[int]()
    with anyio.move_on_after(TIMEOUT_SECONDS):
        while looks:
            found, gone = _signal(signal.SIGKILL, lambda pid: mark in _environment(pid).split(b"\0"))
            looks, known = LOOKS if found else looks - 1 if gone - known else 0, gone
            if looks:
                await anyio.sleep(0.01)


def kill_supervised() -> None:
    """Have every supervisor that this process has started kill at once what it supervises."""
    supervisor = os.fsencode(programs.START)

    def is_ours(pid: int) -> bool:
        parent = _read(pid, "stat").rpartition(b")")[2].split()[1]
        return int(parent) == os.getpid() and supervisor in _read(pid, "cmdline").split(b"\0")

    _signal(signal.SIGQUIT, is_ours)


def _environment(pid: int | str) -> bytes:
    """Read the variables of a process; raises BlockingIOError amid execve, where the kernel shows none.

    Raises ProcessLookupError of one that ends or has ended, also where nobody has buried it yet.
    """
    refusal = None
    try:
        if environment := _read(pid, "environ"):
            return environment
    except (PermissionError, ProcessLookupError) as error:
        # Of a process without memory newer kernels say the latter, and for all but root the former.
        refusal = error
    # proc_pid_stat(5): flags, num_threads, vsize, env_start, env_end.
    fields = _read(pid, "stat").rpartition(b")")[2].split()
    flags, threads, memory, start, end = (int(fields[place]) for place in (6, 17, 20, 47, 48))
    if memory and refusal:
        raise refusal
    if memory and (not start or start != end):
        raise BlockingIOError
    if flags & EXITING and threads == 1:
        raise ProcessLookupError
    if memory or threads == 1:
        return b""
    # Its first thread is dead, and others run.
    others = [path for path in Path(f"/proc/{pid}/task").iterdir() if path.name != str(pid)]
    return _environment(f"{pid}/task/{others[-1].name}")


def _signal(number: int, is_meant: Callable[[int], bool]) -> tuple[int, set[int]]:
    """Send a signal to each other process that fits; returns how many there are, and which have ended."""
    found, gone = 0, set[int]()
    with suppress(FileNotFoundError):  # no /proc: a system without this means
        for pid in map(int, filter(str.isdecimal, os.listdir("/proc"))):  # noqa: PTH208  # there may be thousands
            try:
                if pid == os.getpid() or not is_meant(pid):
                    continue
                handle = os.pidfd_open(pid)
                try:
                    # Once more: the number may have come to mean another process, and now it cannot.
                    if is_meant(pid):
                        signal.pidfd_send_signal(handle, number)
                        found += 1
                finally:
                    os.close(handle)
            except BlockingIOError:
                found += 1
            except (FileNotFoundError, ProcessLookupError):
                # Only another look shows what it started before it ended.
                gone.add(pid)
            except (OSError, IndexError):
                continue
    return found, gone


def _read(pid: int | str, name: str) -> bytes:
    with open(f"/proc/{pid}/{name}", "rb", buffering=0) as file:  # noqa: PTH123  # most of the time of a look
        return file.read()


@asynccontextmanager
async def claimed(project_home: Path, run_id: str | None = None) -> AsyncIterator[WorkspaceFolder]:
    """Make a folder that no session has seen, of a run or for a short while; it ends with its processes on leaving."""
    path, number = claim(project_home, RUNS if run_id else TREES)
    try:
        if run_id:
            for name in ("home", "tmp"):
                (path / name).mkdir(mode=0o700)
            # For people: who holds a run is told by its lock alone.
            started = datetime.now(UTC).isoformat(timespec="seconds")
            (path / "meta.json").write_text(json.dumps({"runId": run_id, "pid": os.getpid(), "startedAt": started}))
        yield WorkspaceFolder(path, number)
    finally:
        with anyio.CancelScope(shield=True):
            await _end(path, project_home)
        os.close(number)


def claim(project_home: Path, kind: str) -> tuple[Path, int]:
    """Make a folder that is kept until the descriptor of its lock is closed, be it by the end of this process."""
    project_home.mkdir(mode=0o700, exist_ok=True)
    while True:
        path = project_home / kind / secrets.token_hex(4)
        path.mkdir(mode=0o700, parents=True)
        # A sweep that comes before the lock takes the folder for a dead one.
        with suppress(FileNotFoundError):
            if (number := locks.try_lock(path / "lock")) is not None:
                return path, number


async def sweep(project_home: Path) -> list[str]:
    """Remove what dead Zelda processes left and return the ids of their runs; a living one's lock cannot be taken."""
    swept = []
    for path in sorted(chain(*(project_home.glob(f"{kind}/*") for kind in (RUNS, TREES)))):  # noqa: ASYNC240 - a moment
        is_dead, number = _claimed_dead_run(path)
        if is_dead:
            run_id = read_json_object(path / "meta.json").get("runId")
            await _end(path, project_home)
            swept += [run_id] if isinstance(run_id, str) else []
        if number is not None:
            os.close(number)
    await removal.empty(project_home / "trash")
    return swept


def _claimed_dead_run(path: Path) -> tuple[bool, int | None]:
    """Whether a run is dead, and its lock where it has one; in doubt it lives, but for a day at most."""
    if path.is_symlink() or not path.is_dir():
        return os.path.lexists(path), None
    try:
        number = locks.try_lock(path / "lock")
    except (OSError, LockError):
        return path in removal.older_than(path.parent, DOUBTFUL_SECONDS), None
    return number is not None, number


async def _end(path: Path, project_home: Path) -> None:
    if path.parent.name == RUNS:
        # Before the folder is removed: they would write into it.
        await end_orphans(path)
    await removal.discard(path, project_home / "trash")


def build_environment(
    folder: WorkspaceFolder,
    project: Path,
    environ: Mapping[str, str],
    execution: ExecutionSettings,
    tested: Path,
    reaches: Callable[[Path], bool],
    mark: Path,
) -> dict[str, str]:
    """Build the complete environment of a run, and in its HOME the configuration with which git can commit."""
    # Programs from the user's project itself, such as those of an activated virtual environment, stay out: they would
    # run the user's files in place of the tested ones, and install into them. Paths in the suite are relative to the
    # `tested` folder, and a run gets to what it `reaches`. Its strays are found by the folder `mark`.
    git_file = folder.home / ".gitconfig"
    git_file.write_text(configuration(GIT_SETTINGS))
    asked_for = {name: environ[name] for name in execution.passed_on if name in environ} | dict(execution.variables)
    around = {}
    # Where a proxy is passed on, the way to Zelda's own on this machine must not lead through it.
    if any(name.lower().endswith("_proxy") for name in asked_for):
        others = [asked_for[name] for name in ("NO_PROXY", "no_proxy") if name in asked_for]
        around = dict.fromkeys(("NO_PROXY", "no_proxy"), ",".join(["127.0.0.1", "localhost", *others]))
    user_home = environ.get("HOME")
    places = {name: environ.get(name) or (user_home and f"{user_home}/{place}") for name, place in TOOLCHAINS.items()}
    machine = search_path(environ.get("PATH", os.defpath), project, reaches)
    programs = (str(place) for place in program_folders(execution, tested) if reaches(place))
    # Claude Code takes SHELL for its commands; the user's may be one that it does not know, such as fish.
    shell = shutil.which("bash", path=machine)
    return {
        **{name: value for name, value in environ.items() if name in TAKEN_OVER or name.startswith("LC_")},
        **{name: place for name, place in places.items() if place and os.path.isdir(place)},  # noqa: PTH112
        **asked_for,
        **around,
        "PATH": os.pathsep.join(filter(None, [*programs, machine])),
        **({"SHELL": shell} if shell else {}),
        "HOME": str(folder.home),
        "TMPDIR": str(folder.tmp),
        "CI": "true",
        "GIT_CONFIG_GLOBAL": str(git_file),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CEILING_DIRECTORIES": str(folder.path),
        "GIT_TERMINAL_PROMPT": "0",
        MARKER: str(mark),
    }


def program_folders(execution: ExecutionSettings, tested: Path) -> list[Path]:
    """The folders of `execution.path`: relative ones belong to the tested tree, wherever it is checked out."""
    return [Path(os.path.normpath(tested / entry)) for entry in execution.path]


def search_path(path: str, project: Path, reaches: Callable[[Path], bool] = lambda _: True) -> str:
    """The folders of PATH that are absolute, lie outside the project, links followed, and that a run can enter."""
    # In others bash would find what it cannot run.
    real = Path(os.path.realpath(project))
    entries = ((Path(entry), Path(os.path.realpath(entry))) for entry in path.split(os.pathsep) if entry)
    outside = (it for it, place in entries if not (it.is_relative_to(real) or place.is_relative_to(real)))
    return os.pathsep.join(str(entry) for entry in outside if entry.is_absolute() and reaches(entry))
