"""What a folder says about itself: its tracked files, and the text of a few small ones, which anybody may have written.

Commands are made of words of our own only: whether a script, a target or a file exists decides, never what is in it.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from posixpath import dirname, join
from typing import Any

MAX_MANIFEST_BYTES = 1_000_000
MAX_PACKAGES = 200
# Folders in which files belong to others, or are samples.
FOREIGN = frozenset({"node_modules", "vendor", "third_party", "site-packages", "testdata", "fixtures", "__fixtures__"})

REQUIREMENTS = (
    "requirements.txt",
    "requirements-dev.txt",
    "requirements-test.txt",
    "dev-requirements.txt",
    "test-requirements.txt",
    "requirements_dev.txt",
    "requirements_test.txt",
)
EXTRAS = ("test", "tests", "testing", "dev")
MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
JUSTFILES = ("justfile", "Justfile", ".justfile")
GRADLE = ("build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts")
PYTHON_MANIFESTS = ("pyproject.toml", "setup.py", "setup.cfg", "Pipfile", *REQUIREMENTS)
READ = frozenset(
    {"package.json", "pyproject.toml", "setup.cfg", "tox.ini", "Pipfile", "composer.json", "Cargo.toml"}
    | {*REQUIREMENTS, *MAKEFILES, *JUSTFILES}
)
"""Names of files whose text matters."""
WORKSPACES = frozenset({"package.json", "pyproject.toml", "Cargo.toml"})
"""Those that may say that folders below share their lock file."""
_TEST_FILE = re.compile(r"(test_[^/]*|[^/]*_test)\.py")


@dataclass(frozen=True)
class Proposal:
    """A command that the project's own files suggest, and the file that does."""

    command: str
    source: str

    @property
    def program(self) -> str:
        """What has to be there to run it; a path where the project brings it."""
        return next(word for word in self.command.split() if "=" not in word)


@dataclass(frozen=True)
class ProjectKind:
    """One way in which a folder is a project."""

    language: str
    manifest: str
    manager: str | None = None
    setup: Proposal | None = None
    build: Proposal | None = None
    test: Proposal | None = None
    locks: tuple[str, ...] = ()
    """What fixes the versions of dependencies; paths from the top of the listing, as all paths here."""


def manifests(files: Iterable[str], folder: str = "") -> tuple[str, ...]:
    """The files whose text `kinds` wants to see; read no more of any than MAX_MANIFEST_BYTES."""
    names = names_of(files, folder)
    above = {join(place, name) for place in upwards(folder) for name in names[place] & WORKSPACES}
    here = {join(folder, name) for name in names[folder] & READ}
    return tuple(sorted({*above, *here, *sorted(names[TESTS])[:1]}))


def packages(files: Iterable[str], folder: str = "") -> tuple[str, ...]:
    """Folders below that hold a manifest of their own, as in a monorepo."""
    found = dict[str, None]()
    for file in sorted(files):
        place, _, name = file.rpartition("/")
        is_below = place != folder and (not folder or place.startswith(f"{folder}/"))
        if is_below and name in _MANIFESTS and not FOREIGN.intersection(place.split("/")):
            found[place] = None
            if len(found) == MAX_PACKAGES:
                break
    return tuple(found)


_MANIFESTS = {"package.json", "pyproject.toml", "setup.py", "Pipfile", "go.mod", "Cargo.toml", "Gemfile", "pom.xml"}
_MANIFESTS |= {"composer.json", "mix.exs", "Package.swift", "requirements.txt", "build.gradle", "build.gradle.kts"}
# The key of Python's test files among the names of folders.
TESTS = "\0tests"


def names_of(files: Iterable[str], folder: str) -> dict[str, set[str]]:
    """Names by folder, of the project and those above; and the paths of its Python tests, without packages."""
    files = list(files)
    names: dict[str, set[str]] = {place: set() for place in upwards(folder)}
    names[TESTS] = set()
    for file in files:
        place, _, name = file.rpartition("/")
        if place in names:
            names[place].add(name)
        is_inside = not folder or file.startswith(f"{folder}/")
        if is_inside and _TEST_FILE.fullmatch(name) and not FOREIGN.intersection(place.split("/")):
            names[TESTS].add(file)
    if names[TESTS]:
        others = set(packages(files, folder))
        names[TESTS] = {file for file in names[TESTS] if others.isdisjoint(upwards(dirname(file)))}
    return names


def upwards(folder: str) -> tuple[str, ...]:
    """A folder, and all above it."""
    found = [folder]
    while found[-1]:
        found.append(dirname(found[-1]))
    return tuple(found)


@dataclass(frozen=True)
class Place:
    """A folder, the names in it and in those above it."""

    folder: str
    names: Mapping[str, Collection[str]]
    texts: Mapping[str, str]
    here: Collection[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "here", self.names[self.folder])

    def path(self, name: str) -> str:
        """From the top of the tree."""
        return join(self.folder, name)

    def text(self, name: str) -> str:
        """What is in a file that lies here; nothing where none does."""
        return self.texts.get(self.path(name), "") if name in self.here else ""

    def first(self, *names: str) -> str | None:
        """The first of these that lies here."""
        return next((name for name in names if name in self.here), None)

    def lock(self, names: Iterable[str], shared: "Callable[[Place], bool]") -> str | None:
        """The path of the first of these here, or in the nearest folder above whose manifest shares its own."""
        for at in upwards(self.folder):
            place = Place(at, self.names, self.texts)
            found = place.first(*names)
            if found and (at == self.folder or shared(place)):
                return place.path(found)
        return None

    def table(self, name: str, read: Callable[[str], Any]) -> Mapping[str, Any]:
        """The top of a JSON or TOML file; empty where it is none."""
        text = self.text(name).removeprefix("\ufeff")
        try:
            return table_at(read(text)) if len(text) <= MAX_MANIFEST_BYTES else {}
        except (ValueError, RecursionError, TypeError):
            return {}

    def proposal(self, command: str, source: str) -> Proposal:
        """A command that a file of this folder suggests."""
        return Proposal(command, self.path(source))


def table_at(value: Any, *path: str) -> Mapping[str, Any]:
    """What lies at the path below a value; empty where that is no table."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}
