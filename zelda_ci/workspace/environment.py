"""The environment of session and commands: built from nothing by an allow-list, so that no credential slips in."""

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from zelda_ci.domain.suite import ExecutionSettings
from zelda_ci.sandbox.readable_paths import CERTIFICATES, SDKS, TOOLCHAINS
from zelda_ci.sandbox.run_folder import WorkspaceFolder
from zelda_ci.workspace import git

TAKEN_OVER = frozenset({
    "COLORTERM", "LANG", "LANGUAGE", "LOGNAME", "TERM", "TZ", "USER",
    # Without a certificate authority of one's own, nothing could be installed.
    *CERTIFICATES, *SDKS,
})  # fmt: skip

GIT_SETTINGS = {
    "user.name": "Zelda CI", "user.email": "zelda-ci@localhost", "init.defaultBranch": "main",
    "commit.gpgSign": "false", "gc.auto": "0",
}  # fmt: skip


def build_environment(
    folder: WorkspaceFolder,
    project: Path,
    environ: Mapping[str, str],
    execution: ExecutionSettings,
    tested: Path,
    reaches: Callable[[Path], bool],
) -> dict[str, str]:
    """Build the complete environment of a run, and in its HOME the configuration with which git can commit.

    Programs from the user's project itself, such as those of an activated virtual environment, stay out: they would
    run the user's files in place of the tested ones, and install into them. Paths in the suite are relative to the
    `tested` folder, and a run gets to what it `reaches`.
    """
    configuration = folder.home / ".gitconfig"
    configuration.write_text(git.configuration(GIT_SETTINGS))
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
        "GIT_CONFIG_GLOBAL": str(configuration),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CEILING_DIRECTORIES": str(folder.path),
        "GIT_TERMINAL_PROMPT": "0",
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
