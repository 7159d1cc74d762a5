"""Unknown keys: the sentence says what was meant, or where the key belongs."""

import pytest

from tests.unit.config.folder import about_config, about_suite
from zelda_ci.config.schema import ProjectConfig, SuiteConfig, keys


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("execution:\n  maxTurn: 5", "3:3: maxTurn is not a known key (did you mean maxTurns?)"),
        ("execution:\n  max_turns: 5", "3:3: max_turns is not a known key (did you mean maxTurns?)"),
        ("execution:\n  MAXTURNS: 5", "3:3: MAXTURNS is not a known key (did you mean maxTurns?)"),
        ("execution:\n  timeout: 5", "3:3: timeout is not a known key (did you mean timeoutSeconds?)"),
        ("execution:\n  maxTurn:", "3:3: maxTurn is not a known key (did you mean maxTurns?)"),
        ("maxTurns: 5", "2:1: maxTurns is not a known key here: it belongs under execution"),
        ("model: x", "2:1: model is not a known key here: it belongs under execution or judge"),
        ("execution: {trials: 2}", "2:13: trials is not a known key here: it belongs at the top level"),
        ("execution: {costUsd: 2}", "2:13: costUsd is not a known key here: it belongs under efficiencyTargets"),
        ("testDir: x", "2:1: testDir is not a known key here: it belongs in zelda.config.yaml"),
        ("max_turns: 5", "2:1: max_turns is not a known key (did you mean execution.maxTurns?)"),
        ("criteria: [a]", "2:1: criteria is not a known key (did you mean answerCriteria?)"),
        ("acceptanceCriterias: [a]", "2:1: acceptanceCriterias is not a known key (did you mean acceptanceCriteria?)"),
        (
            "metrics: {speed: true}",
            (
                "2:11: speed is not a known key of metrics; it has efficiency, requirementFulfillment, toolUsage, "
                "functionalCorrectness"
            ),
        ),
        ("'': x", "2:1: an empty word is not a known key"),
        ("<<: {a: 1}", "2:1: << is not a known key"),
        ("on: x", "2:1: on is not a known key"),
        ('"\\e[31mred": x', "2:1: \\x1b[31mred is not a known key"),
        ("1: x", "2:1: 1 is not a known key"),
    ],
)
def test_unknown_keys_are_explained(text, line, tmp_path):
    assert about_suite(tmp_path, f"prompt: x\n{text}\n") == [line]


def test_a_suites_keys_do_not_belong_to_the_project(tmp_path):
    assert about_config(tmp_path, "prompt: x\nname: y\n") == [
        "1:1: prompt is not a known key here: it belongs in a suite (test-*.yaml)",
        "2:1: name is not a known key here: it belongs in a suite (test-*.yaml)",
    ]


@pytest.mark.parametrize("model", [ProjectConfig, SuiteConfig])
def test_every_key_is_described_in_a_sentence(model):
    assert [key.dotted for key in keys(model) if not (key.field.description or "").endswith(".")] == []
