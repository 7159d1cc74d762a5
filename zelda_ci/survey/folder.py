"""What a folder is, before Zelda is set up in it: its repository, its kind of project, what steers Claude Code in it.

Nothing of it is run. Everything that is read may have been written by anybody, and much of it may be missing: a listing
of tracked files, and the texts of a few small ones. Commands are made of words of our own only: whether a script, a
target or a file exists decides, never what is in it. What is proposed need not work: somebody has to try it.
"""

import json
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from posixpath import basename, dirname, join, relpath
from typing import Any

from zelda_ci.config.environment import EnvironmentSettings
from zelda_ci.config.files import NEW_ONES, SKIPPED, find_root, is_project, listed, top_of, walk
from zelda_ci.config.init import WORDS, CommandLine, printed, seen_from
from zelda_ci.domain import numbers
from zelda_ci.domain.kinds import KINDS, ItemKind
from zelda_ci.domain.manifest import ManifestItem, RefusedSetting, ToolsManifest
from zelda_ci.execution.doctor import refusals
from zelda_ci.execution.manifest.folders import IS_MOD, SWITCHED_OFF
from zelda_ci.execution.manifest.scan import scan
from zelda_ci.execution.manifest.tree import table
from zelda_ci.files import untrusted
from zelda_ci.files.globs import upwards
from zelda_ci.files.secret_files import find_secrets
from zelda_ci.redact import Redactor

MAX_MANIFEST_BYTES, MAX_PACKAGES, MAX_FILES = 1_000_000, 200, 50_000
# Folders in which files belong to others, or are samples.
FOREIGN = frozenset({"node_modules", "vendor", "third_party", "site-packages", "testdata", "fixtures", "__fixtures__"})
_MANIFESTS = {"package.json", "pyproject.toml", "setup.py", "Pipfile", "go.mod", "Cargo.toml", "Gemfile", "pom.xml"}
_MANIFESTS |= {"composer.json", "mix.exs", "Package.swift", "requirements.txt", "build.gradle", "build.gradle.kts"}
_TEST_FILE = re.compile(r"(test_[^/]*|[^/]*_test)\.py")
_PYPROJECT = "pyproject.toml"
# By manifest, the keys that say that packages below share its lock file.
_WORKSPACES = {"package.json": ("workspaces",), "Cargo.toml": ("workspace",), _PYPROJECT: ("tool", "uv", "workspace")}


@dataclass(frozen=True)
class ProjectKind:
    """One way in which a folder is a project, with the commands for it; paths are from the top of the listing."""

    language: str
    manifest: str
    manager: str
    lock: str | None
    """What fixes the versions of dependencies."""
    setup: str = ""
    build: str = ""
    test: str = ""

    @property
    def program(self) -> str:
        """What has to be there to set it up."""
        return next((word for word in self.setup.split() if "=" not in word), "")

    @property
    def programs(self) -> tuple[str, ...]:
        """Folders in which the setup command installs programs that commands expect on PATH."""
        return (".venv/bin",) if self.language == "Python" and self.setup else ()


def look(root: Path, *options: str) -> tuple[Path, list[str], str, tuple[ProjectKind, ...]]:
    """The top of a folder's repository, its files as git lists them with options, the folder from the top, its kinds.

    Of a folder in no repository, all files that are not hidden.
    """
    top = top_of(root) or root
    files = listed(top, *options) if top_of(root) else None
    if files is None:
        top, files = root, [*islice(_walked(root), MAX_FILES)]

    def read(name: str) -> str:
        """A small file as text, without following links; what cannot be read is empty."""
        with suppress(OSError):
            return untrusted.read(top / name, MAX_MANIFEST_BYTES).decode("utf-8", "replace")
        return ""

    folder = "" if root == top else root.relative_to(top).as_posix()
    return top, sorted(set(files)), folder, kinds(files, read, folder)


def _walked(root: Path) -> Iterator[str]:
    for folder, below, names in walk(root):
        below[:] = [name for name in below if name not in SKIPPED]
        yield from ((folder / name).relative_to(root).as_posix() for name in sorted(names))


def packages(files: Iterable[str], folder: str = "") -> tuple[str, ...]:
    """Folders below that hold a manifest of their own, as in a monorepo."""
    begin = f"{folder}/" if folder else ""
    places = dict.fromkeys(dirname(file) for file in sorted(files) if basename(file) in _MANIFESTS)
    below = (place for place in places if place != folder and place.startswith(begin))
    return tuple(it for it in below if not FOREIGN.intersection(it.split("/")))[:MAX_PACKAGES]


