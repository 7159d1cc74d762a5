"""Record the demo's cassettes: real CLI, real pipeline, the demo project; the model's words are in demo_sessions.yaml.

There are two recordings: of the project as it is, and of a change that removes its rule of money, after which one suite
is worse.

    .venv/bin/python scripts/record_demo.py

Run it after raising the Agent SDK, or after changing the demo project.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from tests.support.cited import typed
from tests.support.judges import uses
from tests.support.scripted_api import ApiRequest, Message, Reply, ScriptedApi, Tokens, text, tool_call, tool_calls

ROOT = Path(__file__).resolve().parent.parent
PROJECT = ROOT / "zelda_ci" / "cli" / "demo_project"
SESSIONS: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("demo_sessions.yaml").read_text("utf-8"))


@dataclass(frozen=True)
class Recording:
    """Sessions of demo_sessions.yaml by the beginning of their prompts, on a project without some of its files."""

    cassettes: Path
    sessions: dict[str, str]
    removed: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    def of(self, conversation: str) -> Any:
        """The session whose prompt stands in a request."""
        return SESSIONS[next(name for prompt, name in self.sessions.items() if prompt in conversation)]


RECORDINGS = (
    Recording(
        PROJECT.with_name("demo_cassettes"),
        {"Add discount codes": "discount-code", "The tax on the receipt": "receipt-tax"},
    ),
    Recording(
        PROJECT.with_name("demo_change_cassettes"),
        {"Add discount codes": "discount-code-without-rule"},
        removed=(".claude/rules/money.md",),
        names=("discount-code",),
    ),
)


def message(reply: dict[str, Any]) -> Message:
    calls = [(name, given) for call in reply.get("calls", ()) for name, given in call.items()]
    return tool_calls(calls, text=reply.get("text")) if calls else text(reply["text"])


def judgement(recording: Recording, request: ApiRequest) -> Reply:
    """The judge's answer on the session whose prompt it was shown: on its tools, or on the acceptance criteria."""
    conversation = json.dumps(request.messages)
    session = recording.of(conversation)
    if "how well a coding session used" in json.dumps(request.body):
        found = {name: {"tool": "", **it} for name, it in session["tools"].items()}
        answer = uses(request.last_user_text, found)
    else:
        answer = {"criteria": [{"number": number, **it} for number, it in enumerate(session["verdicts"], start=1)]}
    answer = typed(answer)
    shown, body, written = len(conversation) // 4, 600, len(json.dumps(answer)) // 4
    tokens = Tokens(input=body, output=written, cache_write_5m=shown - body)
    return tool_call(str(request.answer_tool), answer, tokens=tokens)


def script(recording: Recording, request: ApiRequest) -> Reply:
    """The reply for this request: told apart by the prompt, counted by the assistant's messages so far."""
    if request.answer_tool:
        return judgement(recording, request)
    replies = recording.of(json.dumps(request.messages))["replies"]
    position = sum(message["role"] == "assistant" for message in request.messages)
    found = re.search(r"[Ww]orking directory: (\S+?)(?:\\n|\s|$)", json.dumps(request.body))
    if not found:
        raise LookupError("the request does not name the working directory")
    # The paths of this workspace, and the tokens that such a conversation would use.
    reply = message(replies[position])
    content = json.loads(json.dumps(reply.content).replace("CWD/", json.dumps(found[1])[1:-1] + "/"))
    written, cached = len(json.dumps(content)) // 4, 11_800 + 900 * position
    read, wrote = (cached, 900) if position else (0, cached)
    tokens = Tokens(input=4, output=written, cache_read=read, cache_write_5m=wrote)
    return replace(reply, content=tuple(content), tokens=tokens)


def record(recording: Recording, options: Sequence[str]) -> int:
    """Write a folder of cassettes anew."""
    with tempfile.TemporaryDirectory(prefix="zelda-demo-") as folder, ScriptedApi(partial(script, recording)) as api:
        project = Path(folder) / "corner-shop"
        shutil.copytree(PROJECT, project)
        for name in recording.removed:
            (project / name).unlink()
        for command in (
            ["init", "-q", "-b", "main"],
            ["add", "-A"],
            ["-c", "user.name=Demo", "-c", "user.email=demo@example.com", "commit", "-qm", "Open the shop"],
        ):
            subprocess.run(["git", "-C", str(project), *command], check=True)
        shutil.rmtree(recording.cassettes, ignore_errors=True)
        fake = {"ANTHROPIC_API_KEY": "sk-ant-fake-demo", "ANTHROPIC_BASE_URL": api.url, "ZELDA_NO_CHECK": "1"}
        words = ["--project", str(project), "--record", str(recording.cassettes), *recording.names, *options]
        argv = [sys.executable, "-m", "zelda_ci", "run", *words]
        return subprocess.run(argv, env={**os.environ, **fake}, check=False).returncode


if __name__ == "__main__":
    # The project passes, and the change does not.
    sys.exit([record(recording, sys.argv[1:]) for recording in RECORDINGS] != [0, 1])
