"""What goes wrong with GitHub costs no results, and the check ends as the gate says."""

import json
import os
import signal
from pathlib import Path

import pytest

from tests.scenarios.stage import BAD, FILES, GOOD, GREETING, NO_KEY, Stage
from tests.support.command import after, gone, processes
from tests.support.github_server import answered
from tests.support.scripted_api import ScriptedApi
from tests.support.warm import Process
from zelda_ci.pipeline.fingerprints import IMAGE


def test_a_token_that_may_not_do_something_costs_that_and_nothing_else(tmp_path: Path) -> None:
    with Stage(tmp_path) as stage:
        stage.store(stage.tip)
        stage.github.permissions["pull_requests"] = "read"
        done = stage.pull_request(stage.open_pull(), BAD)
        assert done.code == 1, done.printed
        (notice,) = done.told("notice")
        assert "pull-requests: write" in notice.data
        assert "worse in 1 of 1 suite" in done.summary
        assert "The pull request was not told" in done.summary
        assert "comment-url" not in done.outputs

        # One that may not read artifacts costs the comparison, and no room for the report costs the report.
        stage.github.permissions |= {"pull_requests": "write", "actions": "none"}
        stage.github.service.no_room_for = {"text/html"}
        done = stage.pull_request(stage.open_pull(number=8), GOOD)
        assert done.code == 0, done.printed
        assert "the token may not read artifacts" in stage.bodies(8)[0]
        assert "report-artifact-id" not in done.outputs
        assert (len(stage.stored), len(stage.transcripts), len(stage.reports)) == (2, 2, 1)
        assert "The HTML report could not be stored" in done.printed

        # One that is not valid is named as the cause.
        stage.github.service.no_room_for = set()
        done = stage.pull_request(stage.open_pull(number=9), GOOD, github_token="ghs_fakeAndNobodys")
        assert done.code == 0, done.printed
        assert "no baseline: the token is wrong" in done.printed
        (warning,) = done.told("warning")
        assert "The token is missing, wrong or no longer valid." in warning.data


def test_a_locked_conversation_is_named_and_no_permission_advised(tmp_path: Path) -> None:
    with Stage(tmp_path) as stage:
        why = {"message": "Unable to create comment because issue is locked."}
        stage.github.script_failures([answered(403, why, on="POST */comments")])
        done = stage.pull_request(stage.open_pull(), GOOD)
        assert done.code == 0, done.printed
        (warning,) = done.told("warning")
        assert "issue is locked" in warning.data
        assert "pull-requests: write" not in done.printed


def test_a_comment_does_not_outlive_a_commit_that_cannot_be_run(tmp_path: Path) -> None:
    with Stage(tmp_path) as stage:
        pull = stage.open_pull()
        assert stage.pull_request(pull, GOOD).code == 0
        (before,) = stage.bodies()
        stage.push_to(pull, {"zelda/test-greeting.yaml": "promt: Add a greeting.\n"})
        assert stage.pull_request(pull, GOOD).code == 2
        (after_it,) = stage.bodies()
        assert "could not do its work" in after_it
        assert "promt is not a known key" in after_it
        assert before.split("\n")[2] not in after_it

        # Nor does it outlive a workflow that cannot be used.
        stage.push_to(pull)
        assert stage.pull_request(pull, GOOD, fail_on="maybe").code == 2
        assert "The input fail-on cannot be used" in stage.bodies()[0]

        # It is made for nothing else: the check is red, and says why.
        assert stage.pull_request(stage.open_pull({"zelda/test-greeting.yaml": "promt: x\n"}, number=8)).code == 2
        assert stage.bodies(8) == []


def test_what_the_runners_own_token_may_not_is_no_matter_of_permissions(tmp_path: Path) -> None:
    with Stage(tmp_path) as stage:
        stage.github.script_failures([answered(403, on="POST */CreateArtifact")])
        done = stage.pull_request(stage.open_pull(), GOOD)
        assert done.code == 0, done.printed
        assert "no permission of the job" in done.told("warning")[0].data
        assert "`permissions`" not in done.printed


def test_a_comment_does_not_outlive_a_commit_of_which_nothing_is_run(tmp_path: Path) -> None:
    with Stage(tmp_path) as stage:
        pull = stage.open_pull()
        assert stage.pull_request(pull, GOOD).code == 0
        stage.push_to(pull)
        stage.check_out(stage.tip, "refs/remotes/origin/main")
        done = stage.pull_request(pull)
        assert done.code == 2, done.printed
        assert "nothing of the pull request would be tested" in stage.bodies()[0]

        stage.push_to(pull)
        assert stage.pull_request(pull, variables={**NO_KEY, "GITHUB_ACTOR": "dependabot[bot]"}).code == 0
        (body,) = stage.bodies()
        assert "this pull request gets no secrets" in body
        assert "would be tested" not in body


