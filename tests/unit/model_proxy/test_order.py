from collections.abc import Callable

import anyio
import pytest
from anyio.lowlevel import checkpoint

from zelda_ci.model_proxy.order import Place, RecordedOrder

pytestmark = pytest.mark.anyio

FOREGROUND = [
    Place("agent-1", 1, 2),  # its whole life passes while the main thread's first answer streams
    Place("main", 0, 2),
    Place("main", 2, 3),
]
BACKGROUND = [Place("main", 0, 2), Place("main", 2, 3), Place("agent-1", 1, 3), Place("main", 3, 4)]
TWO_REPORTS = [Place("agent-1", 0, 2), Place("agent-2", 1, 3), Place("main", 2, 3), Place("main", 3, 4)]


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
    order = RecordedOrder([Place("main", 0, 1), Place("main", 1, 2)])
    assert await is_let_through(lambda: order.wait_to_begin(1))
    assert await is_let_through(lambda: order.wait_to_end(1))


async def test_an_answer_that_starts_sub_agents_is_sent_and_only_its_end_waits_for_them() -> None:
    order = RecordedOrder(FOREGROUND)
    assert await is_let_through(lambda: order.wait_to_begin(1))
    assert not await is_let_through(lambda: order.wait_to_end(1))
    order.arrive(1)
    assert await is_let_through(lambda: order.wait_to_end(0))
    order.end(0)
    order.arrive(0)
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


async def test_the_second_report_waits_until_the_first_was_told_to_the_model() -> None:
    order = RecordedOrder(TWO_REPORTS)
    order.arrive(0)
    order.arrive(1)
    order.end(0)
    assert not await is_let_through(lambda: order.wait_to_end(1))
    order.arrive(2)
    assert await order.wait_to_end(1)


async def test_nobody_waits_once_the_replay_has_failed() -> None:
    order = RecordedOrder(BACKGROUND)
    order.give_up()
    assert await is_let_through(lambda: order.wait_to_begin(2))
