"""Recorded sessions: written while a session runs, and played instead of one, without key and network.

A cassette is one run on disk: a readable JSON file, in which the pieces of a stream are joined, without secrets, paths
and ids. Its requests are fingerprints: no time, id and place in a tool's output decides whether two match. Numbers of
these kinds are known by a unit of time, the name of what they measure, or a format that only times and addresses have;
others count: `12 rows` is not `13 rows`. The expressions are RE2's, whose time grows with a text, not with its square.
"""

import difflib
import hashlib
import itertools
import json
import logging
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Literal, Self

import anyio
import anyio.to_thread
import re2
from anyio import AsyncContextManagerMixin
from pydantic import Field, ValidationError

from zelda_ci import __version__
from zelda_ci.domain.base import Record
from zelda_ci.domain.manifest import CONNECTED_LATE
from zelda_ci.errors import ProxyError
from zelda_ci.files import untrusted
from zelda_ci.files.atomic import write_whole
from zelda_ci.judge.rendering import OPENING
from zelda_ci.model_proxy import wire
from zelda_ci.model_proxy.meter import BYTES_PER_TOKEN
from zelda_ci.model_proxy.wire import ApiAnswer, Call, CassetteState, blocks, dicts, once, texts
from zelda_ci.redact import UNKNOWN, Redactor, SafeJson, SafeText

log = logging.getLogger(__name__)

MAX_RECORDING_BYTES = 256 << 20
# Response headers that the CLI acts on or reports.
KEPT_HEADERS = (b"content-type", b"request-id", b"retry-after", b"retry-after-ms", b"x-should-retry")
# Deltas that grow a text, and the field that holds the next piece.
PIECES = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}
MAX_REMARKS = 5
NOT_EXACT = "the replay was not exactly what was recorded"
DIFF_LINES, DIFF_WIDTH = 16, 160

_WEEKDAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_DAY = rf"(?:\b{_WEEKDAY},? +)?\b(?:\d+ {_MONTH}|{_MONTH} +\d\d?)\b,?"
_DATE = rf"{_DAY} +\d\d(?:\d\d|:\d\d)[\d: ]*(?:[A-Z]{{2,5}} )?(?:\d{{4}})?(?: ?[+-]\d{{4}})?"
_NUMBER = r"\d[\d,_]*(?:\.\d+)?(?:[eE][+-]?\d+)?"
_UNIT = r"(?:[nuµμm]s|s|msecs?|secs?|mins?|(?:milli|micro|nano)?seconds?|millis|minutes?)"
_LARGE_UNIT = r"(?:d|days?|h|hrs?|hours?|m|mins?|minutes?)"
_MEASURED = rf"(?:duration|elapsed|latency|timestamp|timing|time)(?:[_-]?(?:in[_-]?)?{_UNIT})?"

_UUID = re2.compile(r"(?i)\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b")

