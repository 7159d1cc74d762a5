"""From the records of a session, in the order in which they came, to its transcript."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from zelda_ci.domain.run import RunResult
from zelda_ci.domain.session import (
    AssistantSaid,
    Denied,
    Ended,
    Entry,
    HookRan,
    McpServer,
    McpServerState,
    Noticed,
    ResponseEnded,
    Retried,
    ServersReported,
    SessionRecord,
    SessionStatus,
    SessionTranscript,
    Started,
    ToolCall,
    ToolCalled,
    ToolReturned,
    Turn,
    Usage,
    UserSaid,
)
from zelda_ci.redact import UNKNOWN, SafeText, joined

# The name under which Claude Code speaks itself, mostly to tell of an error.
SYNTHETIC_MODEL = "<synthetic>"


def assemble(
    records: Iterable[SessionRecord],
    *,
    run_id: str,
    prompt: SafeText,
    started_at: datetime,
    status: SessionStatus,
    reason: SafeText | None,
    wall_seconds: float,
) -> SessionTranscript:
    """Fold the records of a session, complete or cut off anywhere, into its transcript. Nothing said is lost.

    The blocks of one response share a message id and a thread: they become one turn, at the place of the first.
    Results join their calls; a result without a call stays an entry of its own, a call without a result has no output.
    Of several init and result messages the last tells most: servers have connected, and costs add up over them.
    """
    log = _Log()
    for record in records:
        log.add(record)
    return SessionTranscript(
        run_id=run_id,
        prompt=prompt,
        started_at=started_at,
        status=status,
        reason=reason,
        wall_seconds=wall_seconds,
        started=log.started,
        mcp_servers=tuple(log.servers.values()),
        entries=log.entries(),
        ended=log.ended,
    )


def transcript_of(
    run: RunResult, prompt: SafeText, records: Sequence[SessionRecord], wall_seconds: float = 0.0
) -> SessionTranscript:
    """Fold the records of a run's session as far as they were heard; without a time, it lasted until the last."""
    return assemble(
        records,
        run_id=run.run_id,
        prompt=prompt,
        started_at=run.started_at,
        status=run.status,
        reason=run.failure.message if run.failure else None,
        wall_seconds=wall_seconds or (records[-1].at if records else 0.0),
    )


@dataclass
class _OpenCall:
    called: ToolCalled
    returned: ToolReturned | None = None

    def close(self, denied: set[str]) -> ToolCall:
        called, returned = self.called, self.returned
        return ToolCall(
            id=called.id,
            name=called.name,
            input=called.input,
            output=returned.output if returned else None,
            is_error=returned.is_error if returned else False,
            images=returned.images if returned else (),
            denied=called.id in denied,
            started_at=called.at,
            ended_at=returned.at if returned else None,
        )


@dataclass
class _OpenTurn:
    message_id: SafeText
    parent: SafeText | None
    at: float
    model: SafeText | None = None
    texts: list[SafeText] = field(default_factory=list)
    thoughts: list[SafeText] = field(default_factory=list)
    calls: dict[str, _OpenCall] = field(default_factory=dict)
    usage: Usage | None = None

    def close(self, index: int, denied: set[str]) -> Turn:
        return Turn(
            index=index,
            message_id=self.message_id,
            model=self.model or UNKNOWN,
            parent_tool_call_id=self.parent,
            at=self.at,
            text=joined("\n\n", self.texts) if self.texts else None,
            thinking=joined("\n\n", self.thoughts) if self.thoughts else None,
            tool_calls=tuple(call.close(denied) for call in self.calls.values()),
            usage=self.usage,
            synthetic=self.model == SYNTHETIC_MODEL,
        )


