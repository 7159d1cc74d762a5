"""Answers of parallel threads end in the order in which they ended when they were recorded."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import anyio

PATIENCE_SECONDS = 45.0
"""Longest wait for an exchange of another thread: a tool may be running there, but the CLI gives up on a silent stream
after a minute."""

SETTLING_SECONDS = 0.05
"""Between answers to different threads, so that the CLI has dealt with the first before the second arrives.

A model takes seconds; without its pauses, what the CLI does next would depend on the scheduler.
"""


@dataclass(frozen=True)
class Place:
    """Where an exchange was in a recorded run."""

    thread: str
    arrival: int
    """Position of its request among all requests."""
    arrivals: int
    """Number of all requests that had come when its answer ended."""


class RecordedOrder:
    """Lets an exchange wait for those of other threads that ended before it.

    Args:
        places: Of all exchanges, in the order in which they ended.
    """

    def __init__(self, places: Sequence[Place]) -> None:
        self._places = places
        self._arrived = [False] * len(places)
        self._ended = [False] * len(places)
        self._changed = anyio.Event()
        self._is_over = False
        self._first_arrival: dict[str, int] = {}
        for place in sorted(places, key=lambda one: one.arrival):
            self._first_arrival.setdefault(place.thread, place.arrival)

    async def wait_to_begin(self, index: int) -> bool:
        """Wait before an answer is sent.

        Not for sub-agents that came later than the request: the CLI starts them while the answer still streams.

        Returns:
            False where the wait was in vain.
        """
        place = self._places[index]
        earlier = [one for one in self._others(index, range(index)) if self._begin(one) < place.arrival]
        return await self._wait(self._ended, earlier)

    async def wait_to_end(self, index: int) -> bool:
        """Wait before the last event of an answer is sent, for requests that had come and answers that had ended.

        Returns:
            False where the wait was in vain.
        """
        place = self._places[index]
        come = [one for one in self._others(index) if self._places[one].arrival < place.arrivals]
        have_come = await self._wait(self._arrived, come)
        return await self._wait(self._ended, self._others(index, range(index))) and have_come

    def arrive(self, index: int) -> None:
        """The request has come."""
        self._arrived[index] = True
        self._announce()

    def end(self, index: int) -> None:
        """The answer has left."""
        self._ended[index] = True
        self._announce()

    def give_up(self) -> None:
        """The replay has failed: nobody waits any longer."""
        self._is_over = True
        self._announce()

    def _others(self, index: int, among: Iterable[int] | None = None) -> list[int]:
        own = self._places[index].thread
        indexes = range(len(self._places)) if among is None else among
        return [one for one in indexes if self._places[one].thread != own]

    def _begin(self, index: int) -> int:
        return self._first_arrival[self._places[index].thread]

    async def _wait(self, happened: list[bool], indexes: Sequence[int]) -> bool:
        waited = False
        with anyio.move_on_after(PATIENCE_SECONDS) as patience:
            while not self._is_over and not all(happened[one] for one in indexes):
                waited = True
                await self._changed.wait()
        if patience.cancelled_caught:
            for one in indexes:
                happened[one] = True  # nobody else waits for it again
        elif waited and not self._is_over:
            await anyio.sleep(SETTLING_SECONDS)
        return not patience.cancelled_caught

    def _announce(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()
