"""A judge that says what it is told to say, and remembers what it was asked."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from zelda_ci.domain.session import Usage
from zelda_ci.errors import JudgeError
from zelda_ci.judge.base import A, JudgeAnswer, JudgeQuestion

Say = Callable[[JudgeQuestion], dict[str, Any]]


@dataclass
class ScriptedJudge:
    """Implements `judge.base.Judge`; `say` gives the answer to a question, or raises."""

    say: Say
    context_tokens: int = 200_000
    model: str = "claude-judge-1"
    asked: list[JudgeQuestion] = field(default_factory=list)

    async def ask(self, question: JudgeQuestion, form: type[A]) -> JudgeAnswer[A]:
        self.asked.append(question)
        return JudgeAnswer(form.model_validate(self.say(question)), Usage(), 0.0, 1)


def says(**answer: Any) -> ScriptedJudge:
    """A judge with one answer to everything."""
    return ScriptedJudge(lambda _: {"effectiveness": 80, "reasoning": "Good use.", **answer})


def broken() -> ScriptedJudge:
    """A judge that cannot be had."""

    def refuse(question: JudgeQuestion) -> dict[str, Any]:
        raise JudgeError("The judge is away.", code="JUDGE_AWAY")

    return ScriptedJudge(refuse)
