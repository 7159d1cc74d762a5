"""What the runner tells an action: inputs, GITHUB_* variables and the event, read once."""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from zelda_ci.ci import inputs
from zelda_ci.ci.inputs import INPUTS, CommentWhen, Inputs, Mode, Nightly, Untested
from zelda_ci.config.environment import EnvironmentSettings, find_credential, key_problem, read_environment
from zelda_ci.domain.shards import ShardOf
from zelda_ci.errors import ConfigError
from zelda_ci.github.archives import artifact_name
from zelda_ci.overrides import Overrides, read
from zelda_ci.redact import Secret

REQUIRED = ("GITHUB_EVENT_NAME", "GITHUB_REPOSITORY", "GITHUB_RUN_ID", "GITHUB_SHA", "GITHUB_WORKSPACE")
MAX_EVENT_BYTES = 30_000_000
CONFIG_FILE = "zelda.config.yaml"
DEFAULT_ARTIFACT = "zelda-results"
# Jobs that share a run have ids of their own. What they look for, and what their pull requests get, is that of one job.
SHARDED_JOB = "zelda-shards"

Read = Callable[[Path], bytes]


@dataclass(frozen=True)
class Context:
    """The run of the workflow, as the runner describes it."""

    event_name: str
    repository: str
    """`owner/name`."""
    repository_id: int
    sha: str
    ref: str
    ref_name: str
    ref_type: str
    run_id: int
    run_attempt: int
    workflow: str
    """Path of the workflow's file, without repository and ref; its name where the runner is too old to tell. In a
    reusable workflow, the file that calls it: GitHub counts runs by that one."""
    job: str
    """Id of the job, in a reusable workflow within that one; the jobs of a matrix share it. Empty where nobody says."""
    actor: str
    server_url: str
    api_url: str
    graphql_url: str
    workspace: Path

    def url_of(self, run_id: int) -> str:
        """Where people look at a run of this repository."""
        return f"{self.server_url}/{self.repository}/actions/runs/{run_id}"


@dataclass(frozen=True)
class ActionSettings:
    """Everything that the runner says; absent where it was not given."""

    mode: Mode
    suites: tuple[str, ...]
    run_all_label: str
    project: Path
    """Folder where the search for the project's configuration begins."""
    anthropic_api_key: Secret | None
    portkey_api_key: Secret | None
    github_token: Secret | None
    overrides: Overrides
    """What the inputs say above the suites."""
    jobs: int
    baseline_branch: str | None
    baseline: Path | None
    """A file to compare with, in place of what GitHub stores."""
    compare: bool
    artifact_name: str
    retention_days: int | None
    comment: CommentWhen
    comment_id: str
    junit_path: Path | None
    include_transcripts: bool
    run_all: bool
    """Whether suites run that need not: after a push those stored already, for a pull request the unconcerned."""
    nightly: Nightly
    untested: Untested
    replay: Path | None
    context: Context
    event: Mapping[str, Any]
    workflow: str = "zelda.yml"
    """File of the workflow that evaluates pull requests, for commands in comments."""
    shards: int = 4
    """Most that a plan makes."""
    shard: ShardOf | None = None
    """The one that this job is; absent where it is none."""
    plan: str = ""
    """SHA-256 of the plan that a job before this one has made; empty where there is none."""
    has_credential: bool = False
    """Whether there is something to ask the models with, as an input or a variable."""

    @property
    def folder(self) -> str:
        """Of the project, below the workspace."""
        return Path(os.path.relpath(self.project, self.context.workspace)).as_posix()

    @property
    def is_sharded(self) -> bool:
        """Whether several jobs share the run, of which this is one."""
        return self.shard is not None or self.mode in {Mode.PLAN, Mode.MERGE}

    def secrets(self) -> tuple[Secret, ...]:
        """The credentials that were passed in."""
        return tuple(filter(None, (self.anthropic_api_key, self.portkey_api_key, self.github_token)))


