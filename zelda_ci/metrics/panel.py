"""One panel for both judges: it reads a transcript, whatever its length, and decides numbered items by votes.

A short transcript is told whole; of the long texts of a large one head and tail, to a judge that can look up the rest.
One that does not fit even so is read in parts, side by side and without look-ups, each part giving a finding whose
quotes are looked up at once; then the findings are told in its stead, as JSON, beside an outline. Where the judge
cannot conclude from them, a conservative rule does.
"""

import functools
import json
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Generic, NamedTuple, TypeVar

from pydantic import BaseModel, BeforeValidator

from zelda_ci.domain.base import Record
from zelda_ci.domain.details import Citation, CriterionVerdict, JudgeIdentity
from zelda_ci.domain.run import EvalContext
from zelda_ci.errors import JudgeError
from zelda_ci.judge import base as judging
from zelda_ci.judge.base import ANSWER_CUT, CHARS_PER_TOKEN, MODEL_SEPARATOR, JudgeQuestion, PromptTooLongError
from zelda_ci.judge.characters import marked
from zelda_ci.judge.lookups import SessionLookups
from zelda_ci.judge.rendering import SEPARATOR, chunked, fence, mark_of, outline, preface, render, units, windowed
from zelda_ci.metrics.base import JudgeServices, Unscored
from zelda_ci.metrics.evidence import CitedPlace, Citing, Number, Places, Text, gather
from zelda_ci.redact import Redactor

# Of the judge's context; the rest is for its answer, and for the estimate being an estimate.
CONTEXT_SHARE = 0.8
# Of the room; beside findings, for knowing what to look up.
OUTLINE_SHARE = 0.1
# Less room than this for a part of the transcript makes no sense.
MIN_TOKENS = 1000
# By the estimate: a transcript up to this size is told whole, whatever is in it.
MAX_WHOLE_TOKENS = 25_000
# Of one call in a larger transcript, see `rendering.limits`: the first with which the transcript fits. In real sessions
# (see benchmarks/judging.py) 15 percent of all results are longer than the first, with three quarters of all that is
# returned, and paid for by every judge and vote.
MAX_CALL_CHARS = (3000, 1000)
# Into which the room of a part is counted: judges whose questions are about as long read the same parts, paid once.
PART_STEPS = 20
# How often the room is halved where the judge's API says that a question is too long: no estimate is wrong by more.
MAX_CUTS = 3
# Characters of one text in a finding: the most, and less where there are many findings.
TEXT_LENGTHS = (600, 300, 150, 70, 20)
HEAD_AND_TAIL = (
    "Of long texts in the tool calls of this large session, the judge saw head and tail, and could look up the rest."
)

# Items in one question: the answers on them fit into an answer of usual length.
MAX_CONCURRENT = 20
# Citations of one item that are looked up.
MAX_PLACES = 10
# Of what was not judged, in the reason why there is no score.
MAX_NAMED = 5
MAX_NAME_LENGTH = 100
# Of what a judge says, as it is stored and told to others: asked for is less.
MAX_REASONING_LENGTH = 1000
MAX_QUOTE_LENGTH = 600
NOT_JUDGED = CriterionVerdict.NOT_JUDGED.value
# What a part of a long transcript says of an item that it does not decide.
NO_EVIDENCE = "NO_EVIDENCE"
NO_VERDICT = "The judge gave no verdict on it."
NO_REASON = "it needs a reason, and none was given."
NO_MAJORITY = "The votes split without a majority."

# A verdict as it is called here: models write it in any case, with blanks or hyphens.
Word = BeforeValidator(
    lambda value: re.sub(r"[\s_-]+", "_", value.strip(" .*`\"'\n")).upper() if isinstance(value, str) else value
)


class ItemAnswer(BaseModel):
    """On one item; evidence first, then the reasoning, so that the verdict follows from them."""

    number: Number
    evidence: Places
    reasoning: Text
    verdict: Annotated[str, Word]


V = TypeVar("V", bound=StrEnum)
Item = TypeVar("Item")


