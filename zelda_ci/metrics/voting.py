"""A judge before numbered things: asked by vote, asked again where an answer does not count, each vote by itself."""

import functools
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel, BeforeValidator, Field

from zelda_ci.domain.details import Citation
from zelda_ci.errors import JudgeError
from zelda_ci.judge.base import (
    ANSWER_CUT,
    MODEL_SEPARATOR,
    Judge,
    JudgeQuestion,
    Lookups,
    PromptTooLongError,
    all_of,
    majority,
    voter,
)
from zelda_ci.judge.prompts import repeated
from zelda_ci.judge.transcript import CheckedFinding, EarlierFindings, TranscriptPart, TranscriptQuery
from zelda_ci.metrics.gathering import JudgeEvidence
from zelda_ci.redact import Redactor

# Things in one question: the answers on them fit into an answer of usual length.
MAX_CONCURRENT = 20

# Of what a judge says, as it is stored and told to others: asked for is less.
MAX_REASONING_LENGTH = 1000
MAX_QUOTE_LENGTH = 600
MAX_WHERE_LENGTH = 300

NO_VERDICT = "The judge gave no verdict on it."
NO_MAJORITY = "The votes split without a majority."
NOTHING_READ = EarlierFindings("", is_whole=False, outline="(none)")

# A verdict, what it is about, and the answers that hold it: on the session as a whole, and on a part of it.
V = TypeVar("V", bound=StrEnum)
S = TypeVar("S")
A = TypeVar("A", bound=BaseModel)
P = TypeVar("P", bound=BaseModel)


def _text(value: Any) -> Any:
    return "" if value is None else value


Text = Annotated[str, BeforeValidator(_text)]


class VerdictCitation(BaseModel):
    """A citation as the judge gives it."""

    where: Text = Field(description="The place, in one of the forms that the question names.")
    quote: Text = Field(description="Copied from there character by character; empty for an absence.", default="")


@dataclass(frozen=True)
class Draft(Generic[V]):
    """What is known so far about one thing: one vote that was checked, or what several come to."""

    verdict: V | None
    """Nothing where it is not judged."""
    reasoning: str
    evidence: tuple[VerdictCitation, ...] = ()
    """Citations that hold."""
    dropped: tuple[str, ...] = ()
    """Why other citations were left out."""
    tool: str = ""
    """What was missed, where it is a part of what was asked about."""
    problem: str | None = None
    """Why the answer does not count and should be asked for again; it is not judged then."""
    error: JudgeError | None = None
    """Why there was no answer at all."""
    split: dict[str, int] | None = None

    def told(self, redact: Redactor) -> dict[str, Any]:
        """What results store of it."""
        return {
            "reasoning": redact(shortened(self.reasoning, MAX_REASONING_LENGTH)),
            "evidence": tuple(_cited(place, redact) for place in self.evidence),
            "split": self.split,
        }


def shortened(text: str, length: int) -> str:
    """A text of at most some length."""
    return text if len(text) <= length else f"{text[: length - 2].rstrip()} …"


def _cited(place: VerdictCitation, redact: Redactor) -> Citation:
    quote = redact(shortened(place.quote, MAX_QUOTE_LENGTH)) if place.quote.strip() else None
    return Citation(where=redact(shortened(place.where, MAX_WHERE_LENGTH)), quote=quote)


def not_judged(why: str | JudgeError, *, again: bool = False) -> Draft[Any]:
    """A draft without a verdict; `again` where the judge should be asked once more."""
    if isinstance(why, JudgeError):
        return Draft(None, why.message, error=why)
    return Draft(None, why, problem=why if again else None)


def one_vote(answers: Sequence[tuple[object, Draft[V]]]) -> Draft[V]:
    """What a judge says of one thing in one answer: the first that counts, and none where they contradict each other.

    Args:
        answers: Each verdict as it was given, and as it was checked.
    """
    if len({given for given, _ in answers}) > 1:
        return not_judged("The judge gave verdicts on it that contradict each other.", again=True)
    drafts = [draft for _, draft in answers] or [not_judged(NO_VERDICT, again=True)]
    return next((draft for draft in drafts if draft.verdict), drafts[0])


def decided(votes: Sequence[Draft[V]], stored: Callable[[V | None], str], undecided: V | None = None) -> Draft[V]:
    """What the votes on one thing come to.

    More than half of all votes that were asked for must agree, so that votes which do not count help no side. Where
    they do not agree, votes that are missing might have decided, and the thing is not judged.

    Args:
        votes: All that were asked for.
        stored: How results call a verdict.
        undecided: The verdict where all votes are there and split, if there is one.
    """
    consensus = majority([vote.verdict for vote in votes])
    split = None if consensus.is_unanimous else {stored(verdict): count for verdict, count in consensus.split.items()}
    missing = [vote for vote in votes if vote.verdict is None]
    if consensus.verdict is not None:
        # The fullest evidence speaks; by text among equals, because the order in which votes arrive is chance.
        agreed = (vote for vote in votes if vote.verdict is consensus.verdict)
        return replace(max(agreed, key=lambda vote: (len(vote.evidence), vote.reasoning)), split=split)
    if missing and consensus.is_unanimous:
        return missing[0]
    if missing:
        why = f"{NO_MAJORITY[:-1]}, and {len(missing)} of {len(votes)} votes are missing: {missing[0].reasoning}"
        return replace(not_judged(why), split=split)
    return Draft(undecided, NO_MAJORITY, split=split)


Vote = dict[int, Draft[V]]


