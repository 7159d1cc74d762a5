"""Several jobs share the run of a pull request: a plan, shards, and a merge that tells all as one job would have."""

import json
import re
import shutil
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.integration.test_run_against import GREETS, SILENT, SUITE, model
from tests.integration.test_shards import alike
from tests.scenarios.stage import GREETING, Done, Stage
from tests.scenarios.test_side_by_side import ONE_LOOK
from tests.support import warm
from tests.support.github_server import Artifact, Pull, Run
from tests.support.patience import PATIENCE
from tests.support.scripted_api import ApiRequest, Reply, ScriptedApi, hang, text, tool_call

NAMES = ("greeting", "parting", "thanks")
FILES: dict[str, str | bytes] = {
    "README.md": "# Shop\n",
    **{f"zelda/test-{name}.yaml": GREETING.replace("Add a greeting.", f"Add a {name}.") for name in NAMES},
}


def without(name: str) -> dict[str, str | bytes]:
    """The project without one of the suites."""
    return {file: text for file, text in FILES.items() if name not in file}


TWO = without("thanks")
LINKS = re.compile(r"(runs|artifacts|attempts)/\d+|run=\d+ attempt=\d+|[0-9a-f]{64}|\bid=[0-9a-f]{16}")
CONTEXT = re.compile(r"\nAlways in context: [^\n]*|<details><summary>Context of a session(?s:.)*?</details>")
MOMENTS = re.compile(r"\bat=\d+")
DURATIONS = re.compile(r"\b[\d.]+(?: ±[\d.]+)? ?(?:s|ms|min)\b(?: ±[\d.]+ s)?(?: \([+-][\d.]+%\))?")


def honest(request: ApiRequest) -> Reply:
    """Every session does what it was asked for, but for those of the suite `thanks`."""
    if any(message["role"] == "assistant" for message in request.messages):
        return text("Done.")
    is_thankless = "Add a thanks." in json.dumps(request.body)
    return tool_call("Bash", {"command": "true" if is_thankless else "echo hello > greeting.txt"})


def told(body: str) -> list[str]:
    """A comment without times and ids, and without the context: the job that merges has no key to count it with."""
    body = CONTEXT.sub("", body)
    return MOMENTS.sub("at=M", DURATIONS.sub("T", LINKS.sub(r"\1/N", alike(body)))).splitlines()


@dataclass
class Shared:
    """A run of a pull request that several jobs share, each on a machine of its own."""

    stage: Stage
    pull: Pull
    run: Run
    script: Any = honest
    inputs: tuple[tuple[str, str], ...] = ()
    plan: str = ""

    def job(self, name: str, **inputs: Any) -> Done:
        shutil.rmtree(self.stage.project.path / ".zelda", ignore_errors=True)
        more = {**dict(self.inputs), **({"plan": self.plan} if self.plan else {}), **inputs}
        return self.stage.pull_request(self.pull, self.script, run=self.run, job_id=name, **more)

    def planned(self, shards: str = "2") -> list[str]:
        done = self.job("plan", mode="plan", shards=shards)
        assert done.code == 0, done.printed
        self.plan = done.outputs["plan"]
        matrix: list[str] = json.loads(done.outputs["matrix"])
        assert done.outputs["shards"] == str(len(matrix))
        return matrix

    def shard(self, shard: str, **inputs: Any) -> Done:
        return self.job(f"leg {shard}", shard=shard, **inputs)

    def merge(self, **inputs: Any) -> Done:
        return self.job("merge", mode="merge", variables={"ANTHROPIC_API_KEY": None}, **inputs)


def shared(stage: Stage, *inputs: tuple[str, str], pull: Pull | None = None, script: Any = honest) -> Shared:
    pull = pull or stage.open_pull()
    return Shared(stage, pull, stage.run_of(pull), script, inputs)


def read(stage: Stage, done: Done, output: str) -> str:
    return (stage.project.path / done.outputs[output]).read_text()


