"""Claude Code's system messages, blocks of content and MCP states as records."""

import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import anyio

from zelda_ci.domain import kinds
from zelda_ci.domain.session import (
    Denied,
    HookRan,
    McpServer,
    McpServerState,
    Noticed,
    PluginError,
    Retried,
    ServersReported,
    SessionImage,
    SessionRecord,
    Started,
)
from zelda_ci.redact import Redactor, SafeText

ENVELOPE = frozenset({"type", "subtype", "uuid", "session_id"})


class KeepImage(Protocol):
    """Keeps images that tools return."""

    def __call__(self, encoded: str) -> SessionImage | str:
        """The image, which came as base64, as it was kept; else why not, in a few words."""


def returned(content: object, keep: KeepImage | None) -> tuple[str, tuple[SessionImage, ...]]:
    """The text of a tool result, and its images as far as they are kept; the text says of the others why not."""
    if keep is None or not isinstance(content, list):
        return flatten(content), ()
    kept: list[SessionImage] = []
    texts: list[str] = []
    for block in content:
        texts.append(flatten([block]))
        if (encoded := _encoded_image(block)) is None:
            continue
        image = keep(encoded)
        if isinstance(image, SessionImage):
            kept.append(image)
        else:
            texts.append(f"[the image was not kept: {image}]")
    return "\n".join(texts), tuple(kept)


def _encoded_image(block: object) -> str | None:
    match block:
        case {"type": "image", "source": {"type": "base64", "data": str(data)}}:
            return data
        case _:
            return None


def flatten(content: object) -> str:
    """The text of a tool result: a string, or a list of blocks of which images and documents are only named."""
    match content:
        case None:
            return ""
        case str():
            return content
        case list():
            return "\n".join(_block(block) for block in content)
        case _:
            return _json(content)


def note_text(data: dict[str, Any]) -> str:
    """The text of a system message: its own, or else its fields as JSON."""
    for key in ("content", "message", "text", "summary", "description"):
        if isinstance(text := data.get(key), str) and text:
            return text
    fields = {key: value for key, value in data.items() if key not in ENVELOPE and value is not None}
    return _json(fields) if fields else ""


def texts(values: object) -> Iterable[str]:
    """Strings or names out of a list of the init message, whose items are strings or objects with a name."""
    if not isinstance(values, list):
        return ()
    return tuple(str(value.get("name", "")) if isinstance(value, dict) else str(value) for value in values)


# Of what a tool calls the type of an image.
MAX_TYPE_LENGTH = 100


def _block(block: object) -> str:
    match block:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": str(kind), "source": {"data": str(data), "media_type": str(media_type)}}:
            return f"[{kind}: {media_type[:MAX_TYPE_LENGTH]}, {len(data) * 3 // 4} bytes]"
        case {"type": "image" | "document" as kind}:
            # Whatever else it is: megabytes of base64 are no text.
            return f"[{kind}]"
        case str():
            return block
        case _:
            return _json(block)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


# Messages that only drive a user interface, or repeat what another message says.
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


def translate(subtype: str, data: dict[str, Any], seconds: float, redact: Redactor) -> Iterator[SessionRecord]:
    """Records of one system message, `data` being the message as the CLI wrote it."""
    match subtype:
        case "init":
            yield _started(data, seconds, redact)
        case "api_retry":
            yield _retried(data, seconds, redact)
        case "permission_denied":
            yield denied(data, redact(str(data.get("message") or "")), seconds, redact)
        case "hook_response":
            yield _hook(data, seconds, redact)
        case "task_notification":
            text = f"{data.get('status')}: {data.get('summary')}"
            call = data.get("tool_use_id")
            parent = redact(str(call)) if call else None
            yield Noticed(at=seconds, parent_tool_call_id=parent, kind=redact(subtype), text=redact(text))
        case _ if not _silent(subtype, data):
            yield Noticed(at=seconds, kind=redact(subtype), text=redact(note_text(data)))
        case _:
            pass


def denied(data: dict[str, Any], reason: SafeText | None, seconds: float, redact: Redactor) -> Denied:
    """A refused tool call, from a message or from the list in the result."""
    call = data.get("tool_use_id")
    return Denied(
        at=seconds,
        tool=redact(str(data.get("tool_name") or "")),
        tool_call_id=redact(str(call)) if call else None,
        reason=reason or redact("refused by permissions or by a hook"),
    )


