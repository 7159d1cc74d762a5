"""The sole user of the Anthropic SDK: asks, within a deadline, up to a valid answer. Nothing of the SDK leaves here."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import anyio
from pydantic import BaseModel

from zelda_ci.imports import one_at_a_time
from zelda_ci.judge import failures
from zelda_ci.judge.base import CHARS_PER_TOKEN, A, JudgeQuestion, estimated_tokens
from zelda_ci.judge.conversation import IMAGES, OPTIONAL, Conversation, LookupLimits
from zelda_ci.redact import Redactor

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from anthropic.types import Message

# Cost in US dollars of an answer of a model, from the API's `usage` object.
Price = Callable[[str, Mapping[str, Any]], float]

# Below this, the API caches nothing.
MIN_CACHED_TOKENS = 1024

# Of the context, what a question leaves at least: sizes are estimated with care, and measured they are smaller.
LEFT_SHARE = 0.2

# For less than this, looking things up makes no sense.
LEAST_CHARACTERS = 2000

# After which a request is given up and made anew: the API sends a sign of life while it works. A request that Zelda's
# own proxy holds back for a rate limit is made anew as well, and held back again.
SILENCE_SECONDS = 60

# Before a stream that broke off is asked for again; more with each time.
PAUSE_SECONDS = 0.5


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
    limits: LookupLimits = field(default_factory=LookupLimits)
    time_limit: Callable[[float], AbstractContextManager[anyio.CancelScope]] = anyio.move_on_after
    """Limits the time of a question; it may know of waiting that is none of the judge's doing."""
    max_retries: int = 15
    """Of one request; those that a look-up takes are requests of their own."""


