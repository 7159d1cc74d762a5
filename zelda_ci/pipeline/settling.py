"""Suites as they run on this machine: the folders that they ask for are there, and setup is known."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from zelda_ci.config import detect
from zelda_ci.config.merge import DEFAULT, LoadedSuite
from zelda_ci.errors import ConfigError
from zelda_ci.events import Emit, Warned
from zelda_ci.sandbox.readable_paths import NARROW, PathPolicy, asked_for, refusal
from zelda_ci.workspace.environment import search_path


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
    if any(map(detect.says_nothing, suites)):
        kind = detect.detect_setup(root, search_path(environ.get("PATH", os.defpath), root))
    return [detect.with_setup(suite, kind) for suite in suites] if kind else list(suites)


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
        origin = suite.provenance[detect.SETUP]
        # A file without a line: a lock file.
        if origin.file and origin.line is None:
            found[f"{suite.resolved.setup_command} (found {origin}; `setupCommand: none` switches it off)"] = None
    for command in found:
        emit(Warned(f"setup: {command}"))
