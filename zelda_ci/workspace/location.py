"""Where workspaces lie: a private folder outside the project, with nothing above it that would steer a session."""

import hashlib
import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from zelda_ci.domain.kinds import KINDS, ItemKind
from zelda_ci.errors import WorkspaceError

# What Claude Code reads from every folder above its own. Not the rest of `.claude`: skills, agents, commands and
# settings of an outer folder stay out of a repository's session.
STEERING = (*KINDS[ItemKind.MEMORY].files, *KINDS[ItemKind.MCP_SERVER].files, ".claude/CLAUDE.md", ".claude/rules")


def choose_location(project: Path, environ: Mapping[str, str], *, passable: bool = False) -> Path:
    """The base folder of all workspaces of this user, created; the first candidate that is suitable.

    Args:
        project: The user's.
        environ: The user's environment.
        passable: Whether runs are other users', who must come through to it.

    Raises:
        WorkspaceError: ZELDA_WORKSPACES names an unsuitable folder, or none is suitable.
    """
    explicit, problems = environ.get("ZELDA_WORKSPACES"), list[str]()
    candidates = [project / Path(explicit).expanduser()] if explicit else _candidates(environ)
    for candidate in candidates:
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
