"""Steps of leaving out: what is left, and that a step is not tried in vain."""

from itertools import pairwise

from tests.golden.ci_reports import REPORTS
from zelda_ci.report.builders.ci import STEPS, ci_view, least_size, reduced
from zelda_ci.report.markdown import render_comment, size
from zelda_ci.report.model import Priority

VIEW = ci_view(REPORTS["failed"]()).with_evidence()


def test_each_step_leaves_no_more_than_the_one_before() -> None:
    sizes = [least_size(reduced(VIEW, step)) for step in STEPS]
    assert all(later <= earlier for earlier, later in pairwise(sizes))
    assert sizes[0] > 5 * sizes[-1]


def test_a_rendering_is_never_shorter_than_its_texts() -> None:
    for name in REPORTS:
        view = ci_view(REPORTS[name]())
        assert size(render_comment(view, limit=10**9)) > least_size(view)


def test_causes_stay_until_nothing_but_the_first_line_is_left() -> None:
    kept = [reduced(VIEW, step) for step in STEPS]
    assert [len(view.causes) for view in kept] == [3] * 9 + [0]
    assert [bool(view.lead) for view in kept] == [True] * 9 + [False]
    assert [bool(view.table.lines) for view in kept] == [True] * 8 + [False] * 2
    assert {view.headline for view in kept} == {VIEW.headline}


def test_the_findings_of_the_gate_are_the_last_details() -> None:
    kept = [{entry.priority for entry in reduced(VIEW, step).details} for step in STEPS]
    assert [Priority.GATE in found for found in kept] == [True] * 7 + [False] * 3
    assert kept[0] >= {Priority.GATE, Priority.FAILED, Priority.CHANGED, Priority.ABOUT, Priority.RUN_FAILED}
    assert kept[6] == {Priority.GATE}


def test_rows_beyond_the_limit_are_counted() -> None:
    view = ci_view(REPORTS["crowd"]())
    gate, changes = reduced(view, STEPS[5]).details[:2]
    rows = gate.sections[0].rows
    assert len(rows) == 21
    assert rows[-1].cells[0].text == "and 11 more"
    assert len(changes.sections) == 21
    assert changes.sections[-1].rows[0].cells[0].text == "and 90 more suites"