@pytest.mark.parametrize("why", ["skipped", "broken", "another commit"])
def test_files_of_an_earlier_run_are_not_left_for_one_that_has_none(tmp_path: Path, why: str) -> None:
    """A self-hosted runner keeps them, and a step behind Zelda's may upload the folder."""
    with Stage(tmp_path) as stage:
        old = stage.project.results / "ci/zelda-results.json"
        old.parent.mkdir(parents=True)
        old.touch()
        pull = stage.open_pull({"zelda/test-greeting.yaml" if why == "broken" else "NEWS.md": "promt: x\n"})
        if why == "another commit":
            stage.check_out(stage.tip, "refs/remotes/origin/main")
        variables = {**NO_KEY, "GITHUB_ACTOR": "dependabot[bot]"} if why == "skipped" else {}
        # What the workflow names is read, and stays as long as it may be.
        done = stage.pull_request(pull, variables=variables, baseline=".zelda/ci/zelda-results.json")
        assert old.exists()
        done = stage.pull_request(pull, variables=variables)
        assert done.outputs["verdict"] == ("skipped" if why == "skipped" else "broken"), done.printed
        assert not old.exists()


def test_github_enterprise_server_has_no_such_artifacts_and_everything_else(tmp_path: Path) -> None:
    with Stage(tmp_path, enterprise=True) as stage:
        stage.store(stage.tip, digest=None)
        done = stage.pull_request(stage.open_pull(), BAD)
        assert done.code == 1, done.printed
        assert done.outputs["baseline-sha"] == stage.tip
        assert "artifact-id" not in done.outputs
        assert "upload-artifact" in done.told("notice")[0].data
        assert len(stage.bodies()) == 1
        folder = (stage.project.path / done.outputs["results-path"]).parent
        assert json.loads((folder / "zelda-ci.json").read_bytes())["headSha"]


def test_results_that_cannot_be_written_are_in_the_summary_all_the_same(tmp_path: Path) -> None:
    with Stage(tmp_path) as stage:

        def obstruct(_: Process, api: ScriptedApi) -> None:
            after(lambda: bool(api.requests))
            (stage.project.results / "ci/zelda-results.json").mkdir(parents=True)

        done = stage.pull_request(stage.open_pull(), GOOD, during=obstruct)
        assert done.code == 2, done.printed
        assert done.outputs["verdict"] == "broken"
        assert "| greeting |" in done.summary
        assert "could not do its work" in done.summary


def test_a_run_that_is_cancelled_in_its_tests_ends_them(tmp_path: Path) -> None:
    suite = GREETING.replace("test -f greeting.txt", "sleep 300")
    with Stage(tmp_path, FILES | {"zelda/test-greeting.yaml": suite}) as stage:

        def cancel(process: Process, _: ScriptedApi) -> None:
            after(lambda: any("sleep 300" in each for each in processes(stage.project)))
            os.kill(process.pid, signal.SIGINT)

        done = stage.push(GOOD, during=cancel)
        assert done.code == 130, done.printed
        assert done.outputs["verdict"] == "cancelled"
        assert gone(stage.project)
        assert stage.stored == []


def test_a_subscription_runs_suites_and_a_check_that_fails_ends_the_step_before_they_cost(tmp_path: Path) -> None:
    """The check asks the model with the credential that sessions use; nothing is left of it in the repository's job."""
    checked = {
        "ANTHROPIC_API_KEY": None,
        "CLAUDE_CODE_OAUTH_TOKEN": "fake-oauth-token-0123456789",
        "ZELDA_NO_CHECK": "",
    }
    with Stage(tmp_path) as stage:
        done = stage.push(GOOD, variables=checked)
        assert done.code == 0, done.printed
        assert "before any session: testCommand ended with exit code 1" in done.printed
        stage.commit({"zelda/test-greeting.yaml": GREETING.replace("test -f", "no-such-tool -f")})
        refused = stage.push([], variables={**checked, IMAGE: "1"})
        assert refused.code == 2
        assert "zelda/test-greeting.yaml:4: testCommand `no-such-tool -f greeting.txt` cannot be run" in refused.printed
        assert "The container action has no no-such-tool: use zelda-ci/zelda-ci/runner" in refused.printed
        assert refused.outputs["verdict"] == "broken"
