"""Recorded sessions: written while a session runs, and played instead of one, without key and network.

A cassette is one run on disk: a readable JSON file, in which the pieces of a stream are joined.
"""

import difflib
import itertools
import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

import anyio
import anyio.to_thread
from pydantic import Field, ValidationError

from zelda_ci import __version__
from zelda_ci.domain.base import Record
from zelda_ci.errors import ProxyError
from zelda_ci.files import untrusted
from zelda_ci.files.atomic import write_whole
from zelda_ci.model_proxy import wire
from zelda_ci.model_proxy.session_texts import RecordedRequest, SessionTexts
from zelda_ci.model_proxy.wire import DO_NOT_RETRY, JSON, AnswerEvents, ApiAnswer, BrokenOff, Call, CassetteState, once
from zelda_ci.redact import SafeJson, SafeText

log = logging.getLogger(__name__)

MAX_RECORDING_BYTES = 256 << 20
# Response headers that the CLI acts on or reports.
KEPT_HEADERS = ("content-type", "request-id", "retry-after", "retry-after-ms", "x-should-retry")
# Deltas that grow a text, and the field that holds the next piece.
PIECES = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}

# Token counts are not recorded: they steer nothing but displays, so a rule of thumb answers.
BYTES_PER_TOKEN = 4
MAX_REMARKS = 5
NOT_EXACT = "the replay was not exactly what was recorded"
DIFF_LINES, DIFF_WIDTH = 16, 160


class Exchange(Record):
    """One request with its answer: the events of a stream, a JSON object, or any other text."""

    request: RecordedRequest
    status: int = Field(ge=100, le=599)
    headers: dict[str, SafeText] = Field(default_factory=dict)
    content: tuple[SafeJson, ...] | SafeJson | SafeText
    cut: Literal[True] | None = None
    """Present where the answer broke off."""


class Cassette(Record):
    """One run; exchanges in the order in which their answers ended."""

    format: Literal[5] = 5
    """Raised also when requests are compared in another way: recordings of before would fit nothing."""
    zelda: str
    cli: SafeText
    label: str
    exchanges: tuple[Exchange, ...] = ()


def load(file: Path) -> Cassette:
    """Read a cassette; a `ProxyError` says why it cannot be used."""
    code = "CASSETTE_DAMAGED"
    try:
        return Cassette.model_validate_json(untrusted.read(file, MAX_RECORDING_BYTES, follow_link=True))
    except FileNotFoundError:
        code, why = "CASSETTE_MISSING", f"there is no recording {file}"
    except OSError as exc:
        why = f"the recording {file} cannot be read: {exc.strerror}"
    except ValidationError as exc:
        first = exc.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        why = f"the recording {file} is damaged: {where}: {first['msg']}"
    raise ProxyError(why, hint="Record the session with zelda run --record.", code=code)


def write(file: Path, cassette: Cassette) -> None:
    """Write a cassette whole: readers see the old file or the new one, never half of either."""
    text = json.dumps(cassette.model_dump(mode="json", by_alias=True, exclude_none=True), ensure_ascii=False, indent=1)
    # Halves of characters become question marks.
    write_whole(file, [f"{text}\n".encode(errors="replace")])


def joined(events: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Join the deltas of each block, so that no path is split between two of them, and read a call's input."""

    def block_and_kind(event: dict[str, Any]) -> tuple[object, str | None]:
        match event:
            case {"type": "content_block_delta", "index": index, "delta": {"type": str(kind)}} if kind in PIECES:
                return index, kind
            case _:
                return None, None

    sent = (event for event in events if event.get("type") != "ping")
    for (_, kind), group in itertools.groupby(sent, key=block_and_kind):
        if kind is None:
            yield from group
            continue
        pieces = list(group)
        delta = pieces[0]["delta"] | {PIECES[kind]: "".join(str(it["delta"].get(PIECES[kind], "")) for it in pieces)}
        if kind == "input_json_delta":
            # The model's mistake is kept as it is.
            with suppress(ValueError):
                delta = {"type": kind, "input": json.loads(delta["partial_json"])}
        yield pieces[0] | {"delta": delta}


def played(events: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield joined events as the API sends them."""
    for event in events:
        match event:
            case {"delta": {"type": "input_json_delta" as kind, "input": arguments}}:
                yield {**event, "delta": {"type": kind, "partial_json": json.dumps(arguments)}}
            case _:
                yield event


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
        # The object or the events, or the text where it is neither.
        content: object = wire.read_object(body)
        if content is None:
            reader = AnswerEvents()
            events = [*reader.feed(body), *reader.end()]
            content = [*joined(events)] if events and all(events) else body.decode("utf-8", "replace")
        safe = texts.redact.known_only().json({"headers": kept, "content": texts.blank(content)})
        return Exchange.model_validate({"request": request, "status": answer.status, "cut": cut or None, **safe})


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
            number: recorded.differences(request)
            for number, recorded in self._requests().items()
            if recorded.asked == request.asked
        }
        if not different:
            yield await self._refusal(request)
            return
        number = min(different, key=lambda number: len(different[number]))
        if names := ", ".join(different[number]):
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
        if others := self._requests():
            far = {n: (it.thread != request.thread, abs(it.turn - request.turn)) for n, it in others.items()}
            nearest = min(far, key=lambda number: far[number])
            # In a thread: texts that have nothing in common take long.
            shown = await anyio.to_thread.run_sync(_difference, others[nearest].asked, request.asked)
            why = f"{why}; the nearest is {self._name(nearest)}:\n{shown}"
        self.failure = self.failure or self._texts.redact(why)
        message = self._texts.redact(f"Zelda's replay stops here: {why}")
        return ApiAnswer(409, [JSON, *DO_NOT_RETRY], once(wire.error_body("invalid_request_error", message)))

    def _requests(self) -> dict[int, RecordedRequest]:
        return {number: exchange.request for number, exchange in self._unused.items()}

    def _name(self, number: int) -> str:
        return f"exchange {number} ({self._unused[number].request.place})"


def _difference(recorded: str, asked: str) -> str:
    """Return the difference of what two requests ask, shortened."""
    lines = list(difflib.unified_diff(recorded.splitlines(), asked.splitlines(), "recorded", "now", n=1, lineterm=""))
    shown = [line if len(line) <= DIFF_WIDTH else line[:DIFF_WIDTH] + "..." for line in lines[:DIFF_LINES]]
    return "\n".join([*shown, f"({len(lines) - DIFF_LINES} more lines)"] if len(lines) > DIFF_LINES else shown)
