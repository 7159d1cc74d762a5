"""Two sides side by side: where each comes from, what changed, how sure that is, and what the gate makes of it."""

from enum import StrEnum
from typing import Literal

from zelda_ci.domain.base import Document, Moment, Record
from zelda_ci.domain.check import ContextReport
from zelda_ci.domain.details import CriterionJudgement
from zelda_ci.domain.measures import Measure
from zelda_ci.domain.session import SessionStatus
from zelda_ci.domain.trials import DoneReason
from zelda_ci.redact import SafeText


class Verdict(StrEnum):
    """Verdict of a comparison on one measure or criterion."""

    REGRESSED = "regressed"
    CHANGED = "changed"
    """Beyond the threshold, but one trial on a side proves nothing: "changed, not proven" in reports."""
    IMPROVED = "improved"
    UNCHANGED = "unchanged"
    INCONCLUSIVE = "inconclusive"
    NEW = "new"
    REMOVED = "removed"


class TrialStatistics(Record):
    """One number over the trials that have it; pass rates are in percent, one value of 0 or 100 per trial."""

    trials: int
    mean: float
    minimum: float
    maximum: float
    deviation: float | None = None
    """Sample standard deviation; absent with one trial."""


class Trials(Record):
    """Runs of one suite on one side, by what became of them."""

    run_ids: tuple[str, ...]
    valid: int
    """Runs that count. A session that ended at a limit of the suite does: that is how it went."""
    invalid: int = 0
    """Runs that failed or were interrupted: they say nothing about the steering files and are left out."""
    incomplete: int = 0
    """Valid runs in which not everything was judged: they count only for what was."""
    statuses: dict[SessionStatus, int]
    replayed: int = 0
    """Number of valid runs that took the model's words from a cassette."""
    models: tuple[str, ...] = ()
    """Session models asked for by the valid runs."""
    commits: tuple[str, ...] = ()
    dirty: bool = False
    """True where a run tested a tree that differed from its commit."""


class Delta(Record):
    """One measure or criterion on both sides."""

    verdict: Verdict
    reasons: tuple[str, ...] = ()
    """Reasons why the verdict is no firmer, in short sentences."""
    better: Literal["higher", "lower"]
    baseline: TrialStatistics | None = None
    candidate: TrialStatistics | None = None
    change: float | None = None
    """Candidate mean minus baseline mean; absent where the sides are not comparable."""
    change_percent: float | None = None
    """Change in percent of the baseline mean; absent where that is zero."""
    effect: Literal["better", "worse", "same"] | None = None
    """The meaning of the change's sign, whether or not it is more than noise."""
    threshold: float | None = None
    """Smaller changes do not matter in practice."""
    method: Literal["threshold", "fisherExact", "permutation"] | None = None
    p_value: float | None = None
    """One-sided, in the direction of the change, before correction."""
    adjusted_p_value: float | None = None
    """Corrected for everything that was tested, to be compared with `family.alpha`; 1 where no data could have been
    significant."""
    interval: tuple[float, float] | None = None
    """95 % confidence interval of the change, of this number by itself; absent where a side has one trial, or nothing
    varies."""
    gates: bool = False
    """True where a gate on regressions counts this verdict."""

    @property
    def is_tested(self) -> bool:
        """True where the verdict counts for that of the suite: other numbers are shown beside what is tested."""
        return self.change is None or self.method is not None


class MeasureDelta(Delta):
    """A score or a resource of one suite, or over all suites."""

    measure: Measure


class CriterionDelta(Delta):
    """One acceptance criterion: pass rates in percent and, unless unchanged, a judgement of each side to look at."""

    criterion: str
    baseline_judgement: CriterionJudgement | None = None
    candidate_judgement: CriterionJudgement | None = None


class ToolChange(Record):
    """A tool whose use or neglect appeared or disappeared: in how many trials of each side it is seen."""

    tool: str
    baseline_trials: int
    candidate_trials: int


class ToolDelta(Record):
    """Tools seen on one side only."""

    newly_used: tuple[ToolChange, ...] = ()
    no_longer_used: tuple[ToolChange, ...] = ()
    newly_missed: tuple[ToolChange, ...] = ()
    no_longer_missed: tuple[ToolChange, ...] = ()


