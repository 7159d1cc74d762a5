"""The one way in which an evaluator reads a transcript, whatever its length: it never sees a chunk.

A transcript that fits is told whole. A longer one is read in parts, in parallel, each part giving a finding; then the
findings are told in its stead. Where the judge cannot conclude from them, a conservative rule of the metric does.
"""

import functools
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import BaseModel

from zelda_ci.domain.session import SessionTranscript
from zelda_ci.errors import JudgeError
from zelda_ci.judge.base import CHARS_PER_TOKEN, Judge, JudgeQuestion, all_of
from zelda_ci.judge.prompts import mark_of
from zelda_ci.judge.rendering import SEPARATOR, Chunk, chunked, units

# Of the judge's context; the rest is for its answer, and for the estimate being an estimate.
CONTEXT_SHARE = 0.8

# Less room than this for a part of the transcript makes no sense.
MIN_TOKENS = 1000

F = TypeVar("F", bound=BaseModel)
R = TypeVar("R")


@dataclass(frozen=True)
class EarlierFindings:
    """What is known of the session, as text for a concluding question; not fenced."""

    text: str
    is_whole: bool
    """False where these are findings about parts of the transcript instead of itself."""


@dataclass(frozen=True)
class TranscriptPart:
    """A part of a transcript, as text for a question; not fenced."""

    text: str
    number: int
    """From 1."""
    total: int


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
    format: Callable[[Sequence[F]], str]
    """The findings, in order, as text."""
    finish: Callable[[EarlierFindings], Awaitable[R]]
    """Asks the judge for the result, once or several times; raises JudgeError where there is none."""
    merge: Callable[[Sequence[F]], R]
    """The conservative rule."""


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
    pieces = units(transcript, mark_of(query.nonce))
    whole = SEPARATOR.join(pieces)
    room = int(CONTEXT_SHARE * judge.context_tokens)
    if len(whole) <= (room - query.fixed_tokens) * CHARS_PER_TOKEN:
        return QueryResult(await query.finish(EarlierFindings(whole, is_whole=True)))
    chunks = chunked(pieces, _budget_chars(room, query))
    findings = await _findings(chunks, judge, query)
    notes = _notes(chunks)
    try:
        earlier = EarlierFindings(query.format(findings), is_whole=False)
        return QueryResult(await query.finish(earlier), len(chunks), notes)
    except JudgeError as problem:
        merged = f"The judge could not conclude from the parts, so a conservative rule did: {problem.message}"
        return QueryResult(query.merge(findings), len(chunks), (*notes, merged))


def _budget_chars(room: int, query: TranscriptQuery[F, R]) -> int:
    """What a chunk may hold beside the fixed part of its question."""
    budget = room - query.question(TranscriptPart("", 1, 1)).tokens
    if budget < MIN_TOKENS:
        hint = "Raise judge.contextTokens to what the model really has, or shorten the acceptance criteria."
        message = "The judge's context is too small for its question."
        raise JudgeError(message, hint=hint, code="JUDGE_CONTEXT_TOO_SMALL")
    return int(budget * CHARS_PER_TOKEN)


async def _findings(chunks: Sequence[Chunk], judge: Judge, query: TranscriptQuery[F, R]) -> list[F]:
    async def ask(part: TranscriptPart) -> F:
        return (await judge.ask(query.question(part), query.finding)).value

    parts = [TranscriptPart(chunk.text, number, len(chunks)) for number, chunk in enumerate(chunks, start=1)]
    findings = await all_of([functools.partial(ask, part) for part in parts])
    for finding in findings:
        # A part that nobody read may hold what decides: better no result than one that is silent about it.
        if isinstance(finding, JudgeError):
            raise finding
    return [finding for finding in findings if not isinstance(finding, JudgeError)]


def _notes(chunks: Sequence[Chunk]) -> tuple[str, ...]:
    shortened = sum(len(chunk.shortened) for chunk in chunks)
    notes = [f"The transcript did not fit into the judge's context and was read in {len(chunks)} parts."]
    if shortened:
        notes.append(f"Of {shortened} turns that were too large for it, the judge saw head and tail only.")
    return tuple(notes)
