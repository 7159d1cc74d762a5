"""What the story of a run in CI is told with, and what it has found so far."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from zelda_ci.ci.event import Decision
from zelda_ci.ci.evidence import NOTHING, Evidence, PinnedPlan
from zelda_ci.ci.settings import ActionSettings
from zelda_ci.ci.stored_artifacts import identity_of
from zelda_ci.compare.gate import accept, gate, recorded_settings
from zelda_ci.domain.ci import BaselineOrigin, Provenance
from zelda_ci.domain.comparison import Acceptance, Comparison, GateResult, NotLoaded
from zelda_ci.domain.nights import NightlyHistory
from zelda_ci.domain.outcome import Outcome
from zelda_ci.domain.run import BatchResult, RunResult
from zelda_ci.github.api import Api
from zelda_ci.github.artifacts import ArtifactService
from zelda_ci.github.workflow_commands import Log
from zelda_ci.pipeline.comparing import Compared
from zelda_ci.report.told import NOTHING_CHANGED, CiReport, Links, PullRequestChanges


@dataclass(frozen=True)
class CiContext:
    """What is known before anything happens; built by `action`."""

    settings: ActionSettings
    decision: Decision
    commit: str
    """What was tested, as GitHub knows it."""
    environ: Mapping[str, str]
    """Of the step."""
    api: Api | None
    """Absent without a token."""
    artifacts: Callable[[], ArtifactService]
    """Raises `ArtifactError` where there is no such service."""
    hurried_artifacts: Callable[[], ArtifactService]
    """The same for a run that is cancelled: it gives up after seconds."""
    root: Path
    """Of the project."""
    results_dir: Path
    log: Log
    now: Callable[[], datetime]
    notes: tuple[str, ...] = ()
    """What is to be told before anything has happened."""
    evaluated: Provenance | None = None
    """What the results of another workflow say of themselves, where those are told: claims of whoever stored them."""
    changes: PullRequestChanges = NOTHING_CHANGED
    """What the pull request changes of that by which it is tested."""
    planned: tuple[str, ...] = ()
    """Suites that are to run; empty where that is not known."""
    refused: tuple[NotLoaded, ...] = ()
    """Settings files that Claude Code refuses on the head and not on the base."""
    pinned: PinnedPlan | None = None
    """What a job before this one has found, where several share the run."""

    @property
    def job(self) -> str:
        """Id of the job that has evaluated; empty where nobody says."""
        return (self.evaluated.job or "") if self.evaluated else self.settings.context.job

    @property
    def folder(self) -> str:
        """The project's, from the top of the checkout; empty at the top, or where it lies elsewhere."""
        real, top = self.root.resolve(), self.settings.context.workspace.resolve()
        below = real.relative_to(top).as_posix() if real.is_relative_to(top) else "."
        return "" if below == "." else below

    @property
    def run_id(self) -> int:
        return self.settings.context.run_id

    @property
    def artifact(self) -> str:
        """The artifact with the results of this attempt, whose name nothing else has."""
        return identity_of(self.settings).stored_as(self.settings.context.run_attempt)


@dataclass
class CiResult:
    """What is known so far; whatever is missing when the run is cancelled stays missing in what is told."""

    batch: BatchResult
    baseline: BaselineOrigin
    evidence: Evidence = NOTHING
    nights: NightlyHistory = field(default_factory=NightlyHistory)
    """What suites showed night by night, this one included."""
    compared: Compared | None = None
    acceptances: tuple[Acceptance, ...] = ()
    """Of the pull request, those that hold now."""
    artifact_id: int | None = None
    transcripts_id: int | None = None
    """Of the artifact with the transcripts."""
    report_id: int | None = None
    """Of the artifact with the HTML report."""
    is_unstorable: bool = False
    """Whether the results have no place on GitHub, so that nothing else of the run has one."""
    told_apart_by: str = ""
    """Id of the job, where another job of the run had stored results before; empty where none had."""
    run_id: int | None = None
    """The run that made the results, where that is not this one."""
    comment_url: str | None = None
    cancelled: bool = False
    refused: tuple[NotLoaded, ...] = ()
    """As the run's context has it."""
    is_nightly: bool = False
    """Whether this run is a row of the history."""
    notes: list[str] = field(default_factory=list)

    @property
    def head(self) -> tuple[RunResult, ...]:
        """All trials of the tested files."""
        return (*self.evidence.heads, *self.batch.runs)

    @property
    def bases(self) -> tuple[RunResult, ...]:
        """Trials of the base that ran beside them."""
        return (*self.evidence.bases, *self.batch.base_runs)

    @property
    def gate(self) -> GateResult:
        """With the baseline where there is one, without it from the runs alone; what was accepted is no reason."""
        return accept(self._found, self.acceptances, self.comparison, self.head)

    @property
    def _found(self) -> GateResult:
        if self.compared:
            found = self.compared.gate
        else:
            found = gate(self.batch.replace(runs=self.head, base_runs=self.bases), recorded_settings(self.head))
        return found.replace(reasons=(*self.refused, *(each for each in found.reasons if each not in self.refused)))

    @property
    def comparison(self) -> Comparison | None:
        """Absent where there was nothing to compare with."""
        return self.compared.comparison if self.compared else None

    @property
    def outcome(self) -> Outcome:
        """How the check ends."""
        known = CiReport(self.batch, self.gate, self.baseline, comparison=self.comparison, cancelled=self.cancelled)
        return known.outcome

    @property
    def exit_code(self) -> int:
        return self.outcome.exit_code

    def report(self, case: CiContext) -> CiReport:
        """What is told of it."""
        settings = case.settings
        head = case.decision.head_sha or case.commit
        name = settings.comment_id or self.told_apart_by
        return CiReport(
            batch=self.batch,
            gate=self.gate,
            baseline=self.baseline,
            comparison=self.comparison,
            baseline_batch=self.evidence.results if self.compared else None,
            links=self._links(settings, head),
            title=f"Zelda: {name}" if name else "Zelda",
            tested=case.commit,
            head=head if head != case.commit else None,
            changes=case.changes,
            planned=case.planned,
            cancelled=self.cancelled or self.batch.interrupted,
            project=case.folder,
            nightly=self.is_nightly,
            notes=tuple(self.notes),
        )

    def _links(self, settings: ActionSettings, head: str) -> Links:
        """Where more is found; `head` is a commit that GitHub knows."""
        context = settings.context
        run_url = context.url_of(self.run_id or context.run_id)
        artifact, transcripts, report = (
            f"{run_url}/artifacts/{number}" if number else None
            for number in (self.artifact_id, self.transcripts_id, self.report_id)
        )
        home = f"{context.server_url}/{context.repository}"
        return Links(
            run=run_url,
            artifact=artifact,
            transcripts=transcripts,
            report=report,
            commit=f"{home}/commit/{head}",
            files=f"{home}/blob/{head}",
        )
