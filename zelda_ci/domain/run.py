"""One run (one suite, one trial), what evaluators receive of it, its result; and the batch of one invocation."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import Field, field_validator

from zelda_ci.domain.base import Document, Moment, Record
from zelda_ci.domain.details import CommandResult, CriterionJudgement
from zelda_ci.domain.manifest import ToolsManifest, UnitUse
from zelda_ci.domain.measures import EvalResult, Metric
from zelda_ci.domain.session import ApiUsage, ModelUsage, SessionStatus, SessionTranscript
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.domain.trials import BaseSide, Side, SuiteArms
from zelda_ci.domain.workspace import Changes, ChangeSummary, IsolationReport, TestedSource, Workspace
from zelda_ci.redact import SafeText

# Names of parts that a suite does not decide.
STEERING, SUITE_FILES, EVALUATORS, REPLAYED = "steeringFiles", "suiteFiles", "evaluators", "replayed"
NAMED_FILES = "namedFiles"
PLATFORM = ("cli", "agentSdk", "models", "system", "isolationLevel")
# How a file steers: by its own name or place, or as one of the project's own that a file which steers imports or runs.
Steers = Literal["itself", "drawn"]


# `outcome` is what pull request and suite decide: prompt, settings, judges, steering files. `tree` is the code of the
# project, `platform` what changes without a commit: Claude Code, the models that answered, the system.
class Fingerprint(Record):
    """Digests of what one trial's outcome may depend on; trials with equal ones may be pooled."""

    outcome: str
    """Digest of everything apart from platform and project code."""
    platform: str
    """Claude Code's version, the models that answered, and the system, in words."""
    tree: str
    """Digest of the project's own code: neither steering files nor Zelda's."""
    parts: dict[str, str] = {}
    """Parts that `outcome` and `platform` were made of, by name: they say what differs."""

    def differences(self, other: "Fingerprint") -> tuple[str, ...]:
        """Names of the parts that differ, and `tree`."""
        names = dict.fromkeys([*self.parts, *other.parts])
        parts = [name for name in names if self.parts.get(name) != other.parts.get(name)]
        return (*parts, *(["tree"] if self.tree != other.tree else []))


_Record = TypeVar("_Record", bound=Record)
_Trial = TypeVar("_Trial")
_Other = TypeVar("_Other")


@dataclass(frozen=True)
class EvalContext:
    """All that an evaluator may look at: data only, services go to its constructor."""

    suite: ResolvedSuite
    workspace: Workspace | None
    """Absent where it is gone: the run was killed, or is judged again later."""
    transcript: SessionTranscript
    api: ApiUsage
    changes: Changes | None
    """Absent where they are not known."""
    checks: tuple[SafeText, ...] = ()
    """Output of build and tests, each as one finished text that a judge can read."""
    commands: Mapping[int, CriterionJudgement] = field(default_factory=dict)
    """Judgements on those checks that are commands, by the check's number from 1."""
    unready: SafeText | None = None
    """Reason why build and tests cannot be run, though it is the session's work that they would judge."""
    images: Path | None = None
    manifest: ToolsManifest | None = None
    """Items that the project offered, and which of them the session had; absent where nobody looked."""


class Versions(Record):
    """Software that made a result."""

    zelda: str
    agent_sdk: str
    cli: str | None = None
    python: str


class Failure(Record):
    """Reason why a run did not complete."""

    code: str
    message: SafeText
    hint: SafeText | None = None
    """Next step for the user, where one is known."""


class JudgeUsage(ApiUsage):
    """Usage of the judges, apart from the session."""

    notices: tuple[SafeText, ...] = ()
    """Remarks on the judge, such as the end of its model's life."""

    def after(self, earlier: "JudgeUsage | None") -> "JudgeUsage":
        """Sum with what an earlier judging of the same run used."""
        if earlier is None:
            return self
        counted = ("requests", "retries", "api_seconds", "wait_seconds", "throttled")
        models = {name: earlier.models.get(name, ModelUsage()).with_more(use) for name, use in self.models.items()}
        return JudgeUsage(
            **{name: getattr(earlier, name) + getattr(self, name) for name in counted},
            errors=dict(Counter(earlier.errors) + Counter(self.errors)),
            models={**earlier.models, **models},
            notices=tuple(dict.fromkeys((*earlier.notices, *self.notices))),
        )


