"""Whether recordings are replayed alike: every sample many times, under several kinds of load.

python benchmarks/replays.py [REPLAYS] [SAMPLE...]

The loads take turns: none; processes that keep every processor busy; sessions that are stopped and continued at random
moments; commands, hooks and servers that take seconds longer. The packaged demo is a sample, too.
"""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support import replay_samples
from tests.support.projects import Project, folder
from tests.support.replay_samples import SAMPLES
from zelda_ci.cli import demo

BUSY = "while True: pass"
MAX_PAUSE = 6.0
MAX_STOPPED_SECONDS = 1.5


@contextmanager
def quiet(_: Path) -> Iterator[float]:
    yield 0.0


@contextmanager
def busy(_: Path) -> Iterator[float]:
    """Two processes per processor that do nothing but compute."""
    count = 2 * (os.cpu_count() or 1)
    processes = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(count)]
    try:
        yield 0.0
    finally:
        for process in processes:
            process.kill()
            process.wait()


@contextmanager
def stopped(base: Path) -> Iterator[float]:
    """Stop and continue what the replay started, again and again."""
    over = threading.Event()
    thread = threading.Thread(target=_stop_and_continue, args=(base, over))
    thread.start()
    try:
        yield 0.0
    finally:
        over.set()
        thread.join()


@contextmanager
def slow(_: Path) -> Iterator[float]:
    yield random.uniform(1, MAX_PAUSE)


def _stop_and_continue(base: Path, over: threading.Event) -> None:
    while not over.wait(random.uniform(0.1, 1)):
        ours = list(_of_sessions(base))
        if not ours:
            continue
        pid = random.choice(ours)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            over.wait(random.uniform(0.1, MAX_STOPPED_SECONDS))
            os.kill(pid, signal.SIGCONT)


def _of_sessions(base: Path) -> Iterator[int]:
    """Processes of sessions whose workspaces lie below `base`: folder and marker are in their environment."""
    for process in Path("/proc").iterdir():
        with suppress(OSError):
            environ = (process / "environ").read_bytes() if process.name.isdigit() else b""
            if os.fsencode(base) in environ and b"ZELDA_SESSION=" in environ:
                yield int(process.name)


LOADS = {"quiet": quiet, "busy": busy, "stopped": stopped, "slow": slow}


def prepared(base: Path, name: str) -> tuple[Project, Path]:
    """The project of a sample, and its recording."""
    if name != "demo":
        project = replay_samples.project(base, name)
        replay_samples.record(project, base / "cassettes")
        return project, base / "cassettes"
    shop = Project(base / "shop", folder(base, {"x": "x\n"}).home)
    subprocess.run(["cp", "-r", str(demo.PROJECT), str(shop.path)], check=True)
    shop.git("init", "-q", "-b", "main")
    shop.commit("Open")
    return shop, demo.CASSETTES


def measure(name: str, replays: int) -> bool:
    """Replay one sample that often; whether all were alike."""
    seen: Counter[tuple[str, str]] = Counter()
    outcomes: set[str] = set()
    with tempfile.TemporaryDirectory(prefix="zelda-replays-") as place:
        project, cassettes = prepared(Path(place), name)
        for number in range(replays):
            load = list(LOADS)[number % len(LOADS)]
            with LOADS[load](Path(place)) as pause:
                done = replay_samples.replay(project, cassettes, pause=pause)
            outcomes.add(json.dumps(done.outcomes, sort_keys=True))
            seen[load, f"exit {done.code}" if done.code else "diverged" if done.divergences else "ok"] += 1
    told = ", ".join(f"{load} {kind} {count}" for (load, kind), count in sorted(seen.items()))
    print(f"{name}: {replays} replays, {len(outcomes)} outcome(s): {told}", flush=True)
    return len(outcomes) == 1 and all(kind == "ok" for _, kind in seen)


def main(arguments: list[str]) -> int:
    replays = int(arguments[0]) if arguments else 20
    names = arguments[1:] or ["demo", *SAMPLES]
    alike = [measure(name, replays) for name in names]
    return 0 if all(alike) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
