from collections.abc import Callable

import anyio
import pytest
from anyio.lowlevel import checkpoint

from zelda_ci.model_proxy.cassettes.replay import OrderPosition, RecordedOrder

pytestmark = pytest.mark.anyio

BACKGROUND = [
    OrderPosition("main", 0, 2),
    OrderPosition("main", 2, 3),
    OrderPosition("agent-1", 1, 3),
    OrderPosition("main", 3, 4),
]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def is_let_through(wait: Callable[[], object]) -> bool:
    """Whether a wait ends without anything else happening; the loop gets several rounds."""
    ended = False

    async def run() -> None:
        nonlocal ended
        await wait()  # type: ignore[misc]
        ended = True

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        for _ in range(10):
            await checkpoint()
        group.cancel_scope.cancel()
    return ended


async def test_one_thread_never_waits() -> None:
    order = RecordedOrder([OrderPosition("main", 0, 1), OrderPosition("main", 1, 2)])
    assert await is_let_through(lambda: order.wait_to_begin(1))
    assert await is_let_through(lambda: order.wait_to_end(1))


async def test_a_background_agents_answer_waits_for_what_ended_before_it() -> None:
    order = RecordedOrder(BACKGROUND)
    assert not await is_let_through(lambda: order.wait_to_begin(2))
    order.end(0)
    assert not await is_let_through(lambda: order.wait_to_begin(2))
    order.end(1)
    assert await order.wait_to_begin(2)
    order.end(2)
    assert await is_let_through(lambda: order.wait_to_begin(3))


A, B = {"toolu_a": "1"}, {"toolu_b": "1"}
