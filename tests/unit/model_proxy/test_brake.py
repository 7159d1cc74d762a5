"""The brakes on requests that the API limits: what its refusals say, and who may ask when."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from itertools import pairwise

import anyio
import pytest

from zelda_ci.model_proxy import brake as module
from zelda_ci.model_proxy.brake import (
    Brake,
    Brakes,
    QueuedCall,
    RequestQueue,
    SpentError,
    Throttle,
    TooLongError,
    family,
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


def test_limits_are_a_models_where_the_headers_are_the_apis() -> None:
    plain, own, overload = throttle(), throttle(anthropic_ratelimit_requests_remaining="0"), throttle(529)
    assert (plain and plain.is_for_model, own and own.is_for_model, overload and overload.is_for_model) == (0, 1, 1)


def test_models_share_a_limit_by_family() -> None:
    same = ["claude-sonnet-5-5", "claude-sonnet-4-5-20250929", "us.anthropic.claude-3-5-sonnet-20241022-v2:0"]
    assert {family(name) for name in same} == {"sonnet"}
    assert family("claude-opus-5-5") == "opus"
    assert family("gpt-7") == "gpt-7"


# --- one brake --------------------------------------------------------------------------------------------------------


def test_pauses_double_where_nothing_is_said_and_begin_anew_after_an_answer() -> None:
    brake, now, pauses = Brake(), 0.0, []
    for _ in range(9):
        now += 1000
        pauses.append(brake.engage(now, now - 1, None))
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    brake.ease(now + 1)
    assert brake.engage(now + 10, now + 5, None) == 1


def test_who_says_zero_again_and_again_is_asked_more_and_more_seldom() -> None:
    brake = Brake()
    assert [brake.engage(now, now - 1, 0.0) for now in (10, 20, 30)] == [0, 2, 4]


def test_requests_are_halved_and_return_one_by_one() -> None:
    """One brake for all that were under way together, and for the longest of their pauses."""
    brake = Brake()
    brake.active = 8
    assert [brake.engage(*told) for told in ((10, 5, 20), (11, 6, 30), (12, 7, 1))] == [20, None, None]
    assert (brake.streak, brake.delay(12, 0)) == (1, 29)
    rooms = []
    for answers in range(12):
        brake.active = 0
        while brake.has_room:
            brake.active += 1
        rooms.append(brake.active)
        brake.ease(50 + answers)
    assert rooms[0] == 4
    assert rooms == sorted(rooms)
    assert all(after - before <= 1 for before, after in pairwise(rooms))
    assert rooms[-1] == 6
    brake.ease(9)  # asked before the refusal
    assert rooms[-1] == 6


def test_with_enough_answers_the_brake_is_off() -> None:
    brake = Brake()
    brake.active = 2
    brake.engage(10, 5, 1)
    for _ in range(3000):
        brake.ease(20)
    brake.active = 1000
    assert brake.has_room


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


def test_requests_do_not_all_return_in_the_same_instant() -> None:
    world = World()
    many = [world.ask() for _ in range(16)]
    world.now += 1
    assert world.refuse(many[0], 30)
    world.luck = 0.9
    late = world.ask()
    world.luck = 0.1
    early = world.ask()
    for queued in many[1:]:
        world.answer(queued)
    world.pass_by(30.4)
    assert (early.admitted.is_set(), late.admitted.is_set()) == (True, False)
    world.pass_by(2.5)
    assert late.admitted.is_set()


def test_a_limit_of_one_model_leaves_the_others_alone() -> None:
    world = World()
    assert not world.refuse(world.ask(), 1e9), "longer than anybody may wait"
    assert world.ask().admitted.is_set()
    sonnet, opus = world.ask(), world.ask(model="claude-opus-5-5")
    world.now += 1
    world.refuse(sonnet, 42, is_for_model=True)
    assert not world.ask(model="claude-sonnet-4-5").admitted.is_set()
    assert world.ask(model="claude-opus-4-5").admitted.is_set()
    assert opus.admitted.is_set()
    assert world.told == [
        "the API refuses requests for their rate (HTTP 429): all requests for sonnet models wait for 42.0 s"
    ]


def test_a_session_that_asks_for_everything_does_not_keep_the_others_waiting() -> None:
    """Refusals are the API's; but who may ask next is not decided by who asks most."""
    world, greedy, modest = World(), Patience(), Patience()
    first = world.ask(greedy)
    world.now += 1
    world.refuse(first, 10)
    flood = [world.ask(greedy) for _ in range(24)]
    one = world.ask(modest)
    world.pass_by(11)
    assert [queued.admitted.is_set() for queued in (flood[0], one)] == [True, False]
    world.answer(flood[0])
    # Two may be under way now; the flood had come before.
    assert [queued.admitted.is_set() for queued in (*flood[1:3], one)] == [True, False, True]


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


def test_refusals_for_the_rate_are_bounded_by_time_alone() -> None:
    """Where many machines share a limit, a request may meet many; it asks ever more seldom, though told otherwise."""
    world = World()
    run = Patience(clock=lambda: world.now)
    queued, attempts = world.ask(run), 0
    while attempts < 100 and world.refuse(queued, 0.0):
        attempts += 1
        with run.pause():
            world.queue.stand(queued)
            while not queued.admitted.is_set():
                world.pass_by(1)
    assert 15 < attempts < 25
    assert run.seconds <= run.max_seconds


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
async def test_after_the_waiting_the_time_limit_goes_on_where_it_stood() -> None:
    held = Held(0.05)
    queued = await held.begin()
    with anyio.fail_after(5), held.run.time_limit(0.05) as limit:
        await held.queue.enter(queued)
        await anyio.sleep_forever()
    assert limit.cancelled_caught


@pytest.mark.anyio
async def test_a_run_waits_no_longer_than_it_may() -> None:
    held = Held(50, max_seconds=60)
    queued = await held.begin()
    held.run.max_seconds = 1
    with pytest.raises(TooLongError, match=r"the API limits requests: .* longer than the 1\.0 s that one run may"):
        await held.queue.enter(queued)


@pytest.mark.anyio
async def test_what_is_given_up_while_it_waits_leaves_no_trace() -> None:
    held = Held(0.1)
    queued = await held.begin()
    with anyio.move_on_after(0.02):
        await held.queue.enter(queued)
    assert not queued.admitted.is_set()
    assert not queued.wait.is_with_api
    following = held.queue.queue(queued.call)
    await held.queue.enter(following)
    assert following.admitted.is_set()


@pytest.mark.anyio
async def test_who_has_spent_its_budget_meanwhile_does_not_ask() -> None:
    held = Held(0.1)
    queued = await held.begin()
    held.run.is_spent = lambda: True
    with pytest.raises(SpentError):
        await held.queue.enter(queued)
    assert [brake.active for brake in queued.brakes] == [0, 0]
