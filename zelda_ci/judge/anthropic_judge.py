"""The sole user of the Anthropic SDK: asks, repeats within a deadline, validates. Nothing of the SDK leaves here."""

import random
import warnings
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import anyio
from pydantic import BaseModel, ValidationError

from zelda_ci.domain.session import Usage
from zelda_ci.errors import JudgeError
from zelda_ci.imports import one_at_a_time
from zelda_ci.judge import replies
from zelda_ci.judge.base import A, JudgeAnswer, JudgeQuestion
from zelda_ci.judge.replies import AttemptFailed, ModelReply, read_reply
from zelda_ci.redact import Redactor

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from anthropic.types import MessageParam, TextBlockParam

# Cost in US dollars of an answer of a model, from the API's `usage` object.
Price = Callable[[str, Mapping[str, Any]], float]

MAX_PROBLEMS = 10


@dataclass(frozen=True)
class JudgeAccess:
    """Where the judge is reached, and how it is to answer."""

    base_url: str
    token: str = field(repr=False)
    model: str
    context_tokens: int
    max_tokens: int
    timeout_seconds: float
    """For one question, retries included."""


@dataclass(frozen=True)
class Backoff:
    """Waits between attempts: doubled each time, and scattered, so that parallel questions do not return together."""

    first_seconds: float = 0.5
    longest_seconds: float = 20.0
    most_attempts: int = 8

    def wait_seconds(self, failed: int) -> float:
        """The wait after so many failures."""
        longest = min(self.longest_seconds, self.first_seconds * 2.0 ** (failed - 1))
        return longest * random.uniform(0.5, 1.0)  # noqa: S311 - scatter, no secret


@dataclass
class _Tally:
    """What a question has taken so far."""

    usage: Usage = field(default_factory=Usage)
    cost_usd: float = 0.0
    attempts: int = 0
    failed: int = 0
    last: JudgeError | None = None


@dataclass(frozen=True)
class _Asking:
    client: "AsyncAnthropic"
    question: JudgeQuestion
    deadline: anyio.CancelScope
    tally: _Tally


