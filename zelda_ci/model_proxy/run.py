"""One run as the proxy sees it: its token, its meter, what it may ask, and the way of one request.

A sandbox without a network would have one through these: a secret in an address is told to whoever serves it.
"""

from contextlib import suppress
from typing import Any

import anyio

from zelda_ci.model_proxy.limits import Bounded, Limits, MemoryLimit
from zelda_ci.model_proxy.meter import Meter, place_of
from zelda_ci.model_proxy.pricing import Models
from zelda_ci.model_proxy.refusals import Refusals, repeat
from zelda_ci.model_proxy.wire import (
    DO_NOT_RETRY,
    AnswerSource,
    BrokenOff,
    Call,
    OverLimitError,
    Sink,
    Tap,
    Unreachable,
    send_error,
)

WEB_TOOLS = ("web_search", "web_fetch", "mcp_toolset")


def external_address(body: dict[str, Any]) -> str | None:
    """The first such thing in a request's body, in a few words."""
    if body.get("mcp_servers"):
        return "MCP servers that the API connects to"
    tools = [tool for tool in _items(body.get("tools")) if isinstance(tool, dict)]
    web = next((tool for tool in tools if str(tool.get("type", "")).startswith(WEB_TOOLS)), None)
    if web is not None:
        return f"the API's own tool {str(web['type'])[:50]}"
    return "content that the API fetches from an address" if _holds_address(body) else None


def _holds_address(body: dict[str, Any]) -> bool:
    """Whether some block's `source` is an address; blocks lie in messages, in the system prompt, in tool results."""
    # A list of what is left to look at, not recursion: whoever writes the body chooses how deep it is.
    waiting = [*_items(body.get("messages")), *_items(body.get("system"))]
    while waiting:
        block = waiting.pop()
        if not isinstance(block, dict):
            continue
        source = block.get("source")
        if isinstance(source, dict):
            if source.get("type") == "url" or "url" in source:
                return True
            waiting += _items(source.get("content"))
        waiting += _items(block.get("content"))
    return False


def _items(value: object) -> list[Any]:
    if isinstance(value, dict):
        return [value]
    return value if isinstance(value, list) else []


MAX_OF_A_NAME = 100

# Requests under way for one run: what these cost is known only when they are over. Sub-agents are ten at most.
MAX_CONCURRENT = 24


class ProxyRun:
    """Serves the calls that carry one run's token."""

    def __init__(
        self,
        meter: Meter,
        source: AnswerSource,
        models: Models | None = None,
        *,
        web: bool = True,
        limits: Limits | None = None,
        memory: MemoryLimit | None = None,
    ) -> None:
        self.meter = meter
        self.limits = limits or Limits()
        self.memory = MemoryLimit(self.limits.run_bytes, "one run", memory)
        self._web = web
        self._refusals = Refusals()
        self._room = anyio.CapacityLimiter(MAX_CONCURRENT)
        self._models = models
        self._source = source
        self._calls: set[anyio.CancelScope] = set()

    async def serve(self, call: Call, client: Sink) -> None:
        """Answer a call, or refuse it: for its model, for what it reaches, or because the budget is spent.

        Raises:
            BrokenOff: The answer is incomplete; the client's connection has to break too.
        """
        with anyio.CancelScope() as scope:
            self._calls.add(scope)
            try:
                await self._serve(call, client)
            finally:
                self._calls.discard(scope)
        if scope.cancelled_caught:
            raise BrokenOff

    def close(self) -> None:
        """End what is on the way: nothing may be spent for a run that is over."""
        for scope in self._calls:
            scope.cancel()

    async def _serve(self, call: Call, client: Sink) -> None:
        model = call.body.get("model")
        if self._models and not self._models.allow(model):
            self.meter.refuse(str(model))
            await send_error(client, 403, "permission_error", _not_allowed(str(model), self._models), DO_NOT_RETRY)
        elif not self._web and (feature := external_address(call.body)):
            await send_error(client, 403, "permission_error", f"this run may not use {feature}", DO_NOT_RETRY)
        elif call.counts_tokens:
            await self._count_tokens(call, client)
        else:
            # Counting tokens is free, so it does not wait for room.
            async with self._room:
                await self._ask_within_budget(call, client)

    async def _ask_within_budget(self, call: Call, client: Sink) -> None:
        place = place_of(call)
        if self.meter.is_spent:
            # 402 is the one error that the CLI neither repeats nor explains away in words of its own.
            await send_error(client, 402, "billing_error", self._refusal(), DO_NOT_RETRY)
        elif refusal := self._refusals.of(place, call):
            await repeat(refusal, client)
        else:
            observer = self._refusals.observer(place)
            await self._ask_metered(call, place, Tap(observer, client))
            self._refusals.remember(place, call, observer)

    async def _ask_metered(self, call: Call, place: bytes, client: Sink) -> None:
        exchange = self.meter.begin(call, place)
        try:
            await self._pass_on(call, Tap(exchange, client), client)
        except Unreachable:
            exchange.fail("connection")
        except BrokenOff as exc:
            exchange.fail("connection")
            if isinstance(exc, OverLimitError):
                self._refusals.give_up(place, str(exc))
            raise
        except anyio.get_cancelled_exc_class():
            exchange.leave(call)
            raise
        finally:
            self.meter.end(exchange)

    async def _count_tokens(self, call: Call, client: Sink) -> None:
        with suppress(Unreachable):
            await self._pass_on(call, client, client)

    async def _pass_on(self, call: Call, sink: Sink, client: Sink) -> None:
        """Have the source answer within the limits.

        Raises:
            Unreachable: There was no answer; the client knows.
            BrokenOff: The answer is incomplete.
        """
        with self.memory.share() as share:
            try:
                await self._source.answer(call, Bounded(sink, self.limits, share, keeps=self._source.keeps_answers))
            except Unreachable as exc:
                self.meter.outage = str(exc)
                # A status of the 5xx kind makes the CLI do what it does without any server, and shows the sentence.
                await send_error(client, 502, "api_error", str(exc), [] if exc.again else DO_NOT_RETRY)
                raise
            except OverLimitError as exc:
                self.meter.outage = str(exc)
                raise
        self.meter.outage = None

    def _refusal(self) -> str:
        return (
            f"Zelda's cost limit for this run is reached: {self.meter.cost_usd:.4f} of "
            f"{self.meter.budget_usd:.4f} US dollars are spent"
        )


def _not_allowed(model: str, models: Models) -> str:
    return (
        f"this run may not ask {model[:MAX_OF_A_NAME]!r}: its model is {models.main}; others that are dearer or not "
        "known have to be named in the suite's execution.extraModels"
    )
