"""Messages of the Agent SDK as records, told apart by the name of their class: the SDK itself is not imported here."""

from collections.abc import Callable, Iterator
from typing import Any

from zelda_ci.domain.session import (
    AssistantSaid,
    Ended,
    ModelUsage,
    Noticed,
    ResponseEnded,
    SessionRecord,
    Started,
    ToolCalled,
    ToolReturned,
    Usage,
    UserSaid,
)
from zelda_ci.execution import system_messages
from zelda_ci.redact import Redactor, SafeText

# Model of texts that the CLI invented, errors above all.
SYNTHETIC = "<synthetic>"


class Translator:
    """Turns one session's messages into records, in order. Anything unknown becomes a notice."""

    def __init__(
        self, redact: Redactor, clock: Callable[[], float], keep_image: system_messages.KeepImage | None = None
    ) -> None:
        """Take the clock that gives seconds since the session's start; without `keep_image`, images are only named."""
        self._redact, self._clock, self._keep_image = redact, clock, keep_image
        self._translations: dict[str, Callable[[Any, float], Iterator[SessionRecord]]] = {
            "AssistantMessage": self._assistant,
            "UserMessage": self._user,
            "StreamEvent": self._stream,
            "ResultMessage": self._result,
            "HookEventMessage": self._system,
            "Exception": self._unreadable,
            "SystemMessage": self._system,
        }
        self._started: Started | None = None
        self._open: tuple[SafeText, dict[str, Any]] | None = None
        self._counted: set[SafeText] = set()
        self._errors: dict[str, SafeText] = {}
        self._denied: set[str] = set()
        self._returned: set[str] = set()

    def translate(self, message: object) -> Iterator[SessionRecord]:
        """Records of one message; none for those that say nothing worth keeping."""
        seconds = round(self._clock(), 3)
        # By name, so that the SDK need not be imported, which takes half a second.
        names = (kind.__name__ for kind in type(message).__mro__)
        translation = next((self._translations[name] for name in names if name in self._translations), self._unknown)
        yield from translation(message, seconds)

    def notice(self, kind: str, text: str) -> Noticed:
        """Something that happened beside the messages, such as a line on standard error."""
        return Noticed(at=round(self._clock(), 3), kind=self._redact(kind), text=self._redact(text))

    def _unknown(self, message: object, _: float) -> Iterator[SessionRecord]:
        yield self.notice(
            type(message).__name__, system_messages.note_text(vars(message) if hasattr(message, "__dict__") else {})
        )

    def _unreadable(self, error: Any, _: float) -> Iterator[SessionRecord]:
        yield self.notice("unreadable", f"{type(error).__name__}: {error}")

    def _assistant(self, message: Any, seconds: float) -> Iterator[SessionRecord]:
        thread = self._maybe(message.parent_tool_use_id)
        message_id = self._redact(message.message_id or message.uuid or "")
        model = self._redact(message.model)
        for block in message.content:
            match type(block).__name__:
                case "TextBlock" | "ThinkingBlock" as kind:
                    thinking = kind == "ThinkingBlock"
                    if text := block.thinking if thinking else block.text:
                        yield AssistantSaid(
                            at=seconds,
                            parent_tool_call_id=thread,
                            message_id=message_id,
                            model=model,
                            text=self._redact(text),
                            thinking=thinking,
                        )
                case "ToolUseBlock" | "ServerToolUseBlock":
                    arguments = block.input if isinstance(block.input, dict) else {"input": block.input}
                    yield ToolCalled(
                        at=seconds,
                        parent_tool_call_id=thread,
                        message_id=message_id,
                        model=model,
                        id=self._redact(block.id),
                        name=self._redact(block.name),
                        input=self._redact.json(arguments),
                    )
                case _:
                    yield from self._result_block(block, thread, seconds)
        # Only a response that was not streamed comes with its end, and so with its final counts.
        if message.stop_reason and message.usage and message.model != SYNTHETIC and message_id not in self._counted:
            yield self._counts(message_id, message.usage, seconds, thread)

    def _user(self, message: Any, seconds: float) -> Iterator[SessionRecord]:
        thread = self._maybe(message.parent_tool_use_id)
        if isinstance(message.content, str):
            yield UserSaid(at=seconds, parent_tool_call_id=thread, text=self._redact(message.content))
            return
        for block in message.content:
            if type(block).__name__ == "TextBlock":
                yield UserSaid(at=seconds, parent_tool_call_id=thread, text=self._redact(block.text))
            else:
                yield from self._result_block(block, thread, seconds)

    def _result_block(self, block: Any, thread: SafeText | None, seconds: float) -> Iterator[SessionRecord]:
        if type(block).__name__ not in {"ToolResultBlock", "ServerToolResultBlock"}:
            yield self.notice(type(block).__name__, system_messages.note_text(vars(block)))
            return
        text, images = system_messages.returned(block.content, self._keep_image)
        output, is_error = self._redact(text), bool(getattr(block, "is_error", False))
        if is_error:
            # A denial in the result has no reason; this error is the only place where it was given.
            self._errors[block.tool_use_id] = output
        self._returned.add(block.tool_use_id)
        call = self._redact(block.tool_use_id)
        yield ToolReturned(
            at=seconds, parent_tool_call_id=thread, id=call, output=output, is_error=is_error, images=images
        )

    def _stream(self, message: Any, seconds: float) -> Iterator[SessionRecord]:
        """Only the final counts of a response are taken from its stream: its blocks arrive whole besides."""
        event, thread = message.event, self._maybe(message.parent_tool_use_id)
        match event.get("type"):
            case "message_start":
                start = event.get("message") or {}
                self._open = (self._redact(str(start.get("id") or "")), start.get("usage") or {})
            case "message_delta" if self._open:
                message_id, usage = self._open
                self._open = (message_id, _later(usage, event.get("usage") or {}))
            case "message_stop" if self._open:
                message_id, usage = self._open
                self._open = None
                yield self._counts(message_id, usage, seconds, thread)

    def _counts(
        self, message_id: SafeText, usage: dict[str, Any], seconds: float, thread: SafeText | None
    ) -> ResponseEnded:
        self._counted.add(message_id)
        return ResponseEnded(at=seconds, parent_tool_call_id=thread, message_id=message_id, usage=_usage(usage))

    def _system(self, message: Any, seconds: float) -> Iterator[SessionRecord]:
        if message.subtype == "permission_denied":
            self._denied.add(str(message.data.get("tool_use_id")))
        if message.subtype == "task_notification" and not self._is_from_background(message.data):
            return
        for record in system_messages.translate(message.subtype, message.data, seconds, self._redact):
            if not isinstance(record, Started) or self._is_news(record):
                yield record

    def _is_from_background(self, data: dict[str, Any]) -> bool:
        """Whether a task is told of whose call has returned before.

        The CLI also makes a task of every other call that takes some seconds; it ends just before the call returns,
        which says the same, and whether it exists is a matter of the machine's load.
        """
        call = data.get("tool_use_id")
        return not call or str(call) in self._returned

    def _is_news(self, started: Started) -> bool:
        """Every turn repeats the init message; it is worth recording where something changed."""
        before, self._started = self._started, started
        return before is None or before != started.replace(at=before.at)

    def _result(self, message: Any, seconds: float) -> Iterator[SessionRecord]:
        # Deny rules and hooks refuse without a message of their own: only the result tells.
        for refused in message.permission_denials or ():
            if (call := str(refused.get("tool_use_id"))) not in self._denied:
                self._denied.add(call)
                yield system_messages.denied(refused, self._errors.get(call), seconds, self._redact)
        yield Ended(
            at=seconds,
            subtype=self._redact(message.subtype),
            is_error=message.is_error,
            terminal_reason=self._maybe(message.terminal_reason),
            stop_reason=self._maybe(message.stop_reason),
            api_error_status=message.api_error_status,
            turns=message.num_turns,
            api_seconds=message.duration_api_ms / 1000,
            cost_usd=message.total_cost_usd,
            model_usage={
                self._redact(name): _model_usage(usage) for name, usage in (message.model_usage or {}).items()
            },
            text=self._maybe(message.result),
            errors=tuple(self._redact(error) for error in message.errors or ()),
        )

    def _maybe(self, text: str | None) -> SafeText | None:
        return None if text is None else self._redact(text)


def _later(earlier: dict[str, Any], later: dict[str, Any]) -> dict[str, Any]:
    """Counts are cumulative, and the later event may lack some or repeat them as zero."""
    return {key: max(earlier.get(key) or 0, later.get(key) or 0) for key in (*_TOKENS,)}


_TOKENS = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cache_read_input_tokens": "cache_read_tokens",
    "cache_creation_input_tokens": "cache_write_tokens",
}


def _usage(usage: dict[str, Any]) -> Usage:
    return Usage(**{ours: usage.get(theirs) or 0 for theirs, ours in _TOKENS.items()})


def _model_usage(usage: dict[str, Any]) -> ModelUsage:
    return ModelUsage(
        input_tokens=usage.get("inputTokens") or 0,
        output_tokens=usage.get("outputTokens") or 0,
        cache_read_tokens=usage.get("cacheReadInputTokens") or 0,
        cache_write_tokens=usage.get("cacheCreationInputTokens") or 0,
        cost_usd=usage.get("costUSD") or 0.0,
        cost_known=usage.get("costBasis") == "list",
    )
