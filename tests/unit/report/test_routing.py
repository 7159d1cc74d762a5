"""The table of a routing file: who is called when, and only when, it should be; the base before the arrow."""

from typing import Any

import pytest

from tests.builders import result, safe, suite
from tests.unit.compare.runs import batch
from zelda_ci.domain.comparison import BaselineOrigin, BaselineState, GateResult
from zelda_ci.domain.details import (
    Citation,
    CriterionJudgement,
    CriterionVerdict,
    FulfillmentDetails,
    ToolUsageDetails,
)
from zelda_ci.domain.kinds import ItemKind, Shown
from zelda_ci.domain.manifest import CUT, ManifestEntry
from zelda_ci.domain.measures import EvalResult, Metric
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.session import SessionStatus
from zelda_ci.domain.suite import RoutedPrompt
from zelda_ci.report.builders.routing import routing_tables
from zelda_ci.report.ci_report import CiReport
from zelda_ci.report.comment.view import ci_view
from zelda_ci.report.markdown import render_comment
from zelda_ci.report.model import Table


def routed(
    number: int,
    expect: str | tuple[str, ...],
    called: str = "",
    *,
    trial: int = 1,
    shown: Shown = Shown.DESCRIPTION,
    **fields: Any,
) -> RunResult:
    """A trial of the prompt of that number."""
    prompt = RoutedPrompt(prompt=f"Prompt {number}.", expect=(expect,) if isinstance(expect, str) else expect)
    name = f"r.{number}"
    config = suite(name, file="zelda/test-r.yaml", kind="routing", prompt=prompt.prompt, checks=[prompt.check])
    wanted = {each.partition(" ")[2] for each in prompt.expect}
    is_met = ("none" in prompt.expect and not called) or called.rstrip(")").rpartition("(")[2] in wanted
    evidence = (Citation(kind="transcript", turn=1, call=1, quote=safe(called)),) if called else ()
    judged = CriterionJudgement(
        criterion=safe(prompt.check.text),
        verdict=CriterionVerdict.PASS if is_met else CriterionVerdict.FAIL,
        reasoning=safe("So."),
        evidence=evidence,
        by="check",
    )
    entries = [("changelog", None), ("release", CUT)]
    manifest = tuple(
        ManifestEntry(
            kind=ItemKind.SKILL,
            name=safe(it),
            file=safe(f"{it}.md"),
            loaded=True,
            note=safe(note) if note else None,
            shown=shown,
        )
        for it, note in entries
    )
    evaluations = {
        Metric.REQUIREMENT_FULFILLMENT: FulfillmentDetails(criteria=(judged,)),
        Metric.TOOL_USAGE: ToolUsageDetails(manifest=manifest),
    }
    return result(
        f"r{number}-2026-02-13T14-30-{trial:02}",
        suite=name,
        trial=trial,
        config=config,
        evaluations={
            metric: EvalResult(metric=metric, version="1", score=None, reasoning=safe("So."), details=details)
            for metric, details in evaluations.items()
        },
        **fields,
    )


HEAD = [
    routed(1, "skill changelog", "Skill(changelog)"),
    routed(2, "skill release", "Skill(changelog)"),
    routed(2, "skill release", "Skill(changelog)", trial=2),
    routed(2, "skill release", "Skill(release)", trial=3),
    routed(3, ("skill changelog", "skill release"), "Skill(release)"),
    routed(4, "agent reviewer", ""),
    routed(5, "none", "Agent(Explore)"),
]
BASE = [
    routed(1, "skill changelog", "Skill(changelog)"),
    routed(2, "skill release", "Skill(release)"),
    routed(3, ("skill changelog", "skill release"), "Skill(changelog)"),
    routed(4, "agent reviewer", ""),
    routed(5, "none", ""),
]


def told(table: Table) -> list[list[str]]:
    return [[*(cell.text for cell in row.cells), *(note.text for note in row.notes)] for row in table.lines]


def test_a_row_says_precision_recall_and_what_was_called_instead() -> None:
    ((title, table),) = routing_tables(HEAD)
    assert title == "Routing: zelda/test-r.yaml: 3 of 7 as expected"
    assert told(table) == [
        ["skill changelog", "1 of 3", "1 of 1"],
        ["skill release", "2 of 2", "2 of 4", "skill changelog instead: r.2 2 times"],
        ["agent reviewer", "-", "0 of 1", "nothing was called: r.4"],
        ["agent Explore", "0 of 1", "-"],
        ["none", "0 of 1", "0 of 1", "agent Explore instead: r.5"],
    ]
    assert [remark.text for remark in table.remarks] == [
        f"skill release: {CUT}",
        "agent reviewer is expected, and the project has none of that name",
    ]


