"""What ordinary builds do works inside as well, but for what docs/security.md lists."""

import json
import shutil
import subprocess

import pytest

from tests.hostile import compatibility, developer, matrix
from tests.hostile.developer import Developer
from tests.hostile.everyday import EVERYDAY
from tests.support import needs

EXPECTED: compatibility.Broken = json.loads(compatibility.EXPECTED.read_text("utf-8"))

TOOLS = {"e05": "gcc", "e06": "node", "e17": "ps", "e19": "npm", "e20": "pip"}
"""Which actions are of programs that a minimal machine lacks."""


def there(tool: str) -> bool:
    if tool == "pip":
        return subprocess.run(["python3", "-m", "pip", "--version"], capture_output=True, check=False).returncode == 0
    return shutil.which(tool) is not None


def works_as_expected(who: Developer, level: str, network: str) -> None:
    """All that this machine can show is as it is written down; what it lacks is named in the end."""
    missing = {action: tool for action, tool in TOOLS.items() if not there(tool)}
    possible = [action for action in EVERYDAY if action.id not in missing]
    expected = set(EXPECTED[f"{level} {who.kind}"][network]) - missing.keys()
    assert compatibility.broken(who, level, network, possible) == expected
    if missing:
        pytest.skip(f"needs {', '.join(missing.values())}, for the rest")


@pytest.mark.parametrize(("level", "network"), [("full", "none"), ("landlock", "open")])
def test_everyday_actions_of_builds_work(level: str, network: str) -> None:
    needs.level(level)
    try:
        who = developer.unprivileged()
    except LookupError as problem:
        pytest.skip(f"needs a Python for another user: {problem}")
    works_as_expected(who, level, network)


@needs.ROOT
def test_everyday_actions_work_for_another_user_where_root_has_no_namespaces() -> None:
    try:
        who = developer.root_in_a_container()
    except LookupError as problem:
        pytest.skip(f"needs a Python for another user: {problem}")
    works_as_expected(who, "uid", "open")


def test_the_page_shows_what_was_measured() -> None:
    assert compatibility.table(EXPECTED) in matrix.PAGE.read_text("utf-8")
