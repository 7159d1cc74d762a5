"""Counts requests, tokens, cost, errors and retries of one run; current also while an answer streams."""

import time
from collections import Counter
from pathlib import Path
from typing import Any

import anyio

from zelda_ci.domain.session import ApiUsage, ModelUsage, Usage
from zelda_ci.model_proxy import pricing
from zelda_ci.model_proxy.answer import AnswerEvents, dicts
from zelda_ci.model_proxy.loaded_context import LoadedContext
from zelda_ci.model_proxy.rate_limits import RateLimitWait
from zelda_ci.model_proxy.transcript_check import PassedAnswer, TranscriptCheck
from zelda_ci.model_proxy.wire import Call, CassetteState

BYTES_PER_TOKEN = 4
# More than a model writes, for estimates.
TOKENS_PER_SECOND = 100

# Status of an error inside a stream, 500 where it has another kind; others come before the stream, with their status.
ERROR_STATUS = {"rate_limit_error": "429", "overloaded_error": "529"}

# A conversation at one point: whether its tokens are counted, its sub-agent, and the number of its messages.
Place = tuple[bool, str | None, int]


class Meter:
    """One run's address, token and counts."""

    def __init__(
        self,
        base_url: str,
        token: str,
        budget_usd: float | None,
        cassette: CassetteState,
        socket: Path | None = None,
        wait: RateLimitWait | None = None,
    ) -> None:
        self.base_url = base_url
        self.token = token
        self.socket = socket
        """Where the same is served without a network; None where there is no room for a socket."""
        self.budget_usd = budget_usd
        self.exhausted = anyio.Event()
        """Set when the budget is spent and the answer that spent it has ended."""
        self.ends_at_call = False
        """Whether the session is over once it has called a skill, sub-agent or command."""
        self.routed = anyio.Event()
        """Set when it has."""
        self.transcript_check = TranscriptCheck()
        self.context = LoadedContext()
        self.outage: str | None = None
        """The last connection error; None after the next answer."""
        self.wait = wait or RateLimitWait()
        self.remarks: set[str] = set()
        """Sentences about requests that the proxy refused."""
        self.cassette = cassette
        self._exchanges: list[MeteredExchange] = []
        self._failed: set[Place] = set()

    @property
    def cost_usd(self) -> float:
        """Cost so far in US dollars."""
        return sum(exchange.cost_usd for exchange in self._exchanges)

    @property
    def is_spent(self) -> bool:
        """Whether the cost, with what answers without a usage must have cost, has reached the budget."""
        estimated = sum(exchange.estimated_usd for exchange in self._exchanges)
        return self.budget_usd is not None and self.cost_usd + estimated >= self.budget_usd

    def usage(self) -> ApiUsage:
        """Return all counts so far."""
        models: dict[str, ModelUsage] = {}
        for exchange in self._exchanges:
            if exchange.usage:
                models[exchange.model] = models.get(exchange.model, ModelUsage()).with_more(exchange.model_usage())
        return ApiUsage(
            requests=len(self._exchanges),
            retries=sum(exchange.is_retry for exchange in self._exchanges),
            errors=dict(sorted(Counter(it.error for it in self._exchanges if it.error).items())),
            models=dict(sorted(models.items())),
            api_seconds=sum(exchange.seconds for exchange in self._exchanges),
            wait_seconds=self.wait.seconds,
            first_tokens=next((it.input_tokens for it in self._exchanges if it.has_tools and it.usage), None),
            throttled=self.wait.throttled,
        )

    def usage_of(self, message_id: str) -> Usage | None:
        """Return the tokens of an answer, by the id of the API's message; None until the API has reported them."""
        answers = (it for it in self._exchanges if it.message_id == message_id and it.is_reported)
        return next((Usage() + answer.model_usage() for answer in answers), None)

    def begin(self, call: Call) -> "MeteredExchange":
        """Count a request; the exchange then observes its answer."""
        # The CLI changes options and its own notes between the attempts, so only the two speakers' messages count.
        spoken = sum(message.get("role") != "system" for message in dicts(call.body.get("messages")))
        place = call.counts_tokens, call.agent_id, spoken
        if not call.counts_tokens:
            self.transcript_check.request(call.body)
            self.context.request(call.body)
        exchange = MeteredExchange(call, place, PassedAnswer(self.transcript_check), is_retry=place in self._failed)
        self._failed.discard(place)
        self._exchanges.append(exchange)
        return exchange

    def drop(self, exchange: "MeteredExchange") -> None:
        """Forget a request that the API refused for now, and that will be sent again."""
        self._exchanges.remove(exchange)
        if exchange.is_retry:
            self._failed.add(exchange.place)

    def end(self, exchange: "MeteredExchange") -> None:
        """Close an exchange whose answer is over, whole or not."""
        exchange.end()
        if exchange.error or exchange.is_left:
            self._failed.add(exchange.place)
        if self.is_spent:
            self.exhausted.set()