class FigureDelta(Record):
    """A number on both sides that has no verdict of its own: counts of tests, coverage, calls by tool, tokens by kind.

    Means over the trials that have it. `build` and coverage are in percent, costs in US dollars.
    """

    name: str
    """Like `tests.passed` or `toolCalls.Read`."""
    baseline: float | None = None
    candidate: float | None = None
    change: float | None = None
    """Candidate minus baseline; absent where one side lacks it, or the sides are not comparable."""


class TrialSources(Record):
    """Trials that the verdict on one suite rests on, where trials were added as they were needed."""

    head: int
    """Trials of the candidate that count."""
    base: int = 0
    """Trials of the base, run in the same job, side by side with the candidate's."""
    stored: int = 0
    """Trials of the base made before: they only said what to expect of the first trials."""
    ended: DoneReason | None = None
    """Reason why no more were made; absent where more were wanted than could be made."""


class SuiteComparison(Record):
    """One suite on both sides; a suite that one side lacks is `new` or `removed` as a whole."""

    suite: str
    file: str
    verdict: Verdict
    """The gravest of its parts."""
    baseline: Trials | None = None
    candidate: Trials | None = None
    reasons: tuple[str, ...] = ()
    """Reasons why the sides cannot be compared as a whole; empty when they can."""
    notes: tuple[str, ...] = ()
    """Differences worth knowing that do not stand in the way."""
    measures: tuple[MeasureDelta, ...] = ()
    criteria: tuple[CriterionDelta, ...] = ()
    figures: tuple[FigureDelta, ...] = ()
    """Other numbers; empty where one side has no valid run of the suite."""
    tools: ToolDelta = ToolDelta()
    sources: TrialSources | None = None
    """Absent where the number of trials was fixed."""


class FamilySize(Record):
    """The hypotheses that were corrected together, in one direction; improvements are a family of the same size."""

    hypotheses: int
    alpha: float
    """Chance that a comparison of two equal sides claims any regression."""


SAME_FILES = "both sides tested the same files with the same settings: what differs is noise"
SINGLE_TRIAL = "1 trial: differences may be noise"
ONE_TRIAL_PROVES_NOTHING = "one trial on a side proves no change: set `trials: adaptive`, or more trials"


class Comparison(Document):
    """A candidate against a baseline."""

    verdict: Verdict
    """The gravest of all suites and of the overall numbers."""
    counts: dict[Verdict, int]
    """Criteria and measures of all suites by verdict."""
    single_trial: bool
    """True where some suite has one trial on a side: what differs there is `changed`, which proves nothing."""
    mixed: bool = False
    """True where sides that differ in more than the steering files were compared all the same."""
    family: FamilySize
    overall: tuple[MeasureDelta, ...] = ()
    """Means over the suites that can be compared."""
    suites: tuple[SuiteComparison, ...]


class Regression(Record):
    """A number or a criterion that became worse."""

    kind: Literal["regression"] = "regression"
    suite: str | None = None
    """Absent when it is about all suites together."""
    delta: MeasureDelta | CriterionDelta


class NotJudged(Record):
    """Trials that were not judged completely, which are no pass."""

    kind: Literal["incomplete"] = "incomplete"
    suite: str
    trials: int
    of: int
    reason: str


BUDGET_ENDED = "the budget ended"


class NotRun(Record):
    """Trials that were not begun: nothing is known of what they would have shown."""

    kind: Literal["budget"] = "budget"
    suite: str
    trials: int
    made: int
    why: str = BUDGET_ENDED
    """Reason why they were not begun."""


class _Evaluation(Record):
    kind: Literal["evaluation"] = "evaluation"
    suite: str


class BelowMinimum(_Evaluation):
    """A score that is lower than required, or that a suite requires and does not have."""

    measure: Measure
    minimum: float
    mean: float | None = None
    reason: str | None = None
    """Reason why there is no score."""


class _FailedTrials(_Evaluation):
    """At least half of the trials that count failed in this."""

    trials: int
    of: int


class EndedAtLimit(_FailedTrials):
    """Sessions that ran out of turns, budget or time."""

    status: SessionStatus


