"""Tool usage: whether a session used well what the project offers; counted first, then judged, then computed."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import starmap
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from zelda_ci.domain.details import RuleJudgement, RuleVerdict, ToolRemark, ToolUsageDetails, ToolUse
from zelda_ci.domain.kinds import CALLED, FOLLOWED, KINDS, ItemKind, Shown, skill
from zelda_ci.domain.manifest import ManifestEntry, ManifestItem, ToolsManifest
from zelda_ci.domain.measures import Metric
from zelda_ci.domain.numbers import format_count
from zelda_ci.domain.run import EvalContext
from zelda_ci.domain.session import SessionTranscript, UserSaid
from zelda_ci.judge.base import CHARS_PER_TOKEN
from zelda_ci.judge.characters import spelled
from zelda_ci.judge.rendering import fence, mark_of, windowed
from zelda_ci.metrics.base import JudgeServices, Outcome, Scored, Unscored
from zelda_ci.metrics.evidence import CitedPlace, Citing, Criterion, look_up
from zelda_ci.metrics.panel import NO_REASON, ItemAnswer, Panel, Word, shortened, unjudged
from zelda_ci.redact import Redactor

# Of the judge's context, for tools and rules together: they are sent again with every part of the transcript.
OFFER_SHARE = 0.15
MAX_DESCRIPTION_LENGTH = 600
MAX_NAME_LENGTH = 300
# Characters of a description in the result: the whole is in the file.
SHORT = 160
MAX_TOOLS = 200
NO_TOOLS = "No tools available: there are no skills, commands, sub-agents, MCP servers, rules or CLAUDE.md files."
_COMMAND = re.compile(r"<command-name>/?([^<\s]{1,100})</command-name>")


class Use(StrEnum):
    """What became of a tool or a rule, as results name it; where parts of a transcript disagree, the first counts."""

    BROKEN = "broken"
    MISUSED = "misused"
    INSTRUCTIONS_IGNORED = "instructionsIgnored"
    """It was called, and then not done as it says."""
    MISSED = "missed"
    FOLLOWED = "followed"
    USED_WELL = "usedWell"
    NOT_APPLICABLE = "notApplicable"


# What counts: words for it in the sentence on the score, in this order, and the share of what could be had. Whoever
# calls the right tool and ignores what it says got one of two decisions right.
COUNTED: Mapping[Use, tuple[str, float]] = {
    Use.USED_WELL: ("used well", 1.0),
    Use.FOLLOWED: ("followed", 1.0),
    Use.INSTRUCTIONS_IGNORED: ("used but its instructions ignored", 0.5),
    Use.MISUSED: ("misused", 0.0),
    Use.MISSED: ("missed", 0.0),
    Use.BROKEN: ("broken", 0.0),
}
OF_RULES = {Use.FOLLOWED, Use.BROKEN, Use.NOT_APPLICABLE}
OF_TOOLS = {*Use} - {Use.FOLLOWED, Use.BROKEN}
# What is said of something that was called.
NEEDS_CALL = {Use.USED_WELL, Use.INSTRUCTIONS_IGNORED, Use.MISUSED}


def score(findings: Iterable[Use]) -> float | None:
    """Credit over what applies, in percent; nothing where nothing applies."""
    shares = [COUNTED[finding][1] for finding in findings if finding in COUNTED]
    return 100 * sum(shares) / len(shares) if shares else None


# As a judge writes them.
ToolWord = Literal[
    "USED_WELL", "INSTRUCTIONS_IGNORED", "MISUSED", "MISSED", "FOLLOWED", "BROKEN", "NOT_APPLICABLE", "NO_EVIDENCE"
]


class ToolFinding(ItemAnswer):
    """On one tool or rule."""

    verdict: Annotated[ToolWord, Word]
    tool: str = Field("", description="Of an MCP server that was missed in part: the tool, exactly as listed.")


class ToolFindings(BaseModel):
    """On every tool and rule of a question."""

    findings: list[ToolFinding]


@dataclass(frozen=True)
class Subject:
    """A tool or a rule that the session had, and how often its tools were called by name: all, and with success."""

    item: ManifestItem
    calls: Mapping[str, int]
    successes: int

    @property
    def name(self) -> str:
        return self.item.file if self.item.is_followed else self.item.tool

    def missed_tool(self, given: ItemAnswer | None) -> str | None:
        """What was missed: all of it, or one tool of a server of which others were called."""
        named = given.tool.strip() if isinstance(given, ToolFinding) else ""
        if named in self.item.tools and named not in self.calls:
            return named
        return None if self.calls else self.name


def subjects(manifest: ToolsManifest, uses: Sequence[ToolUse]) -> dict[int, Subject]:
    """What is judged, by number from 1: tools that the model could call or that were called, and rules, if loaded."""
    found = []
    for item in manifest.items:
        names = (item.tool, item.name, f"/{item.name}", *((skill(item.label), item.label) if item.label else ()))
        server = f"{item.tool}__" if item.kind is ItemKind.MCP_SERVER else None
        uses_of = uses if item.kind in CALLED else ()
        own = [use for use in uses_of if (use.tool.startswith(server) if server else use.tool in names)]
        successes = sum(use.calls - use.errors - use.denied for use in own)
        if item.loaded and (item.is_followed or (item.kind in CALLED and (item.is_open or own))):
            found.append(Subject(item, {use.tool: use.calls for use in own}, successes))
    return dict(enumerate(sorted(found, key=lambda subject: subject.item.is_followed), start=1))


class ToolPanel(Panel[Subject, Use]):
    """One run's tools and rules before the judge."""

    prompt = "tool_usage"
    version = "4"
    form = ToolFindings
    words = Use.__members__
    order = tuple(Use)
    # What has happened can be shown. That a tool was missed, or that nothing touched a rule, cannot be quoted.
    needs_evidence = {*COUNTED} - {Use.MISSED}
    # What speaks for the session must not rest on its own words alone.
    needs_proof = (Use.USED_WELL, Use.FOLLOWED)

    def __init__(
        self, context: EvalContext, services: JudgeServices, manifest: ToolsManifest, uses: Sequence[ToolUse]
    ) -> None:
        super().__init__(context, services, subjects(manifest, uses))
        self._manifest, self._uses = manifest, uses

    def asked(self, numbers: Sequence[int]) -> Mapping[str, Any]:
        listed = "\n".join(_named(number, self.items[number]) for number in numbers)
        said = "only where a rule is about what the session says: elsewhere its own words prove nothing"
        return {"asked": fence("asked", listed, self.nonce), "count": len(numbers), "said": said}

    def objection(self, item: Subject, answer: ItemAnswer, verdict: Use) -> str | None:
        what, possible = ("rule", OF_RULES) if item.item.is_followed else ("tool", OF_TOOLS)
        why_not = "it was called, so it was used well, misused, or its instructions were ignored."
        objections = {
            f"that is no finding on a {what}.": verdict not in possible,
            NO_REASON: not answer.reasoning.strip(),
            "it was never called.": verdict in NEEDS_CALL and not item.calls,
            "it was called.": verdict is Use.MISSED and item.missed_tool(answer) is None,
            why_not: verdict is Use.NOT_APPLICABLE and item.successes,
        }
        return next((objection for objection, applies in objections.items() if applies), None)

    def look_up(self, item: Subject, place: CitedPlace) -> Citing:
        """What a citation shows; what a rule says is no evidence of what was done with it."""
        if place.kind == "file" and place.path.removeprefix("./") == item.item.file:
            return Citing(f"{item.item.file} shows what it asks for, not what the session did.")
        # No suite marks which rules are about words: "answer in German" is proven by nothing else.
        return look_up(place, self.evidence.sources, Criterion(is_about_answer=item.item.is_followed))

    @cached_property
    def shown(self) -> tuple[str, ...]:
        budget = int(self.judge.context_tokens * CHARS_PER_TOKEN * OFFER_SHARE)
        absent = (
            f"- not available: {item.tool} [{item.kind}]: {item.reason or 'no reason is known'}"
            for item in self._manifest.items
            if item.kind is ItemKind.MCP_SERVER and not item.loaded
        )
        tools = map(spelled, (*starmap(_tool, self.items.items()), *absent))
        ruling = {number: subject.item for number, subject in self.items.items() if subject.item.is_followed}
        share, mark = budget // 2 // max(1, len(ruling)), mark_of(self.nonce)
        # Each text under a heading that none of them can forge.
        rules = (
            f"[{mark} number {number}: {spelled(item.file)}]\n{windowed(item.text or '(empty)', share)}"
            for number, item in ruling.items()
        )
        blocks = (
            ("tools", "\n".join(tools), budget // 2),
            ("rules", "\n\n".join(rules), budget // 2),
            ("counted-calls", "\n".join(spelled(_use(use)) for use in self._uses), budget // 4),
        )
        return tuple(fence(kind, windowed(text or "(none)", most), self.nonce) for kind, text, most in blocks)


def _named(number: int, subject: Subject) -> str:
    return f"{number}. {'rules in' if subject.item.is_followed else 'tool'} {spelled(subject.name)[:MAX_NAME_LENGTH]}"


def _tool(number: int, subject: Subject) -> str:
    if subject.item.is_followed:
        return _named(number, subject)
    item = subject.item
    told = "the model was told only the name" if item.shown is Shown.NAME else item.description or "no description"
    alias = f" (also {skill(item.label)})" if item.label else ""
    called = f"called {sum(subject.calls.values())} times" if subject.calls else "never called"
    described = " ".join(told.split())[:MAX_DESCRIPTION_LENGTH]
    note = f" ({item.note})" if item.note else ""
    return f"{number}. {', '.join((item.tool, *item.tools))}{alias} [{item.kind}], {called}: {described}{note}"


def _use(use: ToolUse) -> str:
    trouble = [f"{number} {what}" for number, what in ((use.errors, "failed"), (use.denied, "denied")) if number]
    return f"- {use.tool}: {use.calls}" + (f" ({', '.join(trouble)})" if trouble else "")


def count_uses(transcript: SessionTranscript, manifest: ToolsManifest | None, redact: Redactor) -> tuple[ToolUse, ...]:
    """Calls by tool, the most used first, with errors and denials; what was written with a slash counts as called."""
    counts: dict[str, list[int]] = {}
    for call in transcript.tool_calls:
        tally = counts.setdefault(call.label, [0, 0, 0])
        tally[0] += 1
        tally[1] += call.is_error and not call.denied
        tally[2] += call.denied
    slashed = [name for it in transcript.entries if isinstance(it, UserSaid) for name in _COMMAND.findall(it.text)]
    slashed += [word[1:] for word in transcript.prompt.split(maxsplit=1)[:1] if word.startswith("/")]
    items = manifest.items if manifest else ()
    known = {item.name for item in items if item.loaded and KINDS[item.kind].call == "Skill"}
    for name in known.intersection(slashed):
        counts.setdefault(skill(name), [0, 0, 0])[0] += slashed.count(name)
    ranked = sorted(counts.items(), key=lambda item: (-item[1][0], item[0]))[:MAX_TOOLS]
    return tuple(ToolUse(tool=redact(tool), calls=c, errors=e, denied=d) for tool, (c, e, d) in ranked)


class ToolUsage:
    """Counts every call, and asks the judge what became of each tool and rule: all are judged, or there is no score."""

    metric = Metric.TOOL_USAGE
    version = f"4.{ToolPanel.version}"
    form = ToolFindings

    def __init__(self, services: JudgeServices) -> None:
        self._services = services

    async def evaluate(self, context: EvalContext) -> Outcome:
        """Count, then let be judged what there is to judge."""
        manifest, redact = context.manifest or ToolsManifest(), self._services.redact
        details = _counted(context, manifest, redact)
        steering = [item for item in manifest.items if item.kind in CALLED | FOLLOWED]
        is_valid = context.transcript.status.is_valid
        ask_for_judge = bool(context.suite.criteria or not context.suite.checks)
        if context.manifest is None:
            # Nobody could look: silence about a session that ran its course would be taken for consent.
            why = "What the project offers is not known, so its use was not judged."
            return Unscored(why, details, failed=is_valid)
        reasons = {
            NO_TOOLS: steering,
            "The session broke off, so its use of tools was not judged.": is_valid,
            "The suite has checks and no criteria, so no judge was asked.": ask_for_judge,
            "The model gave no response.": not all(turn.synthetic for turn in context.transcript.turns),
            "Nothing of what the project offers was loaded.": any(item.loaded for item in steering),
        }
        if unmet := [reason for reason, is_met in reasons.items() if not is_met]:
            return Unscored(unmet[0], details)
        panel = ToolPanel(context, self._services, manifest, details.uses)
        if not panel.items:
            return Unscored("Nothing of what the project offers is for the model to call or to follow.", details)
        drafts, how = await panel.judged()
        found = [(subject, drafts[number]) for number, subject in panel.items.items()]

        def remarks(use: Use | None) -> Iterator[ToolRemark]:
            for subject, draft in found:
                if not subject.item.is_followed and draft.verdict is use:
                    missed = subject.missed_tool(draft.answer) if use is Use.MISSED else None
                    yield ToolRemark(tool=redact(missed or subject.name), **draft.stored(redact))

        def followed() -> Iterator[RuleJudgement]:
            for subject, draft in found:
                if subject.item.is_followed:
                    verdict = RuleVerdict(draft.verdict or RuleVerdict.NOT_JUDGED)
                    yield RuleJudgement(rule=redact(subject.name), verdict=verdict, **draft.stored(redact))

        judged = details.replace(
            **{use.name.lower(): tuple(remarks(use)) for use in OF_TOOLS},
            not_judged=tuple(remarks(None)),
            rules=tuple(followed()),
            **{**how, "notes": (*details.notes, *how["notes"])},
        )
        findings = [draft.verdict for draft in drafts.values() if draft.verdict]
        if len(findings) < len(found):
            missing = [(subject.name, None if draft.verdict else draft.reasoning) for subject, draft in found]
            return unjudged("tools and rules", missing, judged, drafts.values())
        computed = score(findings)
        if computed is None:
            return Unscored("Nothing of what the project offers applies to what was done.", judged)
        applying = format_count(sum(it in COUNTED for it in findings), "tool or rule applies", "tools and rules apply")
        counts = [f"{findings.count(use)} {words}" for use, (words, _) in COUNTED.items() if use in findings]
        return Scored(computed, f"{applying}: {', '.join(counts)}.", judged)


def _counted(context: EvalContext, manifest: ToolsManifest, redact: Redactor) -> ToolUsageDetails:
    uses = count_uses(context.transcript, manifest, redact)
    entries, silent = [], redact("It was not judged.")
    for item in manifest.items:
        # Without what makes a result large.
        facts = {name: getattr(item, name) for name in ManifestEntry.model_fields}
        short = {"description": redact(shortened(item.description, SHORT))} if item.description else {}
        entries.append(ManifestEntry(**facts | short))
    rules = (item.file for item in manifest.items if item.is_followed and item.loaded)
    return ToolUsageDetails(
        used={use.tool: use.calls for use in uses},
        uses=uses,
        rules=tuple(RuleJudgement(rule=it, verdict=RuleVerdict.NOT_JUDGED, reasoning=silent) for it in rules),
        not_loaded=tuple(entry for entry in entries if not entry.loaded and not entry.on_demand),
        manifest=tuple(entries),
        notes=manifest.notes,
    )
