"""What the judge of tool usage is asked, and what it gets to see: what was offered, what was called, what was said."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from zelda_ci.domain.evaluation import EvalContext
from zelda_ci.domain.judgement import ToolUse
from zelda_ci.domain.manifest import CALLED, READ, ItemKind, ManifestItem, ToolsManifest
from zelda_ci.evaluators.tool_claims import Claims, names_of
from zelda_ci.judge.base import CHARS_PER_TOKEN, Question
from zelda_ci.judge.fence import fence, mark_of
from zelda_ci.judge.prompts import render
from zelda_ci.transcript.chunker import windowed
from zelda_ci.transcript.synthesizer import CONTEXT_SHARE, Part, Told

NAME = "tool-usage"
PROMPT_VERSION = "1"

OFFER_SHARE = 0.15
"""Of the judge's context, for tools and rules together: they are sent again with every part of the transcript."""

LONGEST_DESCRIPTION = 600


@dataclass(frozen=True)
class Questions:
    """The questions about one session."""

    context: EvalContext
    manifest: ToolsManifest
    uses: Sequence[ToolUse]
    nonce: str
    context_tokens: int

    def conclusion(self, told: Told) -> Question:
        """About the session as a whole."""
        fixed = self._concluding("", is_whole=told.is_whole).tokens
        room = max(0, int(CONTEXT_SHARE * self.context_tokens) - fixed) * CHARS_PER_TOKEN
        # A whole transcript has been measured; findings can be longer than there is room for.
        text = told.text if told.is_whole else windowed(told.text, room)
        return self._concluding(text, is_whole=told.is_whole)

    def part(self, part: Part) -> Question:
        """About a part of its transcript."""
        transcript = fence("transcript", part.text, self.nonce)
        body = render("tool_usage_part", part=part, transcript=transcript, form=render("tool_usage_form"))
        return self._question(f"{NAME}-part", body)

    def findings(self, found: Sequence[Claims]) -> str:
        """What was found in the parts, as text."""
        told = (f"part {number}: {claims.model_dump_json()}" for number, claims in enumerate(found, start=1))
        return "\n\n".join(told)

    def _concluding(self, text: str, *, is_whole: bool) -> Question:
        told = fence("transcript" if is_whole else "findings", text, self.nonce)
        return self._question(NAME, render("tool_usage", told=told, is_whole=is_whole, form=render("tool_usage_form")))

    def _question(self, name: str, body: str) -> Question:
        system = render("tool_usage_system", nonce=self.nonce, mark=mark_of(self.nonce))
        return Question(name, PROMPT_VERSION, system, self._shared, body)

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
    described = " ".join((item.description or "no description").split())[:LONGEST_DESCRIPTION]
    alias = f" (also {names_of(item)[3]})" if item.label else ""
    note = f" ({item.note})" if item.note else ""
    return f"- {names}{alias} [{item.kind}]: {described}{note}"


def _rules(manifest: ToolsManifest, budget: int) -> str:
    rules = [item for item in manifest.items if item.kind in READ and item.loaded]
    each = budget // max(1, len(rules))
    return "\n\n".join(f"--- {item.file}\n{windowed(item.text or '(empty)', each)}" for item in rules) or "(none)"


def _use(use: ToolUse) -> str:
    trouble = [f"{number} {what}" for number, what in ((use.errors, "failed"), (use.denied, "denied")) if number]
    return f"- {use.tool}: {use.calls}" + (f" ({', '.join(trouble)})" if trouble else "")
