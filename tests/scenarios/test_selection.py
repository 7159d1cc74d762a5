"""`zelda ci` for pull requests that few suites, or none, can feel."""

import json
from collections.abc import Mapping

import pytest

from tests.scenarios.stage import Done, Stage, replace
from tests.support import events
from tests.support.scripted_api import ApiRequest, Reply, text, tool_call
from tests.support.steered import head

SUITE = "prompt: Please {0}.\nmetrics: {{toolUsage: false, requirementFulfillment: false}}\n"
SKILLS = ("deploy", "release")
FILES: dict[str, str | bytes] = {
    "README.md": "# Shop\n",
    "CLAUDE.md": "Be kind.\n",
    "lib/a.py": "pass\n",
    **{f".claude/skills/{name}/SKILL.md": head(description=f"To {name}.") for name in SKILLS},
    **{f"zelda/test-{name}.yaml": SUITE.format(name) for name in ("deploy", "release", "talk")},
    "zelda/test-read.yaml": SUITE.format("read") + 'gate: {paths: ["data/**"]}\n',
}
DEPLOY = ".claude/skills/deploy/SKILL.md"


def answer(request: ApiRequest) -> Reply:
    said = json.dumps(request.body)
    called = [name for name in SKILLS if f"Please {name}" in said]
    if "tool_result" in said or "Please talk" in said:
        return text("Done.")
    return tool_call("Skill", {"skill": called[0]}) if called else tool_call("Bash", {"command": "cat lib/a.py"})


def pull_request(stage: Stage, files: Mapping[str, str | bytes], *, label: str | None = None, **inputs: str) -> Done:
    """The job of a pull request on the stage's last commit; with a label as the event tells it."""
    pull = stage.open_pull(files, number=len(stage.github.repository.pulls) + 7)
    event = events.pull_request(number=pull.number, base=pull.base_sha, head=pull.head_sha)
    event["pull_request"]["labels"] = [{"name": label}] if label else []
    run, ref = stage.run_of(pull), f"refs/pull/{pull.number}/merge"
    return stage.job("pull_request", event, run, answer, sha=pull.merge_commit_sha or "", ref=ref, jobs="4", **inputs)


def newest(stage: Stage) -> int:
    """The number of the last pull request."""
    return stage.github.repository.pulls[-1].number


def ran(stage: Stage) -> set[str]:
    """The suites that the newest artifact holds."""
    batch = json.loads(stage.stored[-1].files["zelda-results.json"])
    return {run["suite"] for run in batch["runs"]}


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """A repository whose four suites have run on main."""
    stage = Stage(tmp_path_factory.mktemp("stage"), FILES)
    stage.__enter__()
    done = stage.push(answer, jobs="4")
    assert done.code == 0, done.printed
    assert len(ran(stage)) == 4
    # Fewer trials than three would say nothing of what a suite can feel.
    batch = json.loads(stage.stored[-1].files["zelda-results.json"])
    batch["runs"] = [
        run | {"runId": run["runId"] + f"-{trial}" * (trial > 1), "trial": trial}
        for run in batch["runs"]
        for trial in (1, 2, 3)
    ]
    replace(stage.stored[-1], "zelda-results.json", json.dumps(batch).encode())
    return stage


def test_the_text_of_a_skill_runs_one_suite_of_four_until_it_is_taken_back(stage: Stage) -> None:
    done = pull_request(stage, {DEPLOY: head("Do it well.\n", description="To deploy.")}, trials="1")
    assert done.code == 0, done.printed
    assert ran(stage) == {"deploy"}
    sentence = "Not run: read, release, talk: none of 3 trials called the skill deploy or missed it"
    assert sentence in done.printed
    (body,) = stage.bodies(newest(stage))
    assert sentence in body
    assert "removed" not in body

    # The comment is replaced when nothing is left to run.
    number = newest(stage)
    git = stage.upstream.git
    tree = git("rev-parse", f"{stage.tip}^{{tree}}")
    reverted = git("commit-tree", tree, "-p", f"refs/pull/{number}/head", "-m", "Revert")
    merge = git("commit-tree", tree, "-p", stage.tip, "-p", reverted, "-m", "Merge")
    git("update-ref", f"refs/pull/{number}/merge", merge)
    stage.github.repository.learn(stage.upstream.path)
    pull = stage.github.repository.pull(number)
    pull.head_sha, pull.merge_commit_sha = reverted, merge
    stage.check_out(merge, f"refs/remotes/pull/{number}/merge")
    done = stage.pull_request(pull, answer)
    assert done.code == 0, done.printed
    (body,) = stage.bodies(number)
    assert "nothing here can change a result" in body


def test_what_steers_nothing_runs_nothing_is_green_and_harms_no_baseline(stage: Stage) -> None:
    before = len(stage.stored)
    done = pull_request(stage, {"README.md": "# Better\n"})
    assert done.code == 0, done.printed
    assert done.outputs == {"verdict": "skipped"}
    assert "nothing here can change a result" in done.summary
    assert "Not run: deploy, read, release, talk" in done.summary
    assert len(stage.stored) == before
    assert stage.bodies(newest(stage)) == []
    assert "deploy  session" not in done.printed


def test_the_label_runs_all(stage: Stage) -> None:
    done = pull_request(stage, {"README.md": "# All\n"}, label="all", run_all_label="all", mode="plan", shards="1")
    assert done.code == 0, done.printed
    assert "Shard 1 of 1: deploy, read, release, talk, about" in done.printed


def test_a_file_that_a_suite_names_in_gate_paths_runs_that_suite(stage: Stage) -> None:
    done = pull_request(stage, {"data/prices.csv": "1\n"}, trials="1")
    assert done.code == 0, done.printed
    assert ran(stage) == {"read"}
    assert "Plan: 1 session" in done.printed
    assert "Not run: deploy, release, talk" in stage.bodies(newest(stage))[0]


def test_names_of_files_forge_nothing(stage: Stage) -> None:
    name = ".claude/rules/a\n::error::forged <b>@octocat</b> `x`\x1b[31m.md"
    done = pull_request(stage, {name: head("Greet.\n", paths="['*.never']"), "b\udcff.md": "x\n"})
    assert done.code == 0, done.printed
    assert done.outputs == {"verdict": "skipped"}
    assert "<b>" not in done.summary
    assert "\x1b" not in done.summary + done.printed
    assert "none of 3 trials touched a file that" in done.summary
