"""What kind of project a folder holds: its language, package manager, lock files and commands.

All of it is read from a listing of tracked files and the text of a few small ones, which anybody may have written.
Commands are made of words of our own only: whether a script, a target or a file exists decides, never what is in it.
What is proposed need not work: somebody has to try it.
"""

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from posixpath import basename, dirname, join
from typing import Any

from zelda_ci.config.files import upwards
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
MAKEFILES = {"make": ("GNUmakefile", "makefile", "Makefile"), "just": ("justfile", "Justfile", ".justfile")}
# Manifests that may say that folders below share their lock file, and other files whose text matters.
WORKSPACES = ("package.json", "pyproject.toml", "Cargo.toml")
READ = frozenset({*WORKSPACES, *REQUIREMENTS, *MAKEFILES["make"], *MAKEFILES["just"]})
READ |= {"setup.cfg", "tox.ini", "Pipfile", "composer.json"}
_MANIFESTS = {"package.json", "pyproject.toml", "setup.py", "Pipfile", "go.mod", "Cargo.toml", "Gemfile", "pom.xml"}
_MANIFESTS |= {"composer.json", "mix.exs", "Package.swift", "requirements.txt", "build.gradle", "build.gradle.kts"}
_TEST_FILE = re.compile(r"(test_[^/]*|[^/]*_test)\.py")

# Where every tool that Zelda detects makes a Python environment.
PYTHON_PROGRAMS = ".venv/bin"


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
    manager: str
    setup: Proposal | None = None
    build: Proposal | None = None
    test: Proposal | None = None
    locks: tuple[str, ...] = ()
    """What fixes the versions of dependencies; paths from the top of the listing, as all paths here."""

    @property
    def programs(self) -> tuple[str, ...]:
        """Folders in which the setup command installs programs that commands expect on PATH."""
        return (PYTHON_PROGRAMS,) if self.language == "Python" and self.setup else ()


def packages(files: Iterable[str], folder: str = "") -> tuple[str, ...]:
    """Folders below that hold a manifest of their own, as in a monorepo."""
    begin = f"{folder}/" if folder else ""
    places = (dirname(file) for file in sorted(files) if basename(file) in _MANIFESTS)
    below = (place for place in places if place != folder and place.startswith(begin))
    return tuple(dict.fromkeys(it for it in below if not FOREIGN.intersection(it.split("/"))))[:MAX_PACKAGES]


def python_tests(files: Iterable[str], folder: str) -> list[str]:
    """Test files of a folder and those below, without those of packages."""
    named = [file for file in files if _TEST_FILE.fullmatch(basename(file))]
    own = [file for file in named if folder in upwards(dirname(file)) and not FOREIGN.intersection(file.split("/"))]
    others = set(packages(files, folder)) if own else set[str]()
    return sorted(file for file in own if others.isdisjoint(upwards(dirname(file))))


def manifests(files: Iterable[str], folder: str = "") -> tuple[str, ...]:
    """The files whose text `kinds` wants to see; read no more of any than MAX_MANIFEST_BYTES."""
    wanted = {join(place, name) for place in upwards(folder) for name in WORKSPACES}
    wanted |= {join(folder, name) for name in READ}
    files = list(files)
    return tuple(sorted({*wanted.intersection(files), *python_tests(files, folder)[:1]}))


@dataclass(frozen=True)
class Place:
    """A folder of a listing, and the texts of manifests."""

    folder: str
    files: frozenset[str]
    texts: Mapping[str, str]
    here: tuple[str, ...] = field(init=False)
    """Names in the folder."""

    def __post_init__(self) -> None:
        names = sorted(file.rpartition("/")[2] for file in self.files if dirname(file) == self.folder)
        object.__setattr__(self, "here", tuple(names))

    def path(self, name: str) -> str:
        """From the top of the tree."""
        return join(self.folder, name)

    def text(self, name: str) -> str:
        """What is in a file that lies here; nothing where none does."""
        return self.texts.get(self.path(name), "") if name in self.here else ""

    def first(self, *names: str) -> str | None:
        """The first of these that lies here."""
        return next((name for name in names if name in self.here), None)

    def lock(self, names: Iterable[str], shares: "Callable[[Place], object] | None" = None) -> str | None:
        """The path of the first of these here, or in the nearest folder above whose manifest shares its own."""
        for at in upwards(self.folder):
            found = next((path for name in names if (path := join(at, name)) in self.files), None)
            if found and (at == self.folder or (shares and shares(Place(at, self.files, self.texts)))):
                return found
        return None

    def table(self, name: str, *keys: str) -> Mapping[str, Any]:
        """What lies at a path of keys in a JSON or TOML file; empty where that is no table."""
        value = _parsed(self.text(name), name.endswith(".json"))
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        return value if isinstance(value, dict) else {}

    def proposal(self, command: str | None, source: str) -> Proposal | None:
        """A command that a file of this folder suggests."""
        return Proposal(command, self.path(source)) if command else None


