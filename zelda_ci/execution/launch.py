"""Puts a session's start on disk: a stub that starts the CLI under the run's supervisor, with exactly our environment.

The Agent SDK starts one program and adds Zelda's own environment, with Zelda's key in it. The stub drops all of that
before anything else runs, and says its process id, which the supervisor keeps, in its first line on standard error.
"""

import json
import os
import shlex
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from zelda_ci.domain.workspace import Confinement
from zelda_ci.errors import ExecutionError
from zelda_ci.execution import environment
from zelda_ci.execution.agent import SessionRequest
from zelda_ci.process import launches

SDK_PACKAGE = "claude_agent_sdk"


def find_cli(package: str = SDK_PACKAGE) -> Path:
    """The Claude Code CLI that comes inside the Agent SDK's wheel; looks for it without importing the SDK.

    Raises:
        ExecutionError: It is not there (`CLI_MISSING`).
    """
    spec = find_spec(package)
    if spec and spec.origin and (cli := Path(spec.origin).with_name("_bundled") / "claude").is_file():
        return cli
    raise ExecutionError(
        "The Claude Code CLI is missing: the installed claude-agent-sdk package does not contain it.",
        hint="Install Zelda where pip finds a platform wheel of claude-agent-sdk (Linux or macOS, x86-64 or ARM).",
        code="CLI_MISSING",
    )


def prepare(request: SessionRequest, cli: Path, variables: Mapping[str, str]) -> Path:
    """Write the stub, the environment and the trusted folder; return the stub.

    Raises:
        ExecutionError: The run's folder cannot be written (`SESSION_START_FAILED`).
    """
    base = request.workspace.base
    stub, environment_file = base / "claude", base / "claude.environment.json"
    try:
        config_dir = environment.config_dir(request)
        # The setup command ran before: a link it left there must not lead our writing out of the workspace.
        if config_dir.is_symlink():
            config_dir.unlink()
        config_dir.mkdir(parents=True, exist_ok=True)
        _write(config_dir / ".claude.json", environment.trust(request), mode=0o600)
        if (uid := request.workspace.confinement.uid) is not None:
            for place in (config_dir, config_dir / ".claude.json"):
                os.chown(place, uid, uid, follow_symlinks=False)
        _write(environment_file, json.dumps(dict(variables)), mode=0o600)
        status_file = launches.fresh(request.workspace.status_file("session"))
        _write(stub, _stub(request.workspace.confinement, cli, environment_file, status_file), mode=0o700)
    except OSError as exc:
        raise ExecutionError(
            f"The session could not be prepared in {base}: {exc.strerror}.",
            hint="Check that the folder is writable and its disk is not full.",
            code="SESSION_START_FAILED",
        ) from exc
    return stub


def _stub(confinement: Confinement, cli: Path, environment_file: Path, status_file: Path) -> str:
    start = confinement.command([str(cli)], phase="session", environment_file=environment_file, status_file=status_file)
    command = shlex.join(start)
    # The inner shell is there because `env` would take a path with "=" in it for a variable.
    return f"""#!/bin/sh
echo "$$" >&2
exec /usr/bin/env -i /bin/sh -c 'exec "$@"' sh {command} "$@"
"""


def _write(path: Path, content: str, *, mode: int) -> None:
    path.unlink(missing_ok=True)
    path.touch(mode=mode, exist_ok=False)
    path.write_text(content, encoding="utf-8", errors="surrogateescape")
