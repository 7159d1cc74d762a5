"""The forms in which judges answer on acceptance criteria, and the check of an answer against what it cites. Pure."""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field

from zelda_ci.domain.details import CriterionVerdict
from zelda_ci.judge.transcript import CheckedFinding
from zelda_ci.metrics.evidence import Criterion, Sources, look_up
from zelda_ci.metrics.voting import NO_VERDICT, Draft, Text, VerdictCitation, Vote, not_judged, one_vote

MAX_PLACES = 10

NO_EVIDENCE = "A PASS needs evidence, and none was given."
NO_REASON = "UNDECIDED needs a reason, and none was given."

# As the judge writes them, and as they are stored.
VERDICTS = {"PASS": CriterionVerdict.PASS, "FAIL": CriterionVerdict.FAIL, "UNDECIDED": CriterionVerdict.UNDECIDED}


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


def drafts_of(answer: Verdicts, asked: Mapping[int, Criterion], sources: Sources) -> Vote[CriterionVerdict]:
    """One vote on every criterion that was asked about, checked."""
    given = [(one, _checked(one, asked[one.number], sources)) for one in answer.criteria if one.number in asked]
    return {
        number: one_vote([(one.verdict, draft) for one, draft in given if one.number == number]) for number in asked
    }


def _checked(given: CriterionAnswer, criterion: Criterion, sources: Sources) -> Draft[CriterionVerdict]:
    """A verdict counts if its evidence is there; one citation that is not, among others that are, is left out."""
    if given.verdict == "NOT_JUDGED":
        # It has said that it cannot: asking again would only cost.
        return not_judged(f"{NO_VERDICT} {given.reasoning}".strip())
    found = [(place, look_up(place.where, place.quote, sources, criterion)) for place in given.evidence[:MAX_PLACES]]
    holding = tuple(place for place, citing in found if citing.problem is None)
    problems = tuple(citing.problem for _, citing in found if citing.problem)
    weaknesses = tuple(citing.weakness for _, citing in found if citing.problem is None and citing.weakness)
    if objection := _objection(given, holding, problems, weaknesses):
        return not_judged(f"The judge's {given.verdict} does not count: {objection}", again=True)
    return Draft(VERDICTS[given.verdict], given.reasoning, holding, problems)


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
        is_held = draft is not None and draft.verdict is not None
        changes = {"evidence": list(draft.evidence), "finding": finding.finding} if draft and is_held else NOTHING_HELD
        kept.append(Finding.model_validate({**dict(finding), **changes}))
    return CheckedFinding(PartFindings(criteria=kept), tuple(problems))


NOTHING_HELD: Mapping[str, Any] = {"evidence": [], "finding": "NO_EVIDENCE"}


def merged(
    findings: Sequence[PartFindings], criteria: Mapping[int, Criterion], sources: Sources
) -> Vote[CriterionVerdict]:
    """The conservative rule: FAIL wins over PASS, NO_EVIDENCE counts for neither."""
    drafts: Vote[CriterionVerdict] = {}
    for number, criterion in criteria.items():
        relevant = [finding for answer in findings for finding in answer.criteria if finding.number == number]
        kind = next((kind for kind in ("FAIL", "PASS") if any(finding.finding == kind for finding in relevant)), None)
        checked = [_checked(_verdict(finding), criterion, sources) for finding in relevant if finding.finding == kind]
        best = next((draft for draft in checked if draft.verdict), checked[0] if checked else None)
        drafts[number] = best or not_judged("No part of the transcript has evidence on it.")
    return drafts


def _verdict(finding: Finding) -> CriterionAnswer:
    verdict: Literal["PASS", "FAIL"] = "PASS" if finding.finding == "PASS" else "FAIL"
    return CriterionAnswer(number=finding.number, reasoning=finding.facts, verdict=verdict, evidence=finding.evidence)