@lru_cache(64)
def _parsed(text: str, is_json: bool) -> Any:  # noqa: FBT001 - a key of the cache
    try:
        text = text.removeprefix("\ufeff") if len(text) <= MAX_MANIFEST_BYTES else ""
        return json.loads(text) if is_json else tomllib.loads(text)
    except (ValueError, RecursionError, TypeError):
        return {}


def kinds(files: Iterable[str], texts: Mapping[str, str], folder: str = "") -> tuple[ProjectKind, ...]:
    """Every kind that a folder is, the one with tests of its own first; a manifest without a text counts as empty."""
    place = Place(folder, frozenset(files), texts)
    found = [kind for detect in (_node, _python, _tools, _make) for kind in detect(place)]
    # Tests come first, manifests before mere files, and what only calls other tools last.
    found.sort(key=lambda it: (it.manager in MAKEFILES, not it.test, it.manifest.endswith(".py") and not it.setup))
    return tuple(found)


_NODE_LOCKS = {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn", **dict.fromkeys(("bun.lock", "bun.lockb"), "bun")}
_NODE_LOCKS |= dict.fromkeys(("package-lock.json", "npm-shrinkwrap.json"), "npm")
# What tests nothing, or does not come to an end.
_NO_TEST = re.compile(r"no test specified|--watch(All)?\b(?!=false)|\bnodemon\b|^\s*$")


def _shares_node(place: Place) -> bool:
    return bool(place.table("package.json").get("workspaces")) or "pnpm-workspace.yaml" in place.here


def _node(place: Place) -> Iterator[ProjectKind]:
    source = "package.json"
    if source not in place.here:
        return
    package, scripts = place.table(source), place.table(source, "scripts")
    lock = place.lock(_NODE_LOCKS, _shares_node)
    wrote = _NODE_LOCKS[basename(lock)] if lock else "npm"
    named = re.match(r"(npm|pnpm|yarn|bun)@(\d{0,4})", str(package.get("packageManager", "")))
    manager = named[1] if named else wrote
    setup = None
    if lock and wrote == manager:
        is_new_yarn = bool(named and int(named[2] or 0) > 1) or place.lock([".yarnrc.yml"], _shares_node)
        flag = "--immutable" if manager == "yarn" and is_new_yarn else "--frozen-lockfile"
        setup = Proposal("npm ci" if manager == "npm" else f"{manager} install {flag}", lock)
    elif lock or package.get("workspaces") or any(place.table(source, f"{kind}ependencies") for kind in _DEPENDENCIES):
        # The manager that is named need not be the one that wrote the lock file.
        setup = Proposal(f"{manager} install", lock or place.path(source))
    tests = ("test", "test:ci", "test:run", "test:unit")
    test = next((it for it in tests if isinstance(text := scripts.get(it), str) and not _NO_TEST.search(text)), None)
    run = "" if test == "test" and manager != "bun" else "run "
    yield ProjectKind(
        "TypeScript" if "tsconfig.json" in place.here else "JavaScript",
        place.path(source),
        manager,
        setup,
        place.proposal(f"{manager} run build" if scripts.get("build") else None, source),
        place.proposal(f"{manager} {run}{test}" if test else None, source),
        (lock,) if lock else (),
    )


_DEPENDENCIES = ("d", "devD", "optionalD")
_PYTHON_LOCKS = {"uv.lock": "uv", "poetry.lock": "poetry", "pdm.lock": "pdm", "Pipfile.lock": "pipenv"}
_PYTHON_MANIFESTS = ("pyproject.toml", "setup.py", "setup.cfg", "Pipfile", *REQUIREMENTS, "tox.ini", "manage.py")
# Files that say that pytest runs the tests, and the words of it; by being there where there is none.
_PYTEST = {"pytest.ini": "", "pyproject.toml": "pytest", "tox.ini": "[pytest]", "setup.cfg": "[tool:pytest]"}
_PYTEST |= {"conftest.py": "", "Pipfile": "pytest", **dict.fromkeys(REQUIREMENTS, "pytest")}
PYTEST = "-m pytest"


def _python(place: Place) -> Iterator[ProjectKind]:
    tests = python_tests(place.files, place.folder)
    manifest = place.first(*_PYTHON_MANIFESTS)
    tops = {file.removeprefix(f"{place.folder}/").split("/")[0] for file in tests}
    if manifest is None and not tops & {"test", "tests", *place.here}:
        return
    lock = place.lock(_PYTHON_LOCKS, lambda above: above.table("pyproject.toml", "tool", "uv", "workspace"))
    tools = place.table("pyproject.toml", "tool")
    named = ["pipenv"] if "Pipfile" in place.here else [tool for tool in ("uv", "poetry", "pdm") if tool in tools]
    manager = _PYTHON_LOCKS[basename(lock)] if lock else next(iter(named), "pip")
    runner, said = _python_runner(place, tests)
    setup = _pip_setup(place, runner) if manager == "pip" else _python_setup(place, manager, lock)
    pinned = place.first(*REQUIREMENTS) if manager == "pip" else None
    python = {"uv": "uv run --no-sync python", "pip": ".venv/bin/python" if setup else "python3"}
    yield ProjectKind(
        "Python",
        place.path(manifest) if manifest else min(tests),
        manager,
        setup,
        None,
        Proposal(f"{python.get(manager, f'{manager} run python')} {runner}", said) if runner else None,
        (lock,) if lock else (place.path(pinned),) if pinned else (),
    )


def _python_runner(place: Place, tests: Sequence[str]) -> tuple[str, str]:
    """What runs the tests, to be read after `python`, and the file that says so."""
    if named := [name for name, words in _PYTEST.items() if name in place.here and words in place.text(name)]:
        return PYTEST, place.path(named[0])
    if "manage.py" in place.here:
        return "manage.py test", place.path("manage.py")
    if tests and re.search("import unittest|from unittest", place.texts.get(tests[0], "")):
        top, _, below = tests[0].removeprefix(f"{place.folder}/" if place.folder else "").partition("/")
        return f"-m unittest{f' discover -s {top}' if below and top in {'test', 'tests'} else ''}", tests[0]
    return (PYTEST, tests[0]) if tests else ("", "")


def _python_setup(place: Place, manager: str, lock: str | None) -> Proposal:
    extras = place.table("pyproject.toml", "project", "optional-dependencies")
    extra = next((f" --extra {name}" for name in EXTRAS if name in extras), "")
    commands = {
        "uv": f"uv sync{' --frozen' if lock else ''}{extra}",
        "poetry": "POETRY_VIRTUALENVS_IN_PROJECT=1 poetry install --no-interaction",
        "pdm": "pdm sync" if lock else "pdm install",
        "pipenv": f"PIPENV_VENV_IN_PROJECT=1 pipenv {'sync' if lock else 'install'} --dev",
    }
    return Proposal(commands[manager], lock or place.path("Pipfile" if manager == "pipenv" else "pyproject.toml"))


def _pip_setup(place: Place, runner: str) -> Proposal | None:
    """A virtual environment in the checkout, since nothing may be installed beside it."""
    pinned = [name for name in REQUIREMENTS if name in place.here]
    parts, known = [f"-r {name}" for name in pinned], "".join(map(place.text, pinned))
    top, project = place.table("pyproject.toml"), place.table("pyproject.toml", "project")
    groups, upgrade = place.table("pyproject.toml", "dependency-groups"), ""
    if "setup.py" in place.here or (project and (not pinned or "build-system" in top)):
        extras = place.table("pyproject.toml", "project", "optional-dependencies")
        extra = next((name for name in EXTRAS if name in extras), None)
        parts.append(f"-e '.[{extra}]'" if extra else "-e .")
        known += str(extras[extra] if extra else project.get("dependencies", ""))
        if group := next((name for name in EXTRAS if name in groups), None):
            # Groups are known to pip from 25.1 on, and Python brings an older one.
            parts, upgrade, known = [*parts, f"--group {group}"], "--upgrade-deps ", f"{known}{groups[group]}"
    if not parts:
        return None
    if runner == PYTEST and "pytest" not in known:
        parts.append("pytest")
    source = next(iter(pinned), "pyproject.toml" if "pyproject.toml" in place.here else "setup.py")
    return place.proposal(f"python3 -m venv {upgrade}.venv && .venv/bin/pip install -q {' '.join(parts)}", source)


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
    test: str = ""


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
    _Tool("Ruby", "bundler", ("Gemfile",), "Gemfile.lock", _BUNDLE, _BUNDLE),
    _Tool("Java", "maven", ("pom.xml",), build="mvn -B -q compile", test="mvn -B -q test"),
    _Tool(
        "Java", "gradle", _GRADLE, "gradle.lockfile", build="gradle --console=plain assemble",
        test="gradle --console=plain test",
    ),
    _Tool("PHP", "composer", ("composer.json",), "composer.lock", _COMPOSER, _COMPOSER),
    _Tool(
        "C#", "dotnet", _DOTNET, "packages.lock.json", "dotnet restore --locked-mode", "dotnet restore",
        "dotnet build --no-restore", "dotnet test --no-restore",
    ),
)  # fmt: skip
# Files that suggest a test command where the manifest alone does not.
_TESTS = {
    "bundler": {".rspec": "bundle exec rspec", **dict.fromkeys(("Rakefile", "rakefile"), "bundle exec rake test")},
    "composer": dict.fromkeys(("phpunit.xml", "phpunit.xml.dist"), "vendor/bin/phpunit"),
}


