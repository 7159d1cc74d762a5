"""Answers from a cassette: no key, no network."""

import difflib
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import anyio
import anyio.to_thread

from zelda_ci.model_proxy import wire
from zelda_ci.model_proxy.cassettes.cassette import Cassette, Exchange, RecordedRequest, played
from zelda_ci.model_proxy.cassettes.session_texts import SessionTexts
from zelda_ci.model_proxy.wire import DO_NOT_RETRY, JSON, ApiAnswer, BrokenOff, Call, CassetteState, error_body, once
from zelda_ci.redact import SafeText

# Token counts are not recorded: they steer nothing but displays, so a rule of thumb answers.
BYTES_PER_TOKEN = 4
MAX_REMARKS = 5
NOT_EXACT = "the replay was not exactly what was recorded"
DIFF_LINES = 16
DIFF_WIDTH = 160


class ReplaySource(CassetteState):
    """Answers each request with the recorded exchange that belongs to it, and hands each of them out once."""

    def __init__(self, cassette: Cassette, texts: SessionTexts) -> None:
        self._unused = dict(enumerate(cassette.exchanges, start=1))
        self._cli: str | None = cassette.cli
        self._texts = texts
        self._lock = anyio.Lock()
        self._divergences: list[str] = []

    @property
    def remarks(self) -> list[SafeText]:
        """Where the replay was not exactly the recording, without harm: the first of them."""
        unused = (f"not asked for: {self._name(number)}" for number in self._unused)
        differences = [] if self.failure else [*self._divergences, *unused]
        return [self._texts.redact(f"{NOT_EXACT}: {difference}") for difference in differences[:MAX_REMARKS]]

    @asynccontextmanager
    async def answer(self, call: Call) -> AsyncIterator[ApiAnswer]:
        """Answer with the recorded exchange that belongs to the call, or refuse and say what differs."""
        if call.counts_tokens:
            count = {"input_tokens": len(call.raw_body) // BYTES_PER_TOKEN}
            yield ApiAnswer(200, [JSON], once(wire.write(count)))
            return
        agent = call.header("user-agent") or "unknown"
        if self._cli and agent != self._cli:
            self._divergences.append(f"the recording was made with {self._cli}, this is {agent}")
        self._cli = None  # once is enough
        # In a thread: other runs go on meanwhile. One after the other: each may name what the next one says.
        async with self._lock:
            request = await anyio.to_thread.run_sync(self._texts.fingerprint, call)
        different = {
            number: exchange.request.differences(request)
            for number, exchange in self._unused.items()
            if exchange.request.asked == request.asked
        }
        if not different:
            yield await self._refusal(request)
            return
        number = min(different, key=lambda number: len(different[number]))
        if different[number]:
            names = ", ".join(different[number])
            self._divergences.append(f"exchange {number} was used although these differ: {names}")
        yield self._played(self._unused.pop(number))

    def _played(self, exchange: Exchange) -> ApiAnswer:
        content = self._texts.fill(exchange.content)

        async def chunks() -> AsyncGenerator[bytes, None]:
            if isinstance(content, list):
                for event in played(content):
                    yield wire.written(event)
            else:
                yield content.encode() if isinstance(content, str) else wire.write(content)
            if exchange.cut:
                raise BrokenOff

        headers = [(name.encode(), value.encode()) for name, value in exchange.headers.items()]
        return ApiAnswer(exchange.status, headers, chunks())

    async def _refusal(self, request: RecordedRequest) -> ApiAnswer:
        why = f"the recording has no answer for the request of {request.place}"
        if self._unused:
            others = {number: exchange.request for number, exchange in self._unused.items()}
            far = {n: (it.thread != request.thread, abs(it.turn - request.turn)) for n, it in others.items()}
            nearest = min(far, key=lambda number: far[number])
            # In a thread: texts that have nothing in common take long.
            shown = await anyio.to_thread.run_sync(_diff, others[nearest].asked, request.asked)
            why = f"{why}; the nearest is {self._name(nearest)}:\n{shown}"
        self.failure = self.failure or self._texts.redact(why)
        message = self._texts.redact(f"Zelda's replay stops here: {why}")
        return ApiAnswer(409, [JSON, *DO_NOT_RETRY], once(error_body("invalid_request_error", message)))

    def _name(self, number: int) -> str:
        return f"exchange {number} ({self._unused[number].request.place})"


def _diff(recorded: str, asked: str) -> str:
    """Return the difference of what two requests ask, shortened."""
    lines = list(difflib.unified_diff(recorded.splitlines(), asked.splitlines(), "recorded", "now", n=1, lineterm=""))
    shown = [line if len(line) <= DIFF_WIDTH else line[:DIFF_WIDTH] + "..." for line in lines[:DIFF_LINES]]
    return "\n".join([*shown, f"({len(lines) - DIFF_LINES} more lines)"] if len(lines) > DIFF_LINES else shown)
