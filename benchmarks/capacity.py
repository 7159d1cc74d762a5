"""What 10, 100 and 1,000 suites take under the API's limits: sessions, minutes, machines, dollars.

Usage: python -m benchmarks.capacity [lines of the table, default all]

Prints the tables of `docs/capacity.md`, always the same. Which sessions run says the product's own schedule
(`compare.schedule`), what they cost its price list, and who waits when the API refuses its own queue
(`model_proxy.brake`), one for each machine. The API is three buckets that fill up by the minute, as Anthropic describes
its limits.
"""

import heapq
import math
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count
from random import Random
from statistics import fmean

from tests.unit.compare.adaptive import MIXED, PullRequest, Truth
from zelda_ci.compare.schedule import next_trials
from zelda_ci.domain.trials import TrialPlan
from zelda_ci.model_proxy.brake import FIRST_SECONDS, QueuedCall, RequestQueue, Throttle
from zelda_ci.model_proxy.patience import CallWait, Patience
from zelda_ci.model_proxy.pricing import Tokens, cost_usd
from zelda_ci.model_proxy.wire import Call

MODEL = "claude-sonnet-5-5"

# --- a session --------------------------------------------------------------------------------------------------------

# As in the packaged recordings of real sessions: the first request writes so many tokens into the cache, and two judges
# read and write these.
FIRST_TOKENS = 11_800
JUDGE = Tokens(input=600, output=220, cache_write_5m=4_000)
JUDGE_REQUESTS = 2

# Assumed, for a task that is larger than those of the recordings: requests (median, and sigma of its logarithm), new
# tokens and output of each, seconds of the model and of the tools in between, seconds before and after the session.
REQUESTS, REQUESTS_SIGMA = 16, 0.4
NEW_TOKENS, OUTPUT_TOKENS = 2_000, 400
MODEL_SECONDS, TOOL_SECONDS, SECONDS_SIGMA = 9.0, 3.0, 0.5
SETUP_SECONDS, EVALUATION_SECONDS = 10.0, 30.0

# Of a machine: until the container runs, and from the last session to the end of the job.
START_SECONDS, END_SECONDS = 60.0, 20.0
JOBS = 8


def requests_of(chance: Random) -> Iterator[tuple[Tokens, float]]:
    """The requests of one session and its judges, with the seconds that pass after each is answered."""
    number = max(3, round(REQUESTS * chance.lognormvariate(0, REQUESTS_SIGMA)))
    context = 0
    for index in range(number):
        new = NEW_TOKENS if index else FIRST_TOKENS
        yield Tokens(output=OUTPUT_TOKENS, cache_read=context, cache_write_5m=new), TOOL_SECONDS
        context += new
    for _ in range(JUDGE_REQUESTS):
        yield JUDGE, 0.0


# --- the API ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tier:
    """Limits of one family of models, each by the minute. Reading from the cache does not count as input."""

    name: str
    requests: int
    input_tokens: int
    output_tokens: int


TIERS = (
    Tier("1", 50, 30_000, 8_000),
    Tier("2", 1_000, 450_000, 90_000),
    Tier("3", 2_000, 800_000, 160_000),
    Tier("4", 4_000, 2_000_000, 400_000),
)
BY_NAME = {tier.name: tier for tier in TIERS}


class Api:
    """Takes a request where all three buckets have enough, and says how long to wait where one has not."""

    def __init__(self, tier: Tier) -> None:
        self._sizes = (tier.requests, tier.input_tokens, tier.output_tokens)
        self._levels = [float(size) for size in self._sizes]
        self._now = 0.0
        self.refusals = 0
        self.input_tokens = 0

    def ask(self, now: float, used: Tokens) -> float:
        """Seconds to wait; 0 where it was taken."""
        wanted = (1, used.input + used.cache_write_5m, used.output)
        minutes, self._now = (now - self._now) / 60, now
        self._levels = [
            min(size, level + size * minutes) for size, level in zip(self._sizes, self._levels, strict=True)
        ]
        missing = [
            60 * (want - level) / size for want, level, size in zip(wanted, self._levels, self._sizes, strict=True)
        ]
        # Floats of a bucket that has just filled up are off by a hair.
        if max(missing) > 1e-6:
            self.refusals += 1
            return max(missing)
        self._levels = [level - want for level, want in zip(self._levels, wanted, strict=True)]
        self.input_tokens += wanted[1]
        return 0.0


