"""What kind of project a folder holds: its language, package manager, lock files and commands.

All of it is read from a listing of tracked files and the text of a few small ones, which anybody may have written.
Commands are made of words of our own only: whether a script, a target or a file exists decides, never what is in it.
What is proposed need not work: somebody has to try it.
"""

import json
import os
import re
import shutil
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from posixpath import dirname, join
from typing import Any

from zelda_ci.config import files as files_of
from zelda_ci.config.merge import DEFAULT, LoadedSuite, Origin
from zelda_ci.files import untrusted

MAX_MANIFEST_BYTES = 1_000_000
MAX_PACKAGES = 200
# Folders in which files belong to others, or are samples.
FOREIGN = frozenset({"node_modules", "vendor", "third_party", "site-packages", "testdata", "fixtures", "__fixtures__"})

REQUIREMENTS = (
    "requirements.txt", "requirements-dev.txt", "requirements-test.txt", "dev-requirements.txt",
    "test-requirements.txt", "requirements_dev.txt", "requirements_test.txt",
)  # fmt: skip
EXTRAS = ("test", "tests", "testing", "dev")
MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
JUSTFILES = ("justfile", "Justfile", ".justfile")
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


_NODE_TESTS = ("test", "test:ci", "test:run", "test:unit")
_NODE_LOCKS = {
    "pnpm-lock.yaml": "pnpm",
    "yarn.lock": "yarn",
    "bun.lock": "bun",
    "bun.lockb": "bun",
    "package-lock.json": "npm",
    "npm-shrinkwrap.json": "npm",
}
_PYTHON_LOCKS = {"uv.lock": "uv", "poetry.lock": "poetry", "pdm.lock": "pdm", "Pipfile.lock": "pipenv"}
PYTEST = "-m pytest"
_PLACEHOLDER = re.compile(r"no test specified")
_WATCHES = re.compile(r"--watch(All)?\b(?!=false)|\bnodemon\b")
_TARGET = re.compile(r"^([\w.-]+)(?:[ \t][^:=\n]*)?:(?!=)", re.MULTILINE)


def kinds(files: Iterable[str], texts: Mapping[str, str], folder: str = "") -> tuple[ProjectKind, ...]:
    """Every kind that a folder is, the one with tests of its own first.

    Args:
        files: Tracked files, from the top of the tree.
        texts: What is in those that `manifests` names; one that is missing counts as empty.
        folder: Of the project, from the top of the tree.
    """
    place = Place(folder, names_of(files, folder), texts)
    found = [kind for detect in _DETECTORS for kind in detect(place)]
    return tuple(sorted(found, key=_rank))


def _rank(kind: ProjectKind) -> tuple[bool, ...]:
    """Tests come first, manifests before mere files, and what only calls other tools last."""
    return kind.manager in {"make", "just"}, kind.test is None, kind.manifest.endswith(".py") and kind.setup is None


def _alone(_: Place) -> bool:
    """Of tools that know no workspaces."""
    return False


def _shares_node(place: Place) -> bool:
    return bool(place.table("package.json", json.loads).get("workspaces")) or "pnpm-workspace.yaml" in place.here


def _shares_python(place: Place) -> bool:
    return bool(table_at(place.table("pyproject.toml", tomllib.loads), "tool", "uv", "workspace"))


def _shares_cargo(place: Place) -> bool:
    return "workspace" in place.table("Cargo.toml", tomllib.loads)


def _node(place: Place) -> Iterator[ProjectKind]:
    if "package.json" not in place.here:
        return
    package = place.table("package.json", json.loads)
    lock = place.lock(_NODE_LOCKS, _shares_node)
    named = re.match(r"(npm|pnpm|yarn|bun)@(\d+)?", str(package.get("packageManager", "")))
    manager = named[1] if named else _NODE_LOCKS[lock.rpartition("/")[2]] if lock else "npm"
    is_new_yarn = bool(named and named[2] and int(named[2][:4]) > 1) or bool(place.lock([".yarnrc.yml"], _shares_node))
    scripts = {name: text for name, text in table_at(package, "scripts").items() if isinstance(text, str)}
    test = next((name for name in _NODE_TESTS if name in scripts and _ends(scripts[name])), None)
    is_short = test == "test" and manager != "bun"
    source = "package.json"
    yield ProjectKind(
        "JavaScript" if "tsconfig.json" not in place.here else "TypeScript",
        place.path(source),
        manager,
        _node_setup(place, package, manager, lock, is_new_yarn=is_new_yarn),
        place.proposal(f"{manager} run build", source) if scripts.get("build") else None,
        place.proposal(f"{manager} {'' if is_short else 'run '}{test}", source) if test else None,
        (lock,) if lock else (),
    )


