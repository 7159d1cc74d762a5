"""How long it takes to compare 200 suites with ten trials of twenty criteria on each side.

Usage: python -m benchmarks.compare_speed
"""

from time import perf_counter

from tests.unit.compare.simulation import Population, Truth
from zelda_ci.compare.comparison import compare


def main() -> None:
    truth = Truth(suites=200, trials=10, reliability=0.9, fallen=0.9, resources=True, criteria=20)
    population = Population(truth, pool=10)
    sides = population.side("a"), population.side("b")
    for _ in range(3):
        started = perf_counter()
        found = compare(*sides)
        print(f"{perf_counter() - started:.2f} s for {found.family.hypotheses} hypotheses")


if __name__ == "__main__":
    main()
