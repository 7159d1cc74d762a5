"""Runs of pull requests that are cancelled: nobody gets rid of a trial in this way, and nothing else is lost by it."""

import json
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.scenarios.stage import BAD, GOOD, Done, Stage
from tests.scenarios.test_pool import candidate_trials
from tests.scenarios.test_side_by_side import batch
from tests.support.command import results
from tests.support.github_server import Pull, slow
from tests.support.patience import PATIENCE
from tests.support.projects import wait_until
from tests.support.scripted_api import ApiRequest, Reply, ScriptedApi, hang
from tests.support.warm import Process


class Cancelled:
    """A model whose sessions hang once so many more trials are stored; then the job is cancelled."""

    def __init__(self, stage: Stage, model: Callable[[ApiRequest], Reply], trials: int = 1) -> None:
        self._stage, self._model = stage, model
        self._wanted = len(results(stage.project)) + trials
        self._hangs = threading.Event()

    def __call__(self, request: ApiRequest) -> Reply:
        if request.answer_tool or len(results(self._stage.project)) < self._wanted:
            return self._model(request)
        self._hangs.set()
        return hang()

    def cancel(self, process: Process, _: ScriptedApi) -> None:
        assert self._hangs.wait(PATIENCE)
        os.kill(process.pid, signal.SIGINT)


def cancelled(stage: Stage, pull: Pull, model: Callable[[ApiRequest], Reply], **inputs: Any) -> Done:
    """The job of a pull request that is cancelled after one trial."""
    script = Cancelled(stage, model)
    done = stage.pull_request(pull, script, **{"during": script.cancel, "trials": "3", **inputs})
    assert done.code == 130, done.printed
    return done


def good(request: ApiRequest) -> Reply:
    """As `GOOD`, for any number of sessions."""
    return GOOD[any(message["role"] == "assistant" for message in request.messages)]


def bad(_: ApiRequest) -> Reply:
    return BAD[0]


def statuses(done: Done, stage: Stage) -> list[str]:
    return [run["status"] for run in batch(stage, done)["runs"]]


def test_trials_that_were_over_count_in_later_attempts_however_often_it_is_cancelled(tmp_path: Path) -> None:
    """Two attempts are cancelled, and the third counts what they had; nothing that was stored is replaced."""
    with Stage(tmp_path) as stage:
        stage.store(stage.tip)
        pull = stage.open_pull()
        run = stage.run_of(pull)
        done = cancelled(stage, pull, bad, run=run)
        assert done.outputs["verdict"] == "cancelled"
        assert statuses(done, stage) == ["completed", "interrupted"]
        assert "1 trial was over when the run was cancelled" in done.printed
        (first,) = stage.stored
        assert done.outputs["artifact-id"] == str(first.id)
        told = json.loads(first.files["zelda-ci.json"])
        assert (told["complete"], told["runAttempt"]) == (False, 1)
        # A second workflow has no comment for it.
        commented = stage.finished(pull, first)
        assert (commented.code, stage.bodies()) == (0, []), commented.printed
        assert "That run was cancelled" in commented.printed

        run.attempt = 2
        cancelled(stage, pull, good, run=run)
        assert [each.name for each in stage.stored] == ["zelda-results.job.1", "zelda-results.job.2"]
        assert stage.stored[0] == first

        run.attempt = 3
        done = stage.pull_request(pull, good, run=run)
        assert candidate_trials(stage, done) == 3
        assert "2 trials of 2 earlier runs of this pull request" in done.printed


def test_a_comment_on_an_older_commit_says_that_the_newer_was_cancelled(tmp_path: Path) -> None:
    with Stage(tmp_path) as stage:
        pull = stage.open_pull()
        run = stage.run_of(pull)
        stage.pull_request(pull, GOOD, run=run)
        (before,) = stage.bodies()
        # What the same commit has shown stays, whichever attempt or run is cancelled.
        run.attempt = 2
        cancelled(stage, pull, bad, run=run)
        cancelled(stage, pull, bad)
        assert stage.bodies() == [before]

        stage.push_to(pull, {".claude/rules/greet.md": "Say hello to all.\n"})
        run = stage.run_of(pull)
        cancelled(stage, pull, good, run=run)
        (body,) = stage.bodies()
        assert "cancelled before 1 of 1 suite was done" in body
        run.attempt = 2
        stage.pull_request(pull, good, run=run)
        (body,) = stage.bodies()
        assert "cancelled" not in body.split("\n")[2]


def test_a_comment_on_an_older_commit_says_that_the_newer_was_cancelled_before_anything_ran(tmp_path: Path) -> None:
    with Stage(tmp_path) as stage:
        pull = stage.open_pull()
        assert stage.pull_request(pull, GOOD).code == 0
        stage.push_to(pull)
        stage.github.script_failures([slow(300, on="GET */actions/runs/*")])

        def cancel(process: Process, _: ScriptedApi) -> None:
            wait_until(lambda: not stage.github.failures)
            os.kill(process.pid, signal.SIGINT)

        done = stage.pull_request(pull, during=cancel)
        assert (done.code, done.outputs["verdict"]) == (130, "cancelled"), done.printed
        assert "cancelled before there were results" in stage.bodies()[0]


def test_where_github_is_too_slow_everything_is_told_all_the_same_and_the_loss_named(tmp_path: Path) -> None:
    with Stage(tmp_path) as stage:
        pull = stage.open_pull()
        run = stage.run_of(pull)
        stage.github.script_failures([slow(300, on="POST */CreateArtifact")])
        done = cancelled(stage, pull, bad, run=run)
        assert "artifact-id" not in done.outputs
        assert "are not stored, and do not count later" in done.summary
        assert statuses(done, stage) == ["completed", "interrupted"]
        run.attempt = 2
        done = stage.pull_request(pull, GOOD, run=run)
        assert "This run was run before, and the results of its earlier attempts do not count" in done.printed


def test_a_run_that_is_killed_right_after_the_signal_has_told_its_results(tmp_path: Path) -> None:
    """Ten seconds after the first signal the runner kills: no upload then, but files, summary and outputs."""
    with Stage(tmp_path) as stage:
        stage.github.script_failures([slow(300, on="POST */CreateArtifact")])
        script = Cancelled(stage, bad)

        def kill(process: Process, api: ScriptedApi) -> None:
            script.cancel(process, api)
            wait_until(lambda: not stage.github.failures)
            os.kill(process.pid, signal.SIGTERM)
            os.kill(process.pid, signal.SIGKILL)

        done = stage.pull_request(stage.open_pull(), script, trials="3", during=kill)
        assert done.code == -signal.SIGKILL
        assert done.outputs["verdict"] == "cancelled"
        assert (stage.project.path / done.outputs["results-path"]).is_file()
        assert done.summary.count("### Zelda") == 1
        assert "| greeting |" in done.summary
        assert stage.stored == []


def test_pushes_and_forks_store_nothing_when_they_are_cancelled(tmp_path: Path) -> None:
    """Nothing of them would ever count: a baseline has to be complete, and a fork chooses what it stores."""
    with Stage(tmp_path) as stage:
        script = Cancelled(stage, good, trials=0)
        done = stage.push(script, during=script.cancel)
        assert done.code == 130, done.printed
        cancelled(stage, stage.open_pull(fork=True), good)
        assert stage.stored == []
