"""The one way in which an evaluator reads a transcript, whatever its length: it never sees a chunk.

A short transcript is told whole. Of the long texts of a large one, head and tail are told to a judge that can look up
the rest: most of what is paid for is files that were read, and every judge and vote pays for it. One that does not fit
even so is read in parts, in parallel and without look-ups, each part giving a finding whose quotes are looked up at
once; then the findings are told in its stead, as JSON, beside an outline. Where the judge's
API says that a question is too long after all, the room is halved. Where the judge cannot conclude from the findings,
a conservative rule of the metric does.
"""

import functools
import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from pydantic import BaseModel

from zelda_ci.domain.session import SessionTranscript
from zelda_ci.errors import JudgeError
from zelda_ci.judge.base import CHARS_PER_TOKEN, Judge, JudgeQuestion, all_of, estimated_tokens, tokens_within
from zelda_ci.judge.characters import marked
from zelda_ci.judge.prompts import mark_of, repeated
from zelda_ci.judge.rendering import SEPARATOR, Chunk, Limits, chunked, limits, outline, preface, units, windowed

# Of the judge's context; the rest is for its answer, and for the estimate being an estimate.
CONTEXT_SHARE = 0.8

# Of the judge's context; beside findings, for knowing what to look up.
OUTLINE_SHARE = 0.1

# Less room than this for a part of the transcript makes no sense.
MIN_TOKENS = 1000

# By the estimate: a transcript up to this size is told whole, whatever is in it.
MAX_WHOLE_TOKENS = 25_000

# Of one text in a larger transcript, see `rendering.limits`: the first of these with which the transcript fits. In real
# sessions (see benchmarks/judging.py) 15 percent of all results are longer than the first, with three quarters of all
# that is returned.
MAX_TEXT_CHARS = (3000, 2000, 1000)

# Into which the room of a part, and of a transcript with head and tail, is counted.
PART_STEPS = 20

# How often the room is halved: an estimate that is wrong by more than this is no estimate.
MAX_CUTS = 3

TOO_LONG = "JUDGE_PROMPT_TOO_LONG"

F = TypeVar("F", bound=BaseModel)
R = TypeVar("R")


@dataclass(frozen=True)
class EarlierFindings:
    """What is known of the session, as text for a concluding question; not fenced."""

    text: str
    is_whole: bool
    """False where these are findings about parts of the transcript instead of itself."""
    outline: str = ""
    """Beside findings: a line for each turn and call."""


@dataclass(frozen=True)
class TranscriptPart:
    """A part of a transcript, as text for a question; not fenced."""

    text: str
    number: int
    """From 1."""
    total: int


@dataclass(frozen=True)
class CheckedFinding(Generic[F]):
    """A finding with those of its quotes that were found, and what is wrong with it, in sentences."""

    value: F
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class TranscriptQuery(Generic[F, R]):
    """How a metric reads."""

    nonce: str
    """Of the run's fences."""
    fixed_tokens: int
    """Size of the concluding question without the transcript."""
    question: Callable[[TranscriptPart], JudgeQuestion]
    """What a part of a long transcript is asked."""
    finding: type[F]
    finish: Callable[[EarlierFindings], Awaitable[R]]
    """Asks the judge for the result, once or several times; raises JudgeError where there is none."""
    merge: Callable[[Sequence[F]], R]
    """The conservative rule."""
    check: Callable[[F], CheckedFinding[F]]
    """Looks up what a finding quotes. Where something is wrong, the judge is asked again once."""
    can_look_up: bool = False
    """Whether the judge that concludes can look up what it is not shown."""


@dataclass(frozen=True)
class QueryResult(Generic[R]):
    """A result, and what limits it, in sentences."""

    value: R
    parts: int = 1
    notes: tuple[str, ...] = ()


async def query_transcript(transcript: SessionTranscript, judge: Judge, query: TranscriptQuery[F, R]) -> QueryResult[R]:
    """Read a transcript.

    Raises:
        JudgeError: The judge gave no result, or could not read one of the parts.
    """
    return await _Reading(transcript, judge, query).result()


