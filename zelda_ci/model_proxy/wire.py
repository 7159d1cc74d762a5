"""What passes between the session's side and the API's side of the proxy: headers, JSON, messages and their events."""

import json
import re
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any

import orjson

from zelda_ci.redact import SafeText

# A CR at the end of what has come may be half of a CR LF.
LINE_END = re.compile(rb"\r\n|\n|\r(?!\Z)")
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

Headers = list[tuple[bytes, bytes]]
JSON = (b"content-type", b"application/json")
DO_NOT_RETRY: Headers = [(b"x-should-retry", b"false")]


def read_object(data: bytes) -> dict[str, Any] | None:
    """The JSON object in `data`, or None where there is none."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        # Python's own reader accepts lone surrogates, which a text cut in the middle of an emoji contains.
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, dict) else None


def write(value: Any) -> bytes:
    """Compact JSON with keys in their order."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value, separators=(",", ":")).encode()


def written(event: dict[str, Any]) -> bytes:
    """An event as the API writes it."""
    return b"event: %b\ndata: %b\n\n" % (str(event.get("type", "message")).encode(), write(event))


def error_body(kind: str, message: str) -> bytes:
    """Return the body of an error in the API's own shape."""
    return write({"type": "error", "error": {"type": kind, "message": message}})


def dicts(value: object) -> list[dict[str, Any]]:
    """Return the objects of a JSON list; none of anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def blocks(content: object) -> list[dict[str, Any]]:
    """Return the blocks of a message's content, also of one that is a string."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else dicts(content)


def texts(content: object) -> list[str]:
    """Return the texts of a message's content."""
    return [text for block in blocks(content) if isinstance(text := block.get("text"), str)]


@dataclass(frozen=True)
class Call:
    """One request of a session to the Messages API: path with query, headers in lower case, body as it is sent."""

    path: str
    headers: Headers = field(repr=False)
    raw_body: bytes = field(repr=False)
    body: dict[str, Any] = field(repr=False)

    @property
    def counts_tokens(self) -> bool:
        """Whether this only asks for a token count, which is free."""
        return self.path.split("?")[0].endswith("/count_tokens")

    @property
    def agent_id(self) -> str | None:
        """Id of the sub-agent that asks, None for the main thread."""
        return self.header("x-claude-code-agent-id")

    def header(self, name: str) -> str | None:
        """The header's value."""
        return next((value.decode("latin-1") for key, value in self.headers if key == name.encode()), None)


@dataclass(frozen=True)
class ApiAnswer:
    """An answer to a call: its headers in lower case, its body as it comes; `BrokenOff` where that is incomplete."""

    status: int
    headers: Headers
    chunks: AsyncGenerator[bytes, None]


async def once(body: bytes) -> AsyncGenerator[bytes, None]:
    """Yield a body that is known as a whole."""
    yield body


class AnswerEvents:
    """Reads events from the bytes of one answer, whatever its content type says: gateways have labels of their own."""

    def __init__(self) -> None:
        self._is_stream: bool | None = None
        # A message that comes whole, or the beginning of a line; and the event whose lines have come.
        self._rest, self._data = bytearray(), list[bytes]()

    def feed(self, data: bytes) -> Iterator[dict[str, Any]]:
        """Yield the events that are complete now, however the network cuts them; an empty one for what is no JSON."""
        self._rest += data
        if self._is_stream is None and (start := self._rest.lstrip()):
            # The first bytes tell a message from a stream.
            self._is_stream = not start.startswith(b"{")
        if not self._is_stream or not (b"\n" in data or b"\r" in data):
            return
        *lines, rest = LINE_END.split(self._rest)
        self._rest = bytearray(rest)
        for line in (bytes(each).removeprefix(BYTE_ORDER_MARK).strip() for each in lines):
            if line.startswith(b"data:"):
                self._data.append(line[5:])
            elif not line and self._data:
                event, self._data = read_object(b"\n".join(self._data)), []
                yield event or {}

    def end(self) -> Iterator[dict[str, Any]]:
        """Yield the events that a message or error would have been streamed in; none where the answer was not whole."""
        if self._is_stream:
            yield from self.feed(b"\n")
        elif (message := read_object(bytes(self._rest))) and "error" in message:
            yield {"type": "error", "error": message["error"]}
        elif message:
            yield {"type": "message_start", "message": message}
            for index, block in enumerate(dicts(message.get("content"))):
                yield {"type": "content_block_start", "index": index, "content_block": block}
                yield {"type": "content_block_stop", "index": index}
            yield {"type": "message_delta", "delta": {}, "usage": message.get("usage")}
            yield {"type": "message_stop"}


class RefusedHereError(Exception):
    """A request gets no answer: the error that the proxy answers with, and what the user is told about the run."""

    def __init__(self, status: int, kind: str, message: str, headers: Headers = DO_NOT_RETRY, remark: str = "") -> None:
        super().__init__(message)
        self.status, self.headers, self.body = status, [JSON, *headers], error_body(kind, message)
        self.remark = remark


class UnreachableError(RefusedHereError):
    """The API could not be reached, or gave nothing that can be passed on; the message names it as it was configured.

    `again`: it may be otherwise in a moment. `abandoned`: it may still answer, but the proxy stopped waiting.
    """

    def __init__(self, message: str, *, again: bool = True, abandoned: bool = False) -> None:
        # A status of the 5xx kind makes the CLI do what it does without any server, and shows the sentence.
        super().__init__(502, "api_error", message, [] if again else DO_NOT_RETRY)
        self.again, self.abandoned = again, abandoned


class BrokenOff(Exception):  # noqa: N818 - what went wrong, not a kind of error
    """The answer ends here, incomplete; the message says why where that was a limit of the proxy."""


AnswerRequest = Callable[[str, Headers, bytes], AbstractAsyncContextManager[ApiAnswer]]
"""A run, which answers a request with this path, these headers and this body; `RefusedHereError` where it does not."""

AnswerSource = Callable[[Call], AbstractAsyncContextManager[ApiAnswer]]
"""The API or a cassette, in whose block the body can be read; `RefusedHereError` where there is no answer."""


class CassetteState:
    """What there is to say about the cassette of a run; nothing where there is none."""

    failure: SafeText | None = None
    """Why the cassette could not answer or could not be written, in a sentence; None while all is well."""

    @property
    def remarks(self) -> Sequence[SafeText]:
        """What the user should know: that it could not be written, or where a replay was not exactly the recording."""
        return [self.failure] if self.failure else []
