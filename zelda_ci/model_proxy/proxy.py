"""The model proxy: one per Zelda process, serving many runs side by side; and the way of one request through it."""

import asyncio
import itertools
import secrets
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import anyio
import anyio.to_thread
from anyio import AsyncContextManagerMixin

from zelda_ci.domain.kinds import TURNS_TO
from zelda_ci.imports import one_at_a_time
from zelda_ci.model_proxy import policy, pricing, wire
from zelda_ci.model_proxy.cassettes import Recording, ReplaySource, SessionTexts, load
from zelda_ci.model_proxy.meter import Meter
from zelda_ci.model_proxy.policy import Allowed
from zelda_ci.model_proxy.rate_limits import RateLimits, RateLimitWait, UpstreamPause, is_throttled
from zelda_ci.model_proxy.upstream import Upstream
from zelda_ci.model_proxy.wire import ApiAnswer, BrokenOff, Call, RefusedHereError, dicts
from zelda_ci.redact import Redactor

# Requests under way for one run: what these cost is known only when they are over. Sub-agents are ten at most.
MAX_CONCURRENT = 24
# Free, so that no budget ends them: far beyond what Claude Code asks for.
MAX_TOKEN_COUNTS = 1000
# About refused requests: the names in them are the session's own.
MAX_REMARKS = 10
# A session would wait, and ask again, where there is no answer to a probe.
MAX_PROBES, PROBE_SECONDS, PAUSE_SECONDS = 3, 20.0, 1.0
PROBE_HEADERS: wire.Headers = [wire.JSON, (b"anthropic-version", b"2023-06-01"), (b"user-agent", b"zelda-ci (check)")]


@dataclass(frozen=True)
class Probe:
    """What came back for the smallest request to a model: the API's status and words, or why there was no answer."""

    status: int | None
    message: str
    cost_usd: float = 0.0


def is_routed(call: Call, called: AbstractSet[str]) -> bool:
    """Whether a request follows on a call of a skill, sub-agent or command that was carried out; `called` are tools."""
    blocks = [block for message in dicts(call.body.get("messages")) for block in dicts(message.get("content"))]
    calls = {it.get("id") for it in blocks if it.get("type") == "tool_use" and it.get("name") in TURNS_TO}
    answers = [it for it in blocks if it.get("type") == "tool_result" and not it.get("is_error")]
    # A sub-agent asks before its call is answered; one that a hook starts has no call.
    return bool(call.agent_id and TURNS_TO & called) or any(it.get("tool_use_id") in calls for it in answers)


