"""Answers from the API that are also written to a cassette."""

import logging
from pathlib import Path
from typing import Any

import anyio

from zelda_ci import __version__
from zelda_ci.model_proxy import wire
from zelda_ci.model_proxy.cassettes import normalise
from zelda_ci.model_proxy.cassettes.cassette import (
    Cassette,
    Exchange,
    RecordedRequest,
    RecordedResponse,
    dump,
    joined,
    partial_file,
    write_whole,
)
from zelda_ci.model_proxy.cassettes.match import Fingerprints
from zelda_ci.model_proxy.cassettes.normalise import Placeholders
from zelda_ci.model_proxy.limits import MAX_RECORDING_BYTES, in_mib
from zelda_ci.model_proxy.wire import AnswerSource, BrokenOff, Call, EventReader, Headers, Sink, Tee
from zelda_ci.redact import Redactor

log = logging.getLogger(__name__)

# Response headers that the CLI acts on or reports.
KEPT_HEADERS = ("content-type", "request-id", "retry-after", "retry-after-ms", "x-should-retry")


class RecordingSource(AnswerSource):
    """Passes everything on to another source, and writes down what it answers.

    The file grows beside its final place and takes it when the run is over, so an interrupted recording never
    replaces a good one.
    """

    def __init__(
        self,
        inner: AnswerSource,
        file: Path,
        label: str,
        placeholders: Placeholders,
        redact: Redactor,
        max_bytes: int = MAX_RECORDING_BYTES,
    ) -> None:
        self._max_bytes = max_bytes
        self._inner = inner
        self._file = file
        self._label = label
        self._placeholders = placeholders
        self._redact = redact
        self._fingerprints = Fingerprints(placeholders, redact)
        self._threads: dict[str | None, str] = {None: "main"}
        self._cli = redact("unknown")
        self._exchanges: list[Exchange] = []
        self._under_way: dict[_AnswerObserver, tuple[str, Call]] = {}

    async def answer(self, call: Call, sink: Sink) -> None:
        """Pass the inner source's answer on and keep it, as far as it came."""
        if call.counts_tokens:
            await self._inner.answer(call, sink)
            return
        self._cli = self._redact(call.header("user-agent") or self._cli)
        thread = self._threads.setdefault(call.agent_id, f"agent-{len(self._threads)}")
        self._placeholders.update(normalise.named(call))
        observer = _AnswerObserver()
        self._under_way[observer] = thread, call
        try:
            await self._inner.answer(call, Tee(sink, observer))
        except (BrokenOff, anyio.get_cancelled_exc_class()):
            observer.cut = True
            raise
        finally:
            self._end(observer)

    def finish(self) -> None:
        """The run is over: the recording takes its place, unless it is empty or incomplete.

        Requests under way have been cancelled, but their tasks have not run since then: their answers end here.
        """
        for observer in list(self._under_way):
            observer.cut = True
            self._end(observer)
        if self._exchanges and self.failure is None:
            try:
                partial_file(self._file).replace(self._file)
            except OSError as exc:
                self._fail(exc.strerror or str(exc))

    def _end(self, observer: "_AnswerObserver") -> None:
        """Keep an answer as far as it came; once."""
        if (request := self._under_way.pop(observer, None)) and observer.status and self.failure is None:
            self._keep(*request, observer)

    def _keep(self, thread: str, call: Call, observer: "_AnswerObserver") -> None:
        fingerprint = self._fingerprints(call.body)
        request = RecordedRequest(
            thread=thread,
            turn=fingerprint.turn,
            model=self._redact(fingerprint.model),
            digest=fingerprint.digest,
            parts=dict(fingerprint.parts),
            tools=tuple(map(self._redact, fingerprint.tools)),
            said=fingerprint.excerpt,
        )
        self._exchanges.append(
            Exchange(
                request=request,
                response=observer.response(self._placeholders, self._redact.known_only()),
            )
        )
        cassette = Cassette(zelda=__version__, cli=self._cli, label=self._label, exchanges=tuple(self._exchanges))
        text = dump(cassette)
        if len(text) > self._max_bytes:
            self._fail(f"it is larger than {in_mib(self._max_bytes)}, the most that a recording may have")
            return
        try:
            # After each exchange: a run that is killed leaves everything up to then.
            write_whole(partial_file(self._file), text)
        except OSError as exc:
            self._fail(exc.strerror or str(exc))

    def _fail(self, why: str) -> None:
        """The session goes on without being recorded; what is written already stays beside the place of the file."""
        log.warning("the recording %s cannot be written: %s", self._file, why)
        self.failure = self._redact(f"the recording {self._file} cannot be written: {why}")
        self._exchanges.clear()


class _AnswerObserver:
    """Observes one answer until it is complete or cut."""

    def __init__(self) -> None:
        self.status = 0
        self.cut = False
        self._headers: Headers = []
        self._body = bytearray()

    def start(self, status: int, headers: Headers) -> None:
        self.status, self._headers = status, headers

    def chunk(self, data: bytes) -> None:
        self._body += data

    def response(self, placeholders: Placeholders, redact: Redactor) -> RecordedResponse:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in self._headers}
        safe = redact.json(placeholders.blank_tree(self._content()))
        return RecordedResponse.model_validate(
            {
                "status": self.status,
                "headers": {name: redact(headers[name]) for name in KEPT_HEADERS if name in headers},
                "cut": self.cut or None,
                **safe,
            }
        )

    def _content(self) -> dict[str, Any]:
        body = bytes(self._body)
        if (value := wire.read_object(body)) is not None:
            return {"body": value}
        if (events := self._events(body)) is not None:
            return {"events": joined(events)}
        return {"text": body.decode("utf-8", "replace")}

    def _events(self, body: bytes) -> list[dict[str, Any]] | None:
        """The stream's events, or None where it has other things in it."""
        reader = EventReader()
        values = [wire.read_object(data) for data in reader.feed(body)]
        if reader.malformed or not values or (reader.rest.strip() and not self.cut):
            return None
        events = [value for value in values if value is not None]
        return events if len(events) == len(values) else None
