"""What a judge may say of tools and rules, and the check of it against what is known. Pure."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from pydantic import BaseModel, Field

from zelda_ci.domain.details import Citation, MissedTool, MisusedTool, RuleJudgement, RuleVerdict, ToolRemark
from zelda_ci.domain.manifest import CALLED, READ, ItemKind, ManifestItem, ToolsManifest, skill
from zelda_ci.domain.session import SessionTranscript, Turn
from zelda_ci.judge.rendering import rendered_turn
from zelda_ci.redact import Redactor, SafeText

_TURN = re.compile(r"\bturn\s+(\d{1,6})\b", re.IGNORECASE)
Remark = TypeVar("Remark", bound=ToolRemark)
Find = Callable[[str], str | None]


class CitedPlace(BaseModel):
    """A place in the transcript."""

    where: SafeText = Field(description="turn 7, or turn 7 call 2")
    quote: SafeText = Field(description="a short passage copied from there character by character")


class ToolClaim(BaseModel):
    """A remark on one tool."""

    tool: SafeText = Field(description="its name exactly as listed")
    reasoning: SafeText
    evidence: list[CitedPlace] = []


class RuleClaim(BaseModel):
    """A remark on one rule."""

    rule: SafeText = Field(description="its file exactly as listed")
    verdict: Literal["FOLLOWED", "BROKEN", "NOT_APPLICABLE"]
    reasoning: SafeText
    evidence: list[CitedPlace] = []


class Claims(BaseModel):
    """Everything a judge says of a transcript, or of a part of it."""

    effectiveness: float = Field(ge=0, le=100, description="0: the tools were of no help; 100: no better use of them")
    reasoning: SafeText
    missed: list[ToolClaim] = []
    misused: list[ToolClaim] = []
    rules: list[RuleClaim] = []


@dataclass(frozen=True)
class CheckedClaims:
    """The claims that hold."""

    missed: tuple[MissedTool, ...]
    misused: tuple[MisusedTool, ...]
    rules: tuple[RuleJudgement, ...]
    notes: tuple[SafeText, ...]


def united(parts: Sequence[Claims], redact: Redactor) -> Claims:
    """Claims about parts as claims about the whole, where nobody could conclude: the mean, and every remark once."""
    return Claims(
        effectiveness=sum(claims.effectiveness for claims in parts) / len(parts),
        reasoning=redact(" ".join(claims.reasoning for claims in parts)),
        missed=[claim for claims in parts for claim in claims.missed],
        misused=[claim for claims in parts for claim in claims.misused],
        rules=[claim for claims in parts for claim in claims.rules],
    )


def check(
    claims: Claims, manifest: ToolsManifest, used: Mapping[str, int], transcript: SessionTranscript, redact: Redactor
) -> CheckedClaims:
    """Keep what can be true.

    A missed tool must have been there and not have been called; a misused one must have been called; a rule must have
    been loaded. What is said twice counts once, and of two verdicts on a rule the worse.
    """
    desk = _Desk(manifest, used, {turn.index: turn for turn in transcript.turns}, redact)
    missed = tuple(desk.tools(claims.missed, MissedTool, desk.missed))
    misused = tuple(desk.tools(claims.misused, MisusedTool, desk.misused))
    rules = tuple(desk.rules(claims.rules))
    return CheckedClaims(missed, misused, rules, tuple(desk.notes()))


@dataclass
class _Desk:
    """Where claims are checked, one after the other."""

    manifest: ToolsManifest
    used: Mapping[str, int]
    turns: Mapping[int, Turn]
    redact: Redactor
    dropped: list[str] = field(default_factory=list)

    def missed(self, claimed: str) -> str | None:
        """The tool's proper name, if the model could have called it and never did."""
        for item in self.manifest.items:
            if not (item.kind in CALLED and item.loaded and item.automatic and claimed in names_of(item)):
                continue
            calls = [name for name in self.used if _is_call_of(name, item, claimed)]
            return None if calls else claimed if claimed in item.tools else item.tool
        return None

    def misused(self, claimed: str) -> str | None:
        """The tool's name among the calls, if there were any."""
        items = [item for item in self.manifest.items if item.kind in CALLED and claimed in names_of(item)]
        candidates = [claimed, *(name for item in items for name in names_of(item))]
        return next((name for name in candidates if name in self.used), None)

    def tools(self, claims: Iterable[ToolClaim], kind: type[Remark], find: Find) -> Iterator[Remark]:
        """Remarks on tools, each tool once."""
        seen: set[str] = set()
        for claim in claims:
            tool = find(claim.tool.strip())
            if tool is None:
                self.dropped.append(claim.tool)
            elif tool not in seen:
                seen.add(tool)
                evidence, unverified = self._evidence(claim.evidence)
                yield kind(tool=self.redact(tool), reasoning=claim.reasoning, evidence=evidence, unverified=unverified)

    def rules(self, claims: Sequence[RuleClaim]) -> Iterator[RuleJudgement]:
        """A judgement on every rule that was loaded, in the manifest's order."""
        order = ["BROKEN", "FOLLOWED", "NOT_APPLICABLE"]
        loaded = {item.file: item for item in self.manifest.items if item.kind in READ and item.loaded}
        worst: dict[str, RuleClaim] = {}
        for claim in sorted(claims, key=lambda claim: order.index(claim.verdict)):
            if claim.rule.strip() in loaded:
                worst.setdefault(claim.rule.strip(), claim)
            else:
                self.dropped.append(claim.rule)
        for item in loaded.values():
            yield self._rule(item, worst.get(item.file))

    def notes(self) -> Iterator[SafeText]:
        """What was not believed."""
        if self.dropped:
            names = ", ".join(name[:100] for name in dict.fromkeys(self.dropped))
            yield self.redact(f"Left out, because they were not there or the calls show otherwise: {names[:1000]}.")

    def _rule(self, item: ManifestItem, claim: RuleClaim | None) -> RuleJudgement:
        if claim is None:
            silent = self.redact("The judge says nothing of it.")
            return RuleJudgement(rule=item.file, verdict=RuleVerdict.NOT_JUDGED, reasoning=silent)
        evidence, unverified = self._evidence(claim.evidence)
        return RuleJudgement(
            rule=item.file,
            verdict=RuleVerdict[claim.verdict],
            reasoning=claim.reasoning,
            evidence=evidence,
            unverified=unverified or (claim.verdict == "BROKEN" and not evidence),
        )

    def _evidence(self, cited: Sequence[CitedPlace]) -> tuple[tuple[Citation, ...], bool]:
        evidence = tuple(Citation(where=place.where, quote=place.quote) for place in cited if self._holds(place))
        return evidence, bool(cited) and not evidence

    def _holds(self, cited: CitedPlace) -> bool:
        number = _TURN.search(cited.where)
        turn = self.turns.get(int(number[1])) if number else None
        quote = " ".join(cited.quote.split())
        return turn is not None and bool(quote) and quote in " ".join(rendered_turn(turn).split())


def names_of(item: ManifestItem) -> tuple[str, ...]:
    """Every name under which something that is called may be spoken of."""
    alias = (skill(item.label), item.label) if item.label else ()
    return (item.tool, item.name, f"/{item.name}", *alias, *item.tools)


def _is_call_of(call: str, item: ManifestItem, claimed: str) -> bool:
    """Whether a call used what a claim speaks of: one tool of a server, or anything of it."""
    if item.kind is not ItemKind.MCP_SERVER:
        return call in names_of(item)
    return call == claimed if claimed in item.tools else call.startswith(f"{item.tool}__")
