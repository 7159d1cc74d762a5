"""A job of a GitHub workflow on one machine: real git, the real `zelda ci` process, the real Claude Code CLI.

Only the model's words and GitHub itself are played: by a scripted API and by a server that keeps to GitHub's own
description of its API.

    with Stage(tmp_path) as stage:
        stage.store(stage.tip, score=100)            # what main has stored
        pull = stage.open_pull()                     # a pull request, and its merge commit checked out at depth 1
        done = stage.pull_request(pull, GOOD)
        assert done.code == 0
"""

import itertools
import json
import os
import shutil
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.support import events, javascript_action, runner, warm
from tests.support.command import KEY, environment, run_cold, zelda
from tests.support.command import run as run_command
from tests.support.github_server import Artifact, Comment, GitHubServer, Pull, Run
from tests.support.github_server.world import archive_of
from tests.support.patience import PATIENCE
from tests.support.places import make_passable
from tests.support.projects import Project, folder, repository
from tests.support.runner import Command
from tests.support.scripted_api import Reply, Script, ScriptedApi, text, tool_call

GREETING = """\
description: A greeting is added.
prompt: Add a greeting.
metrics: { requirementFulfillment: false, toolUsage: false }
testCommand: test -f greeting.txt
"""
GOOD: list[Reply] = [tool_call("Bash", {"command": "echo hello > greeting.txt"}), text("Done.")]
BAD: list[Reply] = [text("I would rather not.")]
"""Without the greeting the suite's test fails."""

FILES: dict[str, str | bytes] = {"README.md": "# Shop\n", "zelda/test-greeting.yaml": GREETING}
OURS = {"add-mask", "group", "endgroup", "error", "warning", "notice"}
"""The commands that Zelda gives; any other was forged."""

NO_KEY = {"ANTHROPIC_API_KEY": None}


@dataclass
class Done:
    """A job that has ended, read as the runner reads it."""

    code: int
    printed: str
    outputs: dict[str, str]
    summary: str
    commands: list[Command] = field(default_factory=list)

    def told(self, severity: str) -> list[Command]:
        """The remarks of one severity."""
        return [command for command in self.commands if command.name == severity]


