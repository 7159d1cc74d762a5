"""Where a project begins, and which files in it are suites."""

import os
from collections.abc import Iterator
from pathlib import Path

from zelda_ci.config.files import lies_in
from zelda_ci.config.problems import Problem, problem
from zelda_ci.config.schemas import CONFIG_FILE, ProjectKeys

DEFAULT_TEST_DIR = str(ProjectKeys().test_dir)
_ENDINGS = (".yaml", ".yml")
_MISNAMED = frozenset(
    {
        "zelda.config.yaml",  # in another case
        "zelda.config.yml",
        "zelda.config.json",
        "zelda-config.yaml",
        "zelda_config.yaml",
        "zelda.yaml",
        "zelda.yml",
        ".zelda.yaml",
        ".zelda.yml",
    }
)


def find_root(folder: Path) -> Path:
    """The project's folder: the given one or the nearest above it, up to git's top, that holds Zelda's files.

    Where none does it is the given one.
    """
    start = folder.resolve()
    return next((above for above in _up_to_git(start) if _is_project(above)), start)


def misnamed_config(root: Path) -> Problem | None:
    """A file that was probably meant to be the project's configuration; it would silently be ignored."""
    names = (name for name in _names(root) if name.lower() in _MISNAMED and name != CONFIG_FILE)
    found = next(names, None)
    if found is None:
        return None
    advice = f"rename it to {CONFIG_FILE}, or, if it is not Zelda's, put an empty {CONFIG_FILE} beside it"
    return problem(found, None, f"is not read: {advice}")


def suite_files(root: Path, test_dir: str) -> list[Path]:
    """Every `test-*.yaml` and `.yml` of the project's folder of suites, by name, whatever kind of file it is."""
    folder = root / test_dir
    if not lies_in(folder, root):
        return []
    return [folder / name for name in _names(folder) if _is_suite(name)]


def no_suites(root: Path, test_dir: str) -> Problem:
    """Says how to make one: zero suites is never green."""
    exists = os.path.isdir(root / test_dir)  # noqa: PTH112 - never raises
    what = "holds no suites" if exists else "does not exist, so there are no suites"
    message = f"{what}: write one to {test_dir}/test-<name>.yaml, or let `zelda init` make an example"
    almost = [name for name in _names(root / test_dir) if name.endswith(_ENDINGS)]
    if almost:
        message += f" ({almost[0]} is none: the name must begin with test-)"
    return problem(test_dir, None, message)


def _up_to_git(start: Path) -> Iterator[Path]:
    """The folder itself and, inside a git repository only, what is above it."""
    folders = (start, *start.parents)
    top = next((index for index, folder in enumerate(folders) if (folder / ".git").exists()), 0)
    yield from folders[: top + 1]


def _is_project(folder: Path) -> bool:
    return os.path.lexists(folder / CONFIG_FILE) or any(map(_is_suite, _names(folder / DEFAULT_TEST_DIR)))


def _is_suite(name: str) -> bool:
    return name.startswith("test-") and name.endswith(_ENDINGS)


def _names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - names only
    except OSError:
        return []
