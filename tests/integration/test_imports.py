"""Slow packages are imported by one thread at a time: nobody gets half of one."""

import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]


START = """
import sys, threading
sys.setswitchinterval(1e-5)
import anyio, anyio.to_thread
from zelda_ci import app
from zelda_ci.execution import claude_code
from zelda_ci.github.http import Http
from zelda_ci.judge import anthropic_judge
from zelda_ci.model_proxy.proxy import LiveMode, ModelProxy, Upstream
from zelda_ci.redact import Redactor, Secret

async def proxy():
    async with ModelProxy(LiveMode(Upstream({}, "http://127.0.0.1:9")), Redactor([])):
        pass

async def main():
    threading.Thread(target=app._preload, kwargs={"live": True, "judged": True}, daemon=True).start()
    async with anyio.create_task_group() as group:
        group.start_soon(proxy)
        group.start_soon(anyio.to_thread.run_sync, anthropic_judge.preload)
        group.start_soon(anyio.to_thread.run_sync, claude_code.preload)
    for name, module in list(sys.modules.items()):
        if getattr(getattr(module, "__spec__", None), "_initializing", False):
            print("half:", name)
    import anthropic, claude_agent_sdk
    anthropic.Anthropic(api_key="x").messages, claude_agent_sdk.ClaudeSDKClient, claude_agent_sdk.query

anyio.run(main)
"""


def _python(code: str, *arguments: str, path: Path = REPOSITORY) -> str:
    command = [sys.executable, "-W", "error::ImportWarning", "-c", code, *arguments]
    environment = {"PYTHONPATH": f"{REPOSITORY}:{path}", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_everything_that_is_imported_while_a_run_starts_is_whole() -> None:
    assert _python(START) == ""