class AnthropicJudge:
    """A model behind the Messages API."""

    def __init__(
        self,
        access: JudgeAccess,
        redact: Redactor,
        price: Price,
        notify: Callable[[str], None],
        backoff: Backoff | None = None,
    ) -> None:
        self.model: Final = access.model
        self.context_tokens: Final = access.context_tokens
        self._access = access
        self._redact = redact
        self._price = price
        self._backoff = backoff or Backoff()
        self._notify = notify
        self._is_introduced = False

    async def ask(self, question: JudgeQuestion, form: type[A]) -> JudgeAnswer[A]:
        """Ask until there is a valid answer, the deadline has passed, or asking again is no use.

        Raises:
            JudgeError: There is no usable answer.
        """
        await anyio.to_thread.run_sync(preload)
        self._introduce()
        tally, limit = _Tally(), self._access.timeout_seconds
        async with _connected(self._access) as client:
            with anyio.move_on_after(limit) as deadline:
                return await self._until_valid(_Asking(client, question, deadline, tally), form)
        raise replies.too_late(limit, tally.last)

    async def _until_valid(self, asking: _Asking, form: type[A]) -> JudgeAnswer[A]:
        tally = asking.tally
        messages = [_first_message(asking.question, self._redact)]
        while True:
            tally.attempts += 1
            try:
                reply = await self._reply(asking, messages, form)
            except AttemptFailed as problem:
                await self._wait(problem, asking)
                continue
            text = self._redact(reply.text)
            try:
                value = form.model_validate_json(text)
            except ValidationError as problem:
                # Asked again once: a judge that is wrong twice would be wrong a third time, for more money.
                if len(messages) > 1:
                    raise _invalid(self._redact(_problems(problem))) from None
                # The API refuses an empty message.
                messages += [_message("assistant", text or "{}"), _message("user", _correction(problem))]
                continue
            return JudgeAnswer(value, tally.usage, tally.cost_usd, tally.attempts)

    async def _reply(self, asking: _Asking, messages: list["MessageParam"], form: type[BaseModel]) -> ModelReply:
        data, tally = await self._send(asking, messages, form), asking.tally
        reply = read_reply(data)
        if reply is None:
            raise replies.not_an_api(self._redact(data[:4000].decode("utf-8", "replace")))
        # Before the answer is looked at: one that cannot be used has been paid for as well.
        tally.usage += reply.tokens
        tally.cost_usd += self._price(self.model, reply.usage)
        if problem := replies.of_stop(reply.stop_reason):
            raise problem
        return reply

    async def _send(self, asking: _Asking, messages: list["MessageParam"], form: type[BaseModel]) -> bytes:
        with one_at_a_time("anthropic"):
            import anthropic.resources.messages  # noqa: PLC0415 - more than a second, and most commands judge nothing

        try:
            raw = await asking.client.messages.with_raw_response.create(
                model=self.model,
                max_tokens=self._access.max_tokens,
                system=self._redact(asking.question.system),
                messages=messages,
                output_config={"format": {"type": "json_schema", "schema": anthropic.transform_schema(form)}},
                # Without one of its own, the SDK refuses long answers that are not streamed.
                timeout=self._access.timeout_seconds,
            )
        except anthropic.APIStatusError as problem:
            reason = self._redact(problem.api_message or problem.message)
            raise replies.of_status(problem.status_code, dict(problem.response.headers), reason) from problem
        except anthropic.APIConnectionError as problem:
            raise replies.of_connection(self._redact(str(problem.__cause__ or problem))) from problem
        except Exception as problem:
            # The SDK lets through whatever a strange answer makes of it.
            raise replies.not_an_api(self._redact(f"{type(problem).__name__}: {problem}")) from problem
        return raw.http_response.content

    async def _wait(self, problem: AttemptFailed, asking: _Asking) -> None:
        """Wait before the next attempt; where that is no use, tell the failure."""
        tally = asking.tally
        tally.failed += 1
        tally.last = problem.error
        seconds = max(self._backoff.wait_seconds(tally.failed), problem.wait_seconds or 0.0)
        is_too_long = anyio.current_time() + seconds >= asking.deadline.deadline
        if not problem.again or is_too_long or tally.attempts >= self._backoff.most_attempts:
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
async def _connected(access: JudgeAccess) -> AsyncIterator["AsyncAnthropic"]:
    with one_at_a_time("anthropic"):
        import anthropic.resources.messages  # noqa: PLC0415

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


def _first_message(question: JudgeQuestion, redact: Redactor) -> "MessageParam":
    blocks = [_block(redact(text)) for text in question.shared if text]
    if blocks:
        # What all questions of a run begin with is written into the cache once, at the last block that they share.
        blocks[-1]["cache_control"] = {"type": "ephemeral"}
    return {"role": "user", "content": [*blocks, _block(redact(question.body))]}


def _block(text: str) -> "TextBlockParam":
    return {"type": "text", "text": text}


def _message(role: Any, text: str) -> "MessageParam":
    return {"role": role, "content": [_block(text)]}


def _correction(problem: ValidationError) -> str:
    return f"That answer cannot be used: {_problems(problem)}. Give the whole answer again, in the required form."


def _problems(problem: ValidationError) -> str:
    errors = problem.errors(include_url=False, include_input=False, include_context=False)
    sentences = [f"{'.'.join(map(str, error['loc'])) or 'answer'}: {error['msg']}" for error in errors[:MAX_PROBLEMS]]
    return "; ".join(sentences)


def _invalid(problems: str) -> JudgeError:
    message = f"The judge's answer is not in the required form, even after a second request: {problems}"
    return JudgeError(message, hint="Try again, or choose another judgeModel.", code="JUDGE_ANSWER_INVALID")
