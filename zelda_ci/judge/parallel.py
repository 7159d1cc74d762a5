"""Several questions at once, failures as data."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import anyio

from zelda_ci.errors import JudgeError

T = TypeVar("T")

AT_ONCE = 4
"""More requests side by side mostly meet the API's rate limit."""


async def all_of(calls: Sequence[Callable[[], Awaitable[T]]]) -> list[T | JudgeError]:
    """What each call returned, or why it could not, in the order of the calls."""
    done: dict[int, T | JudgeError] = {}
    slots = anyio.CapacityLimiter(AT_ONCE)

    async def make(position: int) -> None:
        async with slots:
            try:
                done[position] = await calls[position]()
            except JudgeError as problem:
                done[position] = problem

    async with anyio.create_task_group() as group:
        for position in range(len(calls)):
            group.start_soon(make, position)
    return [done[position] for position in range(len(calls))]