# --- machines ---------------------------------------------------------------------------------------------------------


@dataclass
class Session:
    """One trial, on its way."""

    suite: int
    round: int
    requests: Iterator[tuple[Tokens, float]]
    run: Patience
    used: Tokens = field(default_factory=Tokens)
    pause: float = 0.0
    is_failed: bool = False
    wait: ExitStack = field(default_factory=ExitStack)


class World:
    """Machines that run sessions of their suites, and one API."""

    def __init__(self, rounds: list[list[int]], machines: int, tier: Tier, seed: int) -> None:
        self.chance = Random(seed)
        self.now = 0.0
        self.dollars = 0.0
        self.ended = 0
        self.failed = 0
        self.waits: list[float] = []
        self.last_end = [0.0] * machines
        self.api = Api(tier)
        self._rounds = rounds
        self._left: dict[tuple[int, int], int] = {}
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self._machines = [Machine(self, number) for number in range(machines)]
        for suite in range(len(rounds)):
            self._begin_round(suite, 0)
        for machine in self._machines:
            self.later(START_SECONDS, machine.fill)

    def later(self, seconds: float, action: Callable[[], None]) -> None:
        """Do something after so many seconds."""
        heapq.heappush(self._events, (self.now + seconds, next(self._order), action))

    def scattered(self, seconds: float) -> float:
        """About so many."""
        return seconds * self.chance.lognormvariate(0, SECONDS_SIGMA)

    def run(self) -> None:
        """Until nothing is left to do."""
        while self._events:
            self.now, _, action = heapq.heappop(self._events)
            action()

    def over(self, session: Session, machine: int) -> None:
        """A session has its result: its suite's next round may begin."""
        self.ended += 1
        self.waits.append(session.run.seconds)
        self.failed += session.is_failed
        self.last_end[machine] = self.now
        key = session.suite, session.round
        self._left[key] -= 1
        if not self._left[key] and session.round + 1 < len(self._rounds[session.suite]):
            self._begin_round(session.suite, session.round + 1)
            self._machines[machine].fill()

    def _begin_round(self, suite: int, number: int) -> None:
        self._left[suite, number] = size = self._rounds[suite][number]
        # A suite is run by one machine.
        self._machines[suite % len(self._machines)].planned.extend([(suite, number)] * size)


