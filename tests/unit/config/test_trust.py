"""Every key of the files has a decision on whose it is on a pull request, and no decision is about nothing."""

from typing import Any

import pytest

from zelda_ci.config.schema import ProjectConfig, SuiteConfig, keys
from zelda_ci.config.trust import JUDGING, LOWEST, OF_THE_BASE, OF_THE_HEAD, decision, lets_more_pass

KEYS = {key.dotted: key for model in (ProjectConfig, SuiteConfig) for key in keys(model)}


def test_every_key_has_one_decision() -> None:
    """A new key has none: put it into one of the tables of zelda_ci/config/trust.py."""
    assert [name for name, key in KEYS.items() if key.group is None and decision(name) is None] == []
    tables = [*OF_THE_BASE, *LOWEST, *JUDGING, *OF_THE_HEAD]
    assert len(tables) == len(set(tables))
    assert set(tables) <= set(KEYS)
    # A group that is decided as a whole has no member with a decision of its own.
    assert [name for name in tables if name.rpartition(".")[0] in tables] == []
    assert decision("execution.aNewKey") is decision("aNewKey") is None


@pytest.mark.parametrize(
    ("key", "head", "base", "more"),
    [
        ("gate.failOn", (), ("regression", "evaluation"), True),
        ("gate.failOn", ("evaluation",), ("regression",), True),
        ("gate.failOn", ("regression", "evaluation"), ("regression",), False),
        ("gate.minScore.toolUsage", 50.0, 80.0, True),
        ("gate.minScore.toolUsage", None, 80.0, True),
        ("gate.minScore.toolUsage", 80.0, None, False),
        ("gate.tolerance.toolUsage", 20.0, 10.0, True),
        ("gate.tolerance.toolUsage", 5.0, 10.0, False),
        ("gate.tolerance.toolUsage", None, 10.0, False),
        ("coverageThreshold", 60.0, 80.0, True),
        ("coverageThreshold", 90.0, 80.0, False),
        ("metrics.toolUsage", False, True, True),
        ("metrics.toolUsage", True, False, False),
        ("undecided", "ignore", "fail", True),
        ("undecided", "fail", "ignore", False),
        ("efficiencyTargets.maxTurns", 40, 20, True),
        ("gate.paths", ("a/**",), (), False),
    ],
)
def test_whether_another_value_lets_more_pass(key: str, head: Any, base: Any, *, more: bool) -> None:
    assert decision(key) is JUDGING
    assert lets_more_pass(key, head, base) is more
