"""Sessions of Claude Code: the only module that knows the Agent SDK, which it imports as late as it can."""

import logging
import math
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, MutableSequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup
from pydantic import BaseModel

from zelda_ci.domain.session import McpServerState, ServersReported, SessionRecord, ToolReturned
from zelda_ci.errors import ZeldaError
from zelda_ci.execution import launch
from zelda_ci.execution.launch import SessionRequest
from zelda_ci.execution.messages import Translator, server_states
from zelda_ci.execution.outcome import BUDGET, CANCELLED, ROUTED, SessionOutcome, judge
from zelda_ci.imports import one_at_a_time
from zelda_ci.process import Launch
from zelda_ci.redact import Redactor

log = logging.getLogger(__name__)

# Called for each record at once, in order; it writes the journal and reports progress.
Listen = Callable[[SessionRecord], None]
# Without a handler of their own, the SDK's error logs would be printed; what they say is in the outcome.
logging.getLogger("claude_agent_sdk").addHandler(logging.NullHandler())

# Bytes of one message: an edit carries the whole file.
MAX_MESSAGE_BYTES = 64 << 20
# What the SDK imports for tools that are Python functions, of which Zelda has none: six sevenths of its time.
UNUSED = ("jsonschema", "mcp", "mcp.server", "mcp.shared", "mcp.shared.memory", "mcp.shared.message", "mcp.types")
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
# For its list of what is in the context, for which it counts every file and tool.
CONTEXT_SECONDS = 60.0
# From a signal to the end of the supervisor, which gives the CLI a few seconds of its own; then the SDK ends it.
END_SECONDS = 10.0
# Between two looks whether MCP servers have connected, or whether a supervisor that is to end at once has started.
POLL_SECONDS = 0.1


async def run_session(
    request: SessionRequest, listen: Listen, redact: Redactor, cli: Path | None = None
) -> SessionOutcome:
    """Run one session to its end, its deadline, its budget or cancellation; sessions may run side by side.

    A session that ends badly is an outcome; `ExecutionError` says that it could not even be prepared. On cancellation
    it is interrupted, its last messages are recorded, every process of it is ended, and the cancellation goes on.
    """
    cli = cli or launch.find_cli()
    # In a thread, because the loop also serves the model proxy of other runs.
    sdk = await anyio.to_thread.run_sync(import_sdk)
    variables = launch.complete_environment(request, sdk_version=sdk.__version__, as_root=os.geteuid() == 0)
    with launch.prepared(request, cli, variables) as (stub, read_status):
        runner = SessionRunner(request, listen, redact, read_status)
        await runner.run(sdk.ClaudeSDKClient(_options(request, stub, runner.record_stderr)))
        status = read_status()
    runner.facts.begun = status.begun
    if status.exit_code is not None:
        runner.facts.exit_code = status.exit_code
    return replace(judge(runner.facts), wall_seconds=runner.wall_seconds)


@cache
def import_sdk() -> Any:
    """Import the Agent SDK; in a thread, while git works, since it takes a while even without what it does not use."""
    with one_at_a_time("claude_agent_sdk"):
        hollow = {name: _Hollow(name) for name in UNUSED if name not in sys.modules}
        sys.modules.update(hollow)
        try:
            import claude_agent_sdk  # noqa: PLC0415  # slow
        finally:
            for name in hollow:
                del sys.modules[name]
    return claude_agent_sdk


class _Hollow(ModuleType):
    """A module that has any class that is asked of it, and no modules but those that are known."""

    __path__: MutableSequence[str] = []  # noqa: RUF012  # as the import system wants it

    def __getattr__(self, name: str) -> object:
        return sys.modules.get(f"{self.__name__}.{name}") or type(name, (BaseModel,), {})


