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
    """Where an exchange was in a recorded run: its thread, and the position of its request among all requests."""

    thread: str
    arrival: int


class RecordedOrder:
    """Lets an exchange wait for those of other threads that ended before it.

    Args:
        places: Of all exchanges, in the order in which they ended.
    """

    def __init__(self, places: Sequence[Place]) -> None:
        self._places = places
        self._done = [False] * len(places)
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
        return await self._wait(one for one in self._others(index) if self._begin(one) < place.arrival)

    async def wait_to_end(self, index: int) -> bool:
        """Wait before the last event of an answer is sent; returns False where the wait was in vain."""
        return await self._wait(self._others(index))

    def end(self, index: int) -> None:
        """The answer has left."""
        self._done[index] = True
        self._announce()

    def give_up(self) -> None:
        """The replay has failed: nobody waits any longer."""
        self._is_over = True
        self._announce()

    def _others(self, index: int) -> list[int]:
        own = self._places[index].thread
        return [one for one in range(index) if self._places[one].thread != own]

    def _begin(self, index: int) -> int:
        return self._first_arrival[self._places[index].thread]

    async def _wait(self, indexes: Iterable[int]) -> bool:
        awaited, waited = list(indexes), False
        with anyio.move_on_after(PATIENCE_SECONDS) as patience:
            while not self._is_over and not all(self._done[one] for one in awaited):
                waited = True
                await self._changed.wait()
        if patience.cancelled_caught:
            for one in awaited:
                self._done[one] = True  # nobody else waits for it again
        elif waited and not self._is_over:
            await anyio.sleep(SETTLING_SECONDS)
        return not patience.cancelled_caught

    def _announce(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()