def _node_setup(
    place: Place, package: Mapping[str, Any], manager: str, lock: str | None, *, is_new_yarn: bool
) -> Proposal | None:
    needs = any(table_at(package, key) for key in ("dependencies", "devDependencies", "optionalDependencies"))
    if lock is None:
        return place.proposal(f"{manager} install", "package.json") if needs or package.get("workspaces") else None
    frozen = {
        "npm": "npm ci",
        "pnpm": "pnpm install --frozen-lockfile",
        "yarn": "yarn install --immutable" if is_new_yarn else "yarn install --frozen-lockfile",
        "bun": "bun install --frozen-lockfile",
    }
    # The manager that is named need not be the one that wrote the lock file.
    is_its_own = _NODE_LOCKS[lock.rpartition("/")[2]] == manager
    return Proposal(frozen[manager] if is_its_own else f"{manager} install", lock)


def _ends(script: str) -> bool:
    """Whether a script tests something, and comes to an end."""
    return bool(script.strip()) and not _PLACEHOLDER.search(script) and not _WATCHES.search(script)


def _python(place: Place) -> Iterator[ProjectKind]:
    tests = place.names[TESTS]
    manifest = place.first(*PYTHON_MANIFESTS, "tox.ini", "manage.py")
    own = [file.removeprefix(f"{place.folder}/").split("/")[0] for file in tests]
    if manifest is None and not any(name in {"test", "tests"} or name in place.here for name in own):
        return
    project = place.table("pyproject.toml", tomllib.loads)
    lock = place.lock(_PYTHON_LOCKS, _shares_python)
    tools = [tool for tool in ("uv", "poetry", "pdm") if tool in table_at(project, "tool")]
    manager = _PYTHON_LOCKS[lock.rpartition("/")[2]] if lock else "pipenv" if "Pipfile" in place.here else None
    manager = manager or next(iter(tools), "pip")
    runner = _python_runner(place, project)
    setup = _pip_setup(place, project, runner) if manager == "pip" else _python_setup(place, project, manager, lock)
    pinned = place.first(*REQUIREMENTS)
    locks = (lock,) if lock else (place.path(pinned),) if pinned and manager == "pip" else ()
    python = {"uv": "uv run --no-sync python", "pip": ".venv/bin/python" if setup else "python3"}
    command = f"{python.get(manager, f'{manager} run python')} {runner[0]}" if runner else None
    first = place.path(manifest) if manifest else min(tests)
    test = Proposal(command, runner[1]) if runner and command else None
    yield ProjectKind("Python", first, manager, setup, None, test, locks)


def _python_runner(place: Place, project: Mapping[str, Any]) -> tuple[str, str] | None:
    """What runs the tests, to be read after `python`, and the file that says so."""
    settings = {
        "pytest.ini": True,
        "pyproject.toml": bool(table_at(project, "tool", "pytest")) or "pytest" in place.text("pyproject.toml"),
        "tox.ini": "[pytest]" in place.text("tox.ini"),
        "setup.cfg": "[tool:pytest]" in place.text("setup.cfg"),
        "conftest.py": True,
        "Pipfile": "pytest" in place.text("Pipfile"),
        **{name: "pytest" in place.text(name) for name in REQUIREMENTS},
    }
    named = next((name for name, says in settings.items() if says and name in place.here), None)
    tests = sorted(place.names[TESTS])
    if named:
        return PYTEST, place.path(named)
    if "manage.py" in place.here:
        return "manage.py test", place.path("manage.py")
    if not tests:
        return None
    text = place.texts.get(tests[0], "")
    inside = tests[0].removeprefix(f"{place.folder}/" if place.folder else "")
    if "import unittest" in text or "from unittest" in text:
        at_top = inside.partition("/")[0]
        where = f" discover -s {at_top}" if "/" in inside and at_top in {"test", "tests"} else ""
        return f"-m unittest{where}", tests[0]
    return PYTEST, tests[0]


