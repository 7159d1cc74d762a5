"""How much processor time it takes to say which trials of 200 suites are next, with 200 stored trials each.

Each has twenty criteria. A job that goes on with the trials of earlier jobs has to read all of them first.

Usage: python -m benchmarks.schedule_speed
"""

from dataclasses import replace
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
        anew = [replace(suite, stored=tuple(suite.stored)) for suite in request.suites]
        started = process_time()
        next_trials(plan, anew)
        print(f"{process_time() - started:.2f} s {moment}, in a new job")
        request.run(plan, budget=request.sessions + len(wanted))


if __name__ == "__main__":
    main()
