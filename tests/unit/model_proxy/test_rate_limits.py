"""Pauses of requests that the API limits: what its refusals say, who waits, and for how long."""

from datetime import UTC, datetime
from email.utils import format_datetime

import pytest

from zelda_ci.model_proxy.patience import CallWait, Patience
from zelda_ci.model_proxy.rate_limits import (
    MAX_OVERLOADS,
    RateLimits,
    SpentError,
    Throttle,
    TooLongError,
    UpstreamPause,
)
from zelda_ci.model_proxy.wire import Call

NOW = datetime(2026, 7, 1, 12, 0, 0, tzinfo=UTC)
LATER = datetime(2026, 7, 1, 12, 0, 42, tzinfo=UTC)
PAST = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def throttle(status: int = 429, **headers: str) -> Throttle | None:
    named = [(name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in headers.items()]
    return Throttle.of(status, named, NOW)


def seconds(**headers: str) -> float | None:
    """What a refusal for the rate says about the time."""
    found = throttle(429, **headers)
    assert found
    return found.seconds


@pytest.mark.parametrize("status", [200, 400, 408, 503])
def test_other_answers_pause_nothing(status: int) -> None:
    assert throttle(status, retry_after="7") is None


def test_a_refusal_that_is_to_last_pauses_nothing_and_a_date_is_measured_by_the_clock_of_the_server() -> None:
    assert throttle(retry_after="7", x_should_retry="false") is None
    theirs = {"date": format_datetime(NOW.replace(hour=13), usegmt=True)}
    assert seconds(retry_after=format_datetime(LATER.replace(hour=13), usegmt=True), **theirs) == 42


def test_the_time_is_a_number_or_a_date() -> None:
    assert seconds(retry_after="7") == 7
    assert seconds(retry_after=" 0.5 ") == 0.5
    assert seconds(retry_after_ms="1500", retry_after="7") == 1.5
    assert seconds(retry_after=format_datetime(LATER, usegmt=True)) == 42
    assert seconds(retry_after=format_datetime(PAST, usegmt=True)) == 0


@pytest.mark.parametrize("value", ["", "-5", "nan", "inf", "-inf", "soon", "1e400", "9" * 9999, "\xff", "7 s", "0x10"])
def test_nonsense_says_nothing(value: str) -> None:
    assert seconds(retry_after=value) is None


def call(run: Patience | None = None) -> Call:
    """A request of a run."""
    return Call("/v1/messages", [], b"{}", {"model": "claude-sonnet-5-5"}, wait=CallWait(run or Patience()))


class World:
    """A pause by a clock that the test moves."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.now = 100.0
        self.pause = UpstreamPause("the API", self.told.append, lambda: self.now)

    def refuse(self, seconds: float | None = None, status: int = 429, attempts: int = 1) -> bool:
        """Have the API refuse a request that is sent now; whether it shall be sent again."""
        return self.pause.refuse(call(), Throttle(status, seconds), attempts, self.now)

    @property
    def left(self) -> float:
        """Seconds of the pause."""
        return max(0.0, self.pause._ends_at - self.now)


def test_refusals_of_requests_that_were_under_way_together_are_one_and_told_once() -> None:
    world = World()
    assert world.refuse(42)
    world.now += 2
    assert world.pause.refuse(call(), Throttle(429, 45), 1, began=99)
    assert world.left == 45
    assert world.told == ["the API refuses requests for their rate (HTTP 429): all requests wait for 42.0 s"]


def test_a_pause_that_the_api_does_not_name_doubles_with_each_refusal_until_an_answer() -> None:
    world = World()
    pauses = []
    for said in (None, None, 0, 7, *[None] * 4):
        world.refuse(said)
        pauses.append(world.left)
        world.now += 100
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60]
    world.pause.answered(began=world.now - 150)  # was under way at the last refusal
    world.refuse()
    assert world.left == 60
    world.pause.answered(began=world.now)
    world.now += 100
    world.refuse(0)
    assert world.left == 0
    # The first, and then only those that are long.
    assert [line.rpartition(" for ")[2] for line in world.told] == ["1.0 s", "16.0 s", "32.0 s", *["1m 00s"] * 3]


def test_what_is_not_sent_again() -> None:
    world, hasty = World(), Patience(10)
    assert not world.refuse(1000)
    assert world.left == 0  # it would have stopped all others
    assert world.refuse(1, 529, MAX_OVERLOADS - 1)
    assert not world.refuse(1, 529, MAX_OVERLOADS)
    assert not world.pause.refuse(call(hasty), Throttle(429, 30), 1, world.now)
    assert (world.left, hasty.throttled) == (30, 0)


async def paused(run: Patience, seconds: float) -> UpstreamPause:
    """A pause of so many real seconds, of which a request of the run was the cause."""
    first = call(run)
    pause = RateLimits().pause("upstream", "the API", first)
    assert pause.refuse(first, Throttle(429, seconds), 1, await pause.wait(first))
    return pause


@pytest.mark.anyio
async def test_who_waits_is_let_go_after_the_pause_and_the_clock_of_its_run_stands_still() -> None:
    run = Patience()
    pause, waiting = await paused(run, 0.2), call(run)
    with run.time_limit(0.1) as limit:
        await pause.wait(waiting)
    assert not limit.cancelled_caught
    assert 0.19 <= run.seconds < 0.9
    assert waiting.wait.seconds >= 0.19
    assert waiting.wait.is_with_api
    assert run.throttled == 1


@pytest.mark.anyio
async def test_a_run_waits_no_longer_than_it_may() -> None:
    run = Patience(60)
    pause = await paused(run, 50)
    run.max_seconds = 1
    with pytest.raises(TooLongError, match=r"the API limits requests: .* longer than the 1\.0 s that one run may"):
        await pause.wait(call(run))


@pytest.mark.anyio
async def test_who_has_spent_its_budget_meanwhile_does_not_ask() -> None:
    run = Patience()
    pause = await paused(run, 0.05)
    run.is_spent = lambda: True
    with pytest.raises(SpentError):
        await pause.wait(call(run))