@dataclass(eq=False)
class ProxyRun:
    """Answers the requests that carry one run's token."""

    _meter: Meter
    _source: wire.AnswerSource
    _pause: UpstreamPause
    _allowed: Allowed
    _recorder: Recording | None
    _token_counts: int = 0
    _room: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(MAX_CONCURRENT))
    _tasks: set[asyncio.Task[Any]] = field(default_factory=set)

    async def close(self) -> None:
        """End what is under way, and wait for it: nothing may be spent for a run that is over."""
        for task in self._tasks:
            task.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.gather(*self._tasks, return_exceptions=True)

    @asynccontextmanager
    async def answer(self, path: str, headers: wire.Headers, body: bytes) -> AsyncIterator[ApiAnswer]:
        """Ask until the API does not refuse for its rate; the task that does is cancelled where the run ends before."""
        task: Any = asyncio.current_task()
        self._tasks.add(task)
        try:
            try:
                # In a thread: what is large takes long.
                call = await anyio.to_thread.run_sync(policy.judged, path, headers, body, self._allowed)
            except RefusedHereError as exc:
                if exc.remark and len(self._meter.remarks) < MAX_REMARKS:
                    self._meter.remarks.add(exc.remark)
                raise
            if not self._allowed.messages:
                self._meter.context.keep(call)
                if not call.counts_tokens:
                    raise RefusedHereError(402, "billing_error", "Zelda only lists what this session is given")
            self._token_counts += call.counts_tokens
            if self._token_counts > MAX_TOKEN_COUNTS and call.counts_tokens:
                why = f"Zelda's model proxy takes {MAX_TOKEN_COUNTS} token counts from one run"
                raise RefusedHereError(429, "rate_limit_error", why)
            async with self._room:
                for attempts in itertools.count(1):
                    async with self._asked(call, attempts) as answer:
                        if answer:
                            yield answer
                            return
        finally:
            self._tasks.discard(task)

    @asynccontextmanager
    async def _asked(self, call: Call, attempts: int) -> AsyncIterator[ApiAnswer | None]:
        """Ask the source once, as long as there is budget, and meter and record the answer; None where to ask again."""
        meter = self._meter
        sent_at = await self._pause.wait(meter.wait)
        if meter.is_spent:
            # Before the session hears of it, and takes it for an account that cannot pay.
            meter.exhausted.set()
            spent = f"{meter.cost_usd:.4f} of {meter.budget_usd or 0:.4f} US dollars are spent"
            # 402 is the one error that the CLI neither repeats nor explains away in words of its own.
            raise RefusedHereError(402, "billing_error", f"Zelda's cost limit for this run is reached: {spent}")
        if meter.ends_at_call and is_routed(call, meter.transcript_check.tools):
            meter.routed.set()
            # Nobody waits for the answer: the session is ended, and then the run is closed.
            await anyio.sleep_forever()
        exchange, recorder = meter.begin(call), None if call.counts_tokens else self._recorder
        passed: ApiAnswer | None = None
        recorded, is_cut = bytearray(), True

        async def observed(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
            async for chunk in chunks:
                exchange.chunk(chunk)
                if recorder:
                    recorded.extend(chunk)
                yield chunk

        try:
            async with self._source(call) as answer, aclosing(answer.chunks) as chunks:
                headers = answer.headers
                # A refused count of tokens says nothing about messages, and Claude Code does without.
                if call.counts_tokens or not is_throttled(answer):
                    self._pause.answered(sent_at)
                elif self._pause.refused(answer, meter.wait, attempts, sent_at):
                    meter.drop(exchange)
                    yield None
                    return
                else:
                    # The session would only begin the same waiting anew.
                    headers = [*(each for each in headers if each[0] != b"x-should-retry"), *wire.DO_NOT_RETRY]
                exchange.start(answer.status)
                passed = ApiAnswer(answer.status, headers, observed(chunks))
                yield passed
            is_cut, meter.outage = False, None
        except (wire.UnreachableError, BrokenOff) as exc:
            meter.outage = str(exc) or meter.outage
            exchange.error = "connection"
            exchange.is_left = isinstance(exc, BrokenOff) or exc.abandoned
            raise
        except asyncio.CancelledError:
            exchange.is_left = True
            raise
        finally:
            meter.end(exchange)
            if recorder and passed is not None:
                recorder.keep(call, passed, bytes(recorded), cut=is_cut)


def preload(*, live: bool) -> tuple[Any, Any]:
    """Import server and client, which most commands need not."""
    with one_at_a_time("h11"):
        from zelda_ci.model_proxy.server import serving  # noqa: PLC0415 - 15 ms
    if not live:
        return serving, None
    with one_at_a_time("httpx2"):
        from zelda_ci.model_proxy.live import live_source  # noqa: PLC0415 - 40 ms
    return serving, live_source


class ModelProxy(AsyncContextManagerMixin):
    """Serves the Messages API on loopback, and on a socket in the file system, while its `async with` block lasts.

    Without an `upstream`, which is the API, there is no key and no network: the `cassettes` answer, a folder where runs
    are recorded otherwise, or nothing but token counts is asked. Several proxies may share the API's `rate_limits`.
    """

    socket: Path | None = None
    """Where it is served without a network, for sandboxes that have none; any of them may connect."""

    def __init__(
        self,
        upstream: Upstream | None,
        redact: Redactor,
        cassettes: Path | None = None,
        rate_limits: RateLimits | None = None,
    ) -> None:
        self._upstream, self.redact, self._cassettes = upstream, redact, cassettes
        pauses = defaultdict(UpstreamPause) if rate_limits is None else rate_limits
        self._pause = pauses[upstream and upstream.identity]
        self.address = self._pause.address = upstream.address if upstream else ""
        """Whom it asks; nobody where it replays."""
        self._live: wire.AnswerSource = pricing.estimated
        self._runs: dict[str, wire.AnswerRequest] = {}
        self._base_url = ""

    @asynccontextmanager
    async def __asynccontextmanager__(self) -> AsyncGenerator[Self, None]:
        """Serve the runs that are opened; a `ProxyError` where address, HTTP proxy or certificates cannot be used."""
        serving, live_source = preload(live=self._upstream is not None)
        async with AsyncExitStack() as stack:
            if self._upstream:
                self._live = await stack.enter_async_context(live_source(self._upstream))
            self._base_url, self.socket = await stack.enter_async_context(serving(self._runs))
            yield self

    @asynccontextmanager
    async def session(
        self,
        *,
        run_label: str,
        budget_usd: float | None,
        placeholders: Mapping[str, str],
        allowed: Allowed | None = None,
        wait: RateLimitWait | None = None,
    ) -> AsyncIterator[Meter]:
        """Open one run: an address and a token that are good until the block ends.

        `run_label` names its cassette, as that of no other run; a recording takes its place when the block ends without
        an exception, and has `{{zelda:name}}` for the `placeholders`, absolute paths by name. Once the run has cost
        `budget_usd`, further requests are refused. A `ProxyError` says why a cassette cannot be read.
        """
        token, recorder, allowed = secrets.token_urlsafe(32), None, allowed or Allowed()
        file, cassette = self._cassettes and self._cassettes / f"{run_label}.json", wire.CassetteState()
        source: wire.AnswerSource = self._live if allowed.messages else pricing.estimated
        async with AsyncExitStack() as stack:
            if file:
                own = {**placeholders, "proxyUrl": self._base_url, "proxyToken": token}
                texts = SessionTexts(own, self.redact)
                if self._upstream:
                    cassette = recorder = await stack.enter_async_context(Recording(file, run_label, texts))
                else:
                    cassette = replay = ReplaySource(await anyio.to_thread.run_sync(load, file), texts)
                    source = replay.answer
            meter = Meter(self._base_url, token, budget_usd, cassette, self.socket, wait or RateLimitWait())
            run = ProxyRun(meter, source, self._pause, allowed, recorder)
            self._runs[token] = run.answer
            try:
                yield meter
            finally:
                del self._runs[token]
                await run.close()

    async def probe(self, model: str, notify: Callable[[str], None]) -> Probe:
        """Ask a model for one token, past any recording: whether it answers now; `notify` gets why it asks again."""
        model, attempts = pricing.plain(model), 1
        body = {"model": model, "max_tokens": 1, "messages": [{"role": "user", "content": "Hi"}]}
        while True:
            again = attempts < MAX_PROBES
            try:
                return self._probed(model, *await self._asked("/v1/messages", body, PROBE_HEADERS))
            except wire.UnreachableError as exc:
                why, again = str(exc), exc.again and again
            except BrokenOff:
                why = f"{self.address} broke off its answer"
            except TimeoutError:
                why = f"{self.address} gave no answer within {PROBE_SECONDS:.0f} s"
            if not again:
                return Probe(None, f"{why} (asked {attempts} times)" if attempts > 1 else why)
            notify(f"{why}; asking again")
            await anyio.sleep(PAUSE_SECONDS)
            attempts += 1

    def _probed(self, model: str, status: int, data: bytes) -> Probe:
        said = wire.read_object(data) or {}
        if status == 200 and "content" in said:
            usage = said.get("usage")
            return Probe(200, "", pricing.cost_usd(model, usage if isinstance(usage, dict) else {}))
        error = said.get("error")
        words = error.get("message") if isinstance(error, dict) else error
        message = words if isinstance(words, str) else data[:200].decode("utf-8", "replace") or "no words"
        if status == 200:
            return Probe(None, f"{self.address} does not answer as the Messages API does: {message}")
        return Probe(status, message)

    async def count_tokens(self, body: dict[str, Any], headers: wire.Headers = PROBE_HEADERS) -> int | None:
        """Ask how many tokens a request has, which is free; None where the API does not say."""
        with suppress(RefusedHereError, BrokenOff, TimeoutError):
            status, data = await self._asked("/v1/messages/count_tokens", body, headers)
            counted = (wire.read_object(data) or {}).get("input_tokens")
            return counted if status == 200 and isinstance(counted, int) and counted > 0 else None
        return None

    async def _asked(self, path: str, body: dict[str, Any], headers: wire.Headers) -> tuple[int, bytes]:
        """Status and body of an answer that comes soon, past any recording."""
        with anyio.fail_after(PROBE_SECONDS):
            async with self._live(Call(f"{path}?{policy.QUERY}", headers, wire.write(body), body)) as answer:
                return answer.status, b"".join([chunk async for chunk in answer.chunks])
