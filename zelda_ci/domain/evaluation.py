"""What evaluators receive and return."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from zelda_ci.domain.base import Record
from zelda_ci.domain.manifest import ToolsManifest
from zelda_ci.domain.session import ApiUsage, ModelUsage, SessionTranscript, Usage
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.domain.workspace import Changes, Workspace
from zelda_ci.redact import SafeJson, SafeText


class Metric(StrEnum):
    """The four metrics, in the order in which they are computed and shown."""

    EFFICIENCY = "efficiency"
    FUNCTIONAL_CORRECTNESS = "functionalCorrectness"
    REQUIREMENT_FULFILLMENT = "requirementFulfillment"
    TOOL_USAGE = "toolUsage"


@dataclass(frozen=True)
class EvalContext:
    """All that an evaluator may look at: data only, services go to its constructor."""

    suite: ResolvedSuite
    workspace: Workspace | None
    """Absent where it is gone: the run was killed, or is judged again later."""
    transcript: SessionTranscript
    api: ApiUsage
    changes: Changes | None
    """Absent where they are not known."""
    earlier: "Mapping[Metric, EvalResult]" = field(default_factory=dict)
    """Results of the evaluators that ran before this one."""
    checks: tuple[SafeText, ...] = ()
    """What build and tests said, each as one finished text that a judge can read."""
    unready: SafeText | None = None
    """Why build and tests cannot be run, though it is the session's work that they would judge."""
    manifest: ToolsManifest | None = None
    """What the project offered, and what of it the session had; absent where nobody looked."""


class EvalResult(Record):
    """One metric of one run. Without a score it is unscored, which is not zero: `reasoning` says why."""

    metric: Metric
    version: str
    """Of the evaluator; results of different versions are not comparable."""
    score: float | None = None
    """0 to 100."""
    reasoning: SafeText
    details: SafeJson
    failed: bool = False
    """True where the evaluator could not do its work; being unscored because nothing was configured is no failure."""


class EfficiencyDetails(Record):
    """Raw numbers behind the efficiency score."""

    counted_by: Literal["claudeCode", "proxy", "transcript"] = "claudeCode"
    """Where tokens and cost come from: Claude Code's last result message, the model proxy, or the responses heard."""
    usage: Usage
    models: dict[str, ModelUsage]
    cost_usd: float
    cost_known: bool
    turns: int
    """Model responses in the main thread."""
    subagent_turns: int
    wall_seconds: float
    api_seconds: float
    tool_calls: dict[str, int]
    """Calls by tool; skills as `Skill(name)`, sub-agents as `Agent(type)`, MCP tools by their full name."""
    tool_errors: int
    denied_calls: int
    api_retries: int
    parts: dict[str, float]
    """Score 0 to 100 of each part that had a target, by the target's name; `maxTurns` where there was none."""
