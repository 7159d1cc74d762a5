"""Stored records as bytes and back, and those of a session as its transcript. Pure: no disk."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final, TypeVar

import orjson
from pydantic import TypeAdapter, ValidationError

from zelda_ci.domain import session
from zelda_ci.domain.base import SCHEMA_VERSION, Record
from zelda_ci.domain.nights import NightlyHistory
from zelda_ci.domain.run import Pool, RunResult
from zelda_ci.errors import StorageError
from zelda_ci.redact import UNKNOWN, SafeText, joined

_RECORD: Final = TypeAdapter[session.SessionRecord](session.SessionRecord)
Stored = TypeVar("Stored", bound=Record)
MAX_PLACE_LENGTH = 200
_Servers = dict[SafeText, session.McpServerState]


class UnreadableError(StorageError):
    """A file is not what its name says: `RESULT_DAMAGED`, `RESULT_FOREIGN` or `RESULT_NEWER`."""


def encode(record: Record, *, indent: int | None = None) -> bytes:
    """A record in a line of JSON, or indented for people who read it, too; keys without a value are left out."""
    return f"{_json(record, indent=indent)}\n".encode()


def decode(model: type[Stored], data: bytes, name: str) -> Stored:
    """The record in a whole file, by its name in messages; raises `UnreadableError`. Unknown keys are ignored."""
    try:
        return model.model_validate_json(data)
    except ValidationError as problem:
        # Keys of a foreign file are foreign text: spelled out, none of it acts on a terminal.
        key = ascii(".".join(map(str, problem.errors()[0]["loc"])))[1:-1][:MAX_PLACE_LENGTH]
    hint = "Move it away, or make it anew with a run."
    try:
        tree = orjson.loads(data)
    except orjson.JSONDecodeError as broken:
        raise UnreadableError(f"{name} is damaged: {broken}.", hint=hint, code="RESULT_DAMAGED") from None
    version = tree.get("schemaVersion") if isinstance(tree, dict) else None
    if isinstance(version, int) and version > SCHEMA_VERSION:
        message = f"{name} was written by a newer Zelda (schema {version}, this one reads up to {SCHEMA_VERSION})."
        raise UnreadableError(message, hint="Update Zelda, or repeat the run.", code="RESULT_NEWER")
    why = f": {key} is missing or has an unexpected value" if isinstance(version, int) else ""
    raise UnreadableError(f"{name} is not a file that Zelda wrote{why}.", hint=hint, code="RESULT_FOREIGN")


def encode_within(record: Pool | NightlyHistory, max_bytes: int) -> bytes:
    """A pool or history that fits: where it is too large, its oldest trials or nights are left out."""
    name, age = ("trials", ("finished_at", "run_id")) if isinstance(record, Pool) else ("nights", ("at", "batch_id"))
    kept = sorted(getattr(record, name), key=attrgetter(*age))
    while len(data := encode(record.replace(**{name: tuple(kept)}))) > max_bytes and kept:
        del kept[: max(1, len(kept) // 4)]
    return data


def encode_transcript(transcript: session.SessionTranscript) -> Iterator[bytes]:
    """One entry per line, so that no more than one is held in memory twice."""
    yield _json(transcript, without={"entries"})[:-1].encode()
    separator = ',"entries":[\n'
    for entry in transcript.entries:
        yield f"{separator}{_json(entry)}".encode()
        separator = ",\n"
    yield b"\n]}\n" if transcript.entries else b"}\n"


def decode_record(line: bytes) -> session.SessionRecord | None:
    """The record in a line of the journal; nothing where the line is torn or was never ours."""
    try:
        return _RECORD.validate_json(line)
    except ValidationError:
        return None


def _json(record: Record, *, indent: int | None = None, without: set[str] | None = None) -> str:
    return record.model_dump_json(by_alias=True, exclude_none=True, exclude=without, indent=indent)


def transcript_of(
    run: RunResult, prompt: SafeText, records: Sequence[session.SessionRecord], wall_seconds: float | None = None
) -> session.SessionTranscript:
    """Fold the records of a run's session, complete or cut off anywhere, into its transcript. Nothing said is lost.

    The blocks of one response share a message id and a thread: they become one turn, at the place of the first.
    Results join their calls; a result without a call stays an entry of its own, a call without a result has no output.
    Of several init and result messages the last tells most: servers have connected, and costs add up over them.
    """
    started: session.Started | None = None
    ended: session.Ended | None = None
    servers: _Servers = {}
    turns: dict[tuple[SafeText, SafeText | None], _OpenTurn] = {}
    # By id of a call, those of the last response that made it.
    calls: dict[SafeText, dict[str, session.ToolCall]] = {}
    denied: set[str] = set()
    entries: list[_OpenTurn | session.Entry] = []
    for record in records:
        match record:
            case session.ServersReported():
                _update_servers(servers, record.servers, record.at, has_started=started is not None)
            case session.Started():
                _update_servers(servers, record.mcp_servers, record.at, has_started=started is not None)
                started = record
            case session.Ended():
                ended = record
            case session.AssistantSaid() | session.ToolCalled() | session.ResponseEnded():
                key = (record.message_id, record.parent_tool_call_id)
                if key not in turns:
                    turns[key] = _OpenTurn(*key, record.at)
                    entries.append(turns[key])
                turns[key].add(record)
                if isinstance(record, session.ToolCalled):
                    calls[record.id] = turns[key].calls
            case session.ToolReturned() if (own := calls.get(record.id)) and own[record.id].ended_at is None:
                answer = {"output": record.output, "is_error": record.is_error, "images": record.images}
                own[record.id] = own[record.id].replace(**answer, ended_at=record.at)
            case _:
                if isinstance(record, session.Denied) and record.tool_call_id:
                    denied.add(record.tool_call_id)
                entries.append(record)
    numbers = itertools.count(1)
    return session.SessionTranscript(
        run_id=run.run_id,
        prompt=prompt,
        started_at=run.started_at,
        status=run.status,
        reason=run.failure.message if run.failure else None,
        wall_seconds=wall_seconds if wall_seconds is not None else records[-1].at if records else 0.0,
        started=started,
        mcp_servers=tuple(servers.values()),
        entries=tuple(
            entry.close(next(numbers), denied) if isinstance(entry, _OpenTurn) else entry
            for entry in _arranged(entries)
        ),
        ended=ended,
    )


def _update_servers(
    known: _Servers, servers: Iterable[session.McpServer], seconds: float, *, has_started: bool
) -> None:
    """Note the servers' states; the init message before says which of them the session had begun without."""
    for server in servers:
        before = known.get(server.name) or session.McpServerState(name=server.name, status=server.status)
        news = {name: getattr(server, name) for name in server.model_fields_set}
        if server.status != before.status:
            news.setdefault("error", None)
        if server.status == "connected" and before.connected_at is None:
            news |= {"connected_at": seconds, "late": has_started}
        known[server.name] = before.replace(**news)


