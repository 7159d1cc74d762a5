"""The smallest request to a model: whether it answers, and to whom, before a session depends on it."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import anyio

from zelda_ci.model_proxy import wire
from zelda_ci.model_proxy.run import ProxyRun
from zelda_ci.model_proxy.wire import BrokenOff, Headers

# A session would wait, and ask again, where there is no answer; so does the check, in all and for one attempt.
PATIENCE_SECONDS, ATTEMPT_SECONDS = 60.0, 30.0
# Before each further attempt.
PAUSES = (0.5, 1.0, 2.0, 4.0)
MAX_KEPT_BYTES = 1 << 20
HEADERS: Headers = [
    (b"content-type", b"application/json"),
    (b"anthropic-version", b"2023-06-01"),
    (b"user-agent", b"zelda-ci (check)"),
]


@dataclass(frozen=True)
class Probe:
    """What came back."""

    status: int | None
    """Of the API's answer; absent where there was none."""
    message: str
    """What the API said, or why there was no answer."""
    seconds: float
    cost_usd: float


class _KeptAnswer:
    """A sink that keeps the answer."""

    def __init__(self) -> None:
        self.status: int | None = None
        self.body = bytearray()
        self.is_final = False
        """Whether another attempt would end in the same way."""

    async def start(self, status: int, headers: Headers) -> None:
        self.status, self.is_final = status, (b"x-should-retry", b"false") in headers

    async def chunk(self, data: bytes) -> None:
        if len(self.body) < MAX_KEPT_BYTES:
            self.body += data

    @property
    def is_message(self) -> bool:
        """Whether a model has spoken."""
        return "content" in (wire.read_object(bytes(self.body)) or {})

    @property
    def is_cut(self) -> bool:
        """Whether it is the beginning of a message."""
        return self.body.lstrip().startswith(b"{") and wire.read_object(bytes(self.body)) is None

    @property
    def message(self) -> str:
        """The words of an error, or else the beginning of what came."""
        error = (wire.read_object(bytes(self.body)) or {}).get("error")
        said = error.get("message") if isinstance(error, dict) else error
        return said if isinstance(said, str) else self.body[:200].decode("utf-8", "replace")


async def probe(run: ProxyRun, model: str, address: str, tell: Callable[[str], None]) -> Probe:
    """Ask a model for one token, on the way that sessions go; without an answer again, for a bounded time.

    Args:
        run: What is asked through.
        model: Whom to ask.
        address: Where it is, for messages.
        tell: Called with why there was no answer, before it is asked again.
    """
    began, attempts, answer = time.monotonic(), 0, _KeptAnswer()
    why: str | None = None
    for pause in (*PAUSES, None):
        answer, attempts = _KeptAnswer(), attempts + 1
        remaining = began + PATIENCE_SECONDS - time.monotonic()
        why = await _attempt(run, model, address, answer, min(ATTEMPT_SECONDS, remaining))
        if why is None or answer.is_final or pause is None or time.monotonic() + pause - began >= PATIENCE_SECONDS:
            break
        tell(f"{why}; asking again, for {PATIENCE_SECONDS:g} s at most")
        await anyio.sleep(pause)
    seconds, cost = time.monotonic() - began, run.meter.cost_usd
    if why:
        again = f" (asked {attempts} times in {seconds:.0f} s)" if attempts > 1 else ""
        return Probe(None, f"{why}{again}", seconds, cost)
    return Probe(answer.status, "" if answer.status == 200 else answer.message, seconds, cost)


async def _attempt(run: ProxyRun, model: str, address: str, answer: _KeptAnswer, seconds: float) -> str | None:
    """Ask once; why there was no answer, or None."""
    asked = {"model": model, "max_tokens": 1, "messages": [{"role": "user", "content": "Hi"}]}
    with anyio.move_on_after(seconds) as limit:
        try:
            call = await run.call("/v1/messages", HEADERS, wire.write(asked))
            await run.serve(call, answer)
        except BrokenOff:
            return f"{address} broke off its answer"
    if limit.cancelled_caught:
        return f"{address} gave no answer within {seconds:.0f} s"
    if run.meter.outage:
        return run.meter.outage
    if answer.status == 200 and not answer.is_message:
        answer.is_final = not answer.is_cut
        return f"{address} does not answer as the Messages API does: {answer.message}"
    return None
