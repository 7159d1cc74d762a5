"""Suite over project over default, key by key, each value with its origin."""

import json

from tests.unit.config.folder import only_suite
from zelda_ci.config.document import DEFAULT
from zelda_ci.config.schema import entries, keys
from zelda_ci.domain.suite import JudgeSettings, ResolvedSuite
from zelda_ci.domain.trials import TrialPlan

PROJECT = """\
judgeModel: judge-one
trials: 3
execution:
  maxTurns: 20
  maxCostUsd: 1
  allowedTools: [A, B]
setupCommand: npm ci
testCommand: [npm, test]
protectedPaths: tests/**
isolation:
  network:
    session: none
    test: none
"""

SUITE = """\
prompt: x
execution:
  maxTurns: 40
  allowedTools: []
isolation:
  network:
    test: open
trials:
"""


def test_groups_merge_by_key_lists_are_replaced_and_every_value_says_where_it_came_from(tmp_path):
    loaded_suite = only_suite(tmp_path, config=PROJECT, test_a=SUITE)
    suite, origins = loaded_suite.resolved, loaded_suite.provenance
    assert (suite.execution.max_turns, suite.execution.max_cost_usd, suite.execution.timeout_seconds) == (40, 1, 1800)
    assert suite.isolation.network.model_dump() == {"setup": "open", "session": "none", "build": "open", "test": "open"}
    assert (suite.execution.allowed_tools, suite.trials, suite.setup_command) == ((), 3, "npm ci")
    assert (suite.test_command, suite.protected_paths) == (("npm", "test"), ("tests/**",))
    assert set(origins) == {key for key, _ in entries(suite)} - {"file"}
    told = {key: str(origin) for key, origin in origins.items() if origin != DEFAULT}
    assert told == {
        "name": "zelda/test-a.yaml",
        "prompt": "zelda/test-a.yaml:1",
        "judgeModel": "zelda.config.yaml:1",
        "trials": "zelda.config.yaml:2",
        "execution.maxTurns": "zelda/test-a.yaml:3",
        "execution.maxCostUsd": "zelda.config.yaml:5",
        "execution.allowedTools": "zelda/test-a.yaml:4",
        "setupCommand": "zelda.config.yaml:7",
        "testCommand": "zelda.config.yaml:8",
        "protectedPaths": "zelda.config.yaml:9",
        "isolation.network.session": "zelda.config.yaml:12",
        "isolation.network.test": "zelda/test-a.yaml:7",
    }
    assert origins["execution.timeoutSeconds"] == DEFAULT
    assert str(DEFAULT) == "default"


def test_a_resolved_suite_survives_storing(tmp_path):
    resolved = only_suite(tmp_path, config=PROJECT, test_a=SUITE).resolved
    stored = resolved.model_dump_json(by_alias=True, exclude_none=True)
    assert ResolvedSuite.model_validate_json(stored) == resolved
    assert "null" not in stored
    assert set(json.loads(stored)) <= {key.path[0] for key in keys(ResolvedSuite)}
    # Of another version, which has keys that this one does not know.
    more = json.loads(stored) | {"judge": {"model": "judge-one", "votes": 3}}
    assert ResolvedSuite.model_validate(more) == resolved.replace(judge=JudgeSettings(votes=3))


def test_plans_of_trials_merge_by_key_and_a_plan_and_a_number_replace_each_other(tmp_path):
    config = "trials: {first: 2, budgetUsd: 5}\n"
    plan = only_suite(tmp_path, config=config, test_a="prompt: x\ntrials: {looks: [4, 8]}\n")
    assert plan.resolved.trials == TrialPlan(first=2, looks=(4, 8), budget_usd=5)
    assert str(plan.provenance["trials"]) == "zelda/test-a.yaml:2"
    assert only_suite(tmp_path, config=config, test_a="prompt: x\ntrials: 5\n").resolved.trials == 5
    assert only_suite(tmp_path, config=config, test_a="prompt: x\ntrials: adaptive\n").resolved.trials == "adaptive"
    other = only_suite(tmp_path, config="trials: 5\n", test_a="prompt: x\ntrials: {first: 7}\n").resolved
    assert other.trials == TrialPlan(first=7)
    assert TrialPlan(first=7).counts == (7, 10, 16, 24)
