"""The forms in which judges answer on acceptance criteria, and what several answers come to. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pydantic import BaseModel, Field

from zelda_ci.domain.judgement import Citation, CriterionJudgement, CriterionVerdict
from zelda_ci.evaluators.citations import Sources, problem_with
from zelda_ci.judge.consensus import majority
from zelda_ci.redact import Redactor

LONGEST_REASONING = 600
LONGEST_QUOTE = 300
MOST_PLACES = 5
"""Of a finding on one part, as it is told to whoever concludes: asked for is less."""

NO_VERDICT = "The judge gave no verdict on it."


class Place(BaseModel):
    """A citation as the judge gives it."""

    where: str
    quote: str


class Verdict(BaseModel):
    """On one criterion; the reasoning comes first, so that the verdict follows from it."""

    number: int = Field(description="Number of the criterion.")
    reasoning: str
    verdict: Literal["PASS", "FAIL", "NOT_JUDGED"]
    evidence: list[Place]


class Verdicts(BaseModel):
    """On all criteria of a question."""

    criteria: list[Verdict]


class Finding(BaseModel):
    """What one part of a long transcript says about a criterion."""

    number: int = Field(description="Number of the criterion.")
    reasoning: str
    finding: Literal["PASS", "FAIL", "NO_EVIDENCE"]
    evidence: list[Place]


class Findings(BaseModel):
    """On all criteria."""

    criteria: list[Finding]


@dataclass(frozen=True)
class Draft:
    """What is known so far about one criterion."""

    verdict: CriterionVerdict
    reasoning: str
    evidence: tuple[Place, ...] = ()
    problem: str | None = None
    """Why it should be asked again: no verdict, or evidence that does not hold."""
    split: dict[str, int] | None = None
    is_firm: bool = False
    """Whether several votes made it."""

    @property
    def has_verdict(self) -> bool:
        """Whether it counts in the score."""
        return self.verdict is not CriterionVerdict.NOT_JUDGED

    def judgement(self, criterion: str, redact: Redactor) -> CriterionJudgement:
        """As it is stored."""
        return CriterionJudgement(
            criterion=redact(criterion),
            verdict=self.verdict,
            reasoning=redact(self.reasoning),
            evidence=tuple(Citation(where=redact(one.where), quote=redact(one.quote)) for one in self.evidence),
            unverified=self.has_verdict and self.problem is not None,
            split=self.split,
        )


def by_number(answer: Verdicts, asked: Sequence[int]) -> dict[int, Verdict]:
    """The verdicts on what was asked; of two that contradict each other, none."""
    found: dict[int, Verdict] = {}
    contradicted: set[int] = set()
    for one in answer.criteria:
        if one.number in found and found[one.number].verdict != one.verdict:
            contradicted.add(one.number)
        found.setdefault(one.number, one)
    return {number: one for number, one in found.items() if number in asked and number not in contradicted}


def drafted(votes: Sequence[Verdict], sources: Sources) -> Draft:
    """What the votes on one criterion come to; of the majority, the one whose evidence holds speaks."""
    if not votes:
        return Draft(CriterionVerdict.NOT_JUDGED, NO_VERDICT, problem=NO_VERDICT)
    consensus = majority([vote.verdict for vote in votes])
    split = None if consensus.is_unanimous else {str(name): count for name, count in consensus.split.items()}
    if consensus.verdict is None:
        return Draft(CriterionVerdict.NOT_JUDGED, "The votes split without a majority.", split=split)
    agreed = [_checked(vote, sources) for vote in votes if vote.verdict == consensus.verdict]
    best = next((draft for draft in agreed if draft.problem is None), agreed[0])
    return replace(best, split=split, is_firm=len(votes) > 1)


def settled(first: Draft, again: Draft | None) -> Draft:
    """After criteria with problems were asked once more; a majority of several votes is not overruled by one."""
    if again is None or not again.has_verdict:
        return first if first.has_verdict or again is None else again
    if first.is_firm and first.has_verdict and again.verdict is not first.verdict:
        return first
    return replace(again, split=first.split, is_firm=first.is_firm)


def _checked(vote: Verdict, sources: Sources) -> Draft:
    places = tuple(vote.evidence)
    if vote.verdict == "NOT_JUDGED":
        return Draft(CriterionVerdict.NOT_JUDGED, vote.reasoning or NO_VERDICT, places)
    problems = [problem for one in places if (problem := problem_with(one.where, one.quote, sources))]
    if vote.verdict == "PASS" and not places:
        problems = ["A PASS needs evidence, and none was given."]
    return Draft(CriterionVerdict(vote.verdict), vote.reasoning, places, " ".join(problems) or None)


def told(findings: Sequence[Findings], numbers: Sequence[int]) -> str:
    """The findings on some criteria, part by part; parts without evidence are named, so that nothing is silent."""
    lines: list[str] = []
    for part, answer in enumerate(findings, start=1):
        known = [one for one in answer.criteria if one.number in numbers and one.finding != "NO_EVIDENCE"]
        lines.append(f"Part {part} of {len(findings)}" + ("" if known else ": no evidence on any of these criteria"))
        for one in known:
            lines.append(f"- criterion {one.number}: {one.finding}. {one.reasoning[:LONGEST_REASONING]}")
            lines += [f"  at {place.where}: {place.quote[:LONGEST_QUOTE]}" for place in one.evidence[:MOST_PLACES]]
    return "\n".join(lines)


def merged(findings: Sequence[Findings], numbers: Sequence[int], sources: Sources) -> Mapping[int, Draft]:
    """The conservative rule: FAIL wins over PASS, NO_EVIDENCE counts for neither."""
    drafts: dict[int, Draft] = {}
    for number in numbers:
        found = [one for answer in findings for one in answer.criteria if one.number == number]
        ranked = [one for kind in ("FAIL", "PASS") for one in found if one.finding == kind]
        drafts[number] = (
            _checked(_verdict(ranked[0]), sources)
            if ranked
            else Draft(CriterionVerdict.NOT_JUDGED, "No part of the transcript has evidence on it.")
        )
    return drafts


def _verdict(finding: Finding) -> Verdict:
    verdict: Literal["PASS", "FAIL"] = "PASS" if finding.finding == "PASS" else "FAIL"
    return Verdict(number=finding.number, reasoning=finding.reasoning, verdict=verdict, evidence=finding.evidence)
