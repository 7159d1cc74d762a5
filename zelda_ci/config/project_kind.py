"""What kind of project a folder holds: its language, package manager, lock files and commands.

All of it is read from a listing of tracked files and the text of a few small ones. What is proposed need not work:
somebody has to try it.
"""

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from zelda_ci.config.project_files import (
    EXTRAS,
    GRADLE,
    JUSTFILES,
    MAKEFILES,
    MAX_MANIFEST_BYTES,
    PYTHON_MANIFESTS,
    REQUIREMENTS,
    TESTS,
    Place,
    ProjectKind,
    Proposal,
    names_of,
    table_at,
)

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


def _deno(place: Place) -> Iterator[ProjectKind]:
    if source := place.first("deno.json", "deno.jsonc"):
        lock = place.lock(["deno.lock"], _alone)
        setup = Proposal("deno install --frozen", lock) if lock else None
        test = place.proposal("deno test", source)
        yield ProjectKind("TypeScript", place.path(source), "deno", setup, None, test, (lock,) if lock else ())


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


def _ruby(place: Place) -> Iterator[ProjectKind]:
    if "Gemfile" not in place.here:
        return
    lock = place.first("Gemfile.lock")
    below = {name for name in (".rspec", "Rakefile", "rakefile") if name in place.here}
    test = "bundle exec rspec" if ".rspec" in below else "bundle exec rake test" if below else None
    source = next(iter(sorted(below)), "Gemfile")
    setup = "bundle config set --local path vendor/bundle && bundle install"
    yield ProjectKind(
        "Ruby",
        place.path("Gemfile"),
        "bundler",
        place.proposal(setup, lock or "Gemfile"),
        None,
        place.proposal(test, source) if test else None,
        (place.path(lock),) if lock else (),
    )


def _php(place: Place) -> Iterator[ProjectKind]:
    if "composer.json" not in place.here:
        return
    lock = place.first("composer.lock")
    scripts = table_at(place.table("composer.json", json.loads), "scripts")
    config = place.first("phpunit.xml", "phpunit.xml.dist")
    test = place.proposal("composer test", "composer.json") if scripts.get("test") else None
    test = test or (place.proposal("vendor/bin/phpunit", config) if config else None)
    setup = place.proposal("composer install --no-interaction --no-progress", lock or "composer.json")
    locks = (place.path(lock),) if lock else ()
    yield ProjectKind("PHP", place.path("composer.json"), "composer", setup, None, test, locks)


def _java(place: Place) -> Iterator[ProjectKind]:
    if "pom.xml" in place.here:
        maven = "./mvnw" if "mvnw" in place.here else "mvn"
        build, test = (place.proposal(f"{maven} -B -q {goal}", "pom.xml") for goal in ("compile", "test"))
        yield ProjectKind("Java", place.path("pom.xml"), "maven", None, build, test)
    if source := place.first(*GRADLE):
        gradle = "./gradlew" if "gradlew" in place.here else "gradle"
        build, test = (place.proposal(f"{gradle} --console=plain {task}", source) for task in ("assemble", "test"))
        locks = tuple(map(place.path, filter(place.here.__contains__, ("gradle.lockfile",))))
        yield ProjectKind("Java", place.path(source), "gradle", None, build, test, locks)


@dataclass(frozen=True)
class _Toolchain:
    """A language whose one tool does everything, by the names of manifest and lock file."""

    language: str
    manifest: str
    lock: str
    manager: str
    setup: str
    build: str
    test: str
    setup_needs_lock: bool = True


_TOOLCHAINS = (
    _Toolchain("Go", "go.mod", "go.sum", "go", "go mod download", "go build ./...", "go test ./..."),
    _Toolchain("Rust", "Cargo.toml", "Cargo.lock", "cargo", "cargo fetch --locked", "cargo build", "cargo test"),
    _Toolchain("Elixir", "mix.exs", "mix.lock", "mix", "mix deps.get", "mix compile", "mix test"),
    _Toolchain(
        "Swift", "Package.swift", "Package.resolved", "swift", "swift package resolve", "swift build", "swift test"
    ),
    _Toolchain("Dart", "pubspec.yaml", "pubspec.lock", "dart", "dart pub get", "", "dart test", setup_needs_lock=False),
)


def _toolchains(place: Place) -> Iterator[ProjectKind]:
    for tool in _TOOLCHAINS:
        if tool.manifest not in place.here:
            continue
        lock = place.lock([tool.lock], _shares_cargo if tool.manager == "cargo" else _alone)
        setup = Proposal(tool.setup, lock or place.path(tool.manifest))
        yield ProjectKind(
            tool.language,
            place.path(tool.manifest),
            tool.manager,
            setup if lock or not tool.setup_needs_lock else None,
            place.proposal(tool.build, tool.manifest) if tool.build else None,
            place.proposal(tool.test, tool.manifest),
            (lock,) if lock else (),
        )


def _dotnet(place: Place) -> Iterator[ProjectKind]:
    endings = (".sln", ".slnx", ".csproj", ".fsproj", ".vbproj")
    source = next((name for ending in endings for name in sorted(place.here) if name.endswith(ending)), None)
    if source:
        lock = place.first("packages.lock.json")
        setup = place.proposal(f"dotnet restore{' --locked-mode' if lock else ''}", lock or source)
        build = place.proposal("dotnet build --no-restore", source)
        test = place.proposal("dotnet test --no-restore", source)
        language = "F#" if source.endswith(".fsproj") else "C#"
        yield ProjectKind(
            language, place.path(source), "dotnet", setup, build, test, (place.path(lock),) if lock else ()
        )


def _make(place: Place) -> Iterator[ProjectKind]:
    for program, names in (("make", MAKEFILES), ("just", JUSTFILES)):
        if source := place.first(*names):
            targets = set(_TARGET.findall(place.text(source)[:MAX_MANIFEST_BYTES]))
            test = next((name for name in ("test", "tests", "check") if name in targets), None)
            build = "build" if "build" in targets else None
            yield ProjectKind(
                program.capitalize(),
                place.path(source),
                program,
                None,
                place.proposal(f"{program} {build}", source) if build else None,
                place.proposal(f"{program} {test}", source) if test else None,
            )


_DETECTORS = (_node, _deno, _python, _toolchains, _ruby, _java, _php, _dotnet, _make)
