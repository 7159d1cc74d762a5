"""Answers from the API that are also written to a cassette."""

import logging
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from zelda_ci import __version__
from zelda_ci.files import ownership, untrusted
from zelda_ci.model_proxy import wire
from zelda_ci.model_proxy.cassettes.cassette import (
    Cassette,
    Exchange,
    RecordedResponse,
    as_json,
    joined,
    partial_file,
    write,
)
from zelda_ci.model_proxy.cassettes.match import Fingerprints
from zelda_ci.model_proxy.cassettes.normalise import Placeholders
from zelda_ci.model_proxy.wire import Call, CassetteState, EventReader, Headers
from zelda_ci.redact import Redactor

log = logging.getLogger(__name__)

# Response headers that the CLI acts on or reports.
KEPT_HEADERS = ("content-type", "request-id", "retry-after", "retry-after-ms", "x-should-retry")


@contextmanager
def recording(file: Path, label: str, placeholders: Placeholders, redact: Redactor) -> Iterator["Recording"]:
    """Record what a run asks and is answered.

    The answers are read and masked in a thread, one after the other, and appended to a file beside the recording's
    place: a run that is killed leaves all but the last. The whole recording takes its place at the end, unless the
    block fails, so that an interrupted one never replaces a good one.
    """
    with ThreadPoolExecutor(1) as thread:
        made = Recording(file, label, placeholders, redact, thread)
        yield made
        thread.submit(made.take_place).result()


class Recording(CassetteState):
    """The recording of one run, which sees its requests and answers pass."""

    def __init__(self, file: Path, label: str, placeholders: Placeholders, redact: Redactor, thread: Executor) -> None:
        self._file = file
        self._placeholders = placeholders
        self._redact = redact
        self._thread = thread
        self._fingerprint = Fingerprints(placeholders, redact)
        self._threads: dict[str | None, str] = {None: "main"}
        self._cassette = Cassette(zelda=__version__, cli=redact("unknown"), label=label)
        self._exchanges: list[Exchange] = []

    def begin(self, call: Call) -> "RecordedAnswer":
        """Return an observer of the answer to a request that is sent now."""
        return RecordedAnswer(self._threads.setdefault(call.agent_id, f"agent-{len(self._threads)}"), call)

    def end(self, answer: "RecordedAnswer", *, cut: bool) -> None:
        """Keep an answer as far as it came."""
        answer.is_cut = cut
        if answer.status:
            self._thread.submit(self._keep, answer)

    def _keep(self, answer: "RecordedAnswer") -> None:
        if self.failure:
            return
        with self._failing():
            if agent := answer.call.header("user-agent"):
                self._cassette = self._cassette.replace(cli=self._redact(agent))
            exchange = Exchange(
                thread=answer.thread,
                request=self._fingerprint(answer.call),
                response=answer.response(self._placeholders, self._redact.known_only()),
            )
            ownership.make_folder(self._file.parent)
            how = "ab" if self._exchanges else "wb"
            with open(partial_file(self._file), how, opener=untrusted.open_regular) as partial:
                ownership.hand_over(partial.fileno(), self._file.parent)
                partial.write(as_json(exchange))
            self._exchanges.append(exchange)

    def take_place(self) -> None:
        """Write the whole recording in its place, unless it is empty or incomplete."""
        if self._exchanges and not self.failure:
            with self._failing():
                write(self._file, self._cassette.replace(exchanges=tuple(self._exchanges)))
                partial_file(self._file).unlink()

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Have an exception cost the recording, and not the session; what is written already stays."""
        try:
            yield
        except Exception as exc:  # noqa: BLE001 - see above
            why = f"the recording {self._file} cannot be written: {getattr(exc, 'strerror', None) or repr(exc)}"
            log.warning("%s", why)
            self.failure = self._redact(why)


class RecordedAnswer:
    """Observes one answer until it is complete or cut."""

    def __init__(self, thread: str, call: Call) -> None:
        self.thread, self.call = thread, call
        self.status = 0
        self.is_cut = False
        self._headers: Headers = []
        self._body = bytearray()

    def start(self, status: int, headers: Headers) -> None:
        """Take in status and headers."""
        self.status, self._headers = status, headers

    def chunk(self, data: bytes) -> None:
        """Take in the next bytes of the body."""
        self._body += data

    def response(self, placeholders: Placeholders, redact: Redactor) -> RecordedResponse:
        """Return the answer without paths, ids and secrets."""
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in self._headers}
        kept = {name: headers[name] for name in KEPT_HEADERS if name in headers}
        safe = redact.json({"headers": kept, "content": placeholders.blank(self._content())})
        return RecordedResponse.model_validate({"status": self.status, "cut": self.is_cut or None, **safe})

    def _content(self) -> dict[str, Any] | list[dict[str, Any]] | str:
        """Return the object or the events, or the text where it is neither."""
        body = bytes(self._body)
        if (value := wire.read_object(body)) is not None:
            return value
        events = [wire.read_object(data) or {} for data in EventReader().feed(body)]
        return joined(events) if events and all(events) else body.decode("utf-8", "replace")
