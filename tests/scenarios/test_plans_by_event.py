"""How often an adaptive suite runs: once on the base branch, by the plan in a merge queue; docs/action.md says so."""

from pathlib import Path

from tests.integration.test_run_against import model
from tests.scenarios.stage import Done, Stage
from tests.scenarios.test_side_by_side import FILES, batch
from tests.support import events


def made(stage: Stage, done: Done) -> int:
    return len(batch(stage, done)["runs"])


def test_the_base_branch_collects_trials_one_by_one_and_a_merge_queue_runs_the_plan(tmp_path: Path) -> None:
    with Stage(tmp_path, FILES) as stage:
        pushed = stage.push(model, trials="adaptive")
        assert (pushed.code, made(stage, pushed)) == (0, 1), pushed.printed
        run = stage.github.repository.add_run(stage.tip, event="workflow_dispatch")
        event = events.payload("workflow_dispatch")
        asked = stage.job(
            "workflow_dispatch", event, run, model, sha=stage.tip, ref="refs/heads/main", trials="adaptive"
        )
        assert (asked.code, made(stage, asked)) == (0, 1), asked.printed
        night = stage.night(model, trials="adaptive")
        assert (night.code, made(stage, night)) == (0, 1), night.printed
        # What is stored of the same state is not run again.
        stage.commit()
        known = stage.push((), before=stage.upstream.git("rev-parse", "HEAD~1"), trials="adaptive")
        assert (known.code, made(stage, known)) == (0, 0), known.printed

        base, tip = stage.tip, stage.commit({".claude/rules/greet.md": "Say hello.\n"})
        stage.check_out(tip, "refs/remotes/origin/queue")
        branch = "gh-readonly-queue/main/pr-7"
        run = stage.github.repository.add_run(tip, branch=branch, event="merge_group")
        event = events.merge_group(base=base, head=tip)
        queue = stage.job(
            "merge_group", event, run, model, sha=tip, ref=f"refs/heads/{branch}", trials="adaptive", jobs="3"
        )
        assert (queue.code, made(stage, queue)) == (0, 3), queue.printed