def test_a_shared_pull_request_is_told_as_one_job_would_have_told_it(tmp_path: Path) -> None:
    with Stage(tmp_path, without("parting")) as stage:
        pull = stage.open_pull()
        whole = stage.pull_request(pull, honest)
        assert whole.code == 1, whole.printed
        expected = [alike(read(stage, whole, f"{name}-path")) for name in ("results", "junit")]
        (body,) = stage.bodies()
        stage.github.repository.artifacts.clear()
        pull.comments.clear()

        run = shared(stage, pull=pull)
        assert run.planned() == ["1/2", "2/2"]
        for shard in ("1/2", "2/2"):
            done = run.shard(shard)
            assert done.code == 0, done.printed
            assert not stage.bodies()
        done = run.merge()
        assert done.code == 1, done.printed
        assert [alike(read(stage, done, f"{name}-path")) for name in ("results", "junit")] == expected
        assert told(stage.bodies()[0]) == told(body)
        outputs = ("verdict", "score", "cost-usd")
        assert [whole.outputs[name] for name in outputs] == [done.outputs[name] for name in outputs]
        names = sorted(artifact.name for artifact in stage.github.repository.artifacts)
        kinds = ("1", "1.report.html", "1.transcripts", "plan.1", "shard-1-of-2.1", "shard-2-of-2.1")
        assert names == [f"{STEM}.{kind}" for kind in kinds]
        (transcripts,) = stage.transcripts
        suites = {name.split("/")[1].partition("-")[0] for name in transcripts.files if "/" in name}
        assert suites == {"greeting", "thanks"}


STEM = "zelda-results.zelda-shards"


def kept(stage: Stage, name: str) -> Artifact:
    (found,) = (artifact for artifact in stage.github.repository.artifacts if artifact.name == name)
    return found


Change = Callable[[dict[str, Any], dict[str, Any]], None]


def forge(stage: Stage, run: Run, change: Change) -> None:
    """Somebody else's part in the place of the second one."""
    was = kept(stage, f"{STEM}.shard-2-of-2.1")
    part, batch = (json.loads(was.files[each]) for each in ("zelda-shard.json", "zelda-results.json"))
    change(part, batch)
    files = {"zelda-shard.json": json.dumps(part).encode(), "zelda-results.json": json.dumps(batch).encode()}
    stage.github.repository.artifacts.remove(was)
    stage.github.repository.add_artifact(was.name, {**was.files, **files}, run=run)


def that_leads_elsewhere(_: dict[str, Any], batch: dict[str, Any]) -> None:
    for run in batch["runs"]:
        run["runId"] = "../../thanks-2026-01-01T00-00-00"


def with_a_gate_of_its_own(_: dict[str, Any], batch: dict[str, Any]) -> None:
    for run in batch["runs"]:
        run["config"]["gate"]["failOn"] = []


def with_suites_of_others(_: dict[str, Any], batch: dict[str, Any]) -> None:
    for run in batch["runs"]:
        run["suite"] = run["config"]["name"] = "greeting"


FORGERIES: list[tuple[Change, str]] = [
    (lambda part, _: part["plan"].update(zelda="0.0.1"), "is of another plan. Different version of Zelda: "),
    (lambda part, _: part.update(shard=1), "Shard 1 of 2 is there twice: "),
    (with_a_gate_of_its_own, "ran with other settings than planned"),
    (with_suites_of_others, "it holds greeting, which shard 2 was not to run"),
    (lambda _, batch: batch.update(runs=[]), "it holds no trial of parting"),
    (that_leads_elsewhere, "a run in it is called"),
]


