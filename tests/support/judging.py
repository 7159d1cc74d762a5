"""A judge in front of a scripted API, without a session."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from tests.builders import suite
from tests.support.cited import typed
from tests.support.patience import PATIENCE
from tests.support.scripted_api import ApiRequest, Message, ScriptedApi, tool_call
from zelda_ci.domain.details import FulfillmentDetails
from zelda_ci.domain.measures import EvalResult
from zelda_ci.domain.run import EvalContext
from zelda_ci.domain.session import ApiUsage, SessionTranscript
from zelda_ci.domain.suite import JudgeSettings
from zelda_ci.domain.workspace import Changes, Workspace
from zelda_ci.judge.anthropic_judge import AnthropicJudge
from zelda_ci.judge.rendering import new_nonce
from zelda_ci.metrics.base import JudgeServices, run_evaluator
from zelda_ci.metrics.requirement_fulfillment import RequirementFulfillment
from zelda_ci.redact import Redactor

PASSED = [{"where": "turn 1", "quote": "found it"}]


def judge(
    url: str,
    *,
    model: str = "claude-sonnet-5-5",
    notify: Callable[[str], None] = print,
    forms: Sequence[type[BaseModel]] = (),
    max_retries: int = 15,
    **settings: Any,
) -> AnthropicJudge:
    """A judge whose key is fake and whose every token costs a dollar."""
    given = JudgeSettings(**{"timeout_seconds": PATIENCE, **settings})
    fixed = (url, "sk-ant-fake-judge", model, given, Redactor(), _price, notify)
    return AnthropicJudge(*fixed, forms=forms, max_retries=max_retries)


def _price(model: str, usage: Mapping[str, Any]) -> float:
    return float(usage.get("output_tokens", 0))


async def fulfillment(
    api: ScriptedApi,
    transcript: SessionTranscript,
    *criteria: str,
    changes: Changes | None = None,
    workspace: Workspace | None = None,
    votes: int = 1,
    undecided: str = "fail",
    answer_criteria: Sequence[str] = (),
    max_lookups: int = 20,
    **access: Any,
) -> EvalResult:
    """Evaluate a session, without a workspace unless there is one."""
    settings = {"votes": votes, "maxLookups": max_lookups}
    about: dict[str, Any] = {"acceptanceCriteria": list(criteria), "answerCriteria": list(answer_criteria)}
    resolved = suite(**about, judge=settings, undecided=undecided)
    context = EvalContext(resolved, workspace, transcript, ApiUsage(), changes)
    evaluator = RequirementFulfillment(JudgeServices(judge(api.url, **access), new_nonce(), Redactor()))
    return await run_evaluator(evaluator, context, Redactor())


def details(result: EvalResult) -> FulfillmentDetails:
    assert isinstance(result.details, FulfillmentDetails)
    return result.details


def said(request: ApiRequest) -> str:
    """Everything that was sent, as the judge reads it."""
    blocks = [block["text"] for message in request.messages for block in message["content"]]
    return "\n".join([str(request.body["system"]), *blocks])


def asked(request: ApiRequest) -> list[int]:
    """Numbers of the criteria that a request is about."""
    body = request.messages[0]["content"][-1]["text"].partition("You have answered")[0]
    return [int(number) for number in re.findall(r"^(\d+)\. ", body, re.MULTILINE)]


def is_part(request: ApiRequest) -> bool:
    return "This is part" in request.messages[0]["content"][-1]["text"]


def answer(*entries: Mapping[str, Any]) -> Message:
    """What a judge says, of a part or in the end."""
    return tool_call("answer_verdicts", {"criteria": typed(entries)})


def verdict(number: int, what: str = "PASS", evidence: Any = PASSED) -> dict[str, Any]:
    return {"number": number, "reasoning": f"Because of {number}.", "verdict": what, "evidence": typed(evidence)}


def finding(number: int, what: str, evidence: Any = ()) -> dict[str, Any]:
    return {**verdict(number, what, list(evidence)), "reasoning": f"Part on {number}."}


def all_pass(request: ApiRequest) -> Message:
    """Every criterion passes, with evidence from the first turn; parts have no evidence."""
    if is_part(request):
        return answer(*(finding(number, "NO_EVIDENCE") for number in asked(request)))
    return answer(*map(verdict, asked(request)))
