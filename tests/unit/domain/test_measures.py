"""The table of measures: every measure has its row, and a fault in a row costs no more than its number."""

from dataclasses import replace
from typing import Any

import pytest

from tests.golden.batches import checked, efficiency, run
from zelda_ci.domain.measures import MEASURES, Measure, Metric, values, written
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.suite import ScoreLimits
from zelda_ci.report.builders.comparison import amount


@pytest.fixture
def measured() -> RunResult:
    return run(evaluations=checked(cost_usd=0.25, turns=7))


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> Any:
        raise ZeroDivisionError

    spec = replace(MEASURES[Measure.COST], read=fail, write=fail, brief=fail, write_difference=fail)
    monkeypatch.setitem(MEASURES, Measure.COST, spec)


def test_every_measure_has_a_row_in_the_order_in_which_it_is_shown() -> None:
    assert list(MEASURES) == list(Measure)


def test_scores_have_limits_and_resources_have_none() -> None:
    limits = ScoreLimits(efficiency=1, functional_correctness=2, requirement_fulfillment=3, tool_usage=4)
    assert [limits.of(measure) for measure in MEASURES] == [1, 2, 3, 4, None, None, None, None]
    scale = MEASURES[Measure.TOOL_USAGE].scale
    assert scale.tolerating(limits.of(Measure.TOOL_USAGE)).threshold(80, -10) == 4
    assert scale.tolerating(limits.of(Measure.TOOL_USAGE)).threshold(80, 10) == scale.amount


def test_numbers_are_read_from_the_result_without_those_that_cannot_be_meant(measured: RunResult) -> None:
    found = values(measured.evaluations)
    assert (found[Measure.COST], found[Measure.TURNS]) == (0.25, 7.0)
    assert Measure.TOOL_USAGE not in found
    absurd = run(evaluations={Metric.EFFICIENCY: efficiency(cost_usd=1e300, turns=7)})
    assert Measure.COST not in values(absurd.evaluations)


@pytest.mark.usefixtures("broken")
def test_a_row_that_fails_costs_its_number_and_nothing_else(measured: RunResult) -> None:
    found = values(measured.evaluations)
    assert Measure.COST not in found
    assert found[Measure.TURNS] == 7.0
    assert amount(Measure.COST, 0.25) == "0.25"
    assert written(MEASURES[Measure.TURNS].write_difference, 1) == "1 turn"
