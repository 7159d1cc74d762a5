"""What one run's requests and answers tell: tokens, cost, errors and retries, and the context that its model got."""

import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from zelda_ci.domain.session import ApiUsage, ModelUsage, Usage
from zelda_ci.model_proxy import pricing
from zelda_ci.model_proxy.rate_limits import RateLimitWait
from zelda_ci.model_proxy.transcript_check import PassedAnswer, TranscriptCheck
from zelda_ci.model_proxy.wire import AnswerEvents, Call, CassetteState, dicts, texts

# For estimates: the second is more than a model writes.
BYTES_PER_TOKEN, TOKENS_PER_SECOND = 4, 100
# Status of an error inside a stream, 500 where it has another kind; others come before the stream, with their status.
ERROR_STATUS = {"rate_limit_error": "429", "overloaded_error": "529"}
# What Claude Code lists for its model, and the names of tools that the model finds by a search.
LISTED = ("available for use with the Skill tool", "agent types for the Agent tool", "available via ToolSearch")
MAX_LISTINGS, MAX_TOOLS = 100, 5000
_DEFERRED = re.compile(r"^mcp__[\w-]+$", re.MULTILINE)
# A conversation at one point: whether its tokens are counted, its sub-agent, and the number of its messages.
Place = tuple[bool, str | None, int]


@dataclass(eq=False, repr=False)
class LoadedContext:
    """The context that a run's requests give its model.

    A session's first request is `expected` to hold at least one of these lines of the project's CLAUDE.md files.
    `listings` are texts that list what the model can call, in their order, and `tools` the names of its tools, also of
    those that wait behind a search. Where the model is not asked, `first` is the first request with tools, and
    `definitions` has the tools by name.
    """

    expected: frozenset[str] = frozenset()
    listings: dict[str, None] = field(default_factory=dict)
    tools: set[str] = field(default_factory=set)
    first: Call | None = None
    definitions: dict[str, dict[str, Any]] = field(default_factory=dict)
    _openings: list[bool] = field(default_factory=list)
    """Of the requests that open a conversation with tools, whether they held an expected line."""

    @property
    def lacks_memory(self) -> bool:
        """Whether the session asked its model without a line of the project's CLAUDE.md files."""
        return bool(self.expected and self._openings) and not any(self._openings)

    def keep(self, call: Call) -> None:
        """Keep a request of a session whose model is not asked."""
        self.definitions |= {str(tool.get("name")): tool for tool in dicts(call.body.get("tools"))}
        if not (call.counts_tokens or self.first) and call.body.get("tools"):
            self.first = call
            self.request(call.body)

    def request(self, body: Mapping[str, Any]) -> None:
        """Note what a request tells the model."""
        messages = dicts(body.get("messages"))
        if len(self.tools) < MAX_TOOLS:
            self.tools |= {str(tool["name"]) for tool in dicts(body.get("tools")) if "name" in tool}
        if body.get("tools") and not any(message.get("role") == "assistant" for message in messages):
            told = json.dumps([body.get("system"), messages], ensure_ascii=False)
            self._openings.append(any(json.dumps(line, ensure_ascii=False)[1:-1] in told for line in self.expected))
        for message in messages:
            for text in texts(message.get("content")) if message.get("role") != "assistant" else ():
                if any(mark in text for mark in LISTED) and len(self.listings) < MAX_LISTINGS:
                    self.listings[text] = None
                    self.tools |= set(_DEFERRED.findall(text))


