"""What of the things that steer a session had, by its messages and requests, and by the rules of Claude Code.

Claude Code shortens its listing of skills: a description beyond a length, and all descriptions beyond a share of the
context. Deny rules withhold sub-agents, tools of servers, or the tool that calls skills.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from zelda_ci.domain.kinds import CALLED, KINDS, ItemKind, Shown, server
from zelda_ci.domain.manifest import CONNECTED_LATE, CUT, ONLY_NAME, UNLISTED, ManifestItem, ToolsManifest
from zelda_ci.domain.session import McpServerState, SessionTranscript, Started
from zelda_ci.execution.manifest.tree import MAX_DESCRIPTION_LENGTH, denies
from zelda_ci.files import globs
from zelda_ci.redact import Redactor

# Tools that make Claude Code load what waits for a file; commands in a shell do not.
TOUCHING = {"Read": "file_path", "Edit": "file_path", "Write": "file_path", "NotebookEdit": "notebook_path"}
# What a listing of Claude Code's begins with, by the tool that calls what is in it.
LISTINGS = {"Skill": "skills are available for use with the Skill tool", "Agent": "Available agent types for the Agent"}
UNEXPLAINED = "Claude Code did not say why"
WAITS_FOR_FILES = "no file that it applies to was read or written with Claude Code's own tools"
STATES = {
    "failed": "it could not be started or reached",
    "pending": "it was still connecting when the session ended",
    "needs-auth": "it asks for a login, which is not possible in a test run",
    "disabled": "it is switched off",
}


def note_listings(
    manifest: ToolsManifest, listings: Sequence[str], tools: AbstractSet[str], redact: Redactor
) -> ToolsManifest:
    """Return the manifest with what the model saw, by the listings in its requests, and by their tools."""
    if not tools:
        return manifest
    texts, offered = [redact(text) for text in listings], frozenset(map(redact, tools))
    return manifest.replace(items=tuple(_with(item, _listed(item, texts, offered), redact) for item in manifest.items))


def _with(item: ManifestItem, facts: Mapping[str, Any], redact: Redactor) -> ManifestItem:
    """Return an item with facts, of which texts of our own have safe ones in them."""
    return item.replace(**{key: redact(value) if type(value) is str else value for key, value in facts.items()})


def _listed(item: ManifestItem, texts: Sequence[str], tools: AbstractSet[str]) -> dict[str, Any]:
    if item.kind is ItemKind.MCP_SERVER and not item.shadowed:
        own = tuple(sorted(tool for tool in tools if tool.startswith(f"{item.tool}__")))
        return {"tools": own, "shown": None if own else Shown.HIDDEN}
    if item.kind not in CALLED or item.shown is Shown.HIDDEN or item.shadowed or item.problem:
        return {}
    call = KINDS[item.kind].call
    listings = [text for text in texts if LISTINGS[call] in text]
    if call in tools and not listings:
        # Nobody knows how this Claude Code lists it.
        return {}
    found = [match[1] or "" for match in listed_as(item, listings)]
    if not found:
        return {"shown": Shown.HIDDEN, "note": _joined(item.note, UNLISTED)}
    seen, description = max(found, key=len), item.description or ""
    if description and not seen and item.shown is Shown.DESCRIPTION:
        return {"shown": Shown.NAME, "note": _joined(item.note, ONLY_NAME)}
    # The scan cuts at the length at which Claude Code does where no setting says otherwise.
    is_longer = len(seen) < len(description) or len(description) >= MAX_DESCRIPTION_LENGTH
    is_cut = seen.endswith("…") and is_longer
    return {"description": seen, "note": _joined(item.note, CUT)} if is_cut else {}


def listed_as(item: ManifestItem, listings: Sequence[str]) -> list[re.Match[str]]:
    """Return the entries of something to call in listings, each with its description as the first group."""
    # Behind the name another may stand in brackets. Of sub-agents, descriptions keep their lines, and tools come last.
    name, end = rf"^- {re.escape(item.name)}(?: \([^\n]*?\))?", r" \(Tools: [^\n]*\)" * (item.kind is ItemKind.AGENT)
    entry = re.compile(rf"{name}(?:: (.*?{end}))?(?=\n- |\n\n|\Z)", re.MULTILINE | re.DOTALL)
    mark = LISTINGS[KINDS[item.kind].call]
    return [match for text in listings if mark in text and (match := entry.search(text))]


def _joined(*notes: str | None) -> str | None:
    return "; ".join(filter(None, notes)) or None


def resolve_loaded(manifest: ToolsManifest, transcript: SessionTranscript, redact: Redactor) -> ToolsManifest:
    """Return the manifest with `loaded`, `on_demand`, `reason` and the servers' `tools` and `note` filled in.

    The session's init message decides on skills, commands and sub-agents; of servers, which come and go later, what was
    last heard, and calls that they answered. Where Claude Code is silent (rules, CLAUDE.md files, hooks, what waits for
    a file) its rules decide, and the files that the session touched. Without an init message nothing was loaded.
    """
    if (started := transcript.started) is None:
        why = redact("the session never came up")
        return manifest.replace(items=tuple(item.replace(loaded=False, reason=why) for item in manifest.items))
    files, calls = frozenset(touched(manifest, transcript)), frozenset(call.label for call in transcript.tool_calls)
    items = []
    for item in manifest.items:
        is_server = item.kind is ItemKind.MCP_SERVER
        facts = _server(item, started, transcript) if is_server else _settled(item, started, files, calls)
        items.append(_with(item, facts, redact))
    absent = [item for item in items if item.kind is ItemKind.PLUGIN and not item.loaded]
    missing = [redact(f"The plugin {item.name} is not in the session: {item.reason}.") for item in absent]
    return manifest.replace(items=tuple(items), notes=(*manifest.notes, *missing))


def _settled(item: ManifestItem, started: Started, files: AbstractSet[str], calls: AbstractSet[str]) -> dict[str, Any]:
    """Return whether a session with these calls, that touched these files, had an item; some skills are in one list."""

    def listed(kind: ItemKind) -> frozenset[str]:
        return frozenset(name for each in KINDS[kind].listed for name in getattr(started, each))

    note = _joined(item.note, _denied(item.denied))
    errors = started.plugin_errors if item.kind is ItemKind.PLUGIN else ()
    error = next((each.message for each in errors if each.plugin == item.name), None)
    # Not another file of the same name.
    if item.name in listed(item.kind) and not item.shadowed and not item.below:
        return {"loaded": True, "note": note or error}
    # In the head of a skill or sub-agent; other owners are plugins.
    waits_for_call = item.owner is not None and item.owner.endswith(")")
    reason: str | None = item.problem or error
    if not reason and item.owner and not waits_for_call and item.owner not in listed(ItemKind.PLUGIN):
        reason = f"it is part of the plugin {item.owner}, which is not in the session"
    if not reason and item.announced and not (waits_for_call or item.below or item.paths):
        reason = UNEXPLAINED
    if reason:
        return {"loaded": False, "reason": reason}
    if waits_for_call and item.owner not in calls:
        return {"on_demand": True, "reason": f"it waits for {item.owner}"}
    begin = f"{folder}/" if (folder := item.base or item.below) else ""
    near = (file.removeprefix(begin) for file in files if file.startswith(begin))
    waits = not waits_for_call and (item.below or item.paths)
    if waits and not any(not item.paths or globs.matches(item.paths, file) for file in near):
        return {"loaded": False, "on_demand": True, "reason": WAITS_FOR_FILES}
    return {"loaded": True}


def _server(item: ManifestItem, started: Started, transcript: SessionTranscript) -> dict[str, Any]:
    if item.shadowed:
        return {"loaded": False, "reason": item.problem}
    prefix = f"{server(item.name)}__"
    state = next((server for server in transcript.mcp_servers if server.name == item.name), None)
    offered = [tool for tool in started.tools if tool.startswith(prefix)] + [*(state.tools if state else ())]
    # An error may be Claude Code's own, for want of the tool.
    calls = (call for call in transcript.tool_calls if call.name.startswith(prefix))
    has_answered = any(call.output is not None and not call.is_error for call in calls)
    if not (offered or has_answered or (state and state.connected_at is not None)):
        reason = _explained(state) if state else item.problem or UNEXPLAINED
        return {"loaded": False, "reason": reason, "shown": None}
    note = None
    if state and state.connected_at is not None:
        late = f"{CONNECTED_LATE} {state.connected_at:.1f} s after the start, when the session had already started"
        is_lost = state.status != "connected"
        note = f"it was connected, and then lost: {_explained(state)}" if is_lost else late if state.late else None
    rules = [rule for rule in item.denied if any(denies(rule, tool) for tool in offered)]
    # What the model saw is known, unless the run was ended.
    allowed = (tool for tool in dict.fromkeys(offered) if not any(denies(rule, tool) for rule in rules))
    tools = item.tools or tuple(allowed)
    is_withheld = item.shown is Shown.HIDDEN or (offered and not tools)
    shown = Shown.HIDDEN if is_withheld else None
    return {"loaded": True, "tools": tools, "note": _joined(note, _denied(rules)), "shown": shown}


def _denied(rules: Sequence[str]) -> str | None:
    return f"denied by {', '.join(rules)}" if rules else None


def _explained(state: McpServerState) -> str:
    """Return a state other than connected in words."""
    words = STATES.get(state.status, f"its status was {state.status}")
    return f"{words}: {state.error}" if state.error else words


def touched(manifest: ToolsManifest, transcript: SessionTranscript) -> Iterator[str]:
    """Yield files, relative to the top of the tree, that the session read or wrote with success."""
    for call in transcript.tool_calls:
        path = call.input.get(TOUCHING.get(call.name, ""))
        if isinstance(path, str) and not call.is_error and call.output is not None:
            yield from filter(None, [manifest.in_tree(path)])
