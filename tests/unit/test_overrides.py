"""What is given above the suites, wherever it was given: one value, one function that applies it, one kind of error."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click import BadParameter

from tests.support.cases import for_each
from zelda_ci.ci.settings import OWN, Inputs
from zelda_ci.cli.options import amount
from zelda_ci.cli.options import whole as whole_option
from zelda_ci.config.document import problem_of
from zelda_ci.config.source import plain_value
from zelda_ci.domain.suite import JudgeSettings, ResolvedSuite
from zelda_ci.domain.trials import TrialPlan, plan_of
from zelda_ci.errors import ConfigError
from zelda_ci.overrides import SOURCES, Given, Overrides, apply, read, value_of

PACKAGE = Path(__file__).parents[2] / "zelda_ci"
DOCS = (PACKAGE.parent / "docs" / "configuration.md").read_text()
SUITE = ResolvedSuite(name="greeting", file="zelda/test-greeting.yaml", prompt="Greet.")


def test_what_is_given_replaces_what_the_suite_says_and_nothing_else() -> None:
    given = {
        "trials": "3",
        "max-cost-usd": "2.5",
        "fail-on": "regression",
        "isolation-level": "uid",
        "isolation-require": "landlock",
        "gateway-url": "https://gateway.example.com/v1",
    }
    suite = apply(SUITE, read("input", given.get))
    assert suite.trials == 3
    assert suite.execution.max_cost_usd == 2.5
    assert suite.gate.fail_on == ("regression",)
    assert (suite.isolation.level, suite.isolation.require) == ("uid", "landlock")
    assert suite.gateway_url == "https://gateway.example.com/v1"
    changed = {"trials", "execution", "gate", "isolation", "gateway_url", "judge"}
    assert suite.model_dump(exclude=changed) == SUITE.model_dump(exclude=changed)
    assert suite.execution.replace(max_cost_usd=None) == SUITE.execution


def test_trials_can_be_given_in_every_form_that_the_files_know() -> None:
    plans = [plan_of(apply(SUITE, read("input", {"trials": text}.get)).trials) for text in PLANS]
    assert plans == list(PLANS.values())
    with pytest.raises(ConfigError, match="must be numbers that rise"):
        apply(SUITE, read("input", {"trials": '{"looks": [6, 3]}'}.get))


PLANS: dict[str, TrialPlan | int] = {
    "adaptive": TrialPlan(),
    "7": 7,
    '{"first": 2, "looks": [4, 8], "budgetUsd": 5}': TrialPlan(first=2, looks=(4, 8), budget_usd=5),
    "{first: 2, looks: [4, 8], budgetUsd: 5}": TrialPlan(first=2, looks=(4, 8), budget_usd=5),
}

TRIALS = "must be a whole number, adaptive or a group of keys, not True: write it in plain digits, such as 10"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{first: 0}", "trials.first must be at least 1, not 0."),
        ("{frist: 3}", "frist is not a known key (did you mean first?)."),
        ("{first: 9, looks: [6, 8]}", "trials must have a look above first: first is 9, and the last look 8."),
        ("{budgetUsd: .nan}", "trials.budgetUsd must be a number, not .nan: write it in plain digits, such as 10."),
        ("{first: 3", f"trials {TRIALS.replace('True', 'text')}."),
        ("1001", "trials must be at most 1000, not 1001."),
    ],
)
def test_what_is_wrong_is_said_as_of_the_files(text: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        apply(SUITE, read("input", {"trials": text}.get))
    assert caught.value.message == f"The input trials cannot be used: {sentence}"


def test_who_names_a_judge_asks_that_one_alone() -> None:
    suite = SUITE.replace(judge=JudgeSettings(models=("a-1", "b-2")))
    given = Overrides({"judgeModel": Given("claude-opus-5-5", "option", "--judge-model")})
    assert (apply(suite, given).judge_model, apply(suite, given).judge.models) == ("claude-opus-5-5", ())


def test_the_nearest_way_of_giving_wins_and_each_value_keeps_its_origin() -> None:
    environment = read("variable", {"PORTKEY_GATEWAY_URL": "https://a.example.com"}.get)
    workflow = read("input", {"gateway-url": "https://b.example.com", "trials": "2"}.get)
    both = workflow.above(environment)
    assert both.get("gatewayUrl") == Given("https://b.example.com", "input", "gateway-url")
    assert (str(both.get("trials")), str(environment.get("gatewayUrl"))) == (
        "The input trials",
        "The environment variable PORTKEY_GATEWAY_URL",
    )


NUMBERS = ("3", "+7", "2.5", "1_000", "\u0663", "1e3", "007", "0x10", "inf", "nan", " 4", "", "9" * 30, "true")


@pytest.mark.parametrize("text", NUMBERS)
def test_a_number_is_spelled_in_the_same_way_in_files_inputs_variables_and_options(text: str) -> None:
    in_a_file = plain_value(text)
    whole = in_a_file if type(in_a_file) is int else None
    number = in_a_file if type(in_a_file) in {int, float} else None
    assert _or_none(lambda: apply(SUITE, read("input", {"trials": text}.get)).trials if text else None) == whole
    above = read("input", {"max-cost-usd": text}.get)
    assert _or_none(lambda: apply(SUITE, above).execution.max_cost_usd if text else None) == number
    jobs = value_of(OWN["jobs"], text)
    assert (problem_of(Inputs, ("jobs",), jobs) is None) == (whole is not None and 1 <= whole <= 64)
    assert _or_none(lambda: whole_option(1, 1000).convert(text, None, None)) == whole
    assert _or_none(lambda: amount(text)) == number


def _or_none(make: Callable[[], object]) -> object:
    try:
        return make()
    except (ConfigError, ValueError, BadParameter):
        return None


ADDRESS = "must be an http:// or https:// address without user name, query and fragment"
KINDS = "must be regression or evaluation, or never alone"
NEVER = "is a variable that a session never gets: list folders in execution.path instead"
OWNED = "belongs to Claude Code or Zelda, so a suite cannot say what is in it"
WRONG: list[tuple[str, Any, tuple[Any, str], str]] = [
    ("trials", 0, ("option", "--trials"), "The option --trials|trials must be at least 1, not 0"),
    ("trials", True, ("input", "trials"), f"The input trials|trials {TRIALS}"),
    (
        "execution.maxCostUsd",
        math.nan,
        ("input", "cost"),
        "The input cost|execution.maxCostUsd must be a number, not nan",
    ),
    (
        "isolation.level",
        "iron",
        ("option", "-i"),
        "The option -i|isolation.level must be auto, full, uid, landlock or none",
    ),
    ("judgeModel", "a\x1b ", ("option", "-m"), "The option -m|judgeModel must be the id of a model, without spaces"),
    ("gate.failOn", ("never", "regression"), ("input", "fail-on"), f"The input fail-on|item 1 of gate.failOn {KINDS}"),
    (
        "gatewayUrl",
        "https://x:99999",
        ("input", "at"),
        "The input at|gatewayUrl must have a port from 1 to 65535, or none",
    ),
    ("gatewayUrl", "https://me:hunter2@x", ("variable", "GATE"), f"The environment variable GATE|gatewayUrl {ADDRESS}"),
    ("execution.env", ("CC", "PATH"), ("option", "--env"), f"The option --env|PATH {NEVER}"),
    ("execution.env", {"CI": "x"}, ("input", "env"), f"The input env|CI {OWNED}"),
    ("acceptIsolation", "none", ("variable", "OK"), "The environment variable OK|acceptIsolation must be landlock"),
]


@for_each(WRONG)
def test_a_value_that_the_files_would_not_allow_is_named_with_its_origin(
    key: str, value: Any, origin: tuple[Any, str], parts: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        apply(SUITE, Overrides({key: Given(value, *origin)}))
    assert caught.value.message == " cannot be used: ".join(parts.split("|")) + "."
    assert caught.value.exit_code == 2


def test_all_wrong_values_are_told_at_once_and_none_is_shown() -> None:
    secret = "sk-ant-fake0123456789 \x1b"
    wrong = {sources.input: secret for _, sources in SOURCES.values() if sources.input}
    with pytest.raises(ConfigError) as caught:
        apply(SUITE, read("input", wrong.get))
    assert len(caught.value.message.splitlines()) == len(wrong)
    assert "fake" not in caught.value.message


def test_a_key_can_be_given_in_one_way_only_by_one_name() -> None:
    for kind in ("option", "input", "variable"):
        names = [name for _, sources in SOURCES.values() if (name := getattr(sources, kind))]
        assert len(names) == len(set(names))