@dataclass(eq=False, repr=False)
class Meter:
    """One run's address, token and counts; current also while an answer streams.

    `exhausted` is set when the budget is spent and the answer that spent it has ended; `routed` when the session has
    called a skill, sub-agent or command and is over then (`ends_at_call`). `outage` is the last connection error, None
    after the next answer, and `remarks` are sentences about requests that the proxy refused.
    """

    base_url: str
    token: str
    budget_usd: float | None
    cassette: CassetteState
    socket: Path | None = None
    """Where the same is served without a network."""
    wait: RateLimitWait = field(default_factory=RateLimitWait)
    exhausted: anyio.Event = field(default_factory=anyio.Event)
    ends_at_call: bool = False
    routed: anyio.Event = field(default_factory=anyio.Event)
    transcript_check: TranscriptCheck = field(default_factory=TranscriptCheck)
    context: LoadedContext = field(default_factory=LoadedContext)
    outage: str | None = None
    remarks: set[str] = field(default_factory=set)
    on_end: Callable[[], None] = lambda: None
    """Called after each answer."""
    _exchanges: "list[MeteredExchange]" = field(default_factory=list)
    _failed: set[Place] = field(default_factory=set)

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
            if exchange.usage or exchange.is_guessed:
                models[exchange.model] = models.get(exchange.model, ModelUsage()).with_more(exchange.model_usage())
        agents = {it.place[1]: it for it in self._exchanges if not it.is_free}
        first = next((it.model_usage() for it in self._exchanges if it.has_tools and it.usage), None)
        return ApiUsage(
            requests=len(self._exchanges),
            retries=sum(exchange.is_retry for exchange in self._exchanges),
            errors=dict(sorted(Counter(it.error for it in self._exchanges if it.error).items())),
            models=dict(sorted(models.items())),
            api_seconds=sum(exchange.seconds for exchange in self._exchanges),
            wait_seconds=self.wait.seconds,
            first_tokens=first.total - first.output_tokens if first else None,
            throttled=self.wait.throttled,
            lost_agents=sum(agent is not None and last.is_lost for agent, last in agents.items()),
        )

    def failure_at_end(self, patience: float) -> str | None:
        """The error of the answer that came last, where the API failed; after so many seconds of silence, too."""
        last = max((it for it in self._exchanges if not it.is_free), key=lambda it: it.ended_at, default=None)
        if last is None:
            return None
        if last.error:
            return last.error if last.is_lost else None
        is_lost = last.ended_at - last.heard_at >= patience or not (last.is_left or last.message_id)
        return "connection" if is_lost else None

    def usage_of(self, message_id: str) -> Usage | None:
        """Return the tokens of an answer, by the id of the API's message; None until the API has reported them."""
        answers = (it for it in self._exchanges if it.message_id == message_id and it.is_reported)
        return next((Usage() + answer.model_usage() for answer in answers), None)

    def begin(self, call: Call) -> "MeteredExchange":
        """Count a request; the exchange then observes its answer."""
        if not call.counts_tokens:
            self.transcript_check.request(call.body)
            self.context.request(call.body)
        exchange = MeteredExchange(call, PassedAnswer(self.transcript_check))
        exchange.is_retry = exchange.place in self._failed
        self._failed.discard(exchange.place)
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
        self.on_end()


