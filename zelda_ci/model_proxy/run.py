"""One run as the proxy sees it: its meter, what it may ask, and the way of one request."""

import asyncio
from collections.abc import Set as AbstractSet
from contextlib import aclosing
from typing import Protocol

import anyio
import anyio.to_thread

from zelda_ci.domain.kinds import TURNS_TO
from zelda_ci.model_proxy import policy, wire
from zelda_ci.model_proxy.answer import dicts
from zelda_ci.model_proxy.cassettes.record import RecordedAnswer, Recording
from zelda_ci.model_proxy.meter import Meter, MeteredExchange
from zelda_ci.model_proxy.policy import Allowed
from zelda_ci.model_proxy.rate_limits import UpstreamPause, is_throttled
from zelda_ci.model_proxy.wire import AnswerSource, BrokenOff, Call, Headers, RefusedHereError, UnreachableError

# Requests under way for one run: what these cost is known only when they are over. Sub-agents are ten at most.
MAX_CONCURRENT = 24

# Free, so that no budget ends them: far beyond what Claude Code asks for.
MAX_TOKEN_COUNTS = 1000

# About refused requests: the names in them are the session's own.
MAX_REMARKS = 10


class Client(Protocol):
    """Takes an answer as it comes."""

    async def start(self, status: int, headers: Headers) -> None:
        """Take in status and headers."""

    async def chunk(self, data: bytes) -> None:
        """Take in the next bytes of the body."""


def is_routed(call: Call, called: AbstractSet[str]) -> bool:
    """Whether a request follows on a call of a skill, sub-agent or command that was carried out; `called` are tools."""
    blocks = [block for message in dicts(call.body.get("messages")) for block in dicts(message.get("content"))]
    calls = {it.get("id") for it in blocks if it.get("type") == "tool_use" and it.get("name") in TURNS_TO}
    answers = [it for it in blocks if it.get("type") == "tool_result" and not it.get("is_error")]
    # A sub-agent asks before its call is answered; one that a hook starts has no call.
    return bool(call.agent_id and TURNS_TO & called) or any(it.get("tool_use_id") in calls for it in answers)


class ProxyRun:
    """Serves the requests that carry one run's token."""

    def __init__(
        self, meter: Meter, source: AnswerSource, pause: UpstreamPause, allowed: Allowed, recording: Recording | None
    ) -> None:
        self._meter, self._source, self._pause = meter, source, pause
        self._allowed, self._recording = allowed, recording
        self._token_counts = 0
        self._room = anyio.CapacityLimiter(MAX_CONCURRENT)
        self._tasks: set[asyncio.Task[None]] = set()

    def serve(self, path: str, headers: Headers, body: bytes, client: Client) -> asyncio.Task[None]:
        """Begin to answer a request.

        The task raises `RefusedHereError` where the client got nothing, and `BrokenOff` where it got no whole answer.
        """
        task = asyncio.create_task(self._serve(path, headers, body, client))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        """End what is under way, and wait for it: nothing may be spent for a run that is over."""
        for task in self._tasks:
            task.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, path: str, headers: Headers, body: bytes, client: Client) -> None:
        """Ask until the API does not refuse for its rate, as long as there is budget."""
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
        attempts = 1
        async with self._room:
            while not await self._ask(call, client, attempts):
                attempts += 1

    async def _ask(self, call: Call, client: Client, attempts: int) -> bool:
        """Ask the source once, with the meter and the recording looking on; False where to ask again."""
        meter = self._meter
        sent_at = await self._pause.wait(meter.wait)
        if meter.is_spent:
            spent = f"{meter.cost_usd:.4f} of {meter.budget_usd or 0:.4f} US dollars are spent"
            # 402 is the one error that the CLI neither repeats nor explains away in words of its own.
            raise RefusedHereError(402, "billing_error", f"Zelda's cost limit for this run is reached: {spent}")
        if meter.ends_at_call and is_routed(call, meter.transcript_check.tools):
            meter.routed.set()
            # Nobody waits for the answer: the session is ended, and then the run is closed.
            await anyio.sleep_forever()
        exchange, is_cut = meter.begin(call), True
        recorded = self._recording.begin(call) if self._recording and not call.counts_tokens else None
        try:
            async with self._source(call) as answer, aclosing(answer.chunks) as chunks:
                headers = answer.headers
                # A refused count of tokens says nothing about messages, and Claude Code does without.
                if call.counts_tokens or not is_throttled(answer):
                    self._pause.answered(sent_at)
                elif self._pause.refused(answer, meter.wait, attempts, sent_at):
                    meter.drop(exchange)
                    return False
                else:
                    # The session would only begin the same waiting anew.
                    headers = [*(each for each in headers if each[0] != b"x-should-retry"), *wire.DO_NOT_RETRY]
                observers: list[MeteredExchange | RecordedAnswer] = [exchange, recorded] if recorded else [exchange]
                for observer in observers:
                    observer.start(answer.status, headers)
                await client.start(answer.status, headers)
                async for chunk in chunks:
                    for observer in observers:
                        observer.chunk(chunk)
                    await client.chunk(chunk)
            is_cut, meter.outage = False, None
        except (UnreachableError, BrokenOff) as exc:
            meter.outage = str(exc) or meter.outage
            exchange.error = "connection"
            exchange.is_left = isinstance(exc, UnreachableError) and exc.abandoned
            raise
        except asyncio.CancelledError:
            exchange.is_left = True
            raise
        finally:
            meter.end(exchange)
            if self._recording and recorded:
                self._recording.end(recorded, cut=is_cut)
        return True
