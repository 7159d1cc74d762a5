"""One trial of suites that did not change: what merely varies turns nothing red; `tests/slow` counts how often."""

import random
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from unittest.mock import MagicMock
from xml.etree import ElementTree as ET

from tests.unit.compare.runs import START, efficiency, fulfillment, gate_of, run
from zelda_ci.ci import publish
from zelda_ci.ci.context import CiResult
from zelda_ci.compare.comparison import compare
from zelda_ci.domain.comparison import (
    SAME_FILES,
    SINGLE_TRIAL,
    BaselineOrigin,
    BaselineState,
    Comparison,
    MeasureDelta,
    Verdict,
)
from zelda_ci.domain.measures import Measure
from zelda_ci.domain.run import BatchResult, Fingerprint, RunResult
from zelda_ci.domain.suite import GateSettings, ScoreLimits
from zelda_ci.pipeline.comparing import Compared, compare_sides
from zelda_ci.report.builders.comparison import certainty
from zelda_ci.report.ci_report import CiReport
from zelda_ci.report.comment.view import annotations, ci_view
from zelda_ci.report.junit import render_junit
from zelda_ci.report.markdown import render_comment
from zelda_ci.storage.references import SideReference

SUITES = 10


def session(chance: random.Random, suite: str, trial: int, label: str) -> RunResult:
    """Turns spread by a fifth, and cost, tokens, time and score follow them; every criterion is met."""
    turns = max(2, round(chance.gauss(20, 4)))
    used = efficiency(
        score=min(100.0, 100 * 15 / turns),
        cost=turns / 40,
        tokens=turns * 2000,
        turns=turns,
        seconds=turns * chance.uniform(4, 6),
    )
    return run([used, fulfillment("PPP")], suite=suite, run_id=f"{suite}-{label}-{trial}", at=trial)


def side(chance: random.Random, each: int, label: str) -> SideReference:
    runs = [session(chance, f"suite-{n}", trial, label) for n in range(SUITES) for trial in range(1, each + 1)]
    return SideReference(label, tuple(runs))


def equal_sides(each: tuple[int, int], comparisons: int) -> Iterator[tuple[SideReference, Compared]]:
    chance = random.Random(11)
    for _ in range(comparisons):
        candidate = side(chance, each[1], "b")
        yield candidate, compare_sides(side(chance, each[0], "a"), candidate, {})


def rows(comparison: Comparison) -> list[MeasureDelta]:
    return [*comparison.overall, *(delta for suite in comparison.suites for delta in suite.measures)]


def test_two_sides_with_the_same_files_are_said_to_show_noise():
    def side_of(label: str, *states: Fingerprint | None) -> SideReference:
        runs = [session(random.Random(label), "one", at, label) for at, _ in enumerate(states)]
        return SideReference(
            label, tuple(it.replace(fingerprint=state) for it, state in zip(runs, states, strict=True))
        )

    same = Fingerprint(outcome="o", platform="p", tree="t")
    others = [same.replace(**{field: "other"}) for field in ("outcome", "platform", "tree")]
    before = side_of("a", same, same)
    for after, is_noise in [(side_of("b", same), True), *((side_of("b", same, other), False) for other in others)]:
        comparison = compare_sides(before, after, {}).comparison
        assert (SAME_FILES in comparison.suites[0].notes) is is_noise
        cells = [cell.text for row in certainty(comparison) for cell in row.cells]
        assert (SAME_FILES in cells) is is_noise
    assert SAME_FILES not in compare_sides(before, side_of("b", None), {}).comparison.suites[0].notes


def told(candidate: SideReference, compared: Compared) -> CiReport:
    batch = BatchResult(batch_id="b", started_at=START, finished_at=START + timedelta(hours=1), runs=candidate.runs)
    origin = BaselineOrigin(state=BaselineState.FOUND, sentence="It is there.")
    return CiReport(batch=batch, gate=compared.gate, baseline=origin, comparison=compared.comparison)


def test_everything_that_is_told_of_it_is_calm_and_still_shows_the_numbers():
    for candidate, compared in equal_sides((1, 1), 3):
        report = told(candidate, compared)
        found = CiResult(MagicMock(), report.batch, compared=compared)
        assert publish.verdict(found) == "inconclusive"
        assert (publish.step_outputs(found)["regressions"], found.report.outcome.exit_code) == ("0", 0)
        assert not [*annotations(report)]
        assert ET.fromstring(render_junit(report)).get("failures") == "0"
        comment = render_comment(ci_view(report))
        assert comment.startswith(f"### Zelda: no change found in {SUITES} suites\n")
        assert "worse" not in comment
        assert " \u2192 " in comment


def test_a_criterion_that_fails_in_one_trial_is_shown_and_not_red():
    chance = random.Random(3)
    old, new = side(chance, 1, "a"), side(chance, 1, "b")
    failing = new.runs[0].model_copy(update={"evaluations": run([fulfillment("PPF")]).evaluations})
    compared = compare_sides(old, SideReference("b", (failing, *new.runs[1:])), {})
    assert compared.comparison.verdict is Verdict.CHANGED
    assert (compared.gate.exit_code, len(compared.gate.uncounted)) == (0, 1)


def single(label: str, gate: GateSettings | None = None, **used: Any) -> list[RunResult]:
    return [
        run([efficiency(**used)], suite=f"s{n}", run_id=f"s{n}-{label}", gate=gate or GateSettings())
        for n in range(SUITES)
    ]


def test_not_even_a_change_of_all_suites_at_once_or_beyond_a_tolerance_counts():
    strict = GateSettings(tolerance=ScoreLimits(efficiency=1))
    found = compare(
        single("a", strict, score=90.0, cost=0.1, turns=10), single("b", strict, score=30.0, cost=0.5, turns=50)
    )
    assert gate_of(found).reasons == ()
    assert found.verdict is Verdict.INCONCLUSIVE
    doubtful = [row for row in rows(found) if row.measure in {Measure.EFFICIENCY, Measure.COST, Measure.TURNS}]
    assert {row.verdict for row in doubtful} == {Verdict.INCONCLUSIVE}
    assert all(SINGLE_TRIAL in row.reasons and row.change for row in doubtful)


def overall(comparison: Comparison) -> MeasureDelta:
    return next(row for row in comparison.overall if row.measure is Measure.COST)
