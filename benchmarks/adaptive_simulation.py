"""What adaptive trials cost and see: pull requests of known truth, run as the product's own schedule wants them.

Usage: python -m benchmarks.adaptive_simulation [comparisons per row, default 200]
"""

import sys
from collections.abc import Callable
from random import Random

from tests.unit.compare.adaptive import MIXED, SURE, WAVERING, Truth, simulate

ROW = "{:<62} {:>7} {:>19}"


def main() -> None:
    comparisons = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print(f"{comparisons} comparisons a row, five criteria a suite")
    print(ROW.format("", "red", "sessions per suite"))
    for stored in (0, 20):
        for suites in (1, 3, 10):
            show(f"nothing changed, mixed, {suites} suites, {stored} stored", Truth(MIXED, stored), suites, comparisons)
        show(f"nothing changed, wavering, 10 suites, {stored} stored", Truth(WAVERING, stored), 10, comparisons)
        for suites in (1, 3, 10):
            for name, rates in (("sure", SURE), ("mixed", MIXED)):
                label = f"one criterion 100 -> 40 %, {name}, {suites} suites, {stored} stored"
                show(label, Truth(rates, stored), suites, comparisons, 0.4)
        label = f"one criterion 90 -> 30 %, wavering, 10 suites, {stored} stored"
        show(label, Truth(WAVERING, stored), 10, comparisons, 0.3)
    for points, share in ((30, 0.1), (50, 0.2)):
        for suites in (3, 10):
            label = f"platform took {points} points from {share:.0%} of criteria, {suites} suites, 20 stored"
            show(label, Truth(MIXED, 20, lost(points / 100, share)), suites, comparisons)


def lost(points: float, share: float) -> Callable[[Random], float]:
    return lambda chance: points if chance.random() < share else 0.0


def show(label: str, truth: Truth, suites: int, comparisons: int, fallen_to: float | None = None) -> None:
    found = simulate(truth, suites, comparisons, fallen_to)
    print(ROW.format(label, f"{100 * sum(found.red) / comparisons:.1f} %", f"{found.sessions:.1f}"), flush=True)


if __name__ == "__main__":
    main()
