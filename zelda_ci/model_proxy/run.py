"""One run as the proxy sees it: its meter, what it may ask, and the way of one request."""

import anyio
import anyio.to_thread

from zelda_ci.model_proxy import policy, wire
from zelda_ci.model_proxy.cassettes.record import RecordedAnswer, Recording
from zelda_ci.model_proxy.limits import Limits, in_mib
from zelda_ci.model_proxy.meter import Meter, MeteredExchange
from zelda_ci.model_proxy.policy import Allowed
from zelda_ci.model_proxy.rate_limits import Throttled, TooLongError, UpstreamPause
from zelda_ci.model_proxy.wire import (
    DO_NOT_RETRY,
    AnswerSource,
    BrokenOff,
    Call,
    Headers,
    OverLimitError,
    RefusedHereError,
    Sink,
    Unreachable,
    send_error,
    send_whole,
)

# Requests under way for one run: what these cost is known only when they are over. Sub-agents are ten at most.
MAX_CONCURRENT = 24

# Free, so that no budget ends them: far beyond what Claude Code asks for.
MAX_TOKEN_COUNTS = 1000

# About refused requests: the names in them are the session's own.
MAX_REMARKS = 10

# Beyond this, a request is read in a thread.
LARGE_BYTES = 256 << 10


class ProxyRun:
    """Serves the calls that carry one run's token."""

    def __init__(
        self,
        meter: Meter,
        source: AnswerSource,
        limits: Limits,
        pause: UpstreamPause,
        allowed: Allowed | None = None,
        recording: Recording | None = None,
    ) -> None:
        self.meter = meter
        self.limits = limits
        self._source = source
        self._allowed = allowed or Allowed()
        self._pause = pause
        self._recording = recording
        self._token_counts = 0
        self._room = anyio.CapacityLimiter(MAX_CONCURRENT)
        self._calls: dict[anyio.CancelScope, anyio.Event] = {}
        self._is_closed = False

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
            raise RefusedHereError(400, "invalid_request_error", "the body nests values too deeply") from None
        except RefusedHereError as exc:
            if exc.remark and len(self.meter.remarks) < MAX_REMARKS:
                self.meter.remarks.add(exc.remark)
            raise

    def _judged(self, path: str, headers: Headers, data: bytes) -> Call:
        body = policy.read(data)
        policy.check(body, self._allowed)
        # What was judged, and not what came, is what is sent.
        return Call(f"{path}?{policy.QUERY}", policy.allowed_headers(headers), wire.write(body), body)

    async def serve(self, call: Call, client: Sink) -> None:
        """Answer a call, or refuse it because the budget is spent.

        Raises:
            BrokenOff: The answer is incomplete, or the run is over; the client's connection has to break too.
        """
        if self._is_closed:
            raise BrokenOff
        over = anyio.Event()
        with anyio.CancelScope() as scope:
            self._calls[scope] = over
            try:
                async with self._room:
                    await self._answer(call, client)
            finally:
                del self._calls[scope]
                over.set()
        if scope.cancelled_caught:
            raise BrokenOff

    async def close(self) -> None:
        """End what is under way, and wait for it: nothing may be spent for a run that is over."""
        self._is_closed, calls = True, dict(self._calls)
        for scope in calls:
            scope.cancel()
        with anyio.CancelScope(shield=True):
            for over in calls.values():
                await over.wait()

    async def _answer(self, call: Call, client: Sink) -> None:
        """Ask until the API does not refuse for its rate, as long as there is budget."""
        self._token_counts += call.counts_tokens
        if self._token_counts > MAX_TOKEN_COUNTS and call.counts_tokens:
            message = f"Zelda's model proxy takes {MAX_TOKEN_COUNTS} token counts from one run"
            await send_error(client, 429, "rate_limit_error", message, DO_NOT_RETRY)
            return
        attempts, is_answered = 0, False
        while not is_answered:
            attempts += 1
            try:
                sent_at = await self._pause.wait(self.meter.wait)
            except TooLongError as exc:
                await send_error(client, 429, "rate_limit_error", str(exc), DO_NOT_RETRY)
                return
            if self.meter.is_spent:
                spent = f"{self.meter.cost_usd:.4f} of {self.meter.budget_usd or 0:.4f} US dollars are spent"
                message = f"Zelda's cost limit for this run is reached: {spent}"
                # 402 is the one error that the CLI neither repeats nor explains away in words of its own.
                await send_error(client, 402, "billing_error", message, DO_NOT_RETRY)
                return
            is_answered = await self._ask(call, client, attempts, sent_at)

    async def _ask(self, call: Call, client: Sink, attempts: int, sent_at: float) -> bool:
        """Ask the source once, with the meter and the recording looking on; False where to ask again."""
        exchange, recorded = self.meter.begin(call), None
        if self._recording and not call.counts_tokens:
            recorded = self._recording.begin(call)
        is_cut = True
        tee = _Tee(client, self.limits.answer_bytes, [exchange, recorded] if recorded else [exchange])
        try:
            try:
                await self._source.answer(call, tee)
                self._pause.answered(sent_at)
            except Throttled as refusal:
                if self._pause.refused(refusal, self.meter.wait, attempts, sent_at):
                    self.meter.drop(exchange)
                    return False
                # The session would only begin the same waiting anew.
                headers = [each for each in refusal.headers if each[0] != b"x-should-retry"]
                await send_whole(tee, refusal.status, [*headers, *DO_NOT_RETRY], refusal.body)
            is_cut = False
            self.meter.outage = None
        except Unreachable as exc:
            self.meter.outage = str(exc)
            exchange.fail("connection")
            if exc.abandoned:
                exchange.leave()
            # A status of the 5xx kind makes the CLI do what it does without any server, and shows the sentence.
            await send_error(client, 502, "api_error", str(exc), [] if exc.again else DO_NOT_RETRY)
        except BrokenOff as exc:
            exchange.fail("connection")
            if isinstance(exc, OverLimitError):
                self.meter.outage = str(exc)
            raise
        except anyio.get_cancelled_exc_class():
            exchange.leave()
            raise
        finally:
            self.meter.end(exchange)
            if self._recording and recorded:
                self._recording.end(recorded, cut=is_cut)
        return True


class _Tee:
    """Passes an answer on to the client, and shows it to observers before; ends it at its limit."""

    def __init__(self, client: Sink, max_bytes: int, observers: list[MeteredExchange | RecordedAnswer]) -> None:
        self._client, self._left, self._max_bytes, self._observers = client, max_bytes, max_bytes, observers

    async def start(self, status: int, headers: Headers) -> None:
        for observer in self._observers:
            observer.start(status, headers)
        await self._client.start(status, headers)

    async def chunk(self, data: bytes) -> None:
        self._left -= len(data)
        if self._left < 0:
            raise OverLimitError(f"The API's answer is larger than the {in_mib(self._max_bytes)} that Zelda passes on")
        for observer in self._observers:
            observer.chunk(data)
        await self._client.chunk(data)
