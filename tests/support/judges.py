"""A judge that says what it is told to say, and remembers what it was asked."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.support.cited import cite
from zelda_ci.errors import JudgeError
from zelda_ci.judge.base import A, JudgeQuestion

Say = Callable[[JudgeQuestion], dict[str, Any]]


@dataclass
class ScriptedJudge:
    """Implements `judge.base.Judge`; `say` gives the answer to a question, or raises."""

    say: Say
    context_tokens: int = 200_000
    model: str = "claude-judge-1"
    asked: list[JudgeQuestion] = field(default_factory=list)

    async def ask(self, question: JudgeQuestion, form: type[A]) -> A:
        self.asked.append(question)
        return form.model_validate(self.say(question))


_ASKED = re.compile(r"^(\d+)\. (?:tool|rules in) (.+)$", re.MULTILINE)


def asked_about(body: str) -> dict[int, str]:
    """The tools and rules that a question about tool usage is about, by number."""
    return {int(number): name for number, name in _ASKED.findall(body.rpartition('kind="asked">')[2])}


def use(finding: str, *places: tuple[str, str], reasoning: str = "Because.", tool: str = "") -> dict[str, Any]:
    """What is found of a tool or a rule, with where and quote of each place."""
    evidence = [cite(where, quote) for where, quote in places]
    return {"evidence": evidence, "reasoning": reasoning, "verdict": finding, "tool": tool}


def uses(question: JudgeQuestion | str, found: Mapping[str, dict[str, Any] | None]) -> dict[str, Any]:
    """The answer to a question about tool usage: of what is not named, that it does not apply; of None, nothing."""
    asked = asked_about(question if isinstance(question, str) else question.body)
    known = {number: found.get(name, use("NOT_APPLICABLE")) for number, name in asked.items()}
    return {"findings": [{"number": number, **one} for number, one in known.items() if one]}


def finds(found: Mapping[str, dict[str, Any] | None] | None = None) -> ScriptedJudge:
    """A judge of tool usage with the same findings each time, by name."""
    return ScriptedJudge(lambda question: uses(question, found or {}))


def broken() -> ScriptedJudge:
    """A judge that cannot be had."""

    def refuse(question: JudgeQuestion) -> dict[str, Any]:
        raise JudgeError("The judge is away.", code="JUDGE_AWAY")

    return ScriptedJudge(refuse)
