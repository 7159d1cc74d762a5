"""What the walls add to the start of a command, at every level that this machine offers.

Usage: python -m benchmarks.launcher [PAIRS]

Runs `/bin/true` bare and confined in turn, and prints the medians of the differences in milliseconds, of wall and of
processor time, and of the ratios. At level none there is nothing but the supervisor.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median
from time import perf_counter

from zelda_ci.domain.suite import IsolationLevel, IsolationSettings
from zelda_ci.domain.workspace import Confinement
from zelda_ci.sandbox import confine, levels, users
from zelda_ci.sandbox.confine import Needs
from zelda_ci.sandbox.readable_paths import PathPolicy
from zelda_ci.sandbox.run_folder import WorkspaceFolder

COMMAND = ["/bin/true"]


def main() -> None:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    begun = perf_counter()
    offered = levels.probe(os.environ)
    print(f"probe  {(perf_counter() - begun) * 1000:6.1f} ms")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        for level in levels.STRENGTH:
            if offered.offers(level):
                report(level, measured(confinement(Path(folder, level), level), pairs))


def confinement(place: Path, level: IsolationLevel) -> Confinement:
    """Of a run whose folders are empty."""
    run = WorkspaceFolder(place / "run", -1)
    for part in (run.root, run.git_dir, run.home, run.tmp):
        part.mkdir(parents=True)
    uid = levels.USERS[0] if level == "uid" else None
    environment = {"PATH": os.environ["PATH"], "HOME": str(run.home)}
    needs = Needs(level, IsolationSettings(), PathPolicy.of(place / "project", place, os.environ), uid=uid)
    made = confine.confine(run, environment, needs)
    if uid is not None:
        users.hand_over(run, place, [], uid)
    return made


Cost = tuple[float, float]
"""Milliseconds of wall and of processor time."""


def measured(walls: Confinement, pairs: int) -> list[tuple[Cost, Cost]]:
    """The cost of each pair, bare and confined, after one pair that warms up."""
    confined = walls.command(COMMAND)
    return [(cost(COMMAND, walls), cost(confined, walls)) for _ in range(pairs + 1)][1:]


def cost(argv: Sequence[str], walls: Confinement) -> Cost:
    begun, before = perf_counter(), getrusage(RUSAGE_CHILDREN)
    subprocess.run(argv, env=dict(walls.environment), check=True)
    wall, after = perf_counter() - begun, getrusage(RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall * 1000, processor * 1000


def report(level: str, pairs: Sequence[tuple[Cost, Cost]]) -> None:
    wall = median(confined[0] - bare[0] for bare, confined in pairs)
    processor = median(confined[1] - bare[1] for bare, confined in pairs)
    ratio = median(confined[0] / bare[0] for bare, confined in pairs)
    least = min(confined[0] for _, confined in pairs)
    print(
        f"{level:10} adds {wall:6.1f} ms of wall, {processor:6.1f} ms of processor time; {ratio:6.1f} times as long; "
        f"at best {least:.1f} ms ({len(pairs)} pairs)"
    )


if __name__ == "__main__":
    main()
