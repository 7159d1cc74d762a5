"""What ordinary builds do works inside as well, but for what docs/security.md lists."""

import json

import pytest

from tests.hostile import compatibility, developer, matrix
from tests.support import needs

EXPECTED: compatibility.Broken = json.loads(compatibility.EXPECTED.read_text("utf-8"))


@pytest.mark.parametrize(("level", "network"), [("full", "none"), ("landlock", "open")])
def test_everyday_actions_of_builds_work(level: str, network: str) -> None:
    needs.level(level)
    try:
        who = developer.unprivileged()
    except LookupError as problem:
        pytest.skip(f"needs a Python for another user: {problem}")
    assert compatibility.broken(who, level, network) == set(EXPECTED[f"{level} user"][network])


@needs.ROOT
def test_everyday_actions_work_for_another_user_where_root_has_no_namespaces() -> None:
    try:
        who = developer.root_in_a_container()
    except LookupError as problem:
        pytest.skip(f"needs a Python for another user: {problem}")
    assert compatibility.broken(who, "uid", "open") == set(EXPECTED["uid root"]["open"])


def test_the_page_shows_what_was_measured() -> None:
    assert compatibility.table(EXPECTED) in matrix.PAGE.read_text("utf-8")
