"""`zelda ci` on pull requests with adaptive trials: the base runs in the same job, where it is needed."""

import json
from pathlib import Path
from typing import Any

from tests.integration.test_run_against import FEW, GREETS, SILENT, SUITE, cost_of, greets_nobody, model
from tests.scenarios.stage import Done, Stage

FILES: dict[str, str | bytes] = {"CLAUDE.md": GREETS, "zelda/test-greeting.yaml": SUITE}

ONE_LOOK = '{"first": 1, "looks": [2]}'
"""Enough for the base to run, and for no proof."""


def comparison(stage: Stage, done: Done) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((stage.project.path / done.outputs["comparison-path"]).read_bytes())
    return found


def batch(stage: Stage, done: Done) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((stage.project.path / done.outputs["results-path"]).read_bytes())
    return found


def test_a_base_that_cannot_be_had_leaves_the_stored_baseline_and_a_sentence(tmp_path: Path) -> None:
    with Stage(tmp_path, FILES) as stage:
        pull = stage.open_pull({"CLAUDE.md": GREETS + "Be kind.\n"})
        stage.upstream.git("config", "uploadpack.allowFilter", "true")
        # What decides over rights is there, the files of the base are not, and nobody can be asked.
        stage.project.git("fetch", "-q", "--depth=1", "--filter=blob:none", "origin", stage.tip)
        stage.project.git("remote", "set-url", "origin", f"file://{tmp_path}/nowhere")
        done = stage.pull_request(pull, model, trials="adaptive")
        assert done.code == 0, done.printed
        assert len(batch(stage, done)["runs"]) == 1
        assert f"The base commit {stage.tip[:7]} could not be had" in done.printed
        assert "othing ran side by side with the base" in stage.bodies()[0], stage.bodies()[0]
        assert "nothing to compare with yet" in stage.bodies()[0]


def test_a_second_attempt_goes_on_where_the_first_ended(tmp_path: Path) -> None:
    """The trials of both sides add up, and once all is proven nothing runs any more, whatever it would show."""
    with Stage(tmp_path, FILES) as stage:
        pull = stage.open_pull({"CLAUDE.md": SILENT})
        run = stage.run_of(pull)
        done = stage.pull_request(pull, model, run=run, trials='{"first": 2, "looks": [6], "budgetUsd": 0.004}')
        assert done.code == 2, done.printed
        before = batch(stage, done)
        assert (len(before["runs"]), len(before["baseRuns"])) == (2, 0)
        assert sum(map(cost_of, before["runs"])) <= 0.004
        (arms,) = before["arms"]
        assert (arms["reason"], arms["unpaid"] > 0) == ("budget", True)
        assert comparison(stage, done)["suites"][0]["verdict"] == "inconclusive"
        assert "the budget ended" in stage.bodies()[0]

        run.attempt = 2
        done = stage.pull_request(pull, model, run=run, trials=FEW, jobs="4")
        assert done.code == 1, done.printed
        found = batch(stage, done)
        assert (len(found["runs"]), len(found["baseRuns"])) == (2, 4)
        (suite,) = comparison(stage, done)["suites"]
        assert (suite["verdict"], suite["sources"]["head"], suite["sources"]["base"]) == ("regressed", 4, 4)
        assert "2 trials of 1 earlier run of this pull request" in done.printed

        run.attempt = 3
        # No reply is scripted: any session would fail.
        done = stage.pull_request(pull, [], run=run, trials=FEW)
        assert (done.code, done.outputs["verdict"]) == (1, "regressed"), done.printed
        found = batch(stage, done)
        assert (found["runs"], found["baseRuns"]) == ([], [])
        assert "4 trials of 2 earlier runs of this pull request" in done.printed
        (title,) = (line for line in stage.bodies()[0].splitlines() if line.startswith("### "))
        assert "worse in 1 of 1 suite" in title, title
        assert "4 sessions per suite here, 4 on the base, side by side" in stage.bodies()[0]


def test_stored_trials_of_the_base_say_what_to_expect_and_what_a_trial_costs_and_are_named(tmp_path: Path) -> None:
    with Stage(tmp_path, FILES) as stage:
        assert stage.push(model).code == 0
        done = stage.pull_request(stage.open_pull(), model, trials=FEW, jobs="2")
        assert done.code == 0, done.printed
        (suite,) = comparison(stage, done)["suites"]
        assert (suite["verdict"], suite["sources"]["stored"], suite["sources"]["base"]) == ("unchanged", 1, 0)
        (body,) = stage.bodies()
        assert "1 trial from 1 run, newest just stored" in body
        assert "2 sessions per suite here, all as expected; main was not needed." in body
        assert "Compared with" not in body
        assert "by 1 stored trial" in done.printed


def test_a_drift_that_no_version_shows_blames_nobody(tmp_path: Path) -> None:
    """Neither compared with stored trials, nor by what fails in each trial: the base, run today, fails as well."""
    with Stage(tmp_path, FILES) as stage:
        assert stage.push(model).code == 0
        pull = stage.open_pull()
        run = stage.run_of(pull)
        done = stage.pull_request(pull, greets_nobody, run=run, trials=ONE_LOOK)
        assert done.code == 0, done.printed
        (suite,) = comparison(stage, done)["suites"]
        assert (suite["verdict"], suite["sources"]["stored"], suite["sources"]["base"]) == ("unchanged", 1, 2)
        assert (done.outputs["verdict"], done.outputs["regressions"]) == ("unchanged", "0")
        assert "not counted: greeting: " in done.printed
        (title,) = (line for line in stage.bodies()[0].splitlines() if line.startswith("### "))
        assert "fails on the base, too" in title
        assert "Fails, and is no reason to be red" in stage.bodies()[0]

        # Nothing is left to run, and what ran before says the same.
        run.attempt = 2
        again = stage.pull_request(pull, [], run=run, trials=ONE_LOOK)
        assert again.code == 0, again.printed
        assert "fails on the base, too" in again.summary

        # Where no base ran beside it, one trial against a stored one proves nothing.
        done = stage.pull_request(stage.open_pull(number=8), greets_nobody)
        assert done.code == 0, done.printed
        assert "not proven to be worse than on the base" in stage.bodies(8)[0]
