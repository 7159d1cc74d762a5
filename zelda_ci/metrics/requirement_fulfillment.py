"""Requirement fulfillment: whether the work meets the acceptance criteria, judged by vote and checked by citations."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from zelda_ci.domain.context import EvalContext
from zelda_ci.domain.details import CriterionJudgement, CriterionVerdict, FulfillmentDetails, JudgeIdentity
from zelda_ci.domain.measures import Metric
from zelda_ci.domain.session import SessionStatus
from zelda_ci.errors import JudgeError
from zelda_ci.judge.base import Judge, JudgeQuestion
from zelda_ci.judge.lookups import lookups_of
from zelda_ci.judge.prompts import render
from zelda_ci.judge.transcript import CheckedFinding, EarlierFindings, QueryResult, TranscriptPart, query_transcript
from zelda_ci.metrics import verdicts
from zelda_ci.metrics.base import Evaluator, JudgeServices, Outcome, Scored, Unscored
from zelda_ci.metrics.evidence import Criterion
from zelda_ci.metrics.gathering import gather
from zelda_ci.metrics.verdicts import PartFindings, Verdicts
from zelda_ci.metrics.voting import Draft, Panel, Vote, decided, not_judged
from zelda_ci.redact import Redactor

NAME = "requirement-fulfillment"
PROMPT_VERSION = "4"
# In which it answers: in the end, and on a part of a long transcript.
FORMS = (Verdicts, PartFindings)


class CriteriaPanel(Panel[Criterion, Verdicts, PartFindings, CriterionVerdict]):
    """One run's criteria before the judge."""

    answer, part_answer = FORMS

    def concluding(self, earlier: EarlierFindings, numbers: Sequence[int]) -> JudgeQuestion:
        body = render(
            "fulfillment",
            **self._listed(numbers),
            is_whole=earlier.is_whole,
            has_files=self.evidence.has_files,
            has_checks=self.evidence.has_checks,
            can_look_up=self.lookups is not None,
        )
        common, own = self.evidence.before(earlier, self.nonce)
        return JudgeQuestion(NAME, PROMPT_VERSION, self._system(), own, body, self.lookups, common)

    def about_part(self, part: TranscriptPart) -> JudgeQuestion:
        body = render("fulfillment-part", part=part, **self._listed(tuple(self.subjects)))
        common = self.evidence.before_part(part, self.nonce)
        return JudgeQuestion(f"{NAME}-part", PROMPT_VERSION, self._system(), (), body, common=common)

    def _listed(self, numbers: Sequence[int]) -> dict[str, Any]:
        criteria = [(number, self.subjects[number].text) for number in numbers]
        return {"criteria": criteria, "of_answer": [n for n in numbers if self.subjects[n].is_about_answer]}

    def _system(self) -> str:
        return render("fulfillment-system")

    def checked(self, answer: Verdicts, numbers: Sequence[int]) -> Vote[CriterionVerdict]:
        return verdicts.drafts_of(answer, {n: self.subjects[n] for n in numbers}, self.evidence.sources)

    def checked_part(self, answer: PartFindings) -> CheckedFinding[PartFindings]:
        return verdicts.checked_findings(answer, self.subjects, self.evidence.sources)

    def merged(self, answers: Sequence[PartFindings]) -> Vote[CriterionVerdict]:
        return verdicts.merged(answers, self.subjects, self.evidence.sources)

    def decided(self, votes: Sequence[Draft[CriterionVerdict]]) -> Draft[CriterionVerdict]:
        return decided(
            votes, lambda verdict: (verdict or CriterionVerdict.NOT_JUDGED).value, CriterionVerdict.UNDECIDED
        )


NOT_CONFIGURED = "Not configured: the suite has no acceptanceCriteria."
BROKEN_OFF = {SessionStatus.FAILED, SessionStatus.INTERRUPTED}

MAX_NAMED = 5
MAX_NAME_LENGTH = 100


