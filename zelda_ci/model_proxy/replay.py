"""Answers from a cassette: no key, no network."""

import re

from zelda_ci.model_proxy import handles, json_text, sse, stream
from zelda_ci.model_proxy.cassette import Cassette, Exchange, RecordedResponse
from zelda_ci.model_proxy.fingerprint import NOTHING_SAID, Fingerprints
from zelda_ci.model_proxy.matching import Matcher, Mismatch
from zelda_ci.model_proxy.order import Place, RecordedOrder
from zelda_ci.model_proxy.placeholders import Placeholders
from zelda_ci.model_proxy.wire import DO_NOT_RETRY, BrokenOff, Call, Headers, Sink, Source, send_error, send_whole
from zelda_ci.redact import Redactor, SafeText

_UNPRINTABLE = re.compile(r"[^ -~]")

BYTES_PER_TOKEN = 4
"""Token counts are not recorded: they steer nothing but displays, so a rule of thumb answers."""


class ReplaySource(Source):
    """Answers each request with the recorded exchange that belongs to it."""

    def __init__(self, cassette: Cassette, placeholders: Placeholders, redact: Redactor) -> None:
        self._exchanges = cassette.exchanges
        self._cli: str | None = cassette.cli
        self._placeholders = placeholders
        self._redact = redact
        self._fingerprints = Fingerprints(placeholders, redact)
        self._matcher = Matcher(cassette.exchanges)
        self._order = RecordedOrder([_place(exchange) for exchange in cassette.exchanges])
        self.divergences: list[SafeText] = []

    @property
    def unused(self) -> tuple[SafeText, ...]:
        """Recorded exchanges that nobody has asked for."""
        return tuple(map(self._redact, self._matcher.unused))

    async def answer(self, call: Call, sink: Sink) -> None:
        """Answer with the recorded exchange that belongs to the call, or refuse and say what differs."""
        if call.counts_tokens:
            count = {"input_tokens": len(call.raw_body) // BYTES_PER_TOKEN}
            await send_whole(sink, 200, [(b"content-type", b"application/json")], json_text.write(count))
            return
        self._compare_cli(call.header("user-agent") or "")
        self._placeholders.learn(handles.named(call))
        found = self._matcher.match(call.agent_id, self._fingerprints(call.body))
        if isinstance(found, Mismatch):
            await self._refuse(found, sink)
            return
        self._order.arrive(found.index)
        if found.differences:
            self._note(f"exchange {found.index + 1} was used although these differ: {'; '.join(found.differences)}")
        try:
            await self._play(found.index, sink, streaming=bool(call.body.get("stream")))
        finally:
            self._order.end(found.index)

    def task_ended(self, call: str) -> None:
        """The model will be told so in the next request of its thread."""
        self._order.tell(call)

    async def _play(self, index: int, sink: Sink, *, streaming: bool) -> None:
        response = self._exchanges[index].response
        begun = await self._order.wait_to_begin(index)
        if response.events is not None and streaming:
            await sink.start(response.status, _headers(response))
            *events, last = stream.played(self._placeholders.fill_tree(list(response.events)))
            for event in events:
                await sink.chunk(sse.written(event))
            begun &= await self._order.wait_to_end(index)
            await sink.chunk(sse.written(last))
        else:
            await self._send_whole(response, sink)
        if not begun:
            self._note(f"exchange {index + 1} did not find others before it that were recorded earlier")
        if response.cut:
            raise BrokenOff

    async def _send_whole(self, response: RecordedResponse, sink: Sink) -> None:
        if response.text is not None:
            await send_whole(sink, response.status, _headers(response), self._placeholders.fill(response.text).encode())
            return
        value = response.body if response.body is not None else stream.message(response.events or ())
        headers = [*_headers(response, without="content-type"), (b"content-type", b"application/json")]
        await send_whole(sink, response.status, headers, json_text.write(self._placeholders.fill_tree(value)))

    async def _refuse(self, mismatch: Mismatch, sink: Sink) -> None:
        self.failure = self.failure or self._redact(mismatch.reason)
        self._order.give_up()
        message = f"Zelda's replay stops here: {mismatch.reason}"
        await send_error(sink, 409, "invalid_request_error", self._redact(message), DO_NOT_RETRY)

    def _compare_cli(self, agent: str) -> None:
        if self._cli and agent != self._cli:
            self._note(f"the recording was made with {self._cli}, this is {agent or 'unknown'}")
        self._cli = None  # once is enough

    def _note(self, what: str) -> None:
        self.divergences.append(self._redact(what))


def _place(exchange: Exchange) -> Place:
    request = exchange.request
    return Place(
        request.thread,
        request.arrival,
        exchange.response.arrivals,
        request.news,
        request.agents,
        only_tells=request.parts.get("last") == NOTHING_SAID,
    )


def _headers(response: RecordedResponse, *, without: str = "") -> Headers:
    kept = ((name, value) for name, value in response.headers.items() if name != without)
    return [(name.encode("ascii", "replace"), _UNPRINTABLE.sub("?", value).encode()) for name, value in kept]
