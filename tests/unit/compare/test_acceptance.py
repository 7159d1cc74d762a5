"""What an acceptance covers, and what it never does."""

from datetime import UTC, datetime
from typing import Any

from tests.unit.compare.runs import batch, correctness, fulfillment, gate_of, judged, redact, trials
from zelda_ci.compare.comparison import compare
from zelda_ci.compare.gate import accept, failing_criteria, failures, is_about_criteria
from zelda_ci.domain.comparison import Acceptance, GateResult
from zelda_ci.domain.suite import GateSettings, ScoreLimits
from zelda_ci.report.builders.comparison import gate_sentence

AT = datetime(2026, 2, 13, tzinfo=UTC)


def acceptance(criterion: str, suite: str = "alpha") -> Acceptance:
    return Acceptance(suite=suite, criterion=criterion, by="dev", because=redact("it is due"), at=AT)


def red(found: GateResult) -> list[str]:
    return [gate_sentence(reason) for reason in found.reasons]


def test_a_criterion_that_fails_by_itself_is_noted_and_others_stay_red() -> None:
    runs = judged("PFF")
    found = accept(failures(batch(runs), {}), [acceptance("criterion 2")], None, runs)
    assert len(red(found)) == 1
    assert "criterion 3" in red(found)[0]
    (noted,) = found.accepted
    assert (noted.acceptance.by, noted.acceptance.criterion) == ("dev", "criterion 2")
    assert found.exit_code == 1
    both = [acceptance("criterion 2"), acceptance("criterion 3")]
    assert accept(failures(batch(runs), {}), both, None, runs).exit_code == 0


def test_another_text_another_suite_and_no_acceptance_cover_nothing() -> None:
    runs = judged("PF")
    found = failures(batch(runs), {})
    for given in ([], [acceptance("Criterion 2")], [acceptance("criterion 2 ")], [acceptance("criterion 2", "beta")]):
        assert accept(found, given, None, runs) == found


def test_a_regression_is_covered_with_the_score_that_it_makes() -> None:
    old, new = judged(*["PP"] * 10), judged(*["PF"] * 10, label="b")
    comparison = compare(old, new)
    found = accept(gate_of(comparison), [acceptance("criterion 2")], comparison, new)
    assert red(found) == []
    assert len(found.accepted) == 2


def test_a_score_that_another_criterion_lowers_too_is_not_covered() -> None:
    old, new = judged(*["PPP"] * 10), judged(*["PFF"] * 10, label="b")
    comparison = compare(old, new)
    found = accept(gate_of(comparison), [acceptance("criterion 2")], comparison, new)
    assert len(red(found)) == 2
    assert any("criterion 3" in line for line in red(found))
    assert any("requirement fulfillment" in line for line in red(found))


def test_a_new_criterion_that_fails_lowers_the_score_too() -> None:
    names = ["criterion 1", "criterion 2", "criterion 3"]
    old = trials(*([fulfillment("PP", names[:2])] for _ in range(10)))
    new = trials(*([fulfillment("PFF", names)] for _ in range(10)), label="b")
    comparison = compare(old, new)
    found = accept(gate_of(comparison), [acceptance("criterion 2")], comparison, new)
    assert red(found) == ["alpha: requirement fulfillment went from 100.0 to 33.3 points of 100"]


def test_a_minimum_is_covered_where_all_failing_criteria_are() -> None:
    settings = {"alpha": GateSettings(min_score=ScoreLimits(requirement_fulfillment=90))}
    runs = judged("PFF", "PPF")
    found = failures(batch(runs), settings)
    assert accept(found, [acceptance("criterion 3")], None, runs).exit_code == 1
    assert accept(found, [acceptance("criterion 2"), acceptance("criterion 3")], None, runs).exit_code == 0


def test_commands_and_other_numbers_are_never_covered() -> None:
    runs: Any = trials([fulfillment("PF"), correctness(0.0)])
    found = accept(failures(batch(runs), {}), [acceptance("criterion 2")], None, runs)
    assert [reason.kind for reason in found.reasons] == ["evaluation"]
    assert "criterion" not in red(found)[0]
    assert not is_about_criteria(found)
    # A criterion alone is enough, and so is a score.
    for settings in ({}, {"alpha": GateSettings(min_score=ScoreLimits(requirement_fulfillment=90))}):
        assert is_about_criteria(failures(batch(judged("PF")), settings))
    # What was not judged stays incomplete.
    runs = judged("F?")
    found = accept(failures(batch(runs), {}), [acceptance("criterion 1"), acceptance("criterion 2")], None, runs)
    assert found.exit_code == 2


def test_criteria_that_fail_have_their_numbers_in_the_suite() -> None:
    runs = judged("PFPF", "PPPF")
    assert failing_criteria(runs, "alpha") == {2: "criterion 2", 4: "criterion 4"}
    assert failing_criteria(runs, "beta") is None
    assert failing_criteria(judged("PP"), "alpha") == {}
