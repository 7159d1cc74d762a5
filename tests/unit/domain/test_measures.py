"""The registry of metrics: every measure has its row, and a fault in a row costs no more than its number."""

import math
from dataclasses import replace
from typing import Any

import pytest
from pydantic.alias_generators import to_camel

from tests.golden.batches import checked, efficiency, run
from tests.golden.ci_reports import REPORTS
from zelda_ci.domain.measures import MEASURES, METRICS, Measure, Metric, values
from zelda_ci.domain.outcome import History, at_a_glance
from zelda_ci.domain.run import RunResult
from zelda_ci.report.builders.comparison import amount
from zelda_ci.report.builders.history import history_table
from zelda_ci.report.builders.run import run_sections
from zelda_ci.report.builders.summary import suite_table
from zelda_ci.report.comment.view import ci_view
from zelda_ci.report.junit import render_junit
from zelda_ci.report.markdown import render_comment


@pytest.fixture
def measured() -> RunResult:
    return run(evaluations=checked(cost_usd=0.25, turns=7))


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> Any:
        raise ZeroDivisionError

    for measure, spec in MEASURES.items():
        unit = replace(spec.unit, write=fail, brief=fail, difference=fail)
        failing = replace(spec, read=fail, unit=unit)
        monkeypatch.setitem(MEASURES, measure, failing)


def test_numbers_are_read_from_the_result_without_those_that_cannot_be_meant(measured: RunResult) -> None:
    found = values(measured.evaluations)
    assert (found[Measure.COST], found[Measure.TURNS]) == (0.25, 7.0)
    assert Measure.TOOL_USAGE not in found
    absurd = run(evaluations={Metric.EFFICIENCY: efficiency(cost_usd=1e300, turns=7)})
    assert Measure.COST not in values(absurd.evaluations)


@pytest.mark.usefixtures("broken")
@pytest.mark.parametrize("name", ["regression", "mixed", "failed"])
def test_rows_that_fail_cost_their_numbers_and_no_report(name: str, measured: RunResult) -> None:
    assert values(measured.evaluations) == {}
    assert amount(Measure.COST, 0.25) == "0.25"
    report = REPORTS[name]()
    assert render_comment(ci_view(report))
    assert render_junit(report)
    assert suite_table(report.batch).lines
    assert [run_sections(run) for run in report.batch.runs]
    history = History(runs=tuple(map(at_a_glance, report.batch.runs)))
    assert history_table(history, of=len(history.runs)).lines


@pytest.mark.parametrize("value", ["text", object(), True, 1j, math.nan, math.inf])
def test_a_reader_that_gives_no_number_costs_its_number(
    value: Any, measured: RunResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(MEASURES, Measure.COST, replace(MEASURES[Measure.COST], read=lambda _: value))
    numbers = values(measured.evaluations)
    assert numbers.get(Measure.COST) in {None, 1.0}
    assert numbers[Measure.TURNS] == 7.0


@pytest.mark.parametrize("metric", Metric)
def test_a_metric_has_one_name_in_python_and_in_files(metric: Metric) -> None:
    own = Measure[metric.name]
    assert own.value == metric.value == to_camel(metric.name.lower())
    assert next(iter(METRICS[metric].measures)) is own
