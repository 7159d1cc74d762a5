"""Several jobs share the run of a pull request: a plan, shards, and a merge that tells all as one job would have."""

import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.integration.test_shards import alike
from tests.scenarios.stage import GREETING, Done, Stage
from tests.support.github_server import Pull, Run
from tests.support.scripted_api import ApiRequest, Reply, text, tool_call

NAMES = ("greeting", "parting", "thanks")
FILES: dict[str, str | bytes] = {
    "README.md": "# Shop\n",
    **{f"zelda/test-{name}.yaml": GREETING.replace("Add a greeting.", f"Add a {name}.") for name in NAMES},
}
LINKS = re.compile(r"(runs|artifacts|attempts)/\d+|run=\d+ attempt=\d+|[0-9a-f]{64}|\b\d+ KB\b")
DURATIONS = re.compile(r"\b[\d.]+(?: ±[\d.]+)? ?(?:s|ms|min)\b(?: ±[\d.]+ s)?(?: \([+-][\d.]+%\))?")


def honest(request: ApiRequest) -> Reply:
    """Every session does what it was asked for, but for those of the suite `thanks`."""
    if any(message["role"] == "assistant" for message in request.messages):
        return text("Done.")
    is_thankless = "Add a thanks." in json.dumps(request.body)
    return tool_call("Bash", {"command": "true" if is_thankless else "echo hello > greeting.txt"})


def told(body: str) -> list[str]:
    """A comment without times and ids."""
    return DURATIONS.sub("T", LINKS.sub(r"\1/N", alike(body))).splitlines()


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
    with Stage(tmp_path, FILES) as stage:
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
        assert {name: whole.outputs[name] for name in ("verdict", "score", "cost-usd")} == {
            name: done.outputs[name] for name in ("verdict", "score", "cost-usd")
        }
        names = sorted(artifact.name for artifact in stage.github.repository.artifacts)
        parts = ["zelda-results.plan", "zelda-results.shard-1-of-2", "zelda-results.shard-2-of-2"]
        assert names == [
            "zelda-results",
            *parts[:1],
            "zelda-results.report.html",
            *parts[1:],
            "zelda-results.transcripts",
        ]
        (transcripts,) = stage.transcripts
        assert {name.split("/")[1].partition("-")[0] for name in transcripts.files if "/" in name} == set(NAMES)
