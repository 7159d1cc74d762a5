"""How long things take, each against the floor below it: `python -m benchmarks.speed [CASE...] [--rounds N]`.

The two sides run in turn, in one process, and the median of their ratios and differences is printed beside the aim. A
case without a floor is held to seconds of the processor. The exit code is 1 where an aim is missed.
"""

import argparse
import base64
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain, count
from pathlib import Path
from random import Random
from statistics import median
from typing import Any, Literal

import anyio
import orjson

from tests.builders import session
from tests.support.projects import Project
from tests.unit.compare import adaptive, runs, simulation
from zelda_ci.compare.comparison import compare
from zelda_ci.compare.pool import pool_of, summarize_pool
from zelda_ci.compare.schedule import next_trials
from zelda_ci.domain.kinds import ItemKind
from zelda_ci.domain.manifest import Unit, UnitUse
from zelda_ci.domain.run import EvalContext, Fingerprint, RunResult
from zelda_ci.domain.session import ApiUsage
from zelda_ci.domain.suite import IsolationLevel, IsolationSettings, ResolvedSuite
from zelda_ci.domain.trials import PoolSettings, TrialPlan
from zelda_ci.metrics.checks import decide
from zelda_ci.redact import Redactor, Secret
from zelda_ci.sandbox import confine, levels, users
from zelda_ci.sandbox.confine import Needs
from zelda_ci.sandbox.readable_paths import PrivateFolders
from zelda_ci.sandbox.run_folder import WorkspaceFolder
from zelda_ci.storage import codec
from zelda_ci.storage.result_store import INDEX, ResultStore, run_id
from zelda_ci.workspace.workspaces import Workspaces

REPOSITORY = Path(__file__).resolve().parents[1]
SAFE = Redactor()

Work = Callable[[], object]
"""What is timed; a float that it returns is its own count of seconds."""


@dataclass(frozen=True)
class Measured:
    """One line of the output."""

    name: str
    work: Work
    aim: float
    unit: Literal["x", "ms", "s"]
    """What the aim is about: the ratio to the floor, the milliseconds above it, or the seconds of the work."""
    floor: Work | None = None
    rounds: float = 1.0
    """Times the rounds that are asked for."""

    def line(self, rounds: int) -> tuple[str, bool]:
        """The figures, and whether they meet the aim."""
        # Without a floor in the same moment, only the processor's time says the same on a busy machine.
        clock = time.perf_counter if self.floor else time.process_time
        pairs = [(seconds(self.work, clock), seconds(self.floor or float)) for _ in range(rounds + 1)][1:]
        spent, least = median(mine for mine, _ in pairs), median(its for _, its in pairs)
        said = f"{self.name:44} {1000 * spent:9.1f} ms"
        above = 1000 * median(mine - its for mine, its in pairs)
        ratio = median(mine / its for mine, its in pairs) if self.floor else 0.0
        if self.floor:
            said += f", floor {1000 * least:.1f} ms, {above:.1f} ms above it, ratio {ratio:.2f}"
        is_met = {"x": ratio, "ms": above, "s": spent}[self.unit] <= self.aim
        return f"{said} (at most {self.aim:g} {self.unit}){'' if is_met else '  MISSED'}", is_met


def seconds(work: Work, clock: Callable[[], float] = time.perf_counter) -> float:
    begun = clock()
    own = work()
    return own if isinstance(own, float) else clock() - begun


