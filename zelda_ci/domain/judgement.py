"""What the judges decide: the details of requirement fulfillment and tool usage, as a comparison reads them."""

from enum import StrEnum

from zelda_ci.domain.base import Record
from zelda_ci.redact import SafeText


class CriterionVerdict(StrEnum):
    """Whether a criterion is met; one that could not be judged counts for neither side."""

    PASS = "PASS"  # noqa: S105 - a verdict, not a password
    FAIL = "FAIL"
    NOT_JUDGED = "notJudged"


class Citation(Record):
    """Where a verdict can be checked."""

    where: SafeText
    """File and lines of the final tree, a hunk of the patch, or a turn and tool call of the transcript."""
    quote: SafeText | None = None


class CriterionJudgement(Record):
    """One acceptance criterion of one run."""

    criterion: SafeText
    verdict: CriterionVerdict
    reasoning: SafeText
    evidence: tuple[Citation, ...] = ()
    unverified: bool = False
    """True where the cited evidence did not hold."""
    split: dict[str, int] | None = None
    """Votes by verdict, where there were several and they differed."""


class JudgeIdentity(Record):
    """Who judged: verdicts of different judges are not comparable."""

    model: str
    prompt_version: str


class FulfillmentDetails(Record):
    """Details of the metric `requirementFulfillment`, criteria in the suite's order."""

    judge: JudgeIdentity | None = None
    criteria: tuple[CriterionJudgement, ...] = ()
    votes: int = 1
    parts: int = 1
    """Pieces in which the transcript was read; more than one where it did not fit into the judge's context."""
    notes: tuple[SafeText, ...] = ()
    """What the judge did not see in full, and what else limits the verdicts, in sentences."""


class MissedTool(Record):
    """A tool that was available, should have been used, and was not."""

    tool: SafeText
    reasoning: SafeText


class ToolUsageDetails(Record):
    """Details of the metric `toolUsage`."""

    judge: JudgeIdentity | None = None
    used: dict[str, int] = {}
    """Calls by tool, named as in `EfficiencyDetails.tool_calls`."""
    missed: tuple[MissedTool, ...] = ()
