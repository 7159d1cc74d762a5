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


def test_the_reasons_of_the_gate_stay_until_the_end() -> None:
    kept = [{entry.priority for entry in reduced(VIEW, step).details} for step in STEPS]
    assert [Priority.GATE in found for found in kept] == [True] * 9 + [False]
    assert kept[0] >= {Priority.GATE, Priority.FAILED, Priority.CHANGED, Priority.ABOUT, Priority.RUN_FAILED}
    assert kept[6] == {Priority.GATE}


def test_rows_beyond_the_limit_are_counted() -> None:
    view = ci_view(REPORTS["crowd"]())
    gate = reduced(view, STEPS[6]).details[0]
    rows = gate.sections[0].rows
    assert len(rows) == 21
    assert rows[-1].cells[0].text == "and 11 more"
    assert reduced(view, STEPS[8]).table.lines[-1].cells[0].text == "and 86 more suites"
