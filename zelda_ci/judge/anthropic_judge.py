"""The sole user of the Anthropic SDK: asks, within a deadline, up to a valid answer. Nothing of the SDK leaves here.

Importing it takes more than a second: it is done while there is something else to wait for.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import anthropic
import anyio
import httpx2
from anthropic.resources.messages import DEPRECATED_MODELS
from pydantic import BaseModel

from zelda_ci.domain.suite import JudgeSettings
from zelda_ci.errors import JudgeError
from zelda_ci.judge import conversation
from zelda_ci.judge.base import CHARS_PER_TOKEN, A, JudgeQuestion, estimated_tokens
from zelda_ci.judge.conversation import IMAGES, OPTIONAL, Conversation
from zelda_ci.redact import Redactor

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


@dataclass
class AnthropicJudge:
    """A model behind the Messages API."""

    base_url: str
    token: str = field(repr=False)
    model: str
    settings: JudgeSettings
    redact: Redactor
    price: Callable[[str, Mapping[str, Any]], float]
    """Cost in US dollars of an answer of a model, from the API's `usage` object."""
    notify: Callable[[str], None]
    time_limit: Callable[[float], AbstractContextManager[anyio.CancelScope]] = anyio.move_on_after
    """Limits the time of a question; it may know of waiting that is none of the judge's doing."""
    forms: Sequence[type[BaseModel]] = ()
    """In which judges answer who share a prefix: each of them is offered the tools of all, so that it is the same."""
    max_retries: int = 15
    """Of one request; those that a look-up takes are requests of their own."""
    _is_introduced: bool = field(default=False, init=False)
    _left_out: set[str] = field(default_factory=set, init=False)
    """Of `OPTIONAL`, what the other side has refused."""
    _begun: dict[object, anyio.Event] = field(default_factory=dict, init=False)
    """By what questions begin with."""

    @property
    def context_tokens(self) -> int:
        return self.settings.context_tokens

    async def ask(self, question: JudgeQuestion, form: type[A]) -> A:
        """Ask until there is a valid answer; raises JudgeError where the time is over or asking again is no use."""
        # Said once instead of the SDK's warning, which would stand in the middle of the progress display.
        warnings.filterwarnings("ignore", message=r"The model '.*' is deprecated", category=DeprecationWarning)
        if not self._is_introduced and (ends := DEPRECATED_MODELS.get(self.model)):
            self.notify(f"the judge's model {self.model} is deprecated and ends on {ends}: choose another judgeModel")
        self._is_introduced = True
        own: type[BaseModel] = form
        forms = self.forms if own in self.forms else (own,)
        schemas = {each: anthropic.transform_schema(each) for each in forms}
        talk = Conversation(question, form, schemas, self._fitting(question), self.redact)
        # Another question that begins alike is waited for until its answer begins, from when on the cache can be read:
        # at once, each would pay for all of it.
        start, begun = (question.common.system, *question.common.blocks), anyio.Event()
        first = self._begun.setdefault(start, begun) if estimated_tokens(*start) >= MIN_CACHED_TOKENS else begun
        if first is not begun:
            await first.wait()
        statuses: list[int] = []
        try:
            async with self._client(statuses) as client:
                with self.time_limit(self.settings.timeout_seconds):
                    return await self._until_valid(talk, client, begun)
        finally:
            begun.set()
        hint = "Raise judge.timeoutSeconds, or try again later."
        message = f"The judge gave no answer within {self.settings.timeout_seconds:g} s."
        if statuses and statuses[-1] >= 400:
            # Asked again by the SDK until the time was over: what the API said is the reason.
            refused = conversation.failure_of_status(statuses[-1], self.redact(""))
            raise JudgeError(f"{message} {refused.message}", hint=hint, code=refused.code)
        nobody_is_there = not statuses and self.settings.timeout_seconds >= 4 * SILENCE_SECONDS
        raise JudgeError(message, hint=hint, code="JUDGE_UNREACHABLE" if nobody_is_there else "JUDGE_TIMEOUT")

    def _fitting(self, question: JudgeQuestion) -> JudgeSettings:
        """The settings with less to look up where it would not fit beside question and answer."""
        its, context = self.settings, self.context_tokens
        room = int((max(context - question.tokens, LEFT_SHARE * context) - its.max_tokens) * CHARS_PER_TOKEN)
        if room < LEAST_CHARACTERS:
            return its.replace(max_lookups=0)
        return its.replace(max_lookup_characters=min(its.max_lookup_characters, room))

    async def _until_valid(self, talk: Conversation[A], client: anthropic.AsyncAnthropic, begun: anyio.Event) -> A:
        costs: list[float] = []
        while True:
            content, stop_reason, usage = await self._reply(talk, client, begun)
            # The first reply was caused by no look-up.
            costs.append(self.price(self.model, usage))
            if stop_reason in conversation.BY_STOP:
                raise conversation.failure(*conversation.BY_STOP[stop_reason])
            answer = await anyio.to_thread.run_sync(talk.take, content, sum(costs[1:]), abandon_on_cancel=True)
            if answer is not None:
                return answer

    async def _reply(
        self, talk: Conversation[Any], client: anthropic.AsyncAnthropic, begun: anyio.Event
    ) -> tuple[list[dict[str, Any]], str, Mapping[str, Any]]:
        """Blocks, stop reason and usage of one whole reply."""
        # The SDK repeats what fails before an answer begins; one that breaks off after that is asked for again here.
        broken = 0
        while True:
            left_out = frozenset(self._left_out)
            request = {"model": self.model, "max_tokens": self.settings.max_tokens, **talk.request(left_out)}
            content_type = "nothing"
            try:
                async with client.messages.stream(**request) as stream:
                    begun.set()
                    content_type = stream.response.headers.get("content-type", content_type)
                    message = await stream.get_final_message()
                if message.stop_reason is not None:
                    return [each.to_dict() for each in message.content], message.stop_reason, message.usage.to_dict()
                failure, may_pass = conversation.unreachable(self.redact("the answer broke off")), True
            except anthropic.APIStatusError as problem:
                words = self.redact(problem.api_message or problem.message)
                if problem.status_code == 400 and self._leave_out(words, talk, left_out):
                    continue
                is_event = problem.status_code < 300
                status = conversation.STREAMED.get(str(problem.type), 500) if is_event else problem.status_code
                failure = conversation.failure_of_status(status, words)
                may_pass = is_event and (status == 429 or status >= 500)
            except (anthropic.APIConnectionError, httpx2.TransportError) as problem:
                failure = conversation.unreachable(self.redact(str(problem.__cause__ or problem)))
                if isinstance(problem, anthropic.APITimeoutError | httpx2.TimeoutException):
                    failure = JudgeError("The judge fell silent.", hint=conversation.LATER, code="JUDGE_TIMEOUT")
                may_pass = isinstance(problem, httpx2.TransportError)
            except Exception as problem:
                # The SDK lets through whatever a strange answer makes of it.
                why = f"its answer is {content_type} that cannot be read ({type(problem).__name__})"
                sentence = self.redact(f"The judge's address does not answer like the Messages API: {why}")
                raise JudgeError(sentence, hint=conversation.ADDRESS, code="JUDGE_NOT_AN_API") from problem
            if not may_pass or broken == self.max_retries:
                raise failure
            broken += 1
            await anyio.sleep(PAUSE_SECONDS * broken)

    def _leave_out(self, words: str, talk: Conversation[Any], left_out: frozenset[str]) -> bool:
        """Whether a refusal names something that this request had and can do without; from now on it is left out."""
        named = {key for key, known in OPTIONAL.items() if any(word in words.lower() for word in known)} - left_out
        if not talk.has_images:
            named.discard(IMAGES)
        self._left_out |= named
        return bool(named)

    def _client(self, statuses: list[int]) -> anthropic.AsyncAnthropic:
        """A client that notes the HTTP status of every answer."""

        async def note(response: httpx2.Response) -> None:
            statuses.append(response.status_code)

        return anthropic.AsyncAnthropic(
            api_key=self.token,
            base_url=self.base_url,
            max_retries=self.max_retries,
            timeout=min(SILENCE_SECONDS, self.settings.timeout_seconds / 4),
            # The model proxy on loopback honours the user's HTTP proxy; the way to it must not. The SDK's client takes
            # proxies from the environment even without trust in it, so that each of their places has to be taken.
            http_client=anthropic.DefaultAsyncHttpxClient(
                trust_env=False,
                event_hooks={"response": [note]},
                mounts=dict.fromkeys(("http://", "https://", "all://")),
                # The SDK's default would take the token, and the transcript, wherever a server says.
                follow_redirects=False,
            ),
        )
