"""The model proxy: one per Zelda process, serving many runs side by side."""

import secrets
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from zelda_ci.errors import ProxyError
from zelda_ci.imports import one_at_a_time
from zelda_ci.model_proxy.cassettes.cassette import cassette_file, load
from zelda_ci.model_proxy.cassettes.record import recording
from zelda_ci.model_proxy.cassettes.replay import ReplaySource
from zelda_ci.model_proxy.cassettes.session_texts import SessionTexts
from zelda_ci.model_proxy.limits import Limits
from zelda_ci.model_proxy.meter import Meter
from zelda_ci.model_proxy.policy import Allowed
from zelda_ci.model_proxy.pricing import plain
from zelda_ci.model_proxy.probe import Probe, probe
from zelda_ci.model_proxy.rate_limits import RateLimits, RateLimitWait, UpstreamPause
from zelda_ci.model_proxy.run import ProxyRun
from zelda_ci.model_proxy.upstream import Mode, RecordMode, ReplayMode
from zelda_ci.model_proxy.wire import AnswerSource, CassetteState
from zelda_ci.redact import Redactor


def preload(*, live: bool) -> None:
    """Import server and client, which most commands need not."""
    with one_at_a_time("h11"):
        import zelda_ci.model_proxy.server  # noqa: PLC0415 - 15 ms
    if live:
        with one_at_a_time("httpx2"):
            import zelda_ci.model_proxy.live  # noqa: F401, PLC0415 - 40 ms


class ModelProxy:
    """Serves the Messages API on loopback, and on a socket in the file system, while its `async with` block lasts.

    Args:
        mode: Where answers come from.
        redact: Masks what is recorded and what messages quote.
        limits: Bytes and seconds of requests and answers.
        rate_limits: The API's, where several proxies share them.
    """

    def __init__(
        self, mode: Mode, redact: Redactor, limits: Limits | None = None, rate_limits: RateLimits | None = None
    ) -> None:
        self._mode = mode
        self._upstream = None if isinstance(mode, ReplayMode) else mode.upstream
        self.address = self._upstream.address if self._upstream else ""
        """Whom it asks; nobody where it replays."""
        pauses = defaultdict(UpstreamPause) if rate_limits is None else rate_limits
        self._pause = pauses[self._upstream and self._upstream.identity]
        self.redact = redact
        self._limits = limits or Limits()
        self._runs: dict[str, ProxyRun] = {}
        self._recording: set[Path] = set()
        self._stack = AsyncExitStack()
        self._base_url = ""
        self.socket: Path | None = None
        """Where it is served without a network, for sandboxes that have none; any of them may connect."""
        self._live: AnswerSource

    async def __aenter__(self) -> Self:
        """Start serving.

        Raises:
            ProxyError: The API's address, the HTTP proxy or the certificates cannot be used.
        """
        with one_at_a_time("h11"):
            from zelda_ci.model_proxy.server import serving, socket_path  # noqa: PLC0415

        async with AsyncExitStack() as stack:
            if self._upstream:
                with one_at_a_time("httpx2"):
                    from zelda_ci.model_proxy.live import live_source  # noqa: PLC0415

                self._live = await stack.enter_async_context(live_source(self._upstream, self._limits))
            self.socket = stack.enter_context(socket_path())
            self._base_url = await stack.enter_async_context(serving(self._runs, self._limits, self.socket))
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(kind, error, trace)

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
            run_label: Names the run's cassette.
            budget_usd: Cost at which further requests are refused; None for no limit.
            placeholders: Absolute paths by name, kept out of the cassette as `{{zelda:name}}`.
            allowed: What requests may be; None for anything.
            wait: How long the run may wait for the API's rate limits.

        Raises:
            ProxyError: The cassette cannot be read, is of another version, or is being recorded already.
        """
        token, recorder = secrets.token_urlsafe(32), None
        texts = SessionTexts({**placeholders, "proxyUrl": self._base_url, "proxyToken": token}, self.redact)
        source: AnswerSource
        cassette: CassetteState
        async with AsyncExitStack() as stack:
            match self._mode:
                case ReplayMode(folder):
                    source = cassette = ReplaySource(load(cassette_file(folder, run_label)), texts)
                case RecordMode(_, folder):
                    source, file = self._live, cassette_file(folder, run_label)
                    if file in self._recording:
                        hint = "Give the suites different names."
                        raise ProxyError(f"two runs would be recorded to {file}", hint=hint)
                    self._recording.add(file)
                    stack.callback(self._recording.discard, file)
                    cassette = recorder = stack.enter_context(recording(file, run_label, texts))
                case _:
                    source, cassette = self._live, CassetteState()
            meter = Meter(self._base_url, token, budget_usd, cassette, self.socket, wait)
            run = ProxyRun(meter, source, self._limits, self._pause, allowed, recorder)
            self._runs[token] = run
            try:
                yield meter
            finally:
                del self._runs[token]
                await run.close()

    async def probe(self, model: str, notify: Callable[[str], None]) -> Probe:
        """Ask a model for one token, past any recording; `notify` is called with why it is asked again."""
        # What is asked is whether there is an answer now.
        meter = Meter(self._base_url, "", None, CassetteState(), wait=RateLimitWait(0.0))
        run = ProxyRun(meter, self._live, self._limits, self._pause)
        return await probe(run, plain(model), self.address, notify)