def _shares_cargo(place: Place) -> bool:
    return "workspace" in place.table("Cargo.toml")


def _tools(place: Place) -> Iterator[ProjectKind]:
    for tool in _TOOLS:
        names = (name for pattern in tool.manifests for name in place.here if fnmatchcase(name, pattern))
        if (manifest := next(names, None)) is None:
            continue
        lock = place.lock([tool.lock], _shares_cargo if tool.manager == "cargo" else None)
        setup = tool.setup if lock else tool.unlocked_setup
        tests = _TESTS.get(tool.manager, {})
        source, test = next((row for row in tests.items() if row[0] in place.here), (manifest, tool.test))
        if place.table("composer.json", "scripts").get("test") and tool.manager == "composer":
            source, test = manifest, "composer test"
        yield ProjectKind(
            "F#" if manifest.endswith(".fsproj") else tool.language,
            place.path(manifest),
            tool.manager,
            Proposal(setup, lock or place.path(manifest)) if setup else None,
            place.proposal(_wrapped(place, tool.build), manifest),
            place.proposal(_wrapped(place, test), source),
            (lock,) if lock else (),
        )


def _wrapped(place: Place, command: str) -> str:
    """A command by the project's own wrapper of its program, as `./mvnw`, where there is one."""
    program, _, options = command.partition(" ")
    return f"./{program}w {options}" if f"{program}w" in place.here else command


_TARGET = re.compile(r"^([\w.-]+)(?:[ \t][^:=\n]*)?:(?!=)", re.MULTILINE)


def _make(place: Place) -> Iterator[ProjectKind]:
    for program, names in MAKEFILES.items():
        if source := place.first(*names):
            targets = set(_TARGET.findall(place.text(source)[:MAX_MANIFEST_BYTES]))
            test = next((f"{program} {name}" for name in ("test", "tests", "check") if name in targets), None)
            build = place.proposal(f"{program} build" if "build" in targets else None, source)
            tests = place.proposal(test, source)
            yield ProjectKind(program.capitalize(), place.path(source), program, None, build, tests)


def read(top: Path, names: Iterable[str]) -> dict[str, str]:
    """The texts of files that can be read, without following links."""
    texts = {}
    for name in names:
        with suppress(OSError):
            texts[name] = untrusted.read(top / name, MAX_MANIFEST_BYTES).decode("utf-8", "replace")
    return texts
