"""`zelda run --against` with recordings, over several projects, and where the API or a disk refuses."""

import json
import shutil
from collections import Counter
from pathlib import Path

from tests.integration.test_run_against import FEWEST, GREETS, SILENT, against, model, project_of
from tests.support.command import results, zelda
from tests.support.projects import folder
from tests.support.scripted_api import ApiRequest, Reply, ScriptedApi, http_error


def test_a_recording_of_both_sides_is_replayed_and_says_that_nothing_is_spent(tmp_path: Path) -> None:
    project = project_of(tmp_path, GREETS, SILENT)
    replay = ("run", "--against", "HEAD~1", "--trials", "1", "--replay", "tapes")
    with ScriptedApi(model) as api:
        done = zelda(project, "run", "--against", "HEAD~1", "--trials", "1", "--record", "tapes", api=api.url)
    assert done.returncode == 0, done.stdout
    tapes = {"greeting@1.json", "greeting@1@judge.json", "greeting@base-1.json", "greeting@base-1@judge.json"}
    assert {file.name for file in (project.path / "tapes").iterdir()} == tapes

    plan = json.loads(zelda(project, *replay, "--dry-run", "--json").stdout)
    assert (plan["replayed"], plan["mostUsd"]) == (True, 0)
    assert "price" not in plan["suites"][0]

    # What the recorded sessions did cost does not stop a replay.
    done = zelda(project, *replay, "--budget-usd", "0.0001")
    assert done.returncode == 0, done.stdout
    assert "The sessions were replayed, and nothing was spent" in " ".join(done.stdout.split())
    assert Counter((run["side"], run["replayed"]) for run in results(project)) == {
        ("head", False): 1,
        ("base", False): 1,
        ("head", True): 1,
        ("base", True): 1,
    }


def test_a_side_that_the_api_refuses_for_good_is_no_evidence_against_the_other(tmp_path: Path) -> None:
    def refused(request: ApiRequest) -> Reply:
        if "Always say hello" in json.dumps(request.body) and not request.answer_tool:
            return http_error(429, "your limit is reached", headers={"x-should-retry": "false"})
        return model(request)

    project = project_of(tmp_path, GREETS, SILENT)
    code, output, batch = against(project, "--json", "--jobs", "2", "--trials", FEWEST, script=refused)
    # No pass either: the head looks worse, and nobody knows whether it is.
    assert code == 2, output
    assert {run["status"] for run in batch["baseRuns"]} == {"failed"}
    assert {run["failure"]["code"] for run in batch["baseRuns"]} == {"RATE_LIMITED"}
    assert {run["status"] for run in batch["runs"]} == {"completed"}
    assert [arms["reason"] for arms in batch["arms"]] == ["failed"]
    (gate,) = (line.strip() for line in output.splitlines() if line.strip().startswith("gate:"))
    assert gate.startswith(
        "gate: greeting: not judged completely in 4 of 4 sessions: sessions of the base failed, so nothing could"
    )


def test_a_folder_without_git_is_not_copied_before_it_is_refused(tmp_path: Path) -> None:
    project = folder(tmp_path)
    project.write({"zelda/test-a.yaml": "prompt: x\n", "large.txt": "x"})
    asked, git = tmp_path / "asked", tmp_path / "bin/git"
    git.parent.mkdir()
    git.write_text(f'#!/bin/sh\necho "$@" >> {asked}\nexec {shutil.which("git")} "$@"\n')
    git.chmod(0o755)
    project.environ["PATH"] = f"{git.parent}:{project.environ['PATH']}"
    with ScriptedApi([]) as api:
        done = zelda(project, "run", "--against", "main", api=api.url)
    assert (done.returncode, "is no git repository, so it has no commit main." in done.stderr) == (2, True), done.stderr
    words = asked.read_text().split()
    assert "rev-parse" in words
    assert not {"add", "hash-object", "commit-tree", "fast-import"} & {*words}
