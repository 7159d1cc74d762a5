"""What a judge may say of tools and rules, the check of it against what is known, and the score of it. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field
from pydantic.alias_generators import to_camel

from zelda_ci.domain.details import ToolUse
from zelda_ci.domain.kinds import CALLED, FOLLOWED, ItemKind, skill
from zelda_ci.domain.manifest import ManifestItem, ToolsManifest
from zelda_ci.errors import JudgeError
from zelda_ci.judge.base import majority
from zelda_ci.judge.transcript import CheckedFinding
from zelda_ci.metrics.evidence import Citing, Criterion, Sources, look_up
from zelda_ci.metrics.verdicts import VerdictCitation


class Use(StrEnum):
    """What became of a tool or a rule that the session had."""

    USED_WELL = "USED_WELL"
    INSTRUCTIONS_IGNORED = "INSTRUCTIONS_IGNORED"
    """It was called, and then not done as it says."""
    MISUSED = "MISUSED"
    MISSED = "MISSED"
    FOLLOWED = "FOLLOWED"
    BROKEN = "BROKEN"
    NOT_APPLICABLE = "NOT_APPLICABLE"


OF_TOOLS = frozenset({Use.USED_WELL, Use.INSTRUCTIONS_IGNORED, Use.MISUSED, Use.MISSED, Use.NOT_APPLICABLE})
OF_RULES = frozenset({Use.FOLLOWED, Use.BROKEN, Use.NOT_APPLICABLE})

# What is said of something that was called.
NEEDS_CALL = frozenset({Use.USED_WELL, Use.INSTRUCTIONS_IGNORED, Use.MISUSED})

# What has happened can be shown. That a tool was missed, or that nothing touched a rule, cannot be quoted.
NEEDS_EVIDENCE = NEEDS_CALL | {Use.FOLLOWED, Use.BROKEN}

# What speaks for the session must not rest on its own words alone.
NEEDS_PROOF = frozenset({Use.USED_WELL, Use.FOLLOWED})

# Shares of what could be had: whoever calls the right tool and ignores what it says got one of two decisions right.
CREDIT: Mapping[Use, float] = {
    Use.USED_WELL: 1.0,
    Use.FOLLOWED: 1.0,
    Use.INSTRUCTIONS_IGNORED: 0.5,
    Use.MISUSED: 0.0,
    Use.MISSED: 0.0,
    Use.BROKEN: 0.0,
}


def score(findings: Iterable[Use]) -> float | None:
    """Credit over what applies, in percent; nothing where nothing applies."""
    shares = [CREDIT[finding] for finding in findings if finding in CREDIT]
    return 100 * sum(shares) / len(shares) if shares else None


def _spelled(value: Any) -> Any:
    """As models write it: in lower case, with blanks or hyphens."""
    return re.sub(r"[\s-]+", "_", value.strip()).upper() if isinstance(value, str) else value


Finding = Annotated[
    Literal["USED_WELL", "INSTRUCTIONS_IGNORED", "MISUSED", "MISSED", "FOLLOWED", "BROKEN", "NOT_APPLICABLE"],
    BeforeValidator(_spelled),
]
PartFinding = Annotated[
    Literal[
        "USED_WELL",
        "INSTRUCTIONS_IGNORED",
        "MISUSED",
        "MISSED",
        "FOLLOWED",
        "BROKEN",
        "NOT_APPLICABLE",
        "NOTHING_SEEN",
    ],
    BeforeValidator(_spelled),
]


class ToolFinding(BaseModel):
    """On one tool or rule; evidence and reasoning come first, so that the finding follows from them."""

    number: int = Field(description="Its number as listed.")
    evidence: list[VerdictCitation]
    reasoning: str
    finding: Finding
    tool: str = Field("", description="Of an MCP server that was missed in part: the tool, exactly as listed.")


class ToolFindings(BaseModel):
    """On every tool and rule of a question."""

    findings: list[ToolFinding]


class ToolObservation(BaseModel):
    """What one part of a long transcript shows of a tool or a rule."""

    number: int = Field(description="Its number as listed.")
    evidence: list[VerdictCitation]
    facts: str = Field(description="What was seen here, also what later parts may overtake.")
    finding: PartFinding


class ToolObservations(BaseModel):
    """On the tools and rules of which a part shows something."""

    observations: list[ToolObservation]


@dataclass(frozen=True)
class Subject:
    """A tool or a rule that the session had, and how often its tools were called by name: all, and with success."""

    item: ManifestItem
    calls: Mapping[str, int]
    successes: int

    @property
    def name(self) -> str:
        """As it is told and stored."""
        return self.item.file if self.is_rule else self.item.tool

    @property
    def is_rule(self) -> bool:
        """Whether it is followed instead of called."""
        return self.item.is_followed

    def missed_tool(self, named: str) -> str | None:
        """What was missed: all of it, or one tool of a server of which others were called."""
        if not self.calls:
            return named if named in self.item.tools else self.name
        return named if named in self.item.tools and named not in self.calls else None


def subjects(manifest: ToolsManifest, uses: Sequence[ToolUse]) -> dict[int, Subject]:
    """What is judged, by number from 1: tools that the model could call or that were called, and rules, if loaded."""
    found = [_subject(item, uses) for item in manifest.items if item.loaded and item.kind in CALLED | FOLLOWED]
    judged = [subject for subject in found if subject.is_rule or subject.item.is_open or subject.calls]
    return dict(enumerate(sorted(judged, key=lambda subject: subject.is_rule), start=1))


def _subject(item: ManifestItem, uses: Sequence[ToolUse]) -> Subject:
    own = [use for use in uses if item.kind in CALLED and _is_call_of(use.tool, item)]
    successes = sum(use.calls - use.errors - use.denied for use in own)
    return Subject(item, {use.tool: use.calls for use in own}, successes)


def names_of(item: ManifestItem) -> tuple[str, ...]:
    """Every name under which something that is called may be spoken of."""
    alias = (skill(item.label), item.label) if item.label else ()
    return (item.tool, item.name, f"/{item.name}", *alias, *item.tools)


def _is_call_of(call: str, item: ManifestItem) -> bool:
    return call.startswith(f"{item.tool}__") if item.kind is ItemKind.MCP_SERVER else call in names_of(item)


NO_ANSWER = "The judge says nothing of it."
NO_MAJORITY = "The votes split without a majority."
# Citations of one finding that are kept.
MAX_PLACES = 5


@dataclass(frozen=True)
class DraftFinding:
    """One vote on one tool or rule, checked, or what several come to."""

    finding: Use | None
    """Nothing where it is not judged."""
    reasoning: str
    tool: str = ""
    """What was missed, where it is a part of what was asked about."""
    evidence: tuple[VerdictCitation, ...] = ()
    """Citations that hold."""
    problem: str | None = None
    error: JudgeError | None = None
    split: dict[str, int] | None = None


def not_judged(why: str | JudgeError, *, again: bool = False) -> DraftFinding:
    """No finding; `again` where the judge should be asked once more."""
    reason = why.message if isinstance(why, JudgeError) else why
    return DraftFinding(
        None, reason, problem=reason if again else None, error=why if isinstance(why, JudgeError) else None
    )


def drafts_of(
    answer: ToolFindings, asked: Sequence[int], known: Mapping[int, Subject], sources: Sources
) -> dict[int, DraftFinding]:
    """One vote on everything that was asked about, checked; of findings that contradict each other, none."""
    return {
        number: _vote([given for given in answer.findings if given.number == number], known[number], sources)
        for number in asked
    }


def settled(first: DraftFinding, again: DraftFinding) -> DraftFinding:
    """A vote that did not count after it was asked for once more; what fails twice does not count."""
    if again.error:
        return not_judged(f"{first.reasoning} The judge could not be asked again: {again.reasoning}")
    return replace(again, problem=None)


def decided(votes: Sequence[DraftFinding]) -> DraftFinding:
    """What the votes on one thing come to: more than half of all that were asked for must agree."""
    consensus = majority([vote.finding for vote in votes])
    split = {stored(finding): count for finding, count in consensus.split.items()}
    told = None if consensus.is_unanimous else split
    if consensus.verdict is None:
        reason = votes[0].reasoning if consensus.is_unanimous else NO_MAJORITY
        return replace(not_judged(reason), split=told)
    # The fullest evidence speaks; by text among equals, because the order in which votes arrive is chance.
    agreed = (vote for vote in votes if vote.finding is consensus.verdict)
    return replace(max(agreed, key=lambda vote: (len(vote.evidence), vote.reasoning)), split=told)


def stored(finding: Use | None) -> str:
    """As results name it."""
    return to_camel(finding.lower()) if finding else "notJudged"


def _vote(given: Sequence[ToolFinding], subject: Subject, sources: Sources) -> DraftFinding:
    if not given:
        return not_judged(NO_ANSWER, again=True)
    if len({answer.finding for answer in given}) > 1:
        return not_judged("The judge's findings on it contradict each other.", again=True)
    checked = [_checked(answer, subject, sources) for answer in given]
    return next((draft for draft in checked if draft.finding), checked[0])


def _checked(given: ToolFinding, subject: Subject, sources: Sources) -> DraftFinding:
    """A finding counts if the calls allow it and its evidence is there; a bad citation among good ones is left out."""
    use = Use(given.finding)
    found = [(place, look_up_in(place, subject, sources)) for place in given.evidence]
    holding = tuple(place for place, citing in found if citing.problem is None)
    objection = _objection(use, given, subject)
    if not objection and found and not holding:
        objection = " ".join(citing.problem for _, citing in found if citing.problem)
    if not objection and use in NEEDS_PROOF and not any(citing == Citing() for _, citing in found):
        objection = " ".join(citing.weakness for _, citing in found if citing.weakness)
    if not objection and use in NEEDS_EVIDENCE and not holding:
        objection = "it needs evidence, and none was given."
    if objection:
        return not_judged(f"The judge's {use} does not count: {objection}", again=True)
    missed = subject.missed_tool(given.tool.strip()) if use is Use.MISSED else None
    return DraftFinding(use, given.reasoning, missed or "", holding[:MAX_PLACES])


def _objection(use: Use, given: ToolFinding, subject: Subject) -> str | None:
    """Why a finding cannot be true, whatever it cites."""
    if use not in (OF_RULES if subject.is_rule else OF_TOOLS):
        return f"that is no finding on a {'rule' if subject.is_rule else 'tool'}."
    if not given.reasoning.strip():
        return "it needs a reason, and none was given."
    if use in NEEDS_CALL and not subject.calls:
        return "it was never called."
    if use is Use.MISSED and subject.missed_tool(given.tool.strip()) is None:
        return "it was called."
    if use is Use.NOT_APPLICABLE and subject.successes:
        return "it was called, so it was used well, misused, or its instructions were ignored."
    return None


def look_up_in(place: VerdictCitation, subject: Subject, sources: Sources) -> Citing:
    """What a citation shows; what a rule says is no evidence of what was done with it."""
    if _path(place.where) == subject.item.file:
        return Citing(f"{subject.item.file} shows what it asks for, not what the session did.")
    # No suite marks which rules are about words: "answer in German" is proven by nothing else.
    return look_up(place.where, place.quote, sources, Criterion(is_about_answer=subject.is_rule))


_LINES = re.compile(r":\d{1,9}(-\d{1,9})?$")


def _path(where: str) -> str:
    return _LINES.sub("", where.strip().strip("`[]").strip().removeprefix("file:").strip().removeprefix("./"))


def checked_observations(
    answer: ToolObservations, known: Mapping[int, Subject], sources: Sources
) -> CheckedFinding[ToolObservations]:
    """What a part shows, of what was asked about, with those of its quotes that were found."""
    problems: list[str] = []
    kept: list[ToolObservation] = []
    for observation in answer.observations:
        if (subject := known.get(observation.number)) is None:
            problems.append(f"There is no number {observation.number}.")
            continue
        places = [(place, look_up_in(place, subject, sources).problem) for place in observation.evidence]
        problems += [f"Number {observation.number}: {problem}" for _, problem in places if problem]
        holding = [place for place, problem in places if problem is None][:MAX_PLACES]
        kept.append(ToolObservation.model_validate({**dict(observation), "evidence": holding}))
    return CheckedFinding(ToolObservations(observations=kept), tuple(problems))


# Where parts disagree: what speaks against the session before what speaks for it, and both before what says nothing.
ORDER = (Use.BROKEN, Use.MISUSED, Use.INSTRUCTIONS_IGNORED, Use.MISSED, Use.FOLLOWED, Use.USED_WELL, Use.NOT_APPLICABLE)


def merged(
    parts: Sequence[ToolObservations], known: Mapping[int, Subject], sources: Sources
) -> dict[int, DraftFinding]:
    """The conservative rule where nobody could conclude: of what holds, the worst counts."""
    seen = [observation for part in parts for observation in part.observations]
    return {
        number: _worst([one for one in seen if one.number == number], subject, sources)
        for number, subject in known.items()
    }


def _worst(seen: Sequence[ToolObservation], subject: Subject, sources: Sources) -> DraftFinding:
    for use in ORDER:
        for one in seen:
            if one.finding == use:
                facts = {"number": one.number, "evidence": one.evidence, "reasoning": one.facts, "finding": use}
                given = ToolFinding.model_validate(facts)
                if (draft := _checked(given, subject, sources)).finding:
                    return draft
    return not_judged("No part of the transcript has evidence on it.")
