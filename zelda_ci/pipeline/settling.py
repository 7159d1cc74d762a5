"""Suites as they run on this machine: the folders that they ask for are there, and setup is known."""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from zelda_ci.config.merge import DEFAULT, LoadedSuite, Origin
from zelda_ci.errors import ConfigError
from zelda_ci.events import Emit, Warned
from zelda_ci.pipeline.detect import ProjectKind, look
from zelda_ci.sandbox.readable_paths import NARROW, PathPolicy, asked_for, refusal
from zelda_ci.workspace.environment import search_path

SETUP, PROGRAMS = "setupCommand", "execution.path"


def settled(root: Path, suites: Sequence[LoadedSuite], environ: Mapping[str, str]) -> list[LoadedSuite]:
    """The suites as they run here, with the setup that the project's lock file suggests where they name none.

    Raises:
        ConfigError: A suite names a folder of this machine that no run may read, or that is not there.
    """
    grounds = PathPolicy.of(root, root, environ)
    problems = list(dict.fromkeys(problem for suite in suites for problem in _refused_folders(suite, grounds)))
    if problems:
        raise ConfigError("\n".join(problems), hint=NARROW, code="READ_PATH_REFUSED")
    kind = None
    if any(map(_says_nothing, suites)):
        kind = _detected(root, search_path(environ.get("PATH", os.defpath), root))
    return [_with_setup(suite, kind) for suite in suites] if kind else list(suites)


def _detected(root: Path, path: str) -> ProjectKind | None:
    """The kind of a project whose lock file says how it is set up, where the program for that is in `path`."""
    *_, found = look(Path(os.path.realpath(root)))
    # Without a lock file nobody knows what would be installed: that is for people to decide.
    return next((it for it in found if it.setup and it.lock and shutil.which(it.program, path=path)), None)


def _says_nothing(suite: LoadedSuite, key: str = SETUP) -> bool:
    return suite.provenance.get(key, DEFAULT) == DEFAULT


def _with_setup(suite: LoadedSuite, kind: ProjectKind) -> LoadedSuite:
    if not _says_nothing(suite):
        return suite
    resolved, origin = suite.resolved.replace(setup_command=kind.setup), Origin(kind.lock)
    origins = {**suite.provenance, SETUP: origin}
    if kind.programs and _says_nothing(suite, PROGRAMS):
        resolved = resolved.replace(execution=resolved.execution.replace(path=kind.programs))
        origins[PROGRAMS] = origin
    return replace(suite, resolved=resolved, provenance=origins)


def _refused_folders(suite: LoadedSuite, grounds: PathPolicy) -> Iterator[str]:
    for key, paths in asked_for(suite.resolved).items():
        for path in paths:
            if why := refusal(Path(path), grounds):
                origin = suite.provenance.get(key, DEFAULT)
                yield f"{'' if origin == DEFAULT else f'{origin}: '}{key} lists {path}, which {why}."


def tell_setup(suites: Sequence[LoadedSuite], emit: Emit) -> None:
    """Of setup commands that nobody wrote: what runs, why, and how it is switched off."""
    found = dict[str, None]()
    for suite in suites:
        origin = suite.provenance[SETUP]
        # A file without a line: a lock file.
        if origin.file and origin.line is None:
            found[f"{suite.resolved.setup_command} (found {origin}; `setupCommand: none` switches it off)"] = None
    for command in found:
        emit(Warned(f"setup: {command}"))