def _options(request: SessionRequest, stub: Path, record_stderr: Callable[[str], None]) -> Any:
    execution = request.execution
    return import_sdk().ClaudeAgentOptions(
        cli_path=stub,
        cwd=request.workspace.path,
        session_id=request.session_id,
        model=execution.model,
        # The default would be an empty system prompt, which is not Claude Code.
        system_prompt={"type": "preset", "preset": "claude_code"},
        # Not the user's and not `.claude/settings.local.json`: what is tested is what the project shares.
        setting_sources=["project"],
        settings=launch.settings(request),
        permission_mode=execution.permission_mode,
        allowed_tools=list(execution.allowed_tools),
        disallowed_tools=launch.disallowed_tools(request),
        max_turns=execution.max_turns,
        effort=execution.effort,
        max_thinking_tokens=execution.max_thinking_tokens,
        # The SDK's own limit is 1 MiB, and a longer message ends the session.
        max_buffer_size=MAX_MESSAGE_BYTES,
        include_hook_events=True,
        forward_subagent_text=True,
        stderr=record_stderr,
    )


def explain(exc: Exception) -> SessionOutcome | None:
    """Return what an exception of the SDK's client means; None where the CLI has ended."""
    sdk = import_sdk()
    match exc:
        case sdk.ProcessError():
            return None
        case sdk.CLIJSONDecodeError() if "maximum buffer size" in str(exc):
            most = f"more than {MAX_MESSAGE_BYTES >> 20} MiB"
            return SessionOutcome("CLI_OUTPUT_TOO_LONG", f"Claude Code wrote a message too long to read: {most}.")
        # It had ended before it was written to; the SDK has one class for that and for a start that fails.
        case sdk.CLIConnectionError() if str(exc).startswith(("Cannot write", "Failed to write")):
            return None
        case sdk.CLINotFoundError() | sdk.CLIConnectionError():
            return SessionOutcome("CLI_START_FAILED", f"Claude Code could not be started: {exc}")
        # The SDK has no class for it.
        case _ if "timeout: initialize" in str(exc):
            return SessionOutcome("CLI_START_TIMED_OUT", "Claude Code did not get ready within a minute.")
        case _:
            return SessionOutcome("SESSION_FAILED", f"The session broke off: {type(exc).__name__}: {exc}")


