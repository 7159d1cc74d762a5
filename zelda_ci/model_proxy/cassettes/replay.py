"""Answers from a cassette, in the recorded order: no key, no network."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise

import anyio

from zelda_ci.model_proxy import wire
from zelda_ci.model_proxy.cassettes import normalise
from zelda_ci.model_proxy.cassettes.cassette import Cassette, Exchange, RecordedResponse, joined_message, played
from zelda_ci.model_proxy.cassettes.match import NOTHING_SAID, Fingerprints, Matcher, Mismatch
from zelda_ci.model_proxy.cassettes.normalise import Placeholders
from zelda_ci.model_proxy.wire import DO_NOT_RETRY, AnswerSource, BrokenOff, Call, Headers, Sink, send_error, send_whole
from zelda_ci.redact import Redactor, SafeText

# Longest wait for an exchange of another thread: a tool may be running there, but the CLI gives up on a silent stream
# after a minute.
TIMEOUT_SECONDS = 45.0

# Between answers to different threads, so that the CLI has dealt with the first before the second arrives.
#
# A model takes seconds; without its pauses, what the CLI does next would depend on the scheduler.
SETTLING_SECONDS = 0.05

# Something to wait for: that a request has come, that an answer has left, that a task is known to have ended.
Fact = tuple[str, object]

# When an answer ended: after which request, after which answers, and (for one that was moved) after what else.
Moment = tuple[int, int, int]


@dataclass(frozen=True)
class OrderPosition:
    """Where an exchange was in a recorded run."""

    thread: str
    arrival: int
    """Position of its request among all requests."""
    arrivals: int
    """Number of all requests that had come when its answer ended."""
    news: Mapping[str, str] = field(default_factory=dict)
    """What the model had been told of tasks in the background, by the call that started each."""
    agents: Mapping[str, str] = field(default_factory=dict)
    """Threads of the sub-agents among these tasks, by the same calls."""
    only_reports: bool = False
    """Whether the request was made for nothing but the news."""


@dataclass(frozen=True)
class _TaskReport:
    """What a request reported that the one before it in its thread did not."""

    before: int
    after: int
    tasks: tuple[tuple[str, int], ...]
    """Calls, and how often the end of each had been reported by then."""
    is_certain: bool
    """Whether the news are reported in a request of their own, at whatever time they come."""


class RecordedOrder:
    """Lets an exchange wait for those of other threads that ended before it.

    Args:
        places: Of all exchanges, in the order in which they ended.
    """

    def __init__(self, places: Sequence[OrderPosition]) -> None:
        self._places = places
        self._facts: set[Fact] = set()
        self._reported: Counter[str] = Counter()
        self._changed = anyio.Event()
        self._is_over = False
        self._first_arrival: dict[str, int] = {}
        for place in sorted(places, key=lambda position: position.arrival):
            self._first_arrival.setdefault(place.thread, place.arrival)
        reports = list(_task_reports(places))
        self._moments = _moments(places, reports)
        self._needed = {report.before: report.tasks for report in reports if not report.is_certain}

    async def wait_to_begin(self, index: int) -> bool:
        """Wait before an answer is sent.

        Not for sub-agents that came later than the request: the CLI starts them while the answer still streams.

        Returns:
            False where the wait was in vain.
        """
        arrival = self._places[index].arrival
        earlier = (other for other in self._earlier(index) if other < index and self._begin(other) < arrival)
        return await self._wait(("ended", other) for other in earlier)

    async def wait_to_end(self, index: int) -> bool:
        """Wait before the last event of an answer is sent: for requests, answers and ends of tasks.

        Returns:
            False where the wait was in vain.
        """
        latest = self._moments[index][0]
        arrived = await self._wait(
            ("arrived", other) for other in self._others(index) if self._places[other].arrival <= latest
        )
        ended = await self._wait(("ended", other) for other in self._earlier(index))
        return await self._wait(("reported", task) for task in self._needed.get(index, ())) and ended and arrived

    def arrive(self, index: int) -> None:
        """The request has come."""
        self._note(("arrived", index))

    def end(self, index: int) -> None:
        """The answer has left."""
        self._note(("ended", index))

    def report(self, call: str) -> None:
        """The CLI knows that the task of this call has ended, and will tell its model next time."""
        self._reported[call] += 1
        self._note(("reported", (call, self._reported[call])))

    def give_up(self) -> None:
        """The replay has failed: nobody waits any longer."""
        self._is_over = True
        self._announce()

    def _others(self, index: int) -> Iterator[int]:
        own = self._places[index].thread
        return (other for other, place in enumerate(self._places) if place.thread != own)

    def _earlier(self, index: int) -> Iterator[int]:
        return (other for other in self._others(index) if self._moments[other] < self._moments[index])

    def _begin(self, index: int) -> int:
        return self._first_arrival[self._places[index].thread]

    async def _wait(self, facts: Iterable[Fact]) -> bool:
        needed = set(facts)
        waited = False
        with anyio.move_on_after(TIMEOUT_SECONDS) as scope:
            while not self._is_over and not needed <= self._facts:
                waited = True
                await self._changed.wait()
        if scope.cancelled_caught:
            # Whoever comes later goes on at once, so that one missing request costs one timeout and not one per
            # exchange.
            self._facts |= needed  # nobody else waits for them again
        elif waited and not self._is_over:
            await anyio.sleep(SETTLING_SECONDS)
        return not scope.cancelled_caught

    def _note(self, fact: Fact) -> None:
        self._facts.add(fact)
        self._announce()

    def _announce(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


def _task_reports(places: Sequence[OrderPosition]) -> Iterator[_TaskReport]:
    indexes = sorted(range(len(places)), key=lambda position: (places[position].thread, places[position].arrival))
    for _, thread in groupby(indexes, key=lambda position: places[position].thread):
        ends: Counter[str] = Counter()
        for before, after in pairwise(thread):
            old, new = places[before].news, places[after].news
            calls = [call for call, digest in new.items() if old.get(call) != digest]
            ends.update(calls)
            if calls:
                tasks = tuple((call, ends[call]) for call in calls)
                yield _TaskReport(before, after, tasks, is_certain=places[after].only_reports and len(calls) == 1)


def _moments(places: Sequence[OrderPosition], reports: Sequence[_TaskReport]) -> list[Moment]:
    """When each answer ends, by index."""
    moments = [(place.arrivals - 1, index, 0) for index, place in enumerate(places)]
    for report in reports:
        for last in _last_answers(places, report):
            moments[last] = max(moments[last], (places[report.before].arrival, last, 0))
    for report in reports:
        if not report.is_certain:
            after = [(*moments[last][:2], 1) for last in _last_answers(places, report)]
            moments[report.before] = max([moments[report.before], *after])
    return moments


def _last_answers(places: Sequence[OrderPosition], report: _TaskReport) -> Iterator[int]:
    """The last answer of each sub-agent whose end is reported."""
    place = places[report.after]
    for call, _ in report.tasks:
        own = (
            index
            for index, position in enumerate(places)
            if position.thread == place.agents.get(call) and position.arrivals <= place.arrival
        )
        if (last := max(own, key=lambda index: places[index].arrival, default=None)) is not None:
            yield last


_UNPRINTABLE = re.compile(r"[^ -~]")

# Token counts are not recorded: they steer nothing but displays, so a rule of thumb answers.
BYTES_PER_TOKEN = 4


class ReplaySource(AnswerSource):
    """Answers each request with the recorded exchange that belongs to it."""

    def __init__(self, cassette: Cassette, placeholders: Placeholders, redact: Redactor) -> None:
        self._exchanges = cassette.exchanges
        self._cli: str | None = cassette.cli
        self._placeholders = placeholders
        self._redact = redact
        self._fingerprints = Fingerprints(placeholders, redact)
        self._matcher = Matcher(cassette.exchanges)
        self._order = RecordedOrder([_place(exchange) for exchange in cassette.exchanges])
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
        self._placeholders.update(normalise.named(call))
        match = self._matcher.match(call.agent_id, self._fingerprints(call.body))
        if isinstance(match, Mismatch):
            await self._refuse(match, sink)
            return
        self._order.arrive(match.index)
        if match.differences:
            self._note(f"exchange {match.index + 1} was used although these differ: {'; '.join(match.differences)}")
        try:
            await self._play(match.index, sink, streaming=bool(call.body.get("stream")))
        finally:
            self._order.end(match.index)

    def task_ended(self, call: str) -> None:
        """The model will be told so in the next request of its thread."""
        self._order.report(call)

    async def _play(self, index: int, sink: Sink, *, streaming: bool) -> None:
        response = self._exchanges[index].response
        begun = await self._order.wait_to_begin(index)
        if response.events is not None and streaming:
            await sink.start(response.status, _headers(response))
            *events, last = played(self._placeholders.fill_tree(list(response.events)))
            for event in events:
                await sink.chunk(wire.written(event))
            # Held back at the end rather than at the start: the CLI acts on tool calls while the answer still
            # streams.
            begun &= await self._order.wait_to_end(index)
            await sink.chunk(wire.written(last))
        else:
            await self._send_whole(response, sink)
        if not begun:
            self._note(f"exchange {index + 1} did not find others before it that were recorded earlier")
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
        # Whoever waits for this exchange would wait in vain, until the time for it is over.
        self._order.give_up()
        message = f"Zelda's replay stops here: {mismatch.reason}"
        await send_error(sink, 409, "invalid_request_error", self._redact(message), DO_NOT_RETRY)

    def _compare_cli(self, agent: str) -> None:
        if self._cli and agent != self._cli:
            self._note(f"the recording was made with {self._cli}, this is {agent or 'unknown'}")
        self._cli = None  # once is enough

    def _note(self, text: str) -> None:
        self.divergences.append(self._redact(text))


def _place(exchange: Exchange) -> OrderPosition:
    request = exchange.request
    return OrderPosition(
        request.thread,
        request.arrival,
        exchange.response.arrivals,
        request.news,
        request.agents,
        only_reports=request.parts.get("last") == NOTHING_SAID,
    )


def _headers(response: RecordedResponse, *, without: str = "") -> Headers:
    headers = ((name, value) for name, value in response.headers.items() if name != without)
    return [(name.encode("ascii", "replace"), _UNPRINTABLE.sub("?", value).encode()) for name, value in headers]
