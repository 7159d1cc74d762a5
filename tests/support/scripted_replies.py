"""What a scripted Messages API may answer: whole messages as server-sent events or JSON, errors, garbage, silence."""

import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

_ANSWER_TOOL = re.compile(r"by calling the tool (answer_\w+)\.$")

INPUT_PIECE = 7
"""Characters of tool input per `input_json_delta`: small, so that paths and escapes are split in the middle."""


@dataclass(frozen=True)
class ApiRequest:
    """A request as the script sees it; header names are in lower case."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]
    raw_body: bytes = field(repr=False)
    agent: int | None
    """Ordinal of the sub-agent from 0, by first appearance; None in the main thread."""
    index: int
    """Position among the requests of the same thread, from 0."""

    @property
    def messages(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.body.get("messages", [])
        return found

    @property
    def answer_tool(self) -> str | None:
        """The tool by which a judge is to answer; nothing where this is no question to a judge."""
        first = list(_texts(self.messages[0]["content"])) if self.messages else []
        match = _ANSWER_TOOL.search(first[-1]) if first else None
        return match[1] if match else None

    @property
    def last_user_text(self) -> str:
        """Every text and tool result of the last user message, joined by newlines."""
        users = [message for message in self.messages if message["role"] == "user"]
        return "\n".join(_texts(users[-1]["content"])) if users else ""

    @property
    def tool_results(self) -> list[dict[str, Any]]:
        """Tool results of the whole conversation, in order."""
        blocks = [block for message in self.messages for block in _blocks(message["content"])]
        return [block for block in blocks if block.get("type") == "tool_result"]


class Wire(Protocol):
    """The server's side of one exchange."""

    def start(self, status: int, headers: Mapping[str, str], *, chunked: bool) -> None: ...
    def write(self, data: bytes) -> None: ...
    def finish_reply(self) -> None: ...
    def cut(self) -> None: ...
    def pause(self, seconds: float) -> None: ...
    def wait_for(self, gate: threading.Event) -> None: ...
    def wait_for_client_to_leave(self) -> None: ...


class Reply(Protocol):
    """One scripted answer."""

    def send(self, request: ApiRequest, wire: Wire) -> None: ...


@dataclass(frozen=True)
class Tokens:
    """What a message says it used."""

    input: int = 10
    output: int = 20
    cache_read: int = 0
    cache_write_5m: int = 0
    cache_write_1h: int = 0
    web_searches: int = 0

    def as_json(self, *, output: int | None = None) -> dict[str, Any]:
        """The API's usage object; `output` overrides the output tokens, which message_start does not know yet."""
        usage: dict[str, Any] = {
            "input_tokens": self.input,
            "cache_creation_input_tokens": self.cache_write_5m + self.cache_write_1h,
            "cache_read_input_tokens": self.cache_read,
            "cache_creation": {
                "ephemeral_5m_input_tokens": self.cache_write_5m,
                "ephemeral_1h_input_tokens": self.cache_write_1h,
            },
            "output_tokens": self.output if output is None else output,
            "service_tier": "standard",
        }
        if self.web_searches:
            usage["server_tool_use"] = {"web_search_requests": self.web_searches, "web_fetch_requests": 0}
        return usage


@dataclass(frozen=True)
class Message:
    """A model's message. Without `id`, it and its tool calls are named after thread and position."""

    content: tuple[dict[str, Any], ...]
    stop_reason: str = "end_turn"
    tokens: Tokens = Tokens()
    id: str | None = None
    model: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    """Seconds before each event after the first."""
    gate: threading.Event | None = None
    """Waited for after the first event."""
    cut: int | None = None
    """Number of events after which the connection breaks."""

    def send(self, request: ApiRequest, wire: Wire) -> None:
        message = self.as_json(request)
        if request.body.get("stream"):
            self._stream(message, wire)
        else:
            _send_json(wire, 200, message, self.headers)

    def as_json(self, request: ApiRequest) -> dict[str, Any]:
        """The message as `stream: false` gives it."""
        thread = "main" if request.agent is None else f"agent{request.agent}"
        name = f"{thread}_{request.index:03}"
        content = [
            {**block, "id": block.get("id") or f"toolu_{name}_{position}"} if block["type"] == "tool_use" else block
            for position, block in enumerate(self.content)
        ]
        return {
            "id": self.id or f"msg_{name}",
            "type": "message",
            "role": "assistant",
            "model": self.model or request.body.get("model", "claude-sonnet-5-5"),
            "content": content,
            "stop_reason": self.stop_reason,
            "stop_sequence": None,
            "usage": self.tokens.as_json(),
        }

    def _stream(self, message: dict[str, Any], wire: Wire) -> None:
        wire.start(200, {"content-type": "text/event-stream; charset=utf-8", **self.headers}, chunked=True)
        for position, event in enumerate(events(message, self.tokens)):
            if position == self.cut:
                wire.cut()
                return
            if position == 1 and self.gate:
                wire.wait_for(self.gate)
            if position and self.delay:
                wire.pause(self.delay)
            wire.write(sse(event))
        wire.finish_reply()