@dataclass(frozen=True)
class Draft(Generic[V]):
    """What is known so far about one item: one vote that was checked, or what several come to."""

    verdict: V | None
    reasoning: str
    evidence: tuple[CitedPlace, ...] = ()
    """Citations that hold."""
    dropped: tuple[str, ...] = ()
    """Why other citations were left out."""
    answer: ItemAnswer | None = None
    """In which a verdict that counts was given."""
    is_asked_again: bool = False
    error: JudgeError | None = None
    split: Mapping[V | None, int] | None = None

    def stored(self, redact: Redactor) -> dict[str, Any]:
        split = {verdict or NOT_JUDGED: votes for verdict, votes in (self.split or {}).items()}
        reasoning = redact(shortened(self.reasoning, MAX_REASONING_LENGTH))
        evidence: list[Citation] = []
        for place in self.evidence:
            # What stands beside an absence was not looked up.
            quote = shortened(place.quote, MAX_QUOTE_LENGTH) if place.quote.strip() and place.kind != "absent" else ""
            evidence.append(Citation.model_validate({**place.model_dump(), "quote": quote}).redacted(redact))
        return {"reasoning": reasoning, "evidence": tuple(evidence), "split": split or None}


Vote = dict[int, Draft[V]]


def shortened(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 2].rstrip()} …"


def not_judged(why: str | JudgeError, *, again: bool = False) -> Draft[Any]:
    """An item without a verdict; `again` where the judge should be asked once more."""
    error = why if isinstance(why, JudgeError) else None
    return Draft(None, error.message if error else str(why), error=error, is_asked_again=again)


def unjudged(
    what: str, judged: Sequence[tuple[str, str | None]], details: Record, drafts: Iterable[Draft[Any]]
) -> Unscored:
    """No score, because some items have no verdict: of each its name, and why, which is told once if all share it."""
    missing = [(shortened(" ".join(name.split()), MAX_NAME_LENGTH), why) for name, why in judged if why is not None]
    (shared, *others) = dict.fromkeys(f" {why.rstrip('.')}." for _, why in missing)
    named = "; ".join(f"{name} ({why})" if others else name for name, why in missing[:MAX_NAMED])
    more = f"; and {len(missing) - MAX_NAMED} more" if len(missing) > MAX_NAMED else ""
    counted = f"{len(missing)} of {len(judged)} {what} {'was' if len(missing) == 1 else 'were'} not judged."
    cause = next((draft.error.code for draft in drafts if draft.error and not draft.verdict), None)
    return Unscored(f"{counted}{'' if others else shared} Not judged: {named}{more}", details, failed=True, code=cause)


class EarlierFindings(NamedTuple):
    """What is known of the session, as text for a concluding question; not fenced."""

    text: str
    is_whole: bool
    """False where these are findings about parts of the transcript instead of itself."""
    outline: str = ""
    """Beside findings: a line for each turn and call."""


class TranscriptPart(NamedTuple):
    """A part of a transcript, as text for a question, not fenced; its number counts from 1."""

    text: str
    number: int
    total: int


