"""What the model was really told of what it may call, by the requests that a session sent.

Claude Code shortens its listing of skills: a description beyond a length, and all descriptions beyond a share of the
context. Deny rules withhold sub-agents, tools of servers, or the tool that calls skills.
"""

import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from zelda_ci.domain.kinds import CALLED, KINDS, ItemKind, Shown
from zelda_ci.domain.manifest import ManifestItem, ToolsManifest
from zelda_ci.redact import Redactor, SafeText, joined

# What a listing of Claude Code's begins with, by the tool that calls what is in it.
LISTINGS = {"Skill": "skills are available for use with the Skill tool", "Agent": "Available agent types for the Agent"}
ONLY_NAME = "Claude Code told the model only its name: the listing of skills was full"
CUT = "Claude Code told the model only the beginning of its description"
UNTOLD = "Claude Code told the model nothing of it"


def as_told(
    manifest: ToolsManifest, listings: Sequence[str], tools: AbstractSet[str], redact: Redactor
) -> ToolsManifest:
    """The manifest with what the model was told, where that is otherwise than the files say.

    Args:
        manifest: What the project offers by its files.
        listings: Texts of requests that list what can be called.
        tools: Names of tools that requests told the model; empty where there was no request.
        redact: For what was told.
    """
    texts = [redact(text) for text in listings]
    return manifest.replace(
        items=tuple(item.replace(**_told(item, texts, tools, redact)) if tools else item for item in manifest.items)
    )


def _told(item: ManifestItem, texts: Sequence[SafeText], tools: AbstractSet[str], redact: Redactor) -> dict[str, Any]:
    if item.kind is ItemKind.MCP_SERVER and not item.shadowed:
        own = sorted(tool for tool in tools if tool.startswith(f"{item.tool}__"))
        return {"tools": tuple(redact(tool) for tool in own), "shown": None if own else Shown.HIDDEN}
    if item.kind not in CALLED or item.shown is Shown.HIDDEN or item.shadowed or item.problem:
        return {}
    call = KINDS[item.kind].call
    listings = [text for text in texts if LISTINGS[call] in text]
    if call in tools and not listings:
        # Nobody knows how this Claude Code lists it.
        return {}
    # Behind the name another may stand in brackets.
    name = rf"^- {re.escape(item.name)}(?: \([^\n]*?\))?"
    entry = re.compile(rf"{name}(?:: (.*?))?(?=\n- |\n\n|\Z)", re.MULTILINE | re.DOTALL)
    found = [match[1] or "" for text in listings if (match := entry.search(text))]
    if not found:
        return {"shown": Shown.HIDDEN, "note": noted(item, redact(UNTOLD))}
    told, description = max(found, key=len), item.description or ""
    if description and not told and item.shown is Shown.DESCRIPTION:
        return {"shown": Shown.NAME, "note": noted(item, redact(ONLY_NAME))}
    is_cut = told.endswith("…") and len(told) < len(description)
    return {"description": redact(told), "note": noted(item, redact(CUT))} if is_cut else {}


def noted(item: ManifestItem, note: SafeText) -> SafeText:
    """The note on an item, with one more."""
    return joined("; ", (item.note, note)) if item.note else note
