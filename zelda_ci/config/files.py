"""Where a project and its suites lie, what was meant to be one, and which files git knows."""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from zelda_ci import process
from zelda_ci.config.schema import CONFIG_FILE, ProjectKeys
from zelda_ci.config.source import ConfigProblem, config_problem
from zelda_ci.files import untrusted

DEFAULT_TEST_DIR = ProjectKeys().test_dir
ENDINGS = (".yaml", ".yml")
# Folders in which nobody writes suites, and which may be huge.
SKIPPED = frozenset({"node_modules", "__pycache__", "venv", "vendor", "target", "dist", "build"})
MAX_DEPTH = 8
MAX_FOLDERS = 20_000
MAX_NAMED = 5
NEW_ONES = ("--cached", "--others", "--exclude-standard")
_SUITE_KEYS = re.compile(
    rb"^(prompt|promptFile|prompts|acceptanceCriteria|mustPass|answerCriteria|checks)[ \t]*:", re.MULTILINE
)
_MISNAMED = re.compile(r"\.?zelda([-_.]config)?\.(ya?ml|json)", re.IGNORECASE)


def is_suite(name: str) -> bool:
    return name.startswith("test-") and name.endswith(ENDINGS)


def lies_in(path: Path, folder: Path) -> bool:
    """Whether a path, links followed, leads into a folder; neither needs to exist."""
    try:
        return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))
    except (OSError, ValueError):
        return False


def walk(top: Path) -> Iterator[tuple[Path, list[str], list[str]]]:
    """`os.walk` without hidden folders and those that are too deep; the names of a folder may be narrowed."""
    for place, below, files in os.walk(top):
        folder = Path(place)
        # What has a suite's name is reported, whatever it is.
        names = [*files, *filter(is_suite, below)]
        is_deep = len(folder.relative_to(top).parts) >= MAX_DEPTH
        below[:] = [] if is_deep else sorted(name for name in below if not name.startswith(".") and not is_suite(name))
        yield folder, below, names


def _files(top: Path, *, deep: bool = True) -> list[Path]:
    """Files of a folder and, going deep, of those below that are no projects of their own."""
    found: list[Path] = []
    for folder, below, names in walk(top):
        below[:] = [name for name in below if deep and not os.path.lexists(folder / name / CONFIG_FILE)]
        found += (folder / name for name in names)
    return sorted(found)


def suite_files(root: Path, test_dir: str) -> list[Path]:
    """Every file with a suite's name; where suites lie in the project's own folder, those below it are its code."""
    folder = root / test_dir
    found = _files(folder, deep=os.path.normpath(folder) != os.path.normpath(root)) if lies_in(folder, root) else []
    return [path for path in found if is_suite(path.name)]


def lookalikes(root: Path, test_dir: str) -> tuple[str, ...]:
    """Files that hold what only suites do and are none by place or name, in a sentence each."""
    suites = suite_files(root, test_dir)
    inside = _files(root / test_dir) if lies_in(root / test_dir, root) else []
    found = dict.fromkeys(path for path in (*inside, *_files(root, deep=False)) if path not in suites)
    remarks = []
    for path in found:
        file = path.relative_to(root).as_posix()
        with suppress(OSError):
            is_named = file.isprintable() and path.name.lower().endswith(ENDINGS)
            if is_named and _SUITE_KEYS.search(untrusted.read_head(path, 100_000)):
                place = path.parent.relative_to(root).as_posix() if path in inside else test_dir
                core = re.sub(r"^tests?[-_. ]*|[-_.]tests?$", "", path.stem.lower()) or "name"
                remarks.append(f"{file} looks like a suite and is not run: call it {place}/test-{core}.yaml")
    return tuple(remarks)


def is_project(folder: Path) -> bool:
    """Whether a folder holds a configuration, or suites where they lie without one."""
    has_config = os.path.lexists(folder / CONFIG_FILE)
    return has_config or any(is_suite(path.name) for path in _files(folder / DEFAULT_TEST_DIR))


def projects(start: Path) -> Iterator[Path]:
    for folder, below, _ in islice(walk(start), MAX_FOLDERS):
        is_one = is_project(folder)
        if is_one:
            yield folder
        # Below a folder of suites are suites.
        below[:] = [name for name in below if name not in SKIPPED and not (is_one and name == DEFAULT_TEST_DIR)]


def find_root(folder: Path) -> Path:
    """The given folder or the nearest above it, up to git's top, that is a project; the given one where none is."""
    start = folder.resolve()
    top = top_of(start) or start
    return next((it for it in (start, *start.parents) if it.is_relative_to(top) and is_project(it)), start)


def misnamed_config(root: Path) -> Iterator[ConfigProblem]:
    """Files that were probably meant to be the project's configuration; they would silently be ignored."""
    for path in _files(root, deep=False):
        if _MISNAMED.fullmatch(path.name):
            advice = f"rename it to {CONFIG_FILE}, or, if it is not Zelda's, put an empty {CONFIG_FILE} beside it"
            yield config_problem(path.name, None, f"is not read: {advice}")


def no_suites(root: Path, test_dir: str) -> ConfigProblem:
    """Says how to make one: zero suites is never green."""
    if below := list(islice((path for path in projects(root) if path != root), MAX_NAMED + 1)):
        listing = ", ".join(path.relative_to(root).as_posix() for path in below[:MAX_NAMED])
        message = f"there are projects below: {listing}{' and more' if len(below) > MAX_NAMED else ''}"
        advice = "`zelda run --all-projects` runs them; --project takes one"
        return config_problem(test_dir, None, f"holds no suites, but {message}. {advice}")
    exists = os.path.isdir(root / test_dir)  # noqa: PTH112 - never raises
    what = "holds no suites" if exists else "does not exist, so there are no suites"
    message = f"{what}: write one to {test_dir}/test-<name>.yaml, or let `zelda init` make an example"
    similar = "".join(f" ({remark})" for remark in lookalikes(root, test_dir)[:1])
    return config_problem(test_dir, None, f"{message}{similar}")


def top_of(folder: Path) -> Path | None:
    """The top of the repository that a folder is in; absent where it is in none."""
    return next(untrusted.repositories(folder), None)


def listed(folder: Path, *options: str) -> list[str] | None:
    """What `git ls-files` says of a folder; absent where git cannot tell."""
    git = shutil.which("git")
    words = [str(git), "--no-optional-locks", *untrusted.GIT_OPTIONS, "-C", str(folder), "ls-files", "-z", *options]
    try:
        found = process.answer(words, timeout_seconds=60.0) if git else None
    except OSError:
        return None
    names = found.stdout.split(b"\0") if found and found.exit_code == 0 else None
    return None if names is None else [os.fsdecode(name) for name in names if name]


def tracked(root: Path) -> frozenset[Path] | None:
    """Regular files that git tracks, None without git: only these may become prompts, which the model gets."""
    real = Path(os.path.realpath(root))
    if top_of(real) is None or shutil.which("git") is None:
        return None
    entries = listed(real, "-s") or ()
    return frozenset(real / entry.partition("\t")[2] for entry in entries if entry.startswith(("100644 ", "100755 ")))