_CIRCUMSTANCES: tuple[tuple[str, str | Callable[[Any], str]], ...] = (
    (r"\x1b\[[\d;]*[A-Za-z]", ""),
    # Claude Code's own: ids (they have names in a session's requests by now, not in a judge's), and where the preview
    # of a long output ends, which depends on the length of the numbers in it.
    (r"(\bagentId: |\bwith ID: |/tool-results/|/tasks/)[ab][0-9a-z]{8,16}\b", r"\1<handle>"),
    (r"Output too large \([^)\n]*\)", "Output too large (<size>)"),
    (r"\n[^\n]*\n\.\.\.\n</persisted-output>", "\n</persisted-output>"),
    # Machines and days.
    (r"^[-dlbcps][rwxsStT-]{9}[.+@]? +\d+ +\S+ +\S+ +\d+(?:, +\d+)? +\S+ +\S+ +\S+ ", "<ls> "),
    (r"^total \d+$", "total <n>"),
    (r"^(?:platform|plugins:|rootdir:|cachedir:) .*$", "<pytest>"),
    (_DATE, "<time>"),
    (r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?(?:Z\b|[+-]\d\d:?\d\d))?)?", "<time>"),
    (r"\b\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?\b(?: ?[AP]M\b)?| ?[AP]M\b)|\b\d{1,3}:\d\d\.\d+\b", "<time>"),
    (r"\b1[5-9]\d{8}(?:\d{3}){0,3}(?:\.\d+)?\b|\b\d{8}T\d{6}Z?\b|\b\d\d?/\d\d?/\d{4}\b", "<time>"),
    # Places, processes, chance; the ports are those that a system chooses.
    (r"(?:/(?:tmp|var/folders|var/tmp)|\{\{zelda:tmp\}\})/[\w.+/{}-]+", "<temporary>"),
    (r"\b(?:127\.0\.0\.1|localhost|0\.0\.0\.0):\d+|\[::1?\]:\d+", "<local>"),
    (r"\b([Pp]orts?)\b[\"' :=#]{1,4}(?:3[2-9]|[45]\d|6[0-5])\d{3}\b", r"\1 <local>"),
    (r"\b0x[0-9a-fA-F]{4,}\b", "<address>"),
    (r"\b(?:p?pid|P?PID|[Pp]rocess(?: ?(?:id|ID))?)\b[\"' :=#]{1,4}\d+", "<process>"),
    (r"(?i)\b(seed)\b[\"' :=]{1,4}\d+", r"\1 <seed>"),
    # Durations, and what is computed from them. None begins inside a word, unless that is an escape in JSON.
    (rf"\b{_NUMBER} ?[A-Za-z]+/s(?:ec(?:onds?)?)?\b", "<rate>"),
    (rf"(?i)({_MEASURED})\b[\"')]{{0,2}} ?[:=] *[\"']?{_NUMBER}(?: ?{_UNIT})?\b", r"\1 <duration>"),
    (rf"(^|[^\w.]|\\[tnr])(?:{_NUMBER} ?{_LARGE_UNIT},? ?)*{_NUMBER} ?{_UNIT}\b", r"\1<duration>"),
    (r"^(ok[ \t]+\S+[ \t]+)\(cached\)", r"\1<duration>"),
    (rf"\b([Mm]em(?:ory)?(?: usage| used)?)[\"' :=]{{1,4}}{_NUMBER} ?[KMG]i?B\b", r"\1 <size>"),
    # The rest of a fraction is no hash.
    (r"(\d\.\d\w*)|\b[0-9a-f]{7,64}\b", lambda match: match[1] or "<hash>"),
    (r"\bv?\d+\.\d+\.\d+[\w.+-]*", "<version>"),
    # Runners tell some durations only where they are long, and fill lines up to a width.
    (r"[ \t]*[(\[]<(?:duration|time)>[)\]]", ""),
    (r"[ \t]+(<(?:duration|time|rate|size)>)", r" \1"),
    (r"={3,}|_{3,}|\*{3,}|~{3,}|-{3,}", lambda match: match[0][:3]),
    # Our own, in what a judge is asked: which server was late, and where a text is cut, which depends on the length of
    # such numbers.
    (rf" \({CONNECTED_LATE}[^)\n]*\)", ""),
    (r"(?:^[^\n]*)?\n\[\.\.\. \d+ characters are left out here[^\n]*\n[^\n]*", "<left out>"),
)
CIRCUMSTANCES = tuple((re2.compile(f"(?m){pattern}"), new) for pattern, new in _CIRCUMSTANCES)
# Parts of their own; and ids, and what the CLI changes when it repeats a request without streaming.
NO_OPTIONS = frozenset({"model", "messages", "system", "tools", "metadata", "stream", "max_tokens"})
# The CLI's note on branch and recent commits, which have other hashes each time, and its line for the bill.
STATUS, BILLING = re.compile(r"<system-reminder>\n[^\n]*\n# gitStatus\n"), "x-anthropic-billing-header"
# Beginnings of paragraphs that the CLI writes about the machine, the day, the tokens used and what is on its way.
VOLATILE_SECTIONS = (
    *("# Environment", "Today's date is", "The date has changed", "<total_tokens>"),
    *("The following MCP servers are still connecting", "[SYSTEM NOTIFICATION"),
)
# Ids that Claude Code makes up and its tools report: the model repeats them later, to reach what they stand for.
_HANDLE = re.compile(r"(?:\bagentId: |\bwith ID: |/tool-results/)([ab][0-9a-z]{8,16})\b")

