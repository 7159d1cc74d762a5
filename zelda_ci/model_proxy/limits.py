"""How large a request, an answer or a recording may be, and how long each may take."""

from dataclasses import dataclass

from zelda_ci.model_proxy.wire import DO_NOT_RETRY, Headers, OverLimitError

MAX_RECORDING_BYTES = 256 << 20

MIB = 1 << 20


@dataclass(frozen=True)
class Limits:
    """Bytes and seconds; the defaults are far beyond what Claude Code and the API do."""

    request_bytes: int = 64 * MIB
    """Twice what the API takes."""
    answer_bytes: int = 64 * MIB
    """Three times the longest stream: 128,000 tokens, each in an event of its own."""
    error_bytes: int = MIB
    request_seconds: float = 120.0
    """For a request to arrive in full, from a process on the same machine."""
    connect_seconds: float = 10.0
    silence_seconds: float = 600.0
    """Without a byte from the API; Claude Code's own patience is shorter."""
    answer_seconds: float = 3600.0
    """For an answer to arrive in full: 128,000 tokens at 40 a second are 53 minutes."""


class RefusedHereError(Exception):
    """The proxy does not take a request; what is told instead of an answer."""

    def __init__(self, status: int, kind: str, message: str, headers: Headers) -> None:
        super().__init__(message)
        self.status, self.kind, self.message, self.headers = status, kind, message, headers


def refused_for_good(status: int, kind: str, message: str) -> RefusedHereError:
    """A refusal after which the connection is closed: the rest of the request is not read."""
    return RefusedHereError(status, kind, message, [(b"connection", b"close"), *DO_NOT_RETRY])


class AnswerLimit:
    """Observes that an answer is no larger than the limits say."""

    def __init__(self, limits: Limits) -> None:
        self._most = limits.answer_bytes
        self._size = 0

    def start(self, status: int, headers: Headers) -> None:  # as an observer is called
        """Status and headers; a length that is announced is believed."""
        length = dict(headers).get(b"content-length", b"")
        # Fifteen digits are more than any limit; Python takes long over numbers of a million digits.
        self._check(int(length[:15]) if length.isdigit() else 0)

    def chunk(self, data: bytes) -> None:
        """The next bytes of the body."""
        self._size += len(data)
        self._check(self._size)

    def _check(self, size: int) -> None:
        if size > self._most:
            raise OverLimitError(f"The API's answer is larger than the {in_mib(self._most)} that Zelda passes on")


def in_mib(count: int) -> str:
    """A number of bytes for people."""
    return f"{count // MIB} MiB" if count >= MIB and count % MIB == 0 else f"{count} bytes"
