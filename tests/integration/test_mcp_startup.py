"""MCP servers that start slowly, late or never: what the session waits for, and what is said of them afterwards."""

import json
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from tests.builders import transcript
from tests.support.claude_sessions import Session, make_workspace
from tests.support.scripted_api import ApiRequest, Message, ScriptedApi, text, tool_call
from tests.support.steered import safe
from zelda_ci.domain.kinds import ItemKind
from zelda_ci.domain.manifest import ManifestItem
from zelda_ci.domain.session import ServersReported, SessionRecord, SessionStatus, SessionTranscript
from zelda_ci.execution.manifest.loading import resolve_loaded
from zelda_ci.execution.manifest.scan import scan
from zelda_ci.execution.outcome import SessionOutcome

SCRIPT = Path(__file__).parents[1] / "support" / "stdio_mcp_server.py"
GREET = tool_call("mcp__greeter__greet", {"name": "Ada"})
NEVER = {"command": "sleep", "args": ["60"]}


def server(seconds: float) -> dict[str, Any]:
    """A server that takes its time to start."""
    return {"command": sys.executable, "args": [str(SCRIPT), str(seconds)]}


@dataclass(frozen=True)
class Outcome:
    """One session, and what is said of its servers."""

    servers: Mapping[str, ManifestItem]
    transcript: SessionTranscript
    first_request: str
    seconds_to_prompt: float

    @property
    def greeting(self) -> str | None:
        return next((call.output for call in self.transcript.tool_calls if call.name.startswith("mcp__")), None)


def run(
    tmp_path: Path,
    servers: Mapping[str, Any],
    *replies: Message,
    settings: Mapping[str, Any] | None = None,
) -> Outcome:
    workspace = make_workspace(tmp_path, {".mcp.json": json.dumps({"mcpServers": servers})}, readable=[SCRIPT])
    found = scan(workspace.root, workspace.path, safe)
    asked: list[float] = []

    def script(request: ApiRequest) -> Message:
        asked.append(time.monotonic())
        return (*replies, text("Done."))[request.index]

    with ScriptedApi(script) as api:
        session = Session(workspace, api.url, settings=dict(settings or {}))
        began = time.monotonic()
        anyio.run(session.lead)
        first = json.dumps(api.requests[0].body)
    heard = transcript(session.records)
    items = resolve_loaded(found, heard, safe).items
    return Outcome(
        {str(item.name): item for item in items if item.kind is ItemKind.MCP_SERVER}, heard, first, asked[0] - began
    )


def test_the_prompt_waits_for_a_server_that_needs_seconds_to_start(tmp_path: Path) -> None:
    led = run(tmp_path, {"greeter": server(3)}, GREET)
    assert led.greeting == "Hello, Ada!"
    assert led.servers["greeter"].loaded
    assert led.servers["greeter"].tools == ("mcp__greeter__greet",)
    assert led.servers["greeter"].note is None
    assert "mcp__greeter__greet" in led.first_request
    assert "still connecting" not in led.first_request


def test_a_server_that_never_answers_holds_the_prompt_up_no_longer_than_the_bound(tmp_path: Path) -> None:
    led = run(tmp_path, {"never": NEVER}, settings={"mcp_startup_seconds": 2})
    assert 2 <= led.seconds_to_prompt < 15
    assert not led.servers["never"].loaded
    assert led.servers["never"].reason == "it was still connecting when the session ended"


def test_a_session_that_is_ended_while_it_waits_never_asks_the_model(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path, {".mcp.json": json.dumps({"mcpServers": {"never": NEVER}})})

    async def lead(session: Session) -> SessionOutcome:
        def stop(record: SessionRecord) -> None:
            if isinstance(record, ServersReported):
                session.meter.exhausted.set()

        return await session.lead(stop)

    with ScriptedApi([]) as api:
        session = Session(workspace, api.url)
        outcome = anyio.run(lead, session)
    assert outcome.status is SessionStatus.BUDGET_EXCEEDED
    assert session.survivors() == []
