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
from zelda_ci.model_proxy.wire import ApiAnswer, Call, CassetteState

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
    """The recording of one run, which gets its requests and answers; they are read in a thread, in their order."""

    def __init__(self, texts: SessionTexts, thread: Executor) -> None:
        self._texts, self._thread = texts, thread
        self.cli = "unknown"
        self.exchanges: list[Future[Exchange]] = []

    def keep(self, call: Call, answer: ApiAnswer, body: bytes, *, cut: bool) -> None:
        """Keep a request and its answer, as far as that came."""
        self.cli = call.header("user-agent") or self.cli
        self.exchanges.append(self._thread.submit(self._exchange, call, answer, body, cut=cut))

    def _exchange(self, call: Call, answer: ApiAnswer, body: bytes, *, cut: bool) -> Exchange:
        """Return request and answer without paths, ids and secrets."""
        texts, request = self._texts, self._texts.fingerprint(call)
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in answer.headers}
        kept = {name: headers[name] for name in KEPT_HEADERS if name in headers}
        safe = texts.redact.known_only().json({"headers": kept, "content": texts.blank(_content(body))})
        return Exchange.model_validate({"request": request, "status": answer.status, "cut": cut or None, **safe})


def _content(body: bytes) -> dict[str, Any] | list[dict[str, Any]] | str:
    """Return the object or the events, or the text where it is neither."""
    if (value := wire.read_object(body)) is not None:
        return value
    reader = AnswerEvents()
    events = [*reader.feed(body), *reader.end()]
    return joined(events) if events and all(events) else body.decode("utf-8", "replace")
