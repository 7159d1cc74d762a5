"""JUnit XML: what a reader of test reports is told, and that it can always be read."""

import importlib
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.builders import safe
from tests.golden import batches
from tests.golden.batches import command, correctness, efficiency, run
from tests.golden.ci_reports import CRITERIA, REPORTS, report, trial, written_by
from zelda_ci.compare.comparison import compare
from zelda_ci.compare.gate import gate
from zelda_ci.domain.details import CoverageSummary, RunnerCounts, TestSummary
from zelda_ci.domain.measures import Metric
from zelda_ci.domain.run import Failure, RunResult
from zelda_ci.domain.session import SessionStatus
from zelda_ci.domain.suite import GateSettings, ScoreLimits
from zelda_ci.domain.trials import Side
from zelda_ci.report.ci_report import CiReport
from zelda_ci.report.junit import MAX_TEXT_LENGTH, clean, render_junit


@cache
def schema() -> Any:
    """Its package is heavy, and only these tests need it."""
    return importlib.import_module("xmlschema").XMLSchema(Path(__file__).parents[2] / "data/junit.xsd")


def parsed(text: str) -> ET.Element:
    schema().validate(text.split("\n", 1)[1])
    return ET.fromstring(text.encode())


def junit(*runs: Any) -> ET.Element:
    return parsed(render_junit(report((), runs)))


def cases(root: ET.Element, of: ET.Element | None = None) -> dict[str, str]:
    """Name → outcome of every case of a suite, the first if none is named."""
    found = {}
    for case in (root[0] if of is None else of).iter("testcase"):
        outcome = next((child.tag for child in case if child.tag in {"failure", "error", "skipped"}), "passed")
        found[str(case.get("name"))] = outcome
    return found


@pytest.mark.parametrize("name", sorted({*REPORTS} - {"crowd", "forty"}))
def test_every_report_is_valid_and_counts_its_cases(name: str) -> None:
    made = render_junit(REPORTS[name]())
    root = parsed(made)
    assert made.startswith('<?xml version="1.0" encoding="utf-8"?>\n<testsuites')
    for key, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error")):
        assert int(root.get(key, "")) == len(list(root.iter(tag)))
        assert int(root.get(key, "")) == sum(int(suite.get(key, "")) for suite in root)


def test_every_trial_is_a_suite_and_so_is_the_comparison() -> None:
    for make in (batches.built_and_tested, batches.not_correct, batches.tool_usage):
        assert len(junit(*make().runs)) == len(make().runs)
    assert junit().get("tests") == "0"
    root = junit(trial("receipt-tax", "PP", 1), trial("receipt-tax", "PF", 2), trial("add-logging", "P"))
    assert [found.get("name") for found in root] == ["receipt-tax (trial 1)", "receipt-tax (trial 2)", "add-logging"]
    compared = parsed(render_junit(REPORTS["regression"]()))[-1]
    assert compared.get("name") == "comparison with the baseline"
    failed = [case.get("name") for case in compared.iter("testcase") if case.find("failure") is not None]
    assert (failed, len(list(compared.iter("testcase")))) == (["rest-endpoint"], 2)


def test_a_criterion_is_a_case_with_its_reasoning() -> None:
    root = junit(demanding("PF?", SECOND))
    assert cases(root) == {
        "session": "passed",
        "1. GET /orders/{id} answers 404 with a problem document when the order is unknown": "passed",
        "2. The new route is registered in `src/app.py`, next to the other routes": "failure",
        "3. The handler has type annotations": "error",
        "build": "passed",
        "tests": "passed",
        "score: Requirement fulfillment": "error",
    }
    assert [str(error.get("type")) for error in root.iter("error")] == ["notJudged", "evaluation"]
    (failure,) = root.iter("failure")
    assert str(failure.get("message")).startswith("The handler answers 500")
    assert "src/routes/orders.py:18-21 “except KeyError" in str(failure.text)


@pytest.mark.parametrize(("undecided", "outcome"), [("fail", "failure"), ("ignore", "skipped")])
def test_an_undecided_criterion_is_a_failure_unless_the_suite_ignores_it(undecided: str, outcome: str) -> None:
    made = trial("rest-endpoint", "PPU")
    asked = {"undecided": undecided, "must_pass": CRITERIA["rest-endpoint"][2:]}
    made = made.model_copy(update={"config": made.config.model_copy(update=asked)})
    assert cases(junit(made))["3. The handler has type annotations"] == outcome


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (SessionStatus.COMPLETED, "passed"),
        (SessionStatus.TIMED_OUT, "skipped"),
        (SessionStatus.FAILED, "error"),
        (SessionStatus.INTERRUPTED, "skipped"),
    ],
)
def test_the_session_is_a_case_whether_it_says_why_it_failed_or_not(status: SessionStatus, outcome: str) -> None:
    for message in ("It broke.", " "):
        root = junit(run(status=status, failure=Failure(code="", message=safe(message))))
        assert cases(root)["session"] == outcome
    assert cases(junit(run(evaluations={Metric.EFFICIENCY: efficiency()})))["session"] == "skipped"


