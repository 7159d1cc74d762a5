"""One run as the proxy sees it: its token, its meter, what it may ask, and the way of one request."""

from collections.abc import Collection
from dataclasses import dataclass

import anyio
import anyio.to_thread

from zelda_ci.model_proxy import requests, wire
from zelda_ci.model_proxy.limits import AnswerLimit, Limits, RefusedHereError
from zelda_ci.model_proxy.meter import Meter
from zelda_ci.model_proxy.patience import CallWait
from zelda_ci.model_proxy.pricing import Models
from zelda_ci.model_proxy.rate_limits import SpentError
from zelda_ci.model_proxy.wire import (
    DO_NOT_RETRY,
    AnswerSource,
    BrokenOff,
    Call,
    Headers,
    OverLimitError,
    Sink,
    Tee,
    Unreachable,
    send_error,
)

MAX_OF_A_NAME = 100

# Requests under way for one run: what these cost is known only when they are over. Sub-agents are ten at most.
MAX_CONCURRENT = 24

# Free, so that no budget ends them: far beyond what Claude Code and a judge ask for.
MAX_TOKEN_COUNTS = 1000

# Beyond this, a request is read in a thread.
LARGE_BYTES = 256 << 10


class RefusedModelError(RefusedHereError):
    """A request that names a model which the run may not ask."""

    def __init__(self, model: str, models: Models) -> None:
        super().__init__(403, "permission_error", _not_allowed(model, models), [*DO_NOT_RETRY])
        self.model = model


@dataclass(frozen=True)
class Allowed:
    """What the requests of a run may be."""

    models: Models | None = None
    """Those that may be asked; None for any."""
    web: bool = True
    """Whether they may make the API turn to addresses."""
    keys: Collection[str] = ()
    """Beside those that Zelda knows."""


class ProxyRun:
    """Serves the calls that carry one run's token."""

    def __init__(
        self,
        meter: Meter,
        source: AnswerSource,
        allowed: Allowed | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.meter = meter
        self.limits = limits or Limits()
        self._token_counts = 0
        self._allowed = allowed or Allowed()
        self._room = anyio.CapacityLimiter(MAX_CONCURRENT)
        self._source = source
        self._calls: set[anyio.CancelScope] = set()

    async def call(self, path: str, headers: Headers, data: bytes) -> Call:
        """What a request asks, with a body that was read and judged, and written anew.

        Raises:
            RefusedHereError: It may not ask this.
        """
        try:
            if len(data) <= LARGE_BYTES:
                return self._judged(path, headers, data)
            return await anyio.to_thread.run_sync(self._judged, path, headers, data)
        except RecursionError:
            raise requests.invalid("the body nests values too deeply") from None
        except RefusedModelError as exc:
            self.meter.refuse(exc.model)
            raise
        except requests.UnknownKeyError as exc:
            self.meter.refuse_key(exc.key)
            raise

    def _judged(self, path: str, headers: Headers, data: bytes) -> Call:
        body = requests.read(data)
        requests.check_keys(body, self._allowed.keys)
        models = self._allowed.models
        for model in requests.models(body) if models else ():
            if models and not models.allow(model):
                raise RefusedModelError(str(model), models)
        if not self._allowed.web and (feature := requests.external_address(body)):
            raise RefusedHereError(403, "permission_error", f"this run may not use {feature}", [*DO_NOT_RETRY])
        # What was judged, and not what came, is what is sent.
        sent = requests.allowed_headers(headers)
        return Call(f"{path}?{requests.QUERY}", sent, wire.write(body), body, CallWait(self.meter.patience))

    async def serve(self, call: Call, client: Sink) -> None:
        """Answer a call, or refuse it because the budget is spent.

        Raises:
            BrokenOff: The answer is incomplete; the client's connection has to break too.
        """
        with anyio.CancelScope() as scope:
            self._calls.add(scope)
            try:
                async with self._room:
                    await self._ask_within_budget(call, client)
            finally:
                self._calls.discard(scope)
        if scope.cancelled_caught:
            raise BrokenOff

    def close(self) -> None:
        """End what is on the way: nothing may be spent for a run that is over."""
        for scope in self._calls:
            scope.cancel()

    async def _ask_within_budget(self, call: Call, client: Sink) -> None:
        self._token_counts += call.counts_tokens
        if self.meter.is_spent:
            await self._refuse_as_spent(client)
        elif call.counts_tokens and self._token_counts > MAX_TOKEN_COUNTS:
            message = f"Zelda's model proxy takes {MAX_TOKEN_COUNTS} token counts from one run"
            await send_error(client, 429, "rate_limit_error", message, DO_NOT_RETRY)
        else:
            await self._ask_metered(call, client)

    async def _ask_metered(self, call: Call, client: Sink) -> None:
        exchange = self.meter.begin(call)
        try:
            await self._pass_on(call, Tee(client, AnswerLimit(self.limits), exchange), client)
        except SpentError:
            self.meter.drop(exchange)
            await self._refuse_as_spent(client)
        except Unreachable as exc:
            exchange.fail("connection")
            if exc.is_left:
                exchange.leave()
        except BrokenOff:
            exchange.fail("connection")
            raise
        except anyio.get_cancelled_exc_class():
            # What was given up while it waited had no answer to pay for, and comes again.
            if call.wait.is_with_api:
                exchange.leave()
            else:
                self.meter.drop(exchange)
            raise
        finally:
            self.meter.end(exchange)

    async def _pass_on(self, call: Call, sink: Sink, client: Sink) -> None:
        """Have the source answer within the limits.

        Raises:
            Unreachable: There was no answer; the client knows.
            BrokenOff: The answer is incomplete.
        """
        try:
            await self._source.answer(call, sink)
        except Unreachable as exc:
            self.meter.outage = str(exc)
            # A status of the 5xx kind makes the CLI do what it does without any server, and shows the sentence.
            await send_error(client, 502, "api_error", str(exc), [] if exc.again else DO_NOT_RETRY)
            raise
        except OverLimitError as exc:
            self.meter.outage = str(exc)
            raise
        self.meter.outage = None

    async def _refuse_as_spent(self, client: Sink) -> None:
        message = (
            f"Zelda's cost limit for this run is reached: {self.meter.cost_usd:.4f} of "
            f"{self.meter.budget_usd:.4f} US dollars are spent"
        )
        # 402 is the one error that the CLI neither repeats nor explains away in words of its own.
        await send_error(client, 402, "billing_error", message, DO_NOT_RETRY)


def _not_allowed(model: str, models: Models) -> str:
    return (
        f"this run may not ask {model[:MAX_OF_A_NAME]!r}: its model is {models.main}; others that are dearer or not "
        "known have to be named in the suite's execution.extraModels"
    )
