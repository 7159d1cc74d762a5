"""What of a manifest a session really had: what its files promise, against what the session told."""

from collections.abc import Iterator
from dataclasses import dataclass
from posixpath import normpath
from typing import Any

from zelda_ci.domain import globs, tool_names
from zelda_ci.domain.manifest import ItemKind, ManifestItem, ToolsManifest
from zelda_ci.domain.session import SessionTranscript, Started
from zelda_ci.redact import EMPTY, Redactor, SafeText, joined

TOUCHING = {"Read": "file_path", "Edit": "file_path", "Write": "file_path", "NotebookEdit": "notebook_path"}
"""Tools that make Claude Code load what waits for a file; commands in a shell do not."""

NOT_TOLD = "Claude Code did not say why"


def settle(manifest: ToolsManifest, transcript: SessionTranscript, redact: Redactor) -> ToolsManifest:
    """The manifest with `loaded`, `on_demand`, `reason` and the servers' `tools` filled in.

    The session's init message decides wherever it speaks: on skills, commands, sub-agents and servers. Where it is
    silent (rules, CLAUDE.md files, hooks, what waits for a file) the rules of Claude Code decide, and the files that
    the session touched. Without an init message nothing was loaded.
    """
    if transcript.started is None:
        untold = {"loaded": False, "reason": redact("the session never came up")}
        return manifest.model_copy(update={"items": tuple(item.model_copy(update=untold) for item in manifest.items)})
    told = _Told(transcript.started, frozenset(_touched(manifest, transcript)))
    items = tuple(item.model_copy(update=_settled(item, told, redact)) for item in manifest.items)
    return manifest.model_copy(update={"items": items})


@dataclass(frozen=True)
class _Told:
    started: Started
    touched: frozenset[str]

    def names(self, kind: ItemKind) -> frozenset[str]:
        """What the init message lists; some skills stand only among the slash commands, some only among the skills."""
        match kind:
            case ItemKind.SKILL:
                return frozenset({*self.started.skills, *self.started.slash_commands})
            case ItemKind.COMMAND:
                return frozenset(self.started.slash_commands)
            case ItemKind.AGENT:
                return frozenset(self.started.agents)
            case _:
                return frozenset()

    def waited(self, item: ManifestItem) -> bool:
        """Whether a file came that an item waited for."""
        files = [file for file in self.touched if not item.below or file.startswith(f"{item.below}/")]
        if not item.paths:
            return bool(files)
        prefix = f"{item.base}/" if item.base else ""
        return any(globs.matches(item.paths, file.removeprefix(prefix)) for file in files if file.startswith(prefix))


def _settled(item: ManifestItem, told: _Told, redact: Redactor) -> dict[str, Any]:
    if item.kind is ItemKind.MCP_SERVER:
        return _server(item, told.started, redact)
    if _is_listed(item, told):
        return {"loaded": True}
    if item.problem:
        return {"loaded": False, "reason": item.problem}
    if item.below or item.paths:
        came = told.waited(item)
        waiting = redact("no file that it applies to was read or written with Claude Code's own tools")
        return {"loaded": True} if came else {"loaded": False, "on_demand": True, "reason": waiting}
    return {"loaded": False, "reason": redact(NOT_TOLD)} if item.announced else {"loaded": True}


def _is_listed(item: ManifestItem, told: _Told) -> bool:
    """Whether the session listed it, and not another file of the same name."""
    return item.name in told.names(item.kind) and not item.shadowed and not item.below


def _server(item: ManifestItem, started: Started, redact: Redactor) -> dict[str, Any]:
    prefix = f"{tool_names.server(item.name)}__"
    tools = tuple(tool for tool in started.tools if tool.startswith(prefix))
    status = next((server.status for server in started.mcp_servers if server.name == item.name), EMPTY)
    if item.shadowed:
        return {"loaded": False, "reason": item.problem}
    if tools or status == "connected":
        return {"loaded": True, "tools": tools}
    return {"loaded": False, "reason": _why_not(item, status, redact)}


def _why_not(item: ManifestItem, status: SafeText, redact: Redactor) -> SafeText:
    match status:
        case "":
            return item.problem or redact(NOT_TOLD)
        case "failed":
            return redact("it could not be started or reached")
        case "pending":
            return redact("it was still connecting when the session began")
        case _:
            return joined("", (redact("its status was "), status))


def _touched(manifest: ToolsManifest, transcript: SessionTranscript) -> Iterator[str]:
    """Files, relative to the top of the tree, that the session read or wrote with success."""
    top = f"{manifest.workspace or ''}/"
    for call in transcript.tool_calls:
        path = call.input.get(TOUCHING.get(call.name, ""))
        if isinstance(path, str) and not call.is_error and call.output is not None:
            absolute = normpath(path if path.startswith("/") else f"{top}{manifest.folder or ''}/{path}")
            if absolute.startswith(top):
                yield absolute.removeprefix(top)
