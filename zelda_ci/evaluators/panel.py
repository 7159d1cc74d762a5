"""Asks the judge about acceptance criteria.

In batches, as often as there are votes, and once more where the evidence does not hold.
"""

import functools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from zelda_ci.errors import JudgeError
from zelda_ci.evaluators import verdicts
from zelda_ci.evaluators.evidence import Evidence
from zelda_ci.evaluators.verdicts import Draft, Findings, Verdicts
from zelda_ci.judge.base import ANSWER_CUT, CHARS_PER_TOKEN, Judge, Question
from zelda_ci.judge.fence import fence, mark_of
from zelda_ci.judge.parallel import all_of
from zelda_ci.judge.prompts import render
from zelda_ci.transcript.chunker import windowed
from zelda_ci.transcript.synthesizer import CONTEXT_SHARE, Part, Reading, Told

NAME = "requirement-fulfillment"
PROMPT_VERSION = "2"

MOST_AT_ONCE = 20
"""Criteria of one question: the verdicts on them fit into an answer of usual length."""

Vote = dict[int, Draft]
"""One vote on every criterion, by number."""


@dataclass
class Panel:
    """One run's criteria before the judge."""

    judge: Judge
    nonce: str
    criteria: Mapping[int, str]
    """By number, from 1."""
    evidence: Evidence
    votes: int
    notes: list[str] = field(default_factory=list)

    def reading(self) -> Reading[Findings, Mapping[int, Draft]]:
        """How the transcript is to be read."""
        return Reading(
            nonce=self.nonce,
            fixed_tokens=self._concluding(Told("", is_whole=False), self._batches()[0]).tokens,
            question=self._about_part,
            finding=Findings,
            tell=functools.partial(verdicts.told, numbers=tuple(self.criteria)),
            conclude=self._conclude,
            merge=functools.partial(verdicts.merged, numbers=tuple(self.criteria), sources=self.evidence.sources),
        )

    async def _conclude(self, told: Told) -> Mapping[int, Draft]:
        """Raises JudgeError where no question at all was answered."""
        told = self._fitted(told)
        votes = await self._again(told, await self._votes(told))
        return {number: verdicts.decided([vote[number] for vote in votes]) for number in self.criteria}

    def _fitted(self, told: Told) -> Told:
        """Findings can be many; a transcript that is told whole has been measured already."""
        fixed = self._concluding(Told("", is_whole=told.is_whole), self._batches()[0]).tokens
        room = int(CONTEXT_SHARE * self.judge.context_tokens - fixed) * CHARS_PER_TOKEN
        if told.is_whole or len(told.text) <= room:
            return told
        self.notes.append("The findings on the parts of the transcript were too long to be weighed whole.")
        return Told(windowed(told.text, max(room, 0)), is_whole=False)

    async def _votes(self, told: Told) -> list[Vote]:
        """Every vote on every criterion, each checked by itself; lost ones are noted."""
        asked = [batch for batch in self._batches() for _ in range(self.votes)]
        calls = [functools.partial(self._ask, told, batch) for batch in asked]
        # The first one alone: it fills the cache from which the others read.
        answers = [*await _all(calls[:1]), *await _all(calls[1:])]
        lost = [error for answer in answers if (error := next(filter(None, (d.error for d in answer.values())), None))]
        if lost and all(draft.error for answer in answers for draft in answer.values()):
            raise lost[0]
        if self.votes > 1:
            self.notes += [f"One of {self.votes} votes could not be had: {error.message}" for error in lost]
        return [
            {number: draft for answer in answers[vote :: self.votes] for number, draft in answer.items()}
            for vote in range(self.votes)
        ]

    async def _again(self, told: Told, votes: Sequence[Vote]) -> list[Vote]:
        """Ask once more for what does not count, and say why: vote by vote, because each has problems of its own."""
        problems = [{number: draft.problem for number, draft in vote.items() if draft.problem} for vote in votes]
        asked = [(vote, batch) for vote, found in enumerate(problems) for batch in _batched(tuple(found))]
        calls = [functools.partial(self._ask, told, batch, problems[vote]) for vote, batch in asked]
        after: list[Vote] = [{} for _ in votes]
        for (vote, _), answer in zip(asked, await _all(calls), strict=True):
            after[vote] |= answer
        errors = dict.fromkeys(draft.error.message for vote in after for draft in vote.values() if draft.error)
        self.notes += [f"The judge could not be asked again: {message}" for message in errors]
        return [
            {number: verdicts.settled(draft, new.get(number)) for number, draft in vote.items()}
            for vote, new in zip(votes, after, strict=True)
        ]

    async def _ask(self, told: Told, numbers: Sequence[int], problems: Mapping[int, str] | None = None) -> Vote:
        """A vote on some criteria; what could not be had is in it, with the reason."""
        question = self._concluding(told, numbers)
        if problems:
            question = self._repeated(question, [(number, problems[number]) for number in numbers])
        try:
            answer = (await self.judge.ask(question, Verdicts)).value
        except JudgeError as problem:
            if problem.code != ANSWER_CUT or len(numbers) == 1:
                return dict.fromkeys(numbers, verdicts.not_judged(problem))
            half = len(numbers) // 2
            first = await self._ask(told, numbers[:half], problems)
            return first | await self._ask(told, numbers[half:], problems)
        return verdicts.drafts_of(answer, numbers, self.evidence.sources)

    def _batches(self) -> list[tuple[int, ...]]:
        return _batched(tuple(self.criteria))

    def _concluding(self, told: Told, numbers: Sequence[int]) -> Question:
        kind = "transcript" if told.is_whole else "findings"
        body = render(
            "fulfillment",
            criteria=self._listed(numbers),
            is_whole=told.is_whole,
            has_files=self.evidence.has_files,
            has_checks=self.evidence.has_checks,
        )
        shared = (*self.evidence.blocks, fence(kind, told.text, self.nonce))
        return Question(NAME, PROMPT_VERSION, self._system(), shared, body)

    def _repeated(self, question: Question, problems: Sequence[tuple[int, str]]) -> Question:
        body = render("fulfillment-again", question=question.body, problems=problems)
        return Question(question.name, question.version, question.system, question.shared, body)

    def _about_part(self, part: Part) -> Question:
        body = render(
            "fulfillment-part",
            part=part,
            transcript=fence("transcript", part.text, self.nonce),
            criteria=self._listed(tuple(self.criteria)),
        )
        return Question(f"{NAME}-part", PROMPT_VERSION, self._system(), (), body)

    def _listed(self, numbers: Sequence[int]) -> list[tuple[int, str]]:
        return [(number, self.criteria[number]) for number in numbers]

    def _system(self) -> str:
        return render("fulfillment-system", nonce=self.nonce, mark=mark_of(self.nonce))


async def _all(calls: Sequence[Callable[[], Awaitable[Vote]]]) -> list[Vote]:
    """The answers, in order: a question that failed is a vote without verdicts, so that nothing is raised here."""
    return [vote for vote in await all_of(calls) if not isinstance(vote, JudgeError)]


def _batched(numbers: tuple[int, ...]) -> list[tuple[int, ...]]:
    return [numbers[start : start + MOST_AT_ONCE] for start in range(0, len(numbers), MOST_AT_ONCE)]
