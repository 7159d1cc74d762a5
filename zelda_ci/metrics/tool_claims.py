"""What a judge may say of tools and rules, the check of it against what is known, and the score of it. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field
from pydantic.alias_generators import to_camel

from zelda_ci.domain.details import ToolUse
from zelda_ci.domain.kinds import CALLED, FOLLOWED, ItemKind, skill
from zelda_ci.domain.manifest import ManifestItem, ToolsManifest
from zelda_ci.metrics.evidence import Citing, Criterion, Sources, look_up
from zelda_ci.metrics.panel import NO_REASON, ItemAnswer, VerdictCitation


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


# As the judge writes them.
FINDINGS = {use.value: use for use in Use}

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


class ToolFinding(ItemAnswer):
    """On one tool or rule; evidence and reasoning come first, so that the finding follows from them."""

    number: int = Field(description="Its number as listed.")
    verdict: Finding = Field(alias="finding")
    tool: str = Field("", description="Of an MCP server that was missed in part: the tool, exactly as listed.")


class ToolFindings(BaseModel):
    """On every tool and rule of a question."""

    findings: list[ToolFinding]


class ToolObservation(ItemAnswer):
    """What one part of a long transcript shows of a tool or a rule."""

    number: int = Field(description="Its number as listed.")
    reasoning: str = Field(alias="facts", description="What was seen here, also what later parts may overtake.")
    verdict: PartFinding = Field(alias="finding")


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


# Where parts disagree: what speaks against the session before what speaks for it, and both before what says nothing.
ORDER = (Use.BROKEN, Use.MISUSED, Use.INSTRUCTIONS_IGNORED, Use.MISSED, Use.FOLLOWED, Use.USED_WELL, Use.NOT_APPLICABLE)


def stored(finding: Use) -> str:
    """As results name it."""
    return to_camel(finding.lower())


def objection(subject: Subject, given: ItemAnswer, use: Use) -> str | None:
    """Why a finding cannot be true, whatever it cites."""
    if use not in (OF_RULES if subject.is_rule else OF_TOOLS):
        return f"that is no finding on a {'rule' if subject.is_rule else 'tool'}."
    if not given.reasoning.strip():
        return NO_REASON
    if use in NEEDS_CALL and not subject.calls:
        return "it was never called."
    if use is Use.MISSED and missed_tool(subject, given) is None:
        return "it was called."
    if use is Use.NOT_APPLICABLE and subject.successes:
        return "it was called, so it was used well, misused, or its instructions were ignored."
    return None


def missed_tool(subject: Subject, given: ItemAnswer | None) -> str | None:
    """What was missed: all of it, or one tool of a server of which others were called."""
    named = given.tool.strip() if isinstance(given, ToolFinding) else ""
    if named in subject.item.tools and named not in subject.calls:
        return named
    return None if subject.calls else subject.name


def look_up_in(place: VerdictCitation, subject: Subject, sources: Sources) -> Citing:
    """What a citation shows; what a rule says is no evidence of what was done with it."""
    if _path(place.where) == subject.item.file:
        return Citing(f"{subject.item.file} shows what it asks for, not what the session did.")
    # No suite marks which rules are about words: "answer in German" is proven by nothing else.
    return look_up(place.where, place.quote, sources, Criterion(is_about_answer=subject.is_rule))


_LINES = re.compile(r":\d{1,9}(-\d{1,9})?$")


def _path(where: str) -> str:
    return _LINES.sub("", where.strip().strip("`[]").strip().removeprefix("file:").strip().removeprefix("./"))
