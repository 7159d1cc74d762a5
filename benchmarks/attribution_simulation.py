"""Which unit the search names, in worlds of known truth, and after how many sessions.

Usage: python -m benchmarks.attribution_simulation [searches per row, default 200]
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from random import Random

from tests.unit.compare.attribution_worlds import (
    LOOKS,
    TRIALS,
    World,
    chance,
    culprit,
    either,
    elsewhere,
    simulate,
    together,
)

ROW = "{:<44} {:>7} {:>7} {:>7} {:>9}"
Make = Callable[[Random], World]


def rows() -> Iterator[tuple[str, Make, int, Sequence[int]]]:
    for units in (2, 4, 8, 16):
        for healthy, broken in ((0.95, 0.4), (0.97, 0.1), (0.9, 0.5)):
            yield f"one of {units}, {healthy:.0%} -> {broken:.0%}", _one(units, healthy, broken), units, TRIALS
    yield "one of 8, 95% -> 40%, adaptive trials", _one(8, 0.95, 0.4), 8, LOOKS
    for units in (2, 8):
        for rate in (0.6, 0.75, 0.9):
            for looks, words in ((TRIALS, ""), (LOOKS, ", adaptive trials")):
                yield f"none of {units}, chance at {rate:.0%}{words}", partial(_chance, rate), units, looks
    yield "none of 8, the cause lies elsewhere", lambda _: elsewhere(), 8, TRIALS
    yield "two of 8, together", lambda random: together(*random.sample(range(8), 2)), 8, TRIALS
    yield "two of 8, either alone", lambda random: either(*random.sample(range(8), 2)), 8, TRIALS


def _one(units: int, healthy: float, broken: float) -> Make:
    return lambda random: culprit(random.randrange(units), healthy=healthy, broken=broken)


def _chance(rate: float, _: Random) -> World:
    return chance(rate)


def main() -> None:
    searches = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print(ROW.format("", "named", "wrong", "none", "sessions"))
    for label, make, units, looks in rows():
        tally = simulate(make, units, searches, looks=looks)
        shares = (f"{count / searches:.1%}" for count in (tally.verdicts["named"], tally.wrong, tally.verdicts["none"]))
        print(ROW.format(label, *shares, tally.median), flush=True)


if __name__ == "__main__":
    main()
