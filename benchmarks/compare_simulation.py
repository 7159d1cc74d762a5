"""How often two equal sides "regress", and how often a real drop is seen.

Usage: python -m benchmarks.compare_simulation [comparisons per row, default 500]
"""

import sys
from itertools import product

from tests.unit.compare.simulation import Truth, first_criterion_regressed, percent, regressed, simulate

POOL = 400
"""Runs per suite from which trials are drawn: many, so that drawing without returning them changes little."""


def main() -> None:
    comparisons = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    print(f"{comparisons} comparisons a row, five criteria a suite")
    print("Two equal sides: comparisons with any false `regressed`")
    for resources, suites, trials_each, reliability in product((False, True), (1, 10), (3, 5, 10), (0.5, 0.7, 0.9)):
        truth = Truth(suites, trials_each, reliability, reliability, resources)
        found = percent(regressed, simulate(truth, comparisons, "a"))
        print(f"  {label(truth)}, criteria at {reliability:.0%}: {found:.1f} %")
    print("One criterion falls from 100 % to 40 %: comparisons that call it `regressed`")
    for resources, suites, trials_each in product((False, True), (1, 3, 10), (3, 5, 10, 15)):
        truth = Truth(suites, trials_each, 1.0, 0.4, resources)
        print(f"  {label(truth)}: {percent(first_criterion_regressed, simulate(truth, comparisons, 'b', POOL)):.0f} %")


def label(truth: Truth) -> str:
    metrics = "all metrics" if truth.resources else "criteria only"
    return f"{metrics}, {truth.suites} suites x {truth.trials} trials"


if __name__ == "__main__":
    main()
