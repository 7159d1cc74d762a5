"""When a session is over, and in what order it is closed: on a client without a CLI behind it."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Any

import anyio
import pytest
from claude_agent_sdk import AssistantMessage, ProcessError, ResultMessage, SystemMessage, TextBlock

from tests.unit.execution.test_environment import request
from zelda_ci.domain.session import ServersReported, SessionRecord, SessionStatus
from zelda_ci.execution import claude_code
from zelda_ci.execution.claude_code import SessionRunner
from zelda_ci.execution.outcome import SessionFacts, judge
from zelda_ci.process import Launch
from zelda_ci.redact import Redactor

SAID = AssistantMessage(content=[TextBlock("Done.")], model="claude-sonnet-5-5", message_id="msg_1")
RESULT = ResultMessage("success", 1, 1, is_error=False, num_turns=1, session_id="s", terminal_reason="completed")


def system(subtype: str, **data: object) -> SystemMessage:
    return SystemMessage(subtype=subtype, data={"type": "system", "subtype": subtype, **data})


IDLE, RUNNING = (system("session_state_changed", state=state) for state in ("idle", "running"))


class PaperClient:
    """Plays messages once its server is up or has failed, then waits for its input to be closed, as the CLI does."""

    def __init__(
        self, messages: list[object], *, broken: Exception | None = None, servers: Sequence[str | None] = ("connected",)
    ) -> None:
        self._messages, self._broken = messages, broken
        self._statuses = list(servers)
        """Of the one MCP server, whenever it is asked for; the last stays. None where the connection breaks."""
        self._settled = anyio.Event()
        self.calls: list[str] = []

    async def connect(self, prompt: AsyncIterator[dict[str, Any]]) -> None:
        await anyio.lowlevel.checkpoint()
        self.calls.append("connect")
        self._prompt = prompt

    async def get_mcp_status(self) -> dict[str, Any]:
        await anyio.lowlevel.checkpoint()
        status = self._statuses.pop(0) if len(self._statuses) > 1 else self._statuses[0]
        if status != "pending":
            self._settled.set()
        if status is None:
            raise OSError("it is mute")
        tools = [{"name": "greet"}] if status == "connected" else []
        server = {"name": "greeter", "status": status, "tools": tools, "config": {"env": {"TOKEN": "secret"}}}
        return {"mcpServers": [server]}

    async def receive_messages(self) -> AsyncGenerator[object, None]:
        messages, self._messages = self._messages, []
        if messages:
            await anext(self._prompt)
            await self._settled.wait()
        for message in messages:
            await anyio.lowlevel.checkpoint()
            yield message
        if self._broken:
            broken, self._broken = self._broken, None
            raise broken
        if messages:
            with pytest.raises(StopAsyncIteration):
                await anext(self._prompt)
            self.calls.append("input closed")

    async def interrupt(self) -> None:
        self.calls.append("interrupt")

    async def stop_task(self, task: str) -> None:
        self.calls.append(f"stop {task}")

    async def disconnect(self) -> None:
        self.calls.append("disconnect")


def lead(client: PaperClient) -> tuple[SessionFacts, list[SessionRecord]]:
    records: list[SessionRecord] = []

    async def through() -> SessionFacts:
        runner = SessionRunner(request(timeout_seconds=60), records.append, Redactor(), lambda: Launch(begun=True))
        await runner.run(client)
        return runner.facts

    return anyio.run(through), records


def test_a_session_is_closed_once_it_is_idle_after_a_result_and_not_before() -> None:
    client = PaperClient([IDLE, RUNNING, SAID, RESULT, SAID, RESULT, IDLE])
    facts, records = lead(client)
    assert judge(facts).status is SessionStatus.COMPLETED
    assert client.calls == ["connect", "input closed", "disconnect"]
    assert [record.type for record in records] == ["serversReported", "said", "ended", "said", "ended"]


def test_shells_that_run_on_and_on_are_stopped_before_the_input_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claude_code, "BACKGROUND_SECONDS", 0.01)
    tasks = [{"task_id": "b1"}, {"task_id": "b2"}]
    earlier = system("background_tasks_changed", tasks=[{"task_id": "b0"}, *tasks])
    client = PaperClient([SAID, earlier, system("background_tasks_changed", tasks=tasks), RESULT, IDLE])
    lead(client)
    assert client.calls == ["connect", "stop b1", "stop b2", "input closed", "disconnect"]


def test_a_connection_that_breaks_is_evidence_and_is_let_go_of() -> None:
    client = PaperClient([SAID], broken=ProcessError("It was killed.", exit_code=137))
    facts, records = lead(client)
    assert (facts.broken, facts.exit_code) == (None, 137)
    assert client.calls == ["connect", "disconnect"]
    assert [record.type for record in records] == ["serversReported", "said"]


def test_lines_on_standard_error_are_recorded_in_order_and_a_flood_is_cut() -> None:
    records: list[SessionRecord] = []

    async def through() -> SessionFacts:
        runner = SessionRunner(request(timeout_seconds=60), records.append, Redactor(), lambda: Launch(begun=True))
        for number in range(205):
            runner.record_stderr(f"line {number}")
        await runner.run(PaperClient([SAID, RESULT, IDLE]))
        return runner.facts

    facts = anyio.run(through)
    notices = [record.text for record in records if record.type == "noticed"]
    assert notices == [*(f"line {number}" for number in range(200)), "5 more lines"]
    assert [record.type for record in records[-3:]] == ["said", "ended", "noticed"]
    assert tuple(facts.stderr_tail) == tuple(f"line {number}" for number in range(200, 205))


def test_every_change_of_a_server_is_recorded_once() -> None:
    client = PaperClient([SAID, RESULT, IDLE], servers=["pending", "pending", "connected", "failed"])
    _, records = lead(client)
    states = [record.servers[0] for record in records if isinstance(record, ServersReported)]
    assert [state.status for state in states] == ["pending", "connected", "failed"]
    assert states[1].tools == ("mcp__greeter__greet",)
    assert "secret" not in str(records)


@pytest.mark.parametrize("status", ["failed", "needs-auth", "disabled", None])
def test_what_will_never_connect_is_not_waited_for(status: str | None) -> None:
    facts, _ = lead(PaperClient([SAID, RESULT, IDLE], servers=[status]))
    assert judge(facts).status is SessionStatus.COMPLETED
    assert facts.stopped is None
