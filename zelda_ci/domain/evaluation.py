"""What evaluators receive and return."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import SerializeAsAny, ValidationError, ValidationInfo, WithJsonSchema, field_validator

from zelda_ci.domain.base import Record
from zelda_ci.domain.manifest import ToolsManifest
from zelda_ci.domain.measures import METRICS, Metric
from zelda_ci.domain.session import ApiUsage, SessionTranscript
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.domain.workspace import Changes, Workspace
from zelda_ci.redact import SafeText


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
    images: Path | None = None
    """Folder with the images that tools returned."""
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
    details: Annotated[SerializeAsAny[Record], WithJsonSchema({"type": "object"})]
    """Of the kind that the metric's row names; without a field where nothing is known, or another Zelda wrote them."""
    failed: bool = False
    """True where the evaluator could not do its work; being unscored because nothing was configured is no failure."""
    code: str | None = None
    """Of that failure, like `JUDGE_AUTHENTICATION_FAILED`, where Zelda can explain it."""

    @field_validator("details", mode="before")
    @classmethod
    def _typed(cls, details: Any, others: ValidationInfo) -> Any:
        if not isinstance(details, dict) or "metric" not in others.data:
            return details
        try:
            return METRICS[others.data["metric"]].details.model_validate(details) if details else Record()
        except ValidationError:
            return Record()