def test_each_routing_file_has_a_table_and_a_base_of_its_own() -> None:
    here, there = routed(1, "skill changelog"), routed(2, "none")
    there = there.replace(config=there.config.replace(file="zelda/test-x.yaml"))
    (title, table), (other, _) = routing_tables([here, there], [there])
    assert title == "Routing: zelda/test-r.yaml: 0 of 1 as expected"
    assert other == "Routing: zelda/test-x.yaml: 1 of 1 as expected"
    assert not any("The base" in remark.text for remark in table.remarks)


def test_a_skill_that_the_model_cannot_call_is_named_where_it_is_expected() -> None:
    ((_, table),) = routing_tables([routed(1, "skill changelog", shown=Shown.HIDDEN)])
    assert [remark.text for remark in table.remarks] == [
        "skill changelog: the model cannot call it",
        f"skill release: {CUT}",
    ]


def test_the_base_stands_before_the_arrow_only_where_it_has_every_prompt() -> None:
    ((title, table),) = routing_tables(HEAD, BASE)
    assert title == "Routing: zelda/test-r.yaml: 4 of 5 → 3 of 7 as expected"
    assert told(table)[:3] == [
        ["skill changelog", "2 of 2 → 1 of 3", "2 of 2 → 1 of 1"],
        ["skill release", "1 of 1 → 2 of 2", "1 of 1 → 2 of 4", "skill changelog instead: r.2 2 times (new)"],
        ["agent reviewer", "-", "0 of 1", "nothing was called: r.4"],
    ]
    # One that is for something else now, or that the head has no more, is no base for it.
    ((title, _),) = routing_tables(HEAD, [*BASE, routed(6, "none", "")])
    assert ": 4 of 5 →" in title
    ((title, table),) = routing_tables(HEAD, [routed(1, "skill release", "Skill(release)"), *BASE[1:]])
    assert (": 3 of 7 as" in title, table.remarks[-1].text[:25]) == (True, "The base has 4 of 5 promp")
    ((_, table),) = routing_tables(HEAD, BASE[:2])
    assert told(table)[0] == ["skill changelog", "1 of 3", "1 of 1"]
    assert told(table)[1][3].endswith("r.2 2 times (new)")
    assert table.remarks[-1].text == "The base has 2 of 5 prompts: its numbers are not shown"


def test_what_comes_with_claude_code_is_no_stranger_where_it_was_called() -> None:
    ((_, table),) = routing_tables([routed(1, "agent Explore", "Agent(Explore)")])
    assert [remark.text for remark in table.remarks] == [f"skill release: {CUT}"]


def test_sessions_that_broke_off_and_other_suites_have_no_row() -> None:
    broken = routed(1, "none", "").replace(status=SessionStatus.FAILED, evaluations={})
    assert [*routing_tables([broken, result()])] == []


@pytest.mark.parametrize(
    ("call", "expect", "shown"),
    [
        ("Skill(docs:changelog)", "skill changelog", "skill changelog"),
        ("Skill(ship)", "command ship", "command ship"),
        ("Task(ship)", "command ship", "agent ship"),
    ],
)
def test_a_call_is_named_as_the_file_names_it(call: str, expect: str, shown: str) -> None:
    ((_, table),) = routing_tables([routed(1, expect, call)])
    assert shown in [row[0] for row in told(table)]


def test_the_comment_has_it_to_open() -> None:
    of_head = batch(HEAD).replace(base_runs=BASE)
    report = CiReport(of_head, GateResult(), BaselineOrigin(state=BaselineState.OFF, sentence=safe("None.")))
    text = render_comment(ci_view(report))
    title = "Routing: zelda/test-r.yaml: 4 of 5 → 3 of 7 as expected"
    fold = text.partition(f"<details><summary>{title}</summary>")[2].partition("</details>")[0]
    assert "| skill changelog | 2 of 2 → 1 of 3 | 2 of 2 → 1 of 1 |" in fold
    assert "- skill release: skill changelog instead: r.2 2 times (new)" in fold
    assert f"- skill release: {CUT}" in fold
