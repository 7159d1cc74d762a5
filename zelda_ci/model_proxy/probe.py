"""The smallest request to a model: whether it answers, and to whom, before a session depends on it."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import anyio

from zelda_ci.model_proxy import wire
from zelda_ci.model_proxy.run import ProxyRun
from zelda_ci.model_proxy.wire import BrokenOff, Headers

# A session would wait, and ask again, where there is no answer.
MAX_ATTEMPTS, ATTEMPT_SECONDS, PAUSE_SECONDS = 3, 20.0, 1.0
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


class _Answer:
    """A sink that keeps the answer."""

    def __init__(self) -> None:
        self.status: int | None = None
        self.body = bytearray()
        self.is_final = False
        """Whether another attempt would end in the same way."""

    async def start(self, status: int, headers: Headers) -> None:
        self.status, self.is_final = status, (b"x-should-retry", b"false") in headers

    async def chunk(self, data: bytes) -> None:
        self.body += data


async def probe(run: ProxyRun, model: str, address: str, notify: Callable[[str], None]) -> Probe:
    """Ask a model for one token, on the way that sessions go; without an answer again, a few times.

    Args:
        run: What is asked through.
        model: Whom to ask.
        address: Where it is, for messages.
        notify: Called with why there was no answer, before it is asked again.
    """
    began, attempts, answer = time.monotonic(), 1, _Answer()
    while (why := await _attempt(run, model, address, answer)) and not answer.is_final and attempts < MAX_ATTEMPTS:
        notify(f"{why}; asking again")
        await anyio.sleep(PAUSE_SECONDS)
        attempts, answer = attempts + 1, _Answer()
    again = f" (asked {attempts} times)" if attempts > 1 else ""
    message = f"{why}{again}" if why else "" if answer.status == 200 else _message(answer)
    return Probe(None if why else answer.status, message, time.monotonic() - began, run.meter.cost_usd)


async def _attempt(run: ProxyRun, model: str, address: str, answer: _Answer) -> str | None:
    """Ask once; why there was no answer, or None."""
    asked = {"model": model, "max_tokens": 1, "messages": [{"role": "user", "content": "Hi"}]}
    with anyio.move_on_after(ATTEMPT_SECONDS) as limit:
        try:
            await run.serve(await run.call("/v1/messages", HEADERS, wire.write(asked)), answer)
        except BrokenOff:
            return f"{address} broke off its answer"
    if limit.cancelled_caught:
        return f"{address} gave no answer within {ATTEMPT_SECONDS:.0f} s"
    if answer.status == 200 and "content" not in (wire.read_object(bytes(answer.body)) or {}):
        answer.is_final = True
        return f"{address} does not answer as the Messages API does: {_message(answer)}"
    return run.meter.outage


def _message(answer: _Answer) -> str:
    """The words of an error, or else the beginning of what came."""
    error = (wire.read_object(bytes(answer.body)) or {}).get("error")
    said = error.get("message") if isinstance(error, dict) else error
    return said if isinstance(said, str) else answer.body[:200].decode("utf-8", "replace")
