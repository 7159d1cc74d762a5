"""A pass that hides a finding names it wherever the pass is told."""

from datetime import timedelta

import pytest

from tests.builders import safe
from tests.support.cited import citation
from tests.unit.compare.runs import JUDGE, batch, evaluation, fulfillment, tool_usage, trials
from zelda_ci.domain.comparison import BaselineOrigin, BaselineState, GateResult
from zelda_ci.domain.details import RuleJudgement, RuleVerdict, ToolRemark, ToolUsageDetails
from zelda_ci.domain.measures import EvalResult, Metric
from zelda_ci.report.builders.run import hidden_findings
from zelda_ci.report.builders.standings import standings
from zelda_ci.report.builders.summary import closing_rows, suite_facts
from zelda_ci.report.ci_report import CiReport
from zelda_ci.report.comment.table import moved_table
from zelda_ci.report.html.writer import overview_page, sessions_of

FOUND = "broke CLAUDE.md, line 4, and missed the skill changelog"


def broken(*missed: str, rule: str = "CLAUDE.md", where: str = "CLAUDE.md:4-5") -> EvalResult:
    cited = (citation("patch:a.py"), citation(where))
    verdict = RuleJudgement(rule=safe(rule), verdict=RuleVerdict.BROKEN, reasoning=safe("No."), evidence=cited)
    tools = tuple(ToolRemark(tool=safe(tool), reasoning=safe("It fits.")) for tool in missed)
    return evaluation(Metric.TOOL_USAGE, ToolUsageDetails(judge=JUDGE, rules=(verdict,), missed=tools), 50.0)


CASES = {
    FOUND: [broken("Skill(changelog)")],
    "broke CLAUDE.md": [broken(where="src/CLAUDE.md:4")],
    "broke CLAUDE.md, missed the sub-agent a, missed the tool mcp__b__c, and 1 more": [
        broken("Agent(a)", "mcp__b__c", "Skill(d)", where="turn 1")
    ],
    "missed the skill a in 2 of 3 and missed the skill b in 1 of 3": [
        tool_usage(missed=("Skill(a)", "Skill(b)")),
        tool_usage(missed=("Skill(a)",)),
        tool_usage(),
    ],
    "": [tool_usage(), tool_usage(missed=("Skill(a)",), judge=None)],
}


@pytest.mark.parametrize("words", CASES)
def test_findings_are_words_with_line_and_share(words: str) -> None:
    assert hidden_findings(trials(*([fulfillment("P"), found] for found in CASES[words]))) == words
    # Of a run that fails nothing is hidden.
    assert hidden_findings(trials(*([fulfillment("F"), found] for found in CASES[words]))) == ""


def test_a_pass_is_told_with_what_it_hides_in_line_summary_overview_and_table() -> None:
    runs = trials([fulfillment("P"), broken("Skill(changelog)")], suite="discount")
    runs += trials([fulfillment("P")], suite="well", label="b") + trials([fulfillment("P")], suite="fine", label="c")
    of_batch = batch(runs).replace(finished_at=runs[0].finished_at + timedelta(seconds=9))
    assert suite_facts(of_batch.runs[:1])[0].text == f"passes, but {FOUND}"
    (code,) = [row.cells[0].text for row in closing_rows(of_batch, GateResult()) if row.label == "Exit code"]
    assert code == "0, passed, with findings in 1 of 3 suites"
    report = CiReport(of_batch, GateResult(), BaselineOrigin(state=BaselineState.OFF, sentence=""))
    labels = [row.cells[0].text for row in moved_table(report, standings(report)).lines]
    assert labels == [f"discount, passes, but {FOUND}", "2 suites pass"]
    page = overview_page(report, sessions_of(report, with_texts=False))
    assert [cell.text for cell, *_ in page["worst"]] == [f"discount: passes, but {FOUND}"]


@pytest.mark.parametrize(("letters", "words"), [("??", "0 of 2, 2 not known"), ("?P", "1 of 2, 1 not known")])
def test_criteria_that_nobody_judged_are_not_known_where_no_trial_was_compared(letters: str, words: str) -> None:
    runs = trials([fulfillment(letters)], suite="discount")
    report = CiReport(batch(runs), GateResult(), BaselineOrigin(state=BaselineState.OFF, sentence=""))
    (row,) = moved_table(report, standings(report)).lines
    assert row.cells[1].text == words
