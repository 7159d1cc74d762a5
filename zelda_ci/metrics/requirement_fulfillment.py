"""Requirement fulfillment: whether the work meets the acceptance criteria, judged by vote and checked by citations."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import AliasChoices, BaseModel, BeforeValidator, Field

from zelda_ci.domain.context import EvalContext
from zelda_ci.domain.details import CriterionJudgement, CriterionVerdict, FulfillmentDetails, JudgeIdentity
from zelda_ci.domain.measures import Metric
from zelda_ci.errors import JudgeError
from zelda_ci.judge.base import Judge, JudgeQuestion
from zelda_ci.judge.lookups import lookups_of
from zelda_ci.judge.prompts import render
from zelda_ci.judge.transcript import EarlierFindings, QueryResult, TranscriptPart
from zelda_ci.metrics.base import Evaluator, JudgeServices, Outcome, Scored, Unscored
from zelda_ci.metrics.evidence import Citing, Criterion, look_up
from zelda_ci.metrics.gathering import gather
from zelda_ci.metrics.panel import NO_REASON, Draft, ItemAnswer, Panel, Text, VerdictCitation, not_judged, shortened
from zelda_ci.redact import Redactor

NAME = "requirement-fulfillment"
PROMPT_VERSION = "4"

_NUMBER = re.compile(r"\d{1,6}")


def _number(value: Any) -> Any:
    found = _NUMBER.findall(value) if isinstance(value, str) else []
    return int(found[0]) if len(found) == 1 else value


def _word(value: Any) -> Any:
    """A verdict as it is called here: models write it in any case, with blanks or without."""
    if not isinstance(value, str):
        return value
    word = re.sub(r"[\s_-]+", "_", value.strip(" .*`\"'")).upper()
    return SPELLINGS.get(word, word)


SPELLINGS = {"PASSED": "PASS", "FAILED": "FAIL", "NOTJUDGED": "NOT_JUDGED", "NOEVIDENCE": "NO_EVIDENCE"}


def _places(value: Any) -> Any:
    return [] if value is None else [value] if isinstance(value, dict) else value


Number = Annotated[int, BeforeValidator(_number), Field(description="Number of the criterion.")]
Places = Annotated[list[VerdictCitation], BeforeValidator(_places)]


class CriterionAnswer(ItemAnswer):
    """On one criterion; evidence first, then the reasoning, so that the verdict follows from them."""

    number: Number
    evidence: Places
    reasoning: Text
    verdict: Annotated[Literal["PASS", "FAIL", "UNDECIDED", "NOT_JUDGED"], BeforeValidator(_word)]


class Verdicts(BaseModel):
    """On all criteria of a question."""

    criteria: list[CriterionAnswer]


class Finding(ItemAnswer):
    """What one part of a long transcript says about a criterion."""

    number: Number
    evidence: Places
    reasoning: Text = Field(
        validation_alias=AliasChoices("facts", "reasoning"),
        serialization_alias="facts",
        description="What later parts must know, also where this one does not decide.",
    )
    verdict: Annotated[Literal["PASS", "FAIL", "NO_EVIDENCE"], BeforeValidator(_word)] = Field(alias="finding")


class PartFindings(BaseModel):
    """On all criteria."""

    criteria: list[Finding]


# As the judge writes them.
VERDICTS = {
    "PASS": CriterionVerdict.PASS,
    "FAIL": CriterionVerdict.FAIL,
    "UNDECIDED": CriterionVerdict.UNDECIDED,
    "NOT_JUDGED": None,
}


class CriteriaPanel(Panel[Criterion, CriterionVerdict]):
    """One run's criteria before the judge.

    A PASS must prove itself. A FAIL may be without evidence, because what is absent cannot be quoted, and may rest on
    the session's own words; but not on what is nowhere.
    """

    forms = (Verdicts, PartFindings)
    words = VERDICTS
    order = (CriterionVerdict.FAIL, CriterionVerdict.PASS)
    nothing = "NO_EVIDENCE"
    needs_proof = needs_evidence = frozenset({CriterionVerdict.PASS})
    tie = CriterionVerdict.UNDECIDED

    def objection(self, item: Criterion, answer: ItemAnswer, verdict: CriterionVerdict) -> str | None:
        return NO_REASON if verdict is CriterionVerdict.UNDECIDED and not answer.reasoning.strip() else None

    def look_up(self, item: Criterion, place: VerdictCitation) -> Citing:
        return look_up(place.where, place.quote, self.evidence.sources, item)

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
        return JudgeQuestion(NAME, PROMPT_VERSION, render("fulfillment-system"), own, body, self.lookups, common)

    def about_part(self, part: TranscriptPart) -> JudgeQuestion:
        body = render("fulfillment-part", part=part, **self._listed(tuple(self.items)))
        common = self.evidence.before_part(part, self.nonce)
        return JudgeQuestion(f"{NAME}-part", PROMPT_VERSION, render("fulfillment-system"), (), body, common=common)

    def _listed(self, numbers: Sequence[int]) -> dict[str, Any]:
        criteria = [(number, self.items[number].text) for number in numbers]
        return {"criteria": criteria, "of_answer": [n for n in numbers if self.items[n].is_about_answer]}


FORMS = CriteriaPanel.forms

NOT_CONFIGURED = "Not configured: the suite has no acceptanceCriteria."

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
        if not context.transcript.status.is_valid:
            return Unscored("The session broke off, so its work was not judged.")
        panel = self._panel(context, criteria)
        try:
            conclusion = await panel.judged(context.transcript)
        except JudgeError as problem:
            conclusion = QueryResult(dict.fromkeys(panel.items, not_judged(problem)))
        judgements = [
            CriterionJudgement(
                criterion=self._redact(criteria[number - 1]),
                verdict=draft.verdict or CriterionVerdict.NOT_JUDGED,
                **draft.told(self._redact),
            )
            for number, draft in conclusion.value.items()
        ]
        details = FulfillmentDetails(
            judge=JudgeIdentity(model=self._judge.model, prompt_version=PROMPT_VERSION),
            criteria=tuple(judgements),
            votes=panel.votes,
            parts=conclusion.parts,
            notes=tuple(map(self._redact, (*conclusion.notes, *_dropped(conclusion.value)))),
        )
        return _outcome(judgements, details, counts_undecided=context.suite.undecided == "fail")

    def _panel(self, context: EvalContext, criteria: Sequence[str]) -> CriteriaPanel:
        tokens = self._judge.context_tokens
        evidence = gather(context, self._redact, nonce=self._nonce, context_tokens=tokens)
        results = len(criteria) - len(context.suite.answer_criteria)
        numbered = {n: Criterion(text, n > results) for n, text in enumerate(criteria, start=1)}
        lookups = lookups_of(context, self._nonce, self._redact)
        return CriteriaPanel(self._judge, self._nonce, numbered, evidence, lookups, context.suite.judge.cast_votes)


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
    named = [
        f"{number}. {shortened(' '.join(judgement.criterion.split()), MAX_NAME_LENGTH)}"
        for number, judgement in missing[:MAX_NAMED]
    ]
    if len(reasons) > 1:
        named = [f"{name} ({judgement.reasoning})" for name, (_, judgement) in zip(named, missing, strict=False)]
    more = f"; and {len(missing) - MAX_NAMED} more" if len(missing) > MAX_NAMED else ""
    why = f" {reasons[0]}" if len(reasons) == 1 else ""
    return f"{len(missing)} of {len(judgements)} criteria were not judged.{why} Not judged: {'; '.join(named)}{more}"


def _dropped(drafts: Mapping[int, Draft[CriterionVerdict]]) -> Iterator[str]:
    for number, draft in drafts.items():
        if draft.verdict and draft.dropped:
            yield f"Criterion {number}: a citation was left out. {' '.join(draft.dropped)}"