class _Reading(Generic[F, R]):
    """One transcript before one judge."""

    def __init__(self, transcript: SessionTranscript, judge: Judge, query: TranscriptQuery[F, R]) -> None:
        self._transcript: Final = transcript
        self._judge: Final = judge
        self._query: Final = query
        self._cuts = 0

    async def result(self) -> QueryResult[R]:
        for text, notes in self._tellings():
            left = self._room - self._query.fixed_tokens
            # What is left for judges with different questions is about as much: they shall read the same text.
            left = self._in_steps(left) if notes else left
            if await tokens_within(self._judge, text, left) <= left:
                try:
                    return QueryResult(await self._query.finish(EarlierFindings(text, is_whole=True)), notes=notes)
                except JudgeError as problem:
                    self._cut(problem)
                    break
        return await self._in_parts()

    def _tellings(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """The transcript in one piece, with what limits it: as much of it as a judge needs, then less."""
        whole = SEPARATOR.join(self._pieces())
        if not self._query.can_look_up or estimated_tokens(whole) <= MAX_WHOLE_TOKENS:
            yield whole, ()
            return
        for most in MAX_TEXT_CHARS:
            text = SEPARATOR.join(self._pieces(shown=limits(self._transcript, most)))
            yield text, (HEAD_AND_TAIL,) if text != whole else ()
            if text == whole:
                return

    def _pieces(self, max_chars: int | None = None, shown: Limits | None = None) -> tuple[str, ...]:
        mark = mark_of(self._query.nonce)
        return (*preface(self._transcript, mark), *units(self._transcript, mark, max_chars, shown))

    @property
    def _room(self) -> int:
        """Tokens that a question may have."""
        return int(CONTEXT_SHARE * self._judge.context_tokens) >> self._cuts

    def _cut(self, problem: JudgeError) -> None:
        """Halve the room where the judge's API has found a question too long, again where that was not enough."""
        if problem.code != TOO_LONG or self._cuts >= MAX_CUTS:
            raise problem
        self._cuts += 1

    async def _in_parts(self) -> QueryResult[R]:
        chunks, findings = await self._read_all()
        notes = _notes(chunks)
        try:
            return QueryResult(await self._concluded(findings), len(chunks), notes)
        except JudgeError as problem:
            merged = f"The judge could not conclude from the parts, so a conservative rule did: {problem.message}"
            return QueryResult(self._query.merge(findings), len(chunks), (*notes, merged))

    async def _read_all(self) -> tuple[Sequence[Chunk], list[F]]:
        while True:
            budget = self._budget_chars()
            chunks = chunked(self._pieces(budget), budget)
            try:
                return chunks, await self._findings(chunks)
            except JudgeError as problem:
                self._cut(problem)

    async def _concluded(self, findings: Sequence[F]) -> R:
        shown = self._budget_chars()
        while True:
            room = max(0, _chars(self._room - self._query.fixed_tokens))
            lines = outline(self._transcript, min(room // 2, _chars(OUTLINE_SHARE * self._room)), shown)
            text = findings_json(findings, room - len(lines))
            try:
                return await self._query.finish(EarlierFindings(text, is_whole=False, outline=lines))
            except JudgeError as problem:
                self._cut(problem)

    def _budget_chars(self) -> int:
        """What a chunk may hold beside the fixed part of its question."""
        budget = self._room - self._query.question(TranscriptPart("", 1, 1)).tokens
        if budget < MIN_TOKENS:
            hint = "Raise judge.contextTokens to what the model really has, or shorten the acceptance criteria."
            message = "The judge's context is too small for its question."
            raise JudgeError(message, hint=hint, code="JUDGE_CONTEXT_TOO_SMALL")
        # So that judges whose questions are about as long read the same parts, which are then paid once.
        return _chars(max(self._in_steps(budget), MIN_TOKENS))

    def _in_steps(self, tokens: int) -> int:
        """Rounded down; less than the room of one step is nothing."""
        step = max(1, self._room // PART_STEPS)
        return tokens // step * step

    async def _findings(self, chunks: Sequence[Chunk]) -> list[F]:
        parts = [TranscriptPart(chunk.text, number, len(chunks)) for number, chunk in enumerate(chunks, start=1)]
        calls = [functools.partial(self._read, part) for part in parts]
        # The first one alone: it fills the cache from which the others read, and says whether such parts fit at all.
        first = await all_of(calls[:1])
        findings = [*first, *([] if isinstance(first[0], JudgeError) else await all_of(calls[1:]))]
        for finding in findings:
            # A part that nobody read may hold what decides: better no result than one that is silent about it.
            if isinstance(finding, JudgeError):
                raise finding
        return [finding for finding in findings if not isinstance(finding, JudgeError)]

    async def _read(self, part: TranscriptPart) -> F:
        """The finding on a part, asked for again once where something in it is not there."""
        query, question = self._query, self._query.question(part)
        first = query.check((await self._judge.ask(question, query.finding)).value)
        if not first.problems:
            return first.value
        again = repeated(question, first.problems[:MAX_PROBLEMS], query.nonce)
        try:
            return query.check((await self._judge.ask(again, query.finding)).value).value
        except JudgeError:
            return first.value


MAX_PROBLEMS = 10

HEAD_AND_TAIL = (
    "Of long texts in the tool calls of this large session, the judge saw head and tail, and could look up the rest."
)


def _chars(tokens: float) -> int:
    return int(tokens * CHARS_PER_TOKEN)


# Characters of one text in a finding: the most, and what is left where there are many findings.
MAX_TEXT = 600
MIN_TEXT = 20


def findings_json(findings: Sequence[BaseModel], budget_chars: int) -> str:
    """The findings in order, a line of JSON for each part: what they copy from the session can begin no line.

    Where they are too long, their texts are shortened, never the JSON: cut in its middle, a copied passage could pass
    for a finding.
    """
    length = MAX_TEXT
    while True:
        text = "\n".join(_line(findings, position, length) for position in range(len(findings)))
        if len(text) <= budget_chars or length <= MIN_TEXT:
            # Of findings without number head and tail: nothing that was copied is longer than a few words by now.
            return windowed(text, budget_chars)
        length = max(MIN_TEXT, length // 2)


def _line(findings: Sequence[BaseModel], position: int, length: int) -> str:
    finding = _short(findings[position].model_dump(mode="json", by_alias=True), length)
    told = {"part": position + 1, "of": len(findings), "findings": finding}
    return marked(json.dumps(told, ensure_ascii=False))


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


def _notes(chunks: Sequence[Chunk]) -> tuple[str, ...]:
    shortened = sum(len(chunk.shortened) for chunk in chunks)
    parts = f"{len(chunks)} parts" if len(chunks) > 1 else "a part of its own"
    notes = [f"The transcript did not fit into the judge's context and was read in {parts}."]
    if shortened:
        notes.append(f"Of {shortened} turns or calls that were too large for it, the judge saw head and tail only.")
    return tuple(notes)
