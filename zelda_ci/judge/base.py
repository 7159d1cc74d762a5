"""What evaluators know of a judge: a question in, a validated answer out; votes, and questions side by side."""

from collections import Counter
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import anyio
from pydantic import BaseModel

from zelda_ci.domain.session import Usage
from zelda_ci.errors import JudgeError

A = TypeVar("A", bound=BaseModel)

# A rule of thumb, on the safe side for English and code.
CHARS_PER_TOKEN = 4

# Code of the error that says: the answer was longer than the judge may answer.
ANSWER_CUT = "JUDGE_ANSWER_CUT"


@dataclass(frozen=True)
class JudgeQuestion:
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
class JudgeAnswer(Generic[A]):
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

    async def ask(self, question: JudgeQuestion, form: type[A]) -> JudgeAnswer[A]:
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

    async def ask(self, question: JudgeQuestion, form: type[A]) -> JudgeAnswer[A]:
        """Say why there is no answer."""
        raise self._why


def estimated_tokens(*texts: str) -> int:
    """Size of texts, estimated from their length."""
    return -(-sum(map(len, texts)) // CHARS_PER_TOKEN)


T = TypeVar("T")

# More requests side by side mostly meet the API's rate limit.
AT_ONCE = 4


async def all_of(calls: Sequence[Callable[[], Awaitable[T]]]) -> list[T | JudgeError]:
    """What each call returned, or why it could not, in the order of the calls."""
    results: dict[int, T | JudgeError] = {}
    slots = anyio.CapacityLimiter(AT_ONCE)

    async def make(position: int) -> None:
        async with slots:
            try:
                results[position] = await calls[position]()
            except JudgeError as problem:
                results[position] = problem

    async with anyio.create_task_group() as group:
        for position in range(len(calls)):
            group.start_soon(make, position)
    return [results[position] for position in range(len(calls))]


V = TypeVar("V", bound=Hashable)


@dataclass(frozen=True)
class Consensus(Generic[V]):
    """The verdict that more than half of the votes have, if there is one, and how they split."""

    verdict: V | None
    split: dict[V, int]

    @property
    def is_unanimous(self) -> bool:
        """Whether all votes are alike."""
        return len(self.split) <= 1


def majority(votes: Sequence[V]) -> Consensus[V]:
    """Count votes: exactly half of them is no majority, and no vote at all is none either."""
    split = dict(Counter(votes).most_common())
    ahead = next(iter(split), None)
    is_majority = ahead is not None and 2 * split[ahead] > len(votes)
    return Consensus(ahead if is_majority else None, split)
