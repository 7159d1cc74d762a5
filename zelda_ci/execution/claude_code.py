"""Sessions of Claude Code: the only module that knows the Agent SDK, which it imports as late as it can."""

import logging
import os
import sys
from collections.abc import Callable, MutableSequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import anyio.to_thread
from pydantic import BaseModel

from zelda_ci.execution import launch
from zelda_ci.execution.agent import Listen, SessionRequest
from zelda_ci.execution.outcome import SessionOutcome, failed, judge
from zelda_ci.execution.session_runner import SessionRunner
from zelda_ci.imports import one_at_a_time
from zelda_ci.redact import Redactor

# Without a handler of their own, the SDK's error logs would be printed; what they say is in the outcome.
logging.getLogger("claude_agent_sdk").addHandler(logging.NullHandler())

# Bytes of one message: an edit carries the whole file.
MAX_MESSAGE_BYTES = 64 << 20

# What the SDK imports for tools that are Python functions, of which Zelda has none: six sevenths of its time.
UNUSED = ("jsonschema", "mcp", "mcp.server", "mcp.shared", "mcp.shared.memory", "mcp.shared.message", "mcp.types")


async def run_session(
    request: SessionRequest, listen: Listen, redact: Redactor, cli: Path | None = None
) -> SessionOutcome:
    """Run one session to its end, its deadline, its budget or cancellation; sessions may run side by side.

    A session that ends badly is an outcome, not an exception. On cancellation the session is interrupted, its last
    messages are recorded, every process of it is ended, and the cancellation goes on.

    Args:
        request: The session.
        listen: Gets each record as it comes.
        redact: For all that is recorded.
        cli: Instead of the CLI that comes with the SDK.

    Raises:
        ExecutionError: It could not even be prepared (`CLI_MISSING`, `SESSION_START_FAILED`).
    """
    cli = cli or launch.find_cli()
    # In a thread, because the loop also serves the model proxy of other runs.
    sdk = await anyio.to_thread.run_sync(import_sdk)
    runner = SessionRunner(request, listen, redact)
    variables = launch.complete_environment(request, sdk_version=sdk.__version__, as_root=os.geteuid() == 0)
    with launch.prepared(request, cli, variables) as (stub, read_status):
        client = sdk.ClaudeSDKClient(_options(request, stub, runner.record_stderr))
        await runner.run(client, explain, read_status)
        status = read_status()
    facts = replace(runner.facts, begun=status.begun)
    if status.exit_code is not None:
        facts.exit_code = status.exit_code
    return replace(judge(facts), wall_seconds=runner.wall_seconds)


@cache
def import_sdk() -> Any:
    """Import the Agent SDK; in a thread, while git works, since it takes a while even without what it does not use."""
    with one_at_a_time("claude_agent_sdk"):
        hollow = {name: _Hollow(name) for name in UNUSED if name not in sys.modules}
        sys.modules.update(hollow)
        unusable = set(hollow)
        try:
            return import_module("claude_agent_sdk")
        except ImportError:
            # A newer SDK uses more of them; what was imported has the hollow ones.
            unusable |= {name for name in sys.modules if name.partition(".")[0] == "claude_agent_sdk"}
        finally:
            for name in unusable:
                sys.modules.pop(name, None)
        return import_module("claude_agent_sdk")


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
        # The final token counts of a response are in its stream only.
        include_partial_messages=True,
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
            return failed("CLI_OUTPUT_TOO_LONG", f"Claude Code wrote a message too long to read: {most}.")
        # It had ended before it was written to; the SDK has one class for that and for a start that fails.
        case sdk.CLIConnectionError() if str(exc).startswith(("Cannot write", "Failed to write")):
            return None
        case sdk.CLINotFoundError() | sdk.CLIConnectionError():
            return failed("CLI_START_FAILED", f"Claude Code could not be started: {exc}")
        # The SDK has no class for it.
        case _ if "timeout: initialize" in str(exc):
            return failed("CLI_START_TIMED_OUT", "Claude Code did not get ready within a minute.")
        case _:
            return failed("SESSION_FAILED", f"The session broke off: {type(exc).__name__}: {exc}")
