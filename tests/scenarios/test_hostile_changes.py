"""Pull requests whose authors would like their own regression not to be seen."""

import re
from pathlib import Path

from tests.integration.test_run_against import GREETS, SILENT, SUITE, model
from tests.scenarios.stage import Stage
from tests.scenarios.test_side_by_side import FILES, batch
from tests.support.scripted_api import ApiRequest, Reply, text, tool_call
from tests.support.steered import head

# What must pass is red without any base.
MUST_PASS = SUITE.replace("acceptanceCriteria", "mustPass")


def test_a_budget_for_not_one_session_is_red_and_runs_nothing(tmp_path: Path) -> None:
    with Stage(tmp_path, FILES) as stage:
        assert stage.push(model).code == 0
        pull = stage.open_pull({"CLAUDE.md": SILENT})
        done = stage.pull_request(pull, model, trials='{"budgetUsd": 0.000001}')
        assert done.code == 2, done.printed
        assert batch(stage, done)["runs"] == []


def test_fewer_trials_than_the_base_has_are_not_taken_from_the_pull_request(tmp_path: Path) -> None:
    suite = "zelda/test-greeting.yaml"
    with Stage(tmp_path, {**FILES, suite: SUITE + "trials: 2\n"}) as stage:
        pull = stage.open_pull({"CLAUDE.md": SILENT, suite: SUITE + "trials: 1\n"})
        done = stage.pull_request(pull, model, trials="")
        assert f"what the pull request says was not taken: trials ({suite}:4)" in done.printed
        assert len(batch(stage, done)["runs"]) == 2


def test_suites_that_are_deleted_are_named_whether_anything_runs_or_not(tmp_path: Path) -> None:
    other = {"zelda/other/test-other.yaml": SUITE.replace("Greet.", "Greet now.")}
    with Stage(tmp_path, {**FILES, **other}) as stage:
        (stage.upstream.path / "zelda/other/test-other.yaml").unlink()
        pull = stage.open_pull({"CLAUDE.md": GREETS + "Be kind.\n"})
        done = stage.pull_request(pull, model)
        told = (
            "The pull request removes suites, and nothing tests any more what they tested: zelda/other/test-other.yaml"
        )
        assert done.code == 0, done.printed
        assert told in done.printed
        for each in (done.summary, stage.bodies()[0]):
            assert "### Zelda: 1 of 1 suite passes, nothing to compare with yet, 1 removed\n" in each
            assert "This pull request removes the suite `zelda/other/test-other.yaml`." in each

        (stage.upstream.path / "zelda/other/test-other.yaml").unlink()
        pull = stage.open_pull({"README.md": "# Better\n"}, number=8)
        done = stage.pull_request(pull, ())
        assert done.outputs == {"verdict": "skipped"}, done.printed
        assert told in done.printed
        assert "test-other.yaml" in done.summary


def test_how_results_are_judged_is_the_bases_until_the_merge_and_told(tmp_path: Path) -> None:
    """No pull request loosens the gate that it has to pass, and a new suite brings its own."""
    with Stage(tmp_path / "stage", {**FILES, "zelda/test-greeting.yaml": MUST_PASS}) as stage:
        lenient = MUST_PASS + "gate: {failOn: [], paths: [src/**]}\nundecided: ignore\n"
        changes: dict[str, str | bytes] = {
            "CLAUDE.md": SILENT,
            "zelda/test-greeting.yaml": lenient,
            "zelda/test-new.yaml": re.sub("mustPass: .*", "testCommand: 'true'", lenient),
        }
        done = stage.pull_request(stage.open_pull(changes), model)
        assert done.code == 1, done.printed
        told = "counts once it is merged: undecided (zelda/test-greeting.yaml:5), gate.failOn"
        assert told in done.printed
        body = stage.bodies()[0]
        assert "gate loosened" in body.splitlines()[2]
        assert "This pull request loosens `undecided` (zelda/test-greeting.yaml:5), loosens `gate.failOn`" in body
        gates = {run["suite"]: run["config"]["gate"]["failOn"] for run in batch(stage, done)["runs"]}
        assert gates == {"greeting": ["regression", "evaluation"], "new": []}


DEPLOY = ".claude/skills/deploy/SKILL.md"


def test_a_change_that_takes_back_what_the_base_did_since_its_last_results_runs(tmp_path: Path) -> None:
    """Compared with the commit that has results, nothing has changed."""
    old = head("Do it.\n", description="To deploy.")
    files = {DEPLOY: old, "zelda/test-deploy.yaml": "prompt: Please deploy.\nmetrics: {toolUsage: false}\n"}

    def deploys(request: ApiRequest) -> Reply:
        has_called = any(message["role"] == "assistant" for message in request.messages)
        return text("Done.") if has_called else tool_call("Skill", {"skill": "deploy"})

    with Stage(tmp_path, files) as stage:
        assert stage.push(deploys).code == 0
        stage.commit({DEPLOY: head("Do it well.\n", description="To deploy.")})
        done = stage.pull_request(stage.open_pull({DEPLOY: old}), deploys)
        assert done.code == 0, done.printed
        assert f"Run: deploy: {DEPLOY} changed, and a trial called the skill deploy" in done.printed
        assert len(batch(stage, done)["runs"]) == 1
