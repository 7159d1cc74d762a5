"""What Zelda adds to a session: `python -m benchmarks.overhead [CASE...] [--rounds N] [--check]`.

The bare Agent SDK and Zelda run the same scripted session of three turns in turn. Compared are the seconds of the
processor, of the process and of all that it started, and those of the clock: the medians of their ratios, beside the
aim. With `--check` the exit code is 1 where a ratio is a tenth worse than the one in `overhead.json`, which
`--write` renews.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count, islice
from pathlib import Path
from statistics import median

from tests.support.projects import Project
from tests.support.scripted_api import ApiRequest, Reply, ScriptedApi, text, tool_call

BENCHMARKS = Path(__file__).resolve().parent
KNOWN = BENCHMARKS / "overhead.json"
ZELDA = str(Path(sys.executable).parent / "zelda")
WORSE = 1.1

COMMIT = "git add -A && git -c user.name=A -c user.email=a@b.c commit -qm Greet && echo done"
TURNS: list[Reply] = [
    tool_call("Bash", {"command": "echo hello > greeting.txt", "description": "Write a greeting"}),
    tool_call("Bash", {"command": COMMIT}),
    text("The greeting is committed."),
]


@dataclass(frozen=True)
class Spent:
    """Seconds of a command, with all that it started and waited for."""

    processor: float
    clock: float


def reply(request: ApiRequest) -> Reply:
    position: int = sum(message["role"] == "assistant" for message in request.messages)
    return TURNS[position]


def spent(command: list[str], environ: dict[str, str] | None = None) -> Spent:
    """Run a command that must succeed."""
    begun = time.perf_counter()
    with (
        tempfile.TemporaryFile() as output,
        subprocess.Popen(command, env=environ, stdout=output, stderr=output) as run,
    ):
        _, status, usage = os.wait4(run.pid, 0)
        run.returncode = os.waitstatus_to_exitcode(status)
        took = time.perf_counter() - begun
        if run.returncode:
            output.seek(0)
            sys.exit(f"{command[:3]} ended with {run.returncode}:\n{output.read().decode()}")
    return Spent(usage.ru_utime + usage.ru_stime, took)


def sessions(settings: str = "", side_by_side: int = 1) -> Iterator[tuple[Spent, Spent]]:
    """Zelda's sessions and bare ones, in turn, without end.

    Args:
        settings: Lines of the suite besides its prompt.
        side_by_side: Sessions at once on either side, of suites that are alike.
    """
    with tempfile.TemporaryDirectory(prefix="zelda-bench-", dir="/var/tmp") as name, ScriptedApi(reply) as api:
        folder = Path(name)
        folder.chmod(0o755)
        suite = "prompt: Add a greeting and commit it.\n" + settings
        project = Project(folder / "project", folder / "home")
        project.write({"README.md": "# B\n"} | {f"zelda/test-{n}.yaml": suite for n in range(side_by_side)})
        project.git("init", "-q", "-b", "main")
        project.commit("Start")
        key = {"ANTHROPIC_API_KEY": "sk-ant-fake-bench", "ANTHROPIC_BASE_URL": api.url}
        environ = {**os.environ, **key, "ZELDA_WORKSPACES": str(folder / "workspaces"), "ZELDA_NO_CHECK": "1"}
        zelda = [ZELDA, "run", "--project", str(project.path), "--jobs", str(side_by_side)]
        bare = [sys.executable, str(BENCHMARKS / "bare_session.py"), api.url]
        for number in count():
            # Working copies and folders of their own, as Zelda gives them to sessions; making them is not counted.
            folders = [folder / f"bare-{number}-{each}" for each in range(side_by_side)]
            for each in folders:
                subprocess.run(["git", "clone", "-q", str(project.path), str(each / "copy")], check=True)
            yield spent(zelda, environ), spent([*bare, *map(str, folders)])


def commands(*words: str) -> Iterator[tuple[Spent, Spent]]:
    """The command with some words, and a Python that does nothing, in turn, without end."""
    while True:
        yield spent([ZELDA, *words]), spent([sys.executable, "-c", "pass"])


TEST = "testCommand: 'true'\n"
CASES: dict[str, tuple[Callable[[], Iterator[tuple[Spent, Spent]]], float]] = {
    "session": (sessions, 1.15),
    "session with a test command": (partial(sessions, TEST), 1.3),
    "four at once": (partial(sessions, side_by_side=4), 1.1),
    "four at once with a test command": (partial(sessions, TEST, 4), 1.25),
    "zelda --version": (partial(commands, "--version"), 2),
    "zelda --help": (partial(commands, "--help"), 4),
    "zelda run --help": (partial(commands, "run", "--help"), 4),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"{', '.join(CASES)}; without one, all")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--check", action="store_true", help="fail where a ratio is a tenth worse than the known one")
    parser.add_argument("--write", action="store_true", help="make the ratios the known ones")
    asked = parser.parse_args()
    if unknown := [name for name in asked.cases if name not in CASES]:
        parser.error(f"no such case: {', '.join(unknown)}; there are {', '.join(CASES)}")
    # Modules are compiled once, as those of an installed package are.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    known: dict[str, list[float]] = json.loads(KNOWN.read_text())
    worse = []
    for name in asked.cases or CASES:
        # A command without a session takes a moment.
        before, rounds = known.get(name), asked.rounds * (10 if name.startswith("zelda") else 1)
        ratios = measured(name, rounds, before)
        # Once more, and longer: a machine has its moments.
        if asked.check and is_worse(ratios, before) and is_worse(measured(name, 2 * rounds, before), before):
            worse.append(name)
        known[name] = [round(ratio, 2) for ratio in ratios]
    if asked.write:
        KNOWN.write_text(json.dumps(known, indent=2) + "\n")
    if worse:
        print(f"a tenth worse than in {KNOWN.relative_to(BENCHMARKS.parent)}: {', '.join(worse)}")
    return int(bool(worse))


def measured(name: str, rounds: int, before: list[float] | None) -> list[float]:
    """Measure a case and print the medians of its ratios: of the processor's time and of the clock's."""
    pairs, aim = CASES[name]
    # The first pair fills the caches.
    spent = list(islice(pairs(), rounds + 1))[1:]
    ratios = [
        median(mine.processor / floor.processor for mine, floor in spent),
        median(mine.clock / floor.clock for mine, floor in spent),
    ]
    line = f"{name:33} processor {ratios[0]:5.2f} x, clock {ratios[1]:5.2f} x, aim {aim:g} x"
    print(f"{line}, known {before[0]:.2f} x and {before[1]:.2f} x" if before else line, flush=True)
    return ratios


def is_worse(ratios: list[float], before: list[float] | None) -> bool:
    """Whether one of the ratios is a tenth worse than it was."""
    return before is not None and any(now > WORSE * then for now, then in zip(ratios, before, strict=True))


if __name__ == "__main__":
    sys.exit(main())
