"""How much processor time it takes to say which trials of 200 suites are next, with 200 stored trials each.

Each has twenty criteria.

Usage: python -m benchmarks.schedule_speed
"""

from random import Random
from time import process_time

from tests.unit.compare.adaptive import PullRequest, Truth
from zelda_ci.compare.schedule import next_trials
from zelda_ci.domain.trials import TrialPlan


def main() -> None:
    request = PullRequest(Random(1), Truth((0.9,) * 20, stored=200), suites=200)
    plan = TrialPlan()
    for moment in ("before the first trial", "after the first trials", "after the second look"):
        started = process_time()
        wanted = next_trials(plan, request.suites).wanted
        print(f"{process_time() - started:.2f} s {moment}: {len(wanted)} trials wanted")
        request.run(plan, budget=request.sessions + len(wanted))


if __name__ == "__main__":
    main()
