"""What the runner tells an action: inputs, GITHUB_* variables and the event, read once."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import AliasPath, Field, ValidationError

from zelda_ci.ci.inputs import INPUTS, OWN, Inputs
from zelda_ci.config.document import problem_of
from zelda_ci.config.environment import EnvironmentSettings, find_credential, key_problem, read_environment
from zelda_ci.config.files import lies_in
from zelda_ci.config.messages import shown
from zelda_ci.config.schema import kinds
from zelda_ci.domain.base import Record
from zelda_ci.errors import ConfigError
from zelda_ci.github.archives import artifact_name
from zelda_ci.github.kept_text import Comment
from zelda_ci.github.repository import Commit, Described, PullRequest, WorkflowRun
from zelda_ci.overrides import Overrides, read, value_of
from zelda_ci.redact import Secret

DEFAULT_ARTIFACT = "zelda-results"
# Jobs that share a run have ids of their own. What they look for, and what their pull requests get, is that of one job.
SHARDED_JOB = "zelda-shards"
REQUIRED = ("GITHUB_EVENT_NAME", "GITHUB_REPOSITORY", "GITHUB_RUN_ID", "GITHUB_SHA", "GITHUB_WORKSPACE")
SECRETS = tuple(name for name, field in Inputs.model_fields.items() if Secret in kinds(field.annotation))


class Context(Record):
    """The run of the workflow: the runner's variables GITHUB_EVENT_NAME and so on."""

    event_name: str
    repository: str = Field(pattern="^[^/]+/[^/]+$")
    """`owner/name`."""
    run_id: int
    sha: str
    workspace: Path
    repository_id: int
    default_branch: str
    ref_name: str = ""
    ref_type: str = "branch"
    run_attempt: int = 1
    workflow: str
    """Path of the workflow's file, without repository and ref; empty where nobody says. In a reusable workflow, the
    file that calls it: GitHub counts runs by that one."""
    job: str = ""
    """Id of the job, in a reusable workflow within that one; the jobs of a matrix share it. Empty where nobody says."""
    actor: str = ""
    server_url: str = "https://github.com"
    api_url: str = "https://api.github.com"
    graphql_url: str = "https://api.github.com/graphql"

    def url_of(self, run_id: int) -> str:
        """Where people look at a run of this repository."""
        return f"{self.server_url}/{self.repository}/actions/runs/{run_id}"


class MergeGroup(Described):
    head_ref: str
    base_ref: str
    base_sha: Commit


class Event(Described):
    """Payload of an event, as far as Zelda reads it."""

    action: str = ""
    before: str = ""
    after: str = ""
    deleted: bool = False
    pushed_commit: str = Field("", validation_alias=AliasPath("head_commit", "id"))
    """Commit to which a pushed tag leads, which may be an object of its own."""
    repository_id: int = Field(0, validation_alias=AliasPath("repository", "id"))
    default_branch: str = Field("", validation_alias=AliasPath("repository", "default_branch"))
    """Empty in some schedules."""
    pull_request: PullRequest | None = None
    merge_group: MergeGroup | None = None
    workflow_run: WorkflowRun | None = None
    comment: Comment | None = None
    issue_number: int = Field(0, validation_alias=AliasPath("issue", "number"))
    issue_pull_request: Any = Field(None, validation_alias=AliasPath("issue", "pull_request"))
    """Absent where a comment is on an issue that is none."""


class ActionSettings(Inputs):
    """Everything that the runner says; paths are whole, and secrets and the artifact's name what they stand for."""

    project: Path
    """Folder where the search for the project's configuration begins."""
    overrides: Overrides
    """What the inputs say above the suites."""
    compare: bool
    context: Context
    event: Event
    has_credential: bool
    """Whether there is something to ask the models with, as an input or a variable."""

    @property
    def folder(self) -> str:
        """Of the project, below the workspace."""
        return Path(os.path.relpath(self.project, self.context.workspace)).as_posix()

    @property
    def is_sharded(self) -> bool:
        """Whether several jobs share the run, of which this is one."""
        return self.shard is not None or self.mode in {"plan", "merge"}

    @property
    def credentials(self) -> dict[str, Secret]:
        """Credentials that were passed in, by the variables for which they stand."""
        return {name.upper(): secret for name in SECRETS if (secret := getattr(self, name))}

    @property
    def secrets(self) -> tuple[Secret, ...]:
        """What must not be shown."""
        return (*self.credentials.values(),)