class AnthropicJudge:
    """A model behind the Messages API.

    Args:
        access: Where, which and how long.
        redact: Masks what is sent and what comes back.
        price: Of an answer.
        notify: Takes what the user should know.
        forms: In which judges answer who share a prefix, group by group: each of them is offered the tools of all, so
            that it is the same.
    """

    def __init__(
        self,
        access: JudgeAccess,
        redact: Redactor,
        price: Price,
        notify: Callable[[str], None],
        forms: Sequence[Sequence[type[BaseModel]]] = (),
    ) -> None:
        self.model: Final = access.model
        self.context_tokens: Final = access.context_tokens
        self._access = access
        self._redact = redact
        self._price = price
        self._notify = notify
        self._forms = tuple(forms)
        self._is_introduced = False
        self._left_out: set[str] = set()
        """Of `OPTIONAL`, what the other side has refused."""
        self._begun: dict[object, anyio.Event] = {}
        """By what questions begin with."""

    async def ask(self, question: JudgeQuestion, form: type[A]) -> A:
        """Ask until there is a valid answer, the deadline has passed, or asking again is no use.

        Raises:
            JudgeError: There is no usable answer.
        """
        await anyio.to_thread.run_sync(preload)
        self._introduce()
        talk, seconds = self._conversation(question, form), self._access.timeout_seconds
        begun = await self._alone_at_first(question)
        try:
            async with self._client() as client:
                with self._access.time_limit(seconds):
                    return await self._until_valid(talk, client, begun)
        finally:
            begun.set()
        raise failures.too_late(seconds)

    async def _alone_at_first(self, question: JudgeQuestion) -> anyio.Event:
        """Wait until another question that begins alike is being answered: at once, each would pay for all of it.

        The event is to be set when the first answer begins: from then on others can read what the question has written
        into the cache.
        """
        common = question.common
        start = (common.system, *common.blocks) if common else (question.system, *question.shared)
        if estimated_tokens(*start) < MIN_CACHED_TOKENS:
            return anyio.Event()
        if start not in self._begun:
            return self._begun.setdefault(start, anyio.Event())
        await self._begun[start].wait()
        return anyio.Event()

    def _conversation(self, question: JudgeQuestion, form: type[A]) -> Conversation[A]:
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

    async def _until_valid(self, talk: Conversation[A], client: "AsyncAnthropic", begun: anyio.Event) -> A:
        costs: list[float] = []
        while True:
            message = await self._message(talk, client, begun)
            # The first reply was caused by no look-up.
            costs.append(self._price(self.model, message.usage.to_dict()))
            if problem := failures.of_stop(str(message.stop_reason)):
                raise problem
            content = [block.to_dict() for block in message.content]
            answer = await anyio.to_thread.run_sync(talk.take, content, sum(costs[1:]), abandon_on_cancel=True)
            if answer is not None:
                return answer

    async def _message(self, talk: Conversation[Any], client: "AsyncAnthropic", begun: anyio.Event) -> "Message":
        """One whole reply.

        The SDK repeats what fails before an answer begins; one that breaks off after that is asked for again here.
        """
        import anthropic  # noqa: PLC0415 - preloaded
        import httpx2  # noqa: PLC0415 - its own client

        broken = 0
        while True:
            left_out = frozenset(self._left_out)
            request, content_type = talk.request(left_out), "nothing"
            limit = self._access.max_tokens
            try:
                async with client.messages.stream(model=self.model, max_tokens=limit, **request) as stream:
                    begun.set()
                    content_type = stream.response.headers.get("content-type", content_type)
                    message = await stream.get_final_message()
                if message.stop_reason is not None:
                    return message
                failure, may_pass = failures.of_connection(self._redact("the answer broke off")), True
            except anthropic.APIStatusError as problem:
                words = self._redact(problem.api_message or problem.message)
                if problem.status_code == 400 and self._leave_out(words, talk, left_out):
                    continue
                is_event = problem.status_code < 300
                status = failures.status_of_event(problem.body) if is_event else problem.status_code
                failure = failures.of_status(status, words)
                may_pass = is_event and (status == 429 or status >= 500)
            except (anthropic.APIConnectionError, httpx2.TransportError) as problem:
                is_silent = isinstance(problem, anthropic.APITimeoutError | httpx2.TimeoutException)
                words = self._redact(str(problem.__cause__ or problem))
                failure = failures.stalled() if is_silent else failures.of_connection(words)
                may_pass = isinstance(problem, httpx2.TransportError)
            except Exception as problem:
                # The SDK lets through whatever a strange answer makes of it.
                words = self._redact(f"its answer is {content_type}, not a stream of events ({type(problem).__name__})")
                raise failures.not_an_api(words) from problem
            if not may_pass or broken == self._access.max_retries:
                raise failure
            broken += 1
            await anyio.sleep(PAUSE_SECONDS * broken)

    def _leave_out(self, words: str, talk: Conversation[Any], left_out: frozenset[str]) -> bool:
        """Whether a refusal names something that can be done without, which is left out from now on.

        Another question may have learned it meanwhile: what counts is what this request had.
        """
        named = {key for key, known in OPTIONAL.items() if any(word in words.lower() for word in known)} - left_out
        if not talk.has_images:
            named.discard(IMAGES)
        self._left_out |= named
        return bool(named)

    def _client(self) -> "AsyncAnthropic":
        import anthropic  # noqa: PLC0415 - preloaded

        access = self._access
        return anthropic.AsyncAnthropic(
            api_key=access.token,
            base_url=access.base_url,
            max_retries=access.max_retries,
            timeout=min(SILENCE_SECONDS, access.timeout_seconds / 4),
            # The model proxy on loopback honours the user's HTTP proxy; the way to it must not. The SDK's client takes
            # proxies from the environment even without trust in it, so that each of their places has to be taken.
            http_client=anthropic.DefaultAsyncHttpxClient(
                trust_env=False,
                mounts=dict.fromkeys(("http://", "https://", "all://")),
                # The SDK's default would take the token, and the transcript, wherever a server says.
                follow_redirects=False,
            ),
        )

    def _introduce(self) -> None:
        """Say once what the SDK would print, in the middle of the progress display, as a warning."""
        from anthropic.resources.messages import DEPRECATED_MODELS  # noqa: PLC0415 - preloaded

        warnings.filterwarnings("ignore", message=r"The model '.*' is deprecated", category=DeprecationWarning)
        if not self._is_introduced and (ends := DEPRECATED_MODELS.get(self.model)):
            self._notify(f"the judge's model {self.model} is deprecated and ends on {ends}: choose another judgeModel")
        self._is_introduced = True


def preload() -> None:
    """Import the SDK, which takes more than a second, while there is something else to wait for."""
    with one_at_a_time("anthropic"):
        import anthropic.resources.messages  # noqa: F401, PLC0415
