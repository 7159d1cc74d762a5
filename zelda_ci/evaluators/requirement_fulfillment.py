"""Whether the work meets the suite's acceptance criteria, as a judge sees it and as its citations bear out."""

from collections.abc import Mapping, Sequence
from typing import Final

from zelda_ci.domain.evaluation import EvalContext, Metric
from zelda_ci.domain.judgement import CriterionJudgement, CriterionVerdict, FulfillmentDetails, JudgeIdentity
from zelda_ci.domain.session import SessionStatus
from zelda_ci.evaluators.base import Outcome, Scored, Unscored
from zelda_ci.evaluators.evidence import gather
from zelda_ci.evaluators.panel import PROMPT_VERSION, Panel
from zelda_ci.evaluators.verdicts import Draft
from zelda_ci.judge.base import Judge
from zelda_ci.redact import Redactor
from zelda_ci.transcript.synthesizer import Conclusion, read

NOT_CONFIGURED = "Not configured: the suite has no acceptanceCriteria."
BROKEN_OFF = {SessionStatus.FAILED, SessionStatus.INTERRUPTED}


class RequirementFulfillment:
    """Score = passed criteria / judged criteria, in percent.

    A criterion that could not be judged counts for neither side. A session that failed or was interrupted is not
    judged: what it left unfinished says nothing about what steered it.
    """

    metric: Final = Metric.REQUIREMENT_FULFILLMENT
    version: Final = "1"

    def __init__(self, judge: Judge, nonce: str, redact: Redactor) -> None:
        self._judge = judge
        self._nonce = nonce
        self._redact = redact

    async def evaluate(self, context: EvalContext) -> Outcome:
        """Ask the judge, and check what it cites.

        Raises:
            JudgeError: The judge gave no usable answer.
        """
        criteria = context.suite.acceptance_criteria
        if not criteria:
            return Unscored(NOT_CONFIGURED)
        if context.transcript.status in BROKEN_OFF:
            return Unscored("The session broke off, so its work was not judged.")
        panel = self._panel(context, criteria)
        conclusion = await read(context.transcript, self._judge, panel.reading())
        judgements = [draft.judgement(criteria[number - 1], self._redact) for number, draft in conclusion.value.items()]
        notes = (*panel.evidence.notes, *conclusion.notes, *panel.notes)
        return _outcome(judgements, self._details(judgements, conclusion, notes, panel.votes))

    def _panel(self, context: EvalContext, criteria: Sequence[str]) -> Panel:
        tokens = self._judge.context_tokens
        evidence = gather(context, self._redact, nonce=self._nonce, context_tokens=tokens)
        numbered = dict(enumerate(criteria, start=1))
        return Panel(self._judge, self._nonce, numbered, evidence, context.suite.judge.votes)

    def _details(
        self,
        judgements: Sequence[CriterionJudgement],
        conclusion: Conclusion[Mapping[int, Draft]],
        notes: Sequence[str],
        votes: int,
    ) -> FulfillmentDetails:
        return FulfillmentDetails(
            judge=JudgeIdentity(model=self._judge.model, prompt_version=PROMPT_VERSION),
            criteria=tuple(judgements),
            votes=votes,
            parts=conclusion.parts,
            notes=tuple(map(self._redact, notes)),
        )


def _outcome(judgements: Sequence[CriterionJudgement], details: FulfillmentDetails) -> Outcome:
    verdicts = [one.verdict for one in judgements]
    passed, failed = verdicts.count(CriterionVerdict.PASS), verdicts.count(CriterionVerdict.FAIL)
    judged = passed + failed
    if not judged:
        why = judgements[0].reasoning
        return Unscored(f"No criterion could be judged: {why}", details, failed=True)
    unverified = sum(one.unverified for one in judgements)
    counts = [(failed, "not met"), (len(verdicts) - judged, "not judged"), (unverified, "unverified")]
    rest = "".join(f", {count} {what}" for count, what in counts if count)
    return Scored(100 * passed / judged, f"{passed} of {judged} criteria met{rest}.", details)
