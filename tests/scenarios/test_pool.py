"""Stored trials of many runs on GitHub: what fills the pool, what is compared with it, and what never enters it."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.scenarios.stage import BAD, GOOD, Done, Stage
from tests.support.github_server import Artifact
from zelda_ci.domain.run import Pool
from zelda_ci.storage import codec


def pool_in(artifact: Artifact) -> Pool:
    return codec.decode(Pool, artifact.files["zelda-pool.json"], "zelda-pool.json")


def trials_in(artifact: Artifact) -> int:
    return len(pool_in(artifact).trials) + len(json.loads(artifact.files["zelda-results.json"])["runs"])


def candidate_trials(stage: Stage, done: Done) -> int:
    comparison = json.loads((stage.project.path / done.outputs["comparison-path"]).read_bytes())
    (suite,) = comparison["suites"]
    count: int = suite["candidate"]["valid"]
    return count


def test_running_again_adds_trials_so_that_chance_turns_nothing_green(tmp_path: Path) -> None:
    with Stage(tmp_path) as stage:
        stage.store(stage.tip)
        pull = stage.open_pull()
        run = stage.run_of(pull)
        done = stage.pull_request(pull, BAD, run=run)
        assert done.code == 1, done.printed
        assert candidate_trials(stage, done) == 1

        run.attempt = 2
        done = stage.pull_request(pull, GOOD, run=run)
        assert done.code == 1, done.printed
        assert candidate_trials(stage, done) == 2
        assert "1 trial of 1 earlier run of this pull request" in done.printed
        assert "running again adds trials and replaces none" in done.summary

        # Another rule is another state, which has trials of its own.
        stage.push_to(pull, {".claude/rules/greet.md": "Say hello, always.\n"})
        done = stage.pull_request(pull, GOOD)
        assert done.code == 0, done.printed
        assert candidate_trials(stage, done) == 1
        assert "earlier run" not in done.printed


SHOUT = """\
prompt: Shout.
metrics: { requirementFulfillment: false, toolUsage: false }
testCommand: test -f greeting.txt
"""


def test_pushes_run_what_is_new_to_the_pool_and_pull_requests_are_compared_with_it(tmp_path: Path) -> None:
    with Stage(tmp_path) as stage:
        stage.push(GOOD)
        first = stage.tip
        stage.commit({"src/main.py": "print()\n"})
        # No reply is scripted: any session would fail.
        done = stage.push((), before=first)
        assert done.code == 0, done.printed
        assert done.outputs["verdict"] == "passed"
        assert "Not run, since trials of the same files and settings are stored" in done.summary
        assert "greeting (1 stored trial)" in done.summary
        stored = stage.stored[-1]
        assert json.loads(stored.files["zelda-ci.json"])["complete"] is True
        assert (json.loads(stored.files["zelda-results.json"])["runs"], trials_in(stored)) == ([], 1)

        # Whoever wants all run adds to the pool.
        done = stage.push(GOOD, before=first, run_all="true")
        assert done.code == 0, done.printed
        assert [trials_in(artifact) for artifact in stage.stored] == [1, 1, 2]

        # A suite that is new runs alone; the other one is still in the pool.
        second = stage.tip
        stage.commit({"zelda/test-shout.yaml": SHOUT})
        done = stage.push(GOOD, before=second)
        assert done.code == 0, done.printed
        assert "1 suite" in done.summary
        stored = stage.stored[-1]
        assert [run["suite"] for run in json.loads(stored.files["zelda-results.json"])["runs"]] == ["shout"]
        assert {run.suite for run in pool_in(stored).trials} == {"greeting"}
        assert set(pool_in(stored).suites) == {"greeting", "shout"}

        # What a pull request breaks is seen, although the last push has not run it.
        done = stage.pull_request(stage.open_pull(), BAD, suites="greeting")
        assert done.code == 1, done.printed
        assert done.outputs["baseline-sha"] == stage.tip
        assert (done.outputs["verdict"], done.outputs["regressions"]) == ("regressed", "1")
        comparison = json.loads((stage.project.path / done.outputs["comparison-path"]).read_bytes())
        # The other one is of other code.
        assert [suite["baseline"]["valid"] for suite in comparison["suites"]] == [1]
        # What nobody compares with after the merge is not kept for long.
        push, pull = (artifact.expires_at - datetime.now(UTC) for artifact in stage.stored[-2:])
        assert pull < timedelta(days=15) < push