def _python_setup(place: Place, project: Mapping[str, Any], manager: str, lock: str | None) -> Proposal | None:
    extra = next((name for name in EXTRAS if name in table_at(project, "project", "optional-dependencies")), None)
    commands = {
        "uv": f"uv sync{' --frozen' if lock else ''}{f' --extra {extra}' if extra else ''}",
        "poetry": "POETRY_VIRTUALENVS_IN_PROJECT=1 poetry install --no-interaction",
        "pdm": "pdm sync" if lock else "pdm install",
        "pipenv": f"PIPENV_VENV_IN_PROJECT=1 pipenv {'sync' if lock else 'install'} --dev",
    }
    return Proposal(commands[manager], lock or place.path("Pipfile" if manager == "pipenv" else "pyproject.toml"))


def _pip_setup(place: Place, project: Mapping[str, Any], runner: tuple[str, str] | None) -> Proposal | None:
    """A virtual environment in the checkout, since nothing may be installed beside it."""
    pinned = [name for name in REQUIREMENTS if name in place.here]
    parts = [f"-r {name}" for name in pinned]
    known = "".join(map(place.text, pinned))
    is_package = bool(table_at(project, "project")) or "setup.py" in place.here
    if is_package and (not pinned or "build-system" in project or "setup.py" in place.here):
        extras = table_at(project, "project", "optional-dependencies")
        extra = next((name for name in EXTRAS if name in extras), None)
        parts.append(f"-e '.[{extra}]'" if extra else "-e .")
        known += str(extras.get(extra, "")) if extra else str(table_at(project, "project").get("dependencies", ""))
        group = next((name for name in EXTRAS if name in table_at(project, "dependency-groups")), None)
        parts += [f"--group {group}"] if group else []
        known += str(table_at(project, "dependency-groups").get(group or "", ""))
    if not parts:
        return None
    if runner and runner[0] == PYTEST and "pytest" not in known:
        parts.append("pytest")
    source = pinned[0] if pinned else "pyproject.toml" if "pyproject.toml" in place.here else "setup.py"
    # Groups are known to pip from 25.1 on, and Python brings an older one.
    new = "--upgrade-deps " if any(part.startswith("--group") for part in parts) else ""
    return place.proposal(f"python3 -m venv {new}.venv && .venv/bin/pip install -q {' '.join(parts)}", source)


@dataclass(frozen=True)
class _Tool:
    """A language whose one tool does everything: patterns of its manifest, its lock file, and its commands."""

    language: str
    manager: str
    manifests: tuple[str, ...]
    lock: str = ""
    setup: str = ""
    """Where there is a lock file."""
    unlocked_setup: str = ""
    """Where there is none."""
    build: str = ""
    test: str | Callable[[Place], tuple[str, str] | None] = ""
    """A command that the manifest suggests, or the command and the file that does."""


def _ruby_test(place: Place) -> tuple[str, str] | None:
    rakefile = place.first("Rakefile", "rakefile")
    if ".rspec" in place.here:
        return "bundle exec rspec", ".rspec"
    return ("bundle exec rake test", rakefile) if rakefile else None


def _php_test(place: Place) -> tuple[str, str] | None:
    if table_at(place.table("composer.json", json.loads), "scripts").get("test"):
        return "composer test", "composer.json"
    config = place.first("phpunit.xml", "phpunit.xml.dist")
    return ("vendor/bin/phpunit", config) if config else None