_json = json.JSONEncoder(ensure_ascii=False).encode
_MARK = re.compile(r"\{\{zelda:([\w-]+)\}\}")


def without_identifiers(text: str) -> str:
    """Return the text without session and message ids."""
    # RE2 reads no halves of characters, which a text has that was cut.
    return str(_UUID.sub("<uuid>", text.encode(errors="replace").decode()))


def without_circumstances(text: str) -> str:
    """Return a tool's output without times, durations, hashes, versions, processes, ports and owners."""
    text = without_identifiers(text)
    for pattern, new in CIRCUMSTANCES:
        text = pattern.sub(new, text)
    return text


class RecordedRequest(Record):
    """A request, reduced to what two runs of the same session have in common.

    `thread` is `main` or `sub-agent`, `turn` the number of assistant messages in the conversation, `context` holds
    digests of its prompt, of tools and the like, by name.
    """

    thread: str
    turn: int
    model: SafeText
    last_message: SafeText
    context: dict[str, str]

    @property
    def asked(self) -> str:
        """What a recorded request must have word for word in common with one that gets its answer."""
        return f"{self.place}, {self.model} is told:\n{self.last_message}"

    @property
    def place(self) -> str:
        """Where in the session it is asked, in words."""
        return f"{self.thread} after {self.turn} model responses"

    def differences(self, other: "RecordedRequest") -> list[str]:
        """Return in what two requests differ beside what they ask."""
        return [name for name, digest in other.context.items() if self.context.get(name) != digest]


class SessionTexts:
    """Takes secrets, paths and ids out of the texts of one run, and puts paths and ids back, as `{{zelda:name}}`.

    `places` are texts by name (letters, digits, underscores): where two overlap, the longer wins, then the earlier.
    A path also has a mark for its slug, as which Claude Code names its folders after the working directory.
    """

    def __init__(self, places: Mapping[str, str], redact: Redactor) -> None:
        self.redact = redact
        self._values: dict[str, str] = {}
        self._marks: dict[str, str] = {}
        self._pattern = re.compile("(?!)")
        self.add({name: value for name, value in places.items() if len(value) > 1})

    def add(self, values: Mapping[str, str]) -> None:
        """Add values that have turned up; a name keeps its first value."""
        if values.keys() <= self._values.keys():
            return
        for name, value in values.items():
            self._values.setdefault(name, value)
            if value.startswith("/"):
                self._values.setdefault(f"{name}-slug", "/" + re.sub(r"[^A-Za-z0-9]", "-", value))
        spelled = ((name, _json(value)[1:-1]) for name, value in reversed(self._values.items()))
        self._marks = {value: f"{{{{zelda:{name}}}}}" for name, value in spelled}
        # A regular expression takes the first alternative that fits, and one path may begin with another.
        longest_first = sorted(self._marks, key=len, reverse=True)
        # A value ends where a word ends.
        self._pattern = re.compile(rf"(?:{'|'.join(map(re.escape, longest_first))})(?![A-Za-z0-9_])")

    def blank(self, value: Any) -> Any:
        """Take the values out of every string of a JSON value, keys included."""
        return json.loads(self._pattern.sub(lambda match: self._marks[match[0]], _json(value)))

    def fill(self, value: Any) -> Any:
        """Put the values back into every string of a JSON value."""
        values = self._values
        return json.loads(_MARK.sub(lambda match: _json(values.get(match[1], match[0]))[1:-1], _json(value)))

    def fingerprint(self, call: Call) -> RecordedRequest:
        """Reduce a request to what two runs of the same session have in common; its generated ids are added."""
        self.add(generated_ids(call))
        body, messages = call.body, dicts(call.body.get("messages"))
        notes = [message for message in messages if message.get("role") == "system"]
        spoken = [message for message in messages if message.get("role") != "system"]
        # What is before the model's last response was the last message of earlier requests.
        last = itertools.takewhile(lambda message: message.get("role") != "assistant", reversed(spoken))
        context = {
            "prompt": self._said(spoken[:1]),
            "system prompt": [text for text in texts(body.get("system")) if not text.startswith(BILLING)],
            "notes": self._notes(notes),
            # Servers bring their tools in an order that is chance.
            "tools": sorted(map(self._digest, dicts(body.get("tools")))),
            "options": {key: value for key, value in body.items() if key not in NO_OPTIONS},
        }
        return RecordedRequest(
            thread="sub-agent" if call.agent_id else "main",
            turn=sum(message.get("role") == "assistant" for message in messages),
            model=self.redact(str(body.get("model", ""))),
            last_message=self._said(last),
            context={name: self._digest(part) for name, part in context.items()},
        )

    def _said(self, messages: Iterable[Mapping[str, Any]]) -> SafeText:
        """Return the text of messages; results come in the order in which the tools ended."""
        told = (block for message in messages for block in blocks(message.get("content")))
        return self.redact("\n".join(sorted(map(self._readable, told))).strip())

    def _notes(self, messages: Iterable[Mapping[str, Any]]) -> list[str]:
        """Return the lines of the CLI's notes: when each of them comes, and in which list, is a matter of time."""
        notes = [text for message in messages for text in texts(message.get("content"))]
        paragraphs = {paragraph.strip() for text in notes for paragraph in text.split("\n\n")}
        lasting = (paragraph for paragraph in paragraphs if not paragraph.startswith(VOLATILE_SECTIONS))
        return sorted({without_circumstances(self._plain(line)) for it in lasting for line in it.splitlines() if line})

    def _readable(self, block: Mapping[str, Any]) -> str:
        """Return a block as text, without ids and paths, and in a tool's output without times and the like."""
        match block:
            case {"type": "text", "text": str(text)}:
                plain = "" if STATUS.match(text) else self._plain(text)
                return without_circumstances(plain) if OPENING in plain else plain
            case {"type": "tool_result"}:
                output = [without_circumstances(self._readable(part)) for part in blocks(block.get("content"))]
                failed = ", an error" if block.get("is_error") else ""
                return "\n".join([f"[result of {block.get('tool_use_id')}{failed}]", *output])
            case _:
                return f"[{block.get('type')} {self._digest(block)}]"

    def _digest(self, value: Any) -> str:
        if isinstance(value, dict):
            # Where the cache begins changes from request to request.
            value = {key: item for key, item in value.items() if key != "cache_control"}
        plain = self.redact(without_identifiers(json.dumps(self.blank(value), sort_keys=True)))
        # Short: a recording has a hundred requests, not millions, and people compare them by eye.
        return hashlib.sha256(plain.encode()).hexdigest()[:16]

    def _plain(self, text: str) -> str:
        return self.redact(without_identifiers(self.blank(text)))


