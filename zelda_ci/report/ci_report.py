"""All that the reports of a run in CI tell."""

from dataclasses import dataclass

from zelda_ci.domain.attribution import Attribution
from zelda_ci.domain.check import ContextReport
from zelda_ci.domain.comparison import BaselineOrigin, Comparison, GateResult
from zelda_ci.domain.manifest import SteeringChange
from zelda_ci.domain.outcome import Outcome, batch_outcome
from zelda_ci.domain.run import BatchResult


@dataclass(frozen=True)
class Links:
    """Where a reader finds more; absent where it does not exist."""

    run: str | None = None
    artifact: str | None = None
    """The artifact with the results."""
    transcripts: str | None = None
    """The artifact with transcripts, patches and logs."""
    commit: str | None = None
    """The head commit, which is what a reviewer knows."""
    files: str | None = None
    """The head's tree as it was tested: what follows is a path from the top of the repository."""
    report: str | None = None
    """The HTML report; `builders.anchors` has its fragments."""


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
    """What a pull request changes of that by which it is tested; paths are from the top of the repository."""

    steering: tuple[SteeringChange, ...] = ()
    rules: tuple[RuleChange, ...] = ()
    removed_suites: tuple[str, ...] = ()
    """Files of suites that only the base has."""
    others: tuple[str, ...] = ()
    """Files that steer nothing, as far as they are known."""


NOTHING_CHANGED = PullRequestChanges()


@dataclass(frozen=True)
class CiReport:
    """Everything that the comment, the summary, the annotations and JUnit tell."""

    batch: BatchResult
    gate: GateResult
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
    context_size: ContextReport | None = None
    """What steering takes of the context, where files that steer are changed."""
    project: str = ""
    """The project's folder, from the top of the repository."""
    nightly: bool = False
    attributions: tuple[Attribution, ...] = ()
    """Which parts of the change made suites worse, where that was searched."""
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
