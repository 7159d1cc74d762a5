"""The one way in which an evaluator reads a transcript, whatever its length: it never sees a part.

A short transcript is told whole; of the long texts of a large one head and tail, to a judge that can look up the rest.
One that does not fit even so is read in parts, side by side and without look-ups, each part giving a finding whose
quotes are looked up at once; then the findings are told in its stead, as JSON, beside an outline. Where the judge
cannot conclude from them, a conservative rule of the metric does.
"""

import functools
import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from zelda_ci.domain.session import SessionTranscript
from zelda_ci.errors import JudgeError
from zelda_ci.judge import base
from zelda_ci.judge.base import CHARS_PER_TOKEN, Judge, JudgeQuestion, PromptTooLongError, estimated_tokens
from zelda_ci.judge.characters import marked
from zelda_ci.judge.rendering import SEPARATOR, chunked, mark_of, outline, preface, units, windowed

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
# returned.
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
    check: Callable[[F], tuple[F, Sequence[str]]]
    """Keeps those of a finding's quotes that are found, and says what is wrong: then the judge is asked again once."""
    can_look_up: bool = False
    """Whether the judge that concludes can look up what it is not shown."""


@dataclass(frozen=True)
class QueryResult(Generic[R]):
    """A result, and what limits it, in sentences."""

    value: R
    parts: int = 1
    notes: tuple[str, ...] = ()


async def query_transcript(transcript: SessionTranscript, judge: Judge, query: TranscriptQuery[F, R]) -> QueryResult[R]:
    """Read a transcript; raises JudgeError where there is no result, or one of the parts could not be read."""
    room = int(CONTEXT_SHARE * judge.context_tokens)
    for cuts in range(MAX_CUTS):
        with suppress(PromptTooLongError):
            return await _read(transcript, judge, query, room >> cuts)
    return await _read(transcript, judge, query, room >> MAX_CUTS, is_last=True)


async def _read(
    transcript: SessionTranscript, judge: Judge, query: TranscriptQuery[F, R], room: int, *, is_last: bool = False
) -> QueryResult[R]:
    """Read a transcript by questions of so many tokens."""
    first = preface(transcript, mark := mark_of(query.nonce))
    pieces = (*first, *units(transcript, mark))
    texts = [SEPARATOR.join(pieces)]
    if query.can_look_up and estimated_tokens(texts[0]) > MAX_WHOLE_TOKENS:
        texts = [SEPARATOR.join((*first, *units(transcript, mark, most))) for most in MAX_CALL_CHARS]
    for text in texts:
        if estimated_tokens(text) <= room - query.fixed_tokens:
            cut_note = (HEAD_AND_TAIL,) if text != SEPARATOR.join(pieces) else ()
            return QueryResult(await query.finish(EarlierFindings(text, is_whole=True)), notes=cut_note)
    # What a part may hold beside the rest of its question.
    left = room - query.question(TranscriptPart("", 1, 1)).tokens
    if left < MIN_TOKENS:
        hint = "Raise judge.contextTokens to what the model really has, or shorten the acceptance criteria."
        message = "The judge's context is too small for its question."
        raise JudgeError(message, hint=hint, code="JUDGE_CONTEXT_TOO_SMALL")
    budget = _chars(max(left - left % max(1, room // PART_STEPS), MIN_TOKENS))
    texts = chunked(pieces, budget)
    parts = [TranscriptPart(text, number, len(texts)) for number, text in enumerate(texts, start=1)]
    read = await base.all_of([functools.partial(_finding, judge, query, part) for part in parts])
    if unread := [finding for finding in read if isinstance(finding, JudgeError)]:
        # What nobody read may decide: better no result than one that is silent about it.
        raise unread[0]
    findings = [finding for finding in read if not isinstance(finding, JudgeError)]
    count = f"{len(parts)} parts" if len(parts) > 1 else "a part of its own"
    notes = [f"The transcript did not fit into the judge's context and was read in {count}."]
    if cut := sum(len(piece) > budget for piece in pieces):
        notes.append(f"Of {cut} turns or calls that were too large for it, the judge saw head and tail only.")
    try:
        chars = max(0, _chars(room - query.fixed_tokens))
        lines = windowed("\n".join(outline(transcript.turns)), min(chars // 2, _chars(OUTLINE_SHARE * room)))
        earlier = EarlierFindings(findings_json(findings, chars - len(lines)), is_whole=False, outline=lines)
        return QueryResult(await query.finish(earlier), len(parts), tuple(notes))
    except JudgeError as problem:
        if isinstance(problem, PromptTooLongError) and not is_last:
            raise
        merged = f"The judge could not conclude from the parts, so a conservative rule did: {problem.message}"
        return QueryResult(query.merge(findings), len(parts), (*notes, merged))


async def _finding(judge: Judge, query: TranscriptQuery[F, R], part: TranscriptPart) -> F:
    """The finding on a part, asked for again once where something in it is not there."""
    question = query.question(part)
    found, problems = query.check(await judge.ask(question, query.finding))
    if problems:
        again = base.repeated(question, problems, query.nonce)
        with suppress(JudgeError):
            found, _ = query.check(await judge.ask(again, query.finding))
    return found


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