class Stage:
    """The job's machine and GitHub around it."""

    def __init__(self, tmp_path: Path, files: Mapping[str, str | bytes] = FILES, *, enterprise: bool = False) -> None:
        self.tmp_path = tmp_path
        self.upstream = repository(tmp_path / "upstream", files, name="shop")
        self.tip = self.upstream.git("rev-parse", "HEAD")
        self.project: Project = folder(tmp_path / "runner", name="work space")
        self.github = GitHubServer(enterprise=enterprise)
        self.github.repository.id, self.github.repository.full_name = events.REPOSITORY_ID, "octo/shop"
        self.fork = self.github.add_repository("mallory/shop", fork_of=self.github.repository)
        self.fork.id = events.FORK_ID
        self._numbers = itertools.count(1)
        self._placed: list[Artifact] = []

    def __enter__(self) -> Self:
        self.github.__enter__()
        self.github.repository.learn(self.upstream.path)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.github.__exit__(kind, error, trace)

    # --- what lies in the repository ---------------------------------------------------------------------------------

    def commit(self, files: Mapping[str, str | bytes] | None = None) -> str:
        """One more commit on main."""
        self.upstream.write(files or {"NEWS.md": f"{self.upstream.git('rev-list', '--count', 'HEAD')}\n"})
        self.tip = self.upstream.commit()
        self.github.repository.learn(self.upstream.path)
        return self.tip

    def open_pull(
        self,
        files: Mapping[str, str | bytes] | None = None,
        *,
        number: int = 7,
        fork: bool = False,
        base: str = "main",
    ) -> Pull:
        """A pull request on top of a branch, with its merge commit checked out as actions/checkout leaves it."""
        git = self.upstream.git
        tip = git("rev-parse", base)
        git("checkout", "-q", "-b", f"topic-{number}", base)
        self.upstream.write(files or {".claude/rules/greet.md": f"Say hello {number}.\n"})
        head = self.upstream.commit(f"topic {number}")
        git("checkout", "-q", "main")
        merge = git("commit-tree", f"{head}^{{tree}}", "-p", tip, "-p", head, "-m", f"Merge {head} into {tip}")
        git("update-ref", f"refs/pull/{number}/merge", merge)
        git("update-ref", f"refs/pull/{number}/head", head)
        git("branch", "-q", "-D", f"topic-{number}")
        self.github.repository.learn(self.upstream.path)
        source = self.fork if fork else None
        pull = self.github.repository.add_pull(
            number=number, head_sha=head, head="topic", base=base, head_repository=source, merge_commit_sha=merge
        )
        self.check_out(merge, f"refs/remotes/pull/{number}/merge")
        return pull

    def push_to(self, pull: Pull, files: Mapping[str, str | bytes] | None = None) -> None:
        """One more commit on a pull request, checked out as its merge commit; without files it changes none."""
        git = self.upstream.git
        git("checkout", "-q", "--detach", pull.head_sha)
        self.upstream.write(files or {})
        pull.head_sha = self.upstream.commit("one more")
        git("checkout", "-q", "main")
        parents = ("-p", pull.base_sha, "-p", pull.head_sha)
        pull.merge_commit_sha = git("commit-tree", f"{pull.head_sha}^{{tree}}", *parents, "-m", "Merge again")
        git("update-ref", f"refs/pull/{pull.number}/merge", pull.merge_commit_sha)
        git("update-ref", f"refs/pull/{pull.number}/head", pull.head_sha)
        self.github.repository.learn(self.upstream.path)
        self.check_out(pull.merge_commit_sha, f"refs/remotes/pull/{pull.number}/merge")

    def check_out(self, commit: str, ref: str) -> None:
        """What actions/checkout does: one commit, depth 1, detached."""
        git = self.project.git
        if not (self.project.path / ".git").exists():
            git("init", "-q", "-b", "main")
            git("remote", "add", "origin", f"file://{self.upstream.path}")
            self.upstream.git("config", "uploadpack.allowAnySHA1InWant", "true")
        git("fetch", "-q", "--no-tags", "--depth=1", "origin", f"+{commit}:{ref}")
        git("checkout", "-q", "--force", "--detach", ref)

    def store(self, commit: str, *, score: float = 100, **how: Any) -> Artifact:
        """Results of a commit as an earlier run of main stored them.

        `how` are fields of `Run`, or the run itself, or fields of the artifact; `told` is what the artifact says of
        itself beside the truth, and `content` its results.
        """
        content = how.pop("content", None) or results(score)
        of_artifact = {name: how.pop(name) for name in ("expired", "digest", "created_at") if name in how}
        pool = how.pop("pool", None)
        name, told = how.pop("name", "zelda-results.job.1"), how.pop("told", {})
        run: Run | None = how.pop("run", None)
        run = run or self.github.repository.add_run(commit, **{"branch": "main", "event": "push", **how})
        provenance = {
            "schemaVersion": 1,
            "repository": "octo/shop",
            "repositoryId": events.REPOSITORY_ID,
            "sha": commit,
            "headSha": commit,
            "event": run.event,
            "runId": run.id,
            "batchId": "earlier",
            "createdAt": datetime.now(UTC).isoformat(),
            "workflow": f".github/workflows/{run.workflow}",
            "job": "job",
            "artifact": "zelda-results",
            "folder": ".",
            **told,
        }
        members = {"zelda-ci.json": json.dumps(provenance).encode(), "zelda-results.json": content}
        members |= {"zelda-pool.json": pool} if pool else {}
        artifact = self.github.repository.add_artifact(name, members, run=run, **of_artifact)
        self._placed.append(artifact)
        return artifact

    # --- jobs --------------------------------------------------------------------------------------------------------

    def pull_request(self, pull: Pull, script: Script = (), *, run: Run | None = None, **more: Any) -> Done:
        """The job of a pull request."""
        event = events.pull_request(
            fork=pull.head_repository is self.fork, number=pull.number, base=pull.base_sha, head=pull.head_sha
        )
        event["pull_request"]["base"]["ref"] = pull.base_branch
        run = run or self.run_of(pull)
        sha = pull.merge_commit_sha or ""
        return self.job("pull_request", event, run, script, sha=sha, ref=f"refs/pull/{pull.number}/merge", **more)

    def run_of(self, pull: Pull, **how: Any) -> Run:
        """The run that GitHub starts for a pull request."""
        head = self.fork if pull.head_repository is self.fork else None
        return self.github.repository.add_run(
            pull.head_sha, **{"branch": "topic", "event": "pull_request", "head_repository": head, **how}
        )

    def branch(self, name: str, files: Mapping[str, str | bytes]) -> str:
        """A branch on top of main, with one commit."""
        git = self.upstream.git
        git("checkout", "-q", "-b", name)
        self.upstream.write(files)
        commit = self.upstream.commit(name)
        git("checkout", "-q", "main")
        self.github.repository.learn(self.upstream.path)
        return commit

    def push(self, script: Script = GOOD, *, before: str = events.BASE, run: Run | None = None, **more: Any) -> Done:
        """The job of a push to main."""
        self.check_out(self.tip, "refs/remotes/origin/main")
        run = run or self.github.repository.add_run(self.tip)
        event = events.push(before=before, after=self.tip)
        return self.job("push", event, run, script, sha=self.tip, ref="refs/heads/main", **more)

    def night(self, script: Script = GOOD, *, run: Run | None = None, **more: Any) -> Done:
        """The job of a scheduled run on main."""
        self.check_out(self.tip, "refs/remotes/origin/main")
        run = run or self.github.repository.add_run(self.tip, event="schedule")
        return self.job(
            "schedule", events.payload("schedule"), run, script, sha=self.tip, ref="refs/heads/main", **more
        )

    def finished(self, pull: Pull, artifact: Artifact, **inputs: Any) -> Done:
        """The job of a second workflow, after the one of a pull request has stored its results."""
        assert artifact.run
        fork = pull.head_repository is self.fork
        event = events.workflow_run(fork=fork, run_id=artifact.run.id, head=pull.head_sha)
        run = self.github.repository.add_run(self.tip, event="workflow_run", workflow="comment.yml")
        variables = {"ANTHROPIC_API_KEY": None}
        return self.job(
            "workflow_run",
            event,
            run,
            sha=self.tip,
            ref="refs/heads/main",
            variables=variables,
            mode="comment",
            **inputs,
        )

    def comment(self, pull: Pull, body: str, *, login: str = "maintainer", **inputs: Any) -> Done:
        """Somebody comments on a pull request, and the job that answers runs."""
        return self.answer(pull, self.github.repository.add_comment(pull.number, body, author=login), **inputs)

    def answer(self, pull: Pull, comment: Comment, *, said: str | None = None, **inputs: Any) -> Done:
        """The job that answers a comment, which has no checkout, no key, and may run a run again.

        `said` is what the comment said when it was sent; `changes` are other keys of the event.
        """
        empty = self.tmp_path / "empty"
        empty.mkdir(exist_ok=True)
        variables = {"GITHUB_WORKSPACE": str(empty), "ANTHROPIC_API_KEY": None}
        usual, self.github.permissions = self.github.permissions, {**self.github.permissions, "actions": "write"}
        try:
            return self._of_comment(pull, comment, said, variables=variables, **inputs)
        finally:
            self.github.permissions = usual

    def run_requested(self, pull: Pull, comment: Comment, script: Script = (), **inputs: Any) -> Done:
        """The job that runs what a comment asks for; what is checked out, the test decides."""
        return self._of_comment(pull, comment, None, script, mode="run", **inputs)

    def _of_comment(self, pull: Pull, comment: Comment, said: str | None, script: Script = (), **inputs: Any) -> Done:
        body = comment.body if said is None else said
        changes = inputs.pop("changes", {})
        event = events.issue_comment(body, comment=comment.id, login=comment.author, number=pull.number, **changes)
        state: dict[str, Any] = {"status": "in_progress", "conclusion": None, "workflow": "zelda-commands.yml"}
        run = self.github.repository.add_run(self.tip, event="issue_comment", **state)
        return self.job("issue_comment", event, run, script, sha=self.tip, ref="refs/heads/main", **inputs)

    def of_fork(self, pull: Pull, **how: Any) -> Artifact:
        """Results that the workflow of a pull request has stored."""
        told = {"headSha": pull.head_sha, "sha": pull.merge_commit_sha, "baseSha": self.tip, "pullRequest": pull.number}
        run = how.pop("run", None) or self.run_of(pull)
        return self.store(pull.head_sha, run=run, **{**how, "told": {**told, **how.get("told", {})}})

    def job(
        self, name: str, event: dict[str, Any], run: Run, script: Script = (), *, sha: str, ref: str, **inputs: Any
    ) -> Done:
        """Any job; `inputs` are the step's, and `during` is called with the process once it has started.

        With `cold` it has the job's variables from its start, where /proc shows them. `job_id` is its id in the
        workflow. `action` is the folder of an action in JavaScript, which is then the step in place of `zelda ci`.
        """
        job_id = inputs.pop("job_id", "job")
        action: Path | None = inputs.pop("action", None)
        during: Callable[[warm.Process, ScriptedApi], None] | None = inputs.pop("during", None)
        cold = inputs.pop("cold", False)
        variables = inputs.pop("variables", {})
        # What is not about plans of trials takes one, and stored results to compare with.
        inputs.setdefault("trials", "1")
        files = self.tmp_path / f"file commands {next(self._numbers)}"
        files.mkdir()
        (files / "event.json").write_text(json.dumps(event))
        with ScriptedApi(script) as api:
            environ = environment(self.project, api.url) | self._environment(name, event, run, files, job_id)
            environ |= {"GITHUB_SHA": sha, "GITHUB_REF": ref, "GITHUB_REF_NAME": ref.removeprefix("refs/heads/")}
            environ |= {"INPUT_" + key.replace("_", "-").upper(): str(value) for key, value in inputs.items()}
            environ = {key: value for key, value in (environ | variables).items() if value is not None}
            if action:
                environ = javascript_action.with_inputs(action, environ, self.github.token)
            if during:
                return self._read(*self._disturbed(environ, action, lambda process: during(process, api)), files)
            if action:
                ended = javascript_action.run(action, self.project.path, environ)
            else:
                ended = (run_cold if cold else run_command)(["ci"], self.project.path, environ, one_stream=True)
        return self._read(ended.returncode, ended.stdout, files)

    def _disturbed(
        self, environ: Mapping[str, str], action: Path | None, disturb: Callable[[Any], None]
    ) -> tuple[int, str]:
        process = (
            javascript_action.start(action, self.project.path, environ)
            if action
            else warm.start(["ci"], self.project.path, environ, new_session=True)
        )
        try:
            disturb(process)
            printed, _ = process.communicate(timeout=PATIENCE)
            return process.wait(), printed
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)

    def _environment(self, name: str, event: dict[str, Any], run: Run, files: Path, job_id: str) -> dict[str, str]:
        for each in ("output", "env", "path", "state", "step_summary"):
            (files / each).touch()
        return {
            **events.variables(name, event),
            **self.github.environment(run, job=job_id),
            "GITHUB_EVENT_NAME": name,
            "GITHUB_EVENT_PATH": str(files / "event.json"),
            "GITHUB_WORKSPACE": str(self.project.path),
            **{f"GITHUB_{each.upper()}": str(files / each) for each in ("output", "env", "path", "state")},
            "GITHUB_STEP_SUMMARY": str(files / "step_summary"),
        }

    def _read(self, code: int, printed: str, files: Path) -> Done:
        """What must be true of every job, whatever it is about."""
        commands = runner.commands(printed)
        assert {command.name for command in commands} <= OURS, printed
        assert "Traceback" not in printed, printed
        unmasked = "\n".join(line for line in printed.splitlines() if not line.startswith("::add-mask::"))
        summary = (files / "step_summary").read_bytes()
        for text_of in (unmasked, summary.decode(), (files / "output").read_text()):
            assert KEY not in text_of
            assert self.github.token not in text_of
        assert len(summary) < 1_048_576
        for severity in ("error", "warning", "notice"):
            assert len([command for command in commands if command.name == severity]) <= 10
        assert (files / "env").read_bytes() == (files / "path").read_bytes() == b""
        return Done(code, printed, runner.outputs((files / "output").read_text()), summary.decode(), commands)

    # --- what GitHub knows afterwards --------------------------------------------------------------------------------

    @property
    def stored(self) -> list[Artifact]:
        """Artifacts with results that the jobs on this stage have uploaded, oldest first."""
        return [each for each in self._uploaded if not each.name.endswith((".transcripts", ".report", ".html"))]

    @property
    def transcripts(self) -> list[Artifact]:
        """Artifacts with transcripts that they have uploaded, oldest first."""
        return [each for each in self._uploaded if each.name.endswith(".transcripts")]

    @property
    def reports(self) -> list[Artifact]:
        """Artifacts with the HTML report that they have uploaded, oldest first."""
        return [each for each in self._uploaded if each.name.endswith((".report", ".html"))]

    @property
    def _uploaded(self) -> list[Artifact]:
        return [each for each in self.github.repository.artifacts if each not in self._placed]

    def bodies(self, number: int = 7) -> list[str]:
        return self.github.repository.pull(number).bodies


def results(score: float, change: Callable[[dict[str, Any]], None] = lambda _: None) -> bytes:
    """A file of results of the suite `greeting` with this score of functional correctness, changed by `change`."""
    batch = json.loads(_template())
    for run in batch["runs"]:
        found = run["evaluations"]["functionalCorrectness"]
        found["score"] = score
        found["details"]["passed"] = score == 100
    change(batch)
    return json.dumps(batch).encode()


def replace(artifact: Artifact, name: str, content: bytes) -> None:
    """Give a stored file another content, as if the runs before had been others."""
    artifact.blob = archive_of({**artifact.files, name: content})
    artifact.digest = ""
    artifact.__post_init__()


@cache
def _template() -> bytes:
    """What a real run of the suite writes; one session per test process."""
    place = make_passable(prefix="zelda-template-")
    try:
        with ScriptedApi(GOOD) as api:
            done = zelda(repository(place, FILES), "run", "--json", api=api.url)
    finally:
        shutil.rmtree(place)
    assert done.returncode == 0, done.stderr
    return done.stdout.encode()
