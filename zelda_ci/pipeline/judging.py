"""The metrics that need a judge: one run before it, side by side, with what they used counted apart."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import anyio

from zelda_ci.domain.evaluation import EvalContext, EvalResult
from zelda_ci.domain.run import JudgeUsage
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.errors import JudgeError, ProxyError
from zelda_ci.evaluators.base import Evaluator, run_evaluator
from zelda_ci.judge.base import AbsentJudge, Judge
from zelda_ci.judge.fence import mark_of, new_nonce
from zelda_ci.model_proxy.proxy import Meter, ModelProxy
from zelda_ci.redact import Redactor

Seat = Callable[[ResolvedSuite, Meter, Callable[[str], None]], Judge]
"""Makes a run's judge, reached through a meter, who may have something to tell the user."""

Bench = Callable[[ResolvedSuite, Judge, str], Sequence[Evaluator]]
"""The evaluators of a suite that ask a judge, with the nonce of the run's fences."""


@dataclass(frozen=True)
class Judging:
    """What it takes to judge; built by `app`."""

    proxy: ModelProxy
    seat: Seat
    bench: Bench
    redact: Redactor

    def court(self, label: str, context: EvalContext) -> "Court":
        """One run before the judge; `label` is the run's."""
        return Court(self, label, context)


@dataclass
class Court:
    """One run's judging. What was found and used so far is there at any time, also when it was cut short."""

    judging: Judging
    label: str
    context: EvalContext
    results: list[EvalResult] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    _meter: Meter | None = None

    async def sit(self) -> None:
        """Judge every metric, in parallel; a metric that fails is unscored and says why."""
        suite, redact = self.context.suite, self.judging.redact
        # Made after the session has ended, so that nothing it wrote can hold it.
        nonce = new_nonce()
        with self._judge(nonce) as judge:
            evaluators = self.judging.bench(suite, judge, nonce)

            async def evaluate(evaluator: Evaluator) -> None:
                self.results.append(await run_evaluator(evaluator, self.context, redact))

            async with anyio.create_task_group() as group:
                for evaluator in evaluators:
                    group.start_soon(evaluate, evaluator)

    def usage(self) -> JudgeUsage | None:
        """What was used so far; nothing where no judge was asked."""
        api = self._meter.usage() if self._meter else None
        if api is None or not api.requests:
            return None
        return JudgeUsage(**dict(api), notices=tuple(map(self.judging.redact, self.notices)))

    @contextmanager
    def _judge(self, nonce: str) -> Iterator[Judge]:
        suite = self.context.suite
        places = {**self._places(), "nonce": nonce, "mark": mark_of(nonce)}
        with ExitStack() as stack:
            session = self.judging.proxy.session(run_label=f"{self.label}.judge", budget_usd=None, placeholders=places)
            try:
                self._meter = stack.enter_context(session)
                judge = self.judging.seat(suite, self._meter, self.notices.append)
            except ProxyError as problem:
                # A replay without a recorded judge matters only to those who ask it.
                why = JudgeError(problem.message, hint=problem.hint, code=problem.code)
                judge = AbsentJudge(suite.judge_model, suite.judge.context_tokens, why)
            yield judge

    def _places(self) -> Mapping[str, str]:
        workspace = self.context.workspace
        if workspace is None:
            return {}
        return {"workspace": str(workspace.path), "home": str(workspace.home), "tmp": str(workspace.tmp)}