def generated_ids(call: Call) -> dict[str, str]:
    """Return the session's id and the handles in a request's tool results, by names that are the same in every run."""
    session = call.header("x-claude-code-session-id")
    found = {"sessionId": session} if session else {}
    for message in dicts(call.body.get("messages")):
        for block in dicts(message.get("content")):
            if block.get("type") == "tool_result" and (match := _HANDLE.search("\n".join(texts(block.get("content"))))):
                found["handle_" + re.sub(r"[^A-Za-z0-9]", "_", str(block.get("tool_use_id")))] = match[1]
    return found


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


class Recording(CassetteState, AsyncContextManagerMixin):
    """Records what a run asks and is answered, as long as the block lasts; that is read in a thread, in its order.

    The file appears at the end, whole, unless nothing was asked or the block fails: a run that is interrupted or killed
    leaves none, and never replaces a good one. What goes wrong costs the recording, and not the session.
    """

    def __init__(self, file: Path, label: str, texts: SessionTexts) -> None:
        self._file, self._label, self._texts, self._thread = file, label, texts, ThreadPoolExecutor(1)
        self._cli, self._exchanges = UNKNOWN, list[Future[Exchange]]()

    @asynccontextmanager
    async def __asynccontextmanager__(self) -> AsyncGenerator[Self, None]:
        try:
            yield self
            await anyio.to_thread.run_sync(self._write)
        finally:
            self._thread.shutdown(wait=False, cancel_futures=True)

    def keep(self, call: Call, answer: ApiAnswer, body: bytes, *, cut: bool) -> None:
        """Keep a request and its answer, as far as that came."""
        self._cli = self._texts.redact(call.header("user-agent") or self._cli)
        self._exchanges.append(self._thread.submit(self._exchange, call, answer, body, cut=cut))

    def _write(self) -> None:
        try:
            if exchanges := tuple(exchange.result() for exchange in self._exchanges):
                write(self._file, Cassette(zelda=__version__, cli=self._cli, label=self._label, exchanges=exchanges))
        except Exception as exc:  # noqa: BLE001 - costs the recording alone
            self.failure = self._texts.redact(f"the recording {self._file} cannot be written: {str(exc) or repr(exc)}")
            log.warning("%s", self.failure)

    def _exchange(self, call: Call, answer: ApiAnswer, body: bytes, *, cut: bool) -> Exchange:
        """Return request and answer without paths, ids and secrets."""
        texts, request = self._texts, self._texts.fingerprint(call)
        kept = {name.decode(): value.decode("latin-1") for name, value in answer.headers if name in KEPT_HEADERS}
        # The object or the events, or the text where it is neither.
        content: object = wire.read_object(body)
        if content is None:
            reader = wire.AnswerEvents()
            events = [*reader.feed(body), *reader.end()]
            content = [*joined(events)] if events and all(events) else body.decode("utf-8", "replace")
        safe = texts.redact.known_only().json({"headers": kept, "content": texts.blank(content)})
        return Exchange.model_validate({"request": request, "status": answer.status, "cut": cut or None, **safe})