class Machine:
    """Has so many slots, and a queue for the API."""

    def __init__(self, world: World, number: int) -> None:
        self._world = world
        self._number = number
        self._queue = RequestQueue("the API", lambda _: None, lambda: world.now)
        self._waiting: dict[QueuedCall, Session] = {}
        self._free = JOBS
        self._wakes_at = math.inf
        self.planned: deque[tuple[int, int]] = deque()

    def fill(self) -> None:
        """Start sessions while there are slots."""
        while self._free and self.planned:
            self._free -= 1
            self._begin(*self.planned.popleft())

    def _begin(self, suite: int, number: int) -> None:
        world = self._world
        session = Session(suite, number, requests_of(world.chance), Patience(clock=lambda: world.now))
        world.later(world.scattered(SETUP_SECONDS), lambda: self._next(session))

    def _next(self, session: Session) -> None:
        request = next(session.requests, None)
        if request is None:
            self._world.later(self._world.scattered(EVALUATION_SECONDS), lambda: self._end(session))
            return
        session.used, session.pause = request
        queued = self._queue.queue(Call("/v1/messages", [], b"", {"model": MODEL}, wait=CallWait(session.run)))
        queued.luck = self._world.chance.random()
        self._stand(queued, session)

    def _end(self, session: Session) -> None:
        self._free += 1
        self._world.over(session, self._number)
        self.fill()

    def _stand(self, queued: QueuedCall, session: Session) -> None:
        self._waiting[queued] = session
        session.wait.enter_context(session.run.pause())
        self._queue.stand(queued)
        self._pump()

    def _wake(self) -> None:
        self._wakes_at = math.inf
        self._pump()

    def _pump(self) -> None:
        """Send what was let go; look again when the next may be."""
        self._queue.admit()
        while free := [queued for queued in self._waiting if queued.admitted.is_set()]:
            session = self._waiting.pop(free[0])
            session.wait.close()
            self._send(free[0], session)
        now = self._world.now
        delays = [delay for queued in self._waiting if (delay := queued.delay(now)) > 0]
        if delays and now + min(delays) < self._wakes_at:
            self._wakes_at = now + min(delays)
            # A hair later: floats may say that it is not yet time.
            self._world.later(min(delays) + 1e-6, self._wake)

    def _send(self, queued: QueuedCall, session: Session) -> None:
        world = self._world
        if seconds := world.api.ask(world.now, session.used):
            # What the API says is whole seconds.
            throttle = Throttle(429, max(FIRST_SECONDS, float(-(-seconds // 1))), is_for_model=True)
            again = self._queue.throttle(queued, throttle)
            self._queue.leave(queued)
            # It goes on all the same, so that a line shows what all of it would take.
            session.is_failed = session.is_failed or not again
            self._stand(queued, session)
            return
        self._queue.ease(queued)
        world.dollars += cost_usd(MODEL, session.used)
        world.later(world.scattered(MODEL_SECONDS), lambda: self._answered(queued, session))

    def _answered(self, queued: QueuedCall, session: Session) -> None:
        self._queue.leave(queued)
        self._world.later(self._world.scattered(session.pause), lambda: self._next(session))
        self._pump()


# --- the tables -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Line:
    """What is simulated: a pull request that changes nothing, and its suites' stored trials."""

    suites: int
    stored: int
    tier: Tier
    machines: int


FIVEFOLD = Tier("4, fivefold", 20_000, 10_000_000, 2_000_000)
LINES = (
    Line(10, 20, BY_NAME["1"], 1),
    Line(10, 20, BY_NAME["2"], 1),
    Line(10, 0, BY_NAME["2"], 1),
    Line(10, 20, BY_NAME["2"], 5),
    Line(100, 20, BY_NAME["2"], 1),
    Line(100, 20, BY_NAME["2"], 4),
    Line(100, 20, BY_NAME["2"], 12),
    Line(100, 20, BY_NAME["4"], 12),
    Line(1000, 20, BY_NAME["4"], 12),
    Line(1000, 20, BY_NAME["4"], 30),
    Line(1000, 20, BY_NAME["4"], 60),
    Line(1000, 20, FIVEFOLD, 60),
)
HEADINGS = (
    "suites", "stored trials", "tier", "machines", "sessions", "minutes", "machine minutes", "US dollars",
    "minutes waited, per session", "input limit used", "sessions that fail",
)  # fmt: skip


def rounds_of(suites: int, stored: int, seed: int) -> list[list[int]]:
    """For each suite how many sessions the schedule wants in each of its rounds."""
    request, plan = PullRequest(Random(seed), Truth(MIXED, stored), suites), TrialPlan()
    rounds: dict[str, list[int]] = {each.suite: [] for each in request.suites}
    while wanted := next_trials(plan, request.suites).wanted:
        for name, number in Counter(trial.suite for trial in wanted).items():
            rounds[name].append(number)
        request.run(plan, request.sessions + len(wanted))
    return [numbers for numbers in rounds.values() if numbers]


def cells(line: Line) -> tuple[str, ...]:
    """One line of the table: means over several pull requests, where there are few suites."""
    found = [_simulated(line, seed) for seed in range(max(1, 100 // line.suites))]
    sessions, minutes, machine_minutes, dollars, waited, used, failed = (
        fmean(column) for column in zip(*found, strict=True)
    )
    return (
        f"{line.suites:,}",
        str(line.stored),
        line.tier.name,
        str(line.machines),
        f"{sessions:,.0f}",
        f"{minutes:.0f}",
        f"{machine_minutes:,.0f}",
        f"{dollars:,.0f}",
        f"{waited:.1f}",
        f"{used:.0%}",
        f"{failed:.1%}",
    )


def _simulated(line: Line, seed: int) -> tuple[float, ...]:
    world = World(rounds_of(line.suites, line.stored, seed), line.machines, line.tier, seed)
    world.run()
    ends = [end + END_SECONDS for end in world.last_end if end]
    used = world.api.input_tokens / (line.tier.input_tokens * max(ends) / 60)
    waited = fmean(world.waits) / 60
    return world.ended, max(ends) / 60, sum(ends) / 60, world.dollars, waited, used, world.failed / world.ended


def row(cells: Iterable[str]) -> str:
    """As Markdown."""
    return f"| {' | '.join(cells)} |"


def main() -> None:
    print(row(HEADINGS))
    print(row("--:" for _ in HEADINGS))
    for line in LINES[: int(sys.argv[1]) if len(sys.argv) > 1 else None]:
        print(row(cells(line)), flush=True)


if __name__ == "__main__":
    main()
