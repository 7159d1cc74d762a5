"""What of the things that steer a session had, by its messages and by the rules of Claude Code."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from posixpath import normpath
from typing import Any

from zelda_ci.domain.kinds import KINDS, ItemKind, Shown, server
from zelda_ci.domain.manifest import CONNECTED_LATE, ManifestItem, ToolsManifest
from zelda_ci.domain.session import McpServerState, SessionTranscript, Started
from zelda_ci.execution.manifest.settings import denies
from zelda_ci.execution.manifest.told import noted
from zelda_ci.files import globs
from zelda_ci.redact import EMPTY, Redactor, SafeText, joined

# Tools that make Claude Code load what waits for a file; commands in a shell do not.
TOUCHING = {"Read": "file_path", "Edit": "file_path", "Write": "file_path", "NotebookEdit": "notebook_path"}

NOT_TOLD = "Claude Code did not say why"


def resolve_loaded(manifest: ToolsManifest, transcript: SessionTranscript, redact: Redactor) -> ToolsManifest:
    """The manifest with `loaded`, `on_demand`, `reason` and the servers' `tools` and `note` filled in.

    The session's init message decides wherever it speaks: on skills, commands and sub-agents. Servers can come and go
    later: what was last heard of them decides, and calls that they answered. Where Claude Code is
    silent (rules, CLAUDE.md files, hooks, what waits for a file) the rules of Claude Code decide, and the files that
    the session touched. Without an init message nothing was loaded.
    """
    if transcript.started is None:
        why = redact("the session never came up")
        return manifest.replace(items=tuple(item.replace(loaded=False, reason=why) for item in manifest.items))
    calls = frozenset(call.label for call in transcript.tool_calls)
    session = _SessionAccount(transcript, transcript.started, frozenset(touched(manifest, transcript)), calls)
    items = tuple(item.replace(**_settled(item, session, redact)) for item in manifest.items)
    absent = [item for item in items if item.kind is ItemKind.PLUGIN and not item.loaded]
    missing = [redact(f"The plugin {item.name} is not in the session: {item.reason}.") for item in absent]
    return manifest.replace(items=items, notes=(*manifest.notes, *missing))


@dataclass(frozen=True)
class _SessionAccount:
    transcript: SessionTranscript
    started: Started
    touched: frozenset[str]
    calls: frozenset[str]

    def names(self, kind: ItemKind) -> frozenset[str]:
        """What the init message lists; some skills stand only among the slash commands, some only among the skills."""
        return frozenset(name for each in KINDS[kind].listed for name in getattr(self.started, each))

    def waited(self, item: ManifestItem) -> bool:
        """Whether a file came that an item waited for."""
        files = [file for file in self.touched if not item.below or file.startswith(f"{item.below}/")]
        if not item.paths:
            return bool(files)
        prefix = f"{item.base}/" if item.base else ""
        return any(globs.matches(item.paths, file.removeprefix(prefix)) for file in files if file.startswith(prefix))


def _settled(item: ManifestItem, session: _SessionAccount, redact: Redactor) -> dict[str, Any]:
    if item.kind is ItemKind.MCP_SERVER:
        return _server(item, session, redact)
    if item.denied:
        item = item.replace(note=noted(item, _denied(item.denied, redact)))
    if _is_listed(item, session):
        return {"loaded": True, "note": item.note or _plugin_error(item, session)}
    if reason := _reason(item, session, redact):
        return {"loaded": False, "reason": reason}
    if _waits_for_a_call(item):
        waiting = joined("", (redact("it waits for "), item.owner or EMPTY))
        return {"loaded": True} if item.owner in session.calls else {"on_demand": True, "reason": waiting}
    if item.below or item.paths:
        came = session.waited(item)
        waiting = redact("no file that it applies to was read or written with Claude Code's own tools")
        return {"loaded": True} if came else {"loaded": False, "on_demand": True, "reason": waiting}
    return {"loaded": False, "reason": redact(NOT_TOLD)} if item.announced else {"loaded": True}


def _waits_for_a_call(item: ManifestItem) -> bool:
    return item.owner is not None and item.owner.endswith(")")


def _reason(item: ManifestItem, session: _SessionAccount, redact: Redactor) -> SafeText | None:
    """Why it cannot have been loaded, by its file, by Claude Code, or by the plugin that it belongs to."""
    if item.kind is ItemKind.PLUGIN:
        return item.problem or _plugin_error(item, session)
    is_lost = item.owner and not _waits_for_a_call(item) and item.owner not in session.names(ItemKind.PLUGIN)
    if is_lost and not item.problem:
        return redact(f"it is part of the plugin {item.owner}, which is not in the session")
    return item.problem


def _plugin_error(item: ManifestItem, session: _SessionAccount) -> SafeText | None:
    """What Claude Code says of a plugin that it could not load, or not all of it."""
    told = (error.message for error in session.started.plugin_errors if error.plugin == item.name)
    return next(told, None) if item.kind is ItemKind.PLUGIN else None


def _is_listed(item: ManifestItem, session: _SessionAccount) -> bool:
    """Whether the session listed it, and not another file of the same name."""
    return item.name in session.names(item.kind) and not item.shadowed and not item.below


def _server(item: ManifestItem, session: _SessionAccount, redact: Redactor) -> dict[str, Any]:
    if item.shadowed:
        return {"loaded": False, "reason": item.problem}
    prefix = f"{server(item.name)}__"
    state = next((server for server in session.transcript.mcp_servers if server.name == item.name), None)
    listed = [tool for tool in session.started.tools if tool.startswith(prefix)]
    offered = tuple(dict.fromkeys([*listed, *(state.tools if state else ())]))
    if not (offered or (state and state.connected_at is not None) or _answered(prefix, session.transcript)):
        return {"loaded": False, "reason": _why_not(item, state, redact), "shown": None}
    rules = tuple(rule for rule in item.denied if any(denies(rule, tool) for tool in offered))
    # What the model was told is known, unless the run was ended.
    open_ = item.tools or tuple(tool for tool in offered if not any(denies(rule, tool) for rule in rules))
    note = joined("; ", filter(None, (_note(state, redact), _denied(rules, redact) if rules else None)))
    is_withheld = item.shown is Shown.HIDDEN or (offered and not open_)
    return {"loaded": True, "tools": open_, "note": note or None, "shown": Shown.HIDDEN if is_withheld else None}


def _denied(rules: Iterable[SafeText], redact: Redactor) -> SafeText:
    return joined("", (redact("denied by "), joined(", ", rules)))


def _answered(prefix: str, transcript: SessionTranscript) -> bool:
    """Whether a tool of the server gave a result; an error may be Claude Code's own, for want of the tool."""
    calls = (call for call in transcript.tool_calls if call.name.startswith(prefix))
    return any(call.output is not None and not call.is_error for call in calls)


