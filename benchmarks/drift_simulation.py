"""How soon a nightly run names a drop, and how often a quiet quarter has an issue in vain; further trials included.

Usage: python -m benchmarks.drift_simulation [histories per row, default 200]
"""

import sys
from collections.abc import Callable

from tests.unit.compare.nights import World, live
from zelda_ci.domain.nights import NightlyHistory

QUARTER = 91
FALL_AT = 30
WITHIN = 5
WAVERING = (0.9,) * 5


def main() -> None:
    histories = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print(f"{histories} histories a row, five criteria a suite")
    print(f"Nothing falls: histories of {QUARTER} nights with any drift")
    for suites in (1, 3, 10):
        for name, rates in (("mixed", World(1).rates), ("wavering", WAVERING)):
            world = World(suites, rates=rates, new_platform_at=45)
            quiet = Quiet()
            found = share(world, QUARTER, histories, quiet)
            print(f"  {suites} suites, {name}: {found:.1%}, {quiet.trials / quiet.rows:.2f} trials a night", flush=True)
    print(f"One criterion falls by 50 points: histories in which it is named within {WITHIN} nights")
    for suites in (1, 3, 10):
        for name, fall_with in (("silently", None), ("with a new platform", FALL_AT)):
            world = World(suites, fall_at=FALL_AT, new_platform_at=fall_with)
            print(f"  {suites} suites, 100 to 50 %, {name}: {share(world, FALL_AT + WITHIN, histories, _it):.0%}")
        world = World(suites, rates=WAVERING, fall_at=FALL_AT, fallen=0.4)
        print(f"  {suites} suites, 90 to 40 %, all wavering: {share(world, FALL_AT + WITHIN, histories, _it):.0%}")


def share(world: World, nights: int, histories: int, wanted: Callable[[int, NightlyHistory], bool]) -> float:
    seen = sum(live(world, nights, f"history {number}", wanted) is not None for number in range(histories))
    return seen / histories


class Quiet:
    """Sees any drift, and counts what the nights cost."""

    def __init__(self) -> None:
        self.trials = self.rows = 0

    def __call__(self, _: int, history: NightlyHistory) -> bool:
        suites = history.nights[-1].suites.values()
        self.trials += sum(row.trials for row in suites)
        self.rows += len(suites)
        return bool(history.drifts)


def _it(number: int, history: NightlyHistory) -> bool:
    return number >= FALL_AT and any((drift.suite, drift.check) == ("suite0", "c0") for drift in history.drifts)


if __name__ == "__main__":
    main()
