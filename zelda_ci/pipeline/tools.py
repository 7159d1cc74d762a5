"""What the story is told with: a planned run, and the tools that runs share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from zelda_ci.domain.run import Versions
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.evaluators.base import Evaluator
from zelda_ci.execution.agent import CodingAgent
from zelda_ci.model_proxy.proxy import ModelProxy
from zelda_ci.pipeline.bench import WorkspaceBench
from zelda_ci.pipeline.judging import Judging
from zelda_ci.redact import Redactor
from zelda_ci.storage.result_store import ResultStore
from zelda_ci.workspace.workspaces import Workspaces


@dataclass(frozen=True)
class PlannedRun:
    """One suite, one trial; `label` is the suite's name, with the trial where there are several."""

    suite: ResolvedSuite
    trial: int
    label: str


@dataclass(frozen=True)
class Tools:
    """What runs work with; built by `app`."""

    workspaces: Workspaces
    bench: WorkspaceBench
    proxy: ModelProxy
    agent: CodingAgent
    store: ResultStore
    evaluators: Callable[[ResolvedSuite], Sequence[Evaluator]]
    """Those that need no judge."""
    judging: Judging
    redact: Redactor
    versions: Versions
    replayed: bool
    isolation_reasons: tuple[str, ...] = ()
    """Why this machine offers no better isolation, and what would help."""
    isolation: str = ""
    """How the runs are confined, in one line."""
