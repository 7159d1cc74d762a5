"""How soon the image is at work: a new container for each sample, against `true` in the image's base, in turn.

Usage: python -m benchmarks.image_start [ROUNDS] [BASE], with Docker, or as root with buildah and debootstrap.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY / "scripts" / "machines"))

from engines import Buildah, Docker, Engine, Order  # noqa: E402 - scripts are no package
from image_checks import Bench, step_of_workflow  # noqa: E402
from image_test import build, stand_in  # noqa: E402


def seconds(command: list[str]) -> tuple[float, float]:
    """Until the first line, and until the end; without a line both are the end. The command must succeed."""
    begun = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as started:
        assert started.stdout is not None
        line = started.stdout.readline()
        first = time.perf_counter() - begun
        rest = started.stdout.read()
    ended = time.perf_counter() - begun
    if started.returncode:
        sys.exit(f"{command} ended with {started.returncode}:\n{line}{rest}")
    return (first if line else ended), ended


def sample(engine: Engine, bench: Bench, base: str) -> dict[str, float]:
    """Seconds of one round."""
    path, runner = bench.project(replay=True), Path(tempfile.mkdtemp(dir=bench.folder))
    # Containers are made before the clock starts, where the engine does that in a step of its own.
    floor = engine.command(Order((), entrypoint=("true",), image=base))
    version = engine.command(Order(("--version",)))
    step = engine.command(step_of_workflow(path, runner))
    _, taken = seconds(floor)
    _, versioned = seconds(version)
    spoken, done = seconds(step)
    shutil.rmtree(path)
    return {
        "true, in the base": taken,
        "zelda --version": versioned,
        "zelda ci on a replay, first line": spoken,
        "zelda ci on a replay, whole": done,
    }


def measure(engine: Engine, base: str, rounds: int) -> None:
    """Sample an engine that has built the image, and say what came out."""
    with tempfile.TemporaryDirectory(prefix="zelda-bench-") as folder:
        Path(folder).chmod(0o755)
        bench = Bench(engine, Path(folder), base)
        sample(engine, bench, base)  # warm the caches: a runner has built the image a moment ago
        rows = [sample(engine, bench, base) for _ in range(rounds)]
    floor, *_ = rows[0]
    for name in rows[0]:
        ratio = median(row[name] / row[floor] for row in rows)
        more = median(row[name] - row[floor] for row in rows)
        print(f"{name}: {median(row[name] for row in rows):.2f} s, {ratio:.1f} x the floor, {more:.2f} s above it")


def main(rounds: int, asked: str | None) -> None:
    engine: Engine = Docker() if Docker.answers() else Buildah()
    named = re.search(r"^ARG BASE=(\S+)", (REPOSITORY / "Dockerfile").read_text("utf-8"), re.MULTILINE)
    assert named is not None
    try:
        chosen = asked or stand_in(engine)
        build(engine, chosen)
        measure(engine, chosen or named[1], rounds)
    finally:
        engine.close()


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 7, sys.argv[2] if sys.argv[2:] else None)
