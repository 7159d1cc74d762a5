"""Routing files: a small suite for each prompt, decided by one check, and what does not go with them."""

from pathlib import Path

import pytest

from tests.unit.config.folder import loaded, make, problems
from zelda_ci.config.project import select, settle
from zelda_ci.domain.measures import Metric

ROUTING = """\
kind: routing
tags: [routing]
prompts:
  - prompt: What changed in 1.4?
    expect: skill changelog
  - prompt: |
      Look at this,
      and be quick.
    expect: [agent reviewer, command review]
  - expect: none
    prompt: What is two and two?
"""
PROJECT = "testCommand: npm test\nsetupCommand: npm ci\nexecution: {maxTurns: 9, timeoutSeconds: 60}\n"


def test_each_prompt_is_a_cheap_suite_with_its_check(tmp_path: Path) -> None:
    found = loaded(tmp_path, config=PROJECT, test_routes=ROUTING, test_other="prompt: x\n")
    first, second, third = select(found, ["routes"])
    assert [it.resolved.name for it in (first, second, third)] == ["routes.1", "routes.2", "routes.3"]
    assert second.resolved.prompt == "Look at this,\nand be quick.\n"
    assert [str(it.provenance["prompt"]) for it in (first, second, third)] == [
        f"zelda/test-routes.yaml:{line}" for line in (4, 6, 11)
    ]
    assert [check.text for it in (first, second, third) for check in it.resolved.checks] == [
        '"What changed in 1.4?" is for skill changelog',
        '"Look at this, and be quick." is for agent reviewer or command review',
        '"What is two and two?" is for none',
    ]
    assert [it.resolved.kind for it in found.suites] == ["task", "routing", "routing", "routing"]
    suite = first.resolved
    assert (suite.execution.max_turns, suite.execution.timeout_seconds) == (2, 60)
    assert (suite.setup_command, suite.test_command, suite.metrics.is_on(Metric.EFFICIENCY)) == (None, None, False)
    assert str(first.provenance["execution.maxTurns"]) == "zelda/test-routes.yaml:1"


def test_what_the_file_says_goes_before_the_usual_and_a_matrix_multiplies(tmp_path: Path) -> None:
    more = (
        "setupCommand: make\nexecution: {maxTurns: 4}\nchecks: [{notRead: secrets/**}]\nmatrix: {effort: [low, max]}\n"
    )
    found = loaded(tmp_path, config=PROJECT, test_r=ROUTING + more)
    assert [it.resolved.name for it in found.suites][2:4] == ["r.low.3", "r.max.1"]
    suite = found.suites[3].resolved
    assert (suite.setup_command, suite.execution.max_turns, suite.execution.effort) == ("make", 4, "max")
    assert [check.word for check in suite.checks] == ["not_read", "routed"]
    text = "kind: routing\nprompts: [{prompt: '{{a}} {{b}}', expect: 'skill {{a}}'}]\n"
    found = loaded(tmp_path / "v", test_r=f"{text}matrix: {{variables: {{a: [x, z], b: ['{'字' * 120}']}}}}\n")
    suite = found.suites[-1].resolved
    assert suite.checks[0].text == f'"z {"字" * 115}..." is for skill z'


def test_on_a_pull_request_a_new_routing_suite_stays_one(tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    loaded(before, test_a="prompt: x\n")
    settled = settle(loaded(after, test_a="prompt: x\n", test_r=ROUTING), after, before, before, "abc1234")
    assert [(it.resolved.name, it.resolved.kind) for it in settled.project.suites][1] == ("r.1", "routing")
    assert [change.key for change in settled.changes] == []


PROMPT = "prompts: [{prompt: x, expect: none}]\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("kind: routing\n", "1:1: a routing suite needs prompts"),
        ("kind: routing\nprompts: []\n", "2:1: a routing suite needs prompts"),
        ("kind: routing\nprompt: x\n" + PROMPT, "2:9: prompt does not go with kind: routing"),
        ("kind: routing\nmustPass: [x]\n" + PROMPT, "2:11: mustPass does not go with kind: routing"),
        (PROMPT, "1:10: prompts goes with kind: routing only"),
        (f"kind: routing\nname: {'a' * 60}\n{PROMPT}", f"1:1: {'a' * 60}.1 is too long"),
        ("kind: routing\nprompts: [{prompt: x}]\n", "item 1 of prompts has no expect"),
        (
            "kind: routing\nprompts: [{prompt: x, expect: skil a}]\n",
            "2:31: expect of item 1 of prompts must be none, or",
        ),
        ("kind: routing\nprompts: [{prompt: x, expect: command /a}]\n", "and its name without a slash"),
        (
            "kind: routing\nprompts: [{prompt: x, expect: []}]\n",
            "expect of item 1 of prompts must not be an empty list",
        ),
        ("kind: routes\n" + PROMPT, "1:7: kind must be task or routing"),
    ],
)
def test_what_does_not_go_together_is_said_at_its_place(text: str, why: str, tmp_path: Path) -> None:
    said = problems(make(tmp_path, test_x=text))
    assert len(said) == 1, said
    assert why in said[0]
