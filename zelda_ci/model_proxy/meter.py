"""What one run has used: requests, tokens, cost, errors, retries. Always current, also while an answer streams."""

import hashlib
import time
from collections import Counter
from pathlib import Path
from typing import Any

import anyio

from zelda_ci.domain.session import ApiUsage, ModelUsage
from zelda_ci.model_proxy import pricing, wire
from zelda_ci.model_proxy.rate_limits import RateLimitWait
from zelda_ci.model_proxy.wire import Call, CassetteState, EventReader, Headers
from zelda_ci.model_proxy.witness import AnswerReader, TranscriptWitness
from zelda_ci.redact import SafeText

MAX_REFUSED = 5

BYTES_PER_TOKEN = 4
# What a model hardly writes.
TOKENS_PER_SECOND = 100

# Status that an error has when it comes before the stream; one inside a stream is counted under it too.
ERROR_STATUS = {
    "invalid_request_error": "400",
    "authentication_error": "401",
    "billing_error": "402",
    "permission_error": "403",
    "not_found_error": "404",
    "request_too_large": "413",
    "rate_limit_error": "429",
    "timeout_error": "504",
    "overloaded_error": "529",
}


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
        self.witness = TranscriptWitness()
        self.outage: str | None = None
        """The last connection error; None after the next answer."""
        self.wait = wait or RateLimitWait()
        self._cassette = cassette
        self._exchanges: list[MeteredExchange] = []
        self._refused: set[str] = set()
        self._refused_keys: set[str] = set()

    @property
    def failure(self) -> SafeText | None:
        """Why the cassette could not answer or could not be written; None while all is well."""
        return self._cassette.failure

    @property
    def divergences(self) -> tuple[SafeText, ...]:
        """Where a replay was not exactly what was recorded, without harm so far."""
        return tuple(self._cassette.divergences)

    @property
    def unused(self) -> tuple[SafeText, ...]:
        """Recorded exchanges that the run has not asked for."""
        return tuple(self._cassette.unused)

    @property
    def refused_models(self) -> tuple[str, ...]:
        """Models that the run asked for and may not ask, sorted."""
        return tuple(sorted(self._refused))

    def refuse(self, model: str) -> None:
        """Note a model that was refused; the names are the session's own, so only a few are kept."""
        if len(self._refused) < MAX_REFUSED:
            self._refused.add(model)

    @property
    def refused_keys(self) -> tuple[str, ...]:
        """Keys of requests that Zelda does not know, sorted."""
        return tuple(sorted(self._refused_keys))

    def refuse_key(self, key: str) -> None:
        """Note a key that was refused; as with models, only a few are kept."""
        if len(self._refused_keys) < MAX_REFUSED:
            self._refused_keys.add(key)

    @property
    def cost_usd(self) -> float:
        """Cost so far in US dollars."""
        return sum(exchange.cost_usd for exchange in self._exchanges)

    @property
    def is_spent(self) -> bool:
        """Whether the cost, with what answers that nobody waited for must have cost, has reached the budget."""
        unseen = sum(exchange.unseen_usd for exchange in self._exchanges)
        return self.budget_usd is not None and self.cost_usd + unseen >= self.budget_usd

    @property
    def spent_message(self) -> str:
        """Why requests are refused once the budget is spent."""
        spent, budget = f"{self.cost_usd:.4f}", f"{self.budget_usd or 0:.4f}"
        return f"Zelda's cost limit for this run is reached: {spent} of {budget} US dollars are spent"

    def usage(self) -> ApiUsage:
        """Everything counted so far."""
        errors = Counter(exchange.error for exchange in self._exchanges if exchange.error)
        models: dict[str, ModelUsage] = {}
        for exchange in self._exchanges:
            if exchange.tokens:
                models[exchange.model] = _add(models.get(exchange.model), exchange)
        return ApiUsage(
            requests=len(self._exchanges),
            retries=sum(exchange.is_retry for exchange in self._exchanges),
            errors=dict(sorted(errors.items())),
            models=dict(sorted(models.items())),
            api_seconds=sum(exchange.seconds for exchange in self._exchanges),
            wait_seconds=self.wait.seconds,
            throttled=self.wait.throttled,
        )

    def begin(self, call: Call) -> "MeteredExchange":
        """Count a request; the exchange then observes its answer."""
        place = call.place or place_of(call)
        is_retry = any(exchange.place == place and exchange.is_failed for exchange in self._exchanges)
        if not call.counts_tokens:
            self.witness.request(call.body)
        reader, model = AnswerReader(self.witness), str(call.body.get("model", ""))
        exchange = MeteredExchange(call, model, place, reader, is_retry=is_retry)
        self._exchanges.append(exchange)
        return exchange

    def drop(self, exchange: "MeteredExchange") -> None:
        """Forget a request that the API refused for now, and that will be sent again."""
        self._exchanges.remove(exchange)

    def end(self, exchange: "MeteredExchange") -> None:
        """The answer is over, whole or not."""
        exchange.end()
        if self.is_spent:
            self.exhausted.set()


