"""What steers a session: skills, commands, sub-agents, rules, CLAUDE.md, hooks, MCP servers; and what was loaded."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from posixpath import normpath
from typing import Any, Literal

from zelda_ci.domain import globs
from zelda_ci.domain.base import Record
from zelda_ci.domain.kinds import FOLLOWED, KINDS, ItemKind, Shown
from zelda_ci.domain.session import McpServerState, SessionTranscript, Started, ToolCall
from zelda_ci.redact import EMPTY, Redactor, SafeText, joined

MAX_TOOL_NAME_LENGTH = 100


def label(call: ToolCall) -> str:
    """A tool by its name, a skill or sub-agent with its own; `Task` is what Claude Code called `Agent` before."""
    match call.name:
        case "Skill":
            return skill(call.input.get("skill"))
        case "Agent" | "Task":
            return _named("Agent", call.input.get("subagent_type"))
        case "Workflow" if call.input.get("name"):
            return skill(call.input.get("name"))
        case _:
            return call.name[:MAX_TOOL_NAME_LENGTH]


def skill(name: object) -> str:
    """A skill or a command of that name, which sessions may write with the slash of a command line."""
    return _named("Skill", name.removeprefix("/") if isinstance(name, str) else None)


def agent(name: str) -> str:
    """A sub-agent of that type."""
    return _named("Agent", name)


def server(name: str) -> str:
    """What the names of an MCP server's tools begin with, before the last two underscores."""
    return f"mcp__{_plain(name)}"


def server_tool(server_name: str, tool: str) -> str:
    """A tool of an MCP server."""
    return f"{server(server_name)}__{_plain(tool)}"


def _plain(name: str) -> str:
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)


def _named(kind: str, name: object) -> str:
    return f"{kind}({name[:MAX_TOOL_NAME_LENGTH]})" if isinstance(name, str) and name else kind


class ManifestEntry(Record):
    """One thing that steers, and whether the session had it."""

    kind: ItemKind
    name: SafeText
    """As the session knows it; of rules and CLAUDE.md files, the file."""
    description: SafeText | None = None
    file: SafeText
    """Relative to the top of the tested tree, with forward slashes."""
    loaded: bool = False
    on_demand: bool = False
    """True where it waited for a file to which it applies, and none was touched."""
    reason: SafeText | None = None
    """Why it was not loaded."""
    note: SafeText | None = None
    """What is unusual about it: a server that connected late or was lost, a sub-agent without CLAUDE.md files."""
    shown: Shown | None = None
    """What the model sees of it before a call, where it is something to call."""

    @property
    def tool(self) -> str:
        """Its name among the calls of a session; servers by what their tools' names begin with."""
        naming = {"Skill": skill, "Agent": agent, "mcp": server}.get(KINDS[self.kind].call)
        return naming(self.name) if naming else self.name


class ManifestItem(ManifestEntry):
    """An entry with all that its file says about when and how it is loaded."""

    label: SafeText | None = None
    """Another name under which a skill can be called: the one in its file, where its folder has another."""
    below: SafeText = EMPTY
    """The folder whose files it waits for; empty where it is there from the start."""
    base: SafeText = EMPTY
    """The folder that `paths` count from."""
    paths: tuple[SafeText, ...] = ()
    """Globs of the files it waits for."""
    announced: bool = True
    """False where Claude Code loads it without telling, so that its rules alone decide."""
    is_main: bool = False
    """True of the sub-agent as which the main thread itself runs: its text is in every request."""
    owner: SafeText | None = None
    """The call that a hook waits for, in the head of a skill or sub-agent; of parts of a plugin, the plugin."""
    text: SafeText | None = None
    """What a rule, a CLAUDE.md file or the main agent says, as far as it is kept."""
    problem: SafeText | None = None
    """Why, by the rules of its format, Claude Code does not load it."""
    shadowed: bool = False
    """True where another file of the same name takes its place."""
    tools: tuple[SafeText, ...] = ()
    """Of a server: what it offered at any time of the session."""

    @property
    def is_followed(self) -> bool:
        """Whether a session follows or breaks it, instead of calling it."""
        return self.kind in FOLLOWED or self.is_main

    @property
    def is_visible(self) -> bool:
        """Whether the model could have known of it."""
        return self.shown is not Shown.HIDDEN


class RefusedSetting(Record):
    """A settings file that Claude Code does not load, or an entry of it that it passes over."""

    file: SafeText
    """From the top of the tree."""
    key: SafeText
    """Of the entry; empty where the whole file is not loaded."""
    problem: SafeText
    """In Claude Code's words, without the full stop."""
    lost: str = ""
    """What of the file has no effect, like `4 hooks and 2 deny rules`."""

    def concerns(self, entry: str) -> bool:
        """Whether it is about an entry, something in it, or something around it."""
        return not self.key or f"{entry}.".startswith(f"{self.key}.") or self.key.startswith(f"{entry}.")

    @property
    def effect(self) -> str:
        """What became of it, without the name of the file."""
        verb = "has" if self.lost.startswith("1 ") and " and " not in self.lost else "have"
        lost = f"; {self.lost} {verb} no effect" if self.lost else ""
        entry = f", {self.key}" if self.key else ""
        return f"not loaded{entry}: {self.problem}{lost}"


class ToolsManifest(Record):
    """Everything that was found in the files, and what could not be looked at."""

    schema_version: Literal[1] = 1
    items: tuple[ManifestItem, ...] = ()
    settings: tuple[ManifestItem, ...] = ()
    """Settings and output styles: nothing that a session uses well or badly, but it feels them."""
    refused: tuple[RefusedSetting, ...] = ()
    """What Claude Code says that it does not load of the settings files, without a session."""
    notes: tuple[SafeText, ...] = ()
    """Files or limits that kept Zelda from seeing more, in sentences."""
    workspace: SafeText | None = None
    """Where the tree lay, as the session's paths begin."""
    folder: SafeText | None = None
    """Where the session worked."""


# Tools that make Claude Code load what waits for a file; commands in a shell do not.
TOUCHING = {"Read": "file_path", "Edit": "file_path", "Write": "file_path", "NotebookEdit": "notebook_path"}

NOT_TOLD = "Claude Code did not say why"

# Begins the note on a server that the session had begun without.
CONNECTED_LATE = "it connected late:"


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
    calls = frozenset(map(label, transcript.tool_calls))
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
    tools = tuple(dict.fromkeys([*listed, *(state.tools if state else ())]))
    if tools or (state and state.connected_at is not None) or _answered(prefix, session.transcript):
        return {"loaded": True, "tools": tools, "note": _note(state, redact)}
    return {"loaded": False, "reason": _why_not(item, state, redact)}


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
