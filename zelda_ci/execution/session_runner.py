"""Runs a session from start to end: sends the prompt, records messages, stops at deadline, budget or cancellation."""

import logging
import math
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from signal import SIGKILL, SIGTERM
from typing import Any

import anyio
from anyio.abc import TaskGroup

from zelda_ci.domain.session import Ended, McpServerState, ServersReported, SessionRecord, SessionStatus
from zelda_ci.errors import ZeldaError
from zelda_ci.execution.agent import Listen, SessionRequest
from zelda_ci.execution.messages import SYNTHETIC, Translator, server_states
from zelda_ci.execution.outcome import BUDGET, CANCELLED, SessionFacts, SessionOutcome, failed
from zelda_ci.process.launches import Launch
from zelda_ci.redact import Redactor

log = logging.getLogger(__name__)

# Lines on standard error that become records; the rest is counted.
MAX_STDERR_LINES = 200
# For commands in the background after the last turn. Their end begins another turn, as it does in `claude -p`, which
# waits ten minutes; what serves for ever is stopped sooner here, and the wait is no part of the session's time.
BACKGROUND_SECONDS = 120.0
# From an interruption to the result message; a healthy CLI needs a hundredth of a second.
INTERRUPT_SECONDS = 5.0
# From the end of input to the end of the CLI: its SessionEnd hooks run in this time.
CLOSE_SECONDS = 3.0
# For the last question to the CLI, which answers at once unless the machine is very busy.
STATUS_SECONDS = 2.0
# From a signal to the end of the supervisor, which gives the CLI a few seconds of its own.
END_SECONDS = 10.0
# Between two looks whether the supervisor has started, where it is to end at once.
SIGNAL_POLL_SECONDS = 0.02
# Between two questions for the states of MCP servers: while the prompt waits for them, and while the session works.
FAST_POLL_SECONDS, SLOW_POLL_SECONDS = 0.1, 1.0