def read_action_settings(environ: Mapping[str, str], read_file: Callable[[Path], bytes]) -> ActionSettings:
    """Read everything once.

    Raises:
        ConfigError: This is no step of a workflow, or values are wrong: all inputs that are wrong are named at once.
    """
    if missing := [name for name in REQUIRED if not environ.get(name)]:
        raise ConfigError(
            f"`zelda ci` is the step of a GitHub workflow, and this is none: {', '.join(missing)} not set.",
            hint="Here, `zelda run` runs suites and `zelda compare` compares them; `zelda ci --help` says what a "
            "workflow looks like and which variables stand in for one.",
            code="NOT_IN_ACTIONS",
        )
    event, context = _run_of_workflow(environ, read_file)
    texts = {name: environ.get(f"INPUT_{name.upper()}", "").strip() for name in INPUTS}
    # A gate that nobody heeds is worse than an error.
    problems = [
        f"The variable {wrong} is not read: hyphens stay in the names of inputs ({name})."
        for name in INPUTS
        if "-" in name and environ.get(wrong := f"INPUT_{name.replace('-', '_').upper()}")
    ]

    def reject(name: str, why: str, text: str = "") -> None:
        quoted = f" is {shown(text)!a}, which" if text else ""
        problems.append(f"The input {name}{quoted} cannot be used: {why}.")

    folder = context.workspace / texts["working-directory"]
    values: dict[str, Any] = {}
    for name, field in OWN.items():
        attribute, types, text = name.replace("-", "_"), kinds(field.annotation), texts[name]
        if Secret in types:
            text = text or environ.get(attribute.upper(), "").strip()
        if not text or (name == "baseline" and text in {"auto", "none"}):
            continue
        if Secret in types:
            value: Any = Secret(text)
            problem = f"{why}; store the secret again" if (why := key_problem(text)) else None
            text = ""
        elif Path in types:
            value = (context.workspace if name == "working-directory" else folder) / text
            is_inside = lies_in(value, context.workspace)
            problem = problem_of(Inputs, (name,), value) if is_inside else "must lie in the workspace"
        else:
            value = value_of(field, text)
            problem = problem_of(Inputs, (name,), value)
        if problem:
            reject(name, f"it {problem.removeprefix(f'{name} ')}", text)
        else:
            values[attribute] = value
    overrides = read("input", texts.get)
    problems += overrides.problems()
    mode = values.get("mode", "auto")
    if "shard" in values and mode not in {"auto", "run"}:
        reject("shard", f"the job with mode: {mode} is no shard", texts["shard"])
    if "plan" in values and not texts["shard"] and mode != "merge":
        # A matrix that hands on nothing must not make every job run everything.
        reject("plan", "it goes with the input shard, or with mode: merge", texts["plan"])
    if problems:
        raise ConfigError("\n".join(problems), hint="Nothing was run. Correct the workflow.", code="INPUT_INVALID")
    if "shard" in values or mode in {"plan", "merge"}:
        context = context.replace(job=SHARDED_JOB)
    # Jobs that comment apart store apart, too.
    named = f"{DEFAULT_ARTIFACT}-{texts['comment-id']}" if texts["comment-id"] else DEFAULT_ARTIFACT
    project = values.get("config", folder)
    return ActionSettings(
        **{"artifact_name": artifact_name(named), **values},
        project=project if project.is_dir() else project.parent,
        overrides=overrides,
        compare=texts["baseline"] != "none",
        context=context,
        event=event,
        has_credential=_has_credential(environ, values.get("anthropic_api_key")),
    )


def _run_of_workflow(environ: Mapping[str, str], read_file: Callable[[Path], bytes]) -> tuple[Event, Context]:
    given: dict[str, Any] = {
        name[7:].lower(): text for name, text in environ.items() if name.startswith("GITHUB_") and text
    }
    try:
        event = Event.model_validate_json(read_file(Path(given["event_path"]))) if "event_path" in given else Event()
        given["workflow"] = given.get("workflow_ref", "").partition("@")[0].removeprefix(f"{given['repository']}/")
        given.setdefault("repository_id", event.repository_id)
        own = given.get("ref_name") if given["event_name"] == "schedule" else None
        given["default_branch"] = event.default_branch or own or "main"
        return event, Context.model_validate(given)
    except (OSError, ValidationError) as error:
        places = error.errors() if isinstance(error, ValidationError) else ()
        why = ", ".join(".".join(map(str, each["loc"])) or each["msg"] for each in places) or str(error)
        raise ConfigError(
            f"GITHUB_EVENT_PATH, or another variable of the runner, cannot be used: {why}.",
            hint="GITHUB_EVENT_PATH must be the event's payload.",
            code="INPUT_INVALID",
        ) from None


def _has_credential(environ: Mapping[str, str], key: Secret | None) -> bool:
    """Whether a key was given, or a variable: in a pull request from a fork, the secrets behind these are empty."""
    try:
        return find_credential(environ, {"ANTHROPIC_API_KEY": key} if key else {}) is not None
    except ConfigError:
        return False


def environment(environ: Mapping[str, str], settings: ActionSettings) -> EnvironmentSettings:
    """What runs get to know of the environment: no input, and credentials that were passed (the token to be masked)."""
    variables = {name: value for name, value in environ.items() if not name.startswith("INPUT_")}
    return read_environment(variables, settings.credentials, trusts_files=True)
