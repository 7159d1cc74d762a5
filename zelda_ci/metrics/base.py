"""What an evaluator is: one context in, one result out; and the commands that one may have run."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from zelda_ci.domain.base import Record
from zelda_ci.domain.details import CommandResult
from zelda_ci.domain.measures import EvalResult, Metric
from zelda_ci.domain.run import EvalContext
from zelda_ci.domain.suite import Command
from zelda_ci.domain.workspace import CommandPhase, Workspace
from zelda_ci.errors import ZeldaError
from zelda_ci.judge.base import Judge
from zelda_ci.process import OutputBuffer
from zelda_ci.redact import Redactor
from zelda_ci.test_output.reports import ReportFile

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Scored:
    """A score from 0 to 100, and what it rests on; None for a number that the metric's row reads from the details."""

    score: float | None
    reasoning: str
    details: Record


@dataclass(frozen=True)
class Unscored:
    """No score, which is not zero: why, and the numbers that are known nevertheless."""

    reason: str
    details: Record | None = None
    failed: bool = False
    """Whether the evaluator could not do its work; nothing to evaluate is no failure."""
    code: str | None = None


Outcome = Scored | Unscored


class Evaluator(Protocol):
    """Computes one metric of a run. Data comes in the context, services in the constructor."""

    metric: Metric
    version: str
    """Changes whenever the same session may score differently; results across versions are not compared."""

    async def evaluate(self, context: EvalContext) -> Outcome:
        """Judge a run; may raise whatever it likes."""


async def run_evaluator(evaluator: Evaluator, context: EvalContext, redact: Redactor) -> EvalResult:
    """Turn any failure into an unscored result, so that one bad evaluator cannot sink a run."""
    try:
        outcome = await evaluator.evaluate(context)
        if isinstance(outcome, Scored) and outcome.score is not None and not 0 <= outcome.score <= 100:
            raise ValueError(f"a score of {outcome.score} is not between 0 and 100")  # noqa: TRY301 - as any other
    except ZeldaError as problem:  # can be explained, and is, in the result
        log.debug("%s could not be computed", evaluator.metric, exc_info=True)
        outcome = Unscored(problem.message, failed=True, code=problem.code)
    except (Exception, SystemExit) as problem:  # whoever wants to end Zelda from in here has failed like any other
        log.warning("%s could not be computed", evaluator.metric, exc_info=True)
        outcome = Unscored(f"The evaluation failed: {type(problem).__name__}: {problem}", failed=True)
    return EvalResult(
        metric=evaluator.metric,
        version=evaluator.version,
        score=outcome.score if isinstance(outcome, Scored) else None,
        reasoning=redact(outcome.reason if isinstance(outcome, Unscored) else outcome.reasoning),
        details=(outcome.details or Record()).redacted(redact),
        failed=isinstance(outcome, Unscored) and outcome.failed,
        code=outcome.code if isinstance(outcome, Unscored) else None,
    )


@dataclass(frozen=True)
class CommandRequest:
    """A command to run; `reports` are globs by kind, from where commands work; a `buffer` keeps more than a result."""

    step: CommandPhase
    command: Command
    timeout_seconds: float
    reports: Mapping[str, Sequence[str]] = field(default_factory=dict)
    buffer: OutputBuffer | None = None
    log: str | None = None
    """Name of the file that keeps what it prints, where it is not the step's."""


@dataclass(frozen=True)
class Ran:
    """How it went, with head and tail of its output, and the reports that it wrote, by kind."""

    result: CommandResult
    written: Mapping[str, Sequence[ReportFile]] = field(default_factory=dict)
    notes: Sequence[str] = ()


class CommandRunner(Protocol):
    """Runs the suite's commands in a workspace."""

    async def run(self, workspace: Workspace, order: CommandRequest) -> Ran:
        """Run a command to its end or its deadline."""


@dataclass(frozen=True)
class Services:
    """What evaluators without a judge may use."""

    commands: CommandRunner
    redact: Redactor


@dataclass(frozen=True)
class JudgeServices:
    """What evaluators with a judge may use; `nonce` is that of the run's fences."""

    judge: Judge
    nonce: str
    redact: Redactor
