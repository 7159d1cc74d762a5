"""Whether the work meets the suite's acceptance criteria, as a judge sees it and as its citations bear out."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from zelda_ci.domain.evaluation import EvalContext, Metric
from zelda_ci.domain.judgement import CriterionJudgement, CriterionVerdict, FulfillmentDetails, JudgeIdentity
from zelda_ci.domain.session import SessionStatus
from zelda_ci.errors import JudgeError
from zelda_ci.evaluators.base import Outcome, Scored, Unscored
from zelda_ci.evaluators.evidence import gather
from zelda_ci.evaluators.panel import PROMPT_VERSION, Panel
from zelda_ci.evaluators.verdicts import Draft, not_judged
from zelda_ci.judge.base import Judge
from zelda_ci.redact import Redactor
from zelda_ci.transcript.synthesizer import Conclusion, read

NOT_CONFIGURED = "Not configured: the suite has no acceptanceCriteria."
BROKEN_OFF = {SessionStatus.FAILED, SessionStatus.INTERRUPTED}

MAX_NAMED = 5
LONGEST_NAME = 100


class RequirementFulfillment:
    """Score = passed criteria / criteria that count, in percent.

    What the evidence cannot decide counts as not met, unless the suite ignores it. With a criterion that nobody judged
    there is no score: nothing vouches for it. A session that failed or was interrupted is not judged: what it left
    unfinished says nothing about what steered it.
    """

    metric: Final = Metric.REQUIREMENT_FULFILLMENT
    version: Final = "2"

    def __init__(self, judge: Judge, nonce: str, redact: Redactor) -> None:
        self._judge = judge
        self._nonce = nonce
        self._redact = redact

    async def evaluate(self, context: EvalContext) -> Outcome:
        """Ask the judge, and check what it cites."""
        criteria = context.suite.acceptance_criteria
        if not criteria:
            return Unscored(NOT_CONFIGURED)
        if context.transcript.status in BROKEN_OFF:
            return Unscored("The session broke off, so its work was not judged.")
        panel = self._panel(context, criteria)
        try:
            conclusion = await read(context.transcript, self._judge, panel.reading())
        except JudgeError as problem:
            conclusion = Conclusion(dict.fromkeys(panel.criteria, not_judged(problem)))
        judgements = [draft.judgement(criteria[number - 1], self._redact) for number, draft in conclusion.value.items()]
        notes = (*panel.evidence.notes, *conclusion.notes, *panel.notes, *_dropped(conclusion.value))
        details = self._details(judgements, conclusion, notes, panel.votes)
        return _outcome(judgements, details, counts_undecided=context.suite.undecided == "fail")

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


def _outcome(
    judgements: Sequence[CriterionJudgement], details: FulfillmentDetails, *, counts_undecided: bool
) -> Outcome:
    verdicts = [one.verdict for one in judgements]
    if CriterionVerdict.NOT_JUDGED in verdicts:
        return Unscored(_unjudged(judgements), details, failed=True)
    passed, failed = verdicts.count(CriterionVerdict.PASS), verdicts.count(CriterionVerdict.FAIL)
    undecided = verdicts.count(CriterionVerdict.UNDECIDED)
    counted = passed + failed + (undecided if counts_undecided else 0)
    if not counted:
        return Unscored("The evidence decides none of the criteria, and the suite ignores such.", details, failed=True)
    rest = "".join(f", {count} {what}" for count, what in ((failed, "not met"), (undecided, "undecided")) if count)
    return Scored(100 * passed / counted, f"{passed} of {counted} criteria met{rest}.", details)


def _unjudged(judgements: Sequence[CriterionJudgement]) -> str:
    """Which criteria were not judged, and why; a reason that all share is told once."""
    missing = [(n, one) for n, one in enumerate(judgements, start=1) if one.verdict is CriterionVerdict.NOT_JUDGED]
    reasons = list(dict.fromkeys(str(one.reasoning) for _, one in missing))
    named = [f"{number}. {_shortened(one.criterion)}" for number, one in missing[:MAX_NAMED]]
    if len(reasons) > 1:
        named = [f"{name} ({one.reasoning})" for name, (_, one) in zip(named, missing, strict=False)]
    more = f"; and {len(missing) - MAX_NAMED} more" if len(missing) > MAX_NAMED else ""
    why = f" {reasons[0]}" if len(reasons) == 1 else ""
    return f"{len(missing)} of {len(judgements)} criteria were not judged.{why} Not judged: {'; '.join(named)}{more}"


def _shortened(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= LONGEST_NAME else f"{words[:LONGEST_NAME].rstrip()} ..."


def _dropped(drafts: Mapping[int, Draft]) -> Iterator[str]:
    for number, draft in drafts.items():
        if draft.is_judged and draft.dropped:
            yield f"Criterion {number}: a citation was left out. {' '.join(draft.dropped)}"
