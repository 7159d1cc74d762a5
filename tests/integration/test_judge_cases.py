"""The labelled cases themselves: enough of them, of every kind, and every label can be looked up."""

import pytest

from tests.support.case_places import is_own_words, stands
from tests.support.judge_cases import BuiltCase, all_cases, build
from zelda_ci.domain.manifest import CALLED, READ

CASES = all_cases()
OF_TOOLS = {"USED_WELL", "INSTRUCTIONS_IGNORED", "MISSED", "MISUSED", "NOT_APPLICABLE"}
OF_RULES = {"FOLLOWED", "BROKEN", "NOT_APPLICABLE"}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[BuiltCase, ...]:
    return tuple(build(case, tmp_path_factory.mktemp("case")) for case in CASES)


def test_there_are_enough() -> None:
    criteria = [criterion for case in CASES for criterion in case.criteria]
    assert len(CASES) >= 40
    assert len(criteria) >= 140
    assert sum(bool(case.usage) for case in CASES) >= 15
    assert {criterion.verdict for criterion in criteria} == {"PASS", "FAIL", "UNDECIDED"}
    assert {label.verdict for case in CASES for label in case.usage} == OF_TOOLS | OF_RULES


def test_each_is_known_by_its_name_and_by_its_task() -> None:
    for told in ([case.name for case in CASES], [case.task for case in CASES]):
        assert sorted(told) == sorted(set(told))
    for case in CASES:
        assert len({criterion.text for criterion in case.criteria}) == len(case.criteria), case.name


def test_every_proof_stands_where_its_label_says(built: tuple[BuiltCase, ...]) -> None:
    proofs = [
        (one, place)
        for one in built
        for of_label in (*(c.proof for c in one.case.criteria), *(u.proof for u in one.case.usage))
        for place in of_label
    ]
    assert [f"{one.case.name}: {place}" for one, place in proofs if not stands(one, place.at, place.quote)] == []


def test_every_pass_has_a_proof() -> None:
    bare = [
        f"{case.name}: {one.text}" for case in CASES for one in case.criteria if one.verdict == "PASS" and not one.proof
    ]
    assert bare == []


def test_what_is_called_invented_stands_nowhere_and_what_is_called_a_claim_was_said(
    built: tuple[BuiltCase, ...],
) -> None:
    lures = [(one, lure) for one in built for criterion in one.case.criteria for lure in criterion.lures]
    found = {kind: [stands(one, lure.at, lure.quote) for one, lure in lures if lure.kind == kind] for kind in KINDS}
    assert {kind: set(stood) for kind, stood in found.items()} == {
        "invented": {False},
        "claim": {True},
        "removed": {True},
    }


KINDS = ("invented", "claim", "removed")


def test_a_removed_line_is_not_in_the_final_file(built: tuple[BuiltCase, ...]) -> None:
    for one in built:
        for lure in (lure for criterion in one.case.criteria for lure in criterion.lures if lure.kind == "removed"):
            final = one.tree / lure.at.removeprefix("patch:")
            assert not final.exists() or f"+{lure.quote}" not in one.patch, (one.case.name, lure)


def test_everything_that_was_offered_has_a_label(built: tuple[BuiltCase, ...]) -> None:
    for one in (one for one in built if one.case.offer):
        assert one.context.manifest is not None
        items = [item for item in one.context.manifest.items if item.loaded]
        tools = {item.tool for item in items if item.kind in CALLED}
        rules = {item.file for item in items if item.kind in READ}
        assert sorted(label.of for label in one.case.usage) == sorted(tools | rules), one.case.name
        for label in one.case.usage:
            assert label.verdict in (OF_RULES if label.of in rules else OF_TOOLS), (one.case.name, label.of)


def test_an_outline_of_kinds(built: tuple[BuiltCase, ...]) -> None:
    by_name = {one.case.name: one for one in built}
    assert len(by_name["three-hundred-turns"].context.transcript.turns) > 300
    long = by_name["five-megabytes"].context.transcript.tool_calls[0].output or ""
    assert len(long) > 5_000_000
    assert by_name["renamed-module"].patch.count("rename from util.py") == 1
    assert not by_name["empty-session"].context.transcript.turns
    inner = by_name["sub-agent-did-it"]
    assert inner.context.transcript.turns[inner.names["inner"] - 1].parent_tool_call_id
    assert by_name["denied-push"].context.transcript.tool_calls[0].denied
    assert is_own_words(inner, "@end")
    assert by_name["server-that-failed"].context.transcript.mcp_servers[0].status == "failed"
