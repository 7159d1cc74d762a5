"""Tool usage: whether a session used well what the project offers; counted first, then judged."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from zelda_ci.domain.details import JudgeIdentity, RuleJudgement, RuleVerdict, ToolUsageDetails, ToolUse
from zelda_ci.domain.evaluation import EvalContext
from zelda_ci.domain.manifest import CALLED, READ, ItemKind, ManifestEntry, ManifestItem, ToolsManifest, label, skill
from zelda_ci.domain.measures import Metric
from zelda_ci.domain.session import SessionStatus, SessionTranscript, UserSaid
from zelda_ci.errors import JudgeError
from zelda_ci.judge.base import CHARS_PER_TOKEN, Judge, JudgeQuestion
from zelda_ci.judge.prompts import fence, mark_of, render
from zelda_ci.judge.rendering import windowed
from zelda_ci.judge.transcript import (
    CONTEXT_SHARE,
    EarlierFindings,
    QueryResult,
    TranscriptPart,
    TranscriptQuery,
    query_transcript,
)
from zelda_ci.metrics import tool_claims
from zelda_ci.metrics.base import Evaluator, JudgeServices, Outcome, Scored, Unscored
from zelda_ci.metrics.tool_claims import Claims, names_of
from zelda_ci.redact import Redactor

NAME = "tool-usage"
PROMPT_VERSION = "1"
# In which it answers.
FORM = Claims

# Of the judge's context, for tools and rules together: they are sent again with every part of the transcript.
OFFER_SHARE = 0.15

MAX_DESCRIPTION_LENGTH = 600


@dataclass(frozen=True)
class Questions:
    """The questions about one session."""

    context: EvalContext
    manifest: ToolsManifest
    uses: Sequence[ToolUse]
    nonce: str
    context_tokens: int

    def conclusion(self, earlier: EarlierFindings) -> JudgeQuestion:
        """About the session as a whole."""
        fixed = self._concluding("", is_whole=earlier.is_whole).tokens
        room = max(0, int((int(CONTEXT_SHARE * self.context_tokens) - fixed) * CHARS_PER_TOKEN))
        # A whole transcript has been measured; findings can be longer than there is room for.
        text = earlier.text if earlier.is_whole else windowed(earlier.text, room)
        return self._concluding(text, is_whole=earlier.is_whole)

    def part(self, part: TranscriptPart) -> JudgeQuestion:
        """About a part of its transcript."""
        transcript = fence("transcript", part.text, self.nonce)
        body = render("tool_usage_part", part=part, transcript=transcript, form=render("tool_usage_form"))
        return self._question(f"{NAME}-part", body)

    def findings(self, parts: Sequence[Claims]) -> str:
        """What was found in the parts, as text."""
        texts = (f"part {number}: {claims.model_dump_json()}" for number, claims in enumerate(parts, start=1))
        return "\n\n".join(texts)

    def _concluding(self, text: str, *, is_whole: bool) -> JudgeQuestion:
        fenced = fence("transcript" if is_whole else "findings", text, self.nonce)
        return self._question(
            NAME, render("tool_usage", told=fenced, is_whole=is_whole, form=render("tool_usage_form"))
        )

    def _question(self, name: str, body: str) -> JudgeQuestion:
        system = render("tool_usage_system", nonce=self.nonce, mark=mark_of(self.nonce))
        return JudgeQuestion(name, PROMPT_VERSION, system, self._shared, body)

    @cached_property
    def _shared(self) -> tuple[str, ...]:
        budget = int(self.context_tokens * CHARS_PER_TOKEN * OFFER_SHARE)
        tools, rules = _tools(self.manifest), _rules(self.manifest, budget // 2)
        return (
            fence("task", windowed(self.context.transcript.prompt, budget // 4), self.nonce),
            fence("tools", windowed(tools, budget // 2), self.nonce),
            fence("rules", rules, self.nonce),
            fence("counted-calls", "\n".join(map(_use, self.uses)) or "(none)", self.nonce),
        )


def _tools(manifest: ToolsManifest) -> str:
    offered = [item for item in manifest.items if item.kind in CALLED and item.loaded and item.automatic]
    servers = [item for item in manifest.items if item.kind is ItemKind.MCP_SERVER and not item.loaded]
    absent = [f"- not available: {item.tool} [{item.kind}]: {item.reason or 'no reason is known'}" for item in servers]
    return "\n".join([*map(_tool, offered), *absent]) or "(none)"


def _tool(item: ManifestItem) -> str:
    names = ", ".join(item.tools) or item.tool
    described = " ".join((item.description or "no description").split())[:MAX_DESCRIPTION_LENGTH]
    alias = f" (also {names_of(item)[3]})" if item.label else ""
    note = f" ({item.note})" if item.note else ""
    return f"- {names}{alias} [{item.kind}]: {described}{note}"


def _rules(manifest: ToolsManifest, budget: int) -> str:
    rules = [item for item in manifest.items if item.kind in READ and item.loaded]
    share = budget // max(1, len(rules))
    return "\n\n".join(f"--- {item.file}\n{windowed(item.text or '(empty)', share)}" for item in rules) or "(none)"


def _use(use: ToolUse) -> str:
    trouble = [f"{number} {what}" for number, what in ((use.errors, "failed"), (use.denied, "denied")) if number]
    return f"- {use.tool}: {use.calls}" + (f" ({', '.join(trouble)})" if trouble else "")


MAX_TOOLS = 200

_COMMAND = re.compile(r"<command-name>/?([^<\s]{1,100})</command-name>")


def count_uses(transcript: SessionTranscript, manifest: ToolsManifest | None, redact: Redactor) -> tuple[ToolUse, ...]:
    """Calls by tool, the most used first, with errors and denials.

    Rules, CLAUDE.md files and hooks have no call. A skill or command that was written with a slash, in the prompt or
    in what Claude Code put to the model, counts as called.
    """
    counts: dict[str, list[int]] = {}
    for call in transcript.tool_calls:
        tally = counts.setdefault(label(call), [0, 0, 0])
        tally[0] += 1
        tally[1] += call.is_error and not call.denied
        tally[2] += call.denied
    for name in _slashed(transcript, manifest):
        counts.setdefault(skill(name), [0, 0, 0])[0] += 1
    ranked = sorted(counts.items(), key=lambda item: (-item[1][0], item[0]))[:MAX_TOOLS]
    return tuple(ToolUse(tool=redact(tool), calls=c, errors=e, denied=d) for tool, (c, e, d) in ranked)


def _slashed(transcript: SessionTranscript, manifest: ToolsManifest | None) -> Iterator[str]:
    kinds = (ItemKind.SKILL, ItemKind.COMMAND)
    names = {item.name for item in manifest.items if item.kind in kinds and item.loaded} if manifest else set()
    texts = [entry.text for entry in transcript.entries if isinstance(entry, UserSaid)]
    words = transcript.prompt.split(maxsplit=1)
    typed = [words[0].removeprefix("/")] if words and words[0].startswith("/") else []
    for name in (*typed, *(name for text in texts for name in _COMMAND.findall(text))):
        if name in names:
            yield name


# Characters of a description in the result: the whole is in the file.
SHORT = 160

BROKEN_OFF = frozenset({SessionStatus.FAILED, SessionStatus.INTERRUPTED})

NO_TOOLS = "No tools available: there are no skills, commands, sub-agents, MCP servers, rules or CLAUDE.md files."


class ToolUsage:
    """Counts every call, and asks the judge what was missed, misused, followed and broken.

    The score is the judge's effectiveness. The counts are there without a judge, too.
    """

    metric: Final = Metric.TOOL_USAGE
    version: Final = f"2.{PROMPT_VERSION}"

    def __init__(self, judge: Judge, nonce: str, redact: Redactor) -> None:
        self._judge = judge
        self._nonce = nonce
        self._redact = redact

    async def evaluate(self, context: EvalContext) -> Outcome:
        """Count, then let be judged what there is to judge."""
        manifest = context.manifest or ToolsManifest()
        details = _counted(context, manifest, self._redact)
        if context.manifest is None:
            # Nobody could look: silence about a session that ran its course would be taken for consent.
            unknown = "What the project offers is not known, so its use was not judged."
            return Unscored(unknown, details, failed=context.transcript.status not in BROKEN_OFF)
        if reason := _not_to_be_judged(context, manifest):
            return Unscored(reason, details)
        try:
            conclusion = await self._ask(context, manifest, details)
        except JudgeError as problem:
            return Unscored(problem.message, details, failed=True)
        judge = JudgeIdentity(model=self._judge.model, prompt_version=PROMPT_VERSION)
        return self._scored(conclusion, context, manifest, details.replace(judge=judge))

    async def _ask(
        self, context: EvalContext, manifest: ToolsManifest, details: ToolUsageDetails
    ) -> QueryResult[Claims]:
        judge = self._judge
        questions = Questions(context, manifest, details.uses, self._nonce, judge.context_tokens)

        async def conclude(earlier: EarlierFindings) -> Claims:
            return (await judge.ask(questions.conclusion(earlier), Claims)).value

        reading = TranscriptQuery[Claims, Claims](
            nonce=self._nonce,
            fixed_tokens=questions.conclusion(EarlierFindings("", is_whole=True)).tokens,
            question=questions.part,
            finding=Claims,
            finish=conclude,
            merge=lambda parts: tool_claims.united(parts, self._redact),
        )
        return await query_transcript(context.transcript, judge, reading)

    def _scored(
        self, conclusion: QueryResult[Claims], context: EvalContext, manifest: ToolsManifest, details: ToolUsageDetails
    ) -> Scored:
        claims = conclusion.value
        checked = tool_claims.check(claims, manifest, details.used, context.transcript, self._redact)
        judged = details.replace(
            missed=checked.missed,
            misused=checked.misused,
            rules=checked.rules,
            parts=conclusion.parts,
            notes=(*details.notes, *map(self._redact, conclusion.notes), *checked.notes),
        )
        return Scored(claims.effectiveness, claims.reasoning, judged)


def create(services: JudgeServices) -> Evaluator:
    return ToolUsage(services.judge, services.nonce, services.redact)


def _counted(context: EvalContext, manifest: ToolsManifest, redact: Redactor) -> ToolUsageDetails:
    """What is known without a judge."""
    uses = count_uses(context.transcript, manifest, redact)
    entries = tuple(_entry(item, redact) for item in manifest.items)
    silent = redact("It was not judged.")
    return ToolUsageDetails(
        used={use.tool: use.calls for use in uses},
        uses=uses,
        rules=tuple(
            RuleJudgement(rule=item.name, verdict=RuleVerdict.NOT_JUDGED, reasoning=silent)
            for item in manifest.items
            if item.kind in READ and item.loaded
        ),
        not_loaded=tuple(entry for entry in entries if not entry.loaded and not entry.on_demand),
        manifest=entries,
        notes=manifest.notes,
    )


def _entry(item: ManifestItem, redact: Redactor) -> ManifestEntry:
    """An item without what makes a result large."""
    facts = {name: getattr(item, name) for name in ManifestEntry.model_fields}
    if item.description and len(item.description) > SHORT:
        facts["description"] = redact(f"{item.description[: SHORT - 2].rstrip()} …")
    return ManifestEntry(**facts)


def _not_to_be_judged(context: EvalContext, manifest: ToolsManifest) -> str | None:
    """Why there is nothing to ask a judge."""
    steering = [item for item in manifest.items if item.kind in CALLED | READ]
    if not steering:
        return NO_TOOLS
    if context.transcript.status in BROKEN_OFF:
        return "The session broke off, so its use of tools was not judged."
    if all(turn.synthetic for turn in context.transcript.turns):
        return "The model gave no response."
    if not any(item.loaded for item in steering):
        return "Nothing of what the project offers was loaded."
    return None
