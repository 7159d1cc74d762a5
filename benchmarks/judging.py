"""What does judging cost? Both judges of a session of 300 turns, now and as before they shared what they see.

python -m benchmarks.judging

Before: requirement fulfillment caches its own prefix for its votes, tool usage is asked once and pays the transcript in
full. So do parts of long transcripts, which are cut here as they are now. Nothing is looked up, and transcripts are
shown whole. Now: one prefix for both judges and all votes, and head and tail of long texts, of which each question
looks up some. The prices are Zelda's, the tokens those of a scripted API that accounts for prompt caching as the real
one does.
"""

import itertools
import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import anyio

from tests.builders import safe, session, suite
from tests.support.judging import judge
from tests.support.prompt_cache import PromptCache
from tests.support.scripted_api import ApiRequest, Message, ScriptedApi, tool_call
from zelda_ci import metrics
from zelda_ci.domain.evaluation import EvalContext
from zelda_ci.domain.kinds import ItemKind
from zelda_ci.domain.manifest import ManifestItem, ToolsManifest
from zelda_ci.domain.measures import Metric
from zelda_ci.domain.session import ApiUsage, SessionTranscript
from zelda_ci.domain.suite import MetricSwitches
from zelda_ci.judge.base import A, Judge, JudgeAnswer, JudgeQuestion
from zelda_ci.judge.prompts import new_nonce
from zelda_ci.metrics.base import JudgeServices, run_evaluator
from zelda_ci.model_proxy import pricing
from zelda_ci.redact import Redactor

MODEL = "claude-sonnet-5-5"
TURNS = 300
SAFE = Redactor()
CRITERIA = ["It works.", "It is tested.", "Nothing else was changed."]
RULE = ManifestItem(
    kind=ItemKind.RULE, name=SAFE("CLAUDE.md"), file=SAFE("CLAUDE.md"), loaded=True, text=SAFE("Run the tests.")
)


@dataclass(frozen=True)
class Sizes:
    """Characters of what a tool is given and returns: the means of tenths or twentieths, from small to large."""

    calls: int
    """Of 300."""
    given: tuple[int, ...]
    returned: tuple[int, ...]


# Measured in the Claude Code sessions that github.com/handgemacht-ai/claude-code-log publishes as its test data: 905
# calls, 842 of them of these tools or their like (MultiEdit, Glob, LS, WebSearch). Half of all results have up to 500
# characters. 15 percent have more than 3,000, and hold three quarters of all that was returned.
REAL = {
    "Bash": Sizes(
        92,
        (35, 48, 62, 74, 86, 99, 117, 161, 298, 1057),
        (0, 15, 37, 61, 91, 127, 151, 180, 212, 243, 297, 340, 462, 586, 723, 1166, 1404, 1731, 3572, 12357),
    ),
    "Read": Sizes(
        62,
        (33, 47, 54, 56, 60, 62, 67, 73, 79, 85),
        (
            311,
            555,
            738,
            959,
            1068,
            1209,
            1460,
            1746,
            2016,
            2200,
            2689,
            3437,
            4055,
            4861,
            5473,
            6174,
            7812,
            *(12032, 19233, 44628),
        ),
    ),
    "Edit": Sizes(
        68,
        (183, 313, 410, 527, 664, 805, 1089, 1606, 2323, 6414),
        (95, 122, 213, 319, 374, 448, 514, 582, 645, 695, 742, 776, 831, 893, 970, 1072, 1233, 1547, 1928, 5675),
    ),
    "TodoWrite": Sizes(37, (219, 292, 374, 457, 616, 684, 775, 941, 1240, 1494), (160,)),
    "Grep": Sizes(26, (7, 12, 17, 29, 42, 57, 71, 84, 92, 117), (14, 16, 19, 59, 90, 175, 596, 1071, 1790, 6017)),
    "WebFetch": Sizes(
        9, (44, 57, 62, 65, 72, 178, 192, 222, 255, 300), (35, 171, 1062, 1392, 1808, 2587, 3146, 3453, 3772, 16970)
    ),
    "Write": Sizes(
        6, (84, 276, 793, 1453, 2782, 3732, 4373, 5350, 6092, 7046), (77, 78, 84, 92, 94, 106, 112, 115, 2130, 4576)
    ),
}
# Of text between calls, in the mean.
SAID = 240
# Of commands, those that fail or print words like "error".
TROUBLED = 4


def real_session() -> SessionTranscript:
    """Sizes as in real sessions, in an order that chance has made once and for all."""
    chance = random.Random(14)
    calls = list[tuple[str, int, int]]()
    for tool, sizes in REAL.items():
        orders = [itertools.cycle(chance.sample(known, len(known))) for known in (sizes.given, sizes.returned)]
        calls += [(tool, next(orders[0]), next(orders[1])) for _ in range(sizes.calls)]
    chance.shuffle(calls)
    steps = []
    for number, (tool, given, returned) in enumerate(calls, start=1):
        trouble = "error: it failed" if tool == "Bash" and number % TROUBLED == 0 else "done"
        steps.append(
            f"{tool} {_text(given, f'given in {number}')} -> {_text(returned, f'returned in {number}')}{trouble}"
        )
    told = session(*steps)
    said = [turn.replace(text=safe(_text(SAID, f"said in {turn.index}"))) for turn in told.turns]
    return told.replace(entries=tuple(said))


