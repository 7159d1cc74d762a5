"""Asks the judge about acceptance criteria.

In batches, as often as there are votes, and once more where the evidence does not hold.
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from zelda_ci.errors import JudgeError
from zelda_ci.evaluators import verdicts
from zelda_ci.evaluators.evidence import Evidence
from zelda_ci.evaluators.verdicts import Draft, Findings, Verdict, Verdicts
from zelda_ci.judge.base import ANSWER_CUT, CHARS_PER_TOKEN, Judge, Question
from zelda_ci.judge.fence import fence, mark_of
from zelda_ci.judge.parallel import all_of
from zelda_ci.judge.prompts import render
from zelda_ci.transcript.chunker import windowed
from zelda_ci.transcript.synthesizer import CONTEXT_SHARE, Part, Reading, Told

NAME = "requirement-fulfillment"
PROMPT_VERSION = "1"

MOST_AT_ONCE = 20
"""Criteria of one question: the verdicts on them fit into an answer of usual length."""

Ballots = dict[int, list[Verdict]]


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
        told = self._fitted(told)
        ballots = await self._ballots(told)
        drafts = {number: verdicts.drafted(ballots[number], self.evidence.sources) for number in self.criteria}
        again = await self._again(told, {number: draft.problem for number, draft in drafts.items() if draft.problem})
        return {number: verdicts.settled(draft, again.get(number)) for number, draft in drafts.items()}

    def _fitted(self, told: Told) -> Told:
        """Findings can be many; a transcript that is told whole has been measured already."""
        fixed = self._concluding(Told("", is_whole=told.is_whole), self._batches()[0]).tokens
        room = int(CONTEXT_SHARE * self.judge.context_tokens - fixed) * CHARS_PER_TOKEN
        if told.is_whole or len(told.text) <= room:
            return told
        self.notes.append("The findings on the parts of the transcript were too long to be weighed whole.")
        return Told(windowed(told.text, max(room, 0)), is_whole=False)

    async def _ballots(self, told: Told) -> Ballots:
        """Every vote on every criterion; votes that could not be had are noted, unless there is none at all."""
        calls = [
            functools.partial(self._ask, told, batch, None) for batch in self._batches() for _ in range(self.votes)
        ]
        # The first one alone: it fills the cache from which the others read.
        answers = [*await all_of(calls[:1]), *await all_of(calls[1:])]
        ballots: Ballots = {number: [] for number in self.criteria}
        for start in range(0, len(answers), self.votes):
            cast = answers[start : start + self.votes]
            lost = [one for one in cast if isinstance(one, JudgeError)]
            if len(lost) == self.votes:
                raise lost[0]
            self.notes += [f"One of {self.votes} votes could not be had: {one.message}" for one in lost]
            for answer in cast:
                for number, verdict in {} if isinstance(answer, JudgeError) else answer.items():
                    ballots[number].append(verdict)
        return ballots

    async def _again(self, told: Told, problems: Mapping[int, str]) -> dict[int, Draft]:
        if not problems:
            return {}
        numbers = tuple(problems)
        batches = [numbers[start : start + MOST_AT_ONCE] for start in range(0, len(numbers), MOST_AT_ONCE)]
        answers = await all_of([functools.partial(self._ask, told, batch, problems) for batch in batches])
        drafts: dict[int, Draft] = {}
        for answer in answers:
            if isinstance(answer, JudgeError):
                self.notes.append(f"The judge could not be asked again: {answer.message}")
                continue
            drafts |= {number: verdicts.drafted([one], self.evidence.sources) for number, one in answer.items()}
        return drafts

    async def _ask(self, told: Told, numbers: Sequence[int], problems: Mapping[int, str] | None) -> dict[int, Verdict]:
        question = self._concluding(told, numbers)
        if problems:
            question = self._repeated(question, [(number, problems[number]) for number in numbers])
        try:
            answer = (await self.judge.ask(question, Verdicts)).value
        except JudgeError as problem:
            if problem.code != ANSWER_CUT or len(numbers) == 1:
                raise
            half = len(numbers) // 2
            first = await self._ask(told, numbers[:half], problems)
            return first | await self._ask(told, numbers[half:], problems)
        return verdicts.by_number(answer, numbers)

    def _batches(self) -> list[tuple[int, ...]]:
        numbers = tuple(self.criteria)
        return [numbers[start : start + MOST_AT_ONCE] for start in range(0, len(numbers), MOST_AT_ONCE)]

    def _concluding(self, told: Told, numbers: Sequence[int]) -> Question:
        kind = "transcript" if told.is_whole else "findings"
        body = render(
            "fulfillment",
            criteria=self._listed(numbers),
            is_whole=told.is_whole,
            has_files=self.evidence.has_files,
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
