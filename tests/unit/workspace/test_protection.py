"""Which files are protected where the suite says nothing: what decides, and not what honest work changes."""

from typing import Any

import pytest

from tests.builders import suite
from zelda_ci.workspace.clean_checkout import named_files, protection

COMMITTED = frozenset({
    "check.py", "shop.py", "main.c", "setup.py", "server.js", "t.config.js", "tests/test_a.py", "tools/check.sh",
    "sub/t.py", "unittest/__init__.py",
})  # fmt: skip


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("/usr/bin/python3.11 check.py shop.py", "check.py"),
        (("python", "-X", "dev", "check.py"), "check.py"),
        ('FOO="a b" python "check.py"', "check.py"),
        ("env FOO=1 timeout 9 sh -e tools/check.sh", "tools/check.sh"),
        ("make\nFOO=1 ./tools/check.sh --fast && echo done", "tools/check.sh"),
        ("(cd sub && python t.py)", "sub/t.py"),
        ("bash -lc 'cd sub && python t.py'", "sub/t.py"),
        ("uv run python check.py", "check.py"),
        ("python -m pytest -q tests/test_a.py::Totals::test_x", "tests/test_a.py"),
        ("python -m unittest tests.test_a", "tests/test_a.py"),
        ("npx jest --config=t.config.js", "t.config.js"),
        ("node --test server.js", "server.js"),
        # Code under test, which honest work changes.
        ("python -m py_compile shop.py", ""),
        ("node --check server.js", ""),
        ("gcc main.c -o main", ""),
        ("python setup.py build", ""),
        ("python -c 'import shop' shop.py", ""),
        ("pytest tests", ""),
        ("echo 'never closed", ""),
    ],
)
def test_scripts_and_tests_that_a_command_names(command: str | tuple[str, ...], names: str) -> None:
    assert set(named_files(command, ".", lambda path: path.startswith("/") or path in COMMITTED)) == set(names.split())


def test_names_count_from_the_project_in_its_repository() -> None:
    assert list(named_files("python t.py", "sub", COMMITTED.__contains__)) == ["sub/t.py"]


PATHS = (
    "conftest.py", "a/b/conftest.py", "sub/conftest.py", "jest.config.mjs", ".mocharc.json", "pytest.ini", "check.py",
    "shop.py", "pytest.py", "pytest/__init__.py", "unittest/case.py", "src/pytest.py", "package.json", "setup.cfg",
    "pyproject.toml", "Makefile", "src/conftest.pyc",
)  # fmt: skip
# Configuration of test runners wherever it lies, and what would be taken for a runner, unless the commit has one.
USUAL = {*PATHS[:6], "pytest.py", "pytest/__init__.py"}


@pytest.mark.parametrize(
    ("prefix", "protected_paths", "covered"),
    [
        (".", None, USUAL | {"check.py"}),
        (".", ("shop.py",), USUAL | {"check.py", "shop.py"}),
        (".", ("!check.py", "!**/conftest.py", "!pytest*", "!*.mjs", "!.mocharc.json", "!pytest/**"), set()),
        (".", (), set()),
        ("sub", None, {"sub/conftest.py"}),
    ],
)
def test_what_decides_is_protected_and_the_suite_adds_takes_out_and_switches_off(
    prefix: str, protected_paths: tuple[str, ...] | None, covered: set[str]
) -> None:
    given: dict[str, Any] = {} if protected_paths is None else {"protected_paths": protected_paths}
    found = protection(suite(test_command="python check.py", **given), prefix, COMMITTED.__contains__)
    assert {path for path in PATHS if found.match_file(path)} == covered