def _note(state: McpServerState | None, redact: Redactor) -> SafeText | None:
    if state is None:
        return None
    if state.status != "connected" and state.connected_at is not None:
        return joined("", (redact("it was connected, and then lost: "), _explained(state, redact)))
    if state.late and state.connected_at is not None:
        return redact(
            f"{CONNECTED_LATE} {state.connected_at:.1f} s after the start, when the session had already started"
        )
    return None


def _why_not(item: ManifestItem, state: McpServerState | None, redact: Redactor) -> SafeText:
    return (item.problem or redact(NOT_TOLD)) if state is None else _explained(state, redact)


def _explained(state: McpServerState, redact: Redactor) -> SafeText:
    """A state other than connected, in words."""
    match state.status:
        case "failed":
            state_text = redact("it could not be started or reached")
        case "pending":
            state_text = redact("it was still connecting when the session ended")
        case "needs-auth":
            state_text = redact("it asks for a login, which is not possible in a test run")
        case "disabled":
            state_text = redact("it is switched off")
        case _:
            state_text = joined("", (redact("its status was "), state.status))
    return joined(": ", (state_text, state.error)) if state.error else state_text


def touched(manifest: ToolsManifest, transcript: SessionTranscript) -> Iterator[str]:
    """Files, relative to the top of the tree, that the session read or wrote with success."""
    for call in transcript.tool_calls:
        path = call.input.get(TOUCHING.get(call.name, ""))
        if not isinstance(path, str) or call.is_error or call.output is None:
            continue
        if relative := in_tree(path, manifest):
            yield relative


def in_tree(path: str, manifest: ToolsManifest) -> str | None:
    """A path as the session wrote it, relative to the top of the tree; nothing where it leads elsewhere."""
    top = f"{manifest.workspace or ''}/"
    absolute = normpath(path if path.startswith("/") else f"{top}{manifest.folder or ''}/{path}")
    return absolute.removeprefix(top) if absolute.startswith(top) else None
