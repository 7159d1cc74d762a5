"""Several jobs, several workflow files, and pull requests on top of each other: each finds what is its own."""

import json
from pathlib import Path

from tests.integration.test_run_against import SILENT, model
from tests.scenarios.stage import BAD, GOOD, Done, Stage
from tests.scenarios.test_side_by_side import FILES as ADAPTIVE
from tests.scenarios.test_side_by_side import ONE_LOOK, batch, comparison

WORKFLOW = ".github/workflows/zelda.yml"


def told_by(done: Done) -> str:
    return done.summary + done.printed


def test_two_jobs_of_one_workflow_keep_apart_without_a_comment_id(tmp_path: Path) -> None:
    with Stage(tmp_path) as stage:
        for job, score in (("linux", 100), ("mac", 0)):
            stage.store(stage.tip, score=score, told={"job": job}, name=f"zelda-results.{job}.1")
        # What is worse to one is better to the other.
        pull = stage.open_pull()
        run = stage.run_of(pull)
        done = stage.pull_request(pull, GOOD, run=run, job_id="mac")
        assert (done.code, done.outputs["verdict"]) == (0, "improved"), done.printed
        done = stage.pull_request(pull, BAD, run=run, job_id="linux")
        assert (done.code, done.outputs["verdict"]) == (1, "regressed"), done.printed
        first, second = stage.bodies()
        assert ("better in 1 of 1 suite" in first, "Zelda: linux: worse in 1 of 1 suite" in second) == (True, True)
        assert [artifact.name for artifact in stage.stored] == ["zelda-results.mac.1", "zelda-results.linux.1"]
        assert [artifact.name for artifact in stage.transcripts] == [
            "zelda-results.mac.1.transcripts",
            "zelda-results.linux.1.transcripts",
        ]
        says = [json.loads(artifact.files["zelda-ci.json"]) for artifact in stage.stored]
        assert [(each["workflow"], each["job"], each["artifact"], each["folder"]) for each in says] == [
            (WORKFLOW, "mac", "zelda-results", "."),
            (WORKFLOW, "linux", "zelda-results", "."),
        ]


def test_the_jobs_of_a_matrix_overwrite_nothing_and_are_told_what_they_need(tmp_path: Path) -> None:
    with Stage(tmp_path) as stage:
        pull = stage.open_pull()
        run = stage.run_of(pull)
        assert stage.pull_request(pull, GOOD, run=run).code == 0
        # The service knows each job by an id of its own; the runner tells all of them the same.
        environ = {**stage.github.environment(run, job="other leg"), "GITHUB_JOB": "job"}
        second = stage.pull_request(
            pull, BAD, run=run, variables={"ACTIONS_RUNTIME_TOKEN": environ["ACTIONS_RUNTIME_TOKEN"]}
        )
        assert second.code == 1, second.printed
        assert [artifact.name for artifact in stage.stored] == ["zelda-results.job.1"]
        assert len(stage.transcripts) == 1
        warnings = [warning.data for warning in second.told("warning")]
        assert any("already exists in this run" in warning for warning in warnings)
        assert any("has written the comment, and it is not overwritten" in warning for warning in warnings)
        assert all("`comment-id`" in warning for warning in warnings)
        (body,) = stage.bodies()
        assert "failed" not in body.split("\n")[2]

        # With an id each, all is well.
        third = stage.pull_request(
            pull,
            BAD,
            run=run,
            comment_id="opus @team",
            variables={"ACTIONS_RUNTIME_TOKEN": environ["ACTIONS_RUNTIME_TOKEN"]},
        )
        assert [artifact.name for artifact in stage.stored] == ["zelda-results.job.1", "zelda-results-opus @team.1"]
        assert third.told("warning") == []
        assert len(stage.bodies()) == 2
        assert stage.bodies()[1].count("@team") == stage.bodies()[1].count("`@team`") > 0


def test_a_stacked_pull_request_is_compared_with_the_default_branch_and_says_so(tmp_path: Path) -> None:
    with Stage(tmp_path) as stage:
        stage.store(stage.tip)
        feature = stage.branch("feature-a", {"src/a.py": "print()\n"})
        # What a pull request for the base has stored is of its branch, and no baseline.
        stage.store(feature, branch="feature-a", event="pull_request", score=0)
        pull = stage.open_pull(base="feature-a")
        done = stage.pull_request(pull, BAD)
        assert (done.code, done.outputs["verdict"]) == (1, "regressed"), done.printed
        assert done.outputs["baseline-sha"] == stage.tip
        sentence = f"no results of feature-a; compared with main@{stage.tip[:7]}, on which it is based"
        assert sentence in told_by(done)
        assert f"Compared with `main@{stage.tip[:7]}` (feature-a has stored no results" in stage.bodies()[0]

        # As soon as the base has results of its own, those count.
        stage.store(feature, branch="feature-a", score=0)
        done = stage.pull_request(pull, GOOD)
        assert done.outputs["baseline-sha"] == feature
        assert "no results of feature-a" not in told_by(done)


def test_beside_a_stacked_pull_request_its_own_base_runs(tmp_path: Path) -> None:
    """It is not blamed for what its base has broken, which stored trials of the default branch do not show."""
    with Stage(tmp_path, ADAPTIVE) as stage:
        stage.push(model)
        feature = stage.branch("feature-a", {"CLAUDE.md": SILENT})
        pull = stage.open_pull({"CLAUDE.md": SILENT + "Be kind.\n"}, base="feature-a")
        done = stage.pull_request(pull, model, trials=ONE_LOOK)
        assert done.outputs["verdict"] != "regressed", done.printed
        (suite,) = comparison(stage, done)["suites"]
        assert (suite["sources"]["stored"], suite["sources"]["base"]) == (1, 2)
        found = batch(stage, done)
        assert (found["base"]["commit"], len(found["baseRuns"])) == (feature, 2)


def test_results_of_two_jobs_of_a_fork_are_both_told(tmp_path: Path) -> None:
    with Stage(tmp_path) as stage:
        for job in ("linux", "mac"):
            stage.store(stage.tip, told={"job": job}, name=f"zelda-results.{job}.1")
        pull = stage.open_pull(fork=True)
        run = stage.run_of(pull)
        stored = [
            stage.of_fork(pull, run=run, score=score, told={"job": job}, name=f"zelda-results.{job}.1")
            for job, score in (("linux", 100), ("mac", 0))
        ]
        # Of a job with an artifact-name like the others'.
        stage.of_fork(pull, run=run, score=0, told={"job": "linux"}, name="zelda-results.bsd.1")
        done = stage.finished(pull, stored[-1])
        assert done.code == 0, done.printed
        bodies = stage.bodies()
        assert len(bodies) == 2
        assert sorted("worse in 1 of 1 suite" in body for body in bodies) == [False, True]
        assert sorted(job for job in ("linux", "mac") for body in bodies if f"Zelda: {job}" in body) == ["linux", "mac"]
        assert "unchanged" in stage.finished(pull, stored[-1]).printed
        assert len(stage.bodies()) == 2
