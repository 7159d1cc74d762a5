"""Votes on numbered things: asked several times, asked for again where an answer does not count, each by itself."""

import functools
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from zelda_ci.errors import JudgeError
from zelda_ci.judge.base import ANSWER_CUT, MODEL_SEPARATOR, PromptTooLongError, all_of, voter

# Things in one question: the answers on them fit into an answer of usual length.
MAX_CONCURRENT = 20


class Checked(Protocol):
    """One vote on one thing, checked."""

    @property
    def problem(self) -> str | None:
        """Why it does not count and should be asked for again."""

    @property
    def error(self) -> JudgeError | None:
        """Why there was no answer at all."""


D = TypeVar("D", bound=Checked)
Vote = dict[int, D]


@dataclass
class Ballot(Generic[D]):
    """How votes on some things are cast."""

    numbers: Sequence[int]
    votes: int
    ask: Callable[[Sequence[int], Mapping[int, str], int], Awaitable[Vote[D]]]
    """Asks about some of them, once; with what was wrong the time before, and which vote it is; raises JudgeError."""
    lost: Callable[[JudgeError], D]
    """The vote that could not be had."""
    settled: Callable[[D, D], D]
    """What a vote that did not count and the one that was asked for again come to."""
    notes: list[str] = field(default_factory=list)

    async def cast(self) -> list[Vote[D]]:
        """All votes.

        Raises:
            JudgeError: No question at all was answered, or one was too long.
        """
        return await self._again(await self._first())

    async def _first(self) -> list[Vote[D]]:
        asked = [(batch, vote) for batch in batched(self.numbers) for vote in range(self.votes)]
        calls = [functools.partial(self._asked, batch, {}, vote) for batch, vote in asked]
        # The first one alone: it fills the cache from which the others read.
        answers = [*await _all(calls[:1]), *await _all(calls[1:])]
        errors = [next(filter(None, (draft.error for draft in answer.values())), None) for answer in answers]
        lost = [error for error in errors if error]
        if too_long := next((error for error in lost if error.code == PromptTooLongError.default_code), None):
            # Some of the votes may have fitted: in smaller parts all of them will.
            raise too_long
        if lost and all(draft.error for answer in answers for draft in answer.values()):
            raise lost[0]
        if self.votes > 1:
            self.notes += [f"One of {self.votes} votes could not be had: {error.message}" for error in lost]
        return [
            {number: draft for answer in answers[vote :: self.votes] for number, draft in answer.items()}
            for vote in range(self.votes)
        ]

    async def _again(self, votes: Sequence[Vote[D]]) -> list[Vote[D]]:
        """Ask once more for what does not count, and say why: vote by vote, because each has problems of its own."""
        problems = [{number: draft.problem for number, draft in vote.items() if draft.problem} for vote in votes]
        asked = [(vote, batch) for vote, unsettled in enumerate(problems) for batch in batched(tuple(unsettled))]
        calls = [functools.partial(self._asked, batch, problems[vote], vote) for vote, batch in asked]
        after: list[Vote[D]] = [{} for _ in votes]
        for (vote, _), answer in zip(asked, await _all(calls), strict=True):
            after[vote] |= answer
        errors = dict.fromkeys(draft.error.message for vote in after for draft in vote.values() if draft.error)
        self.notes += [f"The judge could not be asked again: {message}" for message in errors]
        return [
            {n: self.settled(draft, new[n]) if n in new else draft for n, draft in vote.items()}
            for vote, new in zip(votes, after, strict=True)
        ]

    async def _asked(self, numbers: Sequence[int], problems: Mapping[int, str], vote: int) -> Vote[D]:
        """A vote on some things, in halves where the answer on all was too long; what could not be had is in it."""
        try:
            return await self.ask(numbers, {n: problems[n] for n in numbers if n in problems}, vote)
        except JudgeError as problem:
            if problem.code != ANSWER_CUT or len(numbers) == 1:
                return {number: self.lost(problem) for number in numbers}
            half = len(numbers) // 2
            first = await self._asked(numbers[:half], problems, vote)
            return first | await self._asked(numbers[half:], problems, vote)


async def _all(calls: Sequence[Callable[[], Awaitable[Vote[D]]]]) -> list[Vote[D]]:
    """The answers, in order: a question that failed is a vote without verdicts, so that nothing is raised here."""
    return [vote for vote in await all_of(calls) if not isinstance(vote, JudgeError)]


def disagreements(model: str, votes: Sequence[Mapping[int, str]]) -> Iterator[str]:
    """Who said what of which number, in sentences, where different models judge and differ.

    Args:
        model: The judge's, which names all models.
        votes: What each vote says, by number.
    """
    for number in votes[0] if votes and MODEL_SEPARATOR in model else ():
        words = [vote[number] for vote in votes]
        if len(set(words)) > 1:
            said = "; ".join(f"{voter(model, vote)} says {word}" for vote, word in enumerate(words))
            yield f"The models disagree on {number}: {said}."


def numbered(problems: Mapping[int, str]) -> Iterator[str]:
    """Problems of answers, each behind the number that it is about."""
    return (f"{number}. {problem}" for number, problem in problems.items())


def batched(numbers: Sequence[int]) -> list[tuple[int, ...]]:
    """The numbers by the question in which they are asked about."""
    return [tuple(numbers[start : start + MAX_CONCURRENT]) for start in range(0, len(numbers), MAX_CONCURRENT)]
