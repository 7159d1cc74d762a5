"""How long it takes to list stored runs, against the floor: reading and parsing every result in the same process.

Usage: python -m benchmarks.listing [RUNS]
"""

import os
import statistics
import sys
import tempfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from time import perf_counter, sleep

import orjson

from tests.unit.compare.runs import START, correctness, efficiency, fulfillment, run, tool_usage
from zelda_ci.storage import codec
from zelda_ci.storage.history import INDEX, RunHistory
from zelda_ci.storage.run_folder import run_id

ROUNDS = 5


def store(results: Path, count: int) -> None:
    """Results like those of a suite with all four metrics."""
    template = run([efficiency(tools={"Read": 5}), correctness(), fulfillment("PPPFP"), tool_usage(used={"Read": 5})])
    for number in range(count):
        at = START + timedelta(minutes=number)
        name = run_id("alpha", at)
        folder = results / "runs" / name
        folder.mkdir(parents=True)
        data = codec.encode_result(template.model_copy(update={"run_id": name, "batch_id": name, "started_at": at}))
        (folder / "result.json").write_bytes(data)


def floor(results: Path) -> None:
    for folder in os.scandir(results / "runs"):
        with open(f"{folder.path}/result.json", "rb") as file:  # noqa: PTH123 - the fastest way
            orjson.loads(file.read())


def seconds(work: Callable[[], object]) -> float:
    started = perf_counter()
    work()
    return perf_counter() - started


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as name:
        results = Path(name)
        store(results, count)
        sleep(2.5)  # the index does not trust what is younger
        history = RunHistory(results)
        floors, cold, warm = [], [], []
        for _ in range(ROUNDS):
            floors.append(seconds(lambda: floor(results)))
            (results / INDEX).unlink(missing_ok=True)
            cold.append(seconds(history.overview))
            warm.append(seconds(history.overview))
        assert len(history.overview().runs) == count
    print(f"{count} runs; floor {statistics.median(floors) * 1000:.0f} ms")
    for label, times in (("without an index", cold), ("with an index", warm)):
        ratio = statistics.median(mine / its for mine, its in zip(times, floors, strict=True))
        print(f"{label}: {statistics.median(times) * 1000:.0f} ms, {ratio:.2f} x the floor")


if __name__ == "__main__":
    main()
