"""Claude Code's system messages as records; pure."""

from collections.abc import Iterator
from typing import Any

from zelda_ci.domain.session import Denied, HookRan, McpServer, Noticed, Retried, SessionRecord, Started
from zelda_ci.execution import content
from zelda_ci.redact import Redactor, SafeText

SILENT = frozenset(
    {
        "background_tasks_changed",
        "commands_changed",
        "hook_progress",
        "hook_started",
        "session_state_changed",
        "task_progress",
        "task_started",
        "task_updated",
        "thinking_tokens",
        "ui_invalidate",
    }
)
"""Messages that only drive a user interface, or repeat what another message says."""


def translate(subtype: str, data: dict[str, Any], at: float, redact: Redactor) -> Iterator[SessionRecord]:
    """Records of one system message, `data` being the message as the CLI wrote it."""
    match subtype:
        case "init":
            yield _started(data, at, redact)
        case "api_retry":
            yield _retried(data, at, redact)
        case "permission_denied":
            yield denied(data, redact(str(data.get("message") or "")), at, redact)
        case "hook_response":
            yield _hook(data, at, redact)
        case "task_notification":
            text = f"{data.get('status')}: {data.get('summary')}"
            call = data.get("tool_use_id")
            parent = redact(str(call)) if call else None
            yield Noticed(at=at, parent_tool_call_id=parent, kind=redact(subtype), text=redact(text))
        case _ if not _silent(subtype, data):
            yield Noticed(at=at, kind=redact(subtype), text=redact(content.note(data)))
        case _:
            pass


def denied(data: dict[str, Any], reason: SafeText | None, at: float, redact: Redactor) -> Denied:
    """A refused tool call, from a message or from the list in the result."""
    call = data.get("tool_use_id")
    return Denied(
        at=at,
        tool=redact(str(data.get("tool_name") or "")),
        tool_call_id=redact(str(call)) if call else None,
        reason=reason or redact("refused by permissions or by a hook"),
    )


def _started(data: dict[str, Any], at: float, redact: Redactor) -> Started:
    def text(key: str) -> SafeText:
        return redact(str(data.get(key) or ""))

    def names(key: str) -> tuple[SafeText, ...]:
        return tuple(redact(name) for name in content.texts(data.get(key)))

    servers = [server for server in data.get("mcp_servers") or () if isinstance(server, dict)]
    return Started(
        at=at,
        session_id=text("session_id"),
        cli_version=text("claude_code_version"),
        model=text("model"),
        permission_mode=text("permissionMode"),
        tools=names("tools"),
        mcp_servers=tuple(
            McpServer(name=redact(str(server.get("name") or "")), status=redact(str(server.get("status") or "")))
            for server in servers
        ),
        skills=names("skills"),
        agents=names("agents"),
        slash_commands=names("slash_commands"),
    )


def _retried(data: dict[str, Any], at: float, redact: Redactor) -> Retried:
    return Retried(
        at=at,
        attempt=int(data.get("attempt") or 0),
        status=data.get("error_status"),
        error=redact(str(data.get("error") or "")),
        delay_seconds=(data.get("retry_delay_ms") or 0) / 1000,
    )


def _hook(data: dict[str, Any], at: float, redact: Redactor) -> HookRan:
    output = "".join(str(data.get(stream) or "") for stream in ("stdout", "stderr"))
    return HookRan(
        at=at,
        name=redact(str(data.get("hook_name") or "")),
        event=redact(str(data.get("hook_event") or "")),
        outcome=redact(str(data.get("outcome") or "")),
        output=redact(output or str(data.get("output") or "")),
    )


def _silent(subtype: str, data: dict[str, Any]) -> bool:
    if subtype == "status":  # worth keeping only where it is about compaction
        return data.get("status") != "compacting" and "compact_result" not in data
    return subtype in SILENT