_BUNDLE = "bundle config set --local path vendor/bundle && bundle install"
_COMPOSER = "composer install --no-interaction --no-progress"
_GRADLE = ("build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts")
_DOTNET = ("*.sln", "*.slnx", "*.csproj", "*.fsproj", "*.vbproj")
_TOOLS = (
    _Tool("TypeScript", "deno", ("deno.json", "deno.jsonc"), "deno.lock", "deno install --frozen", test="deno test"),
    _Tool("Go", "go", ("go.mod",), "go.sum", "go mod download", "", "go build ./...", "go test ./..."),
    _Tool("Rust", "cargo", ("Cargo.toml",), "Cargo.lock", "cargo fetch --locked", "", "cargo build", "cargo test"),
    _Tool("Elixir", "mix", ("mix.exs",), "mix.lock", "mix deps.get", "", "mix compile", "mix test"),
    _Tool(
        "Swift", "swift", ("Package.swift",), "Package.resolved", "swift package resolve", "", "swift build",
        "swift test",
    ),
    _Tool("Dart", "dart", ("pubspec.yaml",), "pubspec.lock", "dart pub get", "dart pub get", test="dart test"),
    _Tool("Ruby", "bundler", ("Gemfile",), "Gemfile.lock", _BUNDLE, _BUNDLE, test=_ruby_test),
    _Tool("Java", "maven", ("pom.xml",), build="mvn -B -q compile", test="mvn -B -q test"),
    _Tool(
        "Java", "gradle", _GRADLE, "gradle.lockfile", build="gradle --console=plain assemble",
        test="gradle --console=plain test",
    ),
    _Tool("PHP", "composer", ("composer.json",), "composer.lock", _COMPOSER, _COMPOSER, test=_php_test),
    _Tool(
        "C#", "dotnet", _DOTNET, "packages.lock.json", "dotnet restore --locked-mode", "dotnet restore",
        "dotnet build --no-restore", "dotnet test --no-restore",
    ),
)  # fmt: skip


def _tools(place: Place) -> Iterator[ProjectKind]:
    for tool in _TOOLS:
        names = (name for pattern in tool.manifests for name in sorted(place.here) if fnmatchcase(name, pattern))
        if (manifest := next(names, None)) is None:
            continue
        lock = place.lock([tool.lock], _shares_cargo if tool.manager == "cargo" else _alone)
        setup = tool.setup if lock else tool.unlocked_setup
        test = tool.test(place) if callable(tool.test) else (tool.test, manifest)
        yield ProjectKind(
            "F#" if manifest.endswith(".fsproj") else tool.language,
            place.path(manifest),
            tool.manager,
            Proposal(setup, lock or place.path(manifest)) if setup else None,
            _wrapped(place, tool.build, manifest) if tool.build else None,
            _wrapped(place, *test) if test else None,
            (lock,) if lock else (),
        )


def _wrapped(place: Place, command: str, source: str) -> Proposal:
    """A command by the project's own wrapper of its program, as `./mvnw`, where there is one."""
    program, _, options = command.partition(" ")
    return place.proposal(f"./{program}w {options}" if f"{program}w" in place.here else command, source)


def _make(place: Place) -> Iterator[ProjectKind]:
    for program, names in (("make", MAKEFILES), ("just", JUSTFILES)):
        if source := place.first(*names):
            targets = set(_TARGET.findall(place.text(source)[:MAX_MANIFEST_BYTES]))
            test = next((name for name in ("test", "tests", "check") if name in targets), None)
            build = place.proposal(f"{program} build", source) if "build" in targets else None
            tests = place.proposal(f"{program} {test}", source) if test else None
            yield ProjectKind(program.capitalize(), place.path(source), program, None, build, tests)


_DETECTORS = (_node, _python, _tools, _make)


# Where every tool that Zelda detects makes a Python environment.
PYTHON_PROGRAMS = ".venv/bin"
SETUP, PROGRAMS = "setupCommand", "execution.path"


@dataclass(frozen=True)
class DetectedSetup:
    """What a lock file suggests."""

    command: str
    source: str
    """The file, relative to the top of the files_of."""
    programs: tuple[str, ...] = ()
    """Folders in which it installs programs that commands expect on PATH."""

    def __str__(self) -> str:
        return f"setup: {self.command} (found {self.source}; `setupCommand: none` switches it off)"


def detect_setup(root: Path, path: str) -> DetectedSetup | None:
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
    top = files_of.top_of(real)
    if top and (names := files_of.listed(top)) is not None:
        return top, names
    with suppress(OSError):
        return real, sorted(entry.name for entry in os.scandir(real) if entry.is_file(follow_symlinks=False))
    return real, ()


def _text(file: Path) -> str:
    with suppress(OSError):
        return untrusted.read(file, MAX_MANIFEST_BYTES).decode("utf-8", "replace")
    return ""
