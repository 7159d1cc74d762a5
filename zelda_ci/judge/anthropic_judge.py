"""The sole user of the Anthropic SDK: asks, repeats within a deadline, validates. Nothing of the SDK leaves here."""

import random
import warnings
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import anyio
from pydantic import BaseModel

from zelda_ci.domain.session import Usage
from zelda_ci.errors import JudgeError
from zelda_ci.imports import one_at_a_time
from zelda_ci.judge import replies
from zelda_ci.judge.base import CHARS_PER_TOKEN, A, JudgeAnswer, JudgeQuestion, estimated_tokens
from zelda_ci.judge.conversation import IMAGES, OPTIONAL, Conversation, InvalidAnswerError, LookupLimits
from zelda_ci.judge.replies import AttemptFailed, ModelReply
from zelda_ci.redact import Redactor

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

# Cost in US dollars of an answer of a model, from the API's `usage` object.
Price = Callable[[str, Mapping[str, Any]], float]

# Below this, the API caches nothing.
MIN_CACHED_TOKENS = 1024

# In which a text is counted; without the count it is estimated.
COUNTING_SECONDS = 20

# Of the context, what a question leaves at least: sizes are estimated with care, and measured they are smaller.
LEFT_SHARE = 0.2

# For less than this, looking things up makes no sense.
LEAST_CHARACTERS = 2000

# Of an answer, for telling who speaks where it is not the API.
MAX_HEAD_BYTES = 4000


@dataclass(frozen=True)
class JudgeAccess:
    """Where the judge is reached, and how it is to answer."""

    base_url: str
    token: str = field(repr=False)
    model: str
    context_tokens: int
    max_tokens: int
    timeout_seconds: float
    """For one question, retries and look-ups included."""
    silence_seconds: float = 60
    """After which a request is given up and made anew, twice as long each time: the API sends a sign of life while it
    works, but a gateway may hold back the whole answer."""
    limits: LookupLimits = field(default_factory=LookupLimits)
    time_limit: Callable[[float], AbstractContextManager[anyio.CancelScope]] = anyio.move_on_after
    """Limits the time of a question and of silence; it may know of waiting that is none of the judge's doing."""
    counts_tokens: bool = False
    """Whether sizes are measured: not where a recording has to see the same, for which they are not kept."""


@dataclass(frozen=True)
class Backoff:
    """Waits between attempts: doubled each time, and scattered, so that parallel questions do not return together."""

    first_seconds: float = 0.5
    longest_seconds: float = 20.0
    most_attempts: int = 8
    """Of one request; those that a look-up takes are requests of their own."""

    def wait_seconds(self, failed: int) -> float:
        """The wait after so many failures."""
        longest = min(self.longest_seconds, self.first_seconds * 2.0 ** (failed - 1))
        return longest * random.uniform(0.5, 1.0)  # noqa: S311 - scatter, no secret


@dataclass
class _Asking:
    """One question on its way to an answer, and what it has taken so far."""

    begun: anyio.Event
    """Set when the first answer begins: from then on others can read what the question has written into the cache."""
    usage: Usage = field(default_factory=Usage)
    cost_usd: float = 0.0
    attempts: int = 0
    failed: int = 0
    """Attempts since the last reply."""
    stalled: int = 0
    last: JudgeError | None = None
    left_out: frozenset[str] = frozenset()
    """What the last request did without."""
    first_usd: float = 0.0
    """Cost of the first reply, which no look-up has caused."""
    head: bytes = b""
    """How the last answer begins."""
    listen: Callable[[], None] = lambda: None
    """Called with every sign of life of the other side."""

    def heard(self, piece: bytes) -> None:
        self.head += piece[: MAX_HEAD_BYTES - len(self.head)]
        self.begun.set()
        self.listen()


