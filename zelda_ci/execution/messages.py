"""Messages of the Agent SDK as records, told apart by the name of their class: the SDK itself is not imported here."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from zelda_ci.domain import kinds, session
from zelda_ci.domain.session import McpServerState, Noticed, SessionImage, SessionRecord, Started
from zelda_ci.execution.launch import SessionRequest
from zelda_ci.execution.outcome import SessionFacts
from zelda_ci.model_proxy.pricing import count
from zelda_ci.model_proxy.wire import dicts
from zelda_ci.redact import Redactor, SafeText

# System messages that only drive a user interface, or repeat what another message says.
SILENT = frozenset({
    "commands_changed", "hook_progress", "hook_started", "task_progress", "task_started", "task_updated",
    "thinking_tokens", "ui_invalidate",
})  # fmt: skip
# So Claude Code answers where a hook or a rule refuses a call; of those of sub-agents, its result says nothing.
REFUSAL = re.compile(r"(?:PreToolUse:(\S+) hook error|Permission to use (\S+)(?: .*)? has been denied)", re.DOTALL)
ENVELOPE = frozenset({"type", "subtype", "uuid", "session_id"})


class Translator:
    """Turns one session's messages into records, in order, and notes in `facts` what its outcome rests on.

    Anything unknown becomes a notice. What a model said is checked, as it came, against what passed the session's
    meter. `clock` returns the seconds since the session's start.
    """

    def __init__(self, request: SessionRequest, redact: Redactor, clock: Callable[[], float]) -> None:
        self._redact, self._clock = redact, clock
        self._meter, self._keep_image = request.meter, request.keep_image
        self.facts = SessionFacts(is_command=request.prompt.lstrip().startswith("/"))
        self._at = 0.0
        self._started: Started | None = None
        self._uncounted: dict[str, SafeText | None] = {}
        """Threads of the responses whose tokens were not recorded yet, by their messages."""
        self._errors, self._denied, self._returned = dict[str, SafeText](), set[str](), set[str]()

    def translate(self, message: Any) -> Iterator[SessionRecord]:
        """Yield the records of one message; none for those that say nothing worth keeping."""
        self._at = round(self._clock(), 3)
        # By name, so that the SDK need not be imported, which takes long.
        name = type(message).__name__
        # The blocks of one response come one by one.
        if name != "AssistantMessage":
            yield from self._counts()
        match name:
            case "AssistantMessage":
                yield from self._assistant(message)
            case "UserMessage":
                thread, content = self._maybe(message.parent_tool_use_id), message.content
                if isinstance(content, str):
                    yield session.UserSaid(at=self._at, parent_tool_call_id=thread, text=self._redact(content))
                for block in () if isinstance(content, str) else content:
                    yield from self._block(block, thread)
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
        # A later answer without an error means that the earlier one was overcome.
        self.facts.api_error = message.error
        check = None if message.model == session.SYNTHETIC_MODEL else self._meter.transcript_check
        if check:
            self.facts.has_response = True
            self._uncounted[str(message.message_id)] = thread
        for block in message.content:
            match type(block).__name__:
                case "TextBlock" | "ThinkingBlock" as kind:
                    thinking = kind == "ThinkingBlock"
                    text = block.thinking if thinking else block.text
                    if check:
                        check.said(str(message.message_id), text, thinking=thinking)
                    if text:
                        yield session.AssistantSaid(**common, text=self._redact(text), thinking=thinking)
                case "ToolUseBlock" | "ServerToolUseBlock":
                    if check:
                        check.called(str(message.message_id), block.id, block.name, block.input)
                    arguments = block.input if isinstance(block.input, dict) else {"input": block.input}
                    call, name = self._redact(block.id), self._redact(block.name)
                    yield session.ToolCalled(**common, id=call, name=name, input=self._redact.json(arguments))
                case _:
                    yield from self._block(block, thread)

    def _counts(self) -> Iterator[session.ResponseEnded]:
        """Yield the tokens of the responses that have ended: the meter has all of an answer before Claude Code."""
        for message_id, thread in list(self._uncounted.items()):
            if usage := self._meter.usage_of(message_id):
                del self._uncounted[message_id]
                message = self._redact(message_id)
                yield session.ResponseEnded(at=self._at, parent_tool_call_id=thread, message_id=message, usage=usage)

    def _block(self, block: Any, thread: SafeText | None) -> Iterator[SessionRecord]:
        """Yield the record of a block of a user's message, or of what a tool returned."""
        kind, at = type(block).__name__, self._at
        if kind == "TextBlock":
            yield session.UserSaid(at=at, parent_tool_call_id=thread, text=self._redact(block.text))
            return
        if kind not in {"ToolResultBlock", "ServerToolResultBlock"}:
            yield self.notice(kind, _note_text(vars(block)))
            return
        if kind == "ToolResultBlock":
            self._meter.transcript_check.returned(block.tool_use_id)
        text, images = self._content(block.content)
        output, is_error = self._redact(text), bool(getattr(block, "is_error", False))
        if is_error:
            # A denial in the result has no reason; this error is the only place where it was given.
            self._errors[block.tool_use_id] = output
        self._returned.add(block.tool_use_id)
        call = self._redact(block.tool_use_id)
        yield session.ToolReturned(
            at=at, parent_tool_call_id=thread, id=call, output=output, is_error=is_error, images=tuple(images)
        )
        if is_error and block.tool_use_id not in self._denied and (refused := REFUSAL.match(text)):
            self._denied.add(block.tool_use_id)
            yield self._refused({"tool_name": refused[1] or refused[2], "tool_use_id": block.tool_use_id}, output)

    def _content(self, content: object) -> tuple[str, list[SessionImage]]:
        """Return the text of a tool result, and its images as far as they are kept; the text says of others why not."""
        texts, images = list[str](), list[SessionImage]()
        for block in content if isinstance(content, list) else filter(None, [content]):
            match block:
                case str() as text:
                    texts.append(text)
                case {"type": "text", "text": str(text)}:
                    texts.append(text)
                case {"type": str(kind), "source": {"data": str(data), "media_type": media_type}}:
                    texts.append(f"[{kind}: {media_type}, {len(data) * 3 // 4} bytes]")
                    kept = self._keep_image(data) if self._keep_image and kind == "image" else None
                    if isinstance(kept, SessionImage):
                        images.append(kept)
                    elif kept:
                        texts.append(f"[the image was not kept: {kept}]")
                case {"type": "image" | "document" as kind}:
                    # Whatever else it is: megabytes of base64 are no text.
                    texts.append(f"[{kind}]")
                case _:
                    texts.append(_json(block))
        return "\n".join(texts), images

    def _system(self, message: Any) -> Iterator[SessionRecord]:
        subtype, data, at, text = message.subtype, message.data, self._at, self._text
        call = data.get("tool_use_id")
        match subtype:
            case "init":
                # Every turn repeats it; it is worth recording where something changed.
                before, self._started = self._started, self._init(data)
                if before is None or before != self._started.replace(at=before.at):
                    yield self._started
            case "session_state_changed":
                self.facts.idle = data.get("state") == "idle"
            case "background_tasks_changed":
                self.facts.background_tasks = tuple(str(task.get("task_id")) for task in dicts(data.get("tasks")))
            case "api_retry":
                yield session.Retried(
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
                yield session.HookRan(
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

        def names(key: str) -> tuple[SafeText, ...]:
            items = listed if isinstance(listed := data.get(key), list) else ()
            return tuple(text(item.get("name") if isinstance(item, dict) else item) for item in items)

        servers, plugins, errors = (dicts(data.get(key)) for key in ("mcp_servers", "plugins", "plugin_errors"))
        return Started(
            at=self._at,
            session_id=text(data.get("session_id")),
            cli_version=text(data.get("claude_code_version")),
            model=text(data.get("model")),
            permission_mode=text(data.get("permissionMode")),
            tools=names("tools"),
            mcp_servers=tuple(
                session.McpServer(name=text(it.get("name")), status=text(it.get("status"))) for it in servers
            ),
            skills=names("skills"),
            agents=names("agents"),
            slash_commands=names("slash_commands"),
            plugins=tuple(text(it.get("source") or it.get("name")) for it in plugins),
            plugin_errors=tuple(
                session.PluginError(plugin=text(it.get("plugin")), message=text(it.get("message"))) for it in errors
            ),
        )

    def _refused(self, data: dict[str, Any], reason: SafeText | None) -> session.Denied:
        """Return the record of a refused tool call, of a message or of the list in the result."""
        tool, call = self._text(data.get("tool_name")), data.get("tool_use_id")
        reason = reason or self._redact("refused by permissions or by a hook")
        return session.Denied(at=self._at, tool=tool, tool_call_id=self._text(call) if call else None, reason=reason)

    def _result(self, message: Any) -> Iterator[SessionRecord]:
        # Some refuse without a message of their own: only the result tells.
        for refused in message.permission_denials or ():
            if (call := str(refused.get("tool_use_id"))) not in self._denied:
                self._denied.add(call)
                yield self._refused(refused, self._errors.get(call))
        # One without any content comes as no message.
        self.facts.has_response |= message.stop_reason is not None
        self.facts.ended = session.Ended(
            at=self._at,
            subtype=self._redact(message.subtype),
            is_error=message.is_error,
            terminal_reason=self._maybe(message.terminal_reason),
            stop_reason=self._maybe(message.stop_reason),
            api_error_status=message.api_error_status,
            turns=message.num_turns,
            api_seconds=message.duration_api_ms / 1000,
            cost_usd=_amount(message.total_cost_usd),
            model_usage={
                self._redact(name): session.ModelUsage(
                    input_tokens=count(usage, "inputTokens"),
                    output_tokens=count(usage, "outputTokens"),
                    cache_read_tokens=count(usage, "cacheReadInputTokens"),
                    cache_write_tokens=count(usage, "cacheCreationInputTokens"),
                    cost_usd=_amount(usage.get("costUSD")) or 0.0,
                    cost_known=usage.get("costBasis") == "list",
                )
                for name, usage in (message.model_usage or {}).items()
            },
            text=self._maybe(message.result),
            errors=tuple(map(self._redact, message.errors or ())),
        )
        yield self.facts.ended

    def _text(self, value: object) -> SafeText:
        """Mask a value of a message as text; an absent one is empty."""
        return self._redact(str(value or ""))

    def _maybe(self, text: str | None) -> SafeText | None:
        return None if text is None else self._redact(text)


def _amount(usd: float | None) -> float | None:
    """Return a cost that Claude Code computed, of what the API reported: nonsense such as a negative one is none."""
    return usd if usd is None or usd >= 0 else 0.0


def server_states(servers: object, redact: Redactor) -> tuple[McpServerState, ...]:
    """Return the states of MCP servers, as Claude Code gives them on request."""
    return tuple(
        McpServerState(
            name=redact(name := str(server.get("name") or "")),
            status=redact(str(server.get("status") or "")),
            error=redact(str(error)) if (error := server.get("error")) else None,
            tools=tuple(
                redact(kinds.server(name, str(tool["name"]))) for tool in dicts(server.get("tools")) if tool.get("name")
            ),
        )
        for server in dicts(servers)
    )


def _note_text(data: dict[str, Any]) -> str:
    """Return the text of a system message: its own, or else its fields as JSON."""
    for key in ("content", "message", "text", "summary", "description"):
        if isinstance(text := data.get(key), str) and text:
            return text
    fields = {key: value for key, value in data.items() if key not in ENVELOPE and value is not None}
    return _json(fields) if fields else ""


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
