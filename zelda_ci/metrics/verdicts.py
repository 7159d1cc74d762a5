"""The forms in which judges answer on acceptance criteria, and what several answers come to. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field

from zelda_ci.domain.details import Citation, CriterionJudgement, CriterionVerdict
from zelda_ci.errors import JudgeError
from zelda_ci.judge.base import majority
from zelda_ci.judge.transcript import CheckedFinding
from zelda_ci.metrics.evidence import Criterion, Sources, look_up
from zelda_ci.redact import Redactor

# Of what a judge says, as it is stored and told to others: asked for is less.
MAX_REASONING_LENGTH = 1000
MAX_QUOTE_LENGTH = 600
MAX_WHERE_LENGTH = 300
MAX_PLACES = 10

NO_VERDICT = "The judge gave no verdict on it."
NO_EVIDENCE = "A PASS needs evidence, and none was given."
NO_REASON = "UNDECIDED needs a reason, and none was given."
NO_MAJORITY = "The votes split without a majority."

# As the judge writes them, and as they are stored.
VERDICTS = {
    "PASS": CriterionVerdict.PASS,
    "FAIL": CriterionVerdict.FAIL,
    "UNDECIDED": CriterionVerdict.UNDECIDED,
    "NOT_JUDGED": CriterionVerdict.NOT_JUDGED,
}


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


def _text(value: Any) -> Any:
    return "" if value is None else value


Text = Annotated[str, BeforeValidator(_text)]


class VerdictCitation(BaseModel):
    """A citation as the judge gives it."""

    where: Text = Field(description="The place, in one of the forms that the question names.")
    quote: Text = Field(description="Copied from there character by character; empty for an absence.", default="")


Number = Annotated[int, BeforeValidator(_number), Field(description="Number of the criterion.")]
Places = Annotated[list[VerdictCitation], BeforeValidator(_places)]


class CriterionAnswer(BaseModel):
    """On one criterion; evidence first, then the reasoning, so that the verdict follows from them."""

    number: Number
    evidence: Places
    reasoning: Text
    verdict: Annotated[Literal["PASS", "FAIL", "UNDECIDED", "NOT_JUDGED"], BeforeValidator(_word)]


class Verdicts(BaseModel):
    """On all criteria of a question."""

    criteria: list[CriterionAnswer]


class Finding(BaseModel):
    """What one part of a long transcript says about a criterion."""

    model_config = ConfigDict(populate_by_name=True)

    number: Number
    evidence: Places
    facts: Text = Field(
        validation_alias=AliasChoices("facts", "reasoning"),
        description="What later parts must know, also where this one does not decide.",
    )
    finding: Annotated[Literal["PASS", "FAIL", "NO_EVIDENCE"], BeforeValidator(_word)]


class PartFindings(BaseModel):
    """On all criteria."""

    criteria: list[Finding]


@dataclass(frozen=True)
class DraftVerdict:
    """What is known so far about one criterion: one vote that was checked, or what several come to."""

    verdict: CriterionVerdict
    reasoning: str
    evidence: tuple[VerdictCitation, ...] = ()
    """Citations that hold."""
    dropped: tuple[str, ...] = ()
    """Why other citations were left out."""
    problem: str | None = None
    """Why the answer does not count and should be asked for again; the verdict is `notJudged` then."""
    error: JudgeError | None = None
    """Why there was no answer at all."""
    split: dict[str, int] | None = None

    @property
    def is_judged(self) -> bool:
        """Whether there is a verdict that counts, be it that the evidence cannot decide."""
        return self.verdict is not CriterionVerdict.NOT_JUDGED

    def judgement(self, criterion: str, redact: Redactor) -> CriterionJudgement:
        return CriterionJudgement(
            criterion=redact(criterion),
            verdict=self.verdict,
            reasoning=redact(shortened(self.reasoning, MAX_REASONING_LENGTH)),
            evidence=tuple(_cited(place, redact) for place in self.evidence),
            split=self.split,
        )


def shortened(text: str, length: int) -> str:
    """A text of at most some length."""
    return text if len(text) <= length else f"{text[: length - 2].rstrip()} …"


def _cited(place: VerdictCitation, redact: Redactor) -> Citation:
    quote = redact(shortened(place.quote, MAX_QUOTE_LENGTH)) if place.quote.strip() else None
    return Citation(where=redact(shortened(place.where, MAX_WHERE_LENGTH)), quote=quote)


def not_judged(why: str | JudgeError, *, again: bool = False) -> DraftVerdict:
    """A criterion without a verdict; `again` where the judge should be asked once more."""
    reason = why.message if isinstance(why, JudgeError) else why
    error = why if isinstance(why, JudgeError) else None
    return DraftVerdict(CriterionVerdict.NOT_JUDGED, reason, problem=reason if again else None, error=error)


def drafts_of(answer: Verdicts, asked: Mapping[int, Criterion], sources: Sources) -> dict[int, DraftVerdict]:
    """One vote on every criterion that was asked about, checked; of verdicts that contradict each other, none."""
    return {
        number: _vote([verdict for verdict in answer.criteria if verdict.number == number], criterion, sources)
        for number, criterion in asked.items()
    }


def settled(first: DraftVerdict, again: DraftVerdict | None) -> DraftVerdict:
    """A vote after it was asked for once more, where it had a problem; what fails twice does not count."""
    if again is None or again.is_judged:
        return again or first
    if again.error:
        return not_judged(f"{first.reasoning} The judge could not be asked again: {again.reasoning}")
    return replace(again, problem=None)


def decided(votes: Sequence[DraftVerdict]) -> DraftVerdict:
    """What the votes on one criterion come to.

    More than half of all votes that were asked for must agree, so that votes which do not count help no side. Where
    they do not agree, votes that are missing might have decided, and the criterion is not judged; with all votes
    there, it is undecided.
    """
    if len(votes) == 1:
        return votes[0]
    consensus = majority([vote.verdict for vote in votes])
    split = None if consensus.is_unanimous else {verdict.value: count for verdict, count in consensus.split.items()}
    if consensus.verdict is not None:
        # The fullest evidence speaks; by text among equals, because the order in which votes arrive is chance.
        agreed = (vote for vote in votes if vote.verdict is consensus.verdict)
        return replace(max(agreed, key=lambda vote: (len(vote.evidence), vote.reasoning)), split=split)
    missing = [vote for vote in votes if not vote.is_judged]
    if missing:
        count = f"{len(missing)} of {len(votes)} votes are missing"
        return replace(not_judged(f"{NO_MAJORITY[:-1]}, and {count}: {missing[0].reasoning}"), split=split)
    return DraftVerdict(CriterionVerdict.UNDECIDED, NO_MAJORITY, split=split)


def _vote(given: Sequence[CriterionAnswer], criterion: Criterion, sources: Sources) -> DraftVerdict:
    if len({answer.verdict for answer in given}) > 1:
        return not_judged("The judge gave verdicts on it that contradict each other.", again=True)
    checked = [_checked(answer, criterion, sources) for answer in given] or [not_judged(NO_VERDICT, again=True)]
    return next((draft for draft in checked if draft.is_judged), checked[0])


def _checked(given: CriterionAnswer, criterion: Criterion, sources: Sources) -> DraftVerdict:
    """A verdict counts if its evidence is there; one citation that is not, among others that are, is left out."""
    verdict = VERDICTS[given.verdict]
    if verdict is CriterionVerdict.NOT_JUDGED:
        # It has said that it cannot: asking again would only cost.
        return not_judged(f"{NO_VERDICT} {given.reasoning}".strip())
    found = [(place, look_up(place.where, place.quote, sources, criterion)) for place in given.evidence[:MAX_PLACES]]
    holding = tuple(place for place, citing in found if citing.problem is None)
    problems = tuple(citing.problem for _, citing in found if citing.problem)
    weaknesses = tuple(citing.weakness for _, citing in found if citing.problem is None and citing.weakness)
    if objection := _objection(given, holding, problems, weaknesses):
        return not_judged(f"The judge's {given.verdict} does not count: {objection}", again=True)
    return DraftVerdict(verdict, given.reasoning, holding, problems)


def _objection(
    given: CriterionAnswer, holding: Sequence[VerdictCitation], problems: Sequence[str], weaknesses: Sequence[str]
) -> str | None:
    """Why a verdict does not count.

    A PASS must prove itself. A FAIL may be without evidence, because what is absent cannot be quoted, and may rest on
    the session's own words; but not on what is nowhere.
    """
    if given.verdict == "UNDECIDED":
        return None if given.reasoning.strip() else NO_REASON
    if problems and not holding:
        return " ".join(problems)
    if given.verdict != "PASS":
        return None
    if not holding:
        return NO_EVIDENCE
    return " ".join([*weaknesses, *problems]) if len(weaknesses) == len(holding) else None


def checked_findings(
    findings: PartFindings, criteria: Mapping[int, Criterion], sources: Sources
) -> CheckedFinding[PartFindings]:
    """What a part says, with those of its quotes that were found; one without any that is counts for its facts only."""
    problems: list[str] = []
    kept: list[Finding] = []
    for finding in findings.criteria:
        criterion = criteria.get(finding.number, Criterion())
        draft = _checked(_verdict(finding), criterion, sources) if finding.finding != "NO_EVIDENCE" else None
        if draft and draft.problem:
            problems.append(f"Criterion {finding.number}: {draft.problem}")
        is_held = draft is not None and draft.is_judged
        changes = {"evidence": list(draft.evidence), "finding": finding.finding} if draft and is_held else NOTHING_HELD
        kept.append(Finding.model_validate({**dict(finding), **changes}))
    return CheckedFinding(PartFindings(criteria=kept), tuple(problems))


NOTHING_HELD: Mapping[str, Any] = {"evidence": [], "finding": "NO_EVIDENCE"}


def merged(
    findings: Sequence[PartFindings], criteria: Mapping[int, Criterion], sources: Sources
) -> Mapping[int, DraftVerdict]:
    """The conservative rule: FAIL wins over PASS, NO_EVIDENCE counts for neither."""
    drafts: dict[int, DraftVerdict] = {}
    for number, criterion in criteria.items():
        relevant = [finding for answer in findings for finding in answer.criteria if finding.number == number]
        kind = next((kind for kind in ("FAIL", "PASS") if any(finding.finding == kind for finding in relevant)), None)
        checked = [_checked(_verdict(finding), criterion, sources) for finding in relevant if finding.finding == kind]
        best = next((draft for draft in checked if draft.is_judged), checked[0] if checked else None)
        drafts[number] = best or not_judged("No part of the transcript has evidence on it.")
    return drafts


def _verdict(finding: Finding) -> CriterionAnswer:
    verdict: Literal["PASS", "FAIL"] = "PASS" if finding.finding == "PASS" else "FAIL"
    return CriterionAnswer(number=finding.number, reasoning=finding.facts, verdict=verdict, evidence=finding.evidence)
