"""Evaluating a run: first what needs no judge, each evaluator knowing what those before it found, then the judges."""

from collections.abc import Iterable
from dataclasses import replace

from zelda_ci.domain.correctness import CorrectnessDetails
from zelda_ci.domain.evaluation import EvalContext, EvalResult, Metric
from zelda_ci.domain.run import CommandResult
from zelda_ci.domain.session import SessionStatus
from zelda_ci.evaluators.base import run_evaluator
from zelda_ci.events import Emit, Warned
from zelda_ci.pipeline.tools import Tools
from zelda_ci.redact import Redactor, SafeText
from zelda_ci.storage.ledger import RunLedger


async def evaluate(context: EvalContext, tools: Tools, ledger: RunLedger) -> EvalContext:
    """Compute the metrics that need no judge, in order; returns the context that the judges get."""
    for evaluator in tools.evaluators(context.suite):
        result = await run_evaluator(evaluator, context, tools.redact)
        context = replace(context, earlier={**context.earlier, evaluator.metric: result})
        _keep([result], ledger)
    found = checks(context.earlier.get(Metric.FUNCTIONAL_CORRECTNESS), tools.redact)
    return replace(context, checks=(*context.checks, *found))


async def judge(label: str, context: EvalContext, tools: Tools, ledger: RunLedger, emit: Emit) -> None:
    """Compute the others, which cost money: not after an interruption, nor where nobody knows what to judge."""
    if ledger.known.status is SessionStatus.INTERRUPTED or context.changes is None:
        return
    court = tools.judging.court(label, context)
    try:
        await court.sit()
    finally:
        _keep(court.results, ledger)
        ledger.learn(judge=court.usage())
    for notice in court.notices:
        emit(Warned(notice, ledger.folder.run_id))


def _keep(results: Iterable[EvalResult], ledger: RunLedger) -> None:
    known = ledger.known.evaluations | {result.metric: result for result in results}
    ledger.learn(evaluations={metric: known[metric] for metric in Metric if metric in known})


def checks(result: EvalResult | None, redact: Redactor) -> tuple[SafeText, ...]:
    """What build and tests said, for the judges to read."""
    if result is None or not result.details:
        return ()
    found = CorrectnessDetails.model_validate(result.details)
    commands = {"buildCommand": found.build, "testCommand": found.test}
    return (result.reasoning, *(_told(name, done, redact) for name, done in commands.items() if done))


def _told(name: str, done: CommandResult, redact: Redactor) -> SafeText:
    how = "ran into its time limit" if done.timed_out else f"ended with exit code {done.exit_code}"
    return redact(f"{name} `{done.command}` {how}. The end of what it printed:\n{done.output}")
