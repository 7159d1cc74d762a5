"""`zelda ci` for everything that is no pull request of this repository."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.scenarios.stage import BAD, GOOD, NO_KEY, Done, Stage
from tests.support import events
from tests.support.scripted_api import Script


def on_main(stage: Stage, name: str, event: dict[str, Any], script: Script, **inputs: Any) -> Done:
    """A job on the tip of main."""
    stage.check_out(stage.tip, "refs/remotes/origin/main")
    branch = "gh-readonly-queue/main/pr-7" if name == "merge_group" else "main"
    run = stage.github.repository.add_run(stage.tip, branch=branch, event=name)
    return stage.job(name, event, run, script, sha=stage.tip, ref=f"refs/heads/{branch}", **inputs)


def test_the_merge_queue_is_compared_with_what_it_stands_on_and_tells_nobody(tmp_path: Path) -> None:
    with Stage(tmp_path) as stage:
        base = stage.tip
        stage.store(base)
        stage.open_pull()
        stage.commit({".claude/rules/queue.md": "Be quick.\n"})
        done = on_main(stage, "merge_group", events.merge_group(base=base, head=stage.tip), BAD)
        assert done.code == 1, done.printed
        assert done.outputs["baseline-sha"] == base
        assert not stage.bodies()
        assert not stage.github.calls("POST /repos")


def test_a_branch_on_demand_is_told_to_its_pull_request(tmp_path: Path) -> None:
    with Stage(tmp_path) as stage:
        stage.store(stage.tip)
        pull = stage.open_pull()
        stage.check_out(pull.head_sha, "refs/remotes/origin/topic")
        run = stage.github.repository.add_run(pull.head_sha, branch="topic", event="workflow_dispatch")
        event = events.payload("workflow_dispatch") | {"ref": "refs/heads/topic"}
        done = stage.job("workflow_dispatch", event, run, GOOD, sha=pull.head_sha, ref="refs/heads/topic")
        assert done.code == 0, done.printed
        assert done.outputs["baseline-sha"] == stage.tip
        assert len(stage.bodies()) == 1


def test_a_fork_without_a_key_is_green_or_red_as_the_workflow_says_and_told_what_can_be_done(tmp_path: Path) -> None:
    with Stage(tmp_path) as stage:
        done = stage.pull_request(stage.open_pull(fork=True), variables=NO_KEY)
        assert done.code == 0, done.printed
        assert done.outputs == {"verdict": "skipped"}
        (notice,) = done.told("notice")
        assert "comes from a fork" in notice.data
        assert "mode: comment" in done.summary
        # It stores what its change takes of the context, and writes nowhere else.
        assert {it.method for it in stage.github.requests if it.path.startswith("/repos")} == {"GET"}
        assert not (stage.project.path / ".zelda/runs").exists()
        red = stage.pull_request(stage.open_pull(fork=True), variables=NO_KEY, untested="fail")
        assert (red.code, red.outputs) == (2, {"verdict": "skipped"})
        assert "comes from a fork" in red.told("error")[0].data


def test_the_base_is_never_tested_in_the_place_of_a_pull_request(tmp_path: Path) -> None:
    """What actions/checkout does by itself for pull_request_target, and for pull_request with a `ref` of the base."""
    with Stage(tmp_path) as stage:
        pull = stage.open_pull()
        stage.check_out(stage.tip, "refs/remotes/origin/main")
        event = events.pull_request(number=pull.number, base=pull.base_sha, head=pull.head_sha)
        for name in ("pull_request_target", "pull_request"):
            sha = stage.tip if name == "pull_request_target" else pull.merge_commit_sha or ""
            run = stage.github.repository.add_run(pull.head_sha, branch="topic", event=name)
            done = stage.job(name, event, run, sha=sha, ref="refs/heads/main")
            assert (done.code, done.outputs) == (2, {"verdict": "broken"}), done.printed
            assert f"The commit {stage.tip[:7]} is checked out, but pull request 7 asks for its head" in done.printed
            assert "nothing of the pull request would be tested" in done.printed
            assert "ref: refs/pull/" in done.summary


@pytest.mark.parametrize("beside", [False, True])
def test_a_pull_requests_code_in_a_folder_is_not_run_where_secrets_are(tmp_path: Path, *, beside: bool) -> None:
    with Stage(tmp_path) as stage:
        pull = stage.open_pull(fork=True)
        shutil.copytree(stage.project.path, tmp_path / "pull")
        if beside:
            stage.check_out(stage.tip, "refs/remotes/origin/main")
        else:
            shutil.rmtree(stage.project.path)
        shutil.copytree(tmp_path / "pull", stage.project.path / "pull")
        event = {"action": "created", "repository": events.REPOSITORY, "issue": {"number": pull.number}}
        run = stage.github.repository.add_run(stage.tip, event="issue_comment")
        inputs = {"mode": "run", "working_directory": "pull"}
        done = stage.job("issue_comment", event, run, (), sha=stage.tip, ref="refs/heads/main", **inputs)
        assert done.code == 2, done.printed
        assert "must not run with them" in done.told("error")[0].data


def test_what_cannot_be_run_is_never_green_and_costs_nothing(tmp_path: Path) -> None:
    """A key that is missing, a baseline without results, wrong inputs, broken suites, and a forgotten checkout."""

    def error_of(done: Done) -> str:
        assert (done.code, done.outputs) == (2, {"verdict": "broken"}), done.printed
        (error,) = done.told("error")
        return error.data

    with Stage(tmp_path) as stage:
        pull = stage.open_pull()
        missing = stage.pull_request(pull, variables=NO_KEY, fail_on="never")
        assert "anthropic-api-key is empty" in error_of(missing)
        assert "anthropic-api-key is empty" in missing.summary
        (stage.project.path / "main.json").write_text('{"runs": [{}]}')
        told = error_of(stage.pull_request(pull, (), baseline="main.json"))
        assert told.startswith("The input baseline cannot be used: ")
        assert "zelda-results.json" in told
        told = error_of(stage.push((), mode="dance", trials="none", fail_on="::error::"))
        assert len([line for line in told.splitlines() if line.startswith("The input")]) == 3
        stage.commit({"zelda/test-greeting.yaml": "promt: ::error::x ##[set-output name=verdict]improved\n"})
        assert "promt" in error_of(stage.push())
        shutil.rmtree(stage.project.path)
        stage.project.path.mkdir()
        run = stage.github.repository.add_run(stage.tip)
        told = error_of(stage.job("push", events.push(after=stage.tip), run, sha=stage.tip, ref="refs/heads/main"))
        assert "nothing in the workspace" in told
        assert "actions/checkout" in told
