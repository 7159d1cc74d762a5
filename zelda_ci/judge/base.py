"""What evaluators know of a judge: a question in, a validated answer out."""

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from pydantic import BaseModel

from zelda_ci.domain.session import Usage
from zelda_ci.errors import JudgeError

A = TypeVar("A", bound=BaseModel)

CHARS_PER_TOKEN = 4
"""A rule of thumb, on the safe side for English and code."""

ANSWER_CUT = "JUDGE_ANSWER_CUT"
"""Code of the error that says: the answer was longer than the judge may answer."""


@dataclass(frozen=True)
class Question:
    """One question to a judge. Text from a session belongs into fences, see `judge.fence`."""

    name: str
    """Like "requirement-fulfillment"."""
    version: str
    """Of the prompt."""
    system: str
    shared: tuple[str, ...]
    """Blocks that are the same for several questions of a run: sent first, with prompt caching."""
    body: str

    @property
    def tokens(self) -> int:
        """Estimated size."""
        return estimated_tokens(self.system, *self.shared, self.body)


@dataclass(frozen=True)
class Answer(Generic[A]):
    """A valid answer, and what it took to get it, invalid answers and retries included."""

    value: A
    usage: Usage
    cost_usd: float
    attempts: int


class Judge(Protocol):
    """Answers questions in a given form."""

    @property
    def model(self) -> str:
        """The full id of the model that answers."""

    @property
    def context_tokens(self) -> int:
        """The size of its context window."""

    async def ask(self, question: Question, form: type[A]) -> Answer[A]:
        """Ask.

        Raises:
            JudgeError: There is no usable answer; the sentence says why.
        """


class AbsentJudge:
    """Stands for a judge that cannot be had, so that this matters only to whoever asks."""

    def __init__(self, model: str, context_tokens: int, why: JudgeError) -> None:
        self.model = model
        self.context_tokens = context_tokens
        self._why = why

    async def ask(self, question: Question, form: type[A]) -> Answer[A]:
        """Say why there is no answer."""
        raise self._why


def estimated_tokens(*texts: str) -> int:
    """Size of texts, estimated from their length."""
    return -(-sum(map(len, texts)) // CHARS_PER_TOKEN)
