"""What adaptive trials cost and see: pull requests of known truth, run as the product's own schedule wants them.

Usage: python -m benchmarks.adaptive_simulation [comparisons per row, default 200] [processes, default all]

Every row has a seed of its own kind and is the same in every run. With 2,000 comparisons a row it takes some minutes.
"""

import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from random import Random

from tests.unit.compare.adaptive import MIXED, SURE, WAVERING, Tally, Truth, simulate

ROW = "{:<66} {:>12} {:>7} {:>19}"
STORED = 20


@dataclass(frozen=True)
class Row:
    """What is simulated, and what is printed before it."""

    label: str
    truth: Truth
    suites: int
    fallen_to: float | None = None
    reruns: int = 0


@dataclass(frozen=True)
class Lost:
    """How much a criterion lost with a new platform."""

    points: int
    share: float

    def __call__(self, chance: Random) -> float:
        return self.points / 100 if chance.random() < self.share else 0.0


def rows() -> Iterator[Row]:
    for stored in (0, STORED):
        for suites in (1, 3, 10):
            yield Row(f"nothing changed, mixed, {suites} suites, {stored} stored", Truth(MIXED, stored), suites)
            for name, rates in (("sure", SURE), ("mixed", MIXED)):
                label = f"one criterion 100 -> 40 %, {name}, {suites} suites, {stored} stored"
                yield Row(label, Truth(rates, stored), suites, 0.4)
    for points, share in ((30, 0.1), (50, 0.2)):
        for suites in (3, 10):
            label = f"drift took {points} points from {share:.0%} of criteria, {suites} suites, {STORED} stored"
            yield Row(label, Truth(MIXED, STORED, Lost(points, share)), suites)
    yield Row("one criterion 100 -> 40 %, sure, 1 suite, 0 stored, three attempts", Truth(SURE), 1, 0.4, 2)
    for stored in (0, STORED):
        yield Row(f"nothing changed, wavering, 10 suites, {stored} stored", Truth(WAVERING, stored), 10)
        label = f"one criterion 90 -> 30 %, wavering, 10 suites, {stored} stored"
        yield Row(label, Truth(WAVERING, stored), 10, 0.3)


def main() -> None:
    comparisons = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    processes = int(sys.argv[2]) if len(sys.argv) > 2 else os.cpu_count()
    print(f"{comparisons} comparisons a row, five criteria a suite")
    print(ROW.format("", "red", "", "sessions per suite"), flush=True)
    with ProcessPoolExecutor(processes) as pool:
        for row, found in zip(rows(), pool.map(partial(tally, comparisons), rows()), strict=True):
            red = sum(found.red)
            share = f"{100 * red / comparisons:.1f} %"
            print(ROW.format(row.label, f"{red} of {comparisons}", share, f"{found.sessions:.2f}"), flush=True)


def tally(comparisons: int, row: Row) -> Tally:
    return simulate(row.truth, row.suites, comparisons, row.fallen_to, reruns=row.reruns)


if __name__ == "__main__":
    main()
