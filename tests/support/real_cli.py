"""The real Claude Code CLI, as the SDK's wheel brings it, run headless against any Messages API."""

import json
import os
import subprocess
from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import anyio

CLI = Path(str(find_spec("claude_agent_sdk").origin)).parent / "_bundled" / "claude"  # type: ignore[union-attr]
MODEL = "claude-sonnet-5-5"


@dataclass(frozen=True)
class CliSession:
    """Everything one session said."""

    messages: tuple[dict[str, Any], ...]
    stderr: str

    @property
    def result(self) -> dict[str, Any]:
        return self.messages[-1]

    @property
    def model_usage(self) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = self.result["modelUsage"]
        return found

    @property
    def transcript(self) -> list[Any]:
        """What model and tools said, in order, without ids of messages and times."""
        spoken = [message for message in self.messages if message["type"] in ("assistant", "user")]
        return [[message["type"], message["message"]["content"]] for message in spoken]


def folders(base: Path) -> tuple[Path, Path]:
    """A workspace and a home below `base`."""
    for name in ("workspace", "home"):
        (base / name).mkdir(parents=True, exist_ok=True)
    return base / "workspace", base / "home"


async def run_cli(base_url: str, token: str, workspace: Path, home: Path, **extra: str) -> CliSession:
    """Lead a session to its end; `extra` are environment variables."""
    argv = [str(CLI), "-p", "do it", "--model", MODEL, "--permission-mode", "bypassPermissions"]
    argv += ["--output-format", "stream-json", "--verbose", "--setting-sources", "project"]
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "CLAUDE_CONFIG_DIR": str(home / "config"),
        "CLAUDE_CODE_TMPDIR": str(home),
        "TMPDIR": str(home),
        "ANTHROPIC_BASE_URL": base_url,
        "ANTHROPIC_API_KEY": token,
        "CLAUDE_CODE_PROVIDER_MANAGED_BY_HOST": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
        "IS_SANDBOX": "1",
        **extra,
    }
    messages: list[dict[str, Any]] = []
    with TemporaryFile() as errors:
        async with await anyio.open_process(
            argv, cwd=workspace, env=environment, stdin=subprocess.DEVNULL, stderr=errors
        ) as process:
            assert process.stdout
            messages.extend([json.loads(line) async for line in _lines(process.stdout)])
        errors.seek(0)
        return CliSession(tuple(messages), errors.read().decode())


async def _lines(stream: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    rest = b""
    async for data in stream:
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            yield line
    assert not rest
