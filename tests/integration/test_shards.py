"""`zelda run --shard` on several machines, and `zelda merge`: the same as one `zelda run`, byte for byte."""

import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.integration.test_run_against import GREETS, SILENT, SUITE, model
from tests.support.command import environment, results, zelda
from tests.support.patience import PATIENCE
from tests.support.projects import Project, repository
from tests.support.scripted_api import ScriptedApi

NAMES = ("greeting", "parting")
MUST_PASS = SUITE.replace("acceptanceCriteria", "mustPass")
# What two runs never have alike: moments, seconds, names of runs and batches, sizes of patches with times in them.
TIMES = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}[-:]\d{2}[-:]\d{2}(?:\.\d+)?(?:Z|\+00:00)?(?:-[0-9a-f]{4}\b)?(?:-\d\b)?")
SECONDS = re.compile(r'("(?:\w*[sS]econds|seconds|time|workspace|setup|session|evaluation|first|tokens|at)"): ?[\d.]+')
JUNIT_TIME = re.compile(r' (time|timestamp)="[^"]*"')


# `zelda merge` that is killed while it takes in its second run.
KILLED = """
import os, signal
from zelda_ci.__main__ import main
from zelda_ci.pipeline import parts
written, write = [], parts.write_whole
def killed(target, *rest, **how):
    write(target, *rest, **how)
    written.append(target)
    if len({file.parent for file in written}) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
parts.write_whole = killed
main()
"""


def machines(tmp_path: Path, *names: str, base: str = GREETS, head: str = SILENT, **files: str) -> list[Project]:
    """Clones of one and the same repository."""
    suites = {f"zelda/test-{suite}.yaml": MUST_PASS.replace("Greet.", f"Greet with {suite}.") for suite in NAMES}
    first = repository(tmp_path / "origin", {"CLAUDE.md": base, **suites, **files}, name="shop")
    first.write({"CLAUDE.md": head})
    first.commit()
    found = []
    for name in names:
        shutil.copytree(first.path, tmp_path / name / "shop", symlinks=True)
        found.append(Project(tmp_path / name / "shop", tmp_path / name / "home"))
    return found


def alike(text: str) -> str:
    """Without times and ids."""
    return JUNIT_TIME.sub("", SECONDS.sub(r"\1: 0", TIMES.sub("T", text)))


def ran(project: Project, *arguments: str, api: str) -> tuple[int, str]:
    done = zelda(project, "run", *arguments, api=api)
    return done.returncode, done.stdout + done.stderr


def handed_in(tmp_path: Path, clones: list[Project], *arguments: str, script: Any = model) -> Path:
    """The parts of all shards, each made on a machine of its own, in one folder."""
    parts = tmp_path / "parts"
    for number, clone in enumerate(clones, start=1):
        shard = f"{number}/{len(clones)}"
        with ScriptedApi(script) as api:
            code, output = ran(clone, "--shard", shard, *arguments, api=api.url)
        assert code == 0, output
        (file,) = (clone.results / "shards").iterdir()
        assert file.name == f"zelda-shard-{number}-of-{len(clones)}.zip"
        (parts / str(number)).mkdir(parents=True)
        shutil.copy(file, parts / str(number))
    return parts


def shown(done: Any) -> list[str]:
    """The reports, without what time says."""
    lines = done.stdout.splitlines()
    start = next(place for place, line in enumerate(lines) if line.lstrip().startswith("Metric "))
    told = (
        re.sub(r"\b[\d.]+ (?:s|ms)\b", "T", alike(line))
        for line in lines[start:]
        if not re.search(r"(Time|Session time) ", line)
    )
    return [" ".join(line.split()) for line in told]


def test_two_commits_side_by_side_merged_equal_unsharded(tmp_path: Path) -> None:
    """Results, comparison, gate, JUnit XML, what is printed and the exit code; every suite fails on the head alone."""
    whole, merging, *clones = machines(tmp_path, "whole", "merging", "one", "two")
    arguments = ["--against", "HEAD~1", "--trials", "1", "--jobs", "2"]
    outcomes = ["--reporter", "json=out.json", "--reporter", "junit=out.xml"]
    with ScriptedApi(model) as api:
        expected = zelda(whole, "run", *arguments, *outcomes, api=api.url)
    assert expected.returncode == 1, expected.stdout + expected.stderr

    parts = handed_in(tmp_path, clones, *arguments)
    # A merge that was killed leaves no half of a run, and changes nothing about the next one.
    killed = [sys.executable, "-c", KILLED, "merge", str(parts)]
    done = subprocess.run(killed, cwd=merging.path, env=environment(merging), check=False, timeout=PATIENCE)
    assert done.returncode == -signal.SIGKILL
    assert all((folder / "result.json").is_file() for folder in (merging.results / "runs").iterdir())
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
