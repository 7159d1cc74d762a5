"""Requirement fulfillment: whether the work meets the acceptance criteria, judged by vote and checked by citations."""

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from zelda_ci.domain.context import EvalContext
from zelda_ci.domain.details import CriterionJudgement, CriterionVerdict, FulfillmentDetails, JudgeIdentity
from zelda_ci.domain.measures import Metric
from zelda_ci.domain.session import SessionStatus
from zelda_ci.errors import JudgeError
from zelda_ci.judge.base import Judge, JudgeQuestion, Lookups
from zelda_ci.judge.lookups import lookups_of
from zelda_ci.judge.prompts import render, repeated
from zelda_ci.judge.transcript import (
    EarlierFindings,
    QueryResult,
    TranscriptPart,
    TranscriptQuery,
    query_transcript,
)
from zelda_ci.metrics import verdicts
from zelda_ci.metrics.base import Evaluator, JudgeServices, Outcome, Scored, Unscored
from zelda_ci.metrics.evidence import Criterion
from zelda_ci.metrics.gathering import JudgeEvidence, gather
from zelda_ci.metrics.verdicts import DraftVerdict, PartFindings, Verdicts, not_judged
from zelda_ci.metrics.voting import Ballot, batched, disagreements, numbered
from zelda_ci.redact import Redactor

NAME = "requirement-fulfillment"
PROMPT_VERSION = "4"
# In which it answers: in the end, and on a part of a long transcript.
FORMS = (Verdicts, PartFindings)


@dataclass
class Panel:
    """One run's criteria before the judge."""

    judge: Judge
    nonce: str
    criteria: Mapping[int, Criterion]
    """By number, from 1."""
    evidence: JudgeEvidence
    votes: int
    lookups: Lookups | None = None
    notes: list[str] = field(default_factory=list)

    def reading(self) -> TranscriptQuery[PartFindings, Mapping[int, DraftVerdict]]:
        """How the transcript is to be read."""
        return TranscriptQuery(
            nonce=self.nonce,
            fixed_tokens=self._concluding(EarlierFindings("", is_whole=False), batched(tuple(self.criteria))[0]).tokens,
            question=self._about_part,
            finding=PartFindings,
            finish=self._conclude,
            merge=functools.partial(verdicts.merged, criteria=self.criteria, sources=self.evidence.sources),
            can_look_up=self.lookups is not None,
            check=functools.partial(verdicts.checked_findings, criteria=self.criteria, sources=self.evidence.sources),
        )

    async def _conclude(self, earlier: EarlierFindings) -> Mapping[int, DraftVerdict]:
        """Raises JudgeError where no question at all was answered."""
        ballot = Ballot(
            tuple(self.criteria),
            self.votes,
            functools.partial(self._ask, earlier),
            lost=verdicts.not_judged,
            settled=verdicts.settled,
            notes=self.notes,
        )
        votes = await ballot.cast()
        said = [{number: draft.verdict.value for number, draft in vote.items()} for vote in votes]
        self.notes += disagreements(self.judge.model, said)
        return {number: verdicts.decided([vote[number] for vote in votes]) for number in self.criteria}

    async def _ask(
        self, earlier: EarlierFindings, numbers: Sequence[int], problems: Mapping[int, str], vote: int
    ) -> dict[int, DraftVerdict]:
        """A vote on some criteria; raises JudgeError."""
        question = replace(self._concluding(earlier, numbers), vote=vote)
        if problems:
            question = repeated(question, numbered(problems), self.nonce)
        answer = (await self.judge.ask(question, Verdicts)).value
        return verdicts.drafts_of(answer, {n: self.criteria[n] for n in numbers}, self.evidence.sources)

    def _concluding(self, earlier: EarlierFindings, numbers: Sequence[int]) -> JudgeQuestion:
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

    def _about_part(self, part: TranscriptPart) -> JudgeQuestion:
        body = render("fulfillment-part", part=part, **self._listed(tuple(self.criteria)))
        common = self.evidence.before_part(part, self.nonce)
        return JudgeQuestion(f"{NAME}-part", PROMPT_VERSION, self._system(), (), body, common=common)

    def _listed(self, numbers: Sequence[int]) -> dict[str, Any]:
        criteria = [(number, self.criteria[number].text) for number in numbers]
        return {"criteria": criteria, "of_answer": [n for n in numbers if self.criteria[n].is_about_answer]}

    def _system(self) -> str:
        return render("fulfillment-system")


NOT_CONFIGURED = "Not configured: the suite has no acceptanceCriteria."
BROKEN_OFF = {SessionStatus.FAILED, SessionStatus.INTERRUPTED}

MAX_NAMED = 5
MAX_NAME_LENGTH = 100


class RequirementFulfillment:
    """Score = passed criteria / criteria that count, in percent.

    What the evidence cannot decide counts as not met, unless the suite ignores it. With a criterion that nobody judged
    there is no score: nothing vouches for it. A session that failed or was interrupted is not judged: what it left
    unfinished says nothing about what steered it.
    """

    metric: Final = Metric.REQUIREMENT_FULFILLMENT
    version: Final = "4"

    def __init__(self, judge: Judge, nonce: str, redact: Redactor) -> None:
        self._judge = judge
        self._nonce = nonce
        self._redact = redact

    async def evaluate(self, context: EvalContext) -> Outcome:
        """Ask the judge, and check what it cites."""
        criteria = context.suite.criteria
        if not criteria:
            return Unscored(NOT_CONFIGURED)
        if context.transcript.status in BROKEN_OFF:
            return Unscored("The session broke off, so its work was not judged.")
        panel = self._panel(context, criteria)
        try:
            conclusion = await query_transcript(context.transcript, self._judge, panel.reading())
        except JudgeError as problem:
            conclusion = QueryResult(dict.fromkeys(panel.criteria, not_judged(problem)))
        judgements = [draft.judgement(criteria[number - 1], self._redact) for number, draft in conclusion.value.items()]
        notes = (*panel.evidence.notes, *conclusion.notes, *panel.notes, *_dropped(conclusion.value))
        details = self._details(judgements, conclusion, notes, panel.votes)
        return _outcome(judgements, details, counts_undecided=context.suite.undecided == "fail")

    def _panel(self, context: EvalContext, criteria: Sequence[str]) -> Panel:
        tokens = self._judge.context_tokens
        evidence = gather(context, self._redact, nonce=self._nonce, context_tokens=tokens)
        results = len(criteria) - len(context.suite.answer_criteria)
        numbered = {n: Criterion(text, n > results) for n, text in enumerate(criteria, start=1)}
        lookups = lookups_of(context, self._nonce, self._redact)
        return Panel(self._judge, self._nonce, numbered, evidence, context.suite.judge.cast_votes, lookups)

    def _details(
        self,
        judgements: Sequence[CriterionJudgement],
        conclusion: QueryResult[Mapping[int, DraftVerdict]],
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


def _dropped(drafts: Mapping[int, DraftVerdict]) -> Iterator[str]:
    for number, draft in drafts.items():
        if draft.is_judged and draft.dropped:
            yield f"Criterion {number}: a citation was left out. {' '.join(draft.dropped)}"
