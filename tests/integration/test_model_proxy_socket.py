"""The proxy where there is no network: a socket in the file system, and the real CLI behind it."""

import os
import shutil
import socket
import stat
import subprocess
import tempfile
from pathlib import Path

import httpx2
import pytest

from tests.support.claude_sessions import Session, make_workspace
from tests.support.proxied import BODY, REDACT, open_run, upstream
from tests.support.scripted_api import ScriptedApi, text, tool_call, tool_calls
from zelda_ci.domain.session import SessionStatus
from zelda_ci.execution import launch
from zelda_ci.model_proxy.policy import Allowed
from zelda_ci.model_proxy.proxy import ModelProxy

pytestmark = pytest.mark.anyio


async def test_the_socket_answers_as_loopback_does_and_is_gone_with_the_proxy() -> None:
    with ScriptedApi([text("Hello.")]) as api:
        async with open_run(upstream(api.url)) as meter:
            assert meter.socket
            folder = meter.socket.parent
            assert len(os.fsencode(meter.socket)) <= 107
            assert stat.S_IMODE(folder.stat().st_mode) == 0o711
            assert stat.S_IMODE(meter.socket.stat().st_mode) == 0o666
            transport = httpx2.AsyncHTTPTransport(uds=str(meter.socket))
            async with httpx2.AsyncClient(transport=transport) as local:
                address = meter.base_url + "/v1/messages"
                good = await local.post(address, json=BODY, headers={"x-api-key": meter.token})
                bad = await local.post(address, json=BODY, headers={"x-api-key": "wrong"})
                elsewhere = await local.post("http://evil.example/v1/messages", json=BODY)
    assert (good.status_code, bad.status_code, elsewhere.status_code) == (200, 401, 403)
    assert not folder.exists()


async def test_the_socket_of_a_killed_zelda_is_removed_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    dead, living, young = (tmp_path / f"zelda-model-{name}/s" for name in ("dead0000", "living00", "young000"))
    with socket.socket(socket.AF_UNIX) as listener:
        for path in (dead, living, young):
            path.parent.mkdir()
            with socket.socket(socket.AF_UNIX) as ended:
                (listener if path == living else ended).bind(str(path))
            if path != young:  # between its making and the first that listens
                os.utime(path.parent, (0, 0))
        listener.listen()
        async with open_run(upstream("http://127.0.0.1:1")):
            pass
    assert [path.parent.exists() for path in (dead, living, young)] == [False, True, True]


async def test_a_session_without_network_has_its_model_and_nothing_else(tmp_path: Path) -> None:
    """Its sub-agents too; one that names a dearer model is told so, and the session goes on."""
    if not _can_close_the_network():
        pytest.skip("needs bubblewrap, and network namespaces for it")
    probe = "echo sockets: $(grep -c : /proc/self/net/tcp) interfaces: $(grep -c : /proc/self/net/dev)"
    task = {"prompt": "p", "description": "d", "run_in_background": False}
    agents = [("Agent", {**task, "subagent_type": kind}) for kind in ("small", "dear")]
    script = [tool_call("Bash", {"command": probe}), tool_calls(agents), text("Done.")]
    files = {
        f".claude/agents/{name}.md": f"---\nname: {name}\ndescription: {name}\nmodel: {model}\n---\nHelp.\n"
        for name, model in (("small", "haiku"), ("dear", "opus"))
    }
    with ScriptedApi(script, agents=[[text("I was small.")]]) as api:
        async with ModelProxy(upstream(api.url), REDACT) as proxy:
            allowed = Allowed("claude-sonnet-5-5")
            async with proxy.session(run_label="a", budget_usd=None, placeholders={}, allowed=allowed) as meter:
                workspace = make_workspace(tmp_path, files, level="none")
                session = Session(workspace, meter, cli=_offline(tmp_path), socket=meter.socket)
                outcome = await session.lead()
    said = str(session.records)
    assert outcome.status is SessionStatus.COMPLETED, outcome
    assert "sockets: 0 interfaces: 1" in said
    assert "I was small." in said
    assert "may not ask 'claude-opus-5-5'" in said
    assert meter.remarks == {"the session may not ask the model claude-opus-5-5: see execution.extraModels"}


def _can_close_the_network() -> bool:
    return bool(shutil.which("bwrap")) and subprocess.run([*CLOSED, "true"], check=False).returncode == 0


CLOSED = ["bwrap", "--dev-bind", "/", "/", "--unshare-user-try", "--unshare-net", "--die-with-parent"]


def _offline(folder: Path) -> Path:
    program = folder / "offline"
    program.write_text(f'#!/bin/sh\nexec {" ".join(CLOSED)} "{launch.find_cli()}" "$@"\n')
    program.chmod(0o755)
    return program
