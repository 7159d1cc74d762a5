"""Results of evaluators."""

from typing import Annotated, Any

from pydantic import SerializeAsAny, ValidationError, ValidationInfo, WithJsonSchema, field_validator

from zelda_ci.domain.base import Record
from zelda_ci.domain.measures import METRICS, Metric
from zelda_ci.redact import SafeText


class EvalResult(Record):
    """One metric of one run. Without a score it is unscored, which is not zero: `reasoning` says why."""

    metric: Metric
    version: str
    """Version of the evaluator; results of different versions are not comparable."""
    score: float | None = None
    """0 to 100."""
    reasoning: SafeText
    details: Annotated[SerializeAsAny[Record], WithJsonSchema({"type": "object"})]
    """Record of the kind that the metric's row names; empty where nothing is known, or another Zelda wrote it."""
    failed: bool = False
    """True where the evaluator could not do its work; being unscored because nothing was configured is no failure."""
    code: str | None = None
    """Code of that failure, like `JUDGE_AUTHENTICATION_FAILED`, where Zelda can explain it."""

    @field_validator("details", mode="before")
    @classmethod
    def _typed(cls, details: Any, others: ValidationInfo) -> Any:
        if not isinstance(details, dict) or "metric" not in others.data:
            return details
        try:
            return METRICS[others.data["metric"]].details.model_validate(details) if details else Record()
        except ValidationError:
            return Record()