def test_a_part_that_is_missing_doubled_or_foreign_is_named_and_never_green(tmp_path: Path) -> None:
    with Stage(tmp_path, TWO) as stage:
        run = shared(stage)
        run.planned()
        assert run.shard("1/2").code == 0
        none = run.merge()
        assert (none.code, none.outputs["verdict"]) == (2, "broken"), none.printed
        assert all("Shard 2 of 2 is missing (parting)" in text for text in (none.printed, none.summary))
        assert "Re-run failed jobs" in none.printed

        assert run.shard("2/2").code == 0
        honest_part = kept(stage, f"{STEM}.shard-2-of-2.1")
        for change, said in FORGERIES:
            forge(stage, run.run, change)
            done = run.merge()
            assert (done.code, said in done.printed) == (2, True), (said, done.printed)
            stage.github.repository.artifacts.remove(kept(stage, honest_part.name))
            stage.github.repository.artifacts.append(honest_part)
        assert [artifact.name for artifact in stage.stored if artifact.name == f"{STEM}.1"] == []
        assert not stage.bodies()

        # Twice under the same name, which the service itself would not take.
        stage.github.repository.add_artifact(honest_part.name, honest_part.files, run=run.run)
        done = run.merge()
        assert (done.code, "Shard 2 of 2 is there twice" in done.printed) == (2, True), done.printed
        stage.github.repository.artifacts.pop()

        # A plan whose hash nobody handed on is no plan, and a shard of another number is none of it.
        done = run.job("merge", mode="merge", plan="0" * 64)
        assert (done.code, "holds the plan with the hash 000000000000" in done.printed) == (2, True)
        done = run.job("leg 1/2", shard="1/2", plan="")
        assert (done.code, "was handed no plan" in done.printed) == (2, True)
        done = run.shard("1/3")
        assert done.code == 2
        assert "Different number of shards: 2 and 3. Give all jobs the same version, checkout, options" in done.printed

        done = run.merge()
        assert (done.code, len(stage.bodies())) == (0, 1), done.printed

        # An earlier comment is not left as if it were true.
        stage.github.repository.artifacts.remove(kept(stage, honest_part.name))
        run.run.attempt = 2
        assert run.merge().code == 2
        (body,) = stage.bodies()
        assert "could not do its work" in body
        assert "Shard 2 of 2 is missing" in body


ADAPTIVE: dict[str, str | bytes] = {
    "CLAUDE.md": GREETS,
    "zelda/test-greeting.yaml": SUITE,
    # Which greets whatever CLAUDE.md says.
    "zelda/test-parting.yaml": SUITE.replace("Greet.", "Always say hello and part."),
}


def test_shards_run_beside_the_base_that_the_plan_has_pinned(tmp_path: Path) -> None:
    """Each suite's looks are its shard's own, and what is stored meanwhile changes nothing."""
    with Stage(tmp_path, ADAPTIVE) as stage:
        assert stage.push(model, jobs="2", comment_id="all").code == 0
        (before,) = stage.stored
        pull = stage.open_pull({"CLAUDE.md": SILENT})
        run = shared(stage, ("trials", ONE_LOOK), ("jobs", "2"), ("comment-id", "all"), pull=pull, script=model)
        run.planned()
        # A run that overlaps ends now, and what it has measured of the base is newer.
        batch_id = json.loads(before.files["zelda-results.json"])["batchId"].encode()
        further = before.files["zelda-results.json"].replace(batch_id, b"2026-01-01T00-00-00-abcd")
        newer = stage.store(
            stage.tip, content=further, name="zelda-results-all.1", told={"artifact": "zelda-results-all"}
        )
        assert (run.shard("1/2").code, run.shard("2/2").code) == (0, 0)
        done = run.merge()
        batch = json.loads(read(stage, done, "results-path"))
        assert [(arms["suite"], arms["reason"], arms["head"], arms["base"]) for arms in batch["arms"]] == [
            ("greeting", "planEnded", 2, 2),
            ("parting", "asExpected", 1, 0),
        ]
        assert {each["source"]["commit"] for each in batch["baseRuns"]} == {stage.tip}
        compared = json.loads(read(stage, done, "comparison-path"))
        assert [suite["verdict"] for suite in compared["suites"]] == ["inconclusive", "unchanged"]

        # Run again as a whole, nothing is left to run: what the shards have shown counts.
        stage.github.repository.artifacts.remove(newer)
        run.run.attempt, run.plan, run.script = 2, "", []
        assert run.planned() == ["1/1"]
        assert run.shard("1/1").code == 0
        again = run.merge()
        assert (again.code, again.outputs["verdict"]) == (done.code, done.outputs["verdict"]), again.printed
        assert json.loads(read(stage, again, "results-path"))["runs"] == []


