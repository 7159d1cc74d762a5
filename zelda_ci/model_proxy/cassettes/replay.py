"""Answers from a cassette: no key, no network."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import anyio
import anyio.to_thread

from zelda_ci.model_proxy import wire
from zelda_ci.model_proxy.cassettes.cassette import Cassette, RecordedRequest, RecordedResponse, played
from zelda_ci.model_proxy.cassettes.match import Fingerprints, diff, differences
from zelda_ci.model_proxy.cassettes.normalise import Placeholders
from zelda_ci.model_proxy.wire import DO_NOT_RETRY, JSON, ApiAnswer, BrokenOff, Call, CassetteState, error_body, once
from zelda_ci.redact import Redactor, SafeText

# Token counts are not recorded: they steer nothing but displays, so a rule of thumb answers.
BYTES_PER_TOKEN = 4


class ReplaySource(CassetteState):
    """Answers each request with the recorded exchange that belongs to it, and hands each of them out once.

    A sub-agent is recognised by its first request: which of several parallel ones asks first is chance. From then on
    it gets the answers of that recorded thread only.
    """

    def __init__(self, cassette: Cassette, placeholders: Placeholders, redact: Redactor) -> None:
        self._unused = dict(enumerate(cassette.exchanges))
        self._threads: dict[str | None, str] = {None: "main"}
        """Recorded threads by the id of the sub-agent that was recognised as one."""
        self._cli: str | None = cassette.cli
        self._placeholders = placeholders
        self._redact = redact
        self._fingerprint = Fingerprints(placeholders, redact)
        self._lock = anyio.Lock()
        self.divergences: tuple[SafeText, ...] = ()

    @property
    def unused(self) -> tuple[SafeText, ...]:
        """Recorded exchanges that nobody has asked for."""
        return tuple(self._redact(self._name(index)) for index in self._unused)

    @asynccontextmanager
    async def answer(self, call: Call) -> AsyncIterator[ApiAnswer]:
        """Answer with the recorded exchange that belongs to the call, or refuse and say what differs."""
        if call.counts_tokens:
            count = {"input_tokens": len(call.raw_body) // BYTES_PER_TOKEN}
            yield ApiAnswer(200, [JSON], once(wire.write(count)))
            return
        agent = call.header("user-agent") or "unknown"
        if self._cli and agent != self._cli:
            self._note(f"the recording was made with {self._cli}, this is {agent}")
        self._cli = None  # once is enough
        # In a thread: other runs go on meanwhile. One after the other: each may name what the next one says.
        async with self._lock:
            request = await anyio.to_thread.run_sync(self._fingerprint, call)
        candidates = self._candidates(call.agent_id)
        fitting = [index for index in candidates if self._unused[index].request.asked == request.asked]
        if not fitting:
            yield await self._refusal(self._threads.get(call.agent_id, "a new sub-agent"), candidates, request)
            return
        index = min(fitting, key=lambda index: len(differences(self._unused[index].request, request)))
        if different := differences(self._unused[index].request, request):
            self._note(f"exchange {index + 1} was used although these differ: {', '.join(different)}")
        exchange = self._unused.pop(index)
        self._threads[call.agent_id] = exchange.thread
        yield self._played(exchange.response)

    def _candidates(self, agent_id: str | None) -> list[int]:
        """Return the exchanges left of the recorded thread, or the first ones of those that nobody is yet."""
        if thread := self._threads.get(agent_id):
            return [index for index, exchange in self._unused.items() if exchange.thread == thread]
        firsts: dict[str, int] = {}
        for index, exchange in self._unused.items():
            if exchange.thread not in self._threads.values():
                firsts.setdefault(exchange.thread, index)
        return list(firsts.values())

    def _played(self, response: RecordedResponse) -> ApiAnswer:
        content = self._placeholders.fill(response.content)

        async def chunks() -> AsyncGenerator[bytes, None]:
            if isinstance(content, list):
                for event in played(content):
                    yield wire.written(event)
            else:
                yield content.encode() if isinstance(content, str) else wire.write(content)
            if response.cut:
                raise BrokenOff

        headers = [(name.encode(), value.encode()) for name, value in response.headers.items()]
        return ApiAnswer(response.status, headers, chunks())

    async def _refusal(self, thread: str, candidates: list[int], request: RecordedRequest) -> ApiAnswer:
        why = f"the recording has no answer for the request of {thread} after {request.turn} model responses"
        if candidates:
            nearest = min(candidates, key=lambda index: abs(self._unused[index].request.turn - request.turn))
            why = f"{why}; the nearest is {self._name(nearest)}:"
            # In a thread: texts that have nothing in common take long.
            why = f"{why}\n{await anyio.to_thread.run_sync(diff, self._unused[nearest].request, request)}"
        self.failure = self.failure or self._redact(why)
        message = self._redact(f"Zelda's replay stops here: {why}")
        return ApiAnswer(409, [JSON, *DO_NOT_RETRY], once(error_body("invalid_request_error", message)))

    def _name(self, index: int) -> str:
        exchange = self._unused[index]
        return f"exchange {index + 1} ({exchange.thread}, after {exchange.request.turn} model responses)"

    def _note(self, text: str) -> None:
        self.divergences += (self._redact(text),)
