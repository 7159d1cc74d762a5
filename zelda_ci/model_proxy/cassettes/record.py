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
from zelda_ci.model_proxy.cassettes import normalise
from zelda_ci.model_proxy.cassettes.cassette import (
    Cassette,
    Exchange,
    RecordedRequest,
    RecordedResponse,
    as_json,
    joined,
    partial_file,
    write,
)
from zelda_ci.model_proxy.cassettes.match import Fingerprints
from zelda_ci.model_proxy.cassettes.normalise import Placeholders
from zelda_ci.model_proxy.limits import MAX_RECORDING_BYTES, in_mib
from zelda_ci.model_proxy.wire import Call, CassetteState, EventReader, Headers
from zelda_ci.redact import Redactor

log = logging.getLogger(__name__)

# Response headers that the CLI acts on or reports.
KEPT_HEADERS = ("content-type", "request-id", "retry-after", "retry-after-ms", "x-should-retry")


@contextmanager
def recording(
    file: Path, label: str, placeholders: Placeholders, redact: Redactor, max_bytes: int = MAX_RECORDING_BYTES
) -> Iterator["Recording"]:
    """Record what a run asks and is answered.

    The answers are read and masked in a thread, one after the other, and appended to a file beside the recording's
    place: a run that is killed leaves all but the last. The whole recording takes its place at the end, unless the
    block fails, so that an interrupted one never replaces a good one.
    """
    with ThreadPoolExecutor(1) as thread:
        made = Recording(file, label, placeholders, redact, max_bytes, thread)
        yield made
        thread.submit(made.take_place).result()


class Recording(CassetteState):
    """The recording of one run, which sees its requests and answers pass."""

    def __init__(
        self,
        file: Path,
        label: str,
        placeholders: Placeholders,
        redact: Redactor,
        max_bytes: int,
        thread: Executor,
    ) -> None:
        self._file = file
        self._label = label
        self._placeholders = placeholders
        self._redact = redact
        self._bytes_left = max_bytes
        self._too_large = f"it is larger than {in_mib(max_bytes)}, the most that a recording may have"
        self._thread = thread
        self._fingerprints = Fingerprints(placeholders, redact)
        self._threads: dict[str | None, str] = {None: "main"}
        self._cli = redact("unknown")
        self._exchanges: list[Exchange] = []

    def begin(self, call: Call) -> "RecordedAnswer":
        """A request is sent; the value observes its answer."""
        return RecordedAnswer(self._threads.setdefault(call.agent_id, f"agent-{len(self._threads)}"), call)

    def end(self, answer: "RecordedAnswer", *, cut: bool) -> None:
        """Keep an answer as far as it came."""
        answer.cut = cut
        if answer.status:
            self._thread.submit(self._keep, answer)

    def _keep(self, answer: "RecordedAnswer") -> None:
        with self._failing():
            if self.failure is None:
                self._append(self._exchange(answer))

    def _exchange(self, answer: "RecordedAnswer") -> Exchange:
        call = answer.call
        self._cli = self._redact(call.header("user-agent") or self._cli)
        self._placeholders.update(normalise.named(call))
        fingerprint = self._fingerprints(call.body)
        request = RecordedRequest(
            thread=answer.thread,
            turn=fingerprint.turn,
            model=self._redact(fingerprint.model),
            digest=fingerprint.digest,
            parts=dict(fingerprint.parts),
            tools=tuple(map(self._redact, fingerprint.tools)),
            said=fingerprint.excerpt,
        )
        return Exchange(request=request, response=answer.response(self._placeholders, self._redact.known_only()))

    def _append(self, exchange: Exchange) -> None:
        line = as_json(exchange)
        self._bytes_left -= len(line)
        if self._bytes_left < 0:
            self._fail(self._too_large)
            return
        ownership.make_folder(self._file.parent)
        how = "ab" if self._exchanges else "wb"
        with open(partial_file(self._file), how, opener=untrusted.open_regular) as partial:
            ownership.hand_over(partial.fileno(), self._file.parent)
            partial.write(line)
        self._exchanges.append(exchange)

    def take_place(self) -> None:
        """The run is over: the recording takes its place, unless it is empty or incomplete."""
        if self._exchanges and self.failure is None:
            cassette = Cassette(zelda=__version__, cli=self._cli, label=self._label, exchanges=tuple(self._exchanges))
            with self._failing():
                write(self._file, cassette)
                partial_file(self._file).unlink()

    @contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except Exception as exc:  # noqa: BLE001 - it costs the recording, and not the session
            self._fail(getattr(exc, "strerror", None) or repr(exc))

    def _fail(self, why: str) -> None:
        """The session goes on without being recorded; what is written already stays beside the place of the file."""
        log.warning("the recording %s cannot be written: %s", self._file, why)
        self.failure = self._redact(f"the recording {self._file} cannot be written: {why}")
        self._exchanges.clear()


class RecordedAnswer:
    """Observes one answer until it is complete or cut."""

    def __init__(self, thread: str, call: Call) -> None:
        self.thread, self.call = thread, call
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
        if reader.malformed or not values or not (reader.is_complete or self.cut):
            return None
        events = [value for value in values if value is not None]
        return events if len(events) == len(values) else None
