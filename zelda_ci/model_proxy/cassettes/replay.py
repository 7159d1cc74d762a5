"""Answers from a cassette: no key, no network."""

import re

import anyio
import anyio.to_thread

from zelda_ci.model_proxy import wire
from zelda_ci.model_proxy.cassettes import normalise
from zelda_ci.model_proxy.cassettes.cassette import Cassette, RecordedResponse, joined_message, played
from zelda_ci.model_proxy.cassettes.match import Fingerprints, Matcher, Mismatch, RequestFingerprint
from zelda_ci.model_proxy.cassettes.normalise import Placeholders
from zelda_ci.model_proxy.wire import (
    DO_NOT_RETRY,
    AnswerSource,
    BrokenOff,
    Call,
    CassetteState,
    Headers,
    Sink,
    send_error,
    send_whole,
)
from zelda_ci.redact import Redactor, SafeText

_UNPRINTABLE = re.compile(r"[^ -~]")

# Token counts are not recorded: they steer nothing but displays, so a rule of thumb answers.
BYTES_PER_TOKEN = 4


class ReplaySource(AnswerSource, CassetteState):
    """Answers each request with the recorded exchange that belongs to it."""

    def __init__(self, cassette: Cassette, placeholders: Placeholders, redact: Redactor) -> None:
        self._exchanges = cassette.exchanges
        self._cli: str | None = cassette.cli
        self._placeholders = placeholders
        self._redact = redact
        self._fingerprints = Fingerprints(placeholders, redact)
        self._lock = anyio.Lock()
        self._matcher = Matcher(cassette.exchanges)
        self.divergences: list[SafeText] = []

    @property
    def unused(self) -> tuple[SafeText, ...]:
        """Recorded exchanges that nobody has asked for."""
        return tuple(map(self._redact, self._matcher.unused))

    async def answer(self, call: Call, sink: Sink) -> None:
        """Answer with the recorded exchange that belongs to the call, or refuse and say what differs."""
        if call.counts_tokens:
            count = {"input_tokens": len(call.raw_body) // BYTES_PER_TOKEN}
            await send_whole(sink, 200, [(b"content-type", b"application/json")], wire.write(count))
            return
        self._compare_cli(call.header("user-agent") or "")
        # In a thread: other runs go on meanwhile. One after the other: each may name what the next one says.
        async with self._lock:
            fingerprint = await anyio.to_thread.run_sync(self._fingerprint, call)
        match = self._matcher.match(call.agent_id, fingerprint)
        if isinstance(match, Mismatch):
            await self._refuse(match, sink)
            return
        if match.differences:
            self._note(f"exchange {match.index + 1} was used although these differ: {'; '.join(match.differences)}")
        await self._play(self._exchanges[match.index].response, sink, streaming=bool(call.body.get("stream")))

    def _fingerprint(self, call: Call) -> RequestFingerprint:
        self._placeholders.update(normalise.named(call))
        return self._fingerprints(call.body)

    async def _play(self, response: RecordedResponse, sink: Sink, *, streaming: bool) -> None:
        if response.events is not None and streaming:
            await sink.start(response.status, _headers(response))
            for event in played(self._placeholders.fill_tree(list(response.events))):
                await sink.chunk(wire.written(event))
        else:
            await self._send_whole(response, sink)
        if response.cut:
            raise BrokenOff

    async def _send_whole(self, response: RecordedResponse, sink: Sink) -> None:
        if response.text is not None:
            await send_whole(sink, response.status, _headers(response), self._placeholders.fill(response.text).encode())
            return
        value = response.body if response.body is not None else joined_message(response.events or ())
        headers = [*_headers(response, without="content-type"), (b"content-type", b"application/json")]
        await send_whole(sink, response.status, headers, wire.write(self._placeholders.fill_tree(value)))

    async def _refuse(self, mismatch: Mismatch, sink: Sink) -> None:
        self.failure = self.failure or self._redact(mismatch.reason)
        message = f"Zelda's replay stops here: {mismatch.reason}"
        await send_error(sink, 409, "invalid_request_error", self._redact(message), DO_NOT_RETRY)

    def _compare_cli(self, agent: str) -> None:
        if self._cli and agent != self._cli:
            self._note(f"the recording was made with {self._cli}, this is {agent or 'unknown'}")
        self._cli = None  # once is enough

    def _note(self, text: str) -> None:
        self.divergences.append(self._redact(text))


def _headers(response: RecordedResponse, *, without: str = "") -> Headers:
    headers = ((name, value) for name, value in response.headers.items() if name != without)
    return [(name.encode("ascii", "replace"), _UNPRINTABLE.sub("?", value).encode()) for name, value in headers]
