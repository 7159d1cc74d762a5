"""The examples for other CIs, tried as far as the shell goes: their own lines, run for real on a replay."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.integration.test_run_against import GREETS, model
from tests.integration.test_shards import alike, machines
from tests.support.command import environment, zelda
from tests.support.patience import PATIENCE
from tests.support.projects import Project
from tests.support.scripted_api import ScriptedApi

EXAMPLES = Path(__file__).parents[2] / "examples"
SHARDS = 2


def shell(project: Project, lines: list[str], programs: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """What a runner does with the lines of a job: the first that fails ends it."""
    environ = {**environment(project), "GIT_CONFIG_GLOBAL": os.devnull, **variables}
    environ["PATH"] = f"{programs}{os.pathsep}{environ['PATH']}"
    words = ["sh", "-e", "-c", "\n".join(lines)]
    return subprocess.run(
        words, cwd=project.path, env=environ, capture_output=True, text=True, timeout=PATIENCE, check=False
    )


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


def recorded(project: Project) -> None:
    """Recordings of all sessions of both sides, beside the project's own files."""
    with ScriptedApi(model) as api:
        done = zelda(project, "run", "--against", "HEAD~1", "--trials", "1", "--record", "cassettes", api=api.url)
    assert done.returncode == 0, done.stdout + done.stderr
    shutil.rmtree(project.results)


def gitlab() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((EXAMPLES / "gitlab-ci-sharded.yml").read_text())
    return found


def buildkite() -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = yaml.safe_load((EXAMPLES / "buildkite-sharded.yml").read_text())["steps"]
    return steps


def unescaped(lines: list[str]) -> list[str]:
    """As the agent hands them to the shell: `$$` is how a pipeline writes `$`."""
    return [line.replace("$$", "$") for line in lines]


def places(tmp_path: Path, project: Project, *names: str) -> list[Project]:
    """Machines with a clone each, as their runners leave it."""
    for name in names:
        shutil.copytree(project.path, tmp_path / name / "shop", symlinks=True)
    made = [Project(tmp_path / name / "shop", tmp_path / name / "home") for name in names]
    for place in made:
        place.git("update-ref", "refs/remotes/origin/main", "HEAD~1")
    return made


def of_leg(number: int, base: str) -> dict[str, str]:
    """What the job of a shard finds in its environment, at either."""
    return {
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": base,
        "CI_NODE_INDEX": str(number),
        "CI_NODE_TOTAL": str(SHARDS),
        "BUILDKITE_PULL_REQUEST_BASE_BRANCH": "main",
        "BUILDKITE_PARALLEL_JOB": str(number - 1),
        "BUILDKITE_PARALLEL_JOB_COUNT": str(SHARDS),
        "REPLAY": "cassettes",
    }


def test_the_examples_share_a_run_and_put_it_together(tmp_path: Path, programs: Path) -> None:
    (project,) = machines(tmp_path, "recorded", head=GREETS + "Be kind.\n", **{"zelda.config.yaml": "trials: 1\n"})
    recorded(project)
    one, two, report, other = places(tmp_path, project, "one", "two", "report", "other")
    base, stored = report.git("rev-parse", "HEAD~1"), tmp_path / "stored"
    shard, merge = gitlab()["zelda"]["script"], gitlab()["zelda-report"]["script"]
    for number, leg in enumerate((one, two), start=1):
        done = shell(leg, shard, programs, **of_leg(number, base))
        assert done.returncode == 0, done.stdout + done.stderr
        # GitLab's runner unpacks the artifacts of all jobs where they were.
        for place in (stored, report.path):
            shutil.copytree(leg.results / "shards", place / ".zelda" / "shards", dirs_exist_ok=True)
        if number == 1:
            missing = shell(report, merge, programs)
            assert missing.returncode == 2
            assert "Shard 2 of 2 is missing" in missing.stderr
    shard_of_buildkite, merge_of_buildkite = (unescaped(step["command"]) for step in buildkite())
    for project, lines in ((report, merge), (other, merge_of_buildkite)):
        done = shell(project, lines, programs, STORED=str(stored))
        assert done.returncode == 0, done.stdout + done.stderr
        assert (project.path / "zelda.html").stat().st_size > 10_000
        told = alike((project.path / "zelda.xml").read_text())
        assert 'name="greeting"' in told
        assert 'name="parting"' in told
        assert 'failures="0"' in told

    # Both have the same shard run.
    (programs / "zelda").write_text('#!/bin/sh\necho "$@"\n')
    commands = [shell(other, lines, programs, **of_leg(2, base)).stdout for lines in (shard, shard_of_buildkite)]
    assert commands[0] == commands[1] != ""


def test_the_examples_ask_for_what_the_shell_is_given() -> None:
    """The rest of the files, as far as it can be read: jobs in parallel, files handed on, a report in any case."""
    jobs = gitlab()
    assert jobs["zelda"]["parallel"] == buildkite()[0]["parallelism"] == 4
    assert jobs["zelda"]["artifacts"]["paths"] == [".zelda/shards/"]
    assert [rule["when"] for rule in jobs["zelda-report"]["rules"]] == ["always"]
    assert buildkite()[1]["depends_on"] == [{"step": "zelda", "allow_failure": True}]
