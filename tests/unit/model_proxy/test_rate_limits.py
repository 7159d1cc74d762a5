"""Pauses of requests that the API limits: what its refusals say, who waits, and for how long."""

import pytest

from tests.unit.model_proxy.requests import answered
from zelda_ci.model_proxy import rate_limits
from zelda_ci.model_proxy.rate_limits import MAX_OVERLOADS, RateLimitWait, UpstreamPause, asked_seconds, is_throttled
from zelda_ci.model_proxy.wire import ApiAnswer, RefusedHereError


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def test_other_answers_pause_nothing_nor_does_a_refusal_that_is_to_last() -> None:
    statuses = (200, 400, 408, 429, 503, 529)
    assert [status for status in statuses if is_throttled(answered(status, retry_after="7"))] == [429, 529]
    assert not is_throttled(answered(429, retry_after="7", x_should_retry="false"))


def test_the_time_is_a_number_of_seconds_and_nonsense_says_nothing() -> None:
    assert [asked_seconds(answered(429, retry_after=value)) for value in ("7", " 0.5 ")] == [7, 0.5]
    nonsense = "", "-5", "nan", "inf", "-inf", "soon", "1e400", "9" * 9999, "\xff", "7 s", "0x10"
    assert {asked_seconds(answered(429, retry_after=value)) for value in nonsense} == {None}


def test_the_time_may_be_a_date_and_one_that_is_past_means_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limits, "time", lambda: 1_800_000_000.0)
    dates = {
        "Fri, 15 Jan 2027 08:01:00 GMT": 60,
        "Friday, 15-Jan-27 08:00:30 GMT": 30,
        "Fri, 15 Jan 2027 07:00:00 GMT": 0,
        "Fri, 15 Jan 2027 25:00:00 GMT": None,
        "Fri, 15 Jan 99999 08:00:00 GMT": None,
    }
    assert {date: asked_seconds(answered(429, retry_after=date)) for date in dates} == dates


def refusal(seconds: float | None, status: int = 429) -> ApiAnswer:
    return answered(status) if seconds is None else answered(status, retry_after=str(seconds))


class World:
    """A pause by a clock that the test moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.told: list[str] = []
        self.now = 100.0
        self.pause = UpstreamPause(self.told.append)
        monkeypatch.setattr(rate_limits, "monotonic", lambda: self.now)

    def refuse(self, seconds: float | None = None, status: int = 429, attempts: int = 1) -> bool:
        """Have the API refuse a request that is sent now; whether it shall be sent again."""
        return self.pause.refused(refusal(seconds, status), RateLimitWait(), attempts, self.now)

    @property
    def left(self) -> float:
        """Seconds of the pause."""
        return max(0.0, self.pause._ends_at - self.now)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


def test_refusals_of_requests_that_were_under_way_together_are_one_and_told_once(world: World) -> None:
    assert world.refuse(42)
    world.now += 2
    assert world.pause.refused(refusal(45), RateLimitWait(), 1, sent_at=99)
    assert world.left == 45
    assert world.told == ["the API refuses requests for their rate (HTTP 429): all requests wait for 42.0 s"]


def test_a_pause_that_the_api_does_not_name_doubles_with_each_refusal_until_an_answer(world: World) -> None:
    pauses = []
    for said in (None, None, 0, 7, *[None] * 4):
        world.refuse(said)
        pauses.append(world.left)
        world.now += 100
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60]
    world.pause.answered(sent_at=world.now - 150)  # was under way at the last refusal
    world.refuse()
    assert world.left == 60
    world.pause.answered(sent_at=world.now)
    world.now += 100
    world.refuse(0)
    assert world.left == 0
    told = [line.rpartition(" for ")[2] for line in world.told]
    assert told == [*(f"{seconds}.0 s" for seconds in (1, 2, 4, 8, 16, 32)), *["1m 00s"] * 3]


def test_what_is_not_sent_again(world: World) -> None:
    hasty = RateLimitWait(10)
    assert not world.refuse(1000)
    assert world.left == 0  # it would have stopped all others
    assert world.refuse(1, 529, MAX_OVERLOADS - 1)
    assert not world.refuse(1, 529, MAX_OVERLOADS)
    assert not world.pause.refused(refusal(30), hasty, 1, world.now)
    assert (world.left, hasty.throttled) == (30, 0)


def test_an_api_that_one_request_has_found_to_be_down_is_asked_once_by_each_other_until_it_answers(
    world: World,
) -> None:
    assert not world.refuse(1, 529, MAX_OVERLOADS)
    world.now += 2
    assert not world.refuse(1, 529)
    assert world.refuse(1, 429)
    world.now += 2
    world.pause.answered(sent_at=world.now)
    assert world.refuse(1, 529)


async def paused(run: RateLimitWait, seconds: float) -> UpstreamPause:
    """A pause of so many real seconds, of which a request of the run was the cause."""
    pause = UpstreamPause()
    assert pause.refused(refusal(seconds), run, 1, await pause.wait(run))
    return pause


@pytest.mark.anyio
async def test_who_waits_is_let_go_after_the_pause_and_the_clock_of_its_run_stands_still() -> None:
    run = RateLimitWait()
    pause = await paused(run, 0.2)
    with run.time_limit(0.1) as limit:
        await pause.wait(run)
    assert not limit.cancelled_caught
    assert 0.19 <= run.seconds < 0.9
    assert run.throttled == 1


@pytest.mark.anyio
async def test_a_run_waits_no_longer_than_it_may() -> None:
    run = RateLimitWait(60)
    pause = await paused(run, 50)
    run.max_seconds = 1
    with pytest.raises(RefusedHereError, match=r"The API limits requests: .* longer than the 1\.0 s that one run may"):
        await pause.wait(run)
