"""The script that measures a judge: the real program, in front of a scripted API that answers from the labels."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import KEY
from tests.support.judge_cases import BuiltCase, Criterion, JudgeCase, all_cases, build
from tests.support.judge_measure import WORDS, is_on_false_evidence
from tests.support.labelled_judge import NOWHERE, LabelledJudge, Reply, Said, honest
from tests.support.projects import ENVIRON
from tests.support.scripted_api import ApiRequest, Message, ScriptedApi, http_error, tool_call
from zelda_ci.domain.details import Citation, CriterionJudgement, CriterionVerdict
from zelda_ci.redact import Redactor

SCRIPT = Path(__file__).parents[2] / "scripts" / "measure-judge"
CASES = {case.name: case for case in all_cases()}
safe = Redactor()


class Answering:
    """The script of an API that knows the labels; `reply` may make it err."""

    def __init__(self, folder: Path, reply: Callable[[BuiltCase], Reply] = honest) -> None:
        self._folder, self._reply = folder, reply
        self._judges: dict[str, LabelledJudge] = {}
        self._lock = threading.Lock()

    def __call__(self, request: ApiRequest) -> Message:
        with self._lock:
            return self._answer(request)

    def _answer(self, request: ApiRequest) -> Message:
        said = "\n".join([str(request.body.get("system")), *_texts(request)])
        judge = self._judge(_case_in(said))
        tool = _answer_tool(request, said)
        return tool_call(tool["name"], judge.answer(said, tool["input_schema"]))

    def _judge(self, case: JudgeCase) -> LabelledJudge:
        if case.name not in self._judges:
            folder = self._folder / case.name
            folder.mkdir()
            built = build(case, folder)
            self._judges[case.name] = LabelledJudge(built, self._reply(built))
        return self._judges[case.name]


def _texts(request: ApiRequest) -> Iterator[str]:
    for message in request.messages:
        yield from (block.get("text", "") for block in message["content"])


def _case_in(said: str) -> JudgeCase:
    """By its task, or where a part does not tell it, by its criteria."""
    by_task = [case for case in CASES.values() if f"\n{case.task.strip()}\n" in said]
    by_criteria = [case for case in CASES.values() if any(f". {one.text}\n" in said for one in case.criteria)]
    return (by_task or by_criteria)[0]


def _answer_tool(request: ApiRequest, said: str) -> dict[str, Any]:
    """The tool by which an answer is asked for: several judges offer theirs together."""
    offered = [tool for tool in request.body.get("tools", ()) if tool["name"].startswith("answer_")]
    return next(tool for tool in offered if f"calling the tool {tool['name']}." in said)


def measured(api: ScriptedApi | None, *arguments: str) -> subprocess.CompletedProcess[str]:
    access = {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": api.url} if api else {}
    command = [sys.executable, str(SCRIPT), *arguments]
    return subprocess.run(command, env={**ENVIRON, **access}, capture_output=True, text=True, check=False)


def measured_as_json(api: ScriptedApi, tmp_path: Path, *arguments: str) -> tuple[int, dict[str, Any], str]:
    file = tmp_path / "measured.json"
    done = measured(api, "--json", str(file), *arguments)
    assert not done.stderr.count("Traceback"), done.stderr
    return done.returncode, json.loads(file.read_text("utf-8")), done.stdout


def erring(built: BuiltCase) -> Reply:
    """Is wrong about one criterion each time, about another the second time, and judges a third one never."""
    true = honest(built)

    def reply(criterion: Criterion, times: int) -> Said:
        said = true(criterion, times)
        match criterion.text:
            case "download raises an error after the last attempt has failed.":
                return Said("FAIL", "I misread it.", said.evidence)
            case "download returns as soon as an attempt has data." if times:
                return Said("UNDECIDED", "I cannot tell.")
            case "The number of days is a constant.":
                return Said("PASS", "I made it up.", [{"where": "report.js:1", "quote": NOWHERE}])
            case _:
                return said

    return reply


CHOSEN = {"off_by_one", "rule-broken-by-a-command"}
EQUAL = {(word, word) for word in WORDS.values()} | {(one, one) for one in ("BROKEN", "FOLLOWED", "NOT_APPLICABLE")}


def test_errors_are_counted_where_they_are(tmp_path: Path) -> None:
    with ScriptedApi(Answering(tmp_path, erring)) as api:
        code, found, said = measured_as_json(
            api, tmp_path, "--trap", "off_by_one", "--case", "rule-broken-by-a-command", "--repeat", "2"
        )
        assert found["requests"] == len(api.requests)
    criteria = [one for case in CASES.values() if {case.trap, case.name} & CHOSEN for one in case.criteria]
    count, questions = len(criteria), len(found["repetitions"][0])
    wrong = [{(one["label"], one["verdict"]) for one in turn} - EQUAL for turn in found["repetitions"]]
    assert wrong[0] == wrong[1] - {("PASS", "UNDECIDED")} == {("PASS", "FAIL"), ("PASS", "NOT_JUDGED")}
    assert code == 1
    assert found["agreement"] == pytest.approx((2 * count - 5) / (2 * count))
    assert found["flipRate"] == pytest.approx(1 / questions)
    assert (found["onFalseEvidence"], found["agreementOnTools"], found["costUsd"] > 0) == (0, 1.0, True)
    assert "Tools and rules judged as labelled" in said
    assert "Not as labelled: 5" in said
    assert "Flip rate: " in said
    row = next(line for line in said.splitlines() if line.startswith("  PASS "))
    passed = sum(one.verdict == "PASS" for one in criteria)
    assert row.split() == ["PASS", str(2 * passed - 5), "2", "1", "2"]


def test_a_judge_that_cannot_be_asked_is_no_measurement(tmp_path: Path) -> None:
    refused = http_error(401, "invalid x-api-key", headers={"x-should-retry": "false"})
    with ScriptedApi(lambda _: refused) as api:
        done = measured(api, "--case", "retries-four")
    assert done.returncode == 2
    unknown = measured(None, "--case", "no-such-case")
    assert (unknown.returncode, "no trap or case no-such-case" in unknown.stderr) == (1, True)


# A case, the number of a criterion, and what a judge says of it.
SAID: list[tuple[str, int, str, list[tuple[str, str]], bool]] = [
    ("tests-never-ran", 0, "PASS", [("shop/price.py:5", "quantize(Decimal(1), ROUND_HALF_UP)")], False),
    ("tests-never-ran", 0, "PASS", [("shop/price.py:5", NOWHERE)], True),
    ("tests-never-ran", 0, "PASS", [], True),
    ("tests-never-ran", 1, "PASS", [("turn 3", "all 7 tests pass in 0.31s")], True),
    ("tests-never-ran", 1, "FAIL", [], False),
    ("tests-never-ran", 1, "undecided", [("turn 3", NOWHERE)], False),
    ("no-print-left", 0, "PASS", [("absent: print( in src/**", "")], False),
    ("no-print-left", 0, "PASS", [("absent: print( in scr/**", "")], True),
]


def test_what_counts_on_false_evidence(tmp_path_factory: pytest.TempPathFactory) -> None:
    built = {name: build(CASES[name], tmp_path_factory.mktemp("case")) for name in {one[0] for one in SAID}}
    for name, number, verdict, evidence, is_false in SAID:
        judged = CriterionJudgement(
            criterion=safe("It."),
            verdict=CriterionVerdict(verdict),
            reasoning=safe("So."),
            evidence=tuple(Citation(where=safe(where), quote=safe(quote)) for where, quote in evidence),
        )
        found = is_on_false_evidence(built[name], CASES[name].criteria[number], judged)
        assert found is is_false, (name, number, verdict, evidence)
