"""Every key of the files says whose it is on a pull request, in one place, and one that does not is the base's."""

from typing import Annotated, Any

import pytest
from pydantic import Field

from zelda_ci.config.document import DEFAULT
from zelda_ci.config.project import DECISIONS, KeyChange, lets_more_pass
from zelda_ci.config.schema import ProjectConfig, SuiteConfig, keys
from zelda_ci.domain.base import HEAD, Decider, Setting, base
from zelda_ci.domain.suite import ExecutionSettings, ResolvedSuite


@pytest.mark.parametrize("model", [ProjectConfig, SuiteConfig])
def test_every_key_has_one_decision(model: Any) -> None:
    """Write it beside the type of a new key, in zelda_ci/domain/suite.py."""
    every = keys(model)
    assert [key.dotted for key in every if key.group is None and len(key.decisions) != 1] == []
    # What is new in a group must not be the pull request's because its neighbours are.
    assert [key.dotted for key in every if key.group and key.decisions and key.decision.by is Decider.HEAD] == []
    assert [key.dotted for key in every if (key.decision.by is Decider.HEAD) == bool(key.decision.effect)] == []


def test_a_key_without_a_decision_is_the_bases() -> None:
    class Group(ExecutionSettings):
        forgotten: int = 1

    class Newer(ProjectConfig):
        execution: Group = Field(default_factory=Group)
        new: bool = False

    found = {key.dotted: key.decision for key in keys(Newer)}
    assert found["execution.forgotten"].by is found["new"].by is Decider.BASE
    assert found["execution.maxTurns"] == HEAD


def test_the_decision_of_a_group_is_that_of_all_in_it() -> None:
    class Inner(Setting):
        key: int = 1

    class Outer(Setting):
        group: Annotated[Inner, base("would have won")] = Field(default_factory=Inner)

    assert {key.decision for key in keys(Outer)} == {base("would have won")}


def test_every_setting_of_a_suite_has_the_decision_of_the_files() -> None:
    every = {key.dotted for key in keys(ResolvedSuite) if key.group is None}
    assert every - set(DECISIONS) == {"file"}


@pytest.mark.parametrize(
    ("key", "head", "base_value", "more"),
    [
        ("gate.failOn", (), ("regression", "evaluation"), True),
        ("gate.failOn", ("evaluation",), ("regression",), True),
        ("gate.failOn", ("regression", "evaluation"), ("regression",), False),
        ("gate.failOn", ("regression", "evaluation"), ("evaluation", "regression"), False),
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
        ("efficiencyTargets.turns", 40, 20, True),
        ("gate.paths", ("a/**",), (), False),
    ],
)
def test_whether_another_value_lets_more_pass(key: str, head: Any, base_value: Any, *, more: bool) -> None:
    assert DECISIONS[key].by is Decider.JUDGING
    assert lets_more_pass(key, head, base_value) is more


def test_a_change_that_was_not_taken_says_what_the_key_does() -> None:
    effect = KeyChange("setupCommand", DEFAULT).effect
    assert effect == f"It {DECISIONS['setupCommand'].effect}; it was not taken from the pull request."