def test_build_tests_and_coverage_that_fail_are_failures() -> None:
    counts = RunnerCounts(format="pytest", source="summary", passed=2, failed=1, failures=(safe("test_x"),))
    found = correctness(
        50.0,
        "short",
        build=command("make", 2, "error: x"),
        test=command("pytest", 0, "3 tests"),
        tests=TestSummary(runners=(counts,)),
        coverage=CoverageSummary(lines=40.0),
        coverage_threshold=80.0,
    )
    root = junit(run(setup=command("npm ci", None), evaluations={found.metric: found}))
    shown = cases(root)
    assert [shown[name] for name in ("build", "tests", "coverage")] == ["failure"] * 3
    messages = [found.get("message") for found in root.iter("failure")]
    assert messages == [
        "exit code 2: make",
        "1 failed, 0 errored, 2 passed, 0 skipped",
        "40% of lines, at least 80% of lines required",
        "50.0 of 100. short",
    ]
    assert [found.text for found in root.iter("failure")][:2] == ["error: x", "test_x"]
    properties = {str(each.get("name")): each.get("value") for each in root.iter("property")}
    assert (properties["setup"], properties["functionalCorrectness"]) == ("npm ci: timed out", "50.0")


def demanding(letters: str, criterion: str) -> RunResult:
    """A trial of a suite that has a criterion that must pass."""
    made = trial("rest-endpoint", letters)
    return made.replace(config=made.config.replace(must_pass=(criterion[3:],)))


def beside(*heads: RunResult, bases: Sequence[RunResult], **settings: Any) -> CiReport:
    """Trials that ran side by side with those of the base, and what the gate says of them."""
    sides = [each.model_copy(update={"side": Side.BASE, "run_id": f"base-{each.run_id}"}) for each in bases]
    told = report((), heads)
    both = told.batch.replace(base_runs=tuple(sides))
    gates = {each.suite: GateSettings(**settings) for each in heads}
    return replace(told, batch=both, gate=gate(both, gates))


FIRST, SECOND, THIRD = (f"{number}. {text}" for number, text in enumerate(CRITERIA["rest-endpoint"], start=1))


def test_a_criterion_that_fails_on_the_base_too_is_skipped_and_says_so() -> None:
    told = beside(demanding("PFF", THIRD), bases=[demanding("PFP", THIRD)])
    root = parsed(render_junit(told))
    shown = cases(root)
    assert [shown[name] for name in (FIRST, SECOND, THIRD)] == ["passed", "skipped", "failure"]
    assert (root.get("failures"), len(told.gate.reasons)) == ("1", 1)
    (skipped,) = root.iter("skipped")
    assert str(skipped.get("message")).startswith("fails on the base, too: The handler answers 500")
    assert "src/routes/orders.py:18-21 \u201cexcept KeyError" in str(skipped.text)


def test_what_is_proven_to_be_worse_is_a_failure_although_it_fails_on_the_base_too() -> None:
    bases = [trial("rest-endpoint", "PFP" if number % 2 else "PPP", number, label="old") for number in range(1, 21)]
    told = beside(*(trial("rest-endpoint", "PFP", number) for number in range(1, 21)), bases=bases)
    assert cases(parsed(render_junit(told)))[SECOND] == "skipped"
    proven = gate(told.batch, {}, compare(bases, told.batch.runs))
    assert proven.reasons
    told = replace(told, gate=told.gate.replace(reasons=proven.reasons))
    assert cases(parsed(render_junit(told)))[SECOND] == "failure"


def test_commands_limits_and_scores_that_fall_short_on_the_base_too_are_skipped() -> None:
    def failing(status: SessionStatus = SessionStatus.COMPLETED, **test: Any) -> RunResult:
        found = correctness(0.0, "short", build=command("make", 0), test=command("pytest", 1), **test)
        return run(evaluations={found.metric: found}, status=status)

    late = failing(SessionStatus.TIMED_OUT)
    shown = cases(parsed(render_junit(beside(late, bases=[late]))))
    wanted = {"session": "skipped", "build": "passed", "tests": "skipped", "score: Functional correctness": "skipped"}
    assert {name: shown[name] for name in wanted} == wanted
    six = [late.replace(run_id=f"late-{number}") for number in range(6)]
    good = [failing().replace(run_id=f"good-{number}") for number in range(6)]
    assert cases(parsed(render_junit(beside(*six, bases=good))))["session"] == "failure"

    minimum = {"min_score": ScoreLimits(requirement_fulfillment=80)}
    told = beside(trial("rest-endpoint", "PFP"), bases=[trial("rest-endpoint", "FPP")], **minimum)
    assert cases(parsed(render_junit(told)))[SECOND] == "skipped"


def test_what_somebody_has_accepted_is_skipped_and_names_them() -> None:
    root = parsed(render_junit(REPORTS["accepted"]()))
    accepted = [str(it.get("message")) for it in root.iter("skipped")]
    assert accepted
    assert {message[:20] for message in accepted} == {"accepted by octocat:"}


@settings(max_examples=10)
@given(st.text(st.characters(codec=None, categories=None), max_size=40))
@example("]]><x/>&amp;<![CDATA[")
@example("\ud800\x00\r\n\u2028")
@example("")
def test_no_text_breaks_the_file(text: str) -> None:
    parsed(render_junit(written_by(text)))


def test_what_xml_cannot_hold_is_replaced_and_of_a_long_text_the_ends_are_kept() -> None:
    assert clean("a\x00\x1b\ud800b") == r"a\x00\x1b\ud800b"
    assert clean("a\ufffeb") == "a\ufffdb"
    text = clean("a" * MAX_TEXT_LENGTH + "b" * MAX_TEXT_LENGTH)
    assert (text[:3], text[-3:], len(text) < MAX_TEXT_LENGTH + 20) == ("aaa", "bbb", True)
    root = junit(run("x", phase_seconds={"session": -1.0}))
    assert [case.get("time") for case in root.iter("testcase") if case.get("name") == "session"] == [None]