@dataclass
class Panel(ABC, Generic[S, A, P, V]):
    """What a run is judged on, before the judge."""

    answer: ClassVar[type[Any]]
    """The form of an answer in the end."""
    part_answer: ClassVar[type[Any]]
    """And on a part of a long transcript."""

    judge: Judge
    nonce: str
    subjects: Mapping[int, S]
    """What is judged, by number from 1."""
    evidence: JudgeEvidence
    lookups: Lookups | None
    votes: int
    notes: list[str] = field(default_factory=list, kw_only=True)

    @abstractmethod
    def concluding(self, earlier: EarlierFindings, numbers: Sequence[int]) -> JudgeQuestion:
        """The question about the session as a whole."""

    @abstractmethod
    def about_part(self, part: TranscriptPart) -> JudgeQuestion:
        """The question about a part of a long transcript."""

    @abstractmethod
    def checked(self, answer: A, numbers: Sequence[int]) -> Vote[V]:
        """One vote on everything that was asked about, checked."""

    @abstractmethod
    def checked_part(self, answer: P) -> CheckedFinding[P]:
        """What a part shows, with those of its quotes that were found."""

    @abstractmethod
    def merged(self, answers: Sequence[P]) -> Vote[V]:
        """The conservative rule over all parts, where nobody could conclude."""

    @abstractmethod
    def decided(self, votes: Sequence[Draft[V]]) -> Draft[V]:
        """What the votes on one thing come to."""

    def reading(self) -> TranscriptQuery[P, Vote[V]]:
        """How the transcript is to be read."""
        return TranscriptQuery(
            nonce=self.nonce,
            fixed_tokens=max(self.concluding(NOTHING_READ, batch).tokens for batch in batched(tuple(self.subjects))),
            question=self.about_part,
            finding=self.part_answer,
            finish=self.conclude,
            merge=self.merged,
            can_look_up=self.lookups is not None,
            check=self.checked_part,
        )

    async def conclude(self, earlier: EarlierFindings) -> Vote[V]:
        """Put everything to the vote.

        Raises:
            JudgeError: No question at all was answered, or one was too long.
        """
        votes = await self._again(earlier, await self._first(earlier))
        self.notes += _disagreements(self.judge.model, votes)
        return {number: self.decided([vote[number] for vote in votes]) for number in self.subjects}

    async def _first(self, earlier: EarlierFindings) -> list[Vote[V]]:
        asked = [(batch, vote) for batch in batched(tuple(self.subjects)) for vote in range(self.votes)]
        calls = [functools.partial(self._asked, earlier, batch, {}, vote) for batch, vote in asked]
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

    async def _again(self, earlier: EarlierFindings, votes: Sequence[Vote[V]]) -> list[Vote[V]]:
        """Ask once more for what does not count, and say why: vote by vote, because each has problems of its own."""
        problems = [{number: draft.problem for number, draft in vote.items() if draft.problem} for vote in votes]
        asked = [(vote, batch) for vote, unsettled in enumerate(problems) for batch in batched(tuple(unsettled))]
        calls = [functools.partial(self._asked, earlier, batch, problems[vote], vote) for vote, batch in asked]
        after: list[Vote[V]] = [{} for _ in votes]
        for (vote, _), answer in zip(asked, await _all(calls), strict=True):
            after[vote] |= answer
        errors = dict.fromkeys(draft.error.message for vote in after for draft in vote.values() if draft.error)
        self.notes += [f"The judge could not be asked again: {message}" for message in errors]
        return [
            {number: _settled(draft, new[number]) if number in new else draft for number, draft in vote.items()}
            for vote, new in zip(votes, after, strict=True)
        ]

    async def _asked(
        self, earlier: EarlierFindings, numbers: Sequence[int], problems: Mapping[int, str], vote: int
    ) -> Vote[V]:
        """A vote on some things, in halves where the answer on all was too long; what could not be had is in it."""
        question = replace(self.concluding(earlier, numbers), vote=vote)
        if wrong := [f"{number}. {problems[number]}" for number in numbers if number in problems]:
            question = repeated(question, wrong, self.nonce)
        try:
            return self.checked((await self.judge.ask(question, self.answer)).value, numbers)
        except JudgeError as problem:
            if problem.code != ANSWER_CUT or len(numbers) == 1:
                return {number: not_judged(problem) for number in numbers}
            half = len(numbers) // 2
            first = await self._asked(earlier, numbers[:half], problems, vote)
            return first | await self._asked(earlier, numbers[half:], problems, vote)


def _settled(first: Draft[V], again: Draft[V]) -> Draft[V]:
    """A vote that did not count after it was asked for once more; what fails twice does not count."""
    if again.error:
        return not_judged(f"{first.reasoning} The judge could not be asked again: {again.reasoning}")
    return replace(again, problem=None)


async def _all(calls: Sequence[Callable[[], Awaitable[Vote[V]]]]) -> list[Vote[V]]:
    """The answers, in order: a question that failed is a vote without verdicts, so that nothing is raised here."""
    return [vote for vote in await all_of(calls) if not isinstance(vote, JudgeError)]


def _disagreements(model: str, votes: Sequence[Vote[V]]) -> Iterator[str]:
    """Who said what of which number, in sentences, where different models judge and differ."""
    for number in votes[0] if votes and MODEL_SEPARATOR in model else ():
        words = [str(vote[number].verdict or "notJudged") for vote in votes]
        if len(set(words)) > 1:
            said = "; ".join(f"{voter(model, vote)} says {word}" for vote, word in enumerate(words))
            yield f"The models disagree on {number}: {said}."


def batched(numbers: Sequence[int]) -> list[tuple[int, ...]]:
    """The numbers by the question in which they are asked about."""
    return [tuple(numbers[start : start + MAX_CONCURRENT]) for start in range(0, len(numbers), MAX_CONCURRENT)]