class ReplaySource(CassetteState):
    """Answers each request with the recorded exchange that belongs to it, and hands each of them out once."""

    def __init__(self, cassette: Cassette, texts: SessionTexts) -> None:
        self._unused = dict(enumerate(cassette.exchanges, start=1))
        self._cli: str | None = cassette.cli
        self._texts, self._lock, self._divergences = texts, anyio.Lock(), list[str]()

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
            # These are not recorded: they steer nothing but displays, so a rule of thumb answers.
            yield ApiAnswer(200, [wire.JSON], once(wire.write({"input_tokens": len(call.raw_body) // BYTES_PER_TOKEN})))
            return
        agent = call.header("user-agent") or UNKNOWN
        if self._cli and agent != self._cli:
            self._divergences.append(f"the recording was made with {self._cli}, this is {agent}")
        self._cli = None  # once is enough
        # In a thread: other runs go on meanwhile. One after the other: each may name what the next one says.
        async with self._lock:
            request = await anyio.to_thread.run_sync(self._texts.fingerprint, call)
        equal = {n: it.request for n, it in self._unused.items() if it.request.asked == request.asked}
        different = {number: recorded.differences(request) for number, recorded in equal.items()}
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
                raise wire.BrokenOff

        headers = [(name.encode(), value.encode()) for name, value in exchange.headers.items()]
        return ApiAnswer(exchange.status, headers, chunks())

    async def _refusal(self, request: RecordedRequest) -> ApiAnswer:
        why = f"the recording has no answer for the request of {request.place}"
        if others := {number: exchange.request for number, exchange in self._unused.items()}:
            far = {n: (it.thread != request.thread, abs(it.turn - request.turn)) for n, it in others.items()}
            nearest = min(far, key=lambda number: far[number])
            # In a thread: texts that have nothing in common take long.
            shown = await anyio.to_thread.run_sync(_difference, others[nearest].asked, request.asked)
            why = f"{why}; the nearest is {self._name(nearest)}:\n{shown}"
        self.failure = self.failure or self._texts.redact(why)
        message = self._texts.redact(f"Zelda's replay stops here: {why}")
        return ApiAnswer(409, [wire.JSON, *wire.DO_NOT_RETRY], once(wire.error_body("invalid_request_error", message)))

    def _name(self, number: int) -> str:
        return f"exchange {number} ({self._unused[number].request.place})"


def _difference(recorded: str, asked: str) -> str:
    """Return the difference of what two requests ask, shortened."""
    lines = list(difflib.unified_diff(recorded.splitlines(), asked.splitlines(), "recorded", "now", n=1, lineterm=""))
    shown = [line if len(line) <= DIFF_WIDTH else line[:DIFF_WIDTH] + "..." for line in lines[:DIFF_LINES]]
    return "\n".join([*shown, f"({len(lines) - DIFF_LINES} more lines)"] if len(lines) > DIFF_LINES else shown)
