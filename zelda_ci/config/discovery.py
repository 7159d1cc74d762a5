"""Files and folders that are Zelda's: suites at any depth, what was meant to be one, projects below a folder."""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from zelda_ci.config.document import lies_in
from zelda_ci.config.schema import CONFIG_FILE, ProjectKeys
from zelda_ci.files import untrusted

DEFAULT_TEST_DIR = str(ProjectKeys().test_dir)
ENDINGS = (".yaml", ".yml")
# Folders in which nobody writes suites, and which may be huge.
SKIPPED = frozenset({"node_modules", "__pycache__", "venv", "vendor", "target", "dist", "build"})
MAX_DEPTH = 8
MAX_FOLDERS = 20_000
MAX_LOOKED_AT_BYTES = 100_000
_SUITE_KEYS = re.compile(rb"^(prompt|promptFile|acceptanceCriteria|mustPass|answerCriteria)[ \t]*:", re.MULTILINE)
_ALMOST = re.compile(r"(test.*|.*[-_.]test)\.ya?ml", re.IGNORECASE | re.DOTALL)


def is_suite(name: str) -> bool:
    """Whether a file of this name is one."""
    return name.startswith("test-") and name.endswith(ENDINGS)


def names(folder: Path) -> list[str]:
    """What lies in a folder; nothing where it cannot be read."""
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - names only
    except OSError:
        return []


def suite_files(root: Path, test_dir: str) -> list[Path]:
    """Every `test-*.yaml` and `.yml` of the project's folder of suites and those below it, whatever kind of file it is.

    Where suites lie in the project's own folder, those below it are the project's code.
    """
    folder = root / test_dir
    if not lies_in(folder, root):
        return []
    return [path for path in _files(folder, deep=not _same(folder, root)) if is_suite(path.name)]


def lookalikes(root: Path, test_dir: str) -> tuple[str, ...]:
    """What was probably meant to be a suite and is none, in a sentence each."""
    folder = root / test_dir
    inside = list(_files(folder, deep=True)) if lies_in(folder, root) and not _same(folder, root) else []
    found = (_remark(path, root, test_dir) for path in (*inside, *_files(root, deep=False)))
    return tuple(remark for remark in found if remark)


def projects(start: Path) -> Iterator[Path]:
    """Folders of projects, at `start` and below."""
    folders = [(start, 0)]
    for looked, (folder, depth) in enumerate(folders):
        if looked >= MAX_FOLDERS:
            return
        if is_one := is_project(folder):
            yield folder
        if depth < MAX_DEPTH:
            # Below a folder of suites are suites.
            below = [path for path in _folders(folder) if path.name not in SKIPPED]
            folders += [(path, depth + 1) for path in below if not (is_one and path.name == DEFAULT_TEST_DIR)]


def is_project(folder: Path) -> bool:
    """Whether a folder holds a configuration, or suites where they lie without one."""
    return os.path.lexists(folder / CONFIG_FILE) or any(
        is_suite(path.name) for path in _files(folder / DEFAULT_TEST_DIR)
    )


def _files(folder: Path, *, deep: bool = True, depth: int = 0) -> Iterator[Path]:
    """Everything in a folder that is none itself, by name; links to folders are not followed."""
    below = set(_folders(folder)) if deep and depth < MAX_DEPTH else set()
    for name in names(folder):
        path = folder / name
        if path in below and not is_suite(name):
            # Another project's suites are not this one's.
            if not os.path.lexists(path / CONFIG_FILE):
                yield from _files(path, depth=depth + 1)
        elif is_suite(name) or path.is_symlink() or not path.is_dir():
            yield path


def _folders(folder: Path) -> Sequence[Path]:
    try:
        with os.scandir(folder) as entries:
            real = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return ()
    return [folder / name for name in sorted(real) if not name.startswith(".")]


def _same(one: Path, other: Path) -> bool:
    return os.path.normpath(one) == os.path.normpath(other)


def _remark(path: Path, root: Path, test_dir: str) -> str | None:
    name, file = path.name, path.relative_to(root).as_posix()
    if not name.lower().endswith(ENDINGS) or not file.isprintable() or name == CONFIG_FILE:
        return None
    is_outside = not file.startswith(f"{test_dir}/") and test_dir not in {".", ""}
    if is_suite(name) and not is_outside:
        return None
    if not _holds_a_suite(path) and (is_outside or not _ALMOST.fullmatch(name)):
        return None
    place = test_dir if is_outside else path.parent.relative_to(root).as_posix()
    return f"{file} looks like a suite and is not run: call it {place}/{_proper(name)}"


def _proper(name: str) -> str:
    stem = name.rpartition(".")[0].lower()
    core = re.sub(r"^tests?[-_. ]*|[-_.]tests?$", "", stem) or "name"
    return f"test-{core}.yaml"


def _holds_a_suite(path: Path) -> bool:
    """Whether a file begins keys that only suites have."""
    try:
        return bool(_SUITE_KEYS.search(untrusted.read_head(path, MAX_LOOKED_AT_BYTES)))
    except OSError:
        return False
