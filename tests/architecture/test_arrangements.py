"""Every test whose outcome the machine's arrangement can change is run in another one."""

import re
from fnmatch import fnmatchcase

from tests.arrangements import CHANGED, TESTS, changed, files

DEPENDS = re.compile(r"needs\.(level|ROOT)\b|geteuid|zelda_ci\.sandbox|unshare|sandbox import")
ELSEWHERE = {
    # Attack every level by themselves, as an ordinary user and as root.
    "hostile/test_corpus.py",
    "hostile/test_everyday.py",
    # Those of the action on the runner have an arrangement of their own.
    "scenarios/test_runner_action.py",
    "integration/test_prepare_runner.py",
}


def test_no_row_is_left_over() -> None:
    every = files()
    for row in (row for rows in CHANGED.values() for row in rows):
        pattern, _, test = row.partition("::")
        found = [file for file in every if fnmatchcase(file, pattern)]
        assert found, row
        assert f"def {test}" in "".join((TESTS / file).read_text("utf-8") for file in found), row


def test_what_make_runs_by_name_is_there() -> None:
    named = re.findall(r"(\w+\.py)::(\w+)", (TESTS.parent / "Makefile").read_text("utf-8"))
    assert len(named) > 10
    for end, test in named:
        assert any(f"def {test}(" in (TESTS / file).read_text("utf-8") for file in files() if file.endswith(end)), test


def test_what_asks_for_a_level_or_for_root_is_run_in_another_arrangement() -> None:
    asking = {file for file in files() if DEPENDS.search((TESTS / file).read_text("utf-8"))}
    assert len(asking) > 10
    assert asking - ELSEWHERE - {row.partition("::")[0] for row in changed()} == set()
