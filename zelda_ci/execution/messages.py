"""Messages of the Agent SDK as records, told apart by the name of their class: the SDK itself is not imported here."""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from zelda_ci.domain import kinds
from zelda_ci.domain.session import (
    AssistantSaid,
    Denied,
    Ended,
    HookRan,
    McpServer,
    McpServerState,
    ModelUsage,
    Noticed,
    PluginError,
    ResponseEnded,
    Retried,
    SessionImage,
    SessionRecord,
    Started,
    ToolCalled,
    ToolReturned,
    Usage,
    UserSaid,
)
from zelda_ci.execution.agent import KeepImage, MessageCheck
from zelda_ci.redact import Redactor, SafeText

# Model of texts that the CLI invented, errors above all.
SYNTHETIC = "<synthetic>"

# System messages that only drive a user interface, or repeat what another message says.
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
ENVELOPE = frozenset({"type", "subtype", "uuid", "session_id"})

# Of the type that a tool gives an image.
MAX_TYPE_LENGTH = 100

_TOKENS = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cache_read_input_tokens": "cache_read_tokens",
    "cache_creation_input_tokens": "cache_write_tokens",
}


class Translator:
    """Turns one session's messages into records, in order. Anything unknown becomes a notice.

    Args:
        redact: For all texts; the check of the transcript gets them as they came.
        clock: Seconds since the session's start.
        keep_image: Keeps images that tools return; without it they are only named.
        check: Checks what the messages say.
    """

    def __init__(
        self,
        redact: Redactor,
        clock: Callable[[], float],
        keep_image: KeepImage | None = None,
        check: MessageCheck | None = None,
    ) -> None:
        self._redact, self._clock, self._keep_image, self._check = redact, clock, keep_image, check
        self._at = 0.0
        self._started: Started | None = None
        self._open: tuple[SafeText, dict[str, Any]] | None = None
        self._counted: set[SafeText] = set()
        self._errors: dict[str, SafeText] = {}
        self._denied: set[str] = set()
        self._returned: set[str] = set()

    def translate(self, message: Any) -> Iterator[SessionRecord]:
        """Yield the records of one message; none for those that say nothing worth keeping."""
        self._at = round(self._clock(), 3)
        # By name, so that the SDK need not be imported, which takes long.
        match type(message).__name__:
            case "AssistantMessage":
                yield from self._assistant(message)
            case "UserMessage":
                yield from self._user(message)
            case "StreamEvent":
                yield from self._stream(message)
            case "ResultMessage":
                yield from self._result(message)
            case _ if hasattr(message, "data"):
                yield from self._system(message)
            case kind if isinstance(message, Exception):
                yield self.notice("unreadable", f"{kind}: {message}")
            case kind:
                yield self.notice(kind, _note_text(vars(message)))

    def notice(self, kind: str, text: str) -> Noticed:
        """Return the record of something that happened beside the messages, such as a line on standard error."""
        return Noticed(at=round(self._clock(), 3), kind=self._redact(kind), text=self._redact(text))

    def _assistant(self, message: Any) -> Iterator[SessionRecord]:
        thread, message_id = self._maybe(message.parent_tool_use_id), self._text(message.message_id or message.uuid)
        common: dict[str, Any] = {"at": self._at, "parent_tool_call_id": thread, "message_id": message_id}
        common["model"] = self._redact(message.model)
        check = None if message.model == SYNTHETIC else self._check
        for block in message.content:
            match type(block).__name__:
                case "TextBlock" | "ThinkingBlock" as kind:
                    thinking = kind == "ThinkingBlock"
                    text = block.thinking if thinking else block.text
                    if check:
                        check.said(str(message.message_id), text, thinking=thinking)
                    if text:
                        yield AssistantSaid(**common, text=self._redact(text), thinking=thinking)
                case "ToolUseBlock" | "ServerToolUseBlock":
                    if check:
                        check.called(str(message.message_id), block.id, block.name, block.input)
                    arguments = block.input if isinstance(block.input, dict) else {"input": block.input}
                    call, name = self._redact(block.id), self._redact(block.name)
                    yield ToolCalled(**common, id=call, name=name, input=self._redact.json(arguments))
                case _:
                    yield from self._result_block(block, thread)
        # Only a response that was not streamed comes with its end, and so with its final counts.
        if message.stop_reason and message.usage and message.model != SYNTHETIC and message_id not in self._counted:
            yield self._counts(message_id, message.usage, thread)

    def _user(self, message: Any) -> Iterator[SessionRecord]:
        thread = self._maybe(message.parent_tool_use_id)
        if isinstance(message.content, str):
            yield UserSaid(at=self._at, parent_tool_call_id=thread, text=self._redact(message.content))
            return
        for block in message.content:
            if type(block).__name__ == "TextBlock":
                yield UserSaid(at=self._at, parent_tool_call_id=thread, text=self._redact(block.text))
            else:
                yield from self._result_block(block, thread)

    def _result_block(self, block: Any, thread: SafeText | None) -> Iterator[SessionRecord]:
        kind = type(block).__name__
        if kind not in {"ToolResultBlock", "ServerToolResultBlock"}:
            yield self.notice(kind, _note_text(vars(block)))
            return
        if self._check and kind == "ToolResultBlock":
            self._check.returned(block.tool_use_id)
        text, images = _returned(block.content, self._keep_image)
        output, is_error = self._redact(text), bool(getattr(block, "is_error", False))
        if is_error:
            # A denial in the result has no reason; this error is the only place where it was given.
            self._errors[block.tool_use_id] = output
        self._returned.add(block.tool_use_id)
        call, at = self._redact(block.tool_use_id), self._at
        yield ToolReturned(
            at=at, parent_tool_call_id=thread, id=call, output=output, is_error=is_error, images=tuple(images)
        )

    def _stream(self, message: Any) -> Iterator[SessionRecord]:
        """Take only the final counts of a response from its stream: its blocks arrive whole besides."""
        event = message.event
        match event.get("type"):
            case "message_start":
                start = event.get("message") or {}
                if self._check:
                    self._check.began(str(start.get("id")))
                self._open = (self._text(start.get("id")), start.get("usage") or {})
            case "message_delta" if self._open:
                message_id, usage = self._open
                # Counts are cumulative, and the later event may lack some or repeat them as zero.
                later = event.get("usage") or {}
                self._open = (message_id, {key: max(usage.get(key) or 0, later.get(key) or 0) for key in _TOKENS})
            case "message_stop" if self._open:
                message_id, usage = self._open
                self._open = None
                yield self._counts(message_id, usage, self._maybe(message.parent_tool_use_id))

    def _counts(self, message_id: SafeText, usage: dict[str, Any], thread: SafeText | None) -> ResponseEnded:
        self._counted.add(message_id)
        counts = Usage(**{ours: usage.get(theirs) or 0 for theirs, ours in _TOKENS.items()})
        return ResponseEnded(at=self._at, parent_tool_call_id=thread, message_id=message_id, usage=counts)

    def _system(self, message: Any) -> Iterator[SessionRecord]:
        subtype, data, at, text = message.subtype, message.data, self._at, self._text
        call = data.get("tool_use_id")
        match subtype:
            case "init":
                # Every turn repeats it; it is worth recording where something changed.
                before, self._started = self._started, self._init(data)
                if before is None or before != self._started.replace(at=before.at):
                    yield self._started
            case "api_retry":
                yield Retried(
                    at=at,
                    attempt=int(data.get("attempt") or 0),
                    status=data.get("error_status"),
                    error=text(data.get("error")),
                    delay_seconds=(data.get("retry_delay_ms") or 0) / 1000,
                )
            case "permission_denied":
                self._denied.add(str(call))
                yield self._refused(data, text(data.get("message")))
            case "hook_response":
                output = "".join(str(data.get(stream) or "") for stream in ("stdout", "stderr"))
                yield HookRan(
                    at=at,
                    name=text(data.get("hook_name")),
                    event=text(data.get("hook_event")),
                    outcome=text(data.get("outcome")),
                    output=text(output or data.get("output")),
                    exit_code=code if isinstance(code := data.get("exit_code"), int) else None,
                )
            case "task_notification":
                # The CLI also makes a task of every call that takes some seconds. It ends just before the call returns,
                # which says the same, and whether it exists is a matter of the machine's load.
                if not call or str(call) in self._returned:
                    parent, said = text(call) if call else None, f"{data.get('status')}: {data.get('summary')}"
                    yield Noticed(at=at, parent_tool_call_id=parent, kind=text(subtype), text=text(said))
            case "status" if data.get("status") != "compacting" and "compact_result" not in data:
                pass
            case _ if subtype not in SILENT:
                yield Noticed(at=at, kind=text(subtype), text=text(_note_text(data)))
            case _:
                pass

    def _init(self, data: dict[str, Any]) -> Started:
        text = self._text

        def objects(key: str) -> list[dict[str, Any]]:
            return [item for item in _list(data.get(key)) if isinstance(item, dict)]

        def names(key: str) -> tuple[SafeText, ...]:
            return tuple(text(item.get("name") if isinstance(item, dict) else item) for item in _list(data.get(key)))

        return Started(
            at=self._at,
            session_id=text(data.get("session_id")),
            cli_version=text(data.get("claude_code_version")),
            model=text(data.get("model")),
            permission_mode=text(data.get("permissionMode")),
            tools=names("tools"),
            mcp_servers=tuple(
                McpServer(name=text(server.get("name")), status=text(server.get("status")))
                for server in objects("mcp_servers")
            ),
            skills=names("skills"),
            agents=names("agents"),
            slash_commands=names("slash_commands"),
            plugins=tuple(text(plugin.get("source") or plugin.get("name")) for plugin in objects("plugins")),
            plugin_errors=tuple(
                PluginError(plugin=text(error.get("plugin")), message=text(error.get("message")))
                for error in objects("plugin_errors")
            ),
        )

    def _refused(self, data: dict[str, Any], reason: SafeText | None) -> Denied:
        """Return the record of a refused tool call, of a message or of the list in the result."""
        call = data.get("tool_use_id")
        return Denied(
            at=self._at,
            tool=self._text(data.get("tool_name")),
            tool_call_id=self._text(call) if call else None,
            reason=reason or self._redact("refused by permissions or by a hook"),
        )

    def _result(self, message: Any) -> Iterator[SessionRecord]:
        # Deny rules and hooks refuse without a message of their own: only the result tells.
        for refused in message.permission_denials or ():
            if (call := str(refused.get("tool_use_id"))) not in self._denied:
                self._denied.add(call)
                yield self._refused(refused, self._errors.get(call))
        yield Ended(
            at=self._at,
            subtype=self._redact(message.subtype),
            is_error=message.is_error,
            terminal_reason=self._maybe(message.terminal_reason),
            stop_reason=self._maybe(message.stop_reason),
            api_error_status=message.api_error_status,
            turns=message.num_turns,
            api_seconds=message.duration_api_ms / 1000,
            cost_usd=message.total_cost_usd,
            model_usage={
                self._redact(name): ModelUsage(
                    input_tokens=usage.get("inputTokens") or 0,
                    output_tokens=usage.get("outputTokens") or 0,
                    cache_read_tokens=usage.get("cacheReadInputTokens") or 0,
                    cache_write_tokens=usage.get("cacheCreationInputTokens") or 0,
                    cost_usd=usage.get("costUSD") or 0.0,
                    cost_known=usage.get("costBasis") == "list",
                )
                for name, usage in (message.model_usage or {}).items()
            },
            text=self._maybe(message.result),
            errors=tuple(map(self._redact, message.errors or ())),
        )

    def _text(self, value: object) -> SafeText:
        """Mask a value of a message as text; an absent one is empty."""
        return self._redact(str(value or ""))

    def _maybe(self, text: str | None) -> SafeText | None:
        return None if text is None else self._redact(text)


