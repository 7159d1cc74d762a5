"""The setup command of suites that name none, as the project's lock file suggests it."""

import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from zelda_ci import process
from zelda_ci.config.merge import DEFAULT, LoadedSuite, Origin
from zelda_ci.config.project_files import MAX_MANIFEST_BYTES, ProjectKind, manifests
from zelda_ci.config.project_kind import kinds
from zelda_ci.files import untrusted
from zelda_ci.process import git_settings

SECONDS = 60.0
# Where every tool that Zelda detects makes a Python environment.
PYTHON_PROGRAMS = ".venv/bin"
SETUP, PROGRAMS = "setupCommand", "execution.path"


@dataclass(frozen=True)
class DetectedSetup:
    """What a lock file suggests."""

    command: str
    source: str
    """The file, relative to the top of the repository."""
    programs: tuple[str, ...] = ()
    """Folders in which it installs programs that commands expect on PATH."""

    def __str__(self) -> str:
        return f"setup: {self.command} (found {self.source}; `setupCommand: none` switches it off)"


def detect(root: Path, path: str) -> DetectedSetup | None:
    """The setup of a project, where a lock file says which it is and its program is there.

    Args:
        root: The project's folder.
        path: Where runs look for programs.
    """
    top, files = _listing(root)
    inside = Path(os.path.realpath(root)).relative_to(top)
    folder = "" if inside == Path() else inside.as_posix()
    texts = {name: _text(top / name) for name in manifests(files, folder)}
    return next((setup for kind in kinds(files, texts, folder) for setup in _usable(kind, path)), None)


def with_setup(suites: Iterable[LoadedSuite], setup: DetectedSetup) -> Iterator[LoadedSuite]:
    """The suites; those that say nothing of their setup get this one."""
    for suite in suites:
        if suite.provenance.get(SETUP, DEFAULT) != DEFAULT:
            yield suite
            continue
        resolved = suite.resolved.replace(setup_command=setup.command)
        origins = {**suite.provenance, SETUP: Origin(setup.source)}
        if setup.programs and suite.provenance.get(PROGRAMS, DEFAULT) == DEFAULT:
            resolved = resolved.replace(execution=resolved.execution.replace(path=setup.programs))
            origins[PROGRAMS] = Origin(setup.source)
        yield replace(suite, resolved=resolved, provenance=origins)


def wants_setup(suites: Sequence[LoadedSuite]) -> bool:
    """Whether there is a suite that says nothing of its setup."""
    return any(suite.provenance.get(SETUP, DEFAULT) == DEFAULT for suite in suites)


def is_detected(suite: LoadedSuite) -> bool:
    """Whether its setup command is none that somebody wrote."""
    origin = suite.provenance.get(SETUP, DEFAULT)
    return origin.file is not None and origin.line is None


def _usable(kind: ProjectKind, path: str) -> Iterator[DetectedSetup]:
    # Without a lock file nobody knows what would be installed: that is for people to decide.
    if kind.setup and kind.locks and shutil.which(kind.setup.program, path=path):
        programs = (PYTHON_PROGRAMS,) if kind.language == "Python" else ()
        yield DetectedSetup(kind.setup.command, kind.setup.source, programs)


def _listing(root: Path) -> tuple[Path, Sequence[str]]:
    """The top of the repository and its tracked files; without one the folder, and the files in it."""
    real = Path(os.path.realpath(root))
    top = next((place for place in (real, *real.parents) if os.path.lexists(place / ".git")), None)
    git = shutil.which("git")
    if top and git:
        with suppress(OSError, TimeoutError):
            listing = process.answer(
                [git, *git_settings.OPTIONS, "-C", str(top), "ls-files", "-z"], timeout_seconds=SECONDS
            )
            if listing.exit_code == 0:
                return top, [os.fsdecode(name) for name in listing.stdout.split(b"\0") if name]
    with suppress(OSError):
        return real, sorted(entry.name for entry in os.scandir(real) if entry.is_file(follow_symlinks=False))
    return real, ()


def _text(file: Path) -> str:
    with suppress(OSError):
        return untrusted.read(file, MAX_MANIFEST_BYTES).decode("utf-8", "replace")
    return ""
