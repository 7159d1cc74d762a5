"""Runs a session from start to end: sends the prompt, records messages, stops at deadline, budget or cancellation."""

import logging
import os
import signal
import sys
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, closing, suppress
from signal import SIGKILL, SIGTERM
from typing import Any, Protocol

import anyio

from zelda_ci.errors import ZeldaError
from zelda_ci.execution.agent import Listen, Recorder, SessionRequest
from zelda_ci.execution.messages import Translator
from zelda_ci.execution.outcome import Crash, CrashKind, SessionFacts, StopReason
from zelda_ci.execution.system_messages import ServerWatch, longest_wait
from zelda_ci.process import launches
from zelda_ci.redact import Redactor


class Supervisor:
    """A process known by its id, and on Linux by a descriptor, so that a recycled id is never hit.

    A signal sent before the process is known reaches it as soon as it is.
    """

    def __init__(self) -> None:
        self._pid: int | None = None
        self._descriptor: int | None = None
        self._waiting: signal.Signals | None = None

    def introduce(self, line: str) -> bool:
        """Take the process id from the first line on standard error that is one; false for any other line."""
        if self._pid is not None or not line.isdecimal():
            return False
        self._pid = int(line)
        if sys.platform == "linux":
            with suppress(ProcessLookupError):
                self._descriptor = os.pidfd_open(self._pid)
        if self._waiting:
            self.send(self._waiting)
        return True

    def send(self, number: signal.Signals) -> None:
        """Send a signal; nothing happens where the process has ended."""
        with suppress(ProcessLookupError):
            if self._pid is None:
                self._waiting = number
            elif sys.platform != "linux":
                os.kill(self._pid, number)
            elif self._descriptor is not None:
                signal.pidfd_send_signal(self._descriptor, number)

    def close(self) -> None:
        """Let go of the descriptor."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


log = logging.getLogger(__name__)

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


class TransportError(Exception):
    """The line to the CLI broke."""

    def __init__(self, crash: Crash) -> None:
        super().__init__(crash.detail)
        self.crash = crash


class Transport(Protocol):
    """The line to one CLI. Everything raises `TransportError`, and nothing else."""

    prompted: bool
    """Whether the prompt has gone out."""

    async def connect(self, ready: anyio.Event, finished: anyio.Event) -> None:
        """Start the CLI; it is prompted once `ready` is set, and its input is closed when `done` is set."""
        ...

    async def mcp_servers(self) -> Sequence[Mapping[str, Any]]:
        """The states of the MCP servers, as the CLI writes them."""
        ...

    def messages(self) -> AsyncGenerator[object, None]:
        """Every message until the CLI closes its output."""
        ...

    async def interrupt(self) -> None:
        """Have the session stop what it does, and give its result."""
        ...

    async def stop_task(self, task: str) -> None:
        """Have the CLI end a background task."""
        ...

    async def disconnect(self) -> None:
        """Let go of the CLI; bounded in time, whatever the CLI does."""
        ...


class SessionRunner:
    """One session.

    The conversation runs in a task of its own, shielded from cancellation; the leading task only waits, and ends the
    conversation when its time has come. So deadline, budget and cancellation end a session in one and the same way.
    """

    def __init__(self, request: SessionRequest, listen: Listen, redact: Redactor) -> None:
        self._request, self._redact = request, redact
        self._began = time.monotonic()
        translator = Translator(redact, self._clock, request.keep_image)
        check = request.transcript_check
        self._recorder = Recorder(translator, listen, lambda: self._call(StopReason.RECORDING), check)
        self._supervisor = Supervisor()
        self._attention, self._resting, self._over = anyio.Event(), anyio.Event(), anyio.Event()
        self._connected, self._ready, self._input_done = anyio.Event(), anyio.Event(), anyio.Event()
        # Cancelled from outside, the SDK would leave the CLI running; `_end` brings the session to an orderly end
        # first.
        self._conversation = anyio.CancelScope(shield=True)
        self._stop_reason: StopReason | None = None
        self._crash: Crash | None = None
        self._quiet_since: float | None = None
        self.wall_seconds = 0.0
        """Until the session came to rest; waiting for the background in vain and closing it are not counted."""

    async def run(self, transport: Transport) -> None:
        """Have the conversation, and end it if it does not end by itself."""
        self._transport = transport
        self._servers = ServerWatch(transport.mcp_servers, self._recorder.emit, self._clock, self._redact)
        with closing(self._supervisor):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._converse)
                tasks.start_soon(self._watch_servers)
                tasks.start_soon(self._watch_budget)
                tasks.start_soon(self._watch_background)
                try:
                    await self._watch()
                except BaseException:
                    # The reason first: closing takes seconds, and the deadline may pass meanwhile.
                    self._call(StopReason.CANCELLED)
                    raise
                finally:
                    with anyio.CancelScope(shield=True):
                        await self._end()
                    tasks.cancel_scope.cancel()

    def record_stderr(self, line: str) -> None:
        """A line on the CLI's standard error; the first one is its supervisor's."""
        if not self._supervisor.introduce(line):
            self._recorder.record_stderr(line)

    def facts(self) -> SessionFacts:
        """What the verdict rests on, once the session is over."""
        recorder = self._recorder
        launch = launches.read(self._request.workspace.status_file("session"))
        return SessionFacts(
            ended=recorder.ended,
            quiet=recorder.quiet,
            responses=len(recorder.responses),
            api_error=recorder.api_error,
            stop_reason=self._stop_reason,
            crash=self._crash,
            stderr_tail=tuple(recorder.stderr_tail),
            prompted=self._transport.prompted,
            command=self._request.prompt.lstrip().startswith("/"),
            seconds_allowed=self._request.execution.timeout_seconds,
            begun=launch.begun,
            exit_code=launch.exit_code,
            recording_failure=_explained(recorder.failure) if recorder.failure else None,
        )

    def _clock(self) -> float:
        return time.monotonic() - self._began

    async def _converse(self) -> None:
        with self._conversation:
            try:
                await self._transport.connect(self._ready, self._input_done)
                self._connected.set()
                await self._record_messages()
            except TransportError as broken:
                self._crash = broken.crash
            except Exception as exc:
                log.exception("the session broke off")
                self._crash = Crash(CrashKind.BROKEN, f"{type(exc).__name__}: {exc}")
            finally:
                self._rest()
                with suppress(TransportError):
                    await self._transport.disconnect()
        self._recorder.finish()
        self._over.set()

    async def _record_messages(self) -> None:
        async with aclosing(self._transport.messages()) as messages:
            async for message in messages:
                self._recorder.record(message)
                if not self._recorder.quiet:
                    self._quiet_since = None
                elif self._quiet_since is None:
                    self._quiet_since = self._clock()
                if self._recorder.quiet and not self._recorder.background_tasks:
                    self._rest()

    async def _watch_servers(self) -> None:
        """Hold the prompt back until the MCP servers have settled, then go on noting their states."""
        await self._connected.wait()
        execution = self._request.execution
        remaining = execution.timeout_seconds - self._clock()
        # Where the CLI cannot be asked, it is prompted at once: if its line is broken, that shows by itself.
        with suppress(TransportError):
            await self._servers.wait(longest_wait(execution.mcp_startup_seconds, remaining))
        # The session was ended while it waited for its servers: a prompt now would only cost money.
        if self._attention.is_set():
            return
        self._ready.set()
        with suppress(TransportError):
            await self._servers.follow()

    async def _watch_budget(self) -> None:
        await self._request.stop.wait()
        self._call(StopReason.BUDGET)

    async def _watch_background(self) -> None:
        """Let a session that only waits for the background come to rest at last."""
        # Whoever waits may be waited for once more: no event stands for the end of it.
        while self._quiet_since is None or self._clock() - self._quiet_since < BACKGROUND_SECONDS:  # noqa: ASYNC110
            await anyio.sleep(min(1.0, BACKGROUND_SECONDS))
        self._rest()

    async def _watch(self) -> None:
        """Return when the session needs an end, of whatever kind."""
        with self._request.time_limit(self._request.execution.timeout_seconds - self._clock()):
            await self._attention.wait()
            return
        self._call(StopReason.DEADLINE)

    def _call(self, reason: StopReason) -> None:
        """Have the session ended, unless it only waits or is at rest already; the first reason counts."""
        if self._recorder.quiet:
            self._rest()
        if self._stop_reason is None and not self._resting.is_set():
            self._stop_reason = reason
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
            if self._stop_reason and self._transport.prompted:
                await self._interrupt()
            if self._recorder.quiet:
                await self._close()
            # To the supervisor, not to the CLI: it ends everything that the session started, daemons included.
            for number in (SIGTERM, SIGKILL):
                if self._over.is_set():
                    return
                self._supervisor.send(number)
                with anyio.move_on_after(END_SECONDS):
                    await self._over.wait()
        finally:
            # Still talking: cancelled once more, or something out of our reach holds the pipes open.
            if not self._over.is_set():
                self._supervisor.send(SIGTERM)
                self._conversation.cancel()

    async def _interrupt(self) -> None:
        with anyio.move_on_after(INTERRUPT_SECONDS), suppress(TransportError):
            await self._transport.interrupt()
            await self._resting.wait()

    async def _close(self) -> None:
        """Close the input, on which the CLI ends."""
        with suppress(TransportError):
            # Before the input is closed: after that the CLI answers no questions.
            await self._servers.poll_finally(STATUS_SECONDS)
        with anyio.move_on_after(CLOSE_SECONDS):
            # It would wait for its background shells.
            for task in self._recorder.background_tasks:
                with suppress(TransportError):
                    await self._transport.stop_task(task)
            self._input_done.set()
            await self._over.wait()


def _explained(exc: Exception) -> tuple[str, str]:
    """Code and sentence of what a listener raised."""
    if isinstance(exc, ZeldaError):
        return exc.code, exc.message
    return "RECORDING_FAILED", f"{type(exc).__name__}: {exc}"
