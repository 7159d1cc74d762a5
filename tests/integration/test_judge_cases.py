"""The labelled cases themselves: enough of them, of every kind, and every label can be looked up."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.case_places import stands
from tests.support.judge_cases import BuiltCase, all_cases, build
from tests.support.patience import PATIENCE
from zelda_ci.domain.kinds import CALLED, FOLLOWED

CASES = all_cases()
OF_TOOLS = {"USED_WELL", "INSTRUCTIONS_IGNORED", "MISSED", "MISUSED", "NOT_APPLICABLE"}
NO_KEY = {"PATH": "/usr/bin:/bin"}
OF_RULES = {"FOLLOWED", "BROKEN", "NOT_APPLICABLE"}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[BuiltCase, ...]:
    return tuple(build(case, tmp_path_factory.mktemp("case")) for case in CASES)


def test_each_is_known_by_its_name_and_task_and_every_pass_has_a_proof() -> None:
    criteria = [criterion for case in CASES for criterion in case.criteria]
    assert {criterion.verdict for criterion in criteria} == {"PASS", "FAIL", "UNDECIDED"}
    assert {label.verdict for case in CASES for label in case.usage} == OF_TOOLS | OF_RULES
    for told in ([case.name for case in CASES], [case.task for case in CASES]):
        assert sorted(told) == sorted(set(told))
    for case in CASES:
        assert len({criterion.text for criterion in case.criteria}) == len(case.criteria), case.name
    assert [one.text for one in criteria if one.verdict == "PASS" and not one.proof] == []


def test_every_proof_stands_where_its_label_says(built: tuple[BuiltCase, ...]) -> None:
    proofs = [
        (one, place)
        for one in built
        for of_label in (*(c.proof for c in one.case.criteria), *(u.proof for u in one.case.usage))
        for place in of_label
    ]
    assert [f"{one.case.name}: {place}" for one, place in proofs if not stands(one, place.at, place.quote)] == []


def test_what_is_called_invented_stands_nowhere_and_what_is_called_a_claim_was_said(
    built: tuple[BuiltCase, ...],
) -> None:
    lures = [(one, lure) for one in built for criterion in one.case.criteria for lure in criterion.lures]
    found = {(lure.kind, stands(one, lure.at, lure.quote)) for one, lure in lures if lure.kind != "beside"}
    assert found == {("invented", False), ("claim", True), ("removed", True)}


def test_everything_that_was_offered_has_a_label(built: tuple[BuiltCase, ...]) -> None:
    for one in (one for one in built if one.case.offer):
        assert one.context.manifest is not None
        items = [item for item in one.context.manifest.items if item.loaded]
        tools = {item.tool for item in items if item.kind in CALLED}
        rules = {item.file for item in items if item.kind in FOLLOWED}
        assert sorted(label.of for label in one.case.usage) == sorted(tools | rules), one.case.name
        for label in one.case.usage:
            assert label.verdict in (OF_RULES if label.of in rules else OF_TOOLS), (one.case.name, label.of)


def test_the_script_that_asks_a_real_model_says_which_key_it_needs() -> None:
    script = Path(__file__).parents[2] / "scripts" / "measure-judge"
    done = subprocess.run(
        [sys.executable, script], env=NO_KEY, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert (done.returncode, "ANTHROPIC_API_KEY" in done.stderr) == (2, True), done.stderr
