"""How soon a nightly run names a fall, and how often a quiet quarter has an issue in vain; nights that differ included.

Usage: python -m benchmarks.drift_simulation [histories per row, default 200] [processes, default all]
"""

import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from tests.unit.compare.adaptive import MIXED, WAVERING
from tests.unit.compare.nights import World, live
from zelda_ci.domain.nights import NightlyHistory

QUARTER = 91
WITHIN = (3, 5, 7, 10)
# How far all rates of a night lie off together.
DAYS = (0.0, 0.1, 0.2)


def main() -> None:
    histories = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    processes = int(sys.argv[2]) if len(sys.argv) > 2 else os.cpu_count()
    print(f"{histories} histories a row, five criteria a suite; nights: those after which a drift was named")
    with ProcessPoolExecutor(processes) as pool:
        for (label, world), nights in zip(
            rows(), pool.map(partial(named, histories), dict(rows()).values()), strict=True
        ):
            marks = (QUARTER,) if world.fall_at is None else WITHIN
            found = (f"{sum(night <= mark for night in nights) / histories:.1%} within {mark}" for mark in marks)
            print(f"  {label}: {', '.join(found)} nights", flush=True)


def rows() -> Iterator[tuple[str, World]]:
    for suites in (3, 10):
        for name, rates in (("mixed", MIXED), ("wavering", WAVERING)):
            for day in DAYS:
                about = f"{suites} suites, {name}, nights differ by {day}"
                yield f"nothing falls, {about}", World(suites, rates, new_platform_at=45, day=day)
                for fall_at in (20, 45):
                    label = f"one criterion falls to 40 % after {fall_at} nights, {about}"
                    yield label, World(suites, rates, fall_at, 0.4, day=day)


def named(histories: int, world: World) -> list[int]:
    """Of each history in which a drift is named, after how many nights, counted from the fall."""
    start = world.fall_at or 0
    nights = QUARTER if world.fall_at is None else start + max(WITHIN)

    def is_it(number: int, history: NightlyHistory) -> bool:
        its_own = ((drift.suite, drift.check) == ("suite0", "c0") for drift in history.drifts)
        return bool(history.drifts) if world.fall_at is None else number >= start and any(its_own)

    seen = (live(world, nights, f"history {number}", is_it) for number in range(histories))
    return [night - start + 1 for night in seen if night is not None]


if __name__ == "__main__":
    main()