class Place:
    """A folder of a listing, and the texts of its files."""

    def __init__(self, folder: str, files: frozenset[str], read: Callable[[str], str]) -> None:
        self.folder, self.files, self.read = folder, files, read
        self.here = tuple(sorted(basename(file) for file in files if dirname(file) == folder))
        """Names in the folder."""

    def path(self, name: str) -> str:
        """From the top of the tree."""
        return join(self.folder, name)

    def text(self, name: str) -> str:
        """What is in a file that lies here; nothing where none does."""
        return self.read(self.path(name)) if name in self.here else ""

    def table(self, name: str, *keys: str) -> Mapping[str, Any]:
        """The table at a path of keys in a JSON or TOML file; empty where there is none."""
        with suppress(ValueError, RecursionError):
            text = self.text(name).removeprefix("\ufeff")
            return table((json.loads if name.endswith(".json") else tomllib.loads)(text), *keys)
        return {}

    def lock(self, names: Iterable[str], manifest: str) -> str | None:
        """The path of the first of these lock files here, or in the nearest folder above whose manifest shares it."""
        for at in upwards(self.folder):
            if found := next((path for name in names if (path := join(at, name)) in self.files), None):
                above, (*keys, key) = Place(at, self.files, self.read), _WORKSPACES.get(manifest, ("",))
                is_shared = key in above.table(manifest, *keys)
                is_shared |= manifest == "package.json" and "pnpm-workspace.yaml" in above.here
                if at == self.folder or is_shared:
                    return found
        return None

    def tests(self) -> list[str]:
        """Python's test files as seen from here, without those of packages below."""
        others = {*packages(self.files, self.folder)}
        named = (file for file in self.files if _TEST_FILE.fullmatch(basename(file)))
        own = (it for it in named if self.folder in upwards(dirname(it)) and not FOREIGN.intersection(it.split("/")))
        return sorted(relpath(it, self.folder or ".") for it in own if others.isdisjoint(upwards(dirname(it))))


def kinds(files: Iterable[str], read: Callable[[str], str], folder: str = "") -> tuple[ProjectKind, ...]:
    """Every kind that a folder is, the one with tests of its own first; `read` gives the text of a file."""
    place = Place(folder, frozenset(files), read)
    found = [kind for detect in (_node, _python, _tools, _make) for kind in detect(place)]
    # Tests come first, manifests before mere files, and what only calls other tools last.
    found.sort(key=lambda it: (it.manager in _MAKEFILES, not it.test, it.manifest.endswith(".py") and not it.setup))
    return tuple(found)


