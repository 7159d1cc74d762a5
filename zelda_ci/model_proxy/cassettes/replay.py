"""Answers from a cassette: no key, no network."""

import anyio
import anyio.to_thread

from zelda_ci.model_proxy import wire
from zelda_ci.model_proxy.cassettes.cassette import Cassette, RecordedRequest, RecordedResponse, played
from zelda_ci.model_proxy.cassettes.match import Fingerprints, diff, differences
from zelda_ci.model_proxy.cassettes.normalise import Placeholders
from zelda_ci.model_proxy.wire import (
    DO_NOT_RETRY,
    JSON,
    AnswerSource,
    BrokenOff,
    Call,
    CassetteState,
    Sink,
    send_error,
    send_whole,
)
from zelda_ci.redact import Redactor, SafeText

# Token counts are not recorded: they steer nothing but displays, so a rule of thumb answers.
BYTES_PER_TOKEN = 4


class ReplaySource(AnswerSource, CassetteState):
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

    async def answer(self, call: Call, sink: Sink) -> None:
        """Answer with the recorded exchange that belongs to the call, or refuse and say what differs."""
        if call.counts_tokens:
            await send_whole(sink, 200, [JSON], wire.write({"input_tokens": len(call.raw_body) // BYTES_PER_TOKEN}))
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
            await self._refuse(self._threads.get(call.agent_id, "a new sub-agent"), candidates, request, sink)
            return
        index = min(fitting, key=lambda index: len(differences(self._unused[index].request, request)))
        if different := differences(self._unused[index].request, request):
            self._note(f"exchange {index + 1} was used although these differ: {', '.join(different)}")
        exchange = self._unused.pop(index)
        self._threads[call.agent_id] = exchange.thread
        await self._play(exchange.response, sink)

    def _candidates(self, agent_id: str | None) -> list[int]:
        """Return the exchanges left of the recorded thread, or the first ones of those that nobody is yet."""
        if thread := self._threads.get(agent_id):
            return [index for index, exchange in self._unused.items() if exchange.thread == thread]
        firsts: dict[str, int] = {}
        for index, exchange in self._unused.items():
            if exchange.thread not in self._threads.values():
                firsts.setdefault(exchange.thread, index)
        return list(firsts.values())

    async def _play(self, response: RecordedResponse, sink: Sink) -> None:
        content = self._placeholders.fill(response.content)
        headers = [(name.encode(), value.encode()) for name, value in response.headers.items()]
        if isinstance(content, list):
            await sink.start(response.status, headers)
            for event in played(content):
                await sink.chunk(wire.written(event))
        else:
            body = content.encode() if isinstance(content, str) else wire.write(content)
            await send_whole(sink, response.status, headers, body)
        if response.cut:
            raise BrokenOff

    async def _refuse(self, thread: str, candidates: list[int], request: RecordedRequest, sink: Sink) -> None:
        why = f"the recording has no answer for the request of {thread} after {request.turn} model responses"
        if candidates:
            nearest = min(candidates, key=lambda index: abs(self._unused[index].request.turn - request.turn))
            why = f"{why}; the nearest is {self._name(nearest)}:"
            # In a thread: texts that have nothing in common take long.
            why = f"{why}\n{await anyio.to_thread.run_sync(diff, self._unused[nearest].request, request)}"
        self.failure = self.failure or self._redact(why)
        message = self._redact(f"Zelda's replay stops here: {why}")
        await send_error(sink, 409, "invalid_request_error", message, DO_NOT_RETRY)

    def _name(self, index: int) -> str:
        exchange = self._unused[index]
        return f"exchange {index + 1} ({exchange.thread}, after {exchange.request.turn} model responses)"

    def _note(self, text: str) -> None:
        self.divergences += (self._redact(text),)