def _started(data: dict[str, Any], seconds: float, redact: Redactor) -> Started:
    def text(key: str) -> SafeText:
        return redact(str(data.get(key) or ""))

    def names(key: str) -> tuple[SafeText, ...]:
        return tuple(redact(name) for name in texts(data.get(key)))

    def objects(key: str) -> list[dict[str, Any]]:
        listed = data.get(key)
        return [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []

    servers = objects("mcp_servers")
    return Started(
        at=seconds,
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
        plugins=tuple(redact(str(plugin.get("source") or plugin.get("name"))) for plugin in objects("plugins")),
        plugin_errors=tuple(
            PluginError(plugin=redact(str(error.get("plugin") or "")), message=redact(str(error.get("message") or "")))
            for error in objects("plugin_errors")
        ),
    )


def _retried(data: dict[str, Any], seconds: float, redact: Redactor) -> Retried:
    return Retried(
        at=seconds,
        attempt=int(data.get("attempt") or 0),
        status=data.get("error_status"),
        error=redact(str(data.get("error") or "")),
        delay_seconds=(data.get("retry_delay_ms") or 0) / 1000,
    )


def _hook(data: dict[str, Any], seconds: float, redact: Redactor) -> HookRan:
    output = "".join(str(data.get(stream) or "") for stream in ("stdout", "stderr"))
    return HookRan(
        at=seconds,
        name=redact(str(data.get("hook_name") or "")),
        event=redact(str(data.get("hook_event") or "")),
        outcome=redact(str(data.get("outcome") or "")),
        output=redact(output or str(data.get("output") or "")),
    )


def _silent(subtype: str, data: dict[str, Any]) -> bool:
    if subtype == "status":  # worth keeping only where it is about compaction
        return data.get("status") != "compacting" and "compact_result" not in data
    return subtype in SILENT


PENDING = "pending"

# While the prompt waits.
FAST_POLL_SECONDS = 0.1

# While the session works: only the report needs to know.
SLOW_POLL_SECONDS = 1.0

# Of the time that the session has left: a short one must not be spent on waiting.
MAX_SHARE_OF_SESSION = 0.5

Ask = Callable[[], Awaitable[Sequence[Mapping[str, Any]]]]


class ServerWatch:
    """Asks for the servers' states and passes on what has changed.

    Args:
        ask: Gives the states as the CLI writes them; raises where the CLI cannot be asked.
        report: Takes a record of every change.
        clock: Seconds since the session's start.
    """

    def __init__(
        self, ask: Ask, report: Callable[[ServersReported], None], clock: Callable[[], float], redact: Redactor
    ) -> None:
        self._ask, self._report, self._clock, self._redact = ask, report, clock, redact
        self._last: tuple[McpServerState, ...] = ()

    async def poll(self) -> bool:
        """Ask once; whether a server is still connecting."""
        servers = tuple(_states(await self._ask(), self._redact))
        if servers != self._last:
            self._last = servers
            self._report(ServersReported(at=round(self._clock(), 3), servers=servers))
        return any(server.status == PENDING for server in servers)

    async def wait(self, seconds: float) -> None:
        """Wait until every server is connected, or never will be, but not longer than that."""
        with anyio.move_on_after(seconds):
            await self._until_settled(FAST_POLL_SECONDS)

    async def follow(self) -> None:
        """Go on asking until every server is connected, or never will be."""
        await self._until_settled(SLOW_POLL_SECONDS)

    async def poll_finally(self, seconds: float) -> None:
        """Ask for the final states, unless there are no servers or nobody answers in that time."""
        if self._last:
            with anyio.move_on_after(seconds):
                await self.poll()

    async def _until_settled(self, interval: float) -> None:
        while await self.poll():  # noqa: ASYNC110 - the CLI announces no changes
            await anyio.sleep(interval)


def longest_wait(setting: float, seconds_left: float) -> float:
    """How long the prompt may wait, in a session that has that much time left."""
    return min(setting, seconds_left * MAX_SHARE_OF_SESSION)


def _states(servers: Iterable[Mapping[str, Any]], redact: Redactor) -> Iterable[McpServerState]:
    for server in servers:
        name, error = str(server.get("name") or ""), server.get("error")
        offered = server.get("tools")
        yield McpServerState(
            name=redact(name),
            status=redact(str(server.get("status") or "")),
            error=redact(str(error)) if error else None,
            tools=tuple(_tools(name, offered if isinstance(offered, list) else [], redact)),
        )


def _tools(server: str, offered: Iterable[Any], redact: Redactor) -> Iterable[SafeText]:
    for tool in offered:
        if isinstance(tool, dict) and tool.get("name"):
            yield redact(kinds.server(server, str(tool["name"])))
