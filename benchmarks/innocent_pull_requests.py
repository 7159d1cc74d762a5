"""How often the check of a pull request that changes nothing is red: schedule, comparison and gate as a whole.

Usage: python -m benchmarks.innocent_pull_requests [pull requests per row, default 200] [processes, default all]

A pull request is run trial by trial as the schedule wants it, and judged by the default gate, as `zelda ci` does.
"""

import os
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from datetime import timedelta
from functools import partial
from random import Random

from tests.unit.compare.adaptive import MIXED, WAVERING, PullRequest, Rates, Truth
from tests.unit.compare.runs import START
from zelda_ci.compare.comparison import compare_trials
from zelda_ci.compare.gate import gate
from zelda_ci.domain.comparison import GateResult
from zelda_ci.domain.run import BatchResult
from zelda_ci.domain.trials import Side

STORED = 20
WORLDS: dict[str, Rates] = {
    "mixed": MIXED,
    "all wavering": WAVERING,
    "all at 80 %": (0.8,) * 5,
    "all at 70 %": (0.7,) * 5,
    "one at 50 %": (1.0, 1.0, 1.0, 1.0, 0.5),
    "one at 20 %": (1.0, 1.0, 1.0, 1.0, 0.2),
}
ROW = "{:<34} {:>8} {:>12} {:>12} {:>19}"

World = tuple[str, int, int]


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    processes = int(sys.argv[2]) if len(sys.argv) > 2 else os.cpu_count()
    worlds = [(name, suites, stored) for name in WORLDS for suites in (1, 3) for stored in (0, STORED)]
    print(f"{count} pull requests a row, five criteria a suite, nothing changed")
    print(ROW.format("", "red", "regression", "evaluation", "sessions per suite"), flush=True)
    with ProcessPoolExecutor(processes) as pool:
        for (name, suites, stored), found in zip(worlds, pool.map(partial(tally, count), worlds), strict=True):
            shares = (f"{100 * found[kind] / count:.1f} %" for kind in ("red", "regression", "evaluation"))
            sessions = f"{found['sessions'] / count / suites:.1f}"
            print(ROW.format(f"{name}, {suites} suites, {stored} stored", *shares, sessions), flush=True)


def tally(count: int, world: World) -> Counter[str]:
    """Of so many pull requests: those that are red, those that are for each kind of reason, and all sessions."""
    name, suites, stored = world
    chance, found = Random(f"{world}"), Counter[str]()
    for _ in range(count):
        request = PullRequest(chance, Truth(WORLDS[name], stored), suites)
        request.run()
        found["sessions"] += request.sessions
        result = checked(request)
        found.update({reason.kind for reason in result.reasons} | ({"red"} if result.exit_code else set()))
    return found


def checked(request: PullRequest) -> GateResult:
    """What the gate says of comparison and evaluations."""
    heads = tuple(trial.run for suite in request.suites for trial in suite.head)
    bases = tuple(trial.run.replace(side=Side.BASE) for suite in request.suites for trial in suite.base)
    end = START + timedelta(hours=1)
    batch = BatchResult(batch_id="batch", started_at=START, finished_at=end, runs=heads, base_runs=bases)
    stored = (trial.run for suite in request.suites for trial in suite.stored)
    return gate(batch, {}, compare_trials(request.suites), stored)


if __name__ == "__main__":
    main()
