"""One panel for both judges: several votes on numbered items, asked again where one does not count, and a majority."""

import functools
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from zelda_ci.domain.details import Citation, CriterionVerdict
from zelda_ci.domain.session import SessionTranscript
from zelda_ci.errors import JudgeError
from zelda_ci.judge.base import (
    ANSWER_CUT,
    MODEL_SEPARATOR,
    Judge,
    JudgeQuestion,
    Lookups,
    PromptTooLongError,
    all_of,
    voter,
)
from zelda_ci.judge.prompts import repeated
from zelda_ci.judge.transcript import (
    CheckedFinding,
    EarlierFindings,
    QueryResult,
    TranscriptPart,
    TranscriptQuery,
    query_transcript,
)
from zelda_ci.metrics.evidence import Citing
from zelda_ci.metrics.gathering import JudgeEvidence
from zelda_ci.redact import Redactor

# Items in one question: the answers on them fit into an answer of usual length.
MAX_CONCURRENT = 20
# Citations of one item that are looked up.
MAX_PLACES = 10

# Of what a judge says, as it is stored and told to others: asked for is less.
MAX_REASONING_LENGTH = 1000
MAX_QUOTE_LENGTH = 600
MAX_WHERE_LENGTH = 300

NOT_JUDGED = CriterionVerdict.NOT_JUDGED.value
NO_VERDICT = "The judge gave no verdict on it."
NO_EVIDENCE = "it needs evidence, and none was given."
NO_REASON = "it needs a reason, and none was given."
NO_MAJORITY = "The votes split without a majority."

# Stands for findings where the size of a question is measured.
NO_FINDINGS = EarlierFindings("", is_whole=False, outline="(none)")


def _text(value: Any) -> Any:
    return "" if value is None else value


Text = Annotated[str, BeforeValidator(_text)]


class VerdictCitation(BaseModel):
    """A citation as the judge gives it."""

    where: Text = Field(description="The place, in one of the forms that the question names.")
    quote: Text = Field(description="Copied from there character by character; empty for an absence.", default="")


class ItemAnswer(BaseModel):
    """On one item; evidence first, then the reasoning, so that the verdict follows from them."""

    model_config = ConfigDict(populate_by_name=True)

    number: int
    evidence: list[VerdictCitation]
    reasoning: str
    verdict: str


V = TypeVar("V", bound=StrEnum)
Item = TypeVar("Item")


@dataclass(frozen=True)
class Draft(Generic[V]):
    """What is known so far about one item: one vote that was checked, or what several come to."""

    verdict: V | None
    """Absent where it is not judged."""
    reasoning: str
    evidence: tuple[VerdictCitation, ...] = ()
    """Citations that hold."""
    dropped: tuple[str, ...] = ()
    """Why other citations were left out."""
    answer: ItemAnswer | None = None
    """In which a verdict that counts was given."""
    problem: str | None = None
    """Why the answer does not count and should be asked for again."""
    error: JudgeError | None = None
    """Why there was no answer at all."""
    split: Mapping[V | None, int] | None = None
    """How the votes differ."""

    def told(self, redact: Redactor, name: Callable[[V], str] = str) -> dict[str, Any]:
        """Reasoning, evidence and split, as results hold them; `name` is that of a verdict there."""
        evidence = (
            Citation(
                where=redact(shortened(place.where, MAX_WHERE_LENGTH)),
                quote=redact(shortened(place.quote, MAX_QUOTE_LENGTH)) if place.quote.strip() else None,
            )
            for place in self.evidence
        )
        split = {name(verdict) if verdict else NOT_JUDGED: votes for verdict, votes in (self.split or {}).items()}
        reasoning = redact(shortened(self.reasoning, MAX_REASONING_LENGTH))
        return {"reasoning": reasoning, "evidence": tuple(evidence), "split": split or None}


Vote = dict[int, Draft[V]]


