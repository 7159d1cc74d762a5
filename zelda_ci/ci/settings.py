"""What the runner tells an action, read once: inputs, GITHUB_* variables and the event.

`make schemas` makes both action.yml, the table in docs/action.md and the inputs of zelda-sharded.yml from `Inputs`.
"""

import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal, LiteralString

from pydantic import AfterValidator, AliasPath, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from zelda_ci.config.document import problem_of
from zelda_ci.config.environment import EnvironmentSettings, find_credential, key_problem, read_environment
from zelda_ci.config.files import lies_in, listed
from zelda_ci.config.schema import CONFIG_FILE, kinds
from zelda_ci.config.source import shown
from zelda_ci.domain.base import Record, checked
from zelda_ci.domain.run import MAX_SHARDS, ShardOf, shard_of
from zelda_ci.errors import ConfigError
from zelda_ci.github.archives import artifact_name
from zelda_ci.github.kept_text import Comment
from zelda_ci.github.repository import Commit, Described, PullRequest, WorkflowRun
from zelda_ci.overrides import SOURCES, Overrides, read, value_of
from zelda_ci.redact import Redactor, Secret

DEFAULT_ARTIFACT = "zelda-results"
# Jobs that share a run have ids of their own. What they look for, and what their pull requests get, is that of one job.
SHARDED_JOB = "zelda-shards"
REQUIRED = ("GITHUB_EVENT_NAME", "GITHUB_REPOSITORY", "GITHUB_RUN_ID", "GITHUB_SHA", "GITHUB_WORKSPACE")


def _printable(pattern: str, words: LiteralString) -> AfterValidator:
    """Check of a text, which must match whole and is in words what its error calls it."""
    return checked("must be " + words, lambda it: it.isprintable() and re.fullmatch(pattern, it))


Label = Annotated[str, _printable(".{0,100}", "up to 100 printable characters")]
ArtifactName = Annotated[
    str, _printable(r'[^":<>|*?\\/]{1,128}', r'up to 128 printable characters without " : < > | * ? \ /')
]
WorkflowFile = Annotated[
    str, _printable(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}\.ya?ml", "the name of a file like zelda.yml, without folders")
]
PlanDigest = Annotated[str, _printable("[0-9a-f]{64}", "the output plan of the job with mode: plan")]
Branch = Annotated[
    str,
    BeforeValidator(lambda text: text.removeprefix("refs/heads/")),
    _printable(r"(?!-)(?!.*\.\.)[^\s~^:?*\[\\]{1,255}", "the name of a branch, such as main"),
]
Existing = Annotated[Path, checked("must exist in the workspace, and nothing there has that name", Path.exists)]
Folder = Annotated[
    Path, checked("must be a folder of the workspace (is there a checkout step before this one?)", Path.is_dir)
]
Configuration = Annotated[
    Path,
    checked(
        f"must be the path of a {CONFIG_FILE} that exists, or its folder",
        lambda it: it.is_dir() or (it.name == CONFIG_FILE and it.is_file()),
    ),
]
Replaceable = Annotated[
    Path,
    checked(
        "must name no folder and no file that git tracks, since it is overwritten",
        lambda it: not it.is_dir() and not (os.path.lexists(it) and listed(it.parent, "--", f":(literal){it.name}")),
    ),
]


def _read_shard(value: Any) -> Any:
    try:
        return value if isinstance(value, ShardOf | None) else shard_of(str(value))
    except ValueError:
        message = "must be a number and how many there are, such as 2/4, up to {most}"
        raise PydanticCustomError("setting", message, {"most": MAX_SHARDS}) from None