def read_action_settings(environ: Mapping[str, str], read_file: Read) -> ActionSettings:
    """Read everything once.

    Raises:
        ConfigError: This is no step of a workflow, or values are wrong: all of them are named at once.
    """
    missing = [name for name in REQUIRED if not environ.get(name)]
    if missing:
        raise ConfigError(
            f"`zelda ci` is the step of a GitHub workflow, and this is none: {', '.join(missing)} not set.",
            hint="Here, `zelda run` runs suites and `zelda compare` compares them; `zelda ci --help` says what a "
            "workflow looks like and which variables stand in for one.",
            code="NOT_IN_ACTIONS",
        )
    step_inputs = Inputs(environ)
    step_inputs.problems += inputs.misspelt(environ)
    event = _event(environ, read_file, step_inputs.problems)
    context = _context(environ, event, step_inputs.problems)
    settings = _settings(step_inputs, context, event, environ)
    if settings.is_sharded:
        settings = replace(settings, context=replace(context, job=SHARDED_JOB))
    if settings.shard and settings.mode not in {Mode.AUTO, Mode.RUN}:
        step_inputs.reject("shard", f"the job with mode: {settings.mode} is no shard", str(settings.shard))
    if settings.plan and not settings.shard and settings.mode is not Mode.MERGE:
        # A matrix that hands on nothing must not make every job run everything.
        step_inputs.reject("plan", "it goes with the input shard, or with mode: merge", settings.plan)
    if step_inputs.problems:
        raise ConfigError(
            "\n".join(step_inputs.problems), hint="Nothing was run. Correct the workflow.", code="INPUT_INVALID"
        )
    return settings


def _settings(
    step_inputs: Inputs, context: Context, event: Mapping[str, Any], environ: Mapping[str, str]
) -> ActionSettings:
    value = step_inputs.value

    def place(name: str, base: Path, wrong: Callable[[Path], str]) -> Path | None:
        """The path that an input names, which must lie in the workspace, links followed."""
        if not (path_text := step_inputs.text(name)):
            return None
        path = base / path_text
        problem = wrong(path) if _is_inside(path, context.workspace) else "it must lie in the workspace"
        if problem:
            step_inputs.reject(name, problem, path_text)
        return path

    def missing(path: Path) -> str:
        return "" if path.exists() else "there is nothing of that name in the workspace"

    folder = place("working-directory", context.workspace, _no_folder) or context.workspace
    config = place("config", folder, _no_configuration) or folder
    baseline = step_inputs.text("baseline")
    overrides = read("input", step_inputs.text)
    step_inputs.problems += overrides.problems()
    key = _secret(step_inputs, environ, "anthropic-api-key", "ANTHROPIC_API_KEY")
    given = {name.replace("-", "_"): value(name) for name, row in INPUTS.items() if row.is_setting}
    # Jobs that comment apart store apart, too.
    named = f"{DEFAULT_ARTIFACT}-{given['comment_id']}" if given["comment_id"] else DEFAULT_ARTIFACT
    given["artifact_name"] = given["artifact_name"] or artifact_name(named)
    return ActionSettings(
        **given,
        project=config if config.is_dir() else config.parent,
        anthropic_api_key=key,
        portkey_api_key=_secret(step_inputs, environ, "portkey-api-key", "PORTKEY_API_KEY"),
        github_token=_secret(step_inputs, environ, "github-token", "GITHUB_TOKEN"),
        overrides=overrides,
        baseline=None if baseline in {"auto", "none"} else place("baseline", folder, missing),
        compare=baseline != "none",
        junit_path=place("junit-path", folder, lambda _: ""),
        replay=place("replay", folder, missing),
        context=context,
        event=event,
        has_credential=key is not None or _has_credential(environ),
    )


def _no_folder(path: Path) -> str:
    return "" if path.is_dir() else "it is no folder of the workspace (is there a checkout step before this one?)"


def _no_configuration(path: Path) -> str:
    is_one = path.is_dir() or (path.name == CONFIG_FILE and path.is_file())
    return "" if is_one else f"allowed are the path of a {CONFIG_FILE} that exists, and its folder"


def _is_inside(path: Path, workspace: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(workspace))


