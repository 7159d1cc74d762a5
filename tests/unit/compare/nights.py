"""Made-up nights, and a night watch whose dice have a fixed seed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random

from zelda_ci.compare.drift import TRIALS_A_NIGHT, watch, with_night
from zelda_ci.domain.nights import Night, NightlyHistory, Passes, SuiteNight

FIRST = datetime(2026, 3, 1, 4, tzinfo=UTC)
PLATFORM = {"cli": "2.1.329", "models": "claude-sonnet-5-5"}


def night(
    number: int,
    checks: Mapping[str, Mapping[str, tuple[int, int]]],
    *,
    outcome: str = "state",
    platform: Mapping[str, str] = PLATFORM,
    tree: str = "code",
) -> Night:
    """The row of one night: by suite and check, how many of how many trials passed."""
    suites = {
        name: SuiteNight(
            outcome=outcome,
            tree=tree,
            platform=dict(platform),
            trials=max((trials for _, trials in each.values()), default=0),
            checks={check: Passes(passed=passed, trials=trials) for check, (passed, trials) in each.items()},
        )
        for name, each in checks.items()
    }
    return Night(
        at=FIRST + timedelta(days=number), batch_id=f"night-{number:04d}", commit=f"{number:040x}", suites=suites
    )


def history_of(nights: Sequence[Night]) -> NightlyHistory:
    """The history after these nights, each watched."""
    history = NightlyHistory()
    for each in nights:
        history = watch(with_night(history, each))
    return history


@dataclass(frozen=True)
class World:
    """Suites of five checks, and what happens to the first check of the first suite in a certain night."""

    suites: int
    rates: tuple[float, ...] = (1.0, 1.0, 0.97, 0.9, 1.0)
    fall_at: int | None = None
    fallen: float = 0.5
    new_platform_at: int | None = None
    day: float = 0.0
    """How far all rates of a night lie off together: the standard deviation."""


def live(world: World, nights: int, seed: str, look: Callable[[int, NightlyHistory], bool]) -> int | None:
    """Night after night through the product's own code; the first night whose history `look` wants, if any."""
    random = Random(seed)
    history = NightlyHistory()
    for number in range(nights):
        is_new = world.new_platform_at is not None and number >= world.new_platform_at
        history = watch(with_night(history, _night(world, number, random, "2.1.330" if is_new else "2.1.329")))
        if look(number, history):
            return number
    return None


def _night(world: World, number: int, random: Random, cli: str) -> Night:
    """Not validated, since there are millions."""
    suites = {}
    shift = random.gauss(0, world.day)
    for name in (f"suite{each}" for each in range(world.suites)):
        has_fallen = world.fall_at is not None and number >= world.fall_at and name == "suite0"
        rates = (world.fallen, *world.rates[1:]) if has_fallen else world.rates
        passed = (sum(random.random() < rate + shift for _ in range(TRIALS_A_NIGHT)) for rate in rates)
        checks = {
            f"c{index}": Passes.model_construct(passed=count, trials=TRIALS_A_NIGHT)
            for index, count in enumerate(passed)
        }
        suites[name] = SuiteNight.model_construct(
            outcome="state",
            tree="code",
            platform={**PLATFORM, "cli": cli},
            trials=TRIALS_A_NIGHT,
            whole=Passes(),
            checks=checks,
            cost_usd=0.0,
        )
    at = FIRST + timedelta(days=number)
    return Night.model_construct(at=at, batch_id=f"night-{number:04d}", commit="c" * 40, run=None, suites=suites)
