"""What a run in CI knows beside its results: where they came from, what they are compared with, where they are told."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from pydantic import AwareDatetime

from zelda_ci.domain.base import Record
from zelda_ci.domain.comparison import AcceptedReason, Comparison, GateResult, NotLoaded
from zelda_ci.domain.nights import NightlyHistory
from zelda_ci.domain.outcome import Outcome, batch_outcome
from zelda_ci.domain.pool import PoolSummary
from zelda_ci.domain.run import BatchResult


class Provenance(Record):
    """Where the results of an artifact come from; untrusted until it agrees with what GitHub says of its run."""

    schema_version: Literal[1] = 1
    repository: str
    """`owner/name`."""
    repository_id: int
    sha: str
    """The commit that was really tested: of a pull request, usually the merge commit."""
    head_sha: str
    """Of a pull request, its head; else the same as `sha`."""
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
    """What the input artifact-name or comment-id says; the name of the artifact itself holds job and attempt, too."""
    folder: str | None = None
    """Of the project, below the workspace; `.` where it is the workspace."""
    batch_id: str
    complete: bool = True
    """False where the run was cut short or not judged completely: such results are nobody's baseline."""
    created_at: AwareDatetime
    accepted: tuple[AcceptedReason, ...] = ()
    """What would have turned the check red, had nobody with write access accepted it on the pull request."""
    refused: tuple[NotLoaded, ...] = ()
    """Settings files that Claude Code refuses and did not refuse on the base."""


class BaselineState(StrEnum):
    """Whether there is something to compare with, and if not, why not."""

    FOUND = "found"
    NONE_YET = "noneYet"
    """The base branch never stored one, or no ancestor of the wanted commit has one."""
    EXPIRED = "expired"
    NOT_PERMITTED = "notPermitted"
    """The token may not read artifacts."""
    INVALID = "invalid"
    """What was found could not be trusted or read."""
    UNREACHABLE = "unreachable"
    OFF = "off"
    """Nobody asked for a comparison, or the event has nothing to compare with."""


class BaselineOrigin(Record):
    """The baseline of a comparison, or plainly why there is none; a missing baseline is a normal state."""

    state: BaselineState
    sentence: str
    """For people: which baseline, or why none and what to do."""
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
    """How many commits `commit` is behind `wanted`; absent where that is not known."""
    created_at: AwareDatetime | None = None
    run_id: int | None = None
    artifact_id: int | None = None
    trials: int | None = None
    """Most trials that any suite of it has."""
    pool: PoolSummary | None = None
    """What the stored trials rest on, where those of several runs are counted together."""


@dataclass(frozen=True)
class Links:
    """Where a reader finds more; absent where it does not exist."""

    run: str | None = None
    artifact: str | None = None
    """With the results."""
    transcripts: str | None = None
    """The artifact with transcripts, patches and logs."""
    commit: str | None = None
    """Of the head, which is what a reviewer knows."""
    files: str | None = None
    """Of the head's files: a path below it, from the top of the repository, is a file as it was tested."""
    report: str | None = None
    """A page with everything; `builders.anchors` has its fragments."""


@dataclass(frozen=True)
class SteeringChange:
    """A file that steers Claude Code and that the pull request changes."""

    path: str
    """From the top of the repository."""
    line: int | None = None
    """The first that differs, as the head has it; absent where the file is gone, or its text is not known."""
    suites: frozenset[str] | None = None
    """That may feel it; absent: all."""
    is_gone: bool = False

    def concerns(self, suite: str) -> bool:
        """Whether a suite may feel it."""
        return self.suites is None or suite in self.suites


@dataclass(frozen=True)
class RuleChange:
    """A key by which results are judged, that the pull request changes and that counts after the merge only."""

    key: str
    place: str
    """File and line that give it."""
    loosens: bool = False
    """Whether less would be red with it."""


@dataclass(frozen=True)
class PullRequestChanges:
    """What a pull request changes of that by which it is tested."""

    steering: tuple[SteeringChange, ...] = ()
    """As far as it is known."""
    rules: tuple[RuleChange, ...] = ()
    removed_suites: tuple[str, ...] = ()
    """Files of suites that only the base has."""
    others: tuple[str, ...] = ()
    """Files that steer nothing, from the top of the repository, as far as they are known."""


NOTHING_CHANGED = PullRequestChanges()


@dataclass(frozen=True)
class CiReport:
    """Everything that the comment, the summary, the annotations and JUnit tell."""

    batch: BatchResult
    gate: GateResult
    """Of what `fail-on` asks for."""
    baseline: BaselineOrigin
    comparison: Comparison | None = None
    """Absent where there is no baseline."""
    baseline_batch: BatchResult | None = None
    links: Links = Links()
    title: str = "Zelda"
    """Heading of the comment; tells apart the comments of several jobs."""
    subject: str = ""
    """The project's name; empty where only the repository says it."""
    tested: str | None = None
    """The commit that was tested: of a pull request, usually the merge commit."""
    head: str | None = None
    """The commit that a reviewer knows; absent where it is the tested one."""
    changes: PullRequestChanges = NOTHING_CHANGED
    planned: tuple[str, ...] = ()
    """Suites that were to run; empty where nobody knows any more."""
    cancelled: bool = False
    """Whether the run was ended before its time, be it after its last session."""
    project: str = ""
    """The project's folder, from the top of the repository; empty at the top."""
    nights: NightlyHistory | None = None
    """Of a nightly run, what suites showed in this night and those before."""
    notes: tuple[str, ...] = ()
    """What happened on the way and readers should know, in sentences."""

    @property
    def outcome(self) -> Outcome:
        """How the check ends: exit code, headline, annotations, JUnit, HTML report and outputs follow this one value.

        A cancelled run's first, then a broken or incomplete run's, which must not look green, then the gate's.
        """
        ran = Outcome.INTERRUPTED if self.is_cut_short else batch_outcome(self.batch)
        if ran >= Outcome.INCOMPLETE:
            return ran
        if self.gate.exit_code:
            return Outcome.FAILED if self.gate.exit_code == Outcome.FAILED.exit_code else Outcome.INCOMPLETE
        return Outcome.MEASURED if ran is Outcome.MEASURED and self.comparison is None else Outcome.PASSED

    @property
    def is_red(self) -> bool:
        """Whether the check is."""
        return self.outcome.exit_code != 0

    @property
    def is_cut_short(self) -> bool:
        """Whether not all was done that was to be done, so that nothing can be claimed."""
        return self.cancelled or self.batch.interrupted