class Panel(ABC, Generic[Item, V]):
    """The items of one run, by number from 1, before the judge: what is asked, and what its answers come to."""

    prompt: ClassVar[str]
    """The template of its question, with others for its task (`_system`) and for parts of transcripts (`_part`)."""
    version: ClassVar[str]
    form: ClassVar[type[BaseModel]]
    """In which a judge answers: a list of `ItemAnswer`."""
    words: ClassVar[Mapping[str, Any]]
    """The verdicts that a judge may give; where it gives none, asking again would only cost."""
    order: ClassVar[Sequence[Any]]
    """Where parts of a transcript disagree, the first of these counts."""
    needs_proof: ClassVar[Collection[Any]]
    """What must rest on a fact that was looked up."""
    needs_evidence: ClassVar[Collection[Any]]
    """What must cite something that is there."""
    tie: ClassVar[Any] = None
    """What votes without a majority come to where none of them is missing."""

    def __init__(self, context: EvalContext, services: JudgeServices, items: Mapping[int, Item]) -> None:
        self.judge, self.nonce, self.redact, self.items = services.judge, services.nonce, services.redact, items
        settings, root = context.suite.judge, context.workspace.root if context.workspace else None
        # Of different models, each judges at least once.
        self._transcript, self._votes = context.transcript, max(settings.votes, len(settings.models))
        lookups = SessionLookups(context.transcript, root, self.nonce, self.redact)
        self._lookups = lookups if settings.max_lookups else None
        self.evidence = gather(context, self.redact, nonce=self.nonce, context_tokens=self.judge.context_tokens)
        self._notes: list[str] = []

    @abstractmethod
    def asked(self, numbers: Sequence[int]) -> Mapping[str, Any]:
        """Values of the templates for a question about some items."""

    @abstractmethod
    def objection(self, item: Item, answer: ItemAnswer, verdict: V) -> str | None:
        """Why a verdict cannot be true, whatever it cites."""

    @abstractmethod
    def look_up(self, item: Item, place: CitedPlace) -> Citing:
        """What a citation shows of an item."""

    @property
    def shown(self) -> tuple[str, ...]:
        """Blocks that only this judge is shown."""
        return ()

    async def judged(self) -> tuple[Mapping[int, Draft[V]], dict[str, Any]]:
        """What becomes of each item, and how it was judged, as results hold it."""
        how = {"judge": JudgeIdentity(model=self.judge.model, prompt_version=self.version), "votes": self._votes}
        try:
            found, parts, told = await self._read(int(CONTEXT_SHARE * self.judge.context_tokens))
        except JudgeError as problem:
            return dict.fromkeys(self.items, not_judged(problem)), {**how, "notes": ()}
        notes = (*self.evidence.notes, *self.evidence.images.notes(), *told, *self._notes)
        return found, {**how, "parts": parts, "notes": tuple(map(self.redact, notes))}

    async def _read(self, room: int, cuts: int = MAX_CUTS) -> tuple[Mapping[int, Draft[V]], int, tuple[str, ...]]:
        """Read the transcript by questions of so many tokens, or half of them where the API says that is too much.

        Returns what is found, the number of parts that were read, and what limits it, in sentences. Raises JudgeError
        where there is no result, or one of the parts could not be read.
        """
        try:
            nothing = EarlierFindings("", is_whole=False, outline="(none)")
            left = room - max(self._concluding(nothing, numbers).tokens for numbers in _batched(self.items))
            transcript, mark = self._transcript, mark_of(self.nonce)
            first = preface(transcript, mark)
            pieces = (*first, *units(transcript, mark))
            texts = [SEPARATOR.join(pieces)]
            if self._lookups and judging.estimated_tokens(texts[0]) > MAX_WHOLE_TOKENS:
                texts = [SEPARATOR.join((*first, *units(transcript, mark, most))) for most in MAX_CALL_CHARS]
            for text in texts:
                if judging.estimated_tokens(text) <= left:
                    notes = (HEAD_AND_TAIL,) if text != SEPARATOR.join(pieces) else ()
                    return await self._conclude(EarlierFindings(text, is_whole=True)), 1, notes
            return await self._read_parts(pieces, room, max(0, _chars(left)), is_last=not cuts)
        except PromptTooLongError:
            if not cuts:
                raise
            return await self._read(room // 2, cuts - 1)

    async def _read_parts(
        self, pieces: Sequence[str], room: int, chars: int, *, is_last: bool
    ) -> tuple[Mapping[int, Draft[V]], int, tuple[str, ...]]:
        """Read pieces of the transcript in parts, and conclude from findings of so many characters."""
        left = room - self._about_part(TranscriptPart("", 1, 1)).tokens
        if left < MIN_TOKENS:
            hint = "Raise judge.contextTokens to what the model really has, or shorten the acceptance criteria."
            message = "The judge's context is too small for its question."
            raise JudgeError(message, hint=hint, code="JUDGE_CONTEXT_TOO_SMALL")
        budget = _chars(max(left - left % max(1, room // PART_STEPS), MIN_TOKENS))
        texts = chunked(pieces, budget)
        parts = [TranscriptPart(text, number, len(texts)) for number, text in enumerate(texts, start=1)]
        read = await judging.all_of([functools.partial(self._find, part) for part in parts])
        if unread := [finding for finding in read if isinstance(finding, JudgeError)]:
            # What nobody read may decide: better no result than one that is silent about it.
            raise unread[0]
        findings = [finding for finding in read if not isinstance(finding, JudgeError)]
        count = f"{len(parts)} parts" if len(parts) > 1 else "a part of its own"
        notes = [f"The transcript did not fit into the judge's context and was read in {count}."]
        if cut := sum(len(piece) > budget for piece in pieces):
            notes.append(f"Of {cut} turns or calls that were too large for it, the judge saw head and tail only.")
        try:
            lines = windowed("\n".join(outline(self._transcript.turns)), min(chars // 2, _chars(OUTLINE_SHARE * room)))
            earlier = EarlierFindings(findings_json(findings, chars - len(lines)), is_whole=False, outline=lines)
            return await self._conclude(earlier), len(parts), tuple(notes)
        except JudgeError as problem:
            if isinstance(problem, PromptTooLongError) and not is_last:
                raise
            merged = f"The judge could not conclude from the parts, so a conservative rule did: {problem.message}"
            return self._merged(findings), len(parts), (*notes, merged)

    async def _find(self, part: TranscriptPart) -> BaseModel:
        """The finding on a part, asked for again once where something in it is not there."""
        question = self._about_part(part)
        found, problems = self._checked_part(await self.judge.ask(question, self.form))
        if problems:
            again = judging.repeated(question, problems, self.nonce)
            with suppress(JudgeError):
                found, _ = self._checked_part(await self.judge.ask(again, self.form))
        return found

    def _about_part(self, part: TranscriptPart) -> JudgeQuestion:
        # Every judge is shown the task, the patch and the part.
        blocks = (*self.evidence.blocks[:2], fence("transcript", part.text, self.nonce))
        return self._question(f"{self.prompt}_part", tuple(self.items), blocks, part=part)

    def _concluding(self, earlier: EarlierFindings, numbers: Sequence[int]) -> JudgeQuestion:
        told = fence("transcript" if earlier.is_whole else "findings", earlier.text, self.nonce)
        lines = (fence("outline", earlier.outline, self.nonce),) if earlier.outline else ()
        # Every judge is shown the transcript; findings are for the one who asked for them.
        blocks, own = ((told,), ()) if earlier.is_whole else ((), (*lines, told))
        shown = (*self.evidence.blocks, *blocks)
        question = self._question(self.prompt, numbers, shown, part=None, is_whole=earlier.is_whole)
        return replace(question, shared=(*self.shown, *own), lookups=self._lookups)

    def _question(self, template: str, numbers: Sequence[int], blocks: Sequence[str], **values: Any) -> JudgeQuestion:
        body = render(template, can_look_up=self._lookups is not None, **values, **self.asked(numbers))
        common = judging.common_prefix(blocks, self.nonce, self.evidence.images)
        return JudgeQuestion(render(f"{self.prompt}_system"), self.shown, body, common=common)

    async def _conclude(self, earlier: EarlierFindings) -> Mapping[int, Draft[V]]:
        """Raises JudgeError where no question at all was answered, or one was too long."""
        votes: list[Vote[V]] = [{} for _ in range(self._votes)]
        answers = await self._all(earlier, [dict.fromkeys(self.items, "")] * self._votes)
        for vote, answer in answers:
            votes[vote] |= answer
        lost = [error for _, answer in answers if (error := next((d.error for d in answer.values() if d.error), None))]
        if too_long := next((error for error in lost if error.code == PromptTooLongError.default_code), None):
            # Some of the votes may have fitted: in smaller parts all of them will.
            raise too_long
        if lost and all(draft.error for vote in votes for draft in vote.values()):
            raise lost[0]
        if self._votes > 1:
            self._notes += [f"One of {self._votes} votes could not be had: {error.message}" for error in lost]
        # What does not count is asked for once more, vote by vote: each has problems of its own.
        problems = [{n: draft.reasoning for n, draft in vote.items() if draft.is_asked_again} for vote in votes]
        errors: dict[str, None] = {}
        for vote, answer in await self._all(earlier, problems):
            for number, new in answer.items():
                if new.error:
                    errors[new.error.message] = None
                    why = f"{votes[vote][number].reasoning} The judge could not be asked again: {new.reasoning}"
                    votes[vote][number] = not_judged(why)
                else:
                    votes[vote][number] = new
        self._notes += [f"The judge could not be asked again: {message}" for message in errors]
        models = self.judge.model.split(MODEL_SEPARATOR)
        for number in self.items if len(models) > 1 else ():
            words = [str(vote[number].verdict or NOT_JUDGED) for vote in votes]
            if len(set(words)) > 1:
                said = "; ".join(f"{models[vote % len(models)]} says {word}" for vote, word in enumerate(words))
                self._notes.append(f"The models disagree on {number}: {said}.")
        return {number: self._decided([vote[number] for vote in votes]) for number in self.items}

    async def _all(self, earlier: EarlierFindings, asked: Sequence[Mapping[int, str]]) -> list[tuple[int, Vote[V]]]:
        """Ask about numbers, for each vote its own, with what was wrong with an earlier answer."""
        orders = [(vote, numbers) for vote, problems in enumerate(asked) for numbers in _batched(problems)]
        calls = [functools.partial(self._ask, earlier, numbers, asked[vote], vote) for vote, numbers in orders]
        # A question that failed is a vote without verdicts, so that nothing is raised here.
        answers = [answer for answer in await judging.all_of(calls) if not isinstance(answer, JudgeError)]
        return [(vote, answer) for (vote, _), answer in zip(orders, answers, strict=True)]

    async def _ask(
        self, earlier: EarlierFindings, numbers: Sequence[int], why: Mapping[int, str], vote: int
    ) -> Vote[V]:
        """A vote on some items, in halves where the answer on all was too long; what could not be had is in it."""
        question = replace(self._concluding(earlier, numbers), vote=vote)
        if any(why.values()):
            question = judging.repeated(question, (f"{number}. {why[number]}" for number in numbers), self.nonce)
        try:
            entries = _entries(await self.judge.ask(question, self.form))
            return {number: self._vote([each for each in entries if each.number == number]) for number in numbers}
        except JudgeError as problem:
            if problem.code != ANSWER_CUT or len(numbers) == 1:
                return dict.fromkeys(numbers, not_judged(problem))
            half = len(numbers) // 2
            first = await self._ask(earlier, numbers[:half], why, vote)
            return first | await self._ask(earlier, numbers[half:], why, vote)

    def _vote(self, given: Sequence[ItemAnswer]) -> Draft[V]:
        """One vote on one item, checked; of verdicts that contradict each other, none."""
        if not given or any(answer.verdict == NO_EVIDENCE for answer in given):
            return not_judged(NO_VERDICT, again=True)
        if len({answer.verdict for answer in given}) > 1:
            return not_judged("The judge gave verdicts on it that contradict each other.", again=True)
        checked = list(map(self._checked, given))
        return next((draft for draft in checked if draft.verdict), checked[0])

    def _checked(self, given: ItemAnswer) -> Draft[V]:
        """A verdict counts if its evidence is there; one citation that is not, among others that are, is left out."""
        verdict, item = self.words.get(given.verdict), self.items[given.number]
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
                objection = "it needs evidence, and none was given."
            elif verdict in self.needs_proof and len(weaknesses) == len(holding):
                objection = " ".join([*weaknesses, *problems])
        if objection:
            return not_judged(f"The judge's {given.verdict} does not count: {objection}", again=True)
        return Draft(verdict, given.reasoning, holding, problems, given)

    def _decided(self, votes: Sequence[Draft[V]]) -> Draft[V]:
        """What the votes on one item come to: more than half of all that were asked for must agree.

        So votes which do not count help no side; where they might have decided, the item is not judged.
        """
        counts = Counter(vote.verdict for vote in votes)
        ((ahead, most), *others) = counts.most_common()
        missing = [vote for vote in votes if vote.verdict is None]
        if ahead is not None and 2 * most > len(votes):
            # The fullest evidence speaks; by text among equals, because the order in which votes arrive is chance.
            agreed = (vote for vote in votes if vote.verdict is ahead)
            found = max(agreed, key=lambda vote: (len(vote.evidence), vote.reasoning))
        elif missing and others:
            count = f"{len(missing)} of {len(votes)} votes are missing"
            found = not_judged(f"{NO_MAJORITY[:-1]}, and {count}: {missing[0].reasoning}")
        else:
            found = Draft(self.tie, NO_MAJORITY) if others else votes[0]
        return replace(found, split=counts if others else None)

    def _checked_part(self, findings: BaseModel) -> tuple[BaseModel, list[str]]:
        """What a part says, with those of its quotes that hold; a finding that does not count keeps its facts only."""
        problems: list[str] = []
        kept: list[ItemAnswer] = []
        for finding in _entries(findings):
            held: dict[str, Any] = {"evidence": (), "verdict": NO_EVIDENCE}
            if finding.number not in self.items:
                problems.append(f"There is no number {finding.number}.")
            elif self.words.get(finding.verdict) in self.order:
                draft = self._checked(finding)
                problems += [f"Number {finding.number}: {draft.reasoning}"] if draft.is_asked_again else []
                held = {"evidence": draft.evidence} if draft.verdict else held
            kept.append(finding.model_validate({**dict(finding), **held}))
        return findings.model_validate({name: kept for name, _ in findings}), problems

    def _merged(self, parts: Iterable[BaseModel]) -> Mapping[int, Draft[V]]:
        """The conservative rule where nobody could conclude: the worst counts, and what does not decide never does."""
        found = [each for part in parts for each in _entries(part) if self.words.get(each.verdict) in self.order]
        found.sort(key=lambda each: self.order.index(self.words[each.verdict]))
        worst = {each.number: each for each in reversed(found)}
        nothing: Draft[V] = not_judged("No part of the transcript has evidence on it.")
        return {number: self._checked(worst[number]) if number in worst else nothing for number in self.items}


def _batched(numbers: Iterable[int]) -> list[tuple[int, ...]]:
    """The numbers by the question in which they are asked about."""
    listed = tuple(numbers)
    return [listed[start : start + MAX_CONCURRENT] for start in range(0, len(listed), MAX_CONCURRENT)]


def _entries(answer: BaseModel) -> list[ItemAnswer]:
    return [entry for _, entries in answer for entry in entries]


def _chars(tokens: float) -> int:
    return int(tokens * CHARS_PER_TOKEN)


def findings_json(findings: Sequence[BaseModel], budget_chars: int) -> str:
    """The findings in order, a line of JSON for each part: what they copy from the session can begin no line.

    Where they are too long, their texts are shortened, never the JSON, in whose middle a copied passage could pass for
    a finding; of too many, whose texts are a few words by then, head and tail.
    """
    told = [finding.model_dump(mode="json", by_alias=True) for finding in findings]

    def text(length: int) -> str:
        parts = ({"part": n, "of": len(told), "findings": _short(each, length)} for n, each in enumerate(told, 1))
        return "\n".join(marked(json.dumps(part, ensure_ascii=False)) for part in parts)

    fitting = (each for each in map(text, TEXT_LENGTHS) if len(each) <= budget_chars)
    return next(fitting, None) or windowed(text(TEXT_LENGTHS[-1]), budget_chars)


def _short(value: Any, length: int) -> Any:
    match value:
        case str():
            # Other line breaks than `\n` are escaped nowhere in JSON, and would begin a line of their own.
            text = " ".join(value.split())
            return text if len(text) <= length else f"{text[:length]} ..."
        case dict():
            return {name: _short(part, length) for name, part in value.items()}
        case list():
            return [_short(part, length) for part in value]
        case _:
            return value