def test_nothing_to_run_is_no_shard_and_an_event_that_cannot_be_shared_is_refused(tmp_path: Path) -> None:
    with Stage(tmp_path, TWO) as stage:
        run = shared(stage, pull=stage.open_pull({"notes/today.txt": "Nothing.\n"}))
        done = run.job("plan", mode="plan")
        assert (done.code, done.outputs["shards"], done.outputs["matrix"]) == (0, "0", "[]"), done.printed
        assert "plan" not in done.outputs
        done = run.job("odd", mode="merge", shard="1/2")
        assert done.code == 2
        assert "The input shard is '1/2', which cannot be used: the job with mode: merge is no shard." in done.printed
        done = run.job("odd", plan="0" * 64)
        assert (done.code, "it goes with the input shard, or with mode: merge" in done.printed) == (2, True)
        done = run.job("odd", shard="5/2")
        assert (done.code, "such as 2/4" in done.printed) == (2, True)


def test_a_night_is_one_shard(tmp_path: Path) -> None:
    with Stage(tmp_path, TWO) as stage:
        run = stage.github.repository.add_run(stage.tip, event="schedule")
        plan = stage.night([], run=run, job_id="plan", mode="plan", shards="3").outputs
        assert plan["matrix"] == '["1/1"]'
        assert stage.night(honest, run=run, job_id="leg", shard="1/1", plan=plan["plan"]).code == 0
        done = stage.night([], run=run, job_id="merge", mode="merge", plan=plan["plan"])
        assert (done.code, "history.json" in stage.stored[-1].files) == (0, True), done.printed


def test_a_cancelled_shard_is_named_and_run_again_alone_and_its_trial_still_counts(tmp_path: Path) -> None:
    """Nobody cancels a shard that has shown something bad, and is rid of it; the other one's part counts as it is."""
    with Stage(tmp_path, TWO) as stage:
        run = shared(stage, ("trials", "2"))
        run.planned()
        assert run.shard("1/2").code == 0
        begun = threading.Event()

        def bad_then_stuck(request: ApiRequest) -> Reply:
            if any(message["role"] == "assistant" for message in request.messages):
                return text("Done.")
            if begun.is_set():
                second.set()
                return hang()
            begun.set()
            return tool_call("Bash", {"command": "true"})

        def cancel(process: warm.Process, _: ScriptedApi) -> None:
            assert second.wait(PATIENCE)
            process.send_signal(signal.SIGTERM)

        second = threading.Event()
        run.script = bad_then_stuck
        cancelled = run.shard("2/2", during=cancel)
        assert cancelled.code == 130, cancelled.printed
        assert "cancelled before its end: run it again" in cancelled.summary
        done = run.merge()
        assert done.code == 2, done.printed
        assert f"{STEM}.shard-2-of-2.1: shard 2 was cancelled before its end" in done.printed

        run.run.attempt, run.script = 2, honest
        again = run.shard("2/2")
        assert again.code == 0, again.printed
        assert "Of an earlier attempt of this shard 1 trial can be counted, too" in again.printed
        done = run.merge()
        assert done.code == 0, done.printed
        assert "shard-1-of-2.1: 2 trials, on" in done.printed
        assert "1 trial of 1 earlier run of this pull request" in done.printed
        (stored,) = (artifact for artifact in stage.stored if artifact.name == f"{STEM}.2")
        (kept_trial,) = json.loads(stored.files["zelda-pool.json"])["trials"]
        assert (kept_trial["suite"], kept_trial["evaluations"]["functionalCorrectness"]["score"]) == ("parting", 0)