def shortened(text: str, length: int) -> str:
    """A text of at most some length."""
    return text if len(text) <= length else f"{text[: length - 2].rstrip()} …"


def not_judged(why: str | JudgeError, *, again: bool = False) -> Draft[Any]:
    """An item without a verdict; `again` where the judge should be asked once more."""
    if isinstance(why, JudgeError):
        return Draft(None, why.message, error=why)
    return Draft(None, why, problem=why if again else None)


class Panel(ABC, Generic[Item, V]):
    """The items of one run before the judge: what is asked, and what its answers come to.

    Args:
        judge: Whom to ask.
        nonce: Of the run's fences.
        items: What is judged, by number from 1.
        evidence: What the judge sees beside the transcript, and what it can cite.
        lookups: What it can look up.
        votes: How often each item is judged.
    """

    forms: ClassVar[tuple[type[BaseModel], type[BaseModel]]]
    """In which a judge answers: in the end, and on a part of a long transcript."""
    words: Mapping[str, V | None]
    """The verdicts that a judge may give; where it gives none, asking again would only cost."""
    order: Sequence[V]
    """Where parts of a transcript disagree, the first of these counts."""
    nothing: ClassVar[str]
    """The word for a part that does not decide."""
    needs_proof: Collection[V]
    """What must rest on a fact that was looked up."""
    needs_evidence: Collection[V]
    """What must cite something that is there."""
    tie: V | None = None
    """What votes without a majority come to where none of them is missing."""

    def __init__(
        self,
        judge: Judge,
        nonce: str,
        items: Mapping[int, Item],
        evidence: JudgeEvidence,
        lookups: Lookups | None,
        votes: int,
    ) -> None:
        self.judge, self.nonce, self.items = judge, nonce, items
        self.evidence, self.lookups, self.votes = evidence, lookups, votes
        self._notes: list[str] = []

    @abstractmethod
    def concluding(self, earlier: EarlierFindings, numbers: Sequence[int]) -> JudgeQuestion:
        """What is asked about some items of the session as a whole."""

    @abstractmethod
    def about_part(self, part: TranscriptPart) -> JudgeQuestion:
        """What is asked about all items of a part of a long transcript."""

    @abstractmethod
    def objection(self, item: Item, answer: ItemAnswer, verdict: V) -> str | None:
        """Why a verdict cannot be true, whatever it cites."""

    @abstractmethod
    def look_up(self, item: Item, place: VerdictCitation) -> Citing:
        """What a citation shows of an item."""

    async def judged(self, transcript: SessionTranscript) -> QueryResult[Mapping[int, Draft[V]]]:
        """What becomes of each item, and what limits the result.

        Raises:
            JudgeError: No question at all was answered.
        """
        query = TranscriptQuery(
            nonce=self.nonce,
            fixed_tokens=max(self.concluding(NO_FINDINGS, numbers).tokens for numbers in self._batched(self.items)),
            question=self.about_part,
            finding=self.forms[1],
            finish=self._conclude,
            merge=self._merged,
            can_look_up=self.lookups is not None,
            check=self._checked_part,
        )
        found = await query_transcript(transcript, self.judge, query)
        return replace(found, notes=(*self.evidence.notes, *found.notes, *self._notes))

    async def _conclude(self, earlier: EarlierFindings) -> Mapping[int, Draft[V]]:
        """Raises JudgeError where no question at all was answered, or one was too long."""
        votes = await self._again(earlier, await self._first(earlier))
        if MODEL_SEPARATOR in self.judge.model:
            self._notes += self._disagreements(votes)
        return {number: self._decided([vote[number] for vote in votes]) for number in self.items}

    async def _first(self, earlier: EarlierFindings) -> list[Vote[V]]:
        asked = [(batch, vote) for batch in self._batched(self.items) for vote in range(self.votes)]
        calls = [functools.partial(self._ask, earlier, batch, {}, vote) for batch, vote in asked]
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
            self._notes += [f"One of {self.votes} votes could not be had: {error.message}" for error in lost]
        return [
            {number: draft for answer in answers[vote :: self.votes] for number, draft in answer.items()}
            for vote in range(self.votes)
        ]

    async def _again(self, earlier: EarlierFindings, votes: Sequence[Vote[V]]) -> list[Vote[V]]:
        """Ask once more for what does not count, and say why: vote by vote, because each has problems of its own."""
        problems = [{number: draft.problem for number, draft in vote.items() if draft.problem} for vote in votes]
        asked = [(vote, batch) for vote, unsettled in enumerate(problems) for batch in self._batched(unsettled)]
        calls = [functools.partial(self._ask, earlier, batch, problems[vote], vote) for vote, batch in asked]
        after = [dict(vote) for vote in votes]
        errors: dict[str, None] = {}
        for (vote, _), answer in zip(asked, await _all(calls), strict=True):
            for number, new in answer.items():
                if new.error:
                    errors[new.error.message] = None
                    before = votes[vote][number].reasoning
                    after[vote][number] = not_judged(f"{before} The judge could not be asked again: {new.reasoning}")
                else:  # what fails twice does not count
                    after[vote][number] = replace(new, problem=None)
        self._notes += [f"The judge could not be asked again: {message}" for message in errors]
        return after

    async def _ask(
        self, earlier: EarlierFindings, numbers: Sequence[int], problems: Mapping[int, str], vote: int
    ) -> Vote[V]:
        """A vote on some items, in halves where the answer on all was too long; what could not be had is in it."""
        question = replace(self.concluding(earlier, numbers), vote=vote)
        if problems:
            told = (f"{number}. {problems[number]}" for number in numbers)
            question = repeated(question, told, self.nonce)
        try:
            entries = _entries(await self.judge.ask(question, self.forms[0]))
            return {number: self._vote([each for each in entries if each.number == number]) for number in numbers}
        except JudgeError as problem:
            if problem.code != ANSWER_CUT or len(numbers) == 1:
                return dict.fromkeys(numbers, not_judged(problem))
            half = len(numbers) // 2
            first = await self._ask(earlier, numbers[:half], problems, vote)
            return first | await self._ask(earlier, numbers[half:], problems, vote)

    def _vote(self, given: Sequence[ItemAnswer]) -> Draft[V]:
        """One vote on one item, checked; of verdicts that contradict each other, none."""
        if not given:
            return not_judged(NO_VERDICT, again=True)
        if len({answer.verdict for answer in given}) > 1:
            return not_judged("The judge gave verdicts on it that contradict each other.", again=True)
        checked = list(map(self._checked, given))
        return next((draft for draft in checked if draft.verdict), checked[0])

    def _checked(self, given: ItemAnswer) -> Draft[V]:
        """A verdict counts if its evidence is there; one citation that is not, among others that are, is left out."""
        verdict, item = self.words[given.verdict], self.items[given.number]
        if verdict is None:
            return not_judged(f"{NO_VERDICT} {given.reasoning}".strip())
        found = [(place, self.look_up(item, place)) for place in given.evidence[:MAX_PLACES]]
        holding = tuple(place for place, citing in found if citing.problem is None)
        problems = tuple(citing.problem for _, citing in found if citing.problem)
        weaknesses = [citing.weakness for _, citing in found if citing.problem is None and citing.weakness]
        objection = self.objection(item, given, verdict)
        if not objection and verdict != self.tie:
            if problems and not holding:
                objection = " ".join(problems)
            elif verdict in self.needs_evidence and not holding:
                objection = NO_EVIDENCE
            elif verdict in self.needs_proof and len(weaknesses) == len(holding):
                objection = " ".join([*weaknesses, *problems])
        if objection:
            return not_judged(f"The judge's {given.verdict} does not count: {objection}", again=True)
        return Draft(verdict, given.reasoning, holding, problems, given)

    def _decided(self, votes: Sequence[Draft[V]]) -> Draft[V]:
        """What the votes on one item come to.

        More than half of all votes that were asked for must agree, so that votes which do not count help no side. Where
        they do not agree, votes that are missing might have decided, and the item is not judged.
        """
        counts = Counter(vote.verdict for vote in votes)
        ((ahead, most), *others) = counts.most_common()
        missing = [vote for vote in votes if vote.verdict is None]
        if ahead is not None and 2 * most > len(votes):
            # The fullest evidence speaks; by text among equals, because the order in which votes arrive is chance.
            agreed = (vote for vote in votes if vote.verdict is ahead)
            found = max(agreed, key=lambda vote: (len(vote.evidence), vote.reasoning))
        elif not others:
            found = votes[0]
        elif missing:
            count = f"{len(missing)} of {len(votes)} votes are missing"
            found = not_judged(f"{NO_MAJORITY[:-1]}, and {count}: {missing[0].reasoning}")
        else:
            found = Draft(self.tie, NO_MAJORITY)
        return replace(found, split=counts if others else None)

    def _checked_part(self, findings: BaseModel) -> CheckedFinding[BaseModel]:
        """What a part says, with those of its quotes that hold; a finding that does not count keeps its facts only."""
        problems: list[str] = []
        kept: list[ItemAnswer] = []
        for finding in _entries(findings):
            draft = None
            if finding.number not in self.items:
                problems.append(f"There is no number {finding.number}.")
            elif finding.verdict != self.nothing:
                draft = self._checked(finding)
                problems += [f"Number {finding.number}: {draft.problem}"] if draft.problem else []
            is_held = draft is not None and draft.verdict is not None
            changes = {"evidence": list(draft.evidence) if draft else [], "verdict": finding.verdict}
            changes = changes if is_held else {"evidence": [], "verdict": self.nothing}
            kept.append(type(finding).model_validate({**dict(finding), **changes}))
        (name,) = type(findings).model_fields
        return CheckedFinding(type(findings).model_validate({name: kept}), tuple(problems))

    def _merged(self, parts: Sequence[BaseModel]) -> Mapping[int, Draft[V]]:
        """The conservative rule where nobody could conclude: the worst counts, and what does not decide never does."""
        drafts: dict[int, Draft[V]] = dict.fromkeys(
            self.items, not_judged("No part of the transcript has evidence on it.")
        )
        found = [each for part in parts for each in _entries(part) if each.number in self.items]
        # What counts the most comes last.
        for verdict in reversed(self.order):
            for finding in reversed([each for each in found if self.words.get(each.verdict) is verdict]):
                drafts[finding.number] = self._checked(finding)
        return drafts

    def _disagreements(self, votes: Sequence[Vote[V]]) -> Iterator[str]:
        """Who said what of which number, in sentences, where different models differ."""
        for number in self.items:
            words = [str(vote[number].verdict or NOT_JUDGED) for vote in votes]
            if len(set(words)) > 1:
                said = "; ".join(f"{voter(self.judge.model, vote)} says {word}" for vote, word in enumerate(words))
                yield f"The models disagree on {number}: {said}."

    @staticmethod
    def _batched(numbers: Collection[int]) -> list[tuple[int, ...]]:
        """The numbers by the question in which they are asked about."""
        listed = tuple(numbers)
        return [listed[start : start + MAX_CONCURRENT] for start in range(0, len(listed), MAX_CONCURRENT)]


def _entries(answer: BaseModel) -> list[ItemAnswer]:
    return [entry for _, entries in answer for entry in entries]


async def _all(calls: Sequence[Callable[[], Awaitable[Vote[V]]]]) -> list[Vote[V]]:
    """The answers, in order: a question that failed is a vote without verdicts, so that nothing is raised here."""
    return [vote for vote in await all_of(calls) if not isinstance(vote, JudgeError)]