class SessionRunner:
    """One session on a client of the Agent SDK.

    The conversation runs in a task of its own, shielded from cancellation; the leading task only waits, and ends the
    conversation when its time has come. So deadline, budget and cancellation end a session in one and the same way.
    """

    def __init__(
        self, request: SessionRequest, listen: Listen, redact: Redactor, read_status: Callable[[], Launch]
    ) -> None:
        self._request, self._listen, self._redact, self._read_status = request, listen, redact, read_status
        self._began = time.monotonic()
        self._translator = Translator(request, redact, self._clock)
        self.facts = self._translator.facts
        self._attention, self._resting, self._over, self._input_done = (anyio.Event() for _ in range(4))
        # Cancelled from outside, the SDK would leave the CLI running: `_end` first brings the session to rest.
        self._conversation = anyio.CancelScope(shield=True)
        self._background = anyio.CancelScope()
        """Left where a session has only waited for the background for too long."""
        self._stderr_lines = 0
        self._servers: tuple[McpServerState, ...] = ()
        self._quiet_since: float | None = None
        self._can_record = True
        self.wall_seconds = 0.0
        """Seconds until the session came to rest; waiting for the background in vain and closing it are not counted."""

    async def run(self, client: Any) -> None:
        """Have the conversation on a client that is not connected yet, and end it if it does not end by itself."""
        self._client = client
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._converse, tasks)
            tasks.start_soon(self._stop_at, self._request.meter.exhausted, BUDGET)
            tasks.start_soon(self._stop_at, self._request.meter.routed, ROUTED)
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

    async def _converse(self, tasks: TaskGroup) -> None:
        with self._conversation:
            try:
                await self._client.connect(self._input())
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
        """Record every message, and in place of one that the SDK cannot read, the error."""
        # An error after which messages still come was about one message; one that ends them is the CLI's or the line's.
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
        try:
            for record in self._translator.translate(message):
                self._emit(record)
        except Exception as exc:
            log.warning("a message could not be translated", exc_info=True)
            self._emit(self._translator.notice("untranslatable", f"{type(message).__name__}: {exc}"))
            if type(message).__name__ == "ResultMessage":
                # Without it, the session would be waited for until its time is over.
                self._stop(SessionOutcome("SESSION_FAILED", f"Claude Code's result cannot be read: {exc}"))
        if not self.facts.quiet:
            self._quiet_since, self._background.deadline = None, math.inf
            return
        if self._quiet_since is None:
            self._quiet_since = self._clock()
            self._background.deadline = anyio.current_time() + BACKGROUND_SECONDS
        if not self.facts.background_tasks:
            self._rest()

    def _emit(self, record: SessionRecord) -> None:
        # The interruption makes an error of a call that is still under way.
        is_made_up = self.facts.stopped is ROUTED and isinstance(record, ToolReturned) and record.is_error
        if is_made_up or not self._can_record:
            return
        try:
            self._listen(record)
        except Exception as exc:
            log.exception("a record could not be kept")
            self._can_record = False
            code, why = "RECORDING_FAILED", f"{type(exc).__name__}: {exc}"
            if isinstance(exc, ZeldaError):
                code, why = exc.code, exc.message
            reason = f"The session was ended because it could not be recorded: {' '.join(why.split())}"
            self._stop(SessionOutcome(code, reason))

    async def _watch_servers(self) -> None:
        """Record the states of MCP servers until all have connected or failed: the CLI announces no changes."""
        with suppress(Exception):  # the CLI may break while it is asked, which the conversation finds out by itself
            while await self._poll_servers():  # noqa: ASYNC110  # as above
                await anyio.sleep(POLL_SECONDS)

    async def _poll_servers(self) -> bool:
        """Ask once, and record what has changed; returns whether a server is still connecting."""
        servers = server_states((await self._client.get_mcp_status()).get("mcpServers"), self._redact)
        if servers != self._servers:
            self._servers = servers
            self._emit(ServersReported(at=round(self._clock(), 3), servers=servers))
        return any(server.status == "pending" for server in servers)

    async def _stop_at(self, event: anyio.Event, outcome: SessionOutcome) -> None:
        await event.wait()
        self._stop(outcome)

    async def _watch(self) -> None:
        """Return when the session needs an end, of whatever kind."""
        seconds = self._request.execution.timeout_seconds
        with self._request.meter.wait.time_limit(seconds - self._clock()), self._background:
            await self._attention.wait()
            return
        if self._background.cancelled_caught:
            self._rest()
        reason = f"The session did not end within its limit of {seconds:g} s (timeoutSeconds)."
        self._stop(SessionOutcome("SESSION_TIMED_OUT", reason))

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
        """Bring the session to rest and close it; what does not follow is ended by its supervisor, or by the SDK."""
        try:
            # An interrupted session still gives its result, with the costs; one that was never prompted has none.
            if self.facts.stopped and self.facts.prompted:
                with anyio.move_on_after(INTERRUPT_SECONDS), suppress(Exception):
                    await self._client.interrupt()
                    await self._resting.wait()
            if self.facts.quiet:
                await self._close()
            with anyio.move_on_after(END_SECONDS):
                while not (self._over.is_set() or self._terminate()):  # noqa: ASYNC110  # a start is a few milliseconds
                    await anyio.sleep(POLL_SECONDS)
                await self._over.wait()
        finally:
            # Still talking: cancelled once more, or something out of our reach holds the pipes open.
            self._conversation.cancel()

    def _terminate(self) -> bool:
        """Have the supervisor end everything that the session started; false where it has not written its id yet."""
        if (supervisor := self._read_status().supervisor) is None:
            return False
        with suppress(ChildProcessError, ProcessLookupError):
            if sys.platform == "linux":
                # Raises unless it is still our child, so that a recycled id is never hit.
                os.waitid(os.P_PID, supervisor, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            os.kill(supervisor, signal.SIGTERM)
        return True

    async def _close(self) -> None:
        """Close the input, on which the CLI ends."""
        if self._servers:
            # Before the input is closed: after that the CLI answers no questions.
            with anyio.move_on_after(STATUS_SECONDS), suppress(Exception):
                await self._poll_servers()
        if keep := self._request.keep_context:
            with anyio.move_on_after(CONTEXT_SECONDS), suppress(Exception):
                keep(await self._client.get_context_usage())
        with anyio.move_on_after(CLOSE_SECONDS):
            # It would wait for its background shells.
            for task in self.facts.background_tasks:
                with suppress(Exception):
                    await self._client.stop_task(task)
            self._input_done.set()
            await self._over.wait()