class Inputs(Record):
    """Inputs of the action, with hyphens in their names.

    The texts below each are its description, in Markdown with links as in docs/action.md.
    """

    model_config = ConfigDict(
        alias_generator=lambda name: name.replace("_", "-"), populate_by_name=True, arbitrary_types_allowed=True
    )

    suites: tuple[str, ...] = ()
    """Suites to run, by name or file, separated by commas, blanks or line breaks. Empty means all of them."""
    run_all_label: Label = "zelda-all"
    """The label of a pull request that makes all suites run."""
    config: Configuration | None = None
    """The project's `zelda.config.yaml` or its folder. Empty means that Zelda searches `working-directory` and the
    folders above it."""
    anthropic_api_key: Secret | None = None
    """Key for the sessions, and for the judge if no gateway is set. Needed to run suites. Pass a secret, or set the
    environment variable `ANTHROPIC_API_KEY`."""
    github_token: Secret | None = Field(None, json_schema_extra={"default": "${{ github.token }}"})
    """Reads stored baselines and writes the comment. The workflow's own token is enough, with the
    [permissions](#a-workflow) `contents: read`, `actions: read` and `pull-requests: write`."""
    portkey_api_key: Secret | None = None
    """Key of the Portkey gateway that the judge uses. Needs `gateway-url`, here or in the configuration."""
    jobs: int = Field(1, ge=1, le=64)
    """Sessions in parallel."""
    baseline_branch: Branch | None = None
    """The branch whose results are the baseline. Empty means the pull request's base, else the default branch."""
    baseline: Existing | None = Field(None, json_schema_extra={"default": "auto"})
    """What to compare with. `auto` takes the stored results of the commit that fits best, `none` compares with nothing,
    and anything else is the path of a file with results."""
    artifact_name: ArtifactName = ""
    """Name of the [artifact](#artifacts) with the results, before the number of the attempt. Empty means
    `zelda-results`, followed by `comment-id` where that is set, else by the job's id."""
    retention_days: int | None = Field(None, ge=1, le=400)
    """Days after which GitHub removes the artifacts, and with it the baseline, at most as many as the repository
    allows. Empty means 14 days for pull requests, and the repository's default for everything else."""
    comment: Literal["always", "changes", "failures", "off"] = "always"
    """When a pull request gets its comment: `always`; `changes` (something got better or worse, or the gate does not
    pass); `failures` (the gate does not pass); `off`."""
    comment_id: Label = ""
    """Keeps the comments and artifacts of [several jobs](#several-jobs) of one workflow apart, such as those of a
    matrix."""
    junit_path: Replaceable | None = None
    """Where to write the JUnit XML. Empty means `.zelda/ci/junit.xml`."""
    working_directory: Folder = Path()
    """The folder of the project in the workspace."""
    mode: Literal["auto", "run", "comment", "plan", "merge"] = "auto"
    """`auto` does what the event asks for; `run` also evaluates the commit of an event that Zelda does not know;
    `comment` reports the results of another workflow, in a workflow started by `workflow_run`. Of a run that several
    jobs [share](shards.md), `plan` says which suites each of them runs, and `merge` puts their parts together."""
    shards: int = Field(4, ge=1, le=MAX_SHARDS)
    """For `mode: plan`, the most jobs that share the run. There are never more than suites that have to run."""
    shard: Annotated[ShardOf | None, BeforeValidator(_read_shard)] = None
    """Which part of a [shared](shards.md) run this job is, such as `2/4`. It runs its suites and stores them for the
    job with `mode: merge`."""
    plan: PlanDigest = ""
    """The output `plan` of the job with `mode: plan`, for the jobs of the shards and `mode: merge`."""
    include_transcripts: bool = True
    """Whether a second [artifact](#artifacts) is stored, with transcripts, patches and logs (redacted), and images that
    tools returned (which cannot be)."""
    run_all: bool = False
    """Whether all suites run. Else a push to the base branch leaves out those of which trials with the same files and
    settings are [stored](#the-pool), and a pull request those that [cannot use what it changes](selection.md)."""
    nightly: Literal["watch", "quiet", "off"] = "watch"
    """What a scheduled run on the default branch does. `watch` runs every suite three times, keeps a history and tells
    of [drift](#nightly) in an issue, for which the job needs `issues: write`; `quiet` writes no issue; `off` makes it a
    run like any other."""
    untested: Literal["neutral", "fail"] = "neutral"
    """What the check of a pull request says that could not be tested, since a fork's or Dependabot's gets no secrets.
    `neutral` is green; `fail` is red with exit code 2, so that where the check is required nothing is merged
    untested."""
    replay: Existing | None = None
    """Folder with recorded sessions. Replaying them needs no key and costs nothing."""
    workflow: WorkflowFile = "zelda.yml"
    """For [commands in comments](conversation.md): the file of the workflow that evaluates pull requests, by its name
    in `.github/workflows`. `/zelda rerun` runs its newest run again."""


# Those of the step itself, and those that are keys of the configuration.
OWN: dict[str, FieldInfo] = {str(field.alias): field for field in Inputs.model_fields.values()}
INPUTS: Mapping[str, FieldInfo] = OWN | {it.input: key.field for key, it in SOURCES.values() if it.input}


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
    problem: ConfigError | None
    """What is wrong with inputs, which have their defaults here: nothing may run."""

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
        """Credentials that were passed in, by the variables for which they stand: what must not be shown."""
        return {name.upper(): value for name, value in self if isinstance(value, Secret)}


def read_action_settings(environ: Mapping[str, str], read_file: Callable[[Path], bytes]) -> ActionSettings:
    """Read everything once; the problem names all inputs that are wrong. Raises `ConfigError` where this is no step."""
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
        problems.append(f"The input {name}{f' is {shown(text)!a}, which' if text else ''} cannot be used: {why}.")

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
    hint = "Nothing was run. Correct the workflow."
    if "shard" in values or mode in {"plan", "merge"}:
        context = context.replace(job=SHARDED_JOB)
    # Jobs that comment apart store apart, too.
    named = f"{DEFAULT_ARTIFACT}-{texts['comment-id']}" if texts["comment-id"] else DEFAULT_ARTIFACT
    project = values.get("config", values.get("working_directory", context.workspace))
    return ActionSettings(
        **{"artifact_name": artifact_name(named), **values},
        project=project if project.is_dir() else project.parent,
        overrides=overrides,
        compare=texts["baseline"] != "none",
        context=context,
        event=event,
        has_credential=_has_credential(environ, values.get("anthropic_api_key")),
        # What is shown of a wrong input may be a key, and stands in the summary and in comments, too.
        problem=ConfigError(Redactor()("\n".join(problems)), hint=hint, code="INPUT_INVALID") if problems else None,
    )


def _run_of_workflow(environ: Mapping[str, str], read_file: Callable[[Path], bytes]) -> tuple[Event, Context]:
    given: dict[str, Any] = {name[7:].lower(): it for name, it in environ.items() if name.startswith("GITHUB_") and it}
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
        message = f"GITHUB_EVENT_PATH, or another variable of the runner, cannot be used: {why}."
        hint = "GITHUB_EVENT_PATH must be the event's payload."
        raise ConfigError(message, hint=hint, code="INPUT_INVALID") from None


def _has_credential(environ: Mapping[str, str], key: Secret | None) -> bool:
    """Whether a key was given, or a variable: in a pull request from a fork, the secrets behind these are empty."""
    with suppress(ConfigError):
        return find_credential(environ, {"ANTHROPIC_API_KEY": key} if key else {}) is not None
    return False


def environment(environ: Mapping[str, str], settings: ActionSettings) -> EnvironmentSettings:
    """What runs get to know of the environment: no input, and credentials that were passed (the token to be masked)."""
    variables = {name: value for name, value in environ.items() if not name.startswith("INPUT_")}
    return read_environment(variables, settings.credentials, trusts_files=True)
