"""A skip says what it needs, and CI notices a test that ran nowhere."""

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
UNRUN = REPOSITORY / "scripts" / "unrun"


def reasons(file: Path) -> Iterator[str]:
    """What a file's skips say, as far as it is written there."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"pytest.skip", "pytest.mark.skipif"}:
            told = [word.value for word in node.keywords if word.arg == "reason"] or node.args[:1]
            yield ast.unparse(told[0]).lstrip("f").strip("'\"")


def test_every_skip_says_what_it_needs() -> None:
    found = {(file.name, said) for file in (REPOSITORY / "tests").rglob("*.py") for said in reasons(file)}
    assert len(found) > 10
    assert {each for each in found if not each[1].startswith("needs ")} == set()


def outcomes(folder: Path, name: str, ran: list[str], skipped: dict[str, str]) -> None:
    (folder / f"{name}.json").write_text(json.dumps({"ran": dict.fromkeys(ran, "passed"), "skipped": skipped}))


def unrun(folder: Path, *names: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([UNRUN, folder, *names], capture_output=True, text=True, check=False)


def test_a_test_that_was_skipped_everywhere_is_named_with_what_it_needs(tmp_path: Path) -> None:
    outcomes(tmp_path, "root", ["a", "b"], {"c": "needs a user", "d": "needs bubblewrap"})
    outcomes(tmp_path, "user", ["a", "c"], {"b": "needs root", "d": "needs bubblewrap"})
    told = unrun(tmp_path, "root", "user")
    assert told.returncode == 1
    assert [line for line in told.stdout.splitlines() if "needs" in line] == ["  d: needs bubblewrap"]


def test_the_files_of_tests_that_ran_nowhere_yet_are_listed_once_each(tmp_path: Path) -> None:
    outcomes(tmp_path, "root", ["x.py::a"], {"x.py::b": "needs bubblewrap", "x.py::c[1::2]": "needs npm"})
    outcomes(tmp_path, "user", ["x.py::a"], {"y.py::d": "needs root"})
    assert unrun(tmp_path, "--files", "root", "user").stdout == "x.py\ny.py\n"


def test_every_test_ran_somewhere(tmp_path: Path) -> None:
    outcomes(tmp_path, "root", ["a"], {"c": "needs a user"})
    outcomes(tmp_path, "user", ["a", "c"], {})
    assert unrun(tmp_path, "root", "user").returncode == 0


def test_what_failed_is_named_in_the_end_with_where_it_did_and_why(tmp_path: Path) -> None:
    told = {"ran": {"x.py::a": "failed", "x.py::b": "passed"}, "skipped": {}, "reasons": {"x.py::a": "def a():\nE   1"}}
    (tmp_path / "user.json").write_text(json.dumps(told))
    assert unrun(tmp_path, "user").stdout.splitlines()[-3:] == ["failed on user: x.py::a", "  def a():", "  E   1"]


def test_an_arrangement_that_did_not_run_proves_nothing_and_is_named(tmp_path: Path) -> None:
    outcomes(tmp_path, "root", ["a"], {"c": "needs a user"})
    told = unrun(tmp_path, "root", "user")
    assert told.returncode == 0
    assert "not run: user" in told.stdout
    assert "c: needs a user" in told.stdout


@pytest.mark.parametrize("names", [(), ("root",)])
def test_nothing_that_ran_is_a_failure(tmp_path: Path, names: tuple[str, ...]) -> None:
    assert unrun(tmp_path, *names).returncode == 1


SAMPLE = """
import pytest
def test_runs(): pass
@pytest.mark.skipif(True, reason="needs more")
def test_skipped(): pass
"""


def test_a_run_of_the_tests_tells_what_ran_and_what_did_not_beside_what_ran_before(tmp_path: Path) -> None:
    (tmp_path / "test_sample.py").write_text(SAMPLE)
    (tmp_path / ".hypothesis").symlink_to(REPOSITORY / ".hypothesis")
    outcomes(tmp_path, "outcomes", ["test_other.py::test_runs"], {"test_sample.py::test_runs": "Skipped: needs less"})
    told = tmp_path / "outcomes.json"
    words = ["-p", "tests.conftest", "-n", "1", "--rootdir", str(tmp_path), "-p", "no:cacheprovider", "test_sample.py"]
    environ = {**os.environ, "ZELDA_TEST_OUTCOMES": str(told), "PYTHONPATH": str(REPOSITORY)}
    environ = {name: value for name, value in environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(told.read_text()) == {
        "ran": {"test_other.py::test_runs": "passed", "test_sample.py::test_runs": "passed"},
        "skipped": {
            "test_sample.py::test_runs": "Skipped: needs less",
            "test_sample.py::test_skipped": "Skipped: needs more",
        },
        "reasons": {},
    }