_NODE_LOCKS = {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn", **dict.fromkeys(("bun.lock", "bun.lockb"), "bun")}
_NODE_LOCKS |= dict.fromkeys(("package-lock.json", "npm-shrinkwrap.json"), "npm")
_NEEDS_SETUP = ("workspaces", "dependencies", "devDependencies", "optionalDependencies")
_NODE_TESTS = ("test", "test:ci", "test:run", "test:unit")
# What tests nothing, or does not come to an end.
_NO_TEST = re.compile(r"no test specified|--watch(All)?\b(?!=false)|\bnodemon\b|^\s*$")


def _node(place: Place) -> Iterator[ProjectKind]:
    if "package.json" not in place.here:
        return
    package, scripts = place.table("package.json"), place.table("package.json", "scripts")
    lock = place.lock(_NODE_LOCKS, "package.json")
    wrote = _NODE_LOCKS[basename(lock)] if lock else "npm"
    named = re.match(r"(npm|pnpm|yarn|bun)@(\d{0,4})", str(package.get("packageManager", "")))
    manager, setup = named[1] if named else wrote, ""
    if lock and wrote == manager:
        is_new_yarn = bool(named and int(named[2] or 0) > 1) or place.lock([".yarnrc.yml"], "package.json")
        flag = "--immutable" if manager == "yarn" and is_new_yarn else "--frozen-lockfile"
        setup = "npm ci" if manager == "npm" else f"{manager} install {flag}"
    elif lock or any(map(package.get, _NEEDS_SETUP)):
        # The manager that is named need not be the one that wrote the lock file.
        setup = f"{manager} install"
    given = ((it, scripts.get(it)) for it in _NODE_TESTS)
    test = next((it for it, text in given if isinstance(text, str) and not _NO_TEST.search(text)), None)
    build = f"{manager} run build" if scripts.get("build") else ""
    tested = f"{manager} {'' if test == 'test' and manager != 'bun' else 'run '}{test}" if test else ""
    language = "TypeScript" if "tsconfig.json" in place.here else "JavaScript"
    yield ProjectKind(language, place.path("package.json"), manager, lock, setup, build, tested)


_PYTHON_LOCKS = {"uv.lock": "uv", "poetry.lock": "poetry", "pdm.lock": "pdm", "Pipfile.lock": "pipenv"}
_REQUIREMENTS = re.compile(r"(dev-|test-)?requirements([-_](dev|test))?\.txt")
_PYTHON_MANIFESTS = ("pyproject.toml", "setup.py", "setup.cfg", "Pipfile")
# Files that say that pytest runs the tests, and the words of it; by being there where there is none.
_PYTEST_SIGNS = {"pytest.ini": "", "pyproject.toml": "pytest", "tox.ini": "[pytest]", "setup.cfg": "[tool:pytest]"}
_PYTEST_SIGNS |= {"conftest.py": "", "Pipfile": "pytest"}
_PYTEST = "-m pytest"
_EXTRAS = ("test", "tests", "testing", "dev")


def _python(place: Place) -> Iterator[ProjectKind]:
    tests = place.tests()
    pinned = sorted(filter(_REQUIREMENTS.fullmatch, place.here), key=lambda name: (name != "requirements.txt", name))
    ordered = (*_PYTHON_MANIFESTS, *pinned, "tox.ini", "manage.py")
    manifest = next((place.path(name) for name in ordered if name in place.here), None)
    if manifest is None and not {file.split("/")[0] for file in tests} & {"test", "tests", *place.here}:
        return
    lock = place.lock(_PYTHON_LOCKS, _PYPROJECT)
    named = next((tool for tool in ("uv", "poetry", "pdm") if tool in place.table(_PYPROJECT, "tool")), "pip")
    manager = _PYTHON_LOCKS[basename(lock)] if lock else "pipenv" if "Pipfile" in place.here else named
    runner = _python_runner(place, tests, pinned)
    extras = place.table(_PYPROJECT, "project", "optional-dependencies")
    extra = next((name for name in _EXTRAS if name in extras), "")
    setup, python = {
        "uv": (f"uv sync{' --frozen' if lock else ''}{extra and f' --extra {extra}'}", "uv run --no-sync python"),
        "poetry": ("POETRY_VIRTUALENVS_IN_PROJECT=1 poetry install --no-interaction", "poetry run python"),
        "pdm": ("pdm sync" if lock else "pdm install", "pdm run python"),
        "pipenv": (f"PIPENV_VENV_IN_PROJECT=1 pipenv {'sync' if lock else 'install'} --dev", "pipenv run python"),
    }.get(manager) or (_pip_setup(place, pinned, runner, extra), ".venv/bin/python")
    lock = lock or (place.path(pinned[0]) if pinned and manager == "pip" else None)
    test = f"{python if setup else 'python3'} {runner}" if runner else ""
    yield ProjectKind("Python", manifest or place.path(tests[0]), manager, lock, setup, "", test)


def _python_runner(place: Place, tests: Sequence[str], pinned: Sequence[str]) -> str:
    """What runs the tests, to be read after `python`."""
    signs = _PYTEST_SIGNS | dict.fromkeys(pinned, "pytest")
    if any(name in place.here and words in place.text(name) for name, words in signs.items()):
        return _PYTEST
    if "manage.py" in place.here:
        return "manage.py test"
    if tests and re.search("import unittest|from unittest", place.read(place.path(tests[0]))):
        top, _, below = tests[0].partition("/")
        return f"-m unittest{f' discover -s {top}' if below and top in {'test', 'tests'} else ''}"
    return _PYTEST if tests else ""


def _pip_setup(place: Place, pinned: Sequence[str], runner: str, extra: str) -> str:
    """A virtual environment in the checkout, since nothing may be installed beside it."""
    parts, known = [f"-r {name}" for name in pinned], "".join(map(place.text, pinned))
    project = place.table(_PYPROJECT, "project")
    if "setup.py" in place.here or (project and (not pinned or "build-system" in place.table(_PYPROJECT))):
        parts.append(f"-e '.[{extra}]'" if extra else "-e .")
        known += str(project["optional-dependencies"][extra] if extra else project.get("dependencies", ""))
    if not parts:
        return ""
    more = " pytest" if runner == _PYTEST and "pytest" not in known else ""
    return f"python3 -m venv .venv && .venv/bin/pip install -q {' '.join(parts)}{more}"


# Languages whose one tool does everything: language, tool, manifests, lock file, setup, what is added to it where there
# is a lock file, build and test.
_TOOLS = """
TypeScript | deno | deno.json deno.jsonc | deno.lock | deno install | --frozen | | deno test
Go | go | go.mod | go.sum | go mod download | | go build ./... | go test ./...
Rust | cargo | Cargo.toml | Cargo.lock | cargo fetch | --locked | cargo build | cargo test
Elixir | mix | mix.exs | mix.lock | mix deps.get | | mix compile | mix test
Swift | swift | Package.swift | Package.resolved | swift package resolve | | swift build | swift test
Dart | dart | pubspec.yaml | pubspec.lock | dart pub get | | | dart test
Ruby | bundler | Gemfile | Gemfile.lock | bundle config set --local path vendor/bundle && bundle install | | |
Java | maven | pom.xml | | | | mvn -B -q compile | mvn -B -q test
Java | gradle | build.gradle build.gradle.kts settings.gradle settings.gradle.kts | gradle.lockfile | | \
     | gradle --console=plain assemble | gradle --console=plain test
PHP | composer | composer.json | composer.lock | composer install --no-interaction --no-progress | | |
C# | dotnet | *.sln *.slnx *.csproj *.fsproj *.vbproj | packages.lock.json | dotnet restore | --locked-mode \
   | dotnet build --no-restore | dotnet test --no-restore
"""
# By tool, files that suggest a test command where the manifest alone does not.
_TESTS = {
    "bundler": {".rspec": "bundle exec rspec", **dict.fromkeys(("Rakefile", "rakefile"), "bundle exec rake test")},
    "composer": dict.fromkeys(("phpunit.xml", "phpunit.xml.dist"), "vendor/bin/phpunit"),
}


def _tools(place: Place) -> Iterator[ProjectKind]:
    for row in _TOOLS.strip().splitlines():
        language, tool, manifests, locks, setup, frozen, build, test = map(str.strip, row.split("|"))
        names = (name for pattern in manifests.split() for name in place.here if fnmatchcase(name, pattern))
        if (manifest := next(names, None)) is None:
            continue
        lock = place.lock(locks.split(), manifest)
        test = next((command for name, command in _TESTS.get(tool, {}).items() if name in place.here), test)
        if tool == "composer" and place.table("composer.json", "scripts").get("test"):
            test = "composer test"
        # By the project's own wrapper of a program, as `./mvnw`, where there is one.
        words = (command.split(" ", 1) for command in (build, test))
        build, test = (" ".join([f"./{it}w" if it and f"{it}w" in place.here else it, *rest]) for it, *rest in words)
        language = "F#" if manifest.endswith(".fsproj") else language
        setup = f"{setup} {frozen if lock else ''}".strip()
        yield ProjectKind(language, place.path(manifest), tool, lock, setup, build, test)


_MAKEFILES = {"make": ("GNUmakefile", "makefile", "Makefile"), "just": ("justfile", "Justfile", ".justfile")}
_TARGET = re.compile(r"^([\w.-]+)(?:[ \t][^:=\n]*)?:(?!=)", re.MULTILINE)


def _make(place: Place) -> Iterator[ProjectKind]:
    for program, names in _MAKEFILES.items():
        if source := next((name for name in names if name in place.here), None):
            targets = {*_TARGET.findall(place.text(source))}
            test = next((f"{program} {name}" for name in ("test", "tests", "check") if name in targets), "")
            build = f"{program} build" if "build" in targets else ""
            yield ProjectKind(program.capitalize(), place.path(source), program, None, "", build, test)


MAX_NAMED = 5
COUNTED = (
    ItemKind.MEMORY, ItemKind.SKILL, ItemKind.RULE, ItemKind.AGENT, ItemKind.COMMAND, ItemKind.WORKFLOW,
    ItemKind.MCP_SERVER, ItemKind.HOOK, ItemKind.PLUGIN,
)  # fmt: skip


@dataclass(frozen=True)
class Survey:
    """What was found; paths are from the top of the repository, or of the folder itself, as the project's is."""

    root: Path
    top: Path
    folder: str
    above: Path | None
    """The nearest folder above that is a project of Zelda's already."""
    files: tuple[str, ...]
    kinds: tuple[ProjectKind, ...]
    items: tuple[ManifestItem, ...]
    refused: tuple[RefusedSetting, ...]
    """Settings files and plugins, or parts of them, that Claude Code does not load."""

    def commands(self) -> list[CommandLine]:
        """The commands to try, each with the file that suggests it."""
        # A Makefile may know what the manifest does not.
        main, tested = self.kinds[:1], [kind for kind in self.kinds if kind.test][:1]
        found = [("setupCommand", kind.setup, kind.lock or kind.manifest) for kind in main]
        found += [("buildCommand", kind.build, kind.manifest) for kind in main]
        found += [("testCommand", kind.test, kind.manifest) for kind in tested]
        return [CommandLine(key, command, seen_from(self.folder, file)) for key, command, file in found if command]

    def sentences(self) -> Iterator[str]:
        """What was found, for people."""
        found = []
        for kind in self.kinds:
            manager = kind.manager if kind.manager != kind.language.lower() else None
            named = filter(None, (self._called(kind.manifest), manager, self._called(kind.lock or "")))
            found.append(f"{kind.language} ({', '.join(dict.fromkeys(named))})")
        none = "No manifest of a known language is here, so no command is proposed."
        yield f"Found: {'; '.join(found)}." if found else none
        if below := [*map(self._called, packages(self.files, self.folder))]:
            listing = numbers.some_of(below, MAX_NAMED)
            yield f"Packages below: {listing}. To set up one alone: zelda init --project DIR"
        usable = Counter(item.kind for item in self.items if not item.problem and not item.shadowed)
        counts = [numbers.format_count(usable[kind], KINDS[kind].word) for kind in COUNTED if usable[kind]]
        yield f"Claude Code reads here: {', '.join(counts)}." if counts else "No CLAUDE.md, skills or rules found."

    def broken(self) -> Iterator[str]:
        """What is meant to steer Claude Code and is not loaded, in a sentence each."""
        for each in self.refused[:MAX_NAMED]:
            yield f"{self._called(each.file)} is {printed(each.effect)}."
        broken = [item for item in self.items if item.problem and item.kind in {*WORDS} - {ItemKind.MEMORY}]
        for item in broken[:MAX_NAMED]:
            yield f"Claude Code does not load {self._called(item.file)}: {printed(item.problem or '')}."

    def _called(self, path: str) -> str:
        """A path from the top as the project's folder calls it, for people."""
        return printed(seen_from(self.folder, path))


def survey(folder: Path, settings: EnvironmentSettings) -> Survey:
    """Look at a folder; secrets that lie in it are masked."""
    root = folder.resolve()
    redact = Redactor([*settings.secrets, *find_secrets(root, settings.environ, ()).secrets])
    top, files, place, found = look(root, *NEW_ONES)
    offered = scan(top, root, redact, refusals)
    known = find_root(root.parent) if root != top else root
    above = known if known != root and is_project(known) else None
    return Survey(root, top, place, above, tuple(files), found, offered.items, _not_loaded(offered, redact))


def refused_settings(folder: Path, redact: Redactor, top: Path | None = None) -> tuple[RefusedSetting, ...]:
    """Return what is not loaded of the settings files and plugins of a project; `top` is that of its repository."""
    root = folder.resolve()
    return _not_loaded(scan((top or top_of(root) or root).resolve(), root, redact, refusals), redact)


def _not_loaded(offered: ToolsManifest, redact: Redactor) -> tuple[RefusedSetting, ...]:
    """Return what Claude Code refuses, by its own word, and plugins that a project wants and cannot have."""
    plugins = [item for item in offered.items if item.kind is ItemKind.PLUGIN and item.problem]
    wanted = [item for item in plugins if item.problem not in (SWITCHED_OFF, IS_MOD)]
    lost = (RefusedSetting(file=it.file, key=it.name, problem=it.problem or redact("")) for it in wanted)
    return (*offered.refused, *lost)