class MeteredExchange:
    """Observes the answer to one request."""

    def __init__(self, call: Call, place: Place, passed: PassedAnswer, *, is_retry: bool) -> None:
        # Only what the price depends on: the requests of a session are large, each repeats the one before.
        self._is_free = call.counts_tokens
        self._request_bytes = len(call.raw_body)
        self._max_tokens = most if isinstance(most := call.body.get("max_tokens"), int) else 0
        self._requested_model = self.model = str(call.body.get("model", ""))
        self.has_tools = bool(call.body.get("tools"))
        self.place = place
        self.is_retry = is_retry
        self.error: str | None = None
        """HTTP status or `connection`."""
        self.is_left = False
        """Whether nobody waits for the rest of the answer."""
        self.usage: dict[str, Any] = {}
        """The API's own, as far as it has come."""
        self.cost_usd = 0.0
        """Cost of what was seen of the answer."""
        self.estimated_usd = 0.0
        """A guess at the cost of an answer that was left before it reported its usage, or could not be read."""
        self.is_reported = False
        """Whether the usage is whole."""
        self.message_id = ""
        """Id of the API's message."""
        self._answer_bytes = 0
        self._events = AnswerEvents()
        self._passed: PassedAnswer | None = passed
        self._started_at = time.monotonic()
        self._ended_at: float | None = None

    @property
    def seconds(self) -> float:
        """Wall time of the exchange so far."""
        return (self._ended_at or time.monotonic()) - self._started_at

    @property
    def input_tokens(self) -> int:
        """Return the size of the request, whatever of it came from a cache."""
        usage = self.model_usage()
        return usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens

    def model_usage(self) -> ModelUsage:
        """Tokens and cost of what was seen of the answer."""
        return ModelUsage(
            input_tokens=pricing.count(self.usage, "input_tokens"),
            output_tokens=pricing.count(self.usage, "output_tokens"),
            cache_read_tokens=pricing.count(self.usage, "cache_read_input_tokens"),
            cache_write_tokens=sum(pricing.cache_writes(self.usage)),
            cost_usd=self.cost_usd,
            cost_known=pricing.is_known(self.model),
        )

    def start(self, status: int) -> None:
        """Take in the status of the answer."""
        self.error = str(status) if status >= 400 else None

    def chunk(self, data: bytes) -> None:
        """Take in the next bytes of the answer."""
        self._answer_bytes += len(data)
        for event in self._events.feed(data):
            self._update(event)

    def end(self) -> None:
        """Close the exchange; only counts are kept of it."""
        self._ended_at = time.monotonic()
        for event in self._events.end():
            self._update(event)
        # Who leaves an answer could otherwise read all of it but its price.
        if (self.is_left or not self.error) and not (self.is_reported or self._is_free):
            output = max(round(self.seconds * TOKENS_PER_SECOND), self._answer_bytes // BYTES_PER_TOKEN)
            estimate = {
                "input_tokens": 0 if self.usage else self._request_bytes // BYTES_PER_TOKEN,
                "output_tokens": max(0, min(self._max_tokens, output)),
            }
            self.estimated_usd = pricing.cost_usd(self.model, estimate)
        # A conversation's answers are as long as the conversation.
        self._events, self._passed = AnswerEvents(), None

    def _update(self, event: dict[str, Any]) -> None:
        if self._passed:
            self._passed.event(event)
        match event:
            case {"type": "message_start", "message": dict(message)}:
                if isinstance(model := message.get("model"), str) and model:
                    # The API answers with the dated id; the session and Claude Code use the one that was requested.
                    same = pricing.base_name(model) == pricing.base_name(self._requested_model)
                    self.model = self._requested_model if same else model
                self.message_id = str(message.get("id"))
                self._count(message.get("usage"))
            case {"type": "message_delta", "usage": dict(usage)}:
                self.is_reported = True
                self._count(usage)
            case {"type": "error", "error": {"type": str(kind)}}:
                self.error = self.error or ERROR_STATUS.get(kind, "500")
            case _:
                pass

    def _count(self, usage: object) -> None:
        # Counts are cumulative; null and zero mean "as before".
        if isinstance(usage, dict):
            self.usage |= {key: value for key, value in usage.items() if value}
            self.cost_usd = pricing.cost_usd(self.model, self.usage)
