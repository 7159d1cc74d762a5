"""The section on tool usage: what stands in it, in which tone, and that nothing in it can act."""

from typing import Any

import pytest

from tests.builders import result, safe
from zelda_ci.domain.details import (
    JudgeIdentity,
    MissedTool,
    RuleJudgement,
    RuleVerdict,
    ToolRemark,
    ToolUsageDetails,
    ToolUse,
)
from zelda_ci.domain.evaluation import EvalResult
from zelda_ci.domain.manifest import ItemKind, ManifestEntry
from zelda_ci.domain.measures import Metric
from zelda_ci.report.builders.judged import tool_usage_section
from zelda_ci.report.model import Row, Tone

SKILL = ManifestEntry(kind=ItemKind.SKILL, name=safe("s"), file=safe("s.md"), loaded=True)
JUDGE = JudgeIdentity(model="judge-1", prompt_version="1")


def rows(score: float | None = 80.0, **details: Any) -> dict[str, Row]:
    known = ToolUsageDetails(**{"manifest": (SKILL,), **details})
    stored = safe.json(known.model_dump(mode="json", by_alias=True, exclude_none=True))
    evaluated = EvalResult(
        metric=Metric.TOOL_USAGE, version="1", score=score, reasoning=safe("Well used."), details=stored
    )
    sections = tool_usage_section(result(evaluations={Metric.TOOL_USAGE: evaluated}))
    return {row.label: row for section in sections for row in section.rows}


def test_a_project_without_anything_has_no_section() -> None:
    assert rows(manifest=()) == {}
    assert tool_usage_section(result()) == ()


@pytest.mark.parametrize("details", [{"used": 5}, {"manifest": [{"kind": "dream"}]}, {"uses": "x"}, {}])
def test_details_of_another_zelda_are_not_shown(details: dict[str, Any]) -> None:
    evaluated = EvalResult(metric=Metric.TOOL_USAGE, version="9", reasoning=safe("x"), details=safe.json(details))
    assert tool_usage_section(result(evaluations={Metric.TOOL_USAGE: evaluated})) == ()


def test_missed_is_yellow_broken_is_red_and_not_loaded_is_yellow() -> None:
    shown = rows(
        judge=JUDGE,
        missed=(MissedTool(tool=safe("Skill(s)"), reasoning=safe("It fits.")),),
        rules=(
            RuleJudgement(rule=safe("r.md"), verdict=RuleVerdict.BROKEN, reasoning=safe("Broken.")),
            RuleJudgement(rule=safe("q.md"), verdict=RuleVerdict.FOLLOWED, reasoning=safe("Fine.")),
        ),
        not_loaded=(SKILL.model_copy(update={"loaded": False, "reason": safe("too deep")}),),
    )
    assert [(line.text, line.tone) for line in shown["Missed"].lines] == [("Skill(s): It fits.", Tone.WARN)]
    assert [(line.text, line.tone) for line in shown["Rules"].lines] == [("r.md: Broken.", Tone.BAD)]
    assert [(cell.text, cell.tone) for cell in shown["Rules"].cells] == [
        ("1 followed", Tone.GOOD),
        ("1 broken", Tone.BAD),
    ]
    assert [(line.text, line.tone) for line in shown["Not loaded"].lines] == [("skill s (s.md): too deep", Tone.WARN)]


def test_what_was_ignored_and_what_nobody_judged_stand_with_their_reasons_and_votes() -> None:
    ignored = ToolRemark(tool=safe("Skill(s)"), reasoning=safe("Step 3 was left out."), split={"MISUSED": 1, "a": 2})
    silent = ToolRemark(tool=safe("Agent(a)"), reasoning=safe("The votes split without a majority."))
    unjudged = RuleJudgement(rule=safe("r.md"), verdict=RuleVerdict.NOT_JUDGED, reasoning=safe("No evidence."))
    shown = rows(None, judge=JUDGE, instructions_ignored=(ignored,), not_judged=(silent,), rules=(unjudged,))
    texts = {label: [line.text for line in row.lines] for label, row in shown.items()}
    assert texts["Used, but"] == ["Skill(s): Step 3 was left out. (votes: 1 MISUSED, 2 a)"]
    assert texts["Not judged"] == ["Agent(a): The votes split without a majority."]
    assert texts["Rules"] == ["r.md: No evidence."]


def test_without_a_judge_the_counts_are_there_and_no_assessment() -> None:
    silent = RuleJudgement(rule=safe("r.md"), verdict=RuleVerdict.NOT_APPLICABLE, reasoning=safe("Not judged."))
    shown = rows(None, uses=(ToolUse(tool=safe("Skill(s)"), calls=2, errors=1),), rules=(silent,))
    assert list(shown) == ["Called", "Rules"]
    assert [(cell.text, cell.tone) for cell in shown["Called"].cells] == [("Skill(s) 2 (1 failed)", Tone.WARN)]
    assert shown["Rules"].cells[0].text == "1 loaded, not judged"


def test_a_session_that_called_none_of_the_projects_tools_says_so() -> None:
    called = rows(uses=(ToolUse(tool=safe("Bash"), calls=1),))["Called"]
    assert [cell.text for cell in called.cells] == ["no skill, sub-agent or MCP tool", "1 call of built-in tools"]


def test_long_lists_are_cut_and_say_so() -> None:
    missed = tuple(MissedTool(tool=safe(f"Skill(s{n})"), reasoning=safe("x")) for n in range(30))
    uses = tuple(ToolUse(tool=safe(f"mcp__a__{n}"), calls=1) for n in range(30))
    shown = rows(missed=missed, uses=uses)
    assert shown["Missed"].lines[-1].text == "and 18 more"
    assert shown["Called"].cells[-1].text == "and 18 more"


def test_nothing_that_a_file_or_a_judge_says_can_act() -> None:
    evil = safe("\x1b[2J\u202e\n::error::x")
    shown = rows(
        judge=JUDGE,
        uses=(ToolUse(tool=safe(f"Skill({evil})"), calls=1),),
        missed=(MissedTool(tool=evil, reasoning=evil),),
        not_loaded=(ManifestEntry(kind=ItemKind.SKILL, name=evil, file=evil, reason=evil),),
        notes=(evil,),
    )
    texts = [cell.text for row in shown.values() for cell in (*row.cells, *row.lines)]
    assert not [text for text in texts if any(char in text for char in "\x1b\u202e\n")]
