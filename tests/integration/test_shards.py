"""`zelda run --shard` on several machines, and `zelda merge`: the same as one `zelda run`, byte for byte.

The machines run the lines of the examples for other CIs, as their shells would.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.builders import result
from tests.integration.test_run_against import GREETS, SILENT, SUITE, model
from tests.support.command import environment, results, zelda
from tests.support.patience import PATIENCE
from tests.support.projects import Project, repository
from tests.support.scripted_api import ScriptedApi
from zelda_ci.domain.run import PlannedSuite, ShardPart, ShardPlan, batch_of
from zelda_ci.files.atomic import write_whole
from zelda_ci.pipeline.shards import FILES, import_parts, parts_in, write_part
from zelda_ci.storage.result_store import RESULT, RUNS

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = ("greeting", "parting")
SHARDS = 2
MUST_PASS = SUITE.replace("acceptanceCriteria", "mustPass")
# What two runs never have alike: moments, seconds, names of runs and batches, sizes of patches with times in them.
TIMES = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}[-:]\d{2}[-:]\d{2}(?:\.\d+)?(?:Z|\+00:00)?(?:-[0-9a-f]{4}\b)?(?:-\d\b)?")
SECONDS = re.compile(r'("(?:\w*[sS]econds|seconds|time|workspace|setup|session|evaluation|first|tokens|at)"): ?[\d.]+')
JUNIT_TIME = re.compile(r' (time|timestamp)="[^"]*"')


# `zelda merge` that is killed while it takes in its second run.
KILLED = """
import os, signal
from zelda_ci.__main__ import main
from zelda_ci.pipeline import shards
written, write = [], shards.write_whole
def killed(target, *rest, **how):
    write(target, *rest, **how)
    written.append(target)
    if len({file.parent for file in written}) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
