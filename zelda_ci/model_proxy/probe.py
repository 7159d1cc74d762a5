"""The smallest request to a model: whether it answers, and to whom, before a session depends on it."""

import time
from dataclasses import dataclass

import anyio

from zelda_ci.model_proxy import wire
from zelda_ci.model_proxy.run import ProxyRun
from zelda_ci.model_proxy.wire import BrokenOff, Headers

MAX_SECONDS = 10.0
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

    async def start(self, status: int, headers: Headers) -> None:
        self.status = status

    async def chunk(self, data: bytes) -> None:
        if len(self.body) < MAX_KEPT_BYTES:
            self.body += data

    @property
    def is_message(self) -> bool:
        """Whether a model has spoken."""
        return "content" in (wire.read_object(bytes(self.body)) or {})

    @property
    def message(self) -> str:
        """The words of an error, or else the beginning of what came."""
        error = (wire.read_object(bytes(self.body)) or {}).get("error")
        said = error.get("message") if isinstance(error, dict) else error
        return said if isinstance(said, str) else self.body[:200].decode("utf-8", "replace")


async def probe(run: ProxyRun, model: str, address: str) -> Probe:
    """Ask a model for one token, on the way that sessions go, and wait a bounded time; `address` is for messages."""
    asked = {"model": model, "max_tokens": 1, "messages": [{"role": "user", "content": "Hi"}]}
    answer, began = _KeptAnswer(), time.monotonic()
    with anyio.move_on_after(MAX_SECONDS) as limit, run.memory.share() as share:
        try:
            call = await run.call("/v1/messages", HEADERS, wire.write(asked), share)
            await run.serve(call, answer)
        except BrokenOff:
            return Probe(None, f"{address} broke off its answer", time.monotonic() - began, run.meter.cost_usd)
    seconds, meter = time.monotonic() - began, run.meter
    if limit.cancelled_caught:
        return Probe(None, f"{address} gave no answer within {MAX_SECONDS:g} s", seconds, meter.cost_usd)
    if meter.outage:
        return Probe(None, meter.outage, seconds, meter.cost_usd)
    if answer.status == 200 and not answer.is_message:
        why = f"{address} does not answer as the Messages API does: {answer.message}"
        return Probe(None, why, seconds, meter.cost_usd)
    return Probe(answer.status, "" if answer.status == 200 else answer.message, seconds, meter.cost_usd)
