"""What evaluators know of a judge: a question in, with images, a valid answer out; votes; questions side by side."""

import asyncio
import base64
import hashlib
import math
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeVar

import anyio
import anyio.to_thread
from pydantic import BaseModel

from zelda_ci.domain.numbers import format_count
from zelda_ci.domain.session import MAX_IMAGE_BYTES, SessionImage, SessionTranscript, ToolReturned, media_type_of
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.errors import JudgeError
from zelda_ci.files import untrusted
from zelda_ci.judge.characters import spelled
from zelda_ci.judge.lookups import SessionLookups
from zelda_ci.judge.rendering import fence, lines_of_images, mark_of, render

A = TypeVar("A", bound=BaseModel)
T = TypeVar("T")

# Measured on transcripts: 2.67 with current models, 2.9 with older ones. What is estimated must not be too small.
CHARS_PER_TOKEN = 2.5
# Code of the error that says: the answer was longer than the judge may answer.
ANSWER_CUT = "JUDGE_ANSWER_CUT"
MODEL_SEPARATOR = " + "
# More requests side by side mostly meet the API's rate limit.
AT_ONCE = 4

# Images in one question. Beyond twenty in a request, the API takes only small ones.
MAX_SHOWN = 10
MAX_SHOWN_BYTES = 12_000_000
# What models count for a large image, at most.
TOKENS_OF_ONE = 5000
# Of the judge's context.
IMAGES_SHARE = 0.15
BOUND = "only the last ones are shown"
TOO_SMALL = "the judge's context is too small for images"
GONE = "its file is gone"
OFF = "judge.images is off"
REFUSED = "the judge's API refused images"


class PromptTooLongError(JudgeError):
    """A question is larger than the judge's context; asking in smaller parts helps."""

    default_code = "JUDGE_PROMPT_TOO_LONG"


def text_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


@dataclass
class SessionImages:
    """The images of one session, each behind its line in a text, and what a judge has seen of them.

    A line holds the run's mark and the image's digest: nothing that a session writes puts one in another's place.
    """

    transcript: SessionTranscript
    folder: Path | None
    """Where they lie; absent where they are not to be shown."""
    mark: str
    context_tokens: int
    is_refused: bool = False
    """Whether the judge's API has refused to take images."""
    shown: set[str] = field(default_factory=set)
    """Digests of those that a judge was shown."""

    @cached_property
    def all(self) -> tuple[SessionImage, ...]:
        entries = self.transcript.entries
        alone = (image for entry in entries if isinstance(entry, ToolReturned) for image in entry.images)
        return (*(image for call in self.transcript.tool_calls for image in call.images), *alone)

    @property
    def can_be_shown(self) -> bool:
        return bool(self.all) and self.folder is not None

    @property
    def most(self) -> int:
        return min(MAX_SHOWN, int(IMAGES_SHARE * self.context_tokens / TOKENS_OF_ONE))

    @property
    def tokens(self) -> int:
        return min(len(self.all), self.most) * TOKENS_OF_ONE if self.can_be_shown else 0

    def blocks(self, texts: Sequence[str]) -> list[dict[str, Any]]:
        """Texts as blocks, each image behind its line; where not all fit, the last ones, which tell most."""
        line, known = lines_of_images(self.mark), {image.sha256: image for image in self.all}
        left, room = self.most, MAX_SHOWN_BYTES
        blocks: list[dict[str, Any]] = []
        for text in reversed(texts):
            end, behind = len(text), ""
            for found in reversed([*line.finditer(text)]):
                behind, end = text[found.end() : end] + behind, found.end()
                image = known.get(found[1])
                why = self._why_not(image)
                if why is None and image and left and image.size_bytes <= room and (data := self._read(image)):
                    left, room = left - 1, room - len(data)
                    self.shown.add(image.sha256)
                    source = {"type": "base64", "media_type": image.media_type, "data": base64.b64encode(data).decode()}
                    blocks += [text_block(behind)] if behind else []
                    blocks.append({"type": "image", "source": source})
                    behind = ""
                else:
                    behind = f"\n[{self.mark} this image is not shown: {why or BOUND}]{behind}"
            blocks.append(text_block(text[:end] + behind))
        return blocks[::-1]

    def objection(self, image: SessionImage) -> str | None:
        """Why a judge cannot have seen an image."""
        is_seen = image.sha256 in self.shown and not self.is_refused
        return None if is_seen else self._why_not(image) or "it was not shown"

    def notes(self) -> Iterator[str]:
        if unseen := [image for image in self.all if self.objection(image)]:
            why = ", ".join(dict.fromkeys(self._why_not(image) or BOUND for image in unseen))
            count = format_count(len(self.all), "image")
            yield f"Of {count} of the session, the judge did not see {len(unseen)}: {why}."

    def _why_not(self, image: SessionImage | None) -> str | None:
        """Why an image is not shown, however much room there is."""
        reasons = {OFF: self.folder is None, REFUSED: self.is_refused, TOO_SMALL: not self.most}
        reasons[GONE] = image not in self._there
        return next((why for why, applies in reasons.items() if applies), None)

    @cached_property
    def _there(self) -> frozenset[SessionImage | None]:
        """Those whose files can be shown; each is looked at once, however often it is named."""
        return frozenset(image for image in set(self.all) if self._read(image))

    def _read(self, image: SessionImage) -> bytes | None:
        """The bytes of an image, if its file still holds what the transcript names."""
        if self.folder is None:
            return None
        try:
            with untrusted.entered(self.folder) as folder:
                data = untrusted.read(image.file_name, MAX_IMAGE_BYTES, folder=folder)
        except OSError:
            return None
        is_it = hashlib.sha256(data).hexdigest() == image.sha256 and media_type_of(data) == image.media_type
        return data if is_it else None


@dataclass(frozen=True)
class CommonPrefix:
    """What all judges of a run are shown first: written into the provider's cache once and paid once."""

    system: str
    """What holds for each of them, the rule for fences before all."""
    blocks: tuple[str, ...]
    images: SessionImages | None = None


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
