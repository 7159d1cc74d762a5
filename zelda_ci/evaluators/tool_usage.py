"""Whether a session made good use of what the project offers it: counted first, then judged."""

from typing import Final

from zelda_ci.domain.evaluation import EvalContext, Metric
from zelda_ci.domain.judgement import JudgeIdentity, RuleJudgement, RuleVerdict, ToolUsageDetails
from zelda_ci.domain.manifest import CALLED, READ, ManifestEntry, ManifestItem, ToolsManifest
from zelda_ci.domain.session import SessionStatus
from zelda_ci.errors import JudgeError
from zelda_ci.evaluators import tool_claims, tool_uses
from zelda_ci.evaluators.base import Outcome, Scored, Unscored
from zelda_ci.evaluators.tool_claims import Claims
from zelda_ci.evaluators.tool_usage_questions import PROMPT_VERSION, Questions
from zelda_ci.judge.base import Judge
from zelda_ci.redact import Redactor
from zelda_ci.transcript.synthesizer import Conclusion, Reading, Told, read

SHORT = 160
"""Characters of a description in the result: the whole is in the file."""

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
        return self._scored(conclusion, context, manifest, details.model_copy(update={"judge": judge}))

    async def _ask(
        self, context: EvalContext, manifest: ToolsManifest, details: ToolUsageDetails
    ) -> Conclusion[Claims]:
        judge = self._judge
        questions = Questions(context, manifest, details.uses, self._nonce, judge.context_tokens)

        async def conclude(told: Told) -> Claims:
            return (await judge.ask(questions.conclusion(told), Claims)).value

        reading = Reading[Claims, Claims](
            nonce=self._nonce,
            fixed_tokens=questions.conclusion(Told("", is_whole=True)).tokens,
            question=questions.part,
            finding=Claims,
            tell=questions.findings,
            conclude=conclude,
            merge=lambda found: tool_claims.united(found, self._redact),
        )
        return await read(context.transcript, judge, reading)

    def _scored(
        self, conclusion: Conclusion[Claims], context: EvalContext, manifest: ToolsManifest, details: ToolUsageDetails
    ) -> Scored:
        claims = conclusion.value
        checked = tool_claims.check(claims, manifest, details.used, context.transcript, self._redact)
        told = details.model_copy(
            update={
                "missed": checked.missed,
                "misused": checked.misused,
                "rules": checked.rules,
                "parts": conclusion.parts,
                "notes": (*details.notes, *map(self._redact, conclusion.notes), *checked.notes),
            }
        )
        return Scored(claims.effectiveness, claims.reasoning, told)


def _counted(context: EvalContext, manifest: ToolsManifest, redact: Redactor) -> ToolUsageDetails:
    """What is known without a judge."""
    uses = tool_uses.count(context.transcript, manifest, redact)
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