@dataclass(frozen=True)
class RequirementFulfillment:
    """Score = passed criteria / criteria that count, in percent.

    What the evidence cannot decide counts as not met, unless the suite ignores it. With a criterion that nobody judged
    there is no score: nothing vouches for it. A session that failed or was interrupted is not judged: what it left
    unfinished says nothing about what steered it.
    """

    judge: Judge
    nonce: str
    redact: Redactor
    metric = Metric.REQUIREMENT_FULFILLMENT
    version = "4"

    async def evaluate(self, context: EvalContext) -> Outcome:
        """Ask the judge, and check what it cites."""
        criteria = context.suite.criteria
        if not criteria:
            return Unscored(NOT_CONFIGURED)
        if context.transcript.status in BROKEN_OFF:
            return Unscored("The session broke off, so its work was not judged.")
        panel = self._panel(context, criteria)
        try:
            conclusion = await query_transcript(context.transcript, self.judge, panel.reading())
        except JudgeError as problem:
            conclusion = QueryResult(dict.fromkeys(panel.subjects, not_judged(problem)))
        judgements = [self._judgement(criteria[number - 1], draft) for number, draft in conclusion.value.items()]
        notes = (*panel.evidence.notes, *conclusion.notes, *panel.notes, *_dropped(conclusion.value))
        details = FulfillmentDetails(
            judge=JudgeIdentity(model=self.judge.model, prompt_version=PROMPT_VERSION),
            criteria=tuple(judgements),
            votes=panel.votes,
            parts=conclusion.parts,
            notes=tuple(map(self.redact, notes)),
        )
        return _outcome(judgements, details, counts_undecided=context.suite.undecided == "fail")

    def _panel(self, context: EvalContext, criteria: Sequence[str]) -> CriteriaPanel:
        evidence = gather(context, self.redact, nonce=self.nonce, context_tokens=self.judge.context_tokens)
        results = len(criteria) - len(context.suite.answer_criteria)
        numbered = {n: Criterion(text, n > results) for n, text in enumerate(criteria, start=1)}
        lookups = lookups_of(context, self.nonce, self.redact)
        return CriteriaPanel(self.judge, self.nonce, numbered, evidence, lookups, context.suite.judge.cast_votes)

    def _judgement(self, criterion: str, draft: Draft[CriterionVerdict]) -> CriterionJudgement:
        verdict = draft.verdict or CriterionVerdict.NOT_JUDGED
        return CriterionJudgement(criterion=self.redact(criterion), verdict=verdict, **draft.told(self.redact))


def create(services: JudgeServices) -> Evaluator:
    return RequirementFulfillment(services.judge, services.nonce, services.redact)


def _outcome(
    judgements: Sequence[CriterionJudgement], details: FulfillmentDetails, *, counts_undecided: bool
) -> Outcome:
    verdicts = [judgement.verdict for judgement in judgements]
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
    missing = [
        (n, judgement)
        for n, judgement in enumerate(judgements, start=1)
        if judgement.verdict is CriterionVerdict.NOT_JUDGED
    ]
    reasons = list(dict.fromkeys(str(judgement.reasoning) for _, judgement in missing))
    named = [f"{number}. {_shortened(judgement.criterion)}" for number, judgement in missing[:MAX_NAMED]]
    if len(reasons) > 1:
        named = [f"{name} ({judgement.reasoning})" for name, (_, judgement) in zip(named, missing, strict=False)]
    more = f"; and {len(missing) - MAX_NAMED} more" if len(missing) > MAX_NAMED else ""
    why = f" {reasons[0]}" if len(reasons) == 1 else ""
    return f"{len(missing)} of {len(judgements)} criteria were not judged.{why} Not judged: {'; '.join(named)}{more}"


def _shortened(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= MAX_NAME_LENGTH else f"{words[:MAX_NAME_LENGTH].rstrip()} ..."


def _dropped(drafts: Mapping[int, Draft[CriterionVerdict]]) -> Iterator[str]:
    for number, draft in drafts.items():
        if draft.verdict and draft.dropped:
            yield f"Criterion {number}: a citation was left out. {' '.join(draft.dropped)}"