class _Log:
    """Records so far; one dictionary look-up per record."""

    def __init__(self) -> None:
        self.started: Started | None = None
        self.servers: dict[SafeText, McpServerState] = {}
        self.ended: Ended | None = None
        self._entries: list[_OpenTurn | Entry] = []
        self._turns: dict[tuple[SafeText, SafeText | None], _OpenTurn] = {}
        self._calls: dict[SafeText, _OpenCall] = {}
        self._denied: set[str] = set()

    def add(self, record: SessionRecord) -> None:
        match record:
            case ServersReported():
                self._update_servers(record.servers, record.at)
            case Started():
                self._update_servers(record.mcp_servers, record.at)
                self.started = record
            case Ended():
                self.ended = record
            case AssistantSaid() | ToolCalled() | ResponseEnded():
                self._add_to_turn(record)
            case ToolReturned():
                self._join(record)
            case Denied() | UserSaid() | Retried() | HookRan() | Noticed():
                if isinstance(record, Denied) and record.tool_call_id:
                    self._denied.add(record.tool_call_id)
                self._entries.append(record)

    def _update_servers(self, servers: Iterable[McpServer], seconds: float) -> None:
        """Note the servers' states; the init message before tells which of them the session had begun without."""
        for server in servers:
            before = self.servers.get(server.name) or McpServerState(name=server.name, status=server.status)
            news = {name: getattr(server, name) for name in server.model_fields_set}
            if server.status != before.status:
                news.setdefault("error", None)
            if server.status == "connected" and before.connected_at is None:
                news |= {"connected_at": seconds, "late": self.started is not None}
            self.servers[server.name] = before.replace(**news)

    def entries(self) -> tuple[Entry, ...]:
        """Everything that was heard; turns are numbered in this order."""
        index = 0
        closed: list[Entry] = []
        for entry in _arranged(self._entries):
            if isinstance(entry, _OpenTurn):
                index += 1
                closed.append(entry.close(index, self._denied))
            else:
                closed.append(entry)
        return tuple(closed)

    def _add_to_turn(self, record: AssistantSaid | ToolCalled | ResponseEnded) -> None:
        turn = self._turn(record)
        match record:
            case ResponseEnded():
                turn.usage = record.usage
            case AssistantSaid():
                turn.model = turn.model or record.model
                (turn.thoughts if record.thinking else turn.texts).append(record.text)
            case ToolCalled():
                turn.model = turn.model or record.model
                # Claude Code may repeat a block; the same id in another response is another call.
                self._calls[record.id] = turn.calls.setdefault(record.id, _OpenCall(record))

    def _turn(self, record: AssistantSaid | ToolCalled | ResponseEnded) -> _OpenTurn:
        key = (record.message_id, record.parent_tool_call_id)
        if key not in self._turns:
            self._turns[key] = _OpenTurn(record.message_id, record.parent_tool_call_id, record.at)
            self._entries.append(self._turns[key])
        return self._turns[key]

    def _join(self, record: ToolReturned) -> None:
        call = self._calls.get(record.id)
        if call and not call.returned:
            call.returned = record
        else:
            self._entries.append(record)


def _arranged(entries: Sequence[_OpenTurn | Entry]) -> list[_OpenTurn | Entry]:
    """The main thread in the order of time, with each sub-agent's whole thread behind the turn that called it.

    Which of several threads speaks first is a matter of milliseconds, and so is which of several hooks ends first: in
    the order of time, the same session would read otherwise each time, and its turns would have other numbers.
    """
    calls = {call for entry in entries if isinstance(entry, _OpenTurn) for call in entry.calls}
    threads: dict[str | None, list[_OpenTurn | Entry]] = {None: []}
    for entry in entries:
        parent = _thread_of(entry)
        threads.setdefault(parent if parent in calls else None, []).append(entry)
    arranged: list[_OpenTurn | Entry] = []
    waiting = _hooks_in_order(threads.pop(None))[::-1]
    while waiting or threads:
        # What is left over belongs to threads that call each other.
        waiting = waiting or _hooks_in_order(threads.pop(next(iter(threads))))[::-1]
        entry = waiting.pop()
        arranged.append(entry)
        if isinstance(entry, _OpenTurn):
            for call in reversed(entry.calls):
                waiting += _hooks_in_order(threads.pop(call, ()))[::-1]
    return arranged


def _thread_of(entry: _OpenTurn | Entry) -> str | None:
    return entry.parent if isinstance(entry, _OpenTurn) else getattr(entry, "parent_tool_call_id", None)


def _hooks_in_order(entries: Iterable[_OpenTurn | Entry]) -> list[_OpenTurn | Entry]:
    """Neighbouring hooks by event, each in the order of its first; then by name, outcome and output."""
    ordered: list[_OpenTurn | Entry] = []
    for are_hooks, group in itertools.groupby(entries, key=lambda entry: isinstance(entry, HookRan)):
        neighbours = list(group)
        if are_hooks:
            hooks = [entry for entry in neighbours if isinstance(entry, HookRan)]
            events = list(dict.fromkeys(hook.event for hook in hooks))
            hooks.sort(key=lambda hook: (events.index(hook.event), hook.name, hook.outcome, hook.output))
            neighbours = list(hooks)
        ordered += neighbours
    return ordered