def server_states(servers: Iterable[dict[str, Any]], redact: Redactor) -> Iterator[McpServerState]:
    """Yield the states of MCP servers, as Claude Code gives them on request."""
    for server in servers:
        name, error = str(server.get("name") or ""), server.get("error")
        tools = [tool["name"] for tool in _list(server.get("tools")) if isinstance(tool, dict) and tool.get("name")]
        yield McpServerState(
            name=redact(name),
            status=redact(str(server.get("status") or "")),
            error=redact(str(error)) if error else None,
            tools=tuple(redact(kinds.server(name, str(tool))) for tool in tools),
        )


def _returned(content: object, keep: KeepImage | None) -> tuple[str, list[SessionImage]]:
    """Return the text of a tool result, and its images as far as they are kept; the text says of others why not."""
    images: list[SessionImage] = []
    match content:
        case None:
            return "", images
        case str():
            return content, images
        case list():
            texts = []
            for block in content:
                texts.append(_block_text(block))
                match block:
                    case {"type": "image", "source": {"type": "base64", "data": str(data)}} if keep:
                        kept = keep(data)
                        if isinstance(kept, SessionImage):
                            images.append(kept)
                        else:
                            texts.append(f"[the image was not kept: {kept}]")
                    case _:
                        pass
            return "\n".join(texts), images
        case _:
            return _json(content), images


def _block_text(block: object) -> str:
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


def _note_text(data: dict[str, Any]) -> str:
    """Return the text of a system message: its own, or else its fields as JSON."""
    for key in ("content", "message", "text", "summary", "description"):
        if isinstance(text := data.get(key), str) and text:
            return text
    fields = {key: value for key, value in data.items() if key not in ENVELOPE and value is not None}
    return _json(fields) if fields else ""


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
