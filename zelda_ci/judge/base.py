"""What evaluators know of a judge: a question in, a validated answer out; votes, and questions side by side."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

import anyio
import anyio.to_thread
from pydantic import BaseModel

from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.errors import JudgeError
from zelda_ci.judge.characters import spelled
from zelda_ci.judge.images import SessionImages
from zelda_ci.judge.lookups import SessionLookups
from zelda_ci.judge.rendering import fence, mark_of, render

A = TypeVar("A", bound=BaseModel)
T = TypeVar("T")

# Measured on transcripts: 2.67 with current models, 2.9 with older ones. What is estimated must not be too small.
CHARS_PER_TOKEN = 2.5
# Code of the error that says: the answer was longer than the judge may answer.
ANSWER_CUT = "JUDGE_ANSWER_CUT"
MODEL_SEPARATOR = " + "
# More requests side by side mostly meet the API's rate limit.
AT_ONCE = 4


class PromptTooLongError(JudgeError):
    """A question is larger than the judge's context; asking in smaller parts helps."""

    default_code = "JUDGE_PROMPT_TOO_LONG"


@dataclass(frozen=True)
class CommonPrefix:
    """What all judges of a run are shown first: written into the provider's cache once and paid once."""

    system: str
    """What holds for each of them, the rule for fences before all."""
    blocks: tuple[str, ...]
    """Fenced."""
    images: SessionImages | None = None
    """Those that the blocks name."""


@dataclass(frozen=True)
class JudgeQuestion:
    """One question to a judge. Text from a session belongs into fences, see `judge.fence`."""

    system: str
    """The judge's task, which follows after what is common."""
    shared: tuple[str, ...]
    """Blocks that are the same for several questions of one judge: sent before the body, with prompt caching."""
    body: str
    lookups: SessionLookups | None = None
    """What the judge may look up before it answers. Judges with the same `common` offer the same."""
    common: CommonPrefix = CommonPrefix("", ())
    """What judges with different tasks share."""
    vote: int = 0
    """Which of several votes on the same; decides who is asked where different models judge."""

    @property
    def blocks(self) -> tuple[str, ...]:
        """All that is shown before the body, in order."""
        return (*self.common.blocks, *self.shared)

    @property
    def tokens(self) -> int:
        images = self.common.images.tokens if self.common.images else 0
        return images + estimated_tokens(self.common.system, self.system, *self.blocks, self.body)


class Judge(Protocol):
    """Answers questions in a given form."""

    @property
    def model(self) -> str:
        """The full id of the model that answers."""

    @property
    def context_tokens(self) -> int:
        """The size of its context window."""

    async def ask(self, question: JudgeQuestion, form: type[A]) -> A:
        """Ask; raises JudgeError where there is no usable answer."""


def models_of(suite: ResolvedSuite) -> tuple[str, ...]:
    return suite.judge.models or (suite.judge_model,)


@dataclass
class JudgePanel:
    """Models as one judge: each vote is that of another, and so is its repetition."""

    models: Sequence[str]
    context_tokens: int
    make: Callable[[str], Judge]
    """Makes a judge for its first question: importing its SDK takes a second. Raises JudgeError where it cannot."""
    _judges: dict[str, Judge] = field(default_factory=dict)

    @property
    def model(self) -> str:
        return MODEL_SEPARATOR.join(self.models)

    async def ask(self, question: JudgeQuestion, form: type[A]) -> A:
        model = self.models[question.vote % len(self.models)]
        if model not in self._judges:
            self._judges[model] = await anyio.to_thread.run_sync(self.make, model)
        return await self._judges[model].ask(question, form)


def estimated_tokens(*texts: str) -> int:
    return math.ceil(sum(map(len, texts)) / CHARS_PER_TOKEN)


def common_prefix(blocks: Sequence[str], nonce: str, images: SessionImages | None = None) -> CommonPrefix:
    """What all judges of a run read first: the rule for evidence, and evidence in fences."""
    has_images = images is not None and images.can_be_shown
    system = render("judge-system", nonce=nonce, mark=mark_of(nonce), has_images=has_images)
    return CommonPrefix(system, tuple(blocks), images)


def repeated(question: JudgeQuestion, problems: Iterable[str], nonce: str) -> JudgeQuestion:
    """The question once more, with why the answer could not be used: fenced, for it names what a session wrote."""
    told = fence("problems", "\n".join(map(spelled, problems)), nonce)
    return replace(question, body=render("again", question=question.body, problems=told))


async def all_of(calls: Sequence[Callable[[], Awaitable[T]]]) -> list[T | JudgeError]:
    """What each call returned, or why it could not, in the order of the calls."""
    slots = anyio.CapacityLimiter(AT_ONCE)

    async def made(call: Callable[[], Awaitable[T]]) -> T | JudgeError:
        async with slots:
            try:
                return await call()
            except JudgeError as problem:
                return problem

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(made(call)) for call in calls]
    return [task.result() for task in tasks]
