"""What kind of project a folder holds, from its tracked files and a few texts."""

import json
import re
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zelda_ci.survey import folder as project_kind
from zelda_ci.survey.folder import ProjectKind, packages


def kinds(files: Mapping[str, str], folder: str = "") -> tuple[ProjectKind, ...]:
    return project_kind.kinds(files, lambda name: files.get(name, ""), folder)


def kind(files: Mapping[str, str], folder: str = "") -> ProjectKind:
    return kinds(files, folder)[0]


def commands(found: ProjectKind) -> tuple[str | None, ...]:
    return tuple(each or None for each in (found.setup, found.build, found.test))


def package(**more: object) -> str:
    return json.dumps({"scripts": {"test": "node --test"}, "dependencies": {"a": "1"}, **more})


NODE = {"package.json": package()}
UV = "[project]\nname='a'\n[project.optional-dependencies]\ntest=['pytest']\n"
PIP = "python3 -m venv .venv && .venv/bin/pip install -q "


@pytest.mark.parametrize(
    ("files", "language", "manager", "expected"),
    [
        ({**NODE, "package-lock.json": ""}, "JavaScript", "npm", ("npm ci", None, "npm test")),
        (NODE, "JavaScript", "npm", ("npm install", None, "npm test")),
        ({"package.json": package(scripts={"build": "a", "test": "b"}), "pnpm-lock.yaml": "", "tsconfig.json": ""},
         "TypeScript", "pnpm", ("pnpm install --frozen-lockfile", "pnpm run build", "pnpm test")),
        ({**NODE, "yarn.lock": "", ".yarnrc.yml": ""}, "JavaScript", "yarn",
         ("yarn install --immutable", None, "yarn test")),
        ({"package.json": package(packageManager="yarn@4.1.0"), "yarn.lock": ""}, "JavaScript", "yarn",
         ("yarn install --immutable", None, "yarn test")),
        ({"package.json": package(packageManager="pnpm@9.1.0"), "package-lock.json": ""}, "JavaScript", "pnpm",
         ("pnpm install", None, "pnpm test")),
        ({"package.json": package(scripts={"test": 'echo "Error: no test specified" && exit 1'})}, "JavaScript", "npm",
         ("npm install", None, None)),
        ({"package.json": package(scripts={"test": "jest --watch", "test:ci": "jest --watchAll=false"})},
         "JavaScript", "npm", ("npm install", None, "npm run test:ci")),
        ({"pyproject.toml": UV, "uv.lock": ""}, "Python", "uv",
         ("uv sync --frozen --extra test", None, "uv run --no-sync python -m pytest")),
        ({"pyproject.toml": "[tool.poetry]\n", "poetry.lock": "", "conftest.py": ""}, "Python", "poetry",
         ("POETRY_VIRTUALENVS_IN_PROJECT=1 poetry install --no-interaction", None, "poetry run python -m pytest")),
        ({"requirements.txt": "flask\n", "tests/test_a.py": ""}, "Python", "pip",
         (f"{PIP}-r requirements.txt pytest", None, ".venv/bin/python -m pytest")),
        ({"requirements.txt": "flask\n", "requirements-dev.txt": "pytest>=8\n", "tests/test_a.py": ""}, "Python", "pip",
         (f"{PIP}-r requirements.txt -r requirements-dev.txt", None, ".venv/bin/python -m pytest")),
        ({"pyproject.toml": "[tool.ruff]\n", "tests/test_a.py": "import pytest\n"}, "Python", "pip",
         (None, None, "python3 -m pytest")),
        ({"pyproject.toml": UV, "tests/test_a.py": ""}, "Python", "pip",
         (f"{PIP}-e '.[test]'", None, ".venv/bin/python -m pytest")),
        ({"setup.py": "", "tests/test_a.py": ""}, "Python", "pip",
         (f"{PIP}-e . pytest", None, ".venv/bin/python -m pytest")),
        ({"tests/test_a.py": "import unittest\n"}, "Python", "pip",
         (None, None, "python3 -m unittest discover -s tests")),
        ({"manage.py": "", "requirements.txt": "django\n"}, "Python", "pip",
         (f"{PIP}-r requirements.txt", None, ".venv/bin/python manage.py test")),
        ({"go.mod": "", "go.sum": ""}, "Go", "go", ("go mod download", "go build ./...", "go test ./...")),
        ({"Cargo.toml": "", "Cargo.lock": ""}, "Rust", "cargo", ("cargo fetch --locked", "cargo build", "cargo test")),
        ({"Gemfile": "", "Gemfile.lock": "", ".rspec": "", "w": ""}, "Ruby", "bundler",
         ("bundle config set --local path vendor/bundle && bundle install", None, "bundle exec rspec")),
        ({"pom.xml": "", "mvnw": ""}, "Java", "maven", (None, "./mvnw -B -q compile", "./mvnw -B -q test")),
        ({"build.gradle.kts": ""}, "Java", "gradle",
         (None, "gradle --console=plain assemble", "gradle --console=plain test")),
        ({"composer.json": "{}", "composer.lock": "", "phpunit.xml.dist": ""}, "PHP", "composer",
         ("composer install --no-interaction --no-progress", None, "vendor/bin/phpunit")),
        ({"composer.json": '{"scripts": {"test": "pest"}}'}, "PHP", "composer",
         ("composer install --no-interaction --no-progress", None, "composer test")),
        ({"App.csproj": ""}, "C#", "dotnet",
         ("dotnet restore", "dotnet build --no-restore", "dotnet test --no-restore")),
        ({"Makefile": "X := 1\nbuild: a b\n\tcc\n.PHONY: test\ntest:\n\ttrue\n"}, "Make", "make",
         (None, "make build", "make test")),
        ({"justfile": "test *args:\n  true\n"}, "Just", "just", (None, None, "just test")),
    ],
)  # fmt: skip
def test_commands_follow_from_the_files(files, language, manager, expected):
    found = kind(files)
    assert (found.language, found.manager, commands(found)) == (language, manager, expected)
    assert {found.manifest, found.lock or found.manifest} <= set(files)


