"""Requirement fulfillment: criteria are judged by vote and checked by citations, checks are decided without a judge."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

import anyio.to_thread
from pydantic import BaseModel

from zelda_ci.domain.details import CriterionJudgement, CriterionVerdict, FulfillmentDetails
from zelda_ci.domain.measures import Metric
from zelda_ci.domain.run import EvalContext
from zelda_ci.metrics.base import JudgeServices, Outcome, Scored, Unscored
from zelda_ci.metrics.checks import decide
from zelda_ci.metrics.evidence import CitedPlace, Citing, Criterion, look_up
from zelda_ci.metrics.panel import NO_REASON, Draft, ItemAnswer, Panel, Word, unjudged


class CriterionAnswer(ItemAnswer):
    """On one criterion."""

    verdict: Annotated[Literal["PASS", "FAIL", "UNDECIDED", "NOT_JUDGED", "NO_EVIDENCE"], Word]


class Verdicts(BaseModel):
    """On all criteria of a question."""

    criteria: list[CriterionAnswer]


class CriteriaPanel(Panel[Criterion, CriterionVerdict]):
    """One run's criteria before the judge."""

    prompt = "fulfillment"
    version = "5"
    form = Verdicts
    # The verdicts that count, as the judge writes them.
    words: ClassVar = {it.value.upper(): it for it in CriterionVerdict if it is not CriterionVerdict.NOT_JUDGED}
    order = (CriterionVerdict.FAIL, CriterionVerdict.PASS)
    # A FAIL may be without evidence, because what is absent cannot be quoted, and may rest on the session's own words.
    needs_proof = needs_evidence = (CriterionVerdict.PASS,)
    tie = CriterionVerdict.UNDECIDED

    def asked(self, numbers: Sequence[int]) -> Mapping[str, Any]:
        criteria = [(number, self.items[number].text) for number in numbers]
        about = ", ".join(str(number) for number in numbers if self.items[number].is_about_answer)
        said = f"only for criterion {about}, which the suite marks as being about what the session says"
        return {"criteria": criteria, "said": said if about else ""}

    def objection(self, item: Criterion, answer: ItemAnswer, verdict: CriterionVerdict) -> str | None:
        return NO_REASON if verdict is CriterionVerdict.UNDECIDED and not answer.reasoning.strip() else None

    def look_up(self, item: Criterion, place: CitedPlace) -> Citing:
        return look_up(place, self.evidence.sources, item)


class RequirementFulfillment:
    """Score = passed criteria / criteria that count, in percent.

    What the evidence cannot decide counts as not met, unless the suite ignores it. Without a verdict on each criterion
    there is no score, nor for a session that broke off: what it left unfinished says nothing about what steered it.
    """

    metric = Metric.REQUIREMENT_FULFILLMENT
    version = f"5.{CriteriaPanel.version}"
    form = Verdicts

    def __init__(self, services: JudgeServices) -> None:
        self._services = services

    async def evaluate(self, context: EvalContext) -> Outcome:
        """Ask the judge, check what it cites, and decide the checks."""
        suite, criteria, redact = context.suite, context.suite.criteria, self._services.redact
        if not criteria and not suite.checks:
            return Unscored("Not configured: the suite has neither acceptanceCriteria nor checks.")
        if not context.transcript.status.is_valid:
            return Unscored("The session broke off, so its work was not judged.")
        results = len(criteria) - len(suite.answer_criteria)
        numbered = {n: Criterion(text, n > results) for n, text in enumerate(criteria, start=1)}
        drafts: Mapping[int, Draft[CriterionVerdict]] = {}
        how: dict[str, Any] = {"notes": ()}
        not_judged = CriterionVerdict.NOT_JUDGED
        if criteria:
            drafts, how = await CriteriaPanel(context, self._services, numbered).judged()
        judged = ((redact(numbered[n].text), draft.verdict or not_judged, draft) for n, draft in drafts.items())
        judgements = [CriterionJudgement(criterion=it, verdict=v, **draft.stored(redact)) for it, v, draft in judged]
        judgements += await anyio.to_thread.run_sync(decide, context, redact)
        left_out = ((n, " ".join(draft.dropped)) for n, draft in drafts.items() if draft.verdict and draft.dropped)
        dropped = (redact(f"Criterion {number}: a citation was left out. {why}") for number, why in left_out)
        details = FulfillmentDetails(**{**how, "criteria": judgements, "notes": (*how["notes"], *dropped)})
        verdicts = [judgement.verdict for judgement in judgements]
        if not_judged in verdicts:
            missing = [it.reasoning if it.verdict is not_judged else None for it in judgements]
            names = (f"{number}. {it.criterion}" for number, it in enumerate(judgements, start=1))
            return unjudged("criteria", [*zip(names, missing, strict=True)], details, drafts.values())
        passed, failed = verdicts.count(CriterionVerdict.PASS), verdicts.count(CriterionVerdict.FAIL)
        undecided = verdicts.count(CriterionVerdict.UNDECIDED)
        counted = passed + failed + (undecided if suite.undecided == "fail" else 0)
        if not counted:
            why = "The evidence decides none of the criteria, and the suite ignores such."
            return Unscored(why, details, failed=True)
        rest = "".join(f", {count} {what}" for count, what in ((failed, "not met"), (undecided, "undecided")) if count)
        return Scored(100 * passed / counted, f"{passed} of {counted} criteria met{rest}.", details)