def _has_credential(environ: Mapping[str, str]) -> bool:
    """Besides the key; in a pull request from a fork, the secrets behind the variables are empty."""
    try:
        return find_credential(environ, {}) is not None
    except ConfigError:
        return False


def _secret(step_inputs: Inputs, environ: Mapping[str, str], name: str, fallback: str) -> Secret | None:
    value = step_inputs.text(name) or environ.get(fallback, "").strip()
    problem = key_problem(value) if value else None
    if problem:
        step_inputs.reject(name, f"it {problem}; store the secret again", "")
        return None
    return Secret(value) if value else None


def _event(environ: Mapping[str, str], read_file: Read, problems: list[str]) -> Mapping[str, Any]:
    path = environ.get("GITHUB_EVENT_PATH")
    if not path:
        return {}
    try:
        data = read_file(Path(path))
        event = json.loads(data) if len(data) <= MAX_EVENT_BYTES else None
    except (OSError, ValueError, RecursionError):
        event = None
    if not isinstance(event, dict):
        problems.append("GITHUB_EVENT_PATH does not name a readable JSON object.")
        return {}
    return event


def _context(environ: Mapping[str, str], event: Mapping[str, Any], problems: list[str]) -> Context:
    server = environ.get("GITHUB_SERVER_URL", "").rstrip("/") or "https://github.com"
    repository = environ["GITHUB_REPOSITORY"]
    if repository.count("/") != 1:
        problems.append("GITHUB_REPOSITORY is not of the form owner/name.")
    ref = environ.get("GITHUB_REF", "")
    workflow = environ.get("GITHUB_WORKFLOW_REF", "").partition("@")[0].removeprefix(f"{repository}/")
    repository_event = event.get("repository")
    repository_id = str(repository_event.get("id", "")) if isinstance(repository_event, dict) else ""
    return Context(
        event_name=environ["GITHUB_EVENT_NAME"],
        repository=repository,
        repository_id=_number(
            "GITHUB_REPOSITORY_ID", environ.get("GITHUB_REPOSITORY_ID") or repository_id or "0", problems
        ),
        sha=environ["GITHUB_SHA"],
        ref=ref,
        ref_name=environ.get("GITHUB_REF_NAME") or ref.removeprefix("refs/heads/").removeprefix("refs/tags/"),
        ref_type=environ.get("GITHUB_REF_TYPE") or ("tag" if ref.startswith("refs/tags/") else "branch"),
        run_id=_number("GITHUB_RUN_ID", environ["GITHUB_RUN_ID"], problems),
        run_attempt=_number("GITHUB_RUN_ATTEMPT", environ.get("GITHUB_RUN_ATTEMPT") or "1", problems),
        workflow=workflow or environ.get("GITHUB_WORKFLOW", ""),
        job=environ.get("GITHUB_JOB", ""),
        actor=environ.get("GITHUB_ACTOR", ""),
        server_url=server,
        api_url=environ.get("GITHUB_API_URL", "").rstrip("/") or "https://api.github.com",
        graphql_url=environ.get("GITHUB_GRAPHQL_URL", "").rstrip("/") or "https://api.github.com/graphql",
        workspace=Path(environ["GITHUB_WORKSPACE"]),
    )


def _number(name: str, value: str, problems: list[str]) -> int:
    if value.isascii() and value.isdigit():
        return int(value)
    problems.append(f"{name} is not a number.")
    return 0


def environment(environ: Mapping[str, str], settings: ActionSettings) -> EnvironmentSettings:
    """What runs get to know of the environment: all but the inputs, and the credentials in place of the variables.

    The token is there to be masked.
    """
    variables = {name: value for name, value in environ.items() if not name.startswith("INPUT_")}
    credentials = {
        "ANTHROPIC_API_KEY": settings.anthropic_api_key,
        "PORTKEY_API_KEY": settings.portkey_api_key,
        "GITHUB_TOKEN": settings.github_token,
    }
    passed = {name: secret for name, secret in credentials.items() if secret}
    return read_environment(variables, passed, trusts_files=True)
