"""What passes between the session's side and the API's side of the proxy: headers, JSON and server-sent events."""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import orjson

from zelda_ci.model_proxy.patience import CallWait
from zelda_ci.redact import SafeText


def read_object(data: bytes) -> dict[str, Any] | None:
    """The JSON object in `data`, or None where there is none."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        value = _read_tolerantly(data)
    return value if isinstance(value, dict) else None


def _read_tolerantly(data: bytes) -> Any:
    """Python's own reader accepts lone surrogates, which a text cut in the middle of an emoji contains."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def write(value: Any) -> bytes:
    """Compact JSON with keys in their order."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value, separators=(",", ":")).encode()


Headers = list[tuple[bytes, bytes]]

JSON = (b"content-type", b"application/json")
DO_NOT_RETRY: Headers = [(b"x-should-retry", b"false")]


@dataclass(frozen=True)
class Call:
    """One request of a session to the Messages API; header names are in lower case."""

    path: str
    """With the query."""
    headers: Headers = field(repr=False)
    raw_body: bytes = field(repr=False)
    """As it goes to the API."""
    body: dict[str, Any] = field(repr=False)
    wait: CallWait = field(default_factory=CallWait, repr=False, compare=False)
    """How long it has waited for the API's limits, and may."""

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
        values = [value for key, value in self.headers if key == name.encode()]
        return values[0].decode("latin-1") if values else None


class Sink(Protocol):
    """Takes an answer as it arrives; returning from the last call does not end it, the source's return does."""

    async def start(self, status: int, headers: Headers) -> None:
        """Status and headers."""

    async def chunk(self, data: bytes) -> None:
        """The next bytes of the body."""


class Observer(Protocol):
    """Looks at an answer that passes by."""

    def start(self, status: int, headers: Headers) -> None:
        """Status and headers."""

    def chunk(self, data: bytes) -> None:
        """The next bytes of the body."""


class Tee:
    """A sink that shows everything to observers, one after the other, before it passes it on."""

    def __init__(self, sink: Sink, *observers: Observer) -> None:
        self._sink, self._observers = sink, observers

    async def start(self, status: int, headers: Headers) -> None:
        """Status and headers."""
        for observer in self._observers:
            observer.start(status, headers)
        await self._sink.start(status, headers)

    async def chunk(self, data: bytes) -> None:
        """The next bytes of the body."""
        for observer in self._observers:
            observer.chunk(data)
        await self._sink.chunk(data)


class Unreachable(Exception):  # noqa: N818 - what went wrong, not a kind of error
    """The API could not be reached, or gave nothing that can be passed on.

    Args:
        message: A sentence that names the address as it was configured.
        again: Whether it may be otherwise in a moment.
        is_left: Whether the API has the request, and nobody waits for its answer.
    """

    def __init__(self, message: str, *, again: bool = True, is_left: bool = False) -> None:
        super().__init__(message)
        self.again = again
        self.is_left = is_left


class BrokenOff(Exception):  # noqa: N818 - what went wrong, not a kind of error
    """The answer broke off before its end."""


class OverLimitError(BrokenOff):
    """The answer is larger, or takes longer, than the proxy lets it; the message says which limit."""


class AnswerSource(ABC):
    """Where the answers of one run come from."""

    failure: SafeText | None = None
    """Why answers could not be given or kept, in a sentence."""
    address: str = "the recording"
    """Who answers, as messages name it."""
    divergences: Sequence[SafeText] = ()
    """Where the run was not exactly what was recorded, without harm so far."""

    @abstractmethod
    async def answer(self, call: Call, sink: Sink) -> None:
        """Send the answer to `sink`.

        Raises:
            Unreachable: There is no answer.
            BrokenOff: The answer ends here, incomplete.
        """

    @property
    def unused(self) -> Sequence[SafeText]:
        """Recorded exchanges that nobody has asked for."""
        return ()


async def send_error(sink: Sink, status: int, kind: str, message: str, headers: Headers | None = None) -> None:
    """Answer with an error in the API's own JSON shape."""
    await send_whole(sink, status, [JSON, *(headers or [])], error_body(kind, message))


def error_body(kind: str, message: str) -> bytes:
    """An error in the API's own shape."""
    return write({"type": "error", "error": {"type": kind, "message": message}})


async def send_whole(sink: Sink, status: int, headers: Headers, body: bytes) -> None:
    """Answer with a body that is known as a whole."""
    await sink.start(status, [*headers, (b"content-length", b"%d" % len(body))])
    await sink.chunk(body)


# Of one event; a stream beyond it is not an event stream.
MAX_EVENT_BYTES = 16 << 20

# Atomic, or a single CR LF would be two ends.
_END = re.compile(rb"(?>\r\n|\n|\r){2}")


class EventReader:
    """Cuts a byte stream into the data of its events, however the network has cut it."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._searched = 0
        self.malformed = False
        """True once bytes were seen that are no event with JSON data."""

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The data of every event that is complete now."""
        self._buffer += chunk
        start = 0
        while end := _END.search(self._buffer, max(start, self._searched)):
            block = bytes(self._buffer[start : end.start()])
            start = self._searched = end.end()
            if data := self._data(block):
                yield data
        del self._buffer[:start]
        # An end can be split between chunks.
        self._searched = max(0, len(self._buffer) - 3)
        # Dropped rather than kept: the answer passes on as it is, only its price can no longer be read from it.
        if len(self._buffer) > MAX_EVENT_BYTES:
            self._buffer.clear()
            self._searched = 0
            self.malformed = True

    @property
    def rest(self) -> bytes:
        """Bytes of an event that has not ended."""
        # Of a CR LF that the network has cut, the end may be left.
        return bytes(self._buffer).removeprefix(b"\n")

    def _data(self, block: bytes) -> bytes:
        lines = block.splitlines()
        data = b"\n".join(line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:"))
        if not data and not all(line.startswith((b":", b"event:", b"id:", b"retry:")) for line in lines if line):
            self.malformed = True
        return data


def written(event: dict[str, Any]) -> bytes:
    """An event as the API writes it."""
    return b"event: %b\ndata: %b\n\n" % (str(event.get("type", "message")).encode(), write(event))
