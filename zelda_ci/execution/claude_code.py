"""Claude Code as a coding agent: the only module that knows the Agent SDK, which it imports as late as it can."""

import logging
import os
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import anyio
import anyio.to_thread
from pydantic import BaseModel

from zelda_ci.execution import launch
from zelda_ci.execution.agent import Listen, SessionOutcome, SessionRequest
from zelda_ci.execution.outcome import Crash, CrashKind, judge
from zelda_ci.execution.session_runner import SessionRunner, TransportError
from zelda_ci.imports import one_at_a_time
from zelda_ci.redact import Redactor

# Without a handler of their own, the SDK's error logs would be printed; what they say is in the outcome.
logging.getLogger("claude_agent_sdk").addHandler(logging.NullHandler())

# Bytes of one message: an edit carries the whole file.
MAX_MESSAGE_BYTES = 64 << 20


# What the SDK imports for MCP servers inside this process, which no session of ours has. It takes a second of the
# processor, ten times as long as the SDK itself.
OF_MCP_SERVERS = (
    "jsonschema",
    "mcp",
    "mcp.server",
    "mcp.shared",
    "mcp.shared.memory",
    "mcp.shared.message",
    "mcp.types",
)


class _StandIn(ModuleType):
    """A module in which every name is an empty model, which is enough to be named and inherited from."""

    def __getattr__(self, name: str) -> object:
        return sys.modules.get(f"{self.__name__}.{name}", BaseModel)


@contextmanager
def _one_at_a_time_without_servers() -> Iterator[None]:
    """Around an import of the SDK: it finds stand-ins for what it does not need here, and nothing is left of them."""
    with one_at_a_time("claude_agent_sdk"):
        is_needed = sys.modules.keys().isdisjoint({*OF_MCP_SERVERS, "claude_agent_sdk"})
        stand_ins = {name: _StandIn(name) for name in OF_MCP_SERVERS if is_needed}
        sys.modules.update(stand_ins)
        try:
            yield
        finally:
            for name in stand_ins:
                del sys.modules[name]


def preload() -> None:
    """Import the Agent SDK: worth doing in a thread while git works."""
    with _one_at_a_time_without_servers():
        import claude_agent_sdk  # noqa: F401, PLC0415  # slow


class ClaudeCode:
    """The coding agent that Zelda exists for."""

    def __init__(self, redact: Redactor, *, cli: Path | None = None) -> None:
        """Take another CLI than the one that comes with the SDK, if need be."""
        self._redact, self._cli = redact, cli

    async def run(self, request: SessionRequest, listen: Listen) -> SessionOutcome:
        """Lead one session to its end, its deadline, its budget or cancellation; sessions may run side by side.

        A session that ends badly is an outcome, not an exception. On cancellation the session is interrupted, its
        last messages are recorded, every process of it is ended, and the cancellation goes on.

        Raises:
            ExecutionError: It could not even be prepared (`CLI_MISSING`, `SESSION_START_FAILED`).
        """
        cli = self._cli or launch.find_cli()
        # In a thread, because the loop also serves the model proxy of other runs.
        await anyio.to_thread.run_sync(preload)
        runner = SessionRunner(request, listen, self._redact)
        await runner.run(_SdkTransport(request, cli, runner.record_stderr))
        verdict = judge(runner.facts())
        return SessionOutcome(
            status=verdict.status,
            wall_seconds=runner.wall_seconds,
            reason=None if verdict.reason is None else self._redact(verdict.reason),
            code=verdict.code,
        )