class MeteredExchange:
    """Observes the answer to one request."""

    error: str | None = None
    """HTTP status or `connection`."""
    is_retry = False
    is_left = False
    """Whether the rest of the answer did not come or nobody waits for it: it may be paid for all the same."""
    is_guessed = False
    """Whether the answer came to its end and did not say what it used: its cost is an estimate."""
    is_reported = False
    """Whether the usage is whole, and not all zeros, as some gateways report it."""
    cost_usd = estimated_usd = 0.0
    """Of what was seen of the answer; and a guess where it was left before it reported its usage, or is unreadable."""
    message_id = ""

    def __init__(self, call: Call, passed: PassedAnswer) -> None:
        # Only what the price depends on: the requests of a session are large, each repeats the one before.
        self.is_free, self._request_bytes = call.counts_tokens, len(call.raw_body)
        # What is no number of tokens here may be one to the API.
        self._max_tokens = pricing.count(call.body, "max_tokens") or sys.maxsize
        self._requested_model = self.model = str(call.body.get("model", ""))
        self.has_tools = bool(call.body.get("tools"))
        # The CLI changes options and its own notes between the attempts, so only the two speakers' messages count.
        spoken = sum(message.get("role") != "system" for message in dicts(call.body.get("messages")))
        self.place: Place = call.counts_tokens, call.agent_id, spoken
        self.usage: dict[str, Any] = {}
        """The API's own, as far as it has come."""
        self._answer_bytes, self._events = 0, AnswerEvents()
        self._passed: PassedAnswer | None = passed
        self._started_at = self.heard_at = time.monotonic()
        self.ended_at = 0.0

    @property
    def seconds(self) -> float:
        """Wall time of the exchange so far."""
        return (self.ended_at or time.monotonic()) - self._started_at

    @property
    def is_lost(self) -> bool:
        """Whether the API failed it, and did not refuse what was asked."""
        return self.error is not None and (self.error in {"connection", "429"} or self.error >= "500")

    def model_usage(self) -> ModelUsage:
        """Tokens and cost of what was seen of the answer."""
        return ModelUsage(
            input_tokens=pricing.count(self.usage, "input_tokens"),
            output_tokens=pricing.count(self.usage, "output_tokens"),
            cache_read_tokens=pricing.count(self.usage, "cache_read_input_tokens"),
            cache_write_tokens=sum(pricing.cache_writes(self.usage)),
            cost_usd=self.cost_usd,
            cost_known=pricing.is_known(self.model) and not self.is_guessed,
        )

    def start(self, status: int) -> None:
        """Take in the status of the answer."""
        self.error = str(status) if status >= 400 else None

    def chunk(self, data: bytes) -> None:
        """Take in the next bytes of the answer."""
        self._answer_bytes, self.heard_at = self._answer_bytes + len(data), time.monotonic()
        for event in self._events.feed(data):
            self._update(event)

    def end(self) -> None:
        """Close the exchange; only counts are kept of it."""
        self.ended_at = time.monotonic()
        for event in self._events.end():
            self._update(event)
        # Who leaves an answer could otherwise read all of it but its price.
        size = 0 if (seen := self.model_usage()).total > seen.output_tokens else self._request_bytes // BYTES_PER_TOKEN
        if (self.is_left or self.message_id or not self.error) and not self.is_free:
            output = max(round(self.seconds * TOKENS_PER_SECOND), self._answer_bytes // BYTES_PER_TOKEN)
            output = 0 if self.is_reported else min(self._max_tokens, output)
            estimate = {"input_tokens": size, "output_tokens": output}
            self.estimated_usd = pricing.cost_usd(self.model, estimate)
            if self.estimated_usd and self.message_id and not (self.is_left or self.error):
                self.cost_usd, self.estimated_usd, self.is_guessed = self.cost_usd + self.estimated_usd, 0.0, True
        # A conversation's answers are as long as the conversation.
        self._events, self._passed = AnswerEvents(), None

    def _update(self, event: dict[str, Any]) -> None:
        if self._passed:
            self._passed.event(event)
        match event:
            case {"type": "message_start", "message": dict(message)} if not self.error:
                if isinstance(model := message.get("model"), str) and model:
                    # The API answers with the dated id; the session and Claude Code use the one that was requested.
                    same = pricing.base_name(model) == pricing.base_name(self._requested_model)
                    self.model = self._requested_model if same else model
                self.message_id = str(message.get("id"))
                self._count(message.get("usage"))
            case {"type": "message_delta", "usage": dict(usage)}:
                self.is_reported |= pricing.count(usage, "output_tokens") > 0
                self._count(usage)
            case {"type": "error", "error": error}:
                kind = error.get("type") if isinstance(error, dict) else None
                self.error = self.error or ERROR_STATUS.get(str(kind), "500")
            case _:
                pass

    def _count(self, usage: object) -> None:
        # Counts are cumulative; null and zero mean "as before".
        if isinstance(usage, dict):
            self.usage |= {key: value for key, value in usage.items() if value}
            self.cost_usd = pricing.cost_usd(self.model, self.usage)