class SessionRunner:
    """One session on a client of the Agent SDK.

    The conversation runs in a task of its own, shielded from cancellation; the leading task only waits, and ends the
    conversation when its time has come. So deadline, budget and cancellation end a session in one and the same way.
    """

    def __init__(self, request: SessionRequest, listen: Listen, redact: Redactor) -> None:
        self._request, self._listen, self._redact = request, listen, redact
        self._began = time.monotonic()
        self._translator = Translator(redact, self._clock, request.keep_image, request.transcript_check)
        self._supervisor: int | None = None
        """Process id of the supervisor, once it is known."""
        self._attention, self._resting, self._over = anyio.Event(), anyio.Event(), anyio.Event()
        self._input_done = anyio.Event()
        # Cancelled from outside, the SDK would leave the CLI running; `_end` brings the session to an orderly end
        # first.
        self._conversation = anyio.CancelScope(shield=True)
        self._background = anyio.CancelScope()
        """Left where a session has only waited for the background for too long."""
        self._stderr_lines = 0
        self._servers: tuple[McpServerState, ...] = ()
        self._quiet_since: float | None = None
        self._can_record = True
        self.facts = SessionFacts(is_command=request.prompt.lstrip().startswith("/"))
        self.wall_seconds = 0.0
        """Seconds until the session came to rest; waiting for the background in vain and closing it are not counted."""

    async def run(
        self, client: Any, explain: Callable[[Exception], SessionOutcome | None], read_status: Callable[[], Launch]
    ) -> None:
        """Have the conversation, and end it if it does not end by itself.

        Args:
            client: The SDK's, not connected yet.
            explain: Returns what an exception of the client means; None where the CLI has ended.
            read_status: Returns how far the supervisor came with the start of the CLI.
        """
        self._client, self._read_status = client, read_status
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._converse, tasks, explain)
            tasks.start_soon(self._watch_budget)
            try:
                await self._watch()
            except BaseException:
                # The reason first: closing takes seconds, and the deadline may pass meanwhile.
                self._stop(CANCELLED)
                raise
            finally:
                with anyio.CancelScope(shield=True):
                    await self._end()
                tasks.cancel_scope.cancel()

    def record_stderr(self, line: str) -> None:
        """Record a line on the CLI's standard error."""
        self.facts.stderr_tail.append(line)
        self._stderr_lines += 1
        if self._stderr_lines <= MAX_STDERR_LINES:
            self._emit(self._translator.notice("stderr", line))

    def _clock(self) -> float:
        return time.monotonic() - self._began

    # --- the conversation -----------------------------------------------------------------------------------------

    async def _converse(self, tasks: TaskGroup, explain: Callable[[Exception], SessionOutcome | None]) -> None:
        with self._conversation:
            try:
                await self._client.connect(self._input())
                # Before anything of the session runs that could change the status file.
                self._supervisor = self._read_status().supervisor
                tasks.start_soon(self._watch_servers)
                await self._record_messages()
            except Exception as exc:
                log.debug("the session broke off", exc_info=True)
                self.facts.broken, self.facts.exit_code = explain(exc), getattr(exc, "exit_code", None)
            finally:
                self._rest()
                with suppress(Exception):
                    await self._client.disconnect()
        if (more := self._stderr_lines - MAX_STDERR_LINES) > 0:
            self._emit(self._translator.notice("stderr", f"{more} more lines"))
        self._over.set()

    async def _input(self) -> AsyncIterator[dict[str, Any]]:
        # The SDK closes the CLI's input once this ends, and until then the session can be interrupted. As at a
        # terminal, a leading `/` calls a command or skill of the project, and `@path` attaches a file.
        message = {"role": "user", "content": self._request.prompt}
        yield {"type": "user", "message": message, "parent_tool_use_id": None, "session_id": "default"}
        self.facts.prompted = True
        await self._input_done.wait()

    async def _record_messages(self) -> None:
        """Record every message, and in place of one that the SDK cannot read, the error.

        An error after which messages still come was about one message; one that ends them is the CLI's or the line's.
        """
        failure: Exception | None = None
        while True:
            try:
                async for message in self._client.receive_messages():
                    if failure:
                        self._record(failure)
                        failure = None
                    self._record(message)
            except Exception as exc:  # noqa: BLE001  # the SDK's parser raises what it happens upon
                failure = exc
            else:
                break
        if failure:
            raise failure

    def _record(self, message: Any) -> None:
        self._observe(message)
        try:
            records: list[SessionRecord] = list(self._translator.translate(message))
        except Exception as exc:
            log.warning("a message could not be translated", exc_info=True)
            records = [self._translator.notice("untranslatable", f"{type(message).__name__}: {exc}")]
        for record in records:
            self._emit(record)
        if not self.facts.quiet:
            self._quiet_since, self._background.deadline = None, math.inf
        elif self._quiet_since is None:
            self._quiet_since = self._clock()
            self._background.deadline = anyio.current_time() + BACKGROUND_SECONDS
        if self.facts.quiet and not self.facts.background_tasks:
            self._rest()

    def _observe(self, message: Any) -> None:
        """Note what drives the session but is no record: its state, background tasks, responses, errors of the API."""
        facts, subtype, data = self.facts, getattr(message, "subtype", None), getattr(message, "data", {})
        if subtype == "session_state_changed":
            facts.idle = data.get("state") == "idle"
        elif subtype == "background_tasks_changed":
            facts.background_tasks = tuple(str(task.get("task_id")) for task in data.get("tasks") or ())
        elif hasattr(message, "message_id"):
            # A later answer without an error means that the earlier one was overcome.
            facts.api_error = message.error
            if message.model != SYNTHETIC and message.content:
                facts.responses.add(str(message.message_id))
        event = getattr(message, "event", None) or {}
        if event.get("type") == "message_start":
            facts.responses.add(str((event.get("message") or {}).get("id")))

    def _emit(self, record: SessionRecord) -> None:
        if isinstance(record, Ended):
            self.facts.ended = record
        if not self._can_record:
            return
        try:
            self._listen(record)
        except Exception as exc:
            log.exception("a record could not be kept")
            self._can_record = False
            code, why = "RECORDING_FAILED", f"{type(exc).__name__}: {exc}"
            if isinstance(exc, ZeldaError):
                code, why = exc.code, exc.message
            self._stop(failed(code, f"The session was ended because it could not be recorded: {why}"))

    # --- MCP servers ----------------------------------------------------------------------------------------------

    async def _watch_servers(self) -> None:
        """Record the states of MCP servers, more often while one is connecting: the CLI announces no changes."""
        # The CLI may break while it is asked, which the conversation finds out by itself.
        with suppress(Exception):
            while True:  # noqa: ASYNC110  # as above
                await anyio.sleep(FAST_POLL_SECONDS if await self._poll_servers() else SLOW_POLL_SECONDS)

    async def _poll_servers(self) -> bool:
        """Ask once, and record what has changed; returns whether a server is still connecting."""
        status = await self._client.get_mcp_status()
        servers = tuple(server_states(status.get("mcpServers") or (), self._redact))
        if servers != self._servers:
            self._servers = servers
            self._emit(ServersReported(at=round(self._clock(), 3), servers=servers))
        return any(server.status == "pending" for server in servers)

    # --- the end --------------------------------------------------------------------------------------------------

    async def _watch_budget(self) -> None:
        await self._request.stop.wait()
        self._stop(BUDGET)

    async def _watch(self) -> None:
        """Return when the session needs an end, of whatever kind."""
        with self._request.time_limit(self._request.execution.timeout_seconds - self._clock()), self._background:
            await self._attention.wait()
            return
        if self._background.cancelled_caught:
            self._rest()
            return
        limit = f"its limit of {self._request.execution.timeout_seconds:g} s (timeoutSeconds)"
        reason = f"The session did not end within {limit}."
        self._stop(SessionOutcome(SessionStatus.TIMED_OUT, "SESSION_TIMED_OUT", reason))

    def _stop(self, outcome: SessionOutcome) -> None:
        """Have the session ended, unless it only waits or is at rest already; the first outcome counts."""
        if self.facts.quiet:
            self._rest()
        if self.facts.stopped is None and not self._resting.is_set():
            self.facts.stopped = outcome
        self._attention.set()

    def _rest(self) -> None:
        if not self._resting.is_set():
            self.wall_seconds = self._clock() if self._quiet_since is None else self._quiet_since
        self._resting.set()
        self._attention.set()

    async def _end(self) -> None:
        """Bring the session to rest and close it; what does not follow is killed."""
        try:
            # An interrupted session still gives its result, with the costs; one that was never prompted has none to
            # give.
            if self.facts.stopped and self.facts.prompted:
                with anyio.move_on_after(INTERRUPT_SECONDS), suppress(Exception):
                    await self._client.interrupt()
                    await self._resting.wait()
            if self.facts.quiet:
                await self._close()
            # To the supervisor, not to the CLI: it ends everything that the session started, daemons included.
            for number in (SIGTERM, SIGKILL):
                if self._over.is_set():
                    return
                with anyio.move_on_after(END_SECONDS):
                    while not self._signal(number):  # noqa: ASYNC110  # a start is a few milliseconds
                        await anyio.sleep(SIGNAL_POLL_SECONDS)
                    await self._over.wait()
        finally:
            # Still talking: cancelled once more, or something out of our reach holds the pipes open.
            if not self._over.is_set():
                self._signal(SIGTERM)
                self._conversation.cancel()

    def _signal(self, number: signal.Signals) -> bool:
        """Send the supervisor a signal, unless it has ended; false where it has not written its process id yet."""
        self._supervisor = self._supervisor or self._read_status().supervisor
        if self._supervisor is None:
            return self._over.is_set()
        with suppress(ChildProcessError, ProcessLookupError):
            if sys.platform == "linux":
                # Raises unless it is still our child, so that a recycled id is never hit.
                os.waitid(os.P_PID, self._supervisor, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            os.kill(self._supervisor, number)
        return True

    async def _close(self) -> None:
        """Close the input, on which the CLI ends."""
        if self._servers:
            # Before the input is closed: after that the CLI answers no questions.
            with anyio.move_on_after(STATUS_SECONDS), suppress(Exception):
                await self._poll_servers()
        with anyio.move_on_after(CLOSE_SECONDS):
            # It would wait for its background shells.
            for task in self.facts.background_tasks:
                with suppress(Exception):
                    await self._client.stop_task(task)
            self._input_done.set()
            await self._over.wait()