def test_the_kind_with_tests_comes_first_and_make_last():
    files = {"package.json": '{"devDependencies": {"prettier": "3"}}', "go.mod": "", "Makefile": "test:\n"}
    assert [each.language for each in kinds(files)] == ["Go", "JavaScript", "Make"]


@pytest.mark.parametrize(
    ("files", "setup", "lock"),
    [
        ({"package.json": '{"workspaces": ["packages/*"]}', "package-lock.json": ""}, "npm ci", "package-lock.json"),
        ({"package.json": "{}", "package-lock.json": ""}, "npm install", None),
        ({"pnpm-workspace.yaml": "", "pnpm-lock.yaml": ""}, "pnpm install --frozen-lockfile", "pnpm-lock.yaml"),
        ({"package.json": '{"workspaces": 1}', "packages/web/yarn.lock": ""}, "yarn install --frozen-lockfile",
         "packages/web/yarn.lock"),
    ],
)  # fmt: skip
def test_a_package_of_a_workspace_shares_its_lock_file_and_no_other(files, setup, lock):
    files = {**files, "packages/web/package.json": package()}
    found = kind(files, "packages/web")
    assert (found.setup, found.lock) == (setup, lock)
    go = kinds({**files, "go.sum": "", "packages/web/go.mod": ""}, "packages/web")[1]
    assert (go.language, go.lock) == ("Go", None)


def test_packages_below_are_found_but_not_those_of_others():
    files = ["package.json", "api/go.mod", "web/package.json", "web/node_modules/a/package.json", "x/testdata/go.mod"]
    assert packages(files) == ("api", "web")
    assert packages(files, "web") == ()
    assert packages(["a/b/setup.py", "ab/setup.py"], "a") == ("a/b",)


TEXTS = st.one_of(
    st.text(max_size=60),
    st.sampled_from(["[" * 100_000, '{"a":' * 100_000, "a = " + "[" * 50_000, "{}", "[]", "null", "\ufeff{}"]),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=9),
        lambda inner: st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["scripts", "test", "build", "workspaces", "packageManager", "dependencies", "; rm -rf /"]),
            inner,
            max_size=4,
        ),
    ).map(json.dumps),
)  # fmt: skip
NAMES = [
    "package.json", "yarn.lock", "pyproject.toml", "uv.lock", "Pipfile", "setup.cfg", "requirements.txt", "test_a.py",
    "Cargo.toml", "go.mod", "Gemfile", ".rspec", "pom.xml", "$(id).csproj", "composer.json", "Makefile", "justfile",
]  # fmt: skip
OURS = re.compile(r"[\w ./:'\[\]=&-]+")


@settings(max_examples=30)
@given(st.dictionaries(st.sampled_from(NAMES), TEXTS, max_size=6), st.sampled_from(["", "a", "a/b c"]))
def test_no_content_breaks_it_or_gets_into_a_command(texts, folder):
    files = {f"{place}/{name}".lstrip("/"): text for name, text in texts.items() for place in ("", folder)}
    for found in kinds(files, folder):
        for each in (found.setup, found.build, found.test):
            assert not each or OURS.fullmatch(each)
            assert "rm -rf" not in each
        assert {found.manifest, found.lock or found.manifest} <= set(files)


def test_tests_of_packages_are_not_those_of_the_whole():
    assert kinds(dict.fromkeys(["README.md", "docs/a.md", "src/main.c"], "")) == ()
    files = {"pyproject.toml": "", "api/pyproject.toml": "", "api/tests/test_a.py": "", "testdata/test_b.py": ""}
    assert commands(kind(files)) == (None, None, None)
    assert commands(kind(files, "api")) == (None, None, "python3 -m pytest")
