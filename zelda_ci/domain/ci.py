"""What a run in CI knows beside its results: where they came from, what they are compared with, where they are told."""

from enum import StrEnum

from pydantic import AwareDatetime

from zelda_ci.domain.base import Document, Record
from zelda_ci.domain.check import ContextReport
from zelda_ci.domain.comparison import AcceptedReason, Refusal


class Provenance(Document):
    """Origin of the results of an artifact; untrusted until it agrees with what GitHub says of its run."""

    repository: str
    """`owner/name`."""
    repository_id: int
    sha: str
    """The commit that was really tested: of a pull request, usually the merge commit."""
    head_sha: str
    """Head commit of the pull request; otherwise the same as `sha`."""
    base_sha: str | None = None
    """The commit that the results should be compared with; absent where there is none."""
    base_branch: str | None = None
    event: str
    run_id: int
    run_attempt: int = 1
    pull_request: int | None = None
    workflow: str | None = None
    """Path of the workflow's file; of a reusable workflow, the file that calls it. Absent where the runner does not
    say, as the id of the job."""
    job: str | None = None
    """Id of the job in its workflow; the jobs of a matrix share it."""
    artifact: str | None = None
    """Value of the input artifact-name or comment-id; the artifact's own name holds job and attempt, too."""
    folder: str | None = None
    """Folder of the project below the workspace; `.` for the workspace itself."""
    batch_id: str
    complete: bool = True
    """False where the run was cut short or not judged completely: such results are nobody's baseline."""
    created_at: AwareDatetime
    accepted: tuple[AcceptedReason, ...] = ()
    """Findings that would have turned the check red, had nobody with write access accepted them on the pull request."""
    refused: tuple[Refusal, ...] = ()
    """Settings files that Claude Code refuses and did not refuse on the base; and a context that is too large."""
    context_size: ContextReport | None = None
    """What steering takes of the context, where files that steer are changed."""


class PoolSummary(Record):
    """Size and age of a pool of stored trials."""

    trials: int
    per_suite: int
    """Most trials that any suite has."""
    runs: int
    """Invocations that made the trials."""
    newest_at: AwareDatetime
    oldest_at: AwareDatetime


class BaselineState(StrEnum):
    """State of the baseline: found, or the reason why there is none."""

    FOUND = "found"
    NONE_YET = "noneYet"
    """The base branch never stored one, or no ancestor of the wanted commit has one."""
    EXPIRED = "expired"
    NOT_PERMITTED = "notPermitted"
    """The token may not read artifacts."""
    INVALID = "invalid"
    """A baseline was found and could not be trusted or read."""
    UNREACHABLE = "unreachable"
    OFF = "off"
    """Nobody asked for a comparison, or the event has nothing to compare with."""


class BaselineOrigin(Record):
    """The baseline of a comparison, or plainly why there is none; a missing baseline is a normal state."""

    state: BaselineState
    sentence: str
    """Sentence for people: which baseline, or why none and what to do."""
    branch: str | None = None
    stands_for: str | None = None
    """The base branch of a pull request that has stored nothing, where `branch` is the one on which it is based."""
    workflow: str | None = None
    """Path of the workflow that stored it, where that is another one."""
    wanted: str | None = None
    """The commit whose results would fit best."""
    commit: str | None = None
    """The commit whose results were taken."""
    behind: int | None = None
    """Number of commits by which `commit` is behind `wanted`; absent where that is not known."""
    created_at: AwareDatetime | None = None
    pool: PoolSummary | None = None
    """Size and age of the pool, where stored trials of several runs are counted together."""