class AnthropicJudge:
    """A model behind the Messages API.

    Args:
        access: Where, which and how long.
        redact: Masks what is sent and what comes back.
        price: Of an answer.
        notify: Takes what the user should know.
        backoff: Waits between attempts.
        forms: In which judges answer who share a prefix, group by group: each of them is offered the tools of all, so
            that it is the same.
    """

    def __init__(
        self,
        access: JudgeAccess,
        redact: Redactor,
        price: Price,
        notify: Callable[[str], None],
        backoff: Backoff | None = None,
        forms: Sequence[Sequence[type[BaseModel]]] = (),
    ) -> None:
        self.model: Final = access.model
        self.context_tokens: Final = access.context_tokens
        self._access = access
        self._redact = redact
        self._price = price
        self._backoff = backoff or Backoff()
        self._notify = notify
        self._forms = tuple(forms)
        self._is_introduced = False
        self._left_out: set[str] = set()
        """Of `OPTIONAL`, what the other side has refused."""
        self._begun: dict[object, anyio.Event] = {}
        """By what questions begin with."""

    async def ask(self, question: JudgeQuestion, form: type[A]) -> JudgeAnswer[A]:
        """Ask until there is a valid answer, the deadline has passed, or asking again is no use.

        Raises:
            JudgeError: There is no usable answer.
        """
        await anyio.to_thread.run_sync(preload)
        self._introduce()
        talk, limit = self._conversation(question, form), self._access.timeout_seconds
        asking = _Asking(await self._alone_at_first(question))
        try:
            async with _connected(self._access, asking.heard) as client:
                with self._access.time_limit(limit) as deadline:
                    return await self._until_valid(asking, talk, client, deadline)
        finally:
            asking.begun.set()
        raise replies.too_late(limit, asking.last)

    async def count_tokens(self, text: str) -> int | None:
        """Ask for the size of a text, which is free; nothing where the other side does not tell."""
        if not self._access.counts_tokens:
            return None
        await anyio.to_thread.run_sync(preload)
        with one_at_a_time("anthropic"):
            import anthropic  # noqa: PLC0415 - preloaded

        message: Any = {"role": "user", "content": [{"type": "text", "text": self._redact(text)}]}
        async with _connected(self._access) as client:
            try:
                with anyio.fail_after(COUNTING_SECONDS):
                    counted: Any = await client.messages.count_tokens(model=self.model, messages=[message])
            except (anthropic.AnthropicError, TimeoutError, ValueError):
                return None
        return counted.input_tokens if isinstance(counted.input_tokens, int) else None

    async def _alone_at_first(self, question: JudgeQuestion) -> anyio.Event:
        """Wait until another question that begins alike is being answered: at once, each would pay for all of it."""
        common = question.common
        start = (common.system, *common.blocks) if common else (question.system, *question.shared)
        if estimated_tokens(*start) < MIN_CACHED_TOKENS:
            return anyio.Event()
        if start not in self._begun:
            return self._begun.setdefault(start, anyio.Event())
        await self._begun[start].wait()
        return anyio.Event()

    def _conversation(self, question: JudgeQuestion, form: type[A]) -> Conversation[A]:
        with one_at_a_time("anthropic"):
            import anthropic  # noqa: PLC0415 - preloaded

        own: type[BaseModel] = form
        groups = (tuple(group) for group in self._forms if own in group)
        forms = next(groups, (own,)) if question.common else (own,)
        schemas = {each: anthropic.transform_schema(each) for each in forms}
        return Conversation(question, form, schemas, self._limits(question), self._redact)

    def _limits(self, question: JudgeQuestion) -> LookupLimits:
        """What is looked up must fit beside question and answer, whatever the settings say."""
        access = self._access
        left = max(self.context_tokens - question.tokens, LEFT_SHARE * self.context_tokens) - access.max_tokens
        room = int(left * CHARS_PER_TOKEN)
        calls = access.limits.calls if room >= LEAST_CHARACTERS else 0
        return replace(access.limits, calls=calls, characters=min(access.limits.characters, room))

    async def _until_valid(
        self, asking: _Asking, talk: Conversation[A], client: "AsyncAnthropic", deadline: anyio.CancelScope
    ) -> JudgeAnswer[A]:
        while True:
            asking.attempts += 1
            try:
                reply = await self._reply(asking, talk, client)
            except AttemptFailed as problem:
                if not self._leave_out(problem, talk, asking):
                    await self._wait(problem, asking, deadline)
                continue
            later_usd = asking.cost_usd - asking.first_usd
            if await anyio.to_thread.run_sync(talk.look_up, reply, later_usd, abandon_on_cancel=True):
                continue
            try:
                value = talk.answer(reply)
            except InvalidAnswerError as problem:
                talk.correct(reply, problem)
                continue
            return JudgeAnswer(value, asking.usage, asking.cost_usd, asking.attempts, talk.looked_up)

    async def _reply(self, asking: _Asking, talk: Conversation[Any], client: "AsyncAnthropic") -> ModelReply:
        reply = await self._streamed(asking, talk, client)
        # Before the answer is looked at: one that cannot be used has been paid for as well.
        asking.failed = 0
        asking.usage += reply.tokens
        asking.cost_usd += self._price(self.model, reply.usage)
        asking.first_usd = asking.first_usd or asking.cost_usd
        if problem := replies.of_stop(reply.stop_reason):
            raise problem
        return reply

    async def _streamed(self, asking: _Asking, talk: Conversation[Any], client: "AsyncAnthropic") -> ModelReply:
        with one_at_a_time("anthropic"):
            import anthropic  # noqa: PLC0415 - preloaded
            import httpx2  # noqa: PLC0415 - its own client

        asking.head = b""
        asking.left_out = frozenset(self._left_out)
        try:
            with self._access.time_limit(seconds := self._patience(asking)) as silence:
                # Silence is noticed here, where it is known whether a request waits for a rate limit.
                timeout = httpx2.Timeout(None, connect=self._access.timeout_seconds)
                asking.listen = lambda: setattr(silence, "deadline", anyio.current_time() + seconds)
                async with client.messages.stream(
                    model=self.model,
                    max_tokens=self._access.max_tokens,
                    timeout=timeout,
                    **talk.request(self._left_out),
                ) as stream:
                    kinds = {event.type async for event in stream}
                    message = stream.current_message_snapshot if "message_start" in kinds else None
        except anthropic.APIStatusError as problem:
            reason = self._redact(problem.api_message or problem.message)
            if problem.status_code < 300:
                raise replies.of_event(problem.body, reason) from problem
            raise replies.of_status(problem.status_code, dict(problem.response.headers), reason) from problem
        except anthropic.APITimeoutError as problem:
            raise replies.stalled() from problem
        except (anthropic.APIConnectionError, httpx2.TransportError) as problem:
            raise replies.of_connection(self._redact(str(problem.__cause__ or problem))) from problem
        except Exception as problem:
            # The SDK lets through whatever a strange answer makes of it.
            raise replies.not_an_api(self._redact(f"{type(problem).__name__}: {problem}")) from problem
        if silence.cancelled_caught:
            asking.stalled += 1
            raise replies.stalled()
        if message is None:
            raise replies.not_an_api(self._redact(asking.head.decode("utf-8", "replace")))
        if "message_stop" not in kinds:
            raise replies.of_connection(self._redact("the answer broke off"))
        blocks = tuple(block.to_dict() for block in message.content)
        return ModelReply(blocks, message.stop_reason, message.usage.to_dict())

    def _patience(self, asking: _Asking) -> float:
        """Seconds of silence to bear: a part of what is left, and twice as long each time."""
        first = min(self._access.silence_seconds, self._access.timeout_seconds / 4)
        return first * 2.0**asking.stalled

    def _leave_out(self, problem: AttemptFailed, talk: Conversation[Any], asking: _Asking) -> bool:
        """Whether a refusal names something that can be done without, which is left out from now on.

        Another question may have learned it meanwhile: what counts is what this request had.
        """
        if problem.status != 400:
            return False
        said = problem.error.message.lower()
        named = {key for key, words in OPTIONAL.items() if any(word in said for word in words)} - asking.left_out
        if not talk.has_images:
            named.discard(IMAGES)
        self._left_out |= named
        return bool(named)

    async def _wait(self, problem: AttemptFailed, asking: _Asking, deadline: anyio.CancelScope) -> None:
        """Wait before the next attempt; where that is no use, tell the failure."""
        asking.failed += 1
        # Of silence the deadline tells anyway; what was said before it tells more.
        if asking.last is None or problem.error.code != replies.STALLED:
            asking.last = problem.error
        seconds = max(self._backoff.wait_seconds(asking.failed), problem.wait_seconds or 0.0)
        is_too_long = anyio.current_time() + seconds >= deadline.deadline
        if not problem.again or is_too_long or asking.failed >= self._backoff.most_attempts:
            raise problem.error from problem
        await anyio.sleep(seconds)

    def _introduce(self) -> None:
        if not self._is_introduced:
            self._is_introduced = True
            for notice in _deprecation(self.model):
                self._notify(notice)


