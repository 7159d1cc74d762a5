"""The section on tool usage: what stands in it, in which tone, and that nothing in it can act."""

from typing import Any

from tests.builders import result, safe
from zelda_ci.domain.details import JudgeIdentity, ToolRemark, ToolUsageDetails, ToolUse
from zelda_ci.domain.evaluation import EvalResult
from zelda_ci.domain.kinds import ItemKind
from zelda_ci.domain.manifest import ManifestEntry
from zelda_ci.domain.measures import Metric
from zelda_ci.report.builders.judged import tool_usage_section
from zelda_ci.report.model import Row

SKILL = ManifestEntry(kind=ItemKind.SKILL, name=safe("s"), file=safe("s.md"), loaded=True)
JUDGE = JudgeIdentity(model="judge-1", prompt_version="1")


def rows(score: float | None = 80.0, **details: Any) -> dict[str, Row]:
    known = ToolUsageDetails(**{"manifest": (SKILL,), **details})
    evaluated = EvalResult(
        metric=Metric.TOOL_USAGE, version="1", score=score, reasoning=safe("Well used."), details=known
    )
    sections = tool_usage_section(result(evaluations={Metric.TOOL_USAGE: evaluated}))
    return {row.label: row for section in sections for row in section.rows}


def test_a_project_without_anything_has_no_section() -> None:
    assert rows(manifest=()) == {}
    assert tool_usage_section(result()) == ()


def test_nothing_that_a_file_or_a_judge_says_can_act() -> None:
    evil = safe("\x1b[2J\u202e\n::error::x")
    shown = rows(
        judge=JUDGE,
        uses=(ToolUse(tool=safe(f"Skill({evil})"), calls=1),),
        missed=(ToolRemark(tool=evil, reasoning=evil),),
        not_loaded=(ManifestEntry(kind=ItemKind.SKILL, name=evil, file=evil, reason=evil),),
        notes=(evil,),
    )
    texts = [cell.text for row in shown.values() for cell in (*row.cells, *row.lines)]
    assert not [text for text in texts if any(char in text for char in "\x1b\u202e\n")]
