"""The action's inputs, each with type, limits, default and description.

`make schemas` makes both action.yml, the table in docs/action.md and the inputs of zelda-sharded.yml from them.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, LiteralString

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from zelda_ci.config.files import listed
from zelda_ci.config.schema import CONFIG_FILE
from zelda_ci.domain.base import Record, checked
from zelda_ci.domain.run import MAX_SHARDS, ShardOf, shard_of
from zelda_ci.overrides import SOURCES
from zelda_ci.redact import Secret

CommentWhen = Literal["always", "changes", "failures", "off"]


def _printable(pattern: str, words: LiteralString) -> AfterValidator:
    """Check of a text, which must match whole and is in words what its error calls it."""
    return checked("must be " + words, lambda it: it.isprintable() and re.fullmatch(pattern, it))


Label = Annotated[str, _printable(".{0,100}", "up to 100 printable characters")]
ArtifactName = Annotated[
    str, _printable(r'[^":<>|*?\\/]{1,128}', r'up to 128 printable characters without " : < > | * ? \ /')
]
WorkflowFile = Annotated[
    str,
    _printable(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}\.ya?ml", "the name of a file like zelda.yml, without folders"),
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
    comment: CommentWhen = "always"
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
OWN: Mapping[str, FieldInfo] = {str(field.alias): field for field in Inputs.model_fields.values()}
INPUTS: Mapping[str, FieldInfo] = {
    **OWN,
    **{sources.input: key.field for key, sources in SOURCES.values() if sources.input},
}