def events(message: dict[str, Any], tokens: Tokens) -> Iterator[dict[str, Any]]:
    """The events of a streamed message, as the API sends them."""
    head = {**message, "content": [], "stop_reason": None, "usage": tokens.as_json(output=1)}
    yield {"type": "message_start", "message": head}
    for index, block in enumerate(message["content"]):
        yield from _block_events(index, block)
        if index == 0:
            yield {"type": "ping"}
    delta = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": message["usage"]}
    yield {"type": "message_stop"}


def sse(event: dict[str, Any]) -> bytes:
    """One server-sent event."""
    return f"event: {event['type']}\ndata: {json.dumps(event, ensure_ascii=False)}\n\n".encode()


def _block_events(index: int, block: dict[str, Any]) -> Iterator[dict[str, Any]]:
    match block["type"]:
        case "tool_use":
            start, deltas = {**block, "input": {}}, _input_deltas(block["input"])
        case "thinking":
            start = {"type": "thinking", "thinking": "", "signature": ""}
            deltas = [
                *({"type": "thinking_delta", "thinking": piece} for piece in _pieces(block["thinking"])),
                {"type": "signature_delta", "signature": block["signature"]},
            ]
        case _:
            start = {"type": "text", "text": ""}
            deltas = [{"type": "text_delta", "text": piece} for piece in _pieces(block["text"])]
    yield {"type": "content_block_start", "index": index, "content_block": start}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


def _input_deltas(value: Any) -> list[dict[str, Any]]:
    pieces = ["", *_pieces(json.dumps(value), INPUT_PIECE)]
    return [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]


def _pieces(value: str, size: int = 0) -> list[str]:
    """Cut into pieces of `size`, or into at most four; an empty value is one empty piece."""
    size = size or max(8, -(-len(value) // 4))
    return [value[at : at + size] for at in range(0, len(value), size)] or [""]


@dataclass(frozen=True)
class Raw:
    """Bytes as they are, errors included. With `length` the body is announced longer or shorter than it is."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    length: int | None = None

    def send(self, request: ApiRequest, wire: Wire) -> None:
        length = len(self.body) if self.length is None else self.length
        wire.start(self.status, {"content-length": str(length), **self.headers}, chunked=False)
        wire.write(self.body)
        wire.finish_reply()
        if length != len(self.body):
            wire.cut()


@dataclass(frozen=True)
class Hang:
    """Silence until the client leaves or the server ends."""

    after_headers: bool = False

    def send(self, request: ApiRequest, wire: Wire) -> None:
        if self.after_headers:
            wire.start(200, {"content-type": "text/event-stream"}, chunked=True)
        wire.wait_for_client_to_leave()


def text(words: str, *, thinking: str | None = None, **options: Any) -> Message:
    """A message that only speaks; `options` are fields of `Message`."""
    return Message(content=(*_thinking(thinking), {"type": "text", "text": words}), **options)


def tool_call(name: str, tool_input: dict[str, Any], *, text: str | None = None, **options: Any) -> Message:
    """A message that calls one tool."""
    return tool_calls([(name, tool_input)], text=text, **options)


def tool_calls(
    calls: Sequence[tuple[str, dict[str, Any]]], *, text: str | None = None, thinking: str | None = None, **options: Any
) -> Message:
    """A message that calls several tools at once."""
    words = [{"type": "text", "text": text}] if text else []
    uses = [{"type": "tool_use", "name": name, "input": tool_input} for name, tool_input in calls]
    return Message(content=(*_thinking(thinking), *words, *uses), **{"stop_reason": "tool_use", **options})


def http_error(
    status: int, message: str = "scripted error", *, kind: str | None = None, headers: Mapping[str, str] | None = None
) -> Raw:
    """An error in the API's own JSON shape."""
    kinds = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 413: "request_too_large"}
    kinds |= {400: "invalid_request_error", 429: "rate_limit_error", 529: "overloaded_error"}
    error = {"type": kind or kinds.get(status, "api_error"), "message": message}
    body = json.dumps({"type": "error", "error": error, "request_id": "req_scripted"}).encode()
    base = {"content-type": "application/json", "request-id": "req_scripted"}
    return Raw(body, status, {**base, **(headers or {})})


def raw(body: bytes, *, status: int = 200, headers: Mapping[str, str] | None = None, length: int | None = None) -> Raw:
    """Any bytes at all."""
    return Raw(body, status, headers or {"content-type": "text/event-stream; charset=utf-8"}, length)


def hang(*, after_headers: bool = False) -> Hang:
    """No answer."""
    return Hang(after_headers)


def cut_after(events: int, reply: Message | None = None) -> Message:
    """The message breaks off after that many events."""
    return replace(reply or text("These words are cut off in the middle."), cut=events)


def _send_json(wire: Wire, status: int, value: Any, headers: Mapping[str, str]) -> None:
    body = json.dumps(value).encode()
    wire.start(status, {"content-type": "application/json", "content-length": str(len(body)), **headers}, chunked=False)
    wire.write(body)
    wire.finish_reply()


def _thinking(words: str | None) -> list[dict[str, Any]]:
    return [{"type": "thinking", "thinking": words, "signature": "c2lnbmF0dXJl"}] if words else []


def _blocks(content: str | list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _texts(content: str | list[dict[str, Any]]) -> Iterator[str]:
    for block in _blocks(content):
        if block.get("type") == "tool_result":
            yield from _texts(block.get("content", ""))
        elif "text" in block:
            yield block["text"]
