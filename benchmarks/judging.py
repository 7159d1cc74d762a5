"""What does judging a session of 300 turns cost? `python -m benchmarks.judging`.

Both judges share one prefix for all questions and votes, see head and tail of long texts, and look some of them up. The
prices are Zelda's, the tokens those of a scripted API that accounts for prompt caching as the real one does.
"""

import itertools
import json
import random
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from tests.builders import safe, session, suite
from tests.support.judging import is_part, judge
from tests.support.prompt_cache import PromptCache
from tests.support.scripted_api import ApiRequest, Message, ScriptedApi, tool_call
from zelda_ci import metrics
from zelda_ci.domain.kinds import ItemKind
from zelda_ci.domain.manifest import ManifestItem, ToolsManifest
from zelda_ci.domain.run import EvalContext
from zelda_ci.domain.session import ApiUsage, SessionTranscript
from zelda_ci.domain.suite import MetricSwitches
from zelda_ci.judge.rendering import new_nonce
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


# By tool: its calls of 300, and the characters that it is given and returns (means of tenths or twentieths, sorted).
# Measured in the Claude Code sessions that github.com/handgemacht-ai/claude-code-log publishes as its test data: 905
# calls, 842 of them of these tools or their like (MultiEdit, Glob, LS, WebSearch). Half of all results have up to 500
# characters. 15 percent have more than 3,000, and hold three quarters of all that was returned.
REAL: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("session_sizes.json").read_bytes())
# Of text between calls, in the mean.
SAID = 240
# Of commands, those that fail or print words like "error".
TROUBLED = 4


def real_session() -> SessionTranscript:
    """Sizes as in real sessions, in an order that chance has made once and for all."""
    chance = random.Random(14)
    calls = list[tuple[str, int, int]]()
    for tool, sizes in REAL.items():
        orders = [itertools.cycle(chance.sample(sizes[key], len(sizes[key]))) for key in ("given", "returned")]
        calls += [(tool, next(orders[0]), next(orders[1])) for _ in range(sizes["calls"])]
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
        self.usd += pricing.cost_usd(MODEL, tokens.as_json())
        self.requests += 1
        places = LEFT_OUT.findall(json.dumps(request.messages[0]))
        asked = sum(message["role"] == "assistant" for message in request.messages)
        if asked < min(self.look_ups, len(places)):
            turn, call, first_line = map(int, places[asked])
            return tool_call("read_turn", {"turn": turn, "call": call, "first_line": first_line}, tokens=tokens)
        assert request.answer_tool
        self.judgements += not is_part(request)
        return tool_call(request.answer_tool, _answers(request.answer_tool), tokens=tokens)


LEFT_OUT = re.compile(r"read_turn shows them: turn (\d+), call (\d+), first_line (\d+)")


async def judged(transcript: SessionTranscript, votes: int, look_ups: int) -> Bill:
    """One run before both judges."""
    bill = Bill(look_ups)
    with ScriptedApi(bill.answer) as api:
        asked = judge(api.url, model=MODEL, forms=metrics.forms(MetricSwitches()))
        services = JudgeServices(asked, new_nonce(), SAFE)
        resolved = suite(acceptanceCriteria=CRITERIA, judge={"votes": votes, "maxLookups": 20})
        context = EvalContext(resolved, None, transcript, ApiUsage(), None, manifest=ToolsManifest(items=(RULE,)))
        async with anyio.create_task_group() as group:
            for evaluator in metrics.judged(MetricSwitches(), services):
                group.start_soon(run_evaluator, evaluator, context, SAFE)
    return bill


def _answers(tool: str) -> dict[str, Any]:
    numbers = range(1, len(CRITERIA) + 1)
    if tool == "answer_verdicts":
        return {"criteria": [_entry(number, "FAIL") for number in numbers]}
    return {"findings": [_entry(1, "NOT_APPLICABLE")]}


def _entry(number: int, verdict: str) -> dict[str, Any]:
    return {"number": number, "evidence": [], "reasoning": "It can be seen.", "verdict": verdict}


ROWS = (
    # Session, votes, look-ups of each question, and what a judgement may cost in dollars.
    ("sizes as in real sessions", real_session, 1, 0, 0.20),
    ("sizes as in real sessions", real_session, 1, 2, 0.25),
    ("sizes as in real sessions", real_session, 3, 0, 0.08),
    ("sizes as in real sessions", real_session, 3, 2, 0.13),
    ("short outputs only", even_session, 1, 0, 0.16),
    ("short outputs only", even_session, 3, 0, 0.07),
)


def main() -> int:
    """Print what a judgement costs; 1 if one costs more than it may."""
    costs = []
    for name, transcript, votes, look_ups, aim in ROWS:
        bill = anyio.run(judged, transcript(), votes, look_ups)
        costs.append((bill.usd / bill.judgements, aim))
        print(f"{name}, {votes} votes, {look_ups} look-ups: ${bill.usd:.3f} in {bill.requests} requests;", end=" ")
        print(f"a judgement ${costs[-1][0]:.3f} (at most ${aim})", flush=True)
    return int(any(cost > aim for cost, aim in costs))


if __name__ == "__main__":
    sys.exit(main())
