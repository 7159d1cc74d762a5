"""One open run: its meter, its source of answers, and what is on the way."""

import anyio

from zelda_ci.model_proxy import reach
from zelda_ci.model_proxy.meter import Meter
from zelda_ci.model_proxy.models import Models
from zelda_ci.model_proxy.wire import DO_NOT_RETRY, BrokenOff, Call, Sink, Source, Tap, Unreachable, send_error

MOST_OF_A_NAME = 100

MOST_AT_ONCE = 24
"""Requests under way for one run: what these cost is known only when they are over. Sub-agents are ten at most."""


class Run:
    """Serves the calls that carry one run's token."""

    def __init__(self, meter: Meter, source: Source, models: Models | None = None, *, web: bool = True) -> None:
        self.meter = meter
        self._web = web
        self._room = anyio.CapacityLimiter(MOST_AT_ONCE)
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
        asked = call.body.get("model")
        if self._models and not self._models.allow(asked):
            self.meter.refuse(str(asked))
            await send_error(client, 403, "permission_error", _not_allowed(str(asked), self._models), DO_NOT_RETRY)
        elif not self._web and (what := reach.beyond(call.body)):
            await send_error(client, 403, "permission_error", f"this run may not use {what}", DO_NOT_RETRY)
        elif call.counts_tokens:
            await self._ask(call, client)
        else:
            async with self._room:
                await self._ask_within_budget(call, client)

    async def _ask_within_budget(self, call: Call, client: Sink) -> None:
        if self.meter.is_spent:
            # 402 is the one error that the CLI neither repeats nor explains away in words of its own.
            await send_error(client, 402, "billing_error", self._refusal(), DO_NOT_RETRY)
        else:
            await self._ask_metered(call, client)

    async def _ask_metered(self, call: Call, client: Sink) -> None:
        exchange = self.meter.begin(call)
        try:
            await self._source.answer(call, Tap(exchange, client))
        except Unreachable as exc:
            exchange.fail("connection")
            await _say_unreachable(client, exc)
        except BrokenOff:
            exchange.fail("connection")
            raise
        except anyio.get_cancelled_exc_class():
            exchange.leave(call)
            raise
        finally:
            self.meter.end(exchange)

    async def _ask(self, call: Call, client: Sink) -> None:
        try:
            await self._source.answer(call, client)
        except Unreachable as exc:
            await _say_unreachable(client, exc)

    def _refusal(self) -> str:
        return (
            f"Zelda's cost limit for this run is reached: {self.meter.cost_usd:.4f} of "
            f"{self.meter.budget_usd:.4f} US dollars are spent"
        )


def _not_allowed(asked: str, models: Models) -> str:
    return (
        f"this run may not ask {asked[:MOST_OF_A_NAME]!r}: its model is {models.main}; others that are dearer or not "
        "known have to be named in the suite's execution.extraModels"
    )


async def _say_unreachable(client: Sink, why: Unreachable) -> None:
    # A status of the 5xx kind makes the CLI do what it does without any server, and shows the user the sentence.
    await send_error(client, 502, "api_error", str(why))