class MeteredExchange:
    def __init__(self, call: Call, model: str, place: bytes, reader: AnswerReader, *, is_retry: bool) -> None:
        # Only what the price depends on: the requests of a session are large, each repeats the one before.
        self._is_free = call.counts_tokens
        self._request_bytes = len(call.raw_body)
        self._max_tokens = most if isinstance(most := call.body.get("max_tokens"), int) else 0
        self.requested_model = self.model = model
        self.place = place
        self._reader: AnswerReader | None = reader
        self.is_retry = is_retry
        self.is_failed = False
        self.error: str | None = None
        """HTTP status or `connection`."""
        self.tokens: pricing.Tokens | None = None
        self._has_usage = False
        self.unseen_usd = 0.0
        """A guess at the cost of an answer that was abandoned before it reported its usage, or could not be read."""
        self._usage: dict[str, Any] = {}
        self._is_answer = False
        self._answer_bytes = 0
        self._events: EventReader | None = None
        self._body = bytearray()
        self._started_at = time.monotonic()
        self._ended_at: float | None = None

    @property
    def seconds(self) -> float:
        """Wall time of the exchange so far."""
        return (self._ended_at or time.monotonic()) - self._started_at

    @property
    def cost_usd(self) -> float:
        """Cost of what was seen of the answer."""
        return pricing.cost_usd(self.model, self.tokens) if self.tokens else 0.0

    def start(self, status: int, headers: Headers) -> None:
        """Status and headers of the answer."""
        if status >= 400:
            self.fail(str(status))
        else:
            self._is_answer = True

    def chunk(self, data: bytes) -> None:
        """The next bytes of the answer."""
        if not self._is_answer:
            return
        self._answer_bytes += len(data)
        if self._events is None and not self._body:
            # What it is, its first bytes say: gateways label event streams in other ways too.
            data = data.lstrip()
            if data and not wire.begins_object(data):
                self._events = EventReader()
        if self._events is None:
            self._body += data
            return
        for data_of_event in self._events.feed(data):
            event = wire.read_object(data_of_event) or {}
            self._update(event)
            if self._reader:
                self._reader.event(event)

    def fail(self, error: str | None) -> None:
        """The answer is an error, or broke off; `error` is counted, None only makes a repetition a retry."""
        self.is_failed = True
        self.error = error or self.error

    def leave(self) -> None:
        """The session does not wait for the rest: it could otherwise read all of an answer but its price."""
        self.fail(None)
        self._estimate()

    def _estimate(self) -> None:
        """Guess what the answer cost, unless it said so or was free."""
        if self._has_usage or self._is_free:
            return
        output = max(round(self.seconds * TOKENS_PER_SECOND), self._answer_bytes // BYTES_PER_TOKEN)
        estimate = pricing.Tokens(
            input=0 if self.tokens else self._request_bytes // BYTES_PER_TOKEN,
            output=max(0, min(self._max_tokens, output)),
        )
        self.unseen_usd = pricing.cost_usd(self.model, estimate)

    def end(self) -> None:
        """Nothing more will come; what was only needed to read the answer is forgotten."""
        self._ended_at = time.monotonic()
        if self._body:
            message = wire.read_object(bytes(self._body)) or {}
            self._message(message)
            self._has_usage = self.tokens is not None
            if self._reader:
                self._reader.message(message)
        if self._is_answer and not self.is_failed:
            self._estimate()
        self._is_answer, self._events, self._reader, self._body = False, None, None, bytearray()

    def _update(self, event: dict[str, Any]) -> None:
        match event:
            case {"type": "message_start", "message": dict(message)}:
                self._message(message)
            case {"type": "message_delta", "usage": dict(usage)}:
                self._has_usage = True
                self._count(usage)
            case {"type": "error", "error": {"type": str(kind)}}:
                self.fail(ERROR_STATUS.get(kind, "500"))
            case _:
                pass

    def _message(self, message: dict[str, Any]) -> None:
        if isinstance(model := message.get("model"), str) and model:
            # The API answers with the dated id; the session, and Claude Code's own counts, use the one asked for.
            same = pricing.base_name(model) == pricing.base_name(self.requested_model)
            self.model = self.requested_model if same else model
        if isinstance(usage := message.get("usage"), dict):
            self._count(usage)

    def _count(self, usage: dict[str, Any]) -> None:
        self._usage = pricing.merged(self._usage, usage)
        self.tokens = pricing.from_usage(self._usage)


def _add(before: ModelUsage | None, exchange: MeteredExchange) -> ModelUsage:
    used, so_far = exchange.tokens or pricing.Tokens(), before or ModelUsage()
    return ModelUsage(
        input_tokens=so_far.input_tokens + used.input,
        output_tokens=so_far.output_tokens + used.output,
        cache_read_tokens=so_far.cache_read_tokens + used.cache_read,
        cache_write_tokens=so_far.cache_write_tokens + used.cache_write_5m + used.cache_write_1h,
        cost_usd=so_far.cost_usd + exchange.cost_usd,
        cost_known=pricing.is_known(exchange.model),
    )


def place_of(call: Call) -> bytes:
    """Digest of the conversation so far: a request at the same place repeats an earlier one.

    The CLI changes options and its own notes between the attempts, so only the two speakers' messages count. A count of
    tokens is no attempt at an answer.
    """
    content = call.body.get("messages")
    messages = [message for message in content if isinstance(message, dict)] if isinstance(content, list) else []
    spoken = [_without_cache_marks(message) for message in messages if message.get("role") != "system"]
    return hashlib.sha256(wire.write([call.counts_tokens, call.agent_id, spoken])).digest()


def _without_cache_marks(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_cache_marks(item) for key, item in value.items() if key != "cache_control"}
    if isinstance(value, list):
        return [_without_cache_marks(item) for item in value]
    return value