class RunOutline(Record):
    """A run: which it is, and how and when its session ended."""

    run_id: str
    batch_id: str
    """The same for all runs of one invocation."""
    suite: str
    trial: int = Field(1, ge=1)
    """Its number among the trials of its side."""
    side: Side = Side.HEAD
    """Whose files it ran: those of the change, or those of the commit that this is compared with."""
    variant: SafeText | None = None
    """What of these files was taken back or out, in words: such a run says nothing of the files as they are."""
    status: SessionStatus
    started_at: Moment
    finished_at: Moment
    replayed: bool = False
    """True where the model's words came from a cassette."""


class RunResult(Document, RunOutline):
    """One suite, one trial: everything that list and compare need; transcript and patch lie beside it."""

    look: int | None = Field(None, ge=1)
    """The look of an adaptive plan for which it was made; absent where the number of trials was fixed."""
    failure: Failure | None = None
    phase_seconds: dict[str, float] = {}
    """Wall seconds by phase: workspace, setup, session, evaluation."""
    versions: Versions
    source: TestedSource | None = None
    config: ResolvedSuite
    models: tuple[str, ...] = ()
    """Models that really answered, sorted."""
    api: ApiUsage = ApiUsage()
    changes: ChangeSummary | None = None
    setup: CommandResult | None = None
    judge: JudgeUsage | None = None
    """Absent where no judge was asked."""
    evaluations: dict[Metric, EvalResult] = {}
    steering: tuple[UnitUse, ...] | None = None
    """Files that steer the session and what became of each; absent where not all is known."""
    touched: tuple[SafeText, ...] | None = None
    """Files of the tested tree that it read, wrote or named, from the top; absent where not all are known."""
    isolation: IsolationReport | None = None
    """Absent where no workspace was made."""
    fingerprint: Fingerprint | None = None
    """Digests of what its outcome may depend on; absent where no workspace was made."""

    @property
    def whole_cost_usd(self) -> float:
        return self.api.cost_usd + (self.judge.cost_usd if self.judge else 0.0)

    @field_validator("evaluations", mode="before")
    @classmethod
    def _without_those_of_a_newer_zelda(cls, values: Any) -> Any:
        return {key: it for key, it in values.items() if key in set(Metric)} if isinstance(values, dict) else values

    def details(self, kind: type[_Record]) -> _Record | None:
        """The details of the metric that has this kind; nothing where it was not computed, or they are another's."""
        return next((result.details for result in self.evaluations.values() if isinstance(result.details, kind)), None)


class BatchResult(Document):
    """One invocation: its runs in suite order, then trial order."""

    batch_id: str
    started_at: Moment
    finished_at: Moment
    interrupted: bool = False
    """True where it was ended before its plan was carried out."""
    planned: int | None = None
    """Runs that it was to make; absent where that is not known any more."""
    runs: tuple[RunResult, ...]
    """Runs of the head, which is tested."""
    base_runs: tuple[RunResult, ...] = ()
    """Runs of the base, beside those of the head."""
    arms: tuple[SuiteArms, ...] = ()
    """Progress of each suite, where trials were added as they were needed or a budget was kept."""
    base: BaseSide | None = None
    """The commit that runs beside the head; absent where none was asked for."""
    ended: str | None = None
    """Reason why nothing more was begun, such as a refused key; absent without one."""
    budget_usd: float | None = None
    """Limit of the cost of sessions and judges of both sides; absent without one."""
    notes: tuple[SafeText, ...] = ()
    """Sentences on submodules and files of Git LFS that were not in the tested tree."""
    failing_before: dict[str, SafeText] = {}
    """Sentences by suite on build and tests that failed on the tested commit before any session."""

    @property
    def cost_usd(self) -> float:
        """Cost of sessions and judges of both sides together."""
        return sum(run.whole_cost_usd for run in (*self.runs, *self.base_runs))

    @property
    def unpaid(self) -> tuple[SuiteArms, ...]:
        return tuple(suite for suite in self.arms if suite.unpaid)


class Pool(Document):
    """Trials of earlier runs, stored beside a run's own results, so that one artifact has them all."""

    suites: dict[str, Fingerprint] = {}
    """Every suite of the tested commit, also those that were not run."""
    trials: tuple[RunResult, ...] = ()
    """Trials of earlier runs; those of the run itself are its results."""


