"""Tool usage: whether a session used well what the project offers; counted first, then judged, then computed."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import starmap
from typing import Any, Final

from zelda_ci.domain.context import EvalContext
from zelda_ci.domain.details import (
    JudgeIdentity,
    RuleJudgement,
    RuleVerdict,
    ToolRemark,
    ToolUsageDetails,
    ToolUse,
)
from zelda_ci.domain.kinds import CALLED, FOLLOWED, KINDS, ItemKind, Shown, skill
from zelda_ci.domain.manifest import ManifestEntry, ManifestItem, ToolsManifest
from zelda_ci.domain.measures import Metric
from zelda_ci.domain.numbers import format_count
from zelda_ci.domain.session import SessionTranscript, UserSaid
from zelda_ci.errors import JudgeError
from zelda_ci.judge.base import CHARS_PER_TOKEN, CommonPrefix, Judge, JudgeQuestion, Lookups
from zelda_ci.judge.characters import spelled
from zelda_ci.judge.lookups import lookups_of
from zelda_ci.judge.prompts import fence, mark_of, render
from zelda_ci.judge.rendering import windowed
from zelda_ci.judge.transcript import EarlierFindings, QueryResult, TranscriptPart
from zelda_ci.metrics import tool_claims
from zelda_ci.metrics.base import Evaluator, JudgeServices, Outcome, Scored, Unscored
from zelda_ci.metrics.evidence import Citing
from zelda_ci.metrics.gathering import gather
from zelda_ci.metrics.panel import Draft, ItemAnswer, Panel, VerdictCitation, shortened
from zelda_ci.metrics.tool_claims import Subject, ToolFindings, ToolObservations, Use, stored
from zelda_ci.redact import Redactor

NAME = "tool-usage"
PROMPT_VERSION = "3"

# Of the judge's context, for tools and rules together: they are sent again with every part of the transcript.
OFFER_SHARE = 0.15

MAX_DESCRIPTION_LENGTH = 600
MAX_NAME_LENGTH = 300


class ToolPanel(Panel[Subject, Use]):
    """One run's tools and rules before the judge."""

    forms = (ToolFindings, ToolObservations)
    words = tool_claims.FINDINGS
    order = tool_claims.ORDER
    nothing = "NOTHING_SEEN"
    needs_proof = tool_claims.NEEDS_PROOF
    needs_evidence = tool_claims.NEEDS_EVIDENCE

    def __init__(self, *known: Any, manifest: ToolsManifest, uses: Sequence[ToolUse]) -> None:
        super().__init__(*known)
        self._manifest, self._uses = manifest, uses

    def objection(self, item: Subject, answer: ItemAnswer, verdict: Use) -> str | None:
        return tool_claims.objection(item, answer, verdict)

    def look_up(self, item: Subject, place: VerdictCitation) -> Citing:
        return tool_claims.look_up_in(place, item, self.evidence.sources)

    def concluding(self, earlier: EarlierFindings, numbers: Sequence[int]) -> JudgeQuestion:
        common, own = self.evidence.before(earlier, self.nonce)
        asked = fence("asked", "\n".join(_named(number, self.items[number]) for number in numbers), self.nonce)
        body = render("tool_usage", asked=asked, count=len(numbers), is_whole=earlier.is_whole)
        return self._question(NAME, common, (*self._offer, *own), body, self.lookups)

    def about_part(self, part: TranscriptPart) -> JudgeQuestion:
        common = self.evidence.before_part(part, self.nonce)
        return self._question(f"{NAME}-part", common, self._offer, render("tool_usage_part", part=part))

    def _question(
        self, name: str, common: CommonPrefix, own: tuple[str, ...], body: str, lookups: Lookups | None = None
    ) -> JudgeQuestion:
        return JudgeQuestion(name, PROMPT_VERSION, render("tool_usage_system"), own, body, lookups, common)

    @cached_property
    def _offer(self) -> tuple[str, ...]:
        budget = int(self.judge.context_tokens * CHARS_PER_TOKEN * OFFER_SHARE)
        tools = "\n".join(map(spelled, (*starmap(_tool, self.items.items()), *_absent(self._manifest)))) or "(none)"
        counted = "\n".join(spelled(_use(use)) for use in self._uses) or "(none)"
        rules = _rules(self.items, budget // 2, mark_of(self.nonce))
        return (
            fence("tools", windowed(tools, budget // 2), self.nonce),
            fence("rules", windowed(rules, budget // 2), self.nonce),
            fence("counted-calls", windowed(counted, budget // 4), self.nonce),
        )


def _named(number: int, subject: Subject) -> str:
    name = spelled(subject.name)[:MAX_NAME_LENGTH]
    return f"{number}. {'rules in' if subject.is_rule else 'tool'} {name}"


def _tool(number: int, subject: Subject) -> str:
    if subject.is_rule:
        return _named(number, subject)
    item = subject.item
    names = ", ".join((item.tool, *item.tools))
    told = (
        (item.description or "no description") if item.shown is not Shown.NAME else "the model was told only the name"
    )
    described = " ".join(told.split())[:MAX_DESCRIPTION_LENGTH]
    alias = f" (also {skill(item.label)})" if item.label else ""
    called = f"called {sum(subject.calls.values())} times" if subject.calls else "never called"
    note = f" ({item.note})" if item.note else ""
    return f"{number}. {names}{alias} [{item.kind}], {called}: {described}{note}"


def _absent(manifest: ToolsManifest) -> Iterator[str]:
    for item in manifest.items:
        if item.kind is ItemKind.MCP_SERVER and not item.loaded:
            yield f"- not available: {item.tool} [{item.kind}]: {item.reason or 'no reason is known'}"


def _rules(known: Mapping[int, Subject], budget: int, mark: str) -> str:
    """The texts, each under a heading that none of them can forge."""
    rules = {number: subject.item for number, subject in known.items() if subject.is_rule}
    share = budget // max(1, len(rules))
    texts = (
        f"[{mark} number {number}: {spelled(item.file)}]\n{windowed(item.text or '(empty)', share)}"
        for number, item in rules.items()
    )
    return "\n\n".join(texts) or "(none)"


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
        tally = counts.setdefault(call.label, [0, 0, 0])
        tally[0] += 1
        tally[1] += call.is_error and not call.denied
        tally[2] += call.denied
    for name in _slashed(transcript, manifest):
        counts.setdefault(skill(name), [0, 0, 0])[0] += 1
    ranked = sorted(counts.items(), key=lambda item: (-item[1][0], item[0]))[:MAX_TOOLS]
    return tuple(ToolUse(tool=redact(tool), calls=c, errors=e, denied=d) for tool, (c, e, d) in ranked)


def _slashed(transcript: SessionTranscript, manifest: ToolsManifest | None) -> Iterator[str]:
    called = [item for item in manifest.items if KINDS[item.kind].call == "Skill"] if manifest else []
    names = {item.name for item in called if item.loaded}
    texts = [entry.text for entry in transcript.entries if isinstance(entry, UserSaid)]
    words = transcript.prompt.split(maxsplit=1)
    typed = [words[0].removeprefix("/")] if words and words[0].startswith("/") else []
    for name in (*typed, *(name for text in texts for name in _COMMAND.findall(text))):
        if name in names:
            yield name


# Characters of a description in the result: the whole is in the file.
SHORT = 160

NO_TOOLS = "No tools available: there are no skills, commands, sub-agents, MCP servers, rules or CLAUDE.md files."


class ToolUsage:
    """Counts every call, and asks the judge what became of each tool and rule that the session had.

    The score is computed from what it finds, see `tool_claims.score`. With something that nobody judged there is no
    score: nothing vouches for it. The counts are there without a judge, too.
    """

    metric: Final = Metric.TOOL_USAGE
    version: Final = f"3.{PROMPT_VERSION}"

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
            return Unscored(unknown, details, failed=context.transcript.status.is_valid)
        if reason := _not_to_be_judged(context, manifest):
            return Unscored(reason, details)
        panel = self._panel(context, manifest, details.uses)
        if not panel.items:
            return Unscored("Nothing of what the project offers is for the model to call or to follow.", details)
        try:
            conclusion = await panel.judged(context.transcript)
        except JudgeError as problem:
            return Unscored(problem.message, details, failed=True)
        return self._judged(conclusion, panel, details)

    def _panel(self, context: EvalContext, manifest: ToolsManifest, uses: Sequence[ToolUse]) -> ToolPanel:
        tokens = self._judge.context_tokens
        evidence = gather(context, self._redact, nonce=self._nonce, context_tokens=tokens)
        lookups = lookups_of(context, self._nonce, self._redact)
        known, votes = tool_claims.subjects(manifest, uses), context.suite.judge.cast_votes
        return ToolPanel(self._judge, self._nonce, known, evidence, lookups, votes, manifest=manifest, uses=uses)

    def _judged(
        self, conclusion: QueryResult[Mapping[int, Draft[Use]]], panel: ToolPanel, details: ToolUsageDetails
    ) -> Outcome:
        found = [(subject, conclusion.value[number]) for number, subject in panel.items.items()]
        judged = details.replace(
            **{name: tuple(self._remarks(found, use)) for name, use in LISTS.items()},
            rules=tuple(self._rule(subject, draft) for subject, draft in found if subject.is_rule),
            judge=JudgeIdentity(model=self._judge.model, prompt_version=PROMPT_VERSION),
            votes=panel.votes,
            parts=conclusion.parts,
            notes=(*details.notes, *map(self._redact, conclusion.notes)),
        )
        return _outcome(found, judged)

    def _remarks(self, found: Sequence[tuple[Subject, Draft[Use]]], use: Use | None) -> Iterator[ToolRemark]:
        for subject, draft in found:
            if not subject.is_rule and draft.verdict is use:
                missed = tool_claims.missed_tool(subject, draft.answer) if use is Use.MISSED else None
                yield ToolRemark(tool=self._redact(missed or subject.name), **draft.told(self._redact, stored))

    def _rule(self, subject: Subject, draft: Draft[Use]) -> RuleJudgement:
        verdict = RULE_VERDICTS[draft.verdict] if draft.verdict else RuleVerdict.NOT_JUDGED
        return RuleJudgement(rule=self._redact(subject.name), verdict=verdict, **draft.told(self._redact, stored))


LISTS: Mapping[str, Use | None] = {
    "missed": Use.MISSED,
    "misused": Use.MISUSED,
    "instructions_ignored": Use.INSTRUCTIONS_IGNORED,
    "used_well": Use.USED_WELL,
    "not_applicable": Use.NOT_APPLICABLE,
    "not_judged": None,
}
RULE_VERDICTS = {
    Use.FOLLOWED: RuleVerdict.FOLLOWED,
    Use.BROKEN: RuleVerdict.BROKEN,
    Use.NOT_APPLICABLE: RuleVerdict.NOT_APPLICABLE,
}

# What counts for or against, in the order and the words of the sentence on the score.
WORDS = {
    Use.USED_WELL: "used well",
    Use.FOLLOWED: "followed",
    Use.INSTRUCTIONS_IGNORED: "used but its instructions ignored",
    Use.MISUSED: "misused",
    Use.MISSED: "missed",
    Use.BROKEN: "broken",
}
MAX_NAMED = 5


def _outcome(found: Sequence[tuple[Subject, Draft[Use]]], details: ToolUsageDetails) -> Outcome:
    if missing := [(subject.name, draft) for subject, draft in found if draft.verdict is None]:
        named = "; ".join(f"{name} ({draft.reasoning})" for name, draft in missing[:MAX_NAMED])
        more = f"; and {len(missing) - MAX_NAMED} more" if len(missing) > MAX_NAMED else ""
        reason = f"{len(missing)} of {len(found)} tools and rules were not judged: {named}{more}"
        return Unscored(reason, details, failed=True)
    findings = [draft.verdict for _, draft in found if draft.verdict]
    score = tool_claims.score(findings)
    if score is None:
        return Unscored("Nothing of what the project offers applies to what was done.", details)
    applying = sum(finding in WORDS for finding in findings)
    counts = [f"{findings.count(use)} {words}" for use, words in WORDS.items() if use in findings]
    return Scored(
        score,
        f"{format_count(applying, 'tool or rule applies', 'tools and rules apply')}: {', '.join(counts)}.",
        details,
    )


FORMS = ToolPanel.forms


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
            RuleJudgement(rule=item.file, verdict=RuleVerdict.NOT_JUDGED, reasoning=silent)
            for item in manifest.items
            if item.is_followed and item.loaded
        ),
        not_loaded=tuple(entry for entry in entries if not entry.loaded and not entry.on_demand),
        manifest=entries,
        notes=manifest.notes,
    )


def _entry(item: ManifestItem, redact: Redactor) -> ManifestEntry:
    """An item without what makes a result large."""
    facts = {name: getattr(item, name) for name in ManifestEntry.model_fields}
    if item.description:
        facts["description"] = redact(shortened(item.description, SHORT))
    return ManifestEntry(**facts)


def _not_to_be_judged(context: EvalContext, manifest: ToolsManifest) -> str | None:
    """Why there is nothing to ask a judge."""
    steering = [item for item in manifest.items if item.kind in CALLED | FOLLOWED]
    if not steering:
        return NO_TOOLS
    if not context.transcript.status.is_valid:
        return "The session broke off, so its use of tools was not judged."
    if all(turn.synthetic for turn in context.transcript.turns):
        return "The model gave no response."
    if not any(item.loaded for item in steering):
        return "Nothing of what the project offers was loaded."
    return None
