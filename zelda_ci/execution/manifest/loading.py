"""What of the things that steer a session had, by its messages and requests, and by the rules of Claude Code.

Claude Code shortens its listing of skills: a description beyond a length, and all descriptions beyond a share of the
context. Deny rules withhold sub-agents, tools of servers, or the tool that calls skills.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from posixpath import normpath
from typing import Any

from zelda_ci.domain.kinds import CALLED, KINDS, ItemKind, Shown, server
from zelda_ci.domain.manifest import CONNECTED_LATE, ManifestItem, ToolsManifest
from zelda_ci.domain.session import McpServerState, SessionTranscript
from zelda_ci.execution.manifest.settings import denies
from zelda_ci.files import globs
from zelda_ci.redact import EMPTY, Redactor, SafeText, joined

# Tools that make Claude Code load what waits for a file; commands in a shell do not.
TOUCHING = {"Read": "file_path", "Edit": "file_path", "Write": "file_path", "NotebookEdit": "notebook_path"}
# What a listing of Claude Code's begins with, by the tool that calls what is in it.
LISTINGS = {"Skill": "skills are available for use with the Skill tool", "Agent": "Available agent types for the Agent"}
UNEXPLAINED = "Claude Code did not say why"
ONLY_NAME = "the model saw only its name: the listing of skills was full"
CUT = "the model saw only the beginning of its description"
UNLISTED = "Claude Code did not list it for the model"
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
    """Return the manifest with what the model saw, where that is otherwise than the files say.

    Args:
        manifest: What the project offers by its files.
        listings: Texts of requests that list what can be called.
        tools: Names of tools in requests; empty where there was no request.
        redact: For what the model saw.
    """
    texts = [redact(text) for text in listings]
    return manifest.replace(
        items=tuple(item.replace(**_listed(item, texts, tools, redact)) if tools else item for item in manifest.items)
    )


def _listed(item: ManifestItem, texts: Sequence[SafeText], tools: AbstractSet[str], redact: Redactor) -> dict[str, Any]:
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
        return {"shown": Shown.HIDDEN, "note": _noted(item, redact(UNLISTED))}
    seen, description = max(found, key=len), item.description or ""
    if description and not seen and item.shown is Shown.DESCRIPTION:
        return {"shown": Shown.NAME, "note": _noted(item, redact(ONLY_NAME))}
    is_cut = seen.endswith("…") and len(seen) < len(description)
    return {"description": redact(seen), "note": _noted(item, redact(CUT))} if is_cut else {}


def _noted(item: ManifestItem, note: SafeText) -> SafeText:
    return joined("; ", filter(None, (item.note, note)))


def resolve_loaded(manifest: ToolsManifest, transcript: SessionTranscript, redact: Redactor) -> ToolsManifest:
    """Return the manifest with `loaded`, `on_demand`, `reason` and the servers' `tools` and `note` filled in.

    The session's init message decides wherever it speaks: on skills, commands and sub-agents. Servers can come and go
    later: what was last heard of them decides, and calls that they answered. Where Claude Code is
    silent (rules, CLAUDE.md files, hooks, what waits for a file) the rules of Claude Code decide, and the files that
    the session touched. Without an init message nothing was loaded.
    """
    if transcript.started is None:
        why = redact("the session never came up")
        return manifest.replace(items=tuple(item.replace(loaded=False, reason=why) for item in manifest.items))
    session = _SessionAccount(manifest, transcript, redact)
    items = tuple(item.replace(**session.settled(item)) for item in manifest.items)
    absent = [item for item in items if item.kind is ItemKind.PLUGIN and not item.loaded]
    missing = [redact(f"The plugin {item.name} is not in the session: {item.reason}.") for item in absent]
    return manifest.replace(items=items, notes=(*manifest.notes, *missing))


class _SessionAccount:
    """What a session's messages say of the items of a manifest."""

    def __init__(self, manifest: ToolsManifest, transcript: SessionTranscript, redact: Redactor) -> None:
        self.transcript, self.started, self.redact = transcript, transcript.started, redact
        self.touched = frozenset(touched(manifest, transcript))
        self.calls = frozenset(call.label for call in transcript.tool_calls)

    def settled(self, item: ManifestItem) -> dict[str, Any]:
        """Return the fields of an item that say whether the session had it."""
        if item.kind is ItemKind.MCP_SERVER:
            return self._server(item)
        if item.denied:
            item = item.replace(note=_noted(item, self._denied(item.denied)))
        errors = self.started.plugin_errors if self.started and item.kind is ItemKind.PLUGIN else ()
        error = next((each.message for each in errors if each.plugin == item.name), None)
        # Not another file of the same name.
        if item.name in self._names(item.kind) and not item.shadowed and not item.below:
            return {"loaded": True, "note": item.note or error}
        # In the head of a skill or sub-agent; other owners are plugins.
        waits_for_call = item.owner is not None and item.owner.endswith(")")
        reason = item.problem or error
        if not reason and item.owner and not waits_for_call and item.owner not in self._names(ItemKind.PLUGIN):
            reason = self.redact(f"it is part of the plugin {item.owner}, which is not in the session")
        if not reason and item.announced and not (waits_for_call or item.below or item.paths):
            reason = self.redact(UNEXPLAINED)
        if reason:
            return {"loaded": False, "reason": reason}
        if waits_for_call and item.owner not in self.calls:
            return {"on_demand": True, "reason": joined("", (self.redact("it waits for "), item.owner or EMPTY))}
        if not waits_for_call and (item.below or item.paths) and not self._has_touched(item):
            return {"loaded": False, "on_demand": True, "reason": self.redact(WAITS_FOR_FILES)}
        return {"loaded": True}

    def _names(self, kind: ItemKind) -> frozenset[str]:
        """Return what the init message lists; some skills are only in one of its two lists."""
        return frozenset(name for each in KINDS[kind].listed for name in getattr(self.started, each))

    def _has_touched(self, item: ManifestItem) -> bool:
        """Return whether a file came that an item waited for."""
        prefix = f"{folder}/" if (folder := item.base or item.below) else ""
        files = (file.removeprefix(prefix) for file in self.touched if file.startswith(prefix))
        return any(not item.paths or globs.matches(item.paths, file) for file in files)

    def _server(self, item: ManifestItem) -> dict[str, Any]:
        if item.shadowed:
            return {"loaded": False, "reason": item.problem}
        prefix = f"{server(item.name)}__"
        state = next((server for server in self.transcript.mcp_servers if server.name == item.name), None)
        listed = [tool for tool in (self.started.tools if self.started else ()) if tool.startswith(prefix)]
        offered = tuple(dict.fromkeys([*listed, *(state.tools if state else ())]))
        # An error may be Claude Code's own, for want of the tool.
        calls = (call for call in self.transcript.tool_calls if call.name.startswith(prefix))
        has_answered = any(call.output is not None and not call.is_error for call in calls)
        if not (offered or has_answered or (state and state.connected_at is not None)):
            reason = self._explained(state) if state else item.problem or self.redact(UNEXPLAINED)
            return {"loaded": False, "reason": reason, "shown": None}
        rules = tuple(rule for rule in item.denied if any(denies(rule, tool) for tool in offered))
        # What the model saw is known, unless the run was ended.
        open_ = item.tools or tuple(tool for tool in offered if not any(denies(rule, tool) for rule in rules))
        note = joined("; ", filter(None, (self._note(state), self._denied(rules) if rules else None)))
        is_withheld = item.shown is Shown.HIDDEN or (offered and not open_)
        return {"loaded": True, "tools": open_, "note": note or None, "shown": Shown.HIDDEN if is_withheld else None}

    def _denied(self, rules: Iterable[SafeText]) -> SafeText:
        return joined("", (self.redact("denied by "), joined(", ", rules)))

    def _note(self, state: McpServerState | None) -> SafeText | None:
        """Return what is unusual about a server that was connected."""
        if state is None or state.connected_at is None:
            return None
        if state.status != "connected":
            return joined("", (self.redact("it was connected, and then lost: "), self._explained(state)))
        late = f"{CONNECTED_LATE} {state.connected_at:.1f} s after the start, when the session had already started"
        return self.redact(late) if state.late else None

    def _explained(self, state: McpServerState) -> SafeText:
        """Return a state other than connected in words."""
        words = STATES.get(state.status)
        explained = self.redact(words) if words else joined("", (self.redact("its status was "), state.status))
        return joined(": ", filter(None, (explained, state.error)))


def touched(manifest: ToolsManifest, transcript: SessionTranscript) -> Iterator[str]:
    """Yield files, relative to the top of the tree, that the session read or wrote with success."""
    for call in transcript.tool_calls:
        path = call.input.get(TOUCHING.get(call.name, ""))
        if isinstance(path, str) and not call.is_error and call.output is not None:
            yield from filter(None, [in_tree(path, manifest)])


def in_tree(path: str, manifest: ToolsManifest) -> str | None:
    """Return a path as the session wrote it, relative to the top of the tree; nothing where it leads elsewhere."""
    top = f"{manifest.workspace or ''}/"
    absolute = normpath(path if path.startswith("/") else f"{top}{manifest.folder or ''}/{path}")
    return absolute.removeprefix(top) if absolute.startswith(top) else None