def quiet(command: list[str], environ: dict[str, str] | None = None) -> None:
    """Run a command that must succeed."""
    done = subprocess.run(command, env=environ, check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{command[:3]} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")


def repository(path: Path, files: dict[str, str]) -> Path:
    project = Project(path, path.parent / "home")
    project.write(files)
    project.git("init", "-q", "-b", "main")
    project.git("config", "gc.auto", "0")
    project.commit("Start")
    # As a clone is, and not by git itself at a time of its own.
    project.git("gc", "-q")
    return path


# --- workspaces and isolation ----------------------------------------------------------------------------------------


def workspaces(folder: Path) -> Iterator[list[Measured]]:
    """What does a workspace of many files cost beside `git worktree add` straight from the repository?"""
    yield [opening(folder / f"{files}", files, aim) for files, aim in ((1_000, 1.5), (100_000, 1.1))]


def opening(folder: Path, files: int, aim: float) -> Measured:
    contents = {f"d{n // 1000}/e{n % 20}/f{n}.txt": f"content of file {n}\n" * 20 for n in range(files)}
    project, numbers = repository(folder / "project", contents), count()
    environ = {**os.environ, "ZELDA_WORKSPACES": f"{folder}/workspaces"}
    ours = Workspaces(project, Path(".zelda"), environ, SAFE)
    suite = ResolvedSuite.model_validate({"name": "bench", "file": "zelda/test-bench.yaml", "prompt": "-"})

    async def opened() -> float:
        begun = time.perf_counter()
        async with ours.open(f"run-{next(numbers)}", suite):
            return time.perf_counter() - begun

    def added() -> float:
        worktree = ["git", "-C", str(project), "worktree"]
        place = str(folder / "bare")
        spent = seconds(partial(quiet, [*worktree, "add", "-q", "--detach", place]))
        quiet([*worktree, "remove", "--force", place])
        return spent

    return Measured(f"a workspace of {files:,} files", partial(anyio.run, opened), aim, "x", added, rounds=3)


def isolation(folder: Path) -> Iterator[list[Measured]]:
    """What does the isolation of a level add to the start of a command? Every level that this machine offers."""
    offered = levels.probe(os.environ)
    yield [confined(folder / level, level) for level in levels.STRENGTH if level in offered.levels]


def confined(place: Path, level: IsolationLevel) -> Measured:
    run = WorkspaceFolder(place / "run", -1)
    for part in (run.root, run.git_dir, run.home, run.tmp):
        part.mkdir(parents=True)
    uid = levels.USERS[0] if level == "uid" else None
    environment = {"PATH": os.environ["PATH"], "HOME": str(run.home)}
    needs = Needs(level, IsolationSettings(), PrivateFolders.of(place / "project", place, os.environ), uid=uid)
    walls = confine.confine(run, environment, needs)
    if uid is not None:
        users.chown_to_run_user(run, place, [], uid)
    start = partial(quiet, environ=dict(walls.environment))
    work, floor = partial(start, walls.command(["/bin/true"])), partial(start, ["/bin/true"])
    return Measured(f"/bin/true at isolation {level}", work, 60, "ms", floor, rounds=6)


# --- masking ---------------------------------------------------------------------------------------------------------

MASKED_BYTES = 10_000_000


def masking(_: Path) -> Iterator[list[Measured]]:
    """How long does it take to mask 10 MB of what sessions read and print? At 40 MB/s, a quarter of a second."""
    secrets = [Secret(f"{number}-aK8x2mQ9/zL4vW7p") for number in range(12)]
    redact = Redactor([*secrets, Secret("sk-ant-fake-" + "Ab3_" * 24)])
    code = "\n".join(file.read_text("utf-8") for file in sorted(REPOSITORY.glob("zelda_ci/**/*.py")))
    noise = Random(1).randbytes(1_000_000)
    texts = {
        "prose": "\n".join(file.read_text("utf-8") for file in sorted(REPOSITORY.glob("docs/*.md"))),
        "code": code,
        "minified code": re.sub(r"\s*([=(){}:,])\s*", r"\1", " ".join(code.split())),
        "JSON": json.dumps(
            [{"tool_use_id": f"toolu_{at}", "content": code[at : at + 2000]} for at in range(0, len(code), 2000)]
        ),
        "base64": base64.encodebytes(noise).decode(),
        "a hex dump": noise.hex(" ", 2),
    }
    whole = {name: (text * (MASKED_BYTES // len(text) + 1))[:MASKED_BYTES] for name, text in texts.items()}
    yield [Measured(f"masking 10 MB of {name}", partial(redact, text), 0.25, "s") for name, text in whole.items()]


# --- results: listing, pooling, scheduling, comparing ----------------------------------------------------------------


def listing(results: Path) -> Iterator[list[Measured]]:
    """What does `zelda list` cost for 10,000 stored runs? Against reading and parsing all of them."""
    usual = [runs.efficiency(tools={"Read": 5}), runs.correctness(), runs.fulfillment("PPPFP")]
    template = runs.run([*usual, runs.tool_usage(used={"Read": 5})])
    for number in range(10_000):
        at = runs.START + timedelta(minutes=number)
        name = run_id("alpha", at)
        (results / "runs" / name).mkdir(parents=True)
        stored = template.model_copy(update={"run_id": name, "batch_id": name, "started_at": at})
        (results / "runs" / name / "result.json").write_bytes(codec.encode(stored, indent=2))
    time.sleep(2.5)  # the index does not trust what is younger
    history = ResultStore(results)

    def floor() -> None:
        for entry in os.scandir(results / "runs"):
            with open(f"{entry.path}/result.json", "rb") as file:  # noqa: PTH123 - the fastest way
                orjson.loads(file.read())

    def cold() -> float:
        (results / INDEX).unlink(missing_ok=True)
        return seconds(history.overview)

    yield [
        Measured("zelda list of 10,000 runs without an index", cold, 3, "x", floor),
        Measured("zelda list of 10,000 runs with its index", history.overview, 3, "x", floor),
    ]


NOW = datetime(2026, 11, 22, tzinfo=UTC)


def trials(suites: int, each: int) -> Iterator[RunResult]:
    """Stored trials of ten states of the steering files; every third of other code."""
    skills = [SAFE(f".claude/skills/skill-{number}/SKILL.md") for number in range(20)]
    uses = tuple(UnitUse(unit=Unit(kind=ItemKind.SKILL, path=path, name=path), loaded=True) for path in skills)
    touched = tuple(SAFE(f"src/file-{number}.py") for number in range(20))
    states = []
    for number in range(10):
        own = Fingerprint(outcome=f"o{number}", platform="p", tree="t", parts={"cli": "2"})
        states.append((own.replace(tree="else"), own, own))
    template = runs.run([]).model_copy(update={"steering": uses, "evaluations": {}, "touched": touched})
    for suite in range(suites):
        config = ResolvedSuite(name=f"suite-{suite}", file="f", prompt="p")
        for number in range(each):
            own = states[number % 10][number % 3]
            ids = {"run_id": f"{config.name}-{number}", "batch_id": f"batch-{number // 3}", "suite": config.name}
            end = NOW - timedelta(minutes=number)
            yield template.model_copy(update={**ids, "config": config, "finished_at": end, "fingerprint": own})


def pooling(_: Path) -> Iterator[list[Measured]]:
    """What does it cost to pool 200 suites with 200 stored trials each, from ten artifacts that overlap by half?"""
    stored = list(trials(200, 200))
    part, own, settings = len(stored) // 10, stored[10].fingerprint, PoolSettings(max_trials=200)
    groups = [stored[at * part : (at + 2) * part] for at in range(10)]
    names = dict.fromkeys(run.suite for run in stored)
    assert own is not None

    def pooled() -> None:
        pool = pool_of(groups, lambda _: settings, NOW)
        summary = summarize_pool(run for name in names for run in pool.stored(name, own, settings))
        assert summary
        assert len(pool.trials) == len(stored)

    yield [Measured("pooling 40,000 trials of 200 suites", pooled, 1, "s")]


def schedule(_: Path) -> Iterator[list[Measured]]:
    """How long does it take to say which trials of 200 suites are next, with 200 stored trials of 20 criteria each?"""
    truth = adaptive.Truth((0.9,) * 20, stored=200)
    request, plan = adaptive.PullRequest(Random(1), truth, suites=200), TrialPlan()
    request.run(plan, budget=len(next_trials(request.suites).wanted))
    suites = request.suites

    def anew() -> float:
        # A job that goes on with the trials of earlier jobs has read none of them.
        fresh = [replace(suite, stored=tuple(suite.stored)) for suite in suites]
        return seconds(partial(next_trials, fresh), time.process_time)

    yield [
        Measured("next trials of 200 suites", partial(next_trials, suites), 1, "s"),
        Measured("next trials of 200 suites in a new job", anew, 1, "s"),
    ]


def comparison(_: Path) -> Iterator[list[Measured]]:
    """How long does it take to compare 200 suites with ten trials of twenty criteria on each side?"""
    truth = simulation.Truth(suites=200, trials=10, reliability=0.9, fallen=0.9, resources=True, criteria=20)
    population = simulation.Population(truth, pool=10)
    yield [Measured("comparing 200 suites", partial(compare, population.side("a"), population.side("b")), 2, "s")]


def checks(_: Path) -> Iterator[list[Measured]]:
    """How long does a check take on a session of 1,000 turns? At most 50 ms."""
    found = "\n".join(f"src/f{number}.py:1:x" for number in range(50))
    line = "Bash cd x && npm test -- --run 2>&1 | tail -5 && git add -A; echo 'done; ok'"
    turns = ([f"Read src/a{n}.py", f"{line} {n}", f"Grep x -> {found}", f"Edit b{n}"] for n in range(250))
    transcript = session(*chain(*turns))
    ways: dict[str, Any] = {
        "notCalled": "Bash(git push*)",
        "order": ["Read(src/**)", "Bash(npm*)"],
        "notRead": ["s/**"],
    }
    found_by: dict[str, Work] = {}
    for word, value in ways.items():
        asked = ResolvedSuite.model_validate({"name": "s", "file": "f", "prompt": "p", "checks": [{word: value}]})
        found_by[word] = partial(decide, EvalContext(asked, None, transcript, ApiUsage(), None), SAFE)
    yield [Measured(f"{word} in 1,000 turns", work, 0.05, "s") for word, work in found_by.items()]


CASES = {
    case.__name__: contextmanager(case)
    for case in (workspaces, isolation, masking, checks, listing, pooling, schedule, comparison)
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"{', '.join(CASES)}; without one, all")
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    missed = False
    for name in asked.cases or CASES:
        with tempfile.TemporaryDirectory(prefix="zelda-bench-", dir=os.environ.get("TMPDIR", "/var/tmp")) as place:
            Path(place).chmod(0o755)
            with CASES[name](Path(place)) as found:
                for each in found:
                    line, is_met = each.line(round(asked.rounds * each.rounds))
                    print(line, flush=True)
                    missed |= not is_met
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
