"""Where a project and its suites lie, what was meant to be one, which files git knows, and which are Zelda's own."""

import os
import re
import shutil
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import islice
from pathlib import Path
from posixpath import basename, dirname, join, normpath, split
from typing import Any

from zelda_ci import process
from zelda_ci.config.schema import CONFIG_FILE, ProjectKeys
from zelda_ci.config.source import ConfigProblem, Rejected, config_problem, read
from zelda_ci.domain.kinds import may_steer
from zelda_ci.domain.workspace import Listing, Withheld
from zelda_ci.files import untrusted
from zelda_ci.files.globs import upwards

DEFAULTS = ProjectKeys()
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


def lookalikes(root: Path, test_dir: str, *, deep: bool = False) -> tuple[str, ...]:
    """Files that hold what only suites do and are none by place or name, in a sentence each."""
    suites = suite_files(root, test_dir)
    inside = _files(root / test_dir) if lies_in(root / test_dir, root) else []
    found = dict.fromkeys(path for path in (*inside, *_files(root, deep=deep)) if path not in suites)
    remarks = []
    for path in found:
        file = path.relative_to(root).as_posix()
        with suppress(OSError):
            # Another tool's, which has prompts, too.
            is_named = file.isprintable() and path.name.lower().endswith(ENDINGS) and "promptfoo" not in path.name
            if is_named and _SUITE_KEYS.search(untrusted.read_head(path, 100_000)):
                place = path.parent.relative_to(root).as_posix() if path in inside else test_dir
                core = re.sub(r"^tests?[-_. ]*|[-_.]tests?$", "", path.stem.lower()) or "name"
                remarks.append(f"{file} looks like a suite and is not run: call it {place}/test-{core}.yaml")
    return tuple(remarks)


def is_project(folder: Path) -> bool:
    """Whether a folder holds a configuration, or suites where they lie without one."""
    return os.path.lexists(folder / CONFIG_FILE) or any(is_suite(it.name) for it in _files(folder / DEFAULTS.test_dir))


def projects(start: Path) -> Iterator[Path]:
    for folder, below, _ in islice(walk(start), MAX_FOLDERS):
        if is_one := is_project(folder):
            yield folder
        # Below a folder of suites are suites.
        below[:] = [name for name in below if name not in SKIPPED and not (is_one and name == DEFAULTS.test_dir)]


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
    named = "" if test_dir == DEFAULTS.test_dir else f" (testDir of {CONFIG_FILE})"
    what = f"holds no suites{named}" if exists else f"does not exist{named}, so there are no suites"
    message = f"{what}: write one to {test_dir}/test-<name>.yaml, or let `zelda init` make an example"
    similar = "".join(f" ({remark})" for remark in lookalikes(root, test_dir, deep=True)[:1])
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
    return [os.fsdecode(it) for it in found.stdout.split(b"\0") if it] if found and found.exit_code == 0 else None


def tracked(root: Path) -> frozenset[Path] | None:
    """Regular files that git tracks, None without git: only these may become prompts, which the model gets."""
    real = Path(os.path.realpath(root))
    if top_of(real) is None or shutil.which("git") is None:
        return None
    entries = listed(real, "-s") or ()
    return frozenset(real / entry.partition("\t")[2] for entry in entries if entry.startswith(("100644 ", "100755 ")))


# Raised when the same tree would give another answer.
RULES = "1"
MAX_LINKS = 40
_RECORDED_JUDGE = "@judge.json"
_NOTE = re.compile(r"README.*|\..*", re.DOTALL | re.IGNORECASE)
_TEXT = re.compile(r".*\.(ya?ml|md|txt|json|csv)", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True)
class OwnFiles:
    """A `SuiteFinder` for any tree: no session may find Zelda's files, since suites say what it is judged by.

    What the project's files say today is known. Those of a commit may say something else: they are read for three keys,
    and what cannot be read leaves the defaults.
    """

    test_dir: str = DEFAULTS.test_dir
    results_dir: str = DEFAULTS.results_dir
    files: frozenset[str] = frozenset()
    """Suites, prompts and recordings, relative to the project."""

    @cached_property
    def key(self) -> str:
        rules = "\0".join([RULES, self.test_dir, self.results_dir, *sorted(self.files)])
        return sha256(rules.encode("utf-8", "surrogateescape")).hexdigest()[:12]

    @property
    def from_disk(self) -> frozenset[str]:
        return frozenset(name for name in (*self.files, CONFIG_FILE) if not _steers(name))

    def reads(self, name: str) -> bool:
        return name == CONFIG_FILE or is_suite(name) or name.endswith(_RECORDED_JUDGE)

    def find(self, listing: Listing, project: str) -> Withheld:
        """Everything of every project, the folder of the tested one given."""
        tree = _Tree(listing)
        withheld, beside = set[str](), set[str]()
        for folder, settings in tree.projects(project, (self.test_dir, self.results_dir)).items():
            for test_dir, results_dir in settings:
                withheld |= {join(folder, CONFIG_FILE), join(folder, DEFAULTS.results_dir)}
                withheld |= {results for results in [_plain(join(folder, results_dir))] if _is_below(results, folder)}
                suites, others = tree.suites(folder, test_dir)
                withheld |= suites
                beside |= others if folder == project else set()
        named = {_plain(join(project, name)) for name in self.files if not _steers(name)}
        withheld |= named | {name for folder in named for name in tree.directly(folder) if name.endswith(".json")}
        # A recorded session and its judges, wherever they lie: their words tell what the suites say.
        judged = (file for file, texts in listing.texts.items() if any(b'"exchanges"' in text for text in texts))
        for stem in (it.removesuffix(_RECORDED_JUDGE) for it in judged if it.endswith(_RECORDED_JUDGE)):
            withheld |= {f"{stem}{_RECORDED_JUDGE}", f"{stem}.json"}
        withheld -= {folder for folder in named if tree.directly(folder)}
        held = frozenset(path for path in withheld if path in listing.files or path in tree.below)
        return Withheld(held, tuple(sorted(beside - withheld)))


