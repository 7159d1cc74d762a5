"""A session to run, and how the CLI is started for it: hermetic, bounded in retries, closed to redirection."""

import json
import os
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from zelda_ci.domain.session import SessionImage
from zelda_ci.domain.suite import ExecutionSettings
from zelda_ci.domain.workspace import SettingFinding, Workspace
from zelda_ci.errors import ExecutionError
from zelda_ci.files import untrusted
from zelda_ci.model_proxy.meter import Meter
from zelda_ci.process import Launch, followed

# Most that the API may take for the headers of a response, and that a streamed response may be silent.
REQUEST_SECONDS, SILENCE_SECONDS = 120, 60
# Most that retries of one request may last while the API is overloaded; in short sessions a share of their limit.
RETRY_SECONDS, RETRY_SHARE = 120, 0.25
# After all other errors: with delays of 0.6, 1.2, 2.4, … seconds they last 76 seconds.
MAX_RETRIES = 7
# Of a session's time limit, for the start of its MCP servers.
MCP_SHARE = 0.5
# After which Claude Code gives a connecting MCP server up, unless MCP_TIMEOUT says otherwise.
CLI_MCP_SECONDS = 30

TOKEN = "ANTHROPIC_API_KEY"  # noqa: S105  # the name of its variable
# Variables of the CLI's environment that a project's settings cannot change, or not to any effect.
OWN = frozenset({TOKEN, "CLAUDE_AGENT_SDK_VERSION", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CONFIG_DIR"})

# Tools that a session gets only where the suite names them in `allowedTools`.
UNWANTED_TOOLS = (
    # They reach beyond the run's worktree, its lifetime or its conversation ...
    "CronCreate", "CronDelete", "CronList", "EnterWorktree", "ExitWorktree", "ScheduleWakeup", "SendMessage",
    # ... or past the model proxy: the first asks Anthropic's servers directly, the second is answered by them.
    "WebFetch", "WebSearch",
)  # fmt: skip

# Variables that a session's settings never have. Claude Code's own guard keeps those of addresses, keys and proxies
# from the project; these it does not know.
UNSET = (
    # They change requests unseen ...
    "ANTHROPIC_BETAS", "CLAUDE_CODE_EXTRA_BODY", "CLAUDE_CODE_EXTRA_METADATA",
    # ... or run code, or load it, beside the shells that Zelda confines ...
    "BASH_ENV", "CLAUDE_CODE_ENABLE_PROXY_AUTH_HELPER", "CLAUDE_CODE_SUBPROCESS_ENV_SCRUB", "LD_AUDIT",
    "LD_LIBRARY_PATH", "LD_PRELOAD",
    # ... or tell others what the session does.
    "CLAUDE_CODE_ENABLE_TELEMETRY", "CLAUDE_CODE_TEE_SDK_STDOUT",
)  # fmt: skip

# Settings beside the variables.
GUARDS = {
    # Its own sandbox would need what Zelda's takes away.
    "sandbox": {"enabled": False},
    # A hook or server could otherwise talk to the model through the CLI's inbox, and no message of the stream tells.
    "crossSessionInbound": "refuse",
}


@dataclass(frozen=True)
class Pins:
    """What is set above the project's settings, so that a session has the project's plugins and Zelda's plumbing."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    variables: tuple[str, ...] = ()
    """Environment variables that the project sets and that are not its to set."""
    installs: bool = False
    """True where Claude Code has to take in plugins of a marketplace in the repository, before the session begins."""
    findings: tuple[SettingFinding, ...] = ()


@dataclass(frozen=True)
class SessionRequest:
    """One session to run."""

    session_id: str
    prompt: str
    workspace: Workspace
    execution: ExecutionSettings
    meter: Meter
    """The run's side of the model proxy; once its budget is spent, the session is interrupted."""
    pins: Pins = field(default_factory=Pins)
    socket: Path | None = None
    """The proxy as a socket, as the session sees it; given where the session has no network."""
    keep_context: Callable[[Mapping[str, Any]], None] | None = None
    """Takes what Claude Code says, before it ends, of the session's context."""
    keep_image: Callable[[str], SessionImage | str] | None = None
    """Keeps an image that a tool returned as base64; returns it, or in a few words why not. Else it is only named."""


def complete_environment(request: SessionRequest, *, sdk_version: str, as_root: bool) -> dict[str, str]:
    """Return the CLI's whole environment: what the workspace allows, then what a hermetic session needs."""
    workspace = request.workspace
    mcp_seconds = max(CLI_MCP_SECONDS, request.execution.mcp_startup_seconds)
    return {
        # First in the order, so that a value of the suite's own (`execution.env`) wins.
        "MCP_TIMEOUT": str(round(mcp_seconds * 1000)),
        **workspace.confinement.environment,
        "PWD": str(workspace.path),
        "HOME": str(workspace.home),
        "TMPDIR": str(workspace.tmp),
        TOKEN: request.meter.token,
        "CLAUDE_CONFIG_DIR": str(workspace.home / ".claude"),
        "CLAUDE_CODE_ENTRYPOINT": "sdk-py",
        "CLAUDE_AGENT_SDK_VERSION": sdk_version,
        # After the workspace's variables: nothing that a suite passes on may lead the session past the proxy.
        **_session_variables(request),
        **workspace.confinement.session_variables,
        # As root the CLI refuses to bypass permissions unless it is told that this is a sandbox: exactly "1".
        **({"IS_SANDBOX": "1"} if as_root and request.execution.permission_mode == "bypassPermissions" else {}),
    }


def settings(request: SessionRequest) -> str:
    """Return settings as JSON that win over the project's, also over those that the session writes while it runs."""
    # What the project sets and may not is pinned to what the session's environment says, or else to nothing. Not the
    # token: settings are seen on the command line, and Claude Code's own guard keeps the project from it.
    environment = request.workspace.confinement.environment
    pinned = {name: environment.get(name, "") for name in request.pins.variables if name not in OWN}
    variables = {**dict.fromkeys(UNSET, ""), **pinned, **_session_variables(request)}
    return json.dumps({"env": variables, **GUARDS, **request.pins.settings})


def trust(request: SessionRequest) -> str:
    """Return the content of `.claude.json`: the worktree is trusted, as a developer's own, so its settings count."""
    # Claude Code looks that up at the repository, too, that the nearest `.git` leads to, whoever wrote it.
    workspace = request.workspace
    places = [workspace.root, workspace.git_dir]
    for folder in (workspace.path, *(it for it in workspace.path.parents if it.is_relative_to(workspace.root))):
        places.append(folder)
        with suppress(OSError, ValueError):
            for shared in untrusted.git_folders(folder)[1:]:
                places += (shared.resolve(), shared.resolve().parent)
    # Claude Code may look its folder up with links followed, such as that of /tmp on macOS.
    folders = {each for place in places for each in (place, place.resolve())}
    return json.dumps({"projects": {str(folder): {"hasTrustDialogAccepted": True} for folder in folders}})


def disallowed_tools(request: SessionRequest) -> list[str]:
    """Return the tools that the session does not get: the suite's, and those with no business in a test run."""
    execution = request.execution
    allowed = {rule.partition("(")[0] for rule in execution.allowed_tools}
    unwanted = [tool for tool in UNWANTED_TOOLS if tool not in allowed]
    return list(dict.fromkeys([*unwanted, *execution.disallowed_tools]))


def _session_variables(request: SessionRequest) -> Mapping[str, str]:
    """Return the variables that Zelda relies on, whatever the project says."""
    # Real behaviour stays: git instructions, background tasks, bundled skills and session files are left as they are.
    execution = request.execution
    retry_seconds = min(RETRY_SECONDS, execution.timeout_seconds * RETRY_SHARE)
    # A short session must not be spent on waiting.
    mcp_seconds = min(execution.mcp_startup_seconds, execution.timeout_seconds * MCP_SHARE)
    return {
        # With a socket the address only names the host; an empty one keeps a project from setting its own.
        "ANTHROPIC_BASE_URL": request.meter.base_url,
        "ANTHROPIC_UNIX_SOCKET": str(request.socket or ""),
        # Through these its shells, hooks and servers start, without variables that are Claude Code's own business.
        "CLAUDE_CODE_SHELL_PREFIX": str(request.workspace.confinement.shell_prefix or ""),
        "CLAUDE_CODE_SHELL": str(request.workspace.confinement.shell or ""),
        "CLAUDE_CODE_PROVIDER_MANAGED_BY_HOST": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        # A developer's session has them since its first start; this one is the first, and the only one.
        "CLAUDE_CODE_SYNC_PLUGIN_INSTALL": "1" if request.pins.installs else "",
        "CLAUDE_CODE_TMPDIR": str(request.workspace.tmp),
        "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS": "1",
        # Claude Code holds the prompt back until its MCP servers are connected or have failed.
        "CLAUDE_CODE_MCP_STARTUP_WAIT_MS": str(round(mcp_seconds * 1000)),
        # 13 kB of prompt, and files outside the worktree that the next run would not find.
        "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
        # Names the CLI's build in every request: recordings would differ for nothing.
        "CLAUDE_CODE_ATTRIBUTION_HEADER": "0",
        # The watchdog bounds 429 and 529 by time, and lifts the limit for all other errors unless one is given.
        "CLAUDE_CODE_RETRY_WATCHDOG": "1",
        "CLAUDE_CODE_RETRY_WATCHDOG_MAX_WAIT_MS": str(round(retry_seconds * 1000)),
        "CLAUDE_CODE_MAX_RETRIES": str(MAX_RETRIES),
        "CLAUDE_ENABLE_BYTE_WATCHDOG": "1",
        "CLAUDE_BYTE_STREAM_IDLE_TIMEOUT_MS": str(SILENCE_SECONDS * 1000),
        # The model proxy sees to the API's part of it, and knows when a request waits for a rate limit. Whatever is
        # written here, Claude Code gives up after six minutes, and asks anew.
        "API_TIMEOUT_MS": str(round((REQUEST_SECONDS + request.meter.wait.max_seconds) * 1000)),
    }


def find_cli() -> Path:
    """Find the Claude Code CLI inside the Agent SDK's wheel, without importing the SDK."""
    spec = find_spec("claude_agent_sdk")
    if spec and spec.origin and (cli := Path(spec.origin).with_name("_bundled") / "claude").is_file():
        return cli
    message = "The Claude Code CLI is missing: the installed claude-agent-sdk package does not contain it."
    hint = "Install Zelda where pip finds a platform wheel of claude-agent-sdk (Linux or macOS, x86-64 or ARM)."
    raise ExecutionError(message, hint=hint, code="CLI_MISSING")


@contextmanager
def prepared(
    request: SessionRequest, cli: Path, variables: Mapping[str, str]
) -> Iterator[tuple[Path, Callable[[], Launch]]]:
    """Write the stub, the environment and the trusted folder; yield the stub and the reader of its start's status."""
    base, confinement = request.workspace.base, request.workspace.confinement
    stub, environment_file = base / "claude", base / "claude.environment"
    status_file = request.workspace.status_file("session")
    with ExitStack() as stack:
        try:
            config_dir = request.workspace.home / ".claude"
            # The setup command ran before: a link it left there must not lead our writing out of the workspace.
            if config_dir.is_symlink():
                config_dir.unlink()
            config_dir.mkdir(parents=True, exist_ok=True)
            _write(config_dir / ".claude.json", trust(request), mode=0o600)
            if confinement.uid is not None:
                for place in (config_dir, config_dir / ".claude.json"):
                    os.chown(place, confinement.uid, confinement.uid, follow_symlinks=False)
            _write(environment_file, "\0".join(f"{name}={value}" for name, value in variables.items()), mode=0o600)
            read_status = stack.enter_context(followed(status_file))
            # The inner shell is there because `env` would take a path with "=" in it for a variable.
            start = confinement.command(
                [str(cli)], phase="session", environment_file=environment_file, status_file=status_file, secret=TOKEN
            )
            inner = f"/bin/sh -c 'exec \"$@\"' sh {shlex.join(start)}"
            _write(stub, f'#!/bin/sh\nexec /usr/bin/env -i {inner} "$@"\n', mode=0o700)
        except OSError as exc:
            message = f"The session could not be prepared in {base}: {exc.strerror}."
            hint = "Check that the folder is writable and its disk is not full."
            raise ExecutionError(message, hint=hint, code="SESSION_START_FAILED") from exc
        yield stub, read_status


def _write(path: Path, content: str, *, mode: int) -> None:
    # Never through a link that somebody left there, and with the right mode from the first byte on.
    path.unlink(missing_ok=True)
    path.touch(mode=mode, exist_ok=False)
    path.write_text(content, encoding="utf-8", errors="surrogateescape")
