"""Answers of parallel threads end in the order in which they ended when they were recorded.

With one exception. When Claude Code tells a model of the end of a task in the background depends on how fast it is. So
a sub-agent's last answer ends while the request is open after which its end was told, and the answer to that request
ends only when Claude Code knows of all that the next one told.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise

import anyio

PATIENCE_SECONDS = 45.0
"""Longest wait for an exchange of another thread: a tool may be running there, but the CLI gives up on a silent stream
after a minute."""

SETTLING_SECONDS = 0.05
"""Between answers to different threads, so that the CLI has dealt with the first before the second arrives.

A model takes seconds; without its pauses, what the CLI does next would depend on the scheduler.
"""

Fact = tuple[str, object]
"""Something to wait for: that a request has come, that an answer has left, that a task is known to have ended."""

Moment = tuple[int, int, int]
"""When an answer ended: after which request, after which answers, and (for one that was moved) after what else."""


@dataclass(frozen=True)
class Place:
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
    only_tells: bool = False
    """Whether the request was made for nothing but the news."""


@dataclass(frozen=True)
class _Telling:
    """What a request told that the one before it in its thread did not."""

    before: int
    after: int
    tasks: tuple[tuple[str, int], ...]
    """Calls, and how often the end of each had been told by then."""
    is_certain: bool
    """Whether the news are told in a request of their own, at whatever time they come."""


class RecordedOrder:
    """Lets an exchange wait for those of other threads that ended before it.

    Args:
        places: Of all exchanges, in the order in which they ended.
    """

    def __init__(self, places: Sequence[Place]) -> None:
        self._places = places
        self._facts: set[Fact] = set()
        self._told: Counter[str] = Counter()
        self._changed = anyio.Event()
        self._is_over = False
        self._first_arrival: dict[str, int] = {}
        for place in sorted(places, key=lambda one: one.arrival):
            self._first_arrival.setdefault(place.thread, place.arrival)
        tellings = list(_tellings(places))
        self._moments = _moments(places, tellings)
        self._needed = {one.before: one.tasks for one in tellings if not one.is_certain}

    async def wait_to_begin(self, index: int) -> bool:
        """Wait before an answer is sent.

        Not for sub-agents that came later than the request: the CLI starts them while the answer still streams.

        Returns:
            False where the wait was in vain.
        """
        arrival = self._places[index].arrival
        earlier = (one for one in self._earlier(index) if one < index and self._begin(one) < arrival)
        return await self._wait(("ended", one) for one in earlier)

    async def wait_to_end(self, index: int) -> bool:
        """Wait before the last event of an answer is sent: for requests, answers and ends of tasks.

        Returns:
            False where the wait was in vain.
        """
        latest = self._moments[index][0]
        come = await self._wait(("arrived", one) for one in self._others(index) if self._places[one].arrival <= latest)
        ended = await self._wait(("ended", one) for one in self._earlier(index))
        return await self._wait(("told", task) for task in self._needed.get(index, ())) and ended and come

    def arrive(self, index: int) -> None:
        """The request has come."""
        self._note(("arrived", index))

    def end(self, index: int) -> None:
        """The answer has left."""
        self._note(("ended", index))

    def tell(self, call: str) -> None:
        """The CLI knows that the task of this call has ended, and will tell its model next time."""
        self._told[call] += 1
        self._note(("told", (call, self._told[call])))

    def give_up(self) -> None:
        """The replay has failed: nobody waits any longer."""
        self._is_over = True
        self._announce()

    def _others(self, index: int) -> Iterator[int]:
        own = self._places[index].thread
        return (one for one, place in enumerate(self._places) if place.thread != own)

    def _earlier(self, index: int) -> Iterator[int]:
        return (one for one in self._others(index) if self._moments[one] < self._moments[index])

    def _begin(self, index: int) -> int:
        return self._first_arrival[self._places[index].thread]

    async def _wait(self, facts: Iterable[Fact]) -> bool:
        needed = set(facts)
        waited = False
        with anyio.move_on_after(PATIENCE_SECONDS) as patience:
            while not self._is_over and not needed <= self._facts:
                waited = True
                await self._changed.wait()
        if patience.cancelled_caught:
            self._facts |= needed  # nobody else waits for them again
        elif waited and not self._is_over:
            await anyio.sleep(SETTLING_SECONDS)
        return not patience.cancelled_caught

    def _note(self, fact: Fact) -> None:
        self._facts.add(fact)
        self._announce()

    def _announce(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


def _tellings(places: Sequence[Place]) -> Iterator[_Telling]:
    indexes = sorted(range(len(places)), key=lambda one: (places[one].thread, places[one].arrival))
    for _, thread in groupby(indexes, key=lambda one: places[one].thread):
        told: Counter[str] = Counter()
        for before, after in pairwise(thread):
            old, new = places[before].news, places[after].news
            calls = [call for call, digest in new.items() if old.get(call) != digest]
            told.update(calls)
            if calls:
                tasks = tuple((call, told[call]) for call in calls)
                yield _Telling(before, after, tasks, is_certain=places[after].only_tells and len(calls) == 1)


def _moments(places: Sequence[Place], tellings: Sequence[_Telling]) -> list[Moment]:
    """When each answer ends, by index."""
    moments = [(place.arrivals - 1, index, 0) for index, place in enumerate(places)]
    for telling in tellings:
        for last in _last_answers(places, telling):
            moments[last] = max(moments[last], (places[telling.before].arrival, last, 0))
    for telling in tellings:
        if not telling.is_certain:
            after = [(*moments[last][:2], 1) for last in _last_answers(places, telling)]
            moments[telling.before] = max([moments[telling.before], *after])
    return moments


def _last_answers(places: Sequence[Place], telling: _Telling) -> Iterator[int]:
    """The last answer of each sub-agent whose end is told."""
    place = places[telling.after]
    for call, _ in telling.tasks:
        own = (
            index
            for index, one in enumerate(places)
            if one.thread == place.agents.get(call) and one.arrivals <= place.arrival
        )
        if (last := max(own, key=lambda index: places[index].arrival, default=None)) is not None:
            yield last
