"""What ordinary builds do works inside as well, but for what docs/security.md lists."""

import json
import shutil
import subprocess
from functools import cache

import pytest

from tests.hostile import compatibility, developer, matrix
from tests.hostile.action import Action
from tests.hostile.developer import Developer
from tests.hostile.everyday import EVERYDAY
from tests.support import needs

EXPECTED: compatibility.Broken = json.loads(compatibility.EXPECTED.read_text("utf-8"))

TOOLS = {"e05": "gcc", "e06": "node", "e17": "ps", "e19": "npm", "e20": "pip"}
"""Which actions are of programs that a minimal machine lacks."""


@cache
def there(tool: str) -> bool:
    if tool == "pip":
        return subprocess.run(["python3", "-m", "pip", "--version"], capture_output=True, check=False).returncode == 0
    return shutil.which(tool) is not None


@cache
def broken(who: Developer, level: str, network: str) -> set[str]:
    """Of all that this machine can show; both parts of it are looked at after one run."""
    possible = [action for action in EVERYDAY if action.id not in TOOLS or there(TOOLS[action.id])]
    return compatibility.broken(who, level, network, possible)


@pytest.fixture(params=["of any machine", "of toolchains"])
def actions(request: pytest.FixtureRequest) -> list[Action]:
    """In two parts, so that what every machine can show is shown on all of them."""
    toolchains = request.param == "of toolchains"
    missing = [tool for tool in TOOLS.values() if toolchains and not there(tool)]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")
    return [action for action in EVERYDAY if (action.id in TOOLS) == toolchains]


def expected(column: str, network: str, actions: list[Action]) -> set[str]:
    return set(EXPECTED[column][network]) & {action.id for action in actions}


@pytest.mark.parametrize(("level", "network"), [("full", "none"), ("landlock", "open")])
def test_everyday_actions_of_builds_work(level: str, network: str, actions: list[Action]) -> None:
    needs.level(level)
    try:
        who = developer.unprivileged()
    except LookupError as problem:
        pytest.skip(f"needs a Python for another user: {problem}")
    found = broken(who, level, network) & {action.id for action in actions}
    assert found == expected(f"{level} user", network, actions)


@needs.ROOT
def test_everyday_actions_work_for_another_user_where_root_has_no_namespaces(actions: list[Action]) -> None:
    try:
        who = developer.root_in_a_container()
    except LookupError as problem:
        pytest.skip(f"needs a Python for another user: {problem}")
    found = broken(who, "uid", "open") & {action.id for action in actions}
    assert found == expected("uid root", "open", actions)


def test_the_page_shows_what_was_measured() -> None:
    assert compatibility.table(EXPECTED) in matrix.PAGE.read_text("utf-8")