class _SdkTransport:
    """The line to a CLI, through the SDK's client: unlike `query()` it can interrupt, and raises nothing on errors."""

    def __init__(self, request: SessionRequest, cli: Path, record_stderr: Callable[[str], None]) -> None:
        with _one_at_a_time_without_servers():
            from claude_agent_sdk import ClaudeSDKClient  # noqa: PLC0415  # slow

        self._client = ClaudeSDKClient(_options(request, cli, record_stderr))
        self._prompt = request.prompt
        self.prompted = False

    async def connect(self, ready: anyio.Event, finished: anyio.Event) -> None:
        with _broken():
            await self._client.connect(self._input(ready, finished))

    async def _input(self, ready: anyio.Event, finished: anyio.Event) -> AsyncIterator[dict[str, Any]]:
        # The SDK closes the CLI's input once this ends, and until then the session can be interrupted. As at a
        # terminal, a leading `/` calls a command or skill of the project, and `@path` attaches a file.
        await ready.wait()
        message = {"role": "user", "content": self._prompt}
        yield {"type": "user", "message": message, "parent_tool_use_id": None, "session_id": "default"}
        self.prompted = True
        await finished.wait()

    async def messages(self) -> AsyncGenerator[object, None]:
        """Every message, and in place of one that the SDK cannot read, the error.

        An error after which messages still come was about one message; one that ends them is the CLI's or the line's.
        """
        failure: Exception | None = None
        with _broken():
            while True:
                try:
                    async for message in self._client.receive_messages():
                        if failure:
                            yield failure
                            failure = None
                        yield message
                except Exception as exc:  # noqa: BLE001  # the SDK's parser raises what it happens upon
                    failure = exc
                else:
                    break
            # No message came after the last error, so it was not about a single one.
            if failure:
                raise failure

    async def mcp_servers(self) -> list[dict[str, Any]]:
        with _broken():
            status: Any = await self._client.get_mcp_status()
        servers = status.get("mcpServers") if isinstance(status, dict) else None
        return [server for server in servers or () if isinstance(server, dict)]

    async def interrupt(self) -> None:
        with _broken():
            await self._client.interrupt()

    async def stop_task(self, task: str) -> None:
        with _broken():
            await self._client.stop_task(task)

    async def disconnect(self) -> None:
        with _broken():
            await self._client.disconnect()


def _options(request: SessionRequest, cli: Path, record_stderr: Callable[[str], None]) -> Any:
    with _one_at_a_time_without_servers():
        import claude_agent_sdk as sdk  # noqa: PLC0415  # slow

    as_root = os.geteuid() == 0
    variables = launch.complete_environment(request, sdk_version=sdk.__version__, as_root=as_root)
    execution = request.execution
    return sdk.ClaudeAgentOptions(
        cli_path=launch.prepare(request, cli, variables),
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
        # The final token counts of a response are in its stream only.
        include_partial_messages=True,
        include_hook_events=True,
        forward_subagent_text=True,
        stderr=record_stderr,
    )


@contextmanager
def _broken() -> Iterator[None]:
    """Translate what the SDK raises; nobody outside this module knows its errors."""
    try:
        yield
    except Exception as exc:
        raise TransportError(_crash(exc)) from exc


def _crash(exc: Exception) -> Crash:
    with _one_at_a_time_without_servers():
        import claude_agent_sdk as sdk  # noqa: PLC0415  # slow

    match exc:
        case sdk.ProcessError():
            return Crash(CrashKind.EXITED, exit_code=exc.exit_code)
        case sdk.CLIJSONDecodeError() if "maximum buffer size" in str(exc):
            return Crash(CrashKind.LINE_TOO_LONG, f"more than {MAX_MESSAGE_BYTES >> 20} MiB.")
        # It had ended before it was written to; the SDK has one class for that and for a start that fails.
        case sdk.CLIConnectionError() if str(exc).startswith(("Cannot write", "Failed to write")):
            return Crash(CrashKind.EXITED)
        case sdk.CLINotFoundError() | sdk.CLIConnectionError():
            return Crash(CrashKind.NOT_STARTED, str(exc))
        # The SDK has no class for it.
        case _ if "timeout: initialize" in str(exc):
            return Crash(CrashKind.SILENT_START)
        case _:
            return Crash(CrashKind.BROKEN, f"{type(exc).__name__}: {exc}")
