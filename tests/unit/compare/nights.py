"""Made-up nights, and a night watch whose dice have a fixed seed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random

from zelda_ci.compare.drift import TRIALS_A_ROUND, needing_more, watch, with_night
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


# Names of suites, and how many trials of each.
More = tuple[Sequence[str], int]


@dataclass(frozen=True)
class World:
    """Suites of five checks, and what happens to the first check of the first suite in a certain night."""

    suites: int
    rates: tuple[float, ...] = (1.0, 1.0, 0.97, 0.9, 1.0)
    fall_at: int | None = None
    fallen: float = 0.5
    new_platform_at: int | None = None


def live(world: World, nights: int, seed: str, look: Callable[[int, NightlyHistory], bool]) -> int | None:
    """Night after night through the product's own code; the first night whose history `look` wants, if any."""
    random = Random(seed)
    history = NightlyHistory()
    platforms: dict[str, Mapping[str, str]] = {}
    everything = [f"suite{each}" for each in range(world.suites)]
    for number in range(nights):
        is_new = world.new_platform_at is not None and number >= world.new_platform_at
        platform = {**PLATFORM, "cli": "2.1.330"} if is_new else PLATFORM
        tonight = _tonight(world, number, random, platform, {}, (everything, 1))
        while more := needing_more(history, tonight, platforms):
            tonight = _tonight(world, number, random, platform, tonight.suites, (more, TRIALS_A_ROUND))
        platforms = dict.fromkeys(tonight.suites, platform)
        history = watch(with_night(history, tonight))
        if look(number, history):
            return number
    return None


def _tonight(
    world: World, number: int, random: Random, platform: Mapping[str, str], made: Mapping[str, SuiteNight], more: More
) -> Night:
    """One more round of trials beside those that were made; not validated, since there are millions."""
    suites = dict(made)
    names, trials = more
    for name in names:
        has_fallen = world.fall_at is not None and number >= world.fall_at and name == "suite0"
        rates = (world.fallen, *world.rates[1:]) if has_fallen else world.rates
        before = made[name].checks if name in made else {}
        checks = {}
        for index, rate in enumerate(rates):
            old = before.get(f"c{index}", Passes())
            passed = old.passed + sum(random.random() < rate for _ in range(trials))
            checks[f"c{index}"] = Passes.model_construct(passed=passed, trials=old.trials + trials)
        suites[name] = SuiteNight.model_construct(
            outcome="state",
            tree="code",
            platform=dict(platform),
            trials=made[name].trials + trials if name in made else trials,
            whole=Passes(),
            checks=checks,
            cost_usd=0.0,
        )
    at = FIRST + timedelta(days=number)
    return Night.model_construct(at=at, batch_id=f"night-{number:04d}", commit="c" * 40, suites=suites)