@dataclass
class _OpenTurn:
    message_id: SafeText
    parent_tool_call_id: SafeText | None
    at: float
    model: SafeText | None = None
    texts: list[SafeText] = field(default_factory=list)
    thoughts: list[SafeText] = field(default_factory=list)
    calls: dict[str, session.ToolCall] = field(default_factory=dict)
    usage: session.Usage | None = None

    def add(self, record: session.AssistantSaid | session.ToolCalled | session.ResponseEnded) -> None:
        if isinstance(record, session.ResponseEnded):
            self.usage = record.usage
            return
        self.model = self.model or record.model
        if isinstance(record, session.AssistantSaid):
            (self.thoughts if record.thinking else self.texts).append(record.text)
        else:
            # Claude Code may repeat a block; the same id in another response is another call.
            call = session.ToolCall(id=record.id, name=record.name, input=record.input, started_at=record.at)
            self.calls.setdefault(record.id, call)

    def close(self, index: int, denied: set[str]) -> session.Turn:
        return session.Turn(
            index=index,
            message_id=self.message_id,
            model=self.model or UNKNOWN,
            parent_tool_call_id=self.parent_tool_call_id,
            at=self.at,
            text=joined("\n\n", self.texts) if self.texts else None,
            thinking=joined("\n\n", self.thoughts) if self.thoughts else None,
            tool_calls=tuple(call.replace(denied=True) if call.id in denied else call for call in self.calls.values()),
            usage=self.usage,
            synthetic=self.model == session.SYNTHETIC_MODEL,
        )


def _arranged(entries: Sequence[_OpenTurn | session.Entry]) -> Iterator[_OpenTurn | session.Entry]:
    """The main thread in the order of time, with each sub-agent's whole thread behind the turn that called it.

    Which of several threads or hooks comes first is a matter of milliseconds: in the order of time, the same session
    would read otherwise each time, and its turns would have other numbers.
    """
    calls = {call for entry in entries if isinstance(entry, _OpenTurn) for call in entry.calls}
    threads: dict[str | None, list[_OpenTurn | session.Entry]] = {None: []}
    for entry in entries:
        parent = getattr(entry, "parent_tool_call_id", None)
        threads.setdefault(parent if parent in calls else None, []).append(entry)
    waiting = _hooks_in_order(threads.pop(None))[::-1]
    while waiting or threads:
        # What is left over belongs to threads that call each other.
        waiting = waiting or _hooks_in_order(threads.pop(next(iter(threads))))[::-1]
        entry = waiting.pop()
        yield entry
        for call in reversed(entry.calls) if isinstance(entry, _OpenTurn) else ():
            waiting += _hooks_in_order(threads.pop(call, ()))[::-1]


def _hooks_in_order(entries: Iterable[_OpenTurn | session.Entry]) -> list[_OpenTurn | session.Entry]:
    """Neighbouring hooks by event, each in the order of its first; then by name, outcome and output."""
    ordered: list[_OpenTurn | session.Entry] = []
    for _, group in itertools.groupby(entries, key=lambda entry: isinstance(entry, session.HookRan)):
        neighbours = list(group)
        hooks = [entry for entry in neighbours if isinstance(entry, session.HookRan)]
        events = list(dict.fromkeys(hook.event for hook in hooks))
        hooks.sort(key=lambda hook: (events.index(hook.event), hook.name, hook.outcome, hook.output))
        ordered += hooks or neighbours
    return ordered
