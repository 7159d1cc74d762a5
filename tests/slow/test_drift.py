"""Simulated nights of which the truth is known: what fell is named soon, and what did not is hardly ever."""

import pytest

from tests.unit.compare.nights import World, live
from zelda_ci.domain.nights import Drift, NightlyHistory


def named(world: World, seed: str, *, within: int = 7) -> bool:
    assert world.fall_at is not None
    fell = world.fall_at

    def sees(number: int, history: NightlyHistory) -> bool:
        return number >= fell and any(_is_it(drift) for drift in history.drifts)

    return live(world, fell + within, seed, sees) is not None


def _is_it(drift: Drift) -> bool:
    return (drift.suite, drift.check) == ("suite0", "c0")


@pytest.mark.parametrize(
    "world",
    [World(2, fall_at=45, fallen=0.4), World(2, fall_at=45, fallen=0.4, new_platform_at=45)],
    ids=["silent", "new platform"],
)
def test_a_drop_of_60_points_is_named_within_a_week(world: World) -> None:
    seen = sum(named(world, f"drop {number}") for number in range(12))
    assert seen >= 10


@pytest.mark.parametrize(
    "world",
    [World(1, rates=(0.9,) * 5), World(1, new_platform_at=40), World(3, day=0.2)],
    ids=["wavering", "mixed", "nights differ"],
)
def test_quiet_quarters_hardly_ever_have_a_drift(world: World) -> None:
    quarters = [live(world, 91, f"quiet {number}", lambda _, history: bool(history.drifts)) for number in range(10)]
    claimed = [night for night in quarters if night is not None]
    assert len(claimed) <= 1, claimed
