"""The model proxy: one per Zelda process, serving many runs side by side."""

import secrets
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import anyio
from anyio import AsyncContextManagerMixin

from zelda_ci.imports import one_at_a_time
from zelda_ci.model_proxy import pricing, wire
from zelda_ci.model_proxy.cassettes.cassette import load
from zelda_ci.model_proxy.cassettes.record import recording
from zelda_ci.model_proxy.cassettes.replay import ReplaySource
from zelda_ci.model_proxy.cassettes.session_texts import SessionTexts
from zelda_ci.model_proxy.meter import Meter
from zelda_ci.model_proxy.policy import Allowed
from zelda_ci.model_proxy.rate_limits import RateLimits, RateLimitWait, UpstreamPause
from zelda_ci.model_proxy.run import ProxyRun
from zelda_ci.model_proxy.token_estimate import estimated
from zelda_ci.model_proxy.upstream import Upstream
from zelda_ci.model_proxy.wire import (
    AnswerSource,
    BrokenOff,
    Call,
    CassetteState,
    Headers,
    RefusedHereError,
    UnreachableError,
)
from zelda_ci.redact import Redactor

# A session would wait, and ask again, where there is no answer to a probe.
MAX_PROBES, PROBE_SECONDS, PAUSE_SECONDS = 3, 20.0, 1.0
PROBE_HEADERS: Headers = [wire.JSON, (b"anthropic-version", b"2023-06-01"), (b"user-agent", b"zelda-ci (check)")]


@dataclass(frozen=True)
class Probe:
    """What came back for the smallest request to a model."""

    status: int | None
    """Of the API's answer; absent where there was none."""
    message: str
    """What the API said, or why there was no answer."""
    cost_usd: float = 0.0


def preload(*, live: bool) -> None:
    """Import server and client, which most commands need not."""
    with one_at_a_time("h11"):
        import zelda_ci.model_proxy.server  # noqa: PLC0415 - 15 ms
    if live:
        with one_at_a_time("httpx2"):
            import zelda_ci.model_proxy.live  # noqa: F401, PLC0415 - 40 ms


class ModelProxy(AsyncContextManagerMixin):
    """Serves the Messages API on loopback, and on a socket in the file system, while its `async with` block lasts.

    Args:
        upstream: The API; None where the cassettes answer, or nothing but token counts is asked: no key, no network.
        redact: Masks what is recorded and what messages quote.
        cassettes: The folder where runs are recorded, or which answers them.
        rate_limits: The API's, where several proxies share them.
    """

    _live: AnswerSource
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
        self._runs: dict[str, ProxyRun] = {}
        self._base_url = ""

    @asynccontextmanager
    async def __asynccontextmanager__(self) -> AsyncGenerator[Self, None]:
        """Serve the runs that are opened.

        Raises:
            ProxyError: The API's address, the HTTP proxy or the certificates cannot be used.
        """
        preload(live=self._upstream is not None)
        with one_at_a_time("h11"):
            from zelda_ci.model_proxy.server import serving  # noqa: PLC0415 - see `preload`
        async with AsyncExitStack() as stack:
            if self._upstream:
                with one_at_a_time("httpx2"):
                    from zelda_ci.model_proxy.live import live_source  # noqa: PLC0415 - see `preload`
                self._live = await stack.enter_async_context(live_source(self._upstream))
            else:
                self._live = estimated
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

        A recording takes its place when the block ends without an exception.

        Args:
            run_label: Names the run's cassette; no other run of the process has the same.
            budget_usd: Cost at which further requests are refused; None for no limit.
            placeholders: Absolute paths by name, kept out of the cassette as `{{zelda:name}}`.
            allowed: What requests may be; None for anything.
            wait: How long the run may wait for the API's rate limits.

        Raises:
            ProxyError: The cassette cannot be read, or is of another version.
        """
        token, recorder = secrets.token_urlsafe(32), None
        texts = SessionTexts({**placeholders, "proxyUrl": self._base_url, "proxyToken": token}, self.redact)
        cassette = CassetteState()
        source: AnswerSource
        async with AsyncExitStack() as stack:
            file = self._cassettes / f"{run_label}.json" if self._cassettes else None
            if file and not self._upstream:
                cassette = replay = ReplaySource(load(file), texts)
                source = replay.answer
            else:
                source = self._live if allowed is None or allowed.messages else estimated
                if file:
                    cassette = recorder = stack.enter_context(recording(file, run_label, texts))
            meter = Meter(self._base_url, token, budget_usd, cassette, self.socket, wait)
            run = self._runs[token] = ProxyRun(meter, source, self._pause, allowed or Allowed(), recorder)
            try:
                yield meter
            finally:
                del self._runs[token]
                await run.close()

    async def probe(self, model: str, notify: Callable[[str], None]) -> Probe:
        """Ask a model for one token, past any recording: whether it answers now, before a session depends on it.

        Without an answer it is asked again, a few times; `notify` is called with why before that.
        """
        model, attempts, why, again = pricing.plain(model), 0, "", True
        body = {"model": model, "max_tokens": 1, "messages": [{"role": "user", "content": "Hi"}]}
        call = Call("/v1/messages?beta=true", PROBE_HEADERS, wire.write(body), body)
        while again and attempts < MAX_PROBES:
            if attempts:
                notify(f"{why}; asking again")
                await anyio.sleep(PAUSE_SECONDS)
            attempts += 1
            try:
                with anyio.fail_after(PROBE_SECONDS):
                    async with self._live(call) as answer:
                        data = b"".join([chunk async for chunk in answer.chunks])
            except UnreachableError as exc:
                why, again = str(exc), exc.again
            except BrokenOff:
                why = f"{self.address} broke off its answer"
            except TimeoutError:
                why = f"{self.address} gave no answer within {PROBE_SECONDS:.0f} s"
            else:
                said = wire.read_object(data) or {}
                if answer.status == 200 and "content" in said:
                    usage = said.get("usage")
                    return Probe(200, "", pricing.cost_usd(model, usage if isinstance(usage, dict) else {}))
                error = said.get("error")
                words = error.get("message") if isinstance(error, dict) else error
                message = words if isinstance(words, str) else data[:200].decode("utf-8", "replace")
                if answer.status == 200:
                    return Probe(None, f"{self.address} does not answer as the Messages API does: {message}")
                return Probe(answer.status, message)
        return Probe(None, f"{why} (asked {attempts} times)" if attempts > 1 else why)

    async def count_tokens(self, body: dict[str, Any], headers: Headers = PROBE_HEADERS) -> int | None:
        """Ask how many tokens a request has, which is free; None where the API does not say."""
        call = Call("/v1/messages/count_tokens?beta=true", headers, wire.write(body), body)
        with suppress(RefusedHereError, BrokenOff, TimeoutError), anyio.fail_after(PROBE_SECONDS):
            async with self._live(call) as answer:
                data = b"".join([chunk async for chunk in answer.chunks])
            counted = (wire.read_object(data) or {}).get("input_tokens")
            return counted if answer.status == 200 and isinstance(counted, int) else None
        return None
