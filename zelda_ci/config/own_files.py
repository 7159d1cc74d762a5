"""Which files of a tree are Zelda's: configuration, suites and prompts of every project in it, results, recordings.

A session must not find them, since suites say what it is judged by. The tree may be any commit's, and so may what its
files say: they are read for three keys, and what cannot be read leaves the defaults.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from posixpath import basename, dirname, join, normpath
from typing import Any

from zelda_ci.config.files import is_suite
from zelda_ci.config.project import LoadedProject
from zelda_ci.config.schema import CONFIG_FILE, ProjectKeys
from zelda_ci.config.source import Rejected, read
from zelda_ci.domain.kinds import may_steer
from zelda_ci.domain.workspace import Listing, Withheld
from zelda_ci.files.globs import upwards

# Raised when the same tree would give another answer.
RULES = "1"
DEFAULTS = ProjectKeys()
MAX_LINKS = 40
_RECORDING_OF_A_JUDGE = "@judge.json"
_NOTE = re.compile(r"README.*|\..*", re.DOTALL | re.IGNORECASE)
_TEXT = re.compile(r".*\.(ya?ml|md|txt|json|csv)", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True)
class OwnFiles:
    """A `SuiteFinder`. What the project's files say today is known; a commit's own files may say something else."""

    test_dir: str = DEFAULTS.test_dir
    results_dir: str = DEFAULTS.results_dir
    files: frozenset[str] = frozenset()
    """Suites, prompts and recordings, relative to the project."""

    @classmethod
    def of(cls, loaded: LoadedProject, recordings: Iterable[Path | None]) -> "OwnFiles":
        kept = {path.resolve() for path in recordings if path}
        files = {path.relative_to(loaded.root).as_posix() for path in kept if path.is_relative_to(loaded.root)}
        for suite in loaded.suites:
            files |= {suite.resolved.file, str(suite.provenance["prompt"].file)}
        return cls(loaded.config.test_dir, loaded.config.results_dir, frozenset(files - {"."}))

    @cached_property
    def key(self) -> str:
        rules = "\0".join([RULES, self.test_dir, self.results_dir, *sorted(self.files)])
        return sha256(rules.encode("utf-8", "surrogateescape")).hexdigest()[:12]

    @property
    def from_disk(self) -> frozenset[str]:
        return frozenset(name for name in (*self.files, CONFIG_FILE) if not _steers(name))

    def reads(self, name: str) -> bool:
        return name == CONFIG_FILE or is_suite(name) or name.endswith(_RECORDING_OF_A_JUDGE)

    def find(self, listing: Listing, project: str) -> Withheld:
        """Everything of every project, the folder of the tested one given."""
        tree = _Tree(listing)
        withheld, beside = set[str](), set[str]()
        for folder, settings in tree.projects(project, (self.test_dir, self.results_dir)).items():
            for test_dir, results_dir in settings:
                withheld |= {join(folder, CONFIG_FILE), join(folder, DEFAULTS.results_dir)}
                withheld |= {results for results in [_plain(join(folder, results_dir))] if _lies_in(results, folder)}
                suites, others = tree.suites(folder, test_dir)
                withheld |= suites
                beside |= others if folder == project else set()
        named = {_plain(join(project, name)) for name in self.files if not _steers(name)}
        withheld |= named | {name for folder in named for name in tree.directly(folder) if name.endswith(".json")}
        withheld |= set(tree.recordings())
        withheld -= {folder for folder in named if tree.directly(folder)}
        return Withheld(frozenset(filter(tree.holds, withheld)), tuple(sorted(beside - withheld)))


class _Tree:
    def __init__(self, listing: Listing) -> None:
        self._listing = listing
        self._below: dict[str, list[str]] = {}
        for file in listing.files:
            for folder in upwards(dirname(file)):
                self._below.setdefault(folder, []).append(file)

    def holds(self, path: str) -> bool:
        return path in self._listing.files or path in self._below

    def directly(self, folder: str) -> list[str]:
        """The files of a folder that are in none below it."""
        return [file for file in self._below.get(folder, ()) if dirname(file) == folder]

    def projects(self, tested: str, settings: tuple[str, ...]) -> dict[str, set[tuple[str, ...]]]:
        """Folder → where its suites and results lie, for every version of its configuration."""
        projects = {tested: {settings}}
        default = (DEFAULTS.test_dir, DEFAULTS.results_dir)
        for file in self._listing.files:
            folder, name = dirname(file), basename(file)
            if name == CONFIG_FILE:
                texts = self._listing.texts.get(file, ())
                found = (_texts(text, testDir=default[0], resultsDir=default[1]) for text in texts)
                projects.setdefault(folder, set()).update(found)
            elif is_suite(name):
                for above in upwards(dirname(file)):
                    if basename(above) == DEFAULTS.test_dir:
                        projects.setdefault(dirname(above), set()).add(default)
        return projects

    def suites(self, project: str, test_dir: str) -> tuple[set[str], set[str]]:
        """What of a project's folder of suites is withheld, and which files of it are neither suites nor prompts."""
        given = _plain(join(project, test_dir))
        withheld, beside = set[str](), set[str]()
        for folder in self._resolved(given):
            below = self._below.get(folder, [])
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

    def recordings(self) -> Iterator[str]:
        """A recorded session and its judges, wherever they lie: their words tell what the suites say."""
        for file, texts in self._listing.texts.items():
            if file.endswith(_RECORDING_OF_A_JUDGE) and any(b'"exchanges"' in text for text in texts):
                yield file
                yield f"{file.removesuffix(_RECORDING_OF_A_JUDGE)}.json"

    def _prompts(self, suite: str, project: str) -> Iterator[str]:
        for text in self._listing.texts.get(suite, ()):
            (given,) = _texts(text, promptFile="")
            name = normpath(join(dirname(suite), given))
            for file in {name, *self._resolved(name)} if given else ():
                if file in self._listing.files and _lies_in(file, project) and not _steers(file):
                    yield file

    def _resolved(self, path: str) -> set[str]:
        """Where a path leads, its links followed; more than one place where versions differ."""
        paths, waiting, seen = set[str](), [path], set[str]()
        while waiting and len(seen) < MAX_LINKS:
            here = waiting.pop()
            if here in seen or here.startswith(("../", "/")) or here == "..":
                continue
            seen.add(here)
            link = next((part for part in reversed(upwards(here)) if part in self._listing.links), None)
            if link is None or here in self._below:
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


def _lies_in(path: str, folder: str) -> bool:
    return path.startswith(f"{folder}/") if folder else path not in {"", ".."} and not path.startswith(("../", "/"))


def _steers(file: str) -> bool:
    # What Claude Code reads stays, even where a suite takes its prompt from it.
    return basename(file) == "README.md" or may_steer(file)
