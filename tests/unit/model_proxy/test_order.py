from collections.abc import Callable

import anyio
import pytest
from anyio.lowlevel import checkpoint

from zelda_ci.model_proxy.cassettes.replay import OrderPosition, RecordedOrder

pytestmark = pytest.mark.anyio

FOREGROUND = [
    OrderPosition("agent-1", 1, 2),  # its whole life passes while the main thread's first answer streams
    OrderPosition("main", 0, 2),
    OrderPosition("main", 2, 3),
]
BACKGROUND = [
    OrderPosition("main", 0, 2),
    OrderPosition("main", 2, 3),
    OrderPosition("agent-1", 1, 3),
    OrderPosition("main", 3, 4),
]
TWO_REPORTS = [
    OrderPosition("agent-1", 0, 2),
    OrderPosition("agent-2", 1, 3),
    OrderPosition("main", 2, 3),
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


A, B = {"toolu_a": "1"}, {"toolu_b": "1"}
AGENTS = {"toolu_a": "agent-1", "toolu_b": "agent-2"}
TOLD_APART = [
    OrderPosition("main", 0, 1),
    OrderPosition("agent-1", 1, 3),
    OrderPosition("agent-2", 2, 3),  # ended before the end of the other had been told
    OrderPosition("main", 3, 4, A, AGENTS, only_reports=True),
    OrderPosition("main", 4, 5, A | B, AGENTS, only_reports=True),
]
TOLD_TOGETHER = [
    OrderPosition("main", 0, 3),
    OrderPosition("agent-1", 1, 3),
    OrderPosition("agent-2", 2, 3),
    OrderPosition("main", 3, 4, A | B, AGENTS, only_reports=True),
]
TOLD_WITH_A_RESULT = [
    OrderPosition("main", 0, 2),
    OrderPosition("agent-1", 1, 2),
    OrderPosition("main", 2, 3, A, AGENTS),
]
TOLD_OF_A_COMMAND = [OrderPosition("main", 0, 1), OrderPosition("main", 1, 2, A)]


async def test_an_end_that_a_request_does_not_tell_waits_for_that_request() -> None:
    order = RecordedOrder(TOLD_APART)
    for index in (0, 1, 2):
        order.arrive(index)
    order.end(0)
    assert await is_let_through(lambda: order.wait_to_end(1))
    order.end(1)
    assert not await is_let_through(lambda: order.wait_to_end(2))
    order.arrive(3)
    assert await order.wait_to_end(2)
    order.end(2)
    assert await is_let_through(lambda: order.wait_to_end(3)), "the second end is told whenever it comes"


async def test_ends_that_are_told_together_come_while_the_request_before_is_open() -> None:
    order = RecordedOrder(TOLD_TOGETHER)
    for index in (0, 1, 2):
        order.arrive(index)
    assert await is_let_through(lambda: order.wait_to_end(1))
    order.end(1)
    assert await order.wait_to_end(2)
    order.end(2)
    order.report("toolu_a")
    assert not await is_let_through(lambda: order.wait_to_end(0))
    order.report("toolu_b")
    assert await order.wait_to_end(0)


@pytest.mark.parametrize("places", [TOLD_WITH_A_RESULT, TOLD_OF_A_COMMAND], ids=["agent", "command"])
async def test_an_end_that_is_told_with_a_result_is_known_before_the_call_is_made(places: list[OrderPosition]) -> None:
    order = RecordedOrder(places)
    for index in range(len(places)):
        order.arrive(index)
    order.end(len(places) - 2)
    assert not await is_let_through(lambda: order.wait_to_end(0))
    order.report("toolu_a")
    assert await is_let_through(lambda: order.wait_to_end(0))


async def test_an_agent_that_reports_twice_is_waited_for_twice() -> None:
    again = {"toolu_a": "2"}
    order = RecordedOrder([*TOLD_OF_A_COMMAND, OrderPosition("main", 2, 3, again)])
    order.report("toolu_a")
    assert await is_let_through(lambda: order.wait_to_end(0))
    assert not await is_let_through(lambda: order.wait_to_end(1))
    order.report("toolu_a")
    assert await is_let_through(lambda: order.wait_to_end(1))