def preload() -> None:
    """Import the SDK, which takes more than a second, while there is something else to wait for."""
    with one_at_a_time("anthropic"):
        import anthropic.resources.messages  # noqa: F401, PLC0415


@asynccontextmanager
async def _connected(
    access: JudgeAccess, heard: Callable[[bytes], None] = lambda _: None
) -> AsyncIterator["AsyncAnthropic"]:
    """The SDK's client; `heard` is told every piece of an answer, signs of life included, which the SDK keeps back."""
    with one_at_a_time("anthropic"):
        import anthropic.resources.messages  # noqa: PLC0415

    async def listen(response: Any) -> None:
        pieces = response.aiter_bytes

        async def heard_bytes(size: int | None = None) -> AsyncIterator[bytes]:
            async for piece in pieces(size):
                heard(piece)
                yield piece

        response.aiter_bytes = heard_bytes

    client = anthropic.AsyncAnthropic(
        api_key=access.token,
        base_url=access.base_url,
        # Attempts are counted and paid for here, with a deadline that the SDK's own retries know nothing of.
        max_retries=0,
        # The model proxy on loopback honours the user's HTTP proxy; the way to it must not. The SDK's client takes
        # proxies from the environment even without trust in it, so that each of their places has to be taken.
        http_client=anthropic.DefaultAsyncHttpxClient(
            trust_env=False,
            mounts=dict.fromkeys(("http://", "https://", "all://")),
            # The SDK's default would take the token, and the transcript, wherever a server says.
            follow_redirects=False,
            event_hooks={"response": [listen]},
        ),
    )
    try:
        yield client
    finally:
        with anyio.CancelScope(shield=True):
            await client.close()


def _deprecation(model: str) -> list[str]:
    """What the SDK would print as a warning, in a sentence of our own."""
    with one_at_a_time("anthropic"):
        from anthropic.resources.messages import DEPRECATED_MODELS  # noqa: PLC0415

    # It would appear in the middle of the progress display.
    warnings.filterwarnings("ignore", message=r"The model '.*' is deprecated", category=DeprecationWarning)
    ends = DEPRECATED_MODELS.get(model)
    return [f"the judge's model {model} is deprecated and ends on {ends}: choose another judgeModel"] if ends else []
