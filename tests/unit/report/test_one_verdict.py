"""The verdict is one value: whatever shows it, in whatever form, agrees with the colour of the check."""

from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from tests.golden.ci_reports import LINKS, REASONS, REPORTS, batch, report, trial
from zelda_ci.domain.details import FulfillmentDetails
from zelda_ci.domain.outcome import Outcome
from zelda_ci.report.builders.anchors import cited_fragment
from zelda_ci.report.builders.standings import SuiteVerdict, standings
from zelda_ci.report.comment.view import annotations, ci_view, closing_line
from zelda_ci.report.html.conversation import patched_files
from zelda_ci.report.html.writer import overview_page, sessions_of
from zelda_ci.report.junit import render_junit
from zelda_ci.report.markdown import render_comment
from zelda_ci.report.model import Tone


@pytest.mark.parametrize("name", sorted({*REPORTS} - {"crowd", "forty"}))
def test_every_form_of_a_report_agrees_with_its_check(name: str) -> None:
    told = REPORTS[name]()
    is_red = told.outcome.exit_code != 0
    assert told.is_red is is_red
    assert is_red == bool(told.gate.reasons or told.is_cut_short or told.outcome >= Outcome.INCOMPLETE)
    assert ci_view(told).failed is is_red
    assert (f"Exit code {told.outcome.exit_code}" in closing_line(told)) is is_red
    errors = [each for each in annotations(told) if each.level == "error"]
    assert is_red or not errors

    page = overview_page(told, sessions_of(told, with_texts=False))
    assert (page["headline"].tone is Tone.BAD) is (page["verdict"].tone is Tone.BAD) is is_red
    worse = {SuiteVerdict.WORSE, SuiteVerdict.PERHAPS_WORSE, SuiteVerdict.ACCEPTED}
    if any(each.standing in worse for each in standings(told)):
        assert page["headline"].tone is not Tone.GOOD

    verdicts = {suite.suite: suite.verdict.value for suite in told.comparison.suites} if told.comparison else {}
    for case in ET.fromstring(render_junit(told)).iterfind(".//testcase[@classname='comparison']"):
        assert len(case) or verdicts[case.get("name", "")] in {"unchanged", "improved"}
        assert is_red or case.find("failure") is None


def test_a_citation_leads_to_a_session_of_its_own_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(REASONS, "F", ("Bad.", "turn 2 call 1", "2 failed"))
    runs = [trial("rest-endpoint", "FPP"), trial("receipt-tax", "FP")]
    told = replace(REPORTS["first-run"](), batch=batch(runs), links=LINKS)
    for run in runs:
        judged = run.details(FulfillmentDetails)
        assert judged
        fragment = cited_fragment(told, run.suite, judged.criteria[0].evidence[0])
        assert fragment.startswith(f"#{run.suite}-head-")


def test_a_new_suite_does_not_fail_as_before() -> None:
    old = [trial("rest-endpoint", "PPF")]
    new = [trial("rest-endpoint", "PPF", minute=90), trial("receipt-tax", "PF", minute=91)]
    comment = render_comment(ci_view(report(old, new)))
    assert "<summary>1 criterion fails as before</summary>" in comment
    assert "<summary>1 criterion fails</summary>" in comment


def test_a_patch_that_is_cut_keeps_every_file_with_its_own_lines() -> None:
    def of(name: str, word: str) -> str:
        lines = "".join(f"+{word} {number}\n" for number in range(1_000))
        return f"diff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}\n@@ -0,0 +1,1000 @@\n{lines}"

    names = {"first.py": "one", "second.py": "two", "third.py": "three"}
    files = list(patched_files("".join(of(*each) for each in names.items()).encode(), {}, 9_000))
    assert [(name, added) for name, added, _, _ in files] == [(name, 1_000) for name in names]
    for name, _, _, lines in files:
        assert [word for word in names.values() if f"+{word} " in "".join(line.text for line in lines)] == [names[name]]
