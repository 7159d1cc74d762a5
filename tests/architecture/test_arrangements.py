"""Every test whose outcome the machine's arrangement can change is run in each of them."""

import re
from fnmatch import fnmatchcase

from tests.arrangements import CHANGED, TESTS, changed, files

DEPENDS = re.compile(r"needs\.(level|ROOT)\b|geteuid|zelda_ci\.sandbox|unshare|sandbox import")
ELSEWHERE = {"scenarios/test_runner_action.py", "integration/test_prepare_runner.py"}
"""Those of the action on the runner, which have an arrangement of their own."""


def test_no_row_is_left_over() -> None:
    every = files()
    assert [row for row in CHANGED if not any(fnmatchcase(file, row) for file in every)] == []


def test_what_asks_for_a_level_or_for_root_is_run_in_every_arrangement() -> None:
    asking = {file for file in files() if DEPENDS.search((TESTS / file).read_text("utf-8"))}
    assert len(asking) > 10
    assert {file for file in asking - ELSEWHERE if not changed(file)} == set()