class CriterionFailed(_FailedTrials):
    """A criterion that was not met."""

    criterion: str


class CommandsFailed(_FailedTrials):
    """Build, tests or coverage that fell short."""


class NotLoaded(Record):
    """A settings file, an entry of one, or a plugin that is not loaded, other than on the base."""

    kind: Literal["notLoaded"] = "notLoaded"
    suite: None = None
    file: str
    """Path from the top of the repository."""
    effect: str
    """What became of it, in words that follow "is"."""


class ContextTooLarge(Record):
    """Steering that takes more of every session's context than is allowed."""

    kind: Literal["context"] = "context"
    suite: None = None
    tokens: int
    maximum: int
    is_estimated: bool


# What no session is needed for.
Refusal = NotLoaded | ContextTooLarge
# What the trials of the head fail in by themselves.
Evaluation = EndedAtLimit | BelowMinimum | CriterionFailed | CommandsFailed

# One finding; `report.builders.comparison` puts it into words.
GateReason = Regression | NotJudged | NotRun | Refusal | Evaluation


class Acceptance(Record):
    """Acceptance of one failing criterion of a pull request by somebody with write access."""

    suite: str
    criterion: str
    """Its text when it was accepted: a criterion that has another text since is not accepted."""
    by: str
    """Login of the person who accepts it."""
    because: SafeText
    url: str | None = None
    """Address of the comment that accepts it."""
    at: Moment


class AcceptedReason(Record):
    """A finding that would turn the check red, had nobody accepted it."""

    reason: GateReason
    acceptance: Acceptance


def criterion_of(reason: GateReason) -> str | None:
    """Criterion that a finding is about; None where it is about something else."""
    found = reason.delta if isinstance(reason, Regression) else reason
    return found.criterion if isinstance(found, CriterionFailed | CriterionDelta) else None


class Uncounted(StrEnum):
    """Reason why a failure does not turn the check red."""

    ON_BASE = "onBase"
    """It fails on the base, too."""
    NOT_PROVEN = "notProven"
    """It is not proven that it fails more often than on the base."""
    NO_BASE = "noBase"
    """No trial of the base says whether it failed before."""


class UncountedReason(Record):
    """A failure that is listed, and does not turn the check red."""

    reason: GateReason
    because: Uncounted
    baseline: TrialStatistics | None = None
    """Outcomes of the base, where it is not proven: 100 for each trial that does not fail in this, else 0."""
    interval: tuple[float, float] | None = None
    """95 % confidence interval of the change, where it is not proven."""


class GateResult(Record):
    """Result of the gate: red with reasons, green without."""

    reasons: tuple[GateReason, ...] = ()
    uncounted: tuple[UncountedReason, ...] = ()
    """Failures that are neither proven to be worse than on the base nor must hold whatever the base does."""
    accepted: tuple[AcceptedReason, ...] = ()
    """Findings that somebody has accepted on this pull request: listed, and no reason."""

    @property
    def exit_code(self) -> Literal[0, 1, 2]:
        """0 when nothing stands against it, 2 where that could not be judged completely."""
        if any(reason.kind in {"incomplete", "budget"} for reason in self.reasons):
            return 2
        return 1 if self.reasons else 0


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
    created_at: Moment
    accepted: tuple[AcceptedReason, ...] = ()
    """Findings that would have turned the check red, had nobody with write access accepted them on the pull request."""
    refused: tuple[Refusal, ...] = ()
    """Settings files that Claude Code refuses and did not refuse on the base; and a context that is too large."""
    context_size: ContextReport | None = None
    """What steering takes of the context, where files that steer are changed."""


class PoolSummary(Record):
    trials: int
    per_suite: int
    """Most trials that any suite has."""
    runs: int
    """Invocations that made the trials."""
    newest_at: Moment


class BaselineState(StrEnum):
    """State of the baseline: found, or the reason why there is none."""

    FOUND = "found"
    NONE_YET = "noneYet"
    """The base branch never stored one, or no ancestor of the wanted commit has one."""
    EXPIRED = "expired"
    NOT_PERMITTED = "notPermitted"
    """The token may not read artifacts, or GitHub finds nothing for it."""
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
    created_at: Moment | None = None
    pool: PoolSummary | None = None
