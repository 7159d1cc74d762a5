"""Steps of leaving out: what is left, and that a step is not tried in vain."""

from itertools import pairwise

from tests.golden.ci_reports import REPORTS
from zelda_ci.report.builders.ci import STEPS, ci_view, least_size, reduced
from zelda_ci.report.markdown import render_comment, size
from zelda_ci.report.model import Priority


def test_each_step_leaves_less_and_the_findings_of_the_gate_causes_and_the_first_line_stay_longest() -> None:
    whole = ci_view(REPORTS["failed"]()).with_evidence()
    assert size(render_comment(whole, limit=10**9)) > least_size(whole)
    kept = [reduced(whole, step) for step in STEPS]
    sizes = list(map(least_size, kept))
    assert all(later <= earlier for earlier, later in pairwise(sizes))
    assert sizes[0] > 5 * sizes[-1]
    assert [len(view.causes) for view in kept] == [3] * 9 + [0]
    assert [bool(view.lead) for view in kept] == [True] * 9 + [False]
    assert [bool(view.table.lines) for view in kept] == [True] * 8 + [False] * 2
    assert {view.headline for view in kept} == {whole.headline}
    details = [{entry.priority for entry in view.details} for view in kept]
    assert [Priority.GATE in found for found in details] == [True] * 7 + [False] * 3
    assert details[0] >= {Priority.GATE, Priority.FAILED, Priority.CHANGED, Priority.ABOUT, Priority.RUN_FAILED}
    assert details[6] == {Priority.GATE}


def test_rows_beyond_the_limit_are_counted() -> None:
    view = ci_view(REPORTS["crowd"]())
    _, gate, changes = reduced(view, STEPS[5]).details[:3]
    rows = gate.sections[0].rows
    assert len(rows) == 21
    assert rows[-1].cells[0].text == "and 11 more"
    assert len(changes.sections) == 21
    assert changes.sections[-1].rows[0].cells[0].text == "and 40 more suites"