class CountedTrials(Record, Generic[_Trial]):
    """Stored trials that count before any trial of the present run; none counts twice."""

    head: tuple[_Trial, ...] = ()
    """Trials of the head itself, by earlier runs: they add up."""
    base: tuple[_Trial, ...] = ()
    """Trials of the base commit, by the same runs: they were made beside those of the head."""
    stored: tuple[_Trial, ...] = ()
    """Trials of the base's state, at any time, on any platform: they say what to expect of the head's first trials."""

    @property
    def all(self) -> tuple[_Trial, ...]:
        return (*self.head, *self.base, *self.stored)

    def each(self, change: Callable[[Iterable[_Trial]], tuple[_Other, ...]]) -> "CountedTrials[_Other]":
        """The same with each of the three changed."""
        return CountedTrials(head=change(self.head), base=change(self.base), stored=change(self.stored))


# Of one suite.
StoredTrials = CountedTrials[RunResult]


class StoredComparison(Document, CountedTrials[str]):
    """Basis of the comparison of an invocation's two sides: the ids of its runs, and of earlier ones that count."""

    batch: BatchResult
    """Without its runs, which are stored one by one."""
    runs: tuple[str, ...]


def empty_batch(now: Moment) -> BatchResult:
    return BatchResult(batch_id=f"{now:%Y-%m-%dT%H-%M-%S}-none", started_at=now, finished_at=now, planned=0, runs=())


def batch_of(runs: Sequence[RunResult]) -> BatchResult:
    """Stored runs as the invocation that made them; at least one."""
    heads = tuple(run for run in runs if run.side is Side.HEAD)
    return BatchResult(
        batch_id=runs[0].batch_id,
        started_at=min(run.started_at for run in runs),
        finished_at=max(run.finished_at for run in runs),
        interrupted=any(run.status is SessionStatus.INTERRUPTED for run in runs),
        runs=heads or tuple(runs),
        base_runs=tuple(run for run in runs if heads and run.side is Side.BASE),
    )


# More than any repository has jobs to spare: GitHub starts 256 of a matrix at most.
MAX_SHARDS = 256
ShardNumber = Annotated[int, Field(ge=1, le=MAX_SHARDS)]


class ShardOf(Record):
    number: ShardNumber
    shards: ShardNumber

    def __str__(self) -> str:
        return f"{self.number}/{self.shards}"

    @property
    def file_stem(self) -> str:
        """Name of its part, without an ending."""
        return f"shard-{self.number}-of-{self.shards}"


def shard_of(text: str) -> ShardOf:
    """The shard that a text like `2/4` means; a ValueError says what is allowed."""
    found = re.fullmatch(r"([1-9][0-9]{0,2})/([1-9][0-9]{0,2})", text.strip())
    number, shards = (int(part) for part in found.groups()) if found else (0, 0)
    if not 1 <= number <= shards <= MAX_SHARDS:
        raise ValueError(f"allowed are a number and how many there are, such as 2/4, up to {MAX_SHARDS}")
    return ShardOf(number=number, shards=shards)


class PlannedSuite(Record):
    """A suite of a plan, and which shard runs it."""

    name: str
    shard: ShardNumber
    trials: int
    """The fewest that will run."""
    seconds: float
    """Seconds that these are expected to take, one after the other."""
    settings: str
    """SHA-256 of the suite as it runs."""
    stored: str = ""
    """SHA-256 of the stored trials that count for it; empty without any."""


class ShardPlan(Document):
    """Plan of who runs what: the shards of one run have equal plans."""

    zelda: str
    commit: str | None = None
    """Tested commit; absent outside git."""
    shards: ShardNumber
    budget_usd: float | None = None
    """Budget of all shards together."""
    suites: tuple[PlannedSuite, ...]
    """Suites in the order in which they are reported."""

    def suites_of(self, shard: int) -> tuple[PlannedSuite, ...]:
        return tuple(suite for suite in self.suites if suite.shard == shard)

    def names_of(self, shard: int) -> tuple[str, ...]:
        return tuple(suite.name for suite in self.suites_of(shard))


class ShardPart(Document):
    """Part that a shard hands in beside its results: enough to know where it belongs."""

    shard: ShardNumber
    plan: ShardPlan
    platform: str
    """Platform on which it ran, such as `debian 13 x86_64`."""
    earlier: tuple[RunResult, ...] = ()
    """Trials of the shard's earlier attempts on GitHub, which count like its own."""
    counted: dict[str, StoredTrials] = {}
    """Stored trials by suite; outside of GitHub, where nobody else knows them."""