class _Tree:
    def __init__(self, listing: Listing) -> None:
        self._listing = listing
        self.below: dict[str, list[str]] = {}
        for file in listing.files:
            for folder in upwards(dirname(file)):
                self.below.setdefault(folder, []).append(file)

    def directly(self, folder: str) -> list[str]:
        """The files of a folder that are in none below it."""
        return [file for file in self.below.get(folder, ()) if dirname(file) == folder]

    def projects(self, tested: str, settings: tuple[str, ...]) -> dict[str, set[tuple[str, ...]]]:
        """Folder → where its suites and results lie, for every version of its configuration."""
        found, default = defaultdict(set, {tested: {settings}}), (DEFAULTS.test_dir, DEFAULTS.results_dir)
        for file in self._listing.files:
            folder, name = split(file)
            if name == CONFIG_FILE:
                texts = self._listing.texts.get(file, ())
                found[folder] |= {_texts(text, testDir=default[0], resultsDir=default[1]) for text in texts}
            elif is_suite(name):
                for above in (it for it in upwards(folder) if basename(it) == DEFAULTS.test_dir):
                    found[dirname(above)].add(default)
        return found

    def suites(self, project: str, test_dir: str) -> tuple[set[str], set[str]]:
        """What of a project's folder of suites is withheld, and which files of it are neither suites nor prompts."""
        given = _plain(join(project, test_dir))
        withheld, beside = set[str](), set[str]()
        for folder in self._resolved(given):
            below = self.below.get(folder, [])
            # At any depth, since one that was put away still says what is expected; but among code, only at the top.
            suites = {it for it in below if is_suite(basename(it)) and (folder != project or dirname(it) == folder)}
            own = {real for file in suites for real in (file, *self._resolved(file))}
            own |= {prompt for file in suites for prompt in self._prompts(file, project)}
            withheld |= own
            others = map(basename, {*self.directly(folder)} - own)
            usual = normpath(test_dir) == DEFAULTS.test_dir
            # A whole folder goes; where code lies among suites it is not theirs alone.
            is_theirs = all(_NOTE.fullmatch(it) or (usual and _TEXT.fullmatch(it)) for it in others)
            if suites and folder != project and is_theirs and ".claude" not in folder.split("/"):
                withheld |= {folder, given}
                beside |= {file for file in below if file not in own and not _NOTE.fullmatch(basename(file))}
        return withheld, beside

    def _prompts(self, suite: str, project: str) -> Iterator[str]:
        for text in self._listing.texts.get(suite, ()):
            (given,) = _texts(text, promptFile="")
            name = normpath(join(dirname(suite), given))
            files = {name, *self._resolved(name)} & self._listing.files if given else ()
            yield from (file for file in files if _is_below(file, project) and not _steers(file))

    def _resolved(self, path: str) -> set[str]:
        """Where a path leads, its links followed; more than one place where versions differ."""
        paths, waiting, seen = set[str](), [path], set[str]()
        while waiting and len(seen) < MAX_LINKS:
            here = waiting.pop()
            if here in seen or here.startswith(("../", "/")) or here == "..":
                continue
            seen.add(here)
            link = next((part for part in reversed(upwards(here)) if part in self._listing.links), None)
            if link is None or here in self.below:
                paths.add(here)
            if link is not None:
                rest = here[len(link) :].lstrip("/")
                targets = self._listing.links[link]
                waiting += [_plain(join(dirname(link), target, rest)) for target in targets if target[:1] != "/"]
        return paths


def _texts(text: bytes, **keys: str) -> tuple[str, ...]:
    """The texts of top-level keys; their defaults where they have none."""
    texts: Mapping[Any, str] = {}
    with suppress(Rejected):
        texts = read(text.decode("utf-8-sig", "replace"), "").texts
    return tuple(given if (given := texts.get((name,), "")).strip() else default for name, default in keys.items())


def _plain(path: str) -> str:
    return normpath(path) if normpath(path) != "." else ""


def _is_below(path: str, folder: str) -> bool:
    return path.startswith(f"{folder}/") if folder else path not in {"", ".."} and not path.startswith(("../", "/"))


def _steers(file: str) -> bool:
    # What Claude Code reads stays, even where a suite takes its prompt from it.
    return basename(file) == "README.md" or may_steer(file)
