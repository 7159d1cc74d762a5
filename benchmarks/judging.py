"""What does judging cost? Both judges of a session of 300 turns, with a shared prefix and without.

python benchmarks/judging.py

Without: as it was, requirement fulfillment caches its own prefix, and tool usage pays the transcript in full each time.
The prices are Zelda's, the tokens those of a scripted API that accounts for prompt caching as the real one does.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import anyio

from tests.builders import session, suite
from tests.support.judging import judge
from tests.support.prompt_cache import PromptCache
from tests.support.scripted_api import ApiRequest, Message, ScriptedApi, tool_call
from zelda_ci import metrics
from zelda_ci.domain.evaluation import EvalContext
from zelda_ci.domain.manifest import ItemKind, ManifestItem, ToolsManifest
from zelda_ci.domain.session import ApiUsage
from zelda_ci.domain.suite import MetricSwitches
from zelda_ci.judge.base import A, Judge, JudgeAnswer, JudgeQuestion
from zelda_ci.judge.prompts import new_nonce
from zelda_ci.metrics.base import JudgeServices, run_evaluator
from zelda_ci.model_proxy import pricing
from zelda_ci.redact import Redactor

MODEL = "claude-sonnet-5-5"
TURNS = 300
SAFE = Redactor()
OUTPUT = "\n".join(f"src/module_{line}.py:{line}: a line of output as tools print it" for line in range(16))
CRITERIA = ["It works.", "It is tested.", "Nothing else was changed."]
RULE = ManifestItem(
    kind=ItemKind.RULE, name=SAFE("CLAUDE.md"), file=SAFE("CLAUDE.md"), loaded=True, text=SAFE("Run the tests.")
)


class Apart:
    """A judge that is asked as before prefixes were shared."""

    def __init__(self, inner: Judge) -> None:
        self.model, self.context_tokens, self._inner = inner.model, inner.context_tokens, inner

    async def ask(self, question: JudgeQuestion, form: type[A]) -> JudgeAnswer[A]:
        """Put what is common where it was: in fulfillment before the mark, in tool usage into the body."""
        common = question.common
        if common:
            system = f"{common.system}\n{question.system}"
            if question.name.startswith("tool-usage"):
                body = "\n\n".join((*common.blocks, question.body))
                question = replace(question, system=system, body=body, common=None)
            else:
                question = replace(question, system=system, shared=question.blocks, common=None)
        return await self._inner.ask(question, form)


async def cost(votes: int, shared: bool) -> tuple[float, int]:  # noqa: FBT001
    """US dollars, and the number of requests, for one run before both judges."""
    cache, spent = PromptCache(), []

    def answer(request: ApiRequest) -> Message:
        tokens = cache.tokens(request)
        spent.append(pricing.cost_usd(MODEL, pricing.from_usage(tokens.as_json())))
        assert request.answer_tool
        return tool_call(request.answer_tool, _answers(request.answer_tool), tokens=tokens)

    transcript = session(*[f"Bash step {turn} -> {OUTPUT}" for turn in range(TURNS)])
    resolved = suite(acceptanceCriteria=CRITERIA, judge={"votes": votes})
    context = EvalContext(resolved, None, transcript, ApiUsage(), None, manifest=ToolsManifest(items=(RULE,)))
    with ScriptedApi(answer) as api:
        direct = judge(api.url, model=MODEL, forms=metrics.forms(MetricSwitches()))
        services = JudgeServices(direct if shared else Apart(direct), new_nonce(), SAFE)
        async with anyio.create_task_group() as group:
            for evaluator in metrics.judged(MetricSwitches(), services):
                group.start_soon(run_evaluator, evaluator, context, SAFE)
    return sum(spent), len(spent)


def _answers(tool: str) -> dict[str, Any]:
    if tool == "answer_verdicts":
        entries = [_entry(number, "verdict", "FAIL") for number in range(1, len(CRITERIA) + 1)]
        return {"criteria": entries}
    return {"findings": [_entry(1, "finding", "NOT_APPLICABLE")]}


def _entry(number: int, key: str, word: str) -> dict[str, Any]:
    return {"number": number, "evidence": [], "reasoning": "It can be seen.", key: word}


def main(votes: Sequence[int] = (1, 3)) -> None:
    """Print what a run costs, and a judgement."""
    for count in votes:
        (before, asked), (now, requests) = (anyio.run(cost, count, shared) for shared in (False, True))
        print(f"{count} votes: ${before:.3f} in {asked} requests apart, ${now:.3f} in {requests} with a shared prefix")
        print(f"  ratio {now / before:.2f}; a judgement ${now / requests:.3f}")


if __name__ == "__main__":
    print(json.dumps({"turns": TURNS, "model": MODEL}))
    main()
