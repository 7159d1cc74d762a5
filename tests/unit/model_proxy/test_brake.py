"""The brakes on requests that the API limits: what its refusals say, and who may ask when."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime

import anyio
import pytest

from zelda_ci.model_proxy import brake as module
from zelda_ci.model_proxy.brake import (
    Brakes,
    QueuedCall,
    RequestQueue,
    SpentError,
    Throttle,
    TooLongError,
)
from zelda_ci.model_proxy.patience import CallWait, Patience
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
def test_other_answers_are_no_brake(status: int) -> None:
    assert throttle(status, retry_after="7") is None


def test_a_refusal_that_is_to_last_is_no_brake_and_a_date_is_measured_by_the_clock_of_the_server() -> None:
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


def test_the_limits_that_are_used_up_say_when_they_begin_anew() -> None:
    limits = {
        "anthropic_ratelimit_requests_remaining": "10",
        "anthropic_ratelimit_requests_reset": "2026-07-01T12:59:00Z",
        "anthropic_ratelimit_input_tokens_remaining": "0",
        "anthropic_ratelimit_input_tokens_reset": "2026-07-01T12:00:42Z",
        "anthropic_ratelimit_output_tokens_remaining": "0",
        "anthropic_ratelimit_output_tokens_reset": "2026-07-01T12:00:12Z",
    }
    assert seconds(**limits) == 42
    assert seconds(**limits, retry_after="3") == 3
    assert seconds(anthropic_ratelimit_unified_reset=str(LATER.timestamp())) == 42
    assert seconds(anthropic_ratelimit_unified_reset="then", anthropic_ratelimit_tokens_remaining="0") is None


# --- one brake --------------------------------------------------------------------------------------------------------


# --- the queue, by a clock that the test moves ------------------------------------------------------------------------


@dataclass
class World:
    """Requests that come at moments of its own clock."""

    told: list[str] = field(default_factory=list)
    now: float = 100.0
    luck: float = 0.0

    def __post_init__(self) -> None:
        self.queue = RequestQueue("the API", self.told.append, lambda: self.now)

    def ask(self, run: Patience | None = None, model: str = "claude-sonnet-5-5") -> QueuedCall:
        """A request that stands in the queue."""
        wait = CallWait(run or Patience())
        queued = self.queue.queue(Call("/v1/messages", [], b"{}", {"model": model}, wait=wait))
        queued.luck = self.luck
        self.queue.stand(queued)
        return queued

    def refuse(self, queued: QueuedCall, said: float | None, *, is_for_model: bool = False, status: int = 429) -> bool:
        """The API refuses it; whether it shall be sent again."""
        again = self.queue.throttle(queued, Throttle(status, said, is_for_model))
        self.queue.leave(queued)
        return again

    def answer(self, queued: QueuedCall) -> None:
        """The API answers it."""
        self.queue.ease(queued)
        self.queue.leave(queued)

    def pass_by(self, seconds: float) -> None:
        """Time goes on, and timers go off."""
        self.now += seconds
        self.queue.admit()


def test_one_refusal_holds_all_until_its_time_has_come_and_is_told_once() -> None:
    world = World()
    first, second = world.ask(), world.ask(model="claude-opus-5-5")
    world.now += 1
    assert world.refuse(first, 42)
    assert world.refuse(second, 42)
    for queued in (first, second):
        world.queue.stand(queued)
    third = world.ask()
    world.pass_by(41.9)
    assert not any(queued.admitted.is_set() for queued in (first, second, third))
    world.pass_by(0.2)
    # Half of those that were under way; the first that came.
    assert [queued.admitted.is_set() for queued in (first, second, third)] == [True, False, False]
    world.answer(first)
    assert [queued.admitted.is_set() for queued in (second, third)] == [True, True]
    assert world.told == ["the API refuses requests for their rate (HTTP 429): all requests wait for 42.0 s"]


def test_an_overload_without_end_is_passed_on_in_the_end() -> None:
    world = World()
    queued = world.ask()
    refusals = []
    for _ in range(module.MAX_OVERLOADS):
        world.pass_by(100)
        refusals.append(world.refuse(queued, None, status=529, is_for_model=True))
        world.queue.stand(queued)
        world.pass_by(100)
    assert refusals == [True] * (module.MAX_OVERLOADS - 1) + [False]
    assert queued.run.throttled == module.MAX_OVERLOADS - 1
    # Once for the brake, and again only where it has become long.
    assert [line.partition(": ")[2] for line in world.told] == [
        f"all requests for sonnet models wait for {pause}"
        for pause in ("1.0 s", "16.0 s", "32.0 s", "1m 00s", "1m 00s")
    ]


def test_a_run_that_may_not_wait_so_long_gets_the_refusal_and_the_others_wait() -> None:
    world = World()
    hasty = world.ask(Patience(10))
    world.now += 1
    assert not world.refuse(hasty, 30)
    assert not world.ask().admitted.is_set()


def test_names_of_models_that_a_session_makes_up_are_not_repeated() -> None:
    world = World()
    queued = world.ask(model="evil\x1b[31m")
    world.now += 1
    world.refuse(queued, 42, is_for_model=True)
    assert world.told == ["the API refuses requests for their rate (HTTP 429): all requests wait for 42.0 s"]


# --- the waiting itself -----------------------------------------------------------------------------------------------


@dataclass
class Held:
    """A brake that is on for so many real seconds, and a run that meets it."""

    seconds: float
    max_seconds: float = 100.0

    def __post_init__(self) -> None:
        self.run = Patience(self.max_seconds)
        brakes = Brakes()
        self.queue = brakes.queue("upstream", "the API", self.call())
        first = self.queue.queue(self.call())
        self._engage = self.queue.enter, first

    def call(self) -> Call:
        """A request of the run."""
        return Call("/v1/messages", [], b"{}", {"model": "claude-sonnet-5-5"}, wait=CallWait(self.run))

    async def begin(self) -> QueuedCall:
        """Have the first request refused; the value is a second one that has not entered."""
        enter, first = self._engage
        await enter(first)
        await anyio.sleep(0.001)
        self.queue.throttle(first, Throttle(429, self.seconds, is_for_model=False))
        self.queue.leave(first)
        return self.queue.queue(self.call())


@pytest.mark.anyio
async def test_who_waits_is_let_go_and_the_clock_of_its_run_stands_still() -> None:
    held = Held(0.2)
    queued = await held.begin()
    with held.run.time_limit(0.1) as limit:
        await held.queue.enter(queued)
    assert not limit.cancelled_caught
    assert held.run.seconds >= 0.15
    assert queued.wait.seconds >= 0.15
    assert queued.wait.is_with_api


@pytest.mark.anyio
async def test_a_run_waits_no_longer_than_it_may() -> None:
    held = Held(50, max_seconds=60)
    queued = await held.begin()
    held.run.max_seconds = 1
    with pytest.raises(TooLongError, match=r"the API limits requests: .* longer than the 1\.0 s that one run may"):
        await held.queue.enter(queued)


@pytest.mark.anyio
async def test_who_has_spent_its_budget_meanwhile_does_not_ask() -> None:
    held = Held(0.1)
    queued = await held.begin()
    held.run.is_spent = lambda: True
    with pytest.raises(SpentError):
        await held.queue.enter(queued)
    assert [brake.active for brake in queued.brakes] == [0, 0]