def even_session() -> SessionTranscript:
    """Outputs of the same size, all of them short enough to be shown whole."""
    output = "\n".join(f"src/module_{line}.py:{line}: a line of output as tools print it" for line in range(16))
    return session(*[f"Bash step {turn} -> {output}" for turn in range(TURNS)])


def _text(size: int, what: str) -> str:
    """Lines of the length that lines of code and of output have."""
    lines = (f"{number:5} the line {number} of what was {what}" for number in itertools.count(1))
    return "\n".join(itertools.islice(lines, size // 40 + 1))[:size]


class Apart:
    """A judge that is asked as before prefixes were shared."""

    def __init__(self, inner: Judge) -> None:
        self.model, self.context_tokens, self._inner = inner.model, inner.context_tokens, inner

    async def ask(self, question: JudgeQuestion, form: type[A]) -> JudgeAnswer[A]:
        """Put what is common where it was: before the mark in the last question of fulfillment, else into the body."""
        common = question.common
        if common:
            system = f"{common.system}\n{question.system}"
            if question.name.startswith("tool-usage") or question.name.endswith("-part"):
                body = "\n\n".join((*common.blocks, question.body))
                question = replace(question, system=system, body=body, common=None)
            else:
                question = replace(question, system=system, shared=question.blocks, common=None)
        return await self._inner.ask(question, form)


@dataclass
class Bill:
    """What one run before both judges takes."""

    look_ups: int
    """Of each question about the whole."""
    usd: float = 0
    requests: int = 0
    judgements: int = 0
    cache: PromptCache = field(default_factory=PromptCache)

    def answer(self, request: ApiRequest) -> Message:
        """Look up, then answer."""
        tokens = self.cache.tokens(request)
        self.usd += pricing.cost_usd(MODEL, pricing.from_usage(tokens.as_json()))
        self.requests += 1
        places = LEFT_OUT.findall(json.dumps(request.messages[0]))
        asked = sum(message["role"] == "assistant" for message in request.messages)
        if asked < min(self.look_ups, len(places)):
            turn, call, first_line = map(int, places[asked])
            return tool_call("read_turn", {"turn": turn, "call": call, "first_line": first_line}, tokens=tokens)
        assert request.answer_tool
        self.judgements += request.answer_tool in CONCLUSIONS
        return tool_call(request.answer_tool, _answers(request.answer_tool), tokens=tokens)


LEFT_OUT = re.compile(r"read_turn shows them: turn (\d+), call (\d+), first_line (\d+)")
CONCLUSIONS = {"answer_verdicts", "answer_tool_findings"}


async def judged(transcript: SessionTranscript, votes: int, *, is_shared: bool, look_ups: int = 0) -> Bill:
    """One run before both judges."""
    bill = Bill(look_ups)
    with ScriptedApi(bill.answer) as api:
        direct = judge(api.url, model=MODEL, forms=metrics.forms(MetricSwitches()))
        services = JudgeServices(direct if is_shared else Apart(direct), new_nonce(), SAFE)
        async with anyio.create_task_group() as group:
            for evaluator in metrics.judged(MetricSwitches(), services):
                cast = votes if is_shared or evaluator.metric is Metric.REQUIREMENT_FULFILLMENT else 1
                settings = {"votes": cast, "maxLookups": 20 if is_shared else 0}
                resolved = suite(acceptanceCriteria=CRITERIA, judge=settings)
                manifest = ToolsManifest(items=(RULE,))
                context = EvalContext(resolved, None, transcript, ApiUsage(), None, manifest=manifest)
                group.start_soon(run_evaluator, evaluator, context, SAFE)
    return bill


def _answers(tool: str) -> dict[str, Any]:
    numbers = range(1, len(CRITERIA) + 1)
    match tool:
        case "answer_verdicts":
            return {"criteria": [_entry(number, verdict="FAIL") for number in numbers]}
        case "answer_part_findings":
            return {"criteria": [_entry(number, finding="NO_EVIDENCE", facts="None.") for number in numbers]}
        case "answer_tool_findings":
            return {"findings": [_entry(1, finding="NOT_APPLICABLE")]}
        case _:
            return {"observations": []}


def _entry(number: int, **words: str) -> dict[str, Any]:
    return {"number": number, "evidence": [], "reasoning": "It can be seen.", **words}


def _rows() -> Iterator[tuple[str, SessionTranscript, int, int]]:
    real, even = real_session(), even_session()
    yield from (("sizes as in real sessions", real, votes, look_ups) for votes in (1, 3) for look_ups in (0, 2))
    yield from (("short outputs only", even, votes, 0) for votes in (1, 3))


def main() -> None:
    """Print what a run costs, and a judgement."""
    for name, transcript, votes, look_ups in _rows():
        before = anyio.run(lambda: judged(transcript, votes, is_shared=False))  # noqa: B023
        now = anyio.run(lambda: judged(transcript, votes, is_shared=True, look_ups=look_ups))  # noqa: B023
        print(f"{name}, {votes} votes, {look_ups} look-ups for each question")
        for when, bill in (("before", before), ("now", now)):
            each = bill.usd / bill.judgements
            print(f"  {when:6} ${bill.usd:.3f} in {bill.requests} requests; a judgement ${each:.3f}")
        ratio = (now.usd / now.judgements) / (before.usd / before.judgements)
        print(f"  ratio {now.usd / before.usd:.2f} of a run, {ratio:.2f} of a judgement")


if __name__ == "__main__":
    print(json.dumps({"turns": TURNS, "model": MODEL}))
    main()
