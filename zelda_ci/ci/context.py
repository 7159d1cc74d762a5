"""The state of one step of a workflow: what it is given, and what it has found so far."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from zelda_ci.ci.event import Checkout, Decision
from zelda_ci.ci.settings import ActionSettings
from zelda_ci.ci.stored import NOTHING, Evidence, JobIdentity, PinnedPlan
from zelda_ci.compare.gate import accept, gate, recorded_settings
from zelda_ci.domain.attribution import Attribution
from zelda_ci.domain.check import ContextReport
from zelda_ci.domain.comparison import Acceptance, BaselineOrigin, Comparison, GateResult, Provenance, Refusal
from zelda_ci.domain.run import BatchResult, RunResult
from zelda_ci.errors import GitHubError, ZeldaError
from zelda_ci.github.api import Api
from zelda_ci.github.artifacts import ArtifactService
from zelda_ci.github.workflow_commands import Log, Severity
from zelda_ci.pipeline.comparing import Compared
from zelda_ci.report.ci_report import NOTHING_CHANGED, CiReport, Links, PullRequestChanges


@dataclass(frozen=True)
class CiContext:
    """What is known before anything happens; built by `action`."""

    settings: ActionSettings
    checkout: Checkout
    decision: Decision
    commit: str
    """What was tested, as GitHub knows it."""
    environ: Mapping[str, str]
    api: Api | None
    """Absent without a token."""
    artifacts: Callable[[float | None], ArtifactService]
    """Takes the seconds that a request has, if few; raises `ArtifactError` where there is no such service."""
    root: Path
    results_dir: Path
    log: Log
    now: Callable[[], datetime]
    notes: tuple[str, ...] = ()
    """What is to be reported before anything has happened."""
    evaluated: Provenance | None = None
    """What the results of another workflow say of themselves, where those are reported: claims of their author."""
    changes: PullRequestChanges = NOTHING_CHANGED
    """What the pull request changes of that by which it is tested."""
    planned: tuple[str, ...] = ()
    """Suites that are to run; empty where that is not known."""
    refused: tuple[Refusal, ...] = ()
    """What is red without any session: settings files that are newly refused, and a context that is too large."""
    context_size: ContextReport | None = None
    """What steering takes of the context, where the pull request changes files that steer."""
    pinned: PinnedPlan | None = None
    """What a job before this one has found, where several share the run."""

    @property
    def github(self) -> Api:
        """The API; raises `GitHubError` without a token."""
        if self.api is None:
            raise GitHubError("No token was given.", hint="Pass github-token.")
        return self.api

    @property
    def identity(self) -> JobIdentity:
        """The job that has evaluated; of another workflow's, as its results say."""
        settings, told = self.settings, self.evaluated
        job, folder = (told.job, told.folder) if told else (settings.context.job or None, settings.folder)
        return JobIdentity(settings.artifact_name, job, folder)

    @property
    def run_id(self) -> int:
        """The run that has evaluated."""
        return self.evaluated.run_id if self.evaluated else self.settings.context.run_id

    @property
    def artifact(self) -> str:
        """The artifact with the results of this attempt, whose name nothing else has."""
        return self.identity.stored_as(self.settings.context.run_attempt)

    @property
    def output(self) -> Path:
        return self.results_dir / "ci"

    @property
    def junit(self) -> Path:
        """The JUnit XML, where the workflow wants it."""
        return self.settings.junit_path or self.output / "junit.xml"

    def relative(self, path: Path) -> str:
        """A path from the workspace, which in this step's container is another than in later steps."""
        real, top = path.resolve(), self.settings.context.workspace.resolve()
        return real.relative_to(top).as_posix() if real.is_relative_to(top) else str(path)


@dataclass
class CiResult:
    """What is known so far; whatever is missing when the run is cancelled stays missing in the reports."""

    case: CiContext
    batch: BatchResult
    evidence: Evidence = NOTHING
    """What is stored and counts; from the comparison on, what was compared with."""
    baseline: BaselineOrigin = NOTHING.origin
    compared: Compared | None = None
    attributions: tuple[Attribution, ...] = ()
    """Which parts of the pull request made suites worse."""
    acceptances: tuple[Acceptance, ...] = ()
    """Of the pull request, those that hold now."""
    cancelled: bool = False
    has_siblings: bool = False
    """Whether another job of the run has results, too, so that the title says of which job these are."""
    outputs: dict[str, str] = field(default_factory=dict)
    """Outputs of the step that name what GitHub has taken: ids of artifacts, and the comment."""
    notes: list[str] = field(default_factory=list)

    def note(self, text: str, level: Severity | None = None, title: str = "Zelda") -> None:
        """Have the reports and the log say something; with a level, the run's page, too."""
        self.notes.append(text)
        if level:
            self.case.log.report(level, text, title=title)
        else:
            self.case.log.say(text)

    def note_failure(self, what: str, problem: ZeldaError, expected: str = "") -> None:
        """Note what could not be done and why; where that is no surprise, `expected` is what the log advises."""
        self.notes.append(f"{what}: {problem.message}")
        self.case.log.report("notice" if expected else "warning", expected or problem.user_message, title=what)

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
        whole = self.batch.replace(runs=self.head, base_runs=self.bases)
        found = self.compared.gate if self.compared else gate(whole, recorded_settings(self.head))
        refused = self.case.refused
        found = found.replace(reasons=(*refused, *(each for each in found.reasons if each not in refused)))
        return accept(found, self.acceptances, self.comparison, self.head)

    @property
    def comparison(self) -> Comparison | None:
        """Absent where there was nothing to compare with."""
        return self.compared.comparison if self.compared else None

    @property
    def report(self) -> CiReport:
        """All that the reports say of it."""
        case, settings = self.case, self.case.settings
        context, head = settings.context, case.decision.head_sha or case.commit
        home, run = f"{context.server_url}/{context.repository}", context.url_of(case.run_id)
        artifact, transcripts, page = (
            f"{run}/artifacts/{self.outputs[name]}" if name in self.outputs else None
            for name in ("artifact-id", "transcripts-artifact-id", "report-artifact-id")
        )
        name = settings.comment_id or (self.has_siblings and case.identity.job)
        return CiReport(
            batch=self.batch,
            gate=self.gate,
            baseline=self.baseline,
            comparison=self.comparison,
            attributions=self.attributions,
            baseline_batch=self.evidence.results if self.compared else None,
            links=Links(run, artifact, transcripts, f"{home}/commit/{head}", f"{home}/blob/{head}", page),
            title=f"Zelda: {name}" if name else "Zelda",
            tested=case.commit,
            head=head if head != case.commit else None,
            changes=case.changes,
            planned=case.planned,
            cancelled=self.cancelled,
            context_size=case.context_size,
            project=case.relative(case.root),
            nightly=any(night.batch_id == self.batch.batch_id for night in self.evidence.nights.nights),
            notes=tuple(self.notes),
        )
