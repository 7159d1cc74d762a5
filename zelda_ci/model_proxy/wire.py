"""What passes between the session's side and the API's side of the proxy: headers, JSON and server-sent events."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import orjson

from zelda_ci.redact import SafeText


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
    """Takes an answer as it arrives; the answer is over when the source returns."""

    async def start(self, status: int, headers: Headers) -> None:
        """Status and headers."""

    async def chunk(self, data: bytes) -> None:
        """The next bytes of the body."""


class Unreachable(Exception):  # noqa: N818 - what went wrong, not a kind of error
    """The API could not be reached, or gave nothing that can be passed on.

    Args:
        message: A sentence that names the address as it was configured.
        again: Whether it may be otherwise in a moment.
        abandoned: Whether the API has the request and may still answer, but the proxy stopped waiting.
    """

    def __init__(self, message: str, *, again: bool = True, abandoned: bool = False) -> None:
        super().__init__(message)
        self.again = again
        self.abandoned = abandoned


class BrokenOff(Exception):  # noqa: N818 - what went wrong, not a kind of error
    """The answer broke off before its end."""


class OverLimitError(BrokenOff):
    """The answer is larger, or takes longer, than the proxy lets it; the message says which limit."""


class RefusedHereError(Exception):
    """The proxy refuses a request: the error that it answers with, and what the user is told about the run."""

    def __init__(
        self, status: int, kind: str, message: str, headers: Headers | None = None, *, remark: str = ""
    ) -> None:
        super().__init__(message)
        self.remark = remark
        self.status, self.kind, self.message, self.headers = status, kind, message, headers or DO_NOT_RETRY


class AnswerSource(ABC):
    """Where the answers of a run come from: the API, or a cassette."""

    @abstractmethod
    async def answer(self, call: Call, sink: Sink) -> None:
        """Send the answer to `sink`.

        Raises:
            Unreachable: There is no answer.
            Throttled: The API refuses it for now; nothing was sent to the sink.
            BrokenOff: The answer ends here, incomplete.
        """


class CassetteState:
    """What there is to say about the cassette of a run; nothing where there is none."""

    failure: SafeText | None = None
    """Why the cassette could not answer or could not be written, in a sentence; None while all is well."""

    @property
    def remarks(self) -> Sequence[SafeText]:
        """What the user should know: that it could not be written, or where a replay was not exactly the recording."""
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
MAX_EVENT_BYTES = 8 << 20
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class EventReader:
    """Cuts a byte stream into the data of its events, however the network has cut it."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []
        self._size = 0
        self._ends_in_cr = False

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The data of every event that is complete now."""
        if self._ends_in_cr:
            # The network has cut a CR LF.
            chunk = chunk.removeprefix(b"\n")
        lines = (self._rest + chunk).splitlines(keepends=True)
        self._ends_in_cr = chunk.endswith(b"\r")
        self._rest = lines.pop() if lines and not lines[-1].endswith((b"\n", b"\r")) else b""
        for ended in lines:
            line = ended.rstrip(b"\r\n").removeprefix(BYTE_ORDER_MARK)
            if line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
                self._size += len(line)
            elif not line and self._data:
                yield b"\n".join(self._data)
                self._data, self._size = [], 0
        # Dropped rather than kept: the answer passes on as it is, only its price can no longer be read from it.
        if len(self._rest) + self._size > MAX_EVENT_BYTES:
            self._rest, self._data, self._size = b"", [], 0


def written(event: dict[str, Any]) -> bytes:
    """An event as the API writes it."""
    return b"event: %b\ndata: %b\n\n" % (str(event.get("type", "message")).encode(), write(event))
