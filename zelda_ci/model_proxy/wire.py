"""What passes between the session's side and the API's side of the proxy: headers, JSON and server-sent events."""

import json
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any

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
        return next((value.decode("latin-1") for key, value in self.headers if key == name.encode()), None)


@dataclass(frozen=True)
class ApiAnswer:
    """An answer to a call: its status, its headers in lower case, and its body as it comes."""

    status: int
    headers: Headers
    chunks: AsyncGenerator[bytes, None]
    """Raises `BrokenOff` where the body is incomplete."""


async def once(body: bytes) -> AsyncGenerator[bytes, None]:
    """Yield a body that is known as a whole."""
    yield body


def error_body(kind: str, message: str) -> bytes:
    """Return the body of an error in the API's own shape."""
    return write({"type": "error", "error": {"type": kind, "message": message}})


class RefusedHereError(Exception):
    """A request gets no answer: the error that the proxy answers with, and what the user is told about the run."""

    def __init__(self, status: int, kind: str, message: str, headers: Headers = DO_NOT_RETRY, remark: str = "") -> None:
        super().__init__(message)
        self.status, self.headers, self.body = status, [JSON, *headers], error_body(kind, message)
        self.remark = remark


class UnreachableError(RefusedHereError):
    """The API could not be reached, or gave nothing that can be passed on.

    Args:
        message: A sentence that names the address as it was configured.
        again: Whether it may be otherwise in a moment.
        abandoned: Whether the API has the request and may still answer, but the proxy stopped waiting.
    """

    def __init__(self, message: str, *, again: bool = True, abandoned: bool = False) -> None:
        # A status of the 5xx kind makes the CLI do what it does without any server, and shows the sentence.
        super().__init__(502, "api_error", message, [] if again else DO_NOT_RETRY)
        self.again, self.abandoned = again, abandoned


class BrokenOff(Exception):  # noqa: N818 - what went wrong, not a kind of error
    """The answer ends here, incomplete; the message says why where that was a limit of the proxy."""


AnswerRequest = Callable[[str, Headers, bytes], AbstractAsyncContextManager[ApiAnswer]]
"""A run, which answers a request with this path, these headers and this body."""

AnswerSource = Callable[[Call], AbstractAsyncContextManager[ApiAnswer]]
"""The API or a cassette; the answer's body can be read within the block.

Raises:
    RefusedHereError: There is no answer.
"""


class CassetteState:
    """What there is to say about the cassette of a run; nothing where there is none."""

    failure: SafeText | None = None
    """Why the cassette could not answer or could not be written, in a sentence; None while all is well."""

    @property
    def remarks(self) -> Sequence[SafeText]:
        """What the user should know: that it could not be written, or where a replay was not exactly the recording."""
        return [self.failure] if self.failure else []


def written(event: dict[str, Any]) -> bytes:
    """An event as the API writes it."""
    return b"event: %b\ndata: %b\n\n" % (str(event.get("type", "message")).encode(), write(event))
