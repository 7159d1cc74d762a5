"""`zelda ci` after a regression: which lines of the pull request did it, in the comment under the suite."""

from pathlib import Path

from tests.integration.test_run_against import FEW, NO_SKILLS, model
from tests.integration.test_why_command import CHANGED, FILES, compared
from tests.scenarios.stage import Stage
from tests.scenarios.test_shards import shared
from tests.support import events

ON_A_LAPTOP = "on a laptop: `zelda run --against main`, then `zelda why`"
BOUNDED = FEW.replace("}", ', "budgetUsd": 2}')


def test_the_comment_names_the_lines_that_did_it(tmp_path: Path) -> None:
    with Stage(tmp_path, FILES) as stage:
        pull = stage.open_pull({"CLAUDE.md": CHANGED})
        done = stage.pull_request(pull, model, trials=BOUNDED, jobs="4")
        assert done.code == 1, done.printed
        (body,) = stage.bodies()
        (box,) = (line for line in body.splitlines() if line.startswith("> ") and "greeting" in line)
        assert "Most likely `CLAUDE.md, line 6` (9" in box, body
        assert "With it as it was: 6 of 6." in box, body
        assert "The search for the cause cost" in body


def test_without_a_budget_only_the_label_pays(tmp_path: Path) -> None:
    with Stage(tmp_path, FILES) as stage:
        pull = stage.open_pull({"CLAUDE.md": CHANGED})
        run = stage.run_of(pull)
        done = stage.pull_request(pull, model, run=run, trials=FEW, jobs="4")
        assert done.code == 1, done.printed
        assert "the label zelda:why pays" in done.printed
        assert "Most likely" not in stage.bodies()[0]

        run.attempt = 2
        event = events.pull_request(number=pull.number, base=pull.base_sha, head=pull.head_sha)
        event["pull_request"]["labels"] = [{"name": "zelda:why"}]
        sha, ref = pull.merge_commit_sha or "", f"refs/pull/{pull.number}/merge"
        done = stage.job("pull_request", event, run, model, sha=sha, ref=ref, trials=FEW, jobs="4")
        assert done.code == 1, done.printed
        assert "Most likely `CLAUDE.md, line 6` (9" in stage.bodies()[0]


def test_where_one_part_changed_no_session_is_needed(tmp_path: Path) -> None:
    with Stage(tmp_path, FILES) as stage:
        pull = stage.open_pull({"CLAUDE.md": f"{FILES['CLAUDE.md']}{NO_SKILLS}\n"})
        done = stage.pull_request(pull, model, trials=FEW, jobs="4")
        assert done.code == 1, done.printed
        assert "Only `CLAUDE.md, line 8` changed of what this suite can feel" in stage.bodies()[0]


def test_the_job_that_merges_says_why_it_does_not_search(tmp_path: Path) -> None:
    with Stage(tmp_path, FILES) as stage:
        trials = (("trials", BOUNDED), ("jobs", "4"))
        run = shared(stage, *trials, pull=stage.open_pull({"CLAUDE.md": CHANGED}), script=model)
        (shard,) = run.planned()
        done = run.shard(shard)
        assert done.code == 0, done.printed
        done = run.merge()
        assert done.code == 1, done.printed
        assert f"was not searched: several jobs shared the run ({ON_A_LAPTOP})" in done.printed


def test_a_replay_says_why_it_does_not_search(tmp_path: Path) -> None:
    with Stage(tmp_path, FILES) as stage:
        pull = stage.open_pull({"CLAUDE.md": CHANGED})
        stage.upstream.git("checkout", "-q", "--detach", pull.head_sha)
        compared(stage.upstream, "--record", str(stage.project.path / ".zelda/recording"))
        done = stage.pull_request(pull, [], replay=".zelda/recording", trials=FEW, jobs="4")
        assert done.code == 1, done.printed
        note = f"made greeting worse was not searched: a replay has no other sessions ({ON_A_LAPTOP})."
        assert note in done.printed
        assert note in done.summary