shards.write_whole = killed
main()
"""


def machines(tmp_path: Path, *names: str) -> list[Project]:
    """Clones of one and the same repository, as their runners leave it."""
    suites = {f"zelda/test-{suite}.yaml": MUST_PASS.replace("Greet.", f"Greet with {suite}.") for suite in NAMES}
    files = {"CLAUDE.md": GREETS, **suites, "zelda.config.yaml": "trials: 1\n"}
    first = repository(tmp_path / "origin", files, name="shop")
    first.write({"CLAUDE.md": SILENT})
    first.commit()
    first.git("update-ref", "refs/remotes/origin/main", "HEAD~1")
    found = []
    for name in names:
        shutil.copytree(first.path, tmp_path / name / "shop", symlinks=True)
        found.append(Project(tmp_path / name / "shop", tmp_path / name / "home"))
    return found


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """The commands that a job of theirs has: ours, and Buildkite's, which copies from a folder instead of a server."""
    folder = tmp_path / "programs"
    folder.mkdir()
    own = f'#!/bin/sh\nexec "{sys.executable}" -m zelda_ci "$@"\n'
    download = '#!/bin/sh\n[ "$1 $2" = "artifact download" ] && cp -R "$STORED/." "$4/"\n'
    for name, text in (("zelda", own), ("buildkite-agent", download)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return folder


def shell(
    project: Project, lines: list[str], programs: Path, api: str | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    """What a runner does with the lines of a job: the first that fails ends it."""
    environ = {**environment(project, api), "GIT_CONFIG_GLOBAL": os.devnull, **variables}
    environ["PATH"] = f"{programs}{os.pathsep}{environ['PATH']}"
    words = ["sh", "-e", "-c", "\n".join(lines)]
    return subprocess.run(
        words, cwd=project.path, env=environ, capture_output=True, text=True, timeout=PATIENCE, check=False
    )


def gitlab() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((EXAMPLES / "gitlab-ci-sharded.yml").read_text())
    return found


def buildkite() -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = yaml.safe_load((EXAMPLES / "buildkite-sharded.yml").read_text())["steps"]
    return steps


def unescaped(lines: list[str]) -> list[str]:
    """As the agent hands them to the shell: `$$` is how a pipeline writes `$`."""
    return [line.replace("$$", "$") for line in lines]


def of_leg(number: int, base: str) -> dict[str, str]:
    """What the job of a shard finds in its environment, at either."""
    return {
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": base,
        "CI_NODE_INDEX": str(number),
        "CI_NODE_TOTAL": str(SHARDS),
        "BUILDKITE_PULL_REQUEST_BASE_BRANCH": "main",
        "BUILDKITE_PARALLEL_JOB": str(number - 1),
        "BUILDKITE_PARALLEL_JOB_COUNT": str(SHARDS),
    }


def alike(text: str) -> str:
    """Without times and ids."""
    return JUNIT_TIME.sub("", SECONDS.sub(r"\1: 0", TIMES.sub("T", text)))


def handed_in(clones: list[Project], programs: Path, base: str, parts: Path) -> None:
    """The parts of all shards, each made on a machine of its own by the example's lines, in one folder."""
    parts.mkdir()
    for number, clone in enumerate(clones, start=1):
        with ScriptedApi(model) as api:
            done = shell(clone, gitlab()["zelda"]["script"], programs, api.url, **of_leg(number, base))
        assert done.returncode == 0, done.stdout + done.stderr
        (file,) = (clone.results / "shards").iterdir()
        assert file.name == f"zelda-shard-{number}-of-{len(clones)}.zip"
        shutil.copy(file, parts)


def shown(done: Any) -> list[str]:
    """The reports, without what time says."""
    lines = done.stdout.splitlines()
    start = next(place for place, line in enumerate(lines) if line.lstrip().startswith("Zelda: "))
    told = (
        re.sub(r"\b[\d.]+ (?:s|ms)\b", "T", alike(line))
        for line in lines[start:]
        if not re.search(r"(Time|Session time) ", line)
    )
    return [" ".join(line.split()) for line in told]


def test_two_commits_side_by_side_merged_equal_unsharded(tmp_path: Path, programs: Path) -> None:
    """Results, comparison, gate, JUnit XML, what is printed and the exit code; every suite fails on the head alone."""
    whole, merging, report, other, *clones = machines(tmp_path, "whole", "merging", "report", "other", "one", "two")
    base, parts = whole.git("rev-parse", "HEAD~1"), tmp_path / "parts"
    outcomes = ["--reporter", "json=out.json", "--reporter", "junit=out.xml"]
    with ScriptedApi(model) as api:
        expected = zelda(whole, "run", "--against", base, "--jobs", "4", *outcomes, api=api.url)
    assert expected.returncode == 1, expected.stdout + expected.stderr

    handed_in(clones, programs, base, parts)
    # A merge that was killed leaves no half of a run, and changes nothing about the next one.
    killed = [sys.executable, "-c", KILLED, "merge", str(parts)]
    ended = subprocess.run(killed, cwd=merging.path, env=environment(merging), check=False, timeout=PATIENCE)
    assert ended.returncode == -signal.SIGKILL
    assert all((folder / "result.json").is_file() for folder in (merging.results / "runs").glob("[!.]*"))
    assert list((merging.results / "shards").iterdir())
    found = zelda(merging, "merge", str(parts), *outcomes)
    assert found.returncode == 1, found.stdout + found.stderr
    for name in ("out.json", "out.xml"):
        assert alike((merging.path / name).read_text()) == alike((whole.path / name).read_text())
    assert shown(found) == shown(expected)
    # The runs are here, as if they had been made here.
    made = [[(run["suite"], run["side"], run["trial"]) for run in results(project)] for project in (whole, merging)]
    assert sorted(made[0]) == sorted(made[1])
    assert len({run["batchId"] for run in results(merging)}) == 1
    kept = [sorted(file.name for file in project.results.glob("runs/*/*")) for project in (whole, merging)]
    assert kept[0] == kept[1]
    assert not list((merging.results / "shards").iterdir())
    # Who merges again counts nothing twice.
    assert zelda(merging, "merge", str(parts)).returncode == 1
    assert len(results(merging)) == len(results(whole))

    # The examples put it together in the same way. GitLab's runner unpacks the artifacts of all jobs where they were.
    shutil.copytree(parts, report.results / "shards")
    for project, lines in ((report, gitlab()["zelda-report"]["script"]), (other, unescaped(buildkite()[1]["command"]))):
        done = shell(project, lines, programs, STORED=str(parts))
        assert done.returncode == 1, done.stdout + done.stderr
        assert (project.path / "zelda.html").stat().st_size > 10_000
        assert alike((project.path / "zelda.xml").read_text()) == alike((whole.path / "out.xml").read_text())

    # Both have the same shard run.
    (programs / "zelda").write_text('#!/bin/sh\necho "$@"\n')
    shards = (gitlab()["zelda"]["script"], unescaped(buildkite()[0]["command"]))
    commands = [shell(other, lines, programs, **of_leg(2, base)).stdout for lines in shards]
    assert commands[0] == commands[1] != ""


def test_the_examples_ask_for_what_the_shell_is_given() -> None:
    """The rest of the files, as far as it can be read: jobs in parallel, files handed on, a report in any case."""
    jobs = gitlab()
    assert jobs["zelda"]["parallel"] == buildkite()[0]["parallelism"] == 4
    assert jobs["zelda"]["artifacts"]["paths"] == [".zelda/shards/"]
    assert [rule["when"] for rule in jobs["zelda-report"]["rules"]] == ["always"]
    assert buildkite()[1]["depends_on"] == [{"step": "zelda", "allow_failure": True}]


def test_two_merges_at_once_store_every_run_whole(tmp_path: Path) -> None:
    made, here, barrier = tmp_path / "made", tmp_path / "here", threading.Barrier(4)
    runs = tuple(result(f"example-2026-02-13T14-30-0{trial}", trial=trial) for trial in range(1, 9))
    for run in runs:
        for name in FILES:
            write_whole(made / RUNS / run.run_id / name, [b"x" * 100_000], durable=False)
    suites = (PlannedSuite(name="example", shard=1, trials=8, seconds=1, settings=""),)
    plan = ShardPlan(zelda="1", shards=1, suites=suites)
    write_part(ShardPart(shard=1, plan=plan, platform="debian"), batch_of(runs), made)

    def merge(_: int) -> str:
        with parts_in(made) as parts:
            barrier.wait(PATIENCE)
            return import_parts(parts, here).batch_id

    with ThreadPoolExecutor(4) as pool:
        assert len({*pool.map(merge, range(4))}) == 1
    for run in runs:
        assert {*FILES, RESULT} == {file.name for file in (here / RUNS / run.run_id).iterdir()}
