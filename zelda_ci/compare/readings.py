"""What a comparison reads from one stored run."""

from dataclasses import dataclass
from typing import TypeVar

from pydantic import ValidationError

from zelda_ci.domain.base import Record
from zelda_ci.domain.comparison import Measure
from zelda_ci.domain.evaluation import EfficiencyDetails, Metric
from zelda_ci.domain.judgement import CriterionJudgement, CriterionVerdict, FulfillmentDetails, ToolUsageDetails
from zelda_ci.domain.outcome import Outcome, run_outcome, unjudged_criteria
from zelda_ci.domain.run import RunResult

RESOURCES = (Measure.COST, Measure.TOKENS, Measure.TURNS, Measure.DURATION)

IMPLAUSIBLE = 1e15

Details = TypeVar("Details", bound=Record)


@dataclass(frozen=True, slots=True)
class Reading:
    """The numbers and judgements of one run; what was not computed is missing."""

    run: RunResult
    values: dict[Measure, float]
    """Without numbers that cannot be meant: results may come from outside and must not upset the arithmetic."""
    unscored: dict[Measure, str]
    """Measures that were asked for and could not be computed, and why."""
    judgements: dict[str, CriterionJudgement]
    """By criterion; a text that occurs twice in a suite is numbered."""
    outcomes: dict[str, float]
    """Criteria that count, 100 or 0: pass rates are in percent. What nobody judged, or is ignored, is missing."""
    is_complete: bool
    """False where not everything could be judged that was asked for."""
    fulfillment: FulfillmentDetails | None
    tool_usage: ToolUsageDetails | None
    tools_used: frozenset[str]
    tools_missed: frozenset[str]


def read(run: RunResult) -> Reading:
    """Take a result apart. Details of an unknown shape count as missing."""
    efficiency = _details(run, Metric.EFFICIENCY, EfficiencyDetails)
    fulfillment = _details(run, Metric.REQUIREMENT_FULFILLMENT, FulfillmentDetails)
    tool_usage = _details(run, Metric.TOOL_USAGE, ToolUsageDetails)
    results = {Measure(metric.value): result for metric, result in run.evaluations.items()}
    scores = {measure: result.score for measure, result in results.items() if result.score is not None}
    if unjudged_criteria(run):
        # An older Zelda gave a score to what had been judged.
        scores.pop(Measure.REQUIREMENT_FULFILLMENT, None)
    used = tool_usage.used if tool_usage and tool_usage.used else efficiency.tool_calls if efficiency else {}
    values = scores | (_resources(efficiency) if efficiency else {})
    judgements = _numbered(fulfillment.criteria) if fulfillment else {}
    worth = {CriterionVerdict.PASS: 100.0, CriterionVerdict.FAIL: 0.0}
    if run.config.undecided == "fail":
        worth[CriterionVerdict.UNDECIDED] = 0.0
    return Reading(
        run=run,
        values={measure: float(value) for measure, value in values.items() if abs(value) < IMPLAUSIBLE},
        unscored={measure: result.reasoning for measure, result in results.items() if measure not in scores},
        judgements=judgements,
        outcomes={name: worth[one.verdict] for name, one in judgements.items() if one.verdict in worth},
        is_complete=run_outcome(run) is not Outcome.INCOMPLETE,
        fulfillment=fulfillment,
        tool_usage=tool_usage,
        tools_used=frozenset(tool for tool, calls in used.items() if calls),
        tools_missed=frozenset(missed.tool for missed in tool_usage.missed) if tool_usage else frozenset(),
    )


def _details(run: RunResult, metric: Metric, kind: type[Details]) -> Details | None:
    result = run.evaluations.get(metric)
    try:
        return kind.model_validate(result.details) if result else None
    except ValidationError:
        return None


def _resources(details: EfficiencyDetails) -> dict[Measure, float]:
    return {
        Measure.COST: details.cost_usd,
        Measure.TOKENS: details.usage.total,
        Measure.TURNS: details.turns,
        Measure.DURATION: details.wall_seconds,
    }


def _numbered(judgements: tuple[CriterionJudgement, ...]) -> dict[str, CriterionJudgement]:
    numbered: dict[str, CriterionJudgement] = {}
    for judgement in judgements:
        name, copies = str(judgement.criterion), 1
        while name in numbered:
            copies += 1
            name = f"{judgement.criterion} ({copies})"
        numbered[name] = judgement
    return numbered
