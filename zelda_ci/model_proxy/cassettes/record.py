"""Answers from the API that are also written to a cassette."""

import logging
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from zelda_ci import __version__
from zelda_ci.model_proxy import wire
from zelda_ci.model_proxy.answer import AnswerEvents
from zelda_ci.model_proxy.cassettes.cassette import Cassette, Exchange, joined, write
from zelda_ci.model_proxy.cassettes.session_texts import SessionTexts
from zelda_ci.model_proxy.wire import Call, CassetteState, Headers

log = logging.getLogger(__name__)

# Response headers that the CLI acts on or reports.
KEPT_HEADERS = ("content-type", "request-id", "retry-after", "retry-after-ms", "x-should-retry")


@contextmanager
def recording(file: Path, label: str, texts: SessionTexts) -> Iterator["Recording"]:
    """Record what a run asks and is answered.

    The file appears at the end, whole, unless nothing was asked or the block fails: a run that is interrupted or killed
    leaves none, and never replaces a good one. What goes wrong costs the recording, and not the session.
    """
    with ThreadPoolExecutor(1) as thread:
        made = Recording(texts, thread)
        yield made
        try:
            if exchanges := tuple(exchange.result() for exchange in made.exchanges):
                cli = texts.redact(made.cli)
                write(file, Cassette(zelda=__version__, cli=cli, label=label, exchanges=exchanges))
        except Exception as exc:  # noqa: BLE001 - see above
            why = f"the recording {file} cannot be written: {str(exc) or repr(exc)}"
            log.warning("%s", why)
            made.failure = texts.redact(why)


class Recording(CassetteState):
    """The recording of one run, which sees its requests and answers pass; they are read in a thread, in their order."""

    def __init__(self, texts: SessionTexts, thread: Executor) -> None:
        self._texts, self._thread = texts, thread
        self.cli = "unknown"
        self.exchanges: list[Future[Exchange]] = []

    def begin(self, call: Call) -> "RecordedAnswer":
        """Return an observer of the answer to a request that is sent now."""
        self.cli = call.header("user-agent") or self.cli
        return RecordedAnswer(call)

    def end(self, answer: "RecordedAnswer", *, cut: bool) -> None:
        """Keep an answer as far as it came."""
        if answer.status:
            self.exchanges.append(self._thread.submit(answer.exchange, self._texts, cut=cut))


class RecordedAnswer:
    """Observes one answer until it is complete or cut."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self.status = 0
        self._headers: Headers = []
        self._body = bytearray()

    def start(self, status: int, headers: Headers) -> None:
        """Take in status and headers."""
        self.status, self._headers = status, headers

    def chunk(self, data: bytes) -> None:
        """Take in the next bytes of the body."""
        self._body += data

    def exchange(self, texts: SessionTexts, *, cut: bool) -> Exchange:
        """Return request and answer without paths, ids and secrets."""
        request = texts.fingerprint(self._call)
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in self._headers}
        kept = {name: headers[name] for name in KEPT_HEADERS if name in headers}
        safe = texts.redact.known_only().json({"headers": kept, "content": texts.blank(self._content())})
        return Exchange.model_validate({"request": request, "status": self.status, "cut": cut or None, **safe})

    def _content(self) -> dict[str, Any] | list[dict[str, Any]] | str:
        """Return the object or the events, or the text where it is neither."""
        body = bytes(self._body)
        if (value := wire.read_object(body)) is not None:
            return value
        reader = AnswerEvents()
        events = [*reader.feed(body), *reader.end()]
        return joined(events) if events and all(events) else body.decode("utf-8", "replace")
