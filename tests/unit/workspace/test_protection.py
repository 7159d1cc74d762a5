"""Which files are protected where the suite says nothing: what decides, and not what honest work changes."""

from typing import Any

import pytest

from tests.builders import suite
from zelda_ci.workspace.protection import named_files, protection

COMMITTED = frozenset(
    name.encode()
    for name in (
        "check.py", "shop.py", "main.c", "setup.py", "server.js", "t.config.js", "tests/test_a.py", "tools/check.sh",
        "sub/t.py", "unittest/__init__.py",
    )
)  # fmt: skip


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("python3.11 check.py shop.py", "check.py"),
        (("python", "-X", "dev", "check.py"), "check.py"),
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
    assert {name.decode() for name in named_files(command, ".", COMMITTED)} == set(names.split())


def test_names_count_from_the_project_in_its_repository() -> None:
    assert list(named_files("python t.py", "sub", COMMITTED)) == [b"sub/t.py"]


def covered(*paths: str, prefix: str = ".", **settings: Any) -> list[str]:
    found = protection(suite(**settings), prefix, COMMITTED)
    return [path for path in paths if found.covers(path.encode())]


def test_configuration_of_test_runners_is_protected_wherever_it_lies() -> None:
    paths = ("conftest.py", "a/b/conftest.py", "jest.config.mjs", ".mocharc.json", "pytest.ini")
    assert covered(*paths) == list(paths)
    assert covered("package.json", "pyproject.toml", "setup.cfg", "Makefile", "src/conftest.pyc") == []


def test_a_module_in_the_place_of_a_runner_is_protected_unless_the_commit_has_one() -> None:
    assert covered("pytest.py", "pytest/__init__.py", "unittest/case.py", "src/pytest.py") == [
        "pytest.py",
        "pytest/__init__.py",
    ]


def test_the_suite_adds_takes_out_and_switches_off() -> None:
    paths = ("conftest.py", "check.py", "shop.py")
    settings: dict[str, Any] = {"test_command": "python check.py"}
    assert covered(*paths, **settings) == ["conftest.py", "check.py"]
    assert covered(*paths, **settings, protected_paths=("shop.py",)) == list(paths)
    assert covered(*paths, **settings, protected_paths=("!check.py", "!**/conftest.py")) == []
    assert covered(*paths, **settings, protected_paths=()) == []


def test_in_a_subfolder_the_project_is_meant() -> None:
    assert covered("sub/conftest.py", "conftest.py", prefix="sub") == ["sub/conftest.py"]
