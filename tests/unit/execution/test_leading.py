"""When a session is over, and in what order it is closed: on a line without a CLI behind it."""

from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest
from claude_agent_sdk import AssistantMessage, ResultMessage, SystemMessage, TextBlock

from zelda_ci.domain.session import SessionRecord, SessionStatus
from zelda_ci.domain.suite import ExecutionSettings
from zelda_ci.domain.workspace import Confinement, Source, Workspace
from zelda_ci.execution.agent import ModelEndpoint, SessionRequest
from zelda_ci.execution.leading import BrokenLineError, Leading
from zelda_ci.execution.outcome import Crash, Evidence, Fall, judge
from zelda_ci.redact import Redactor

SAID = AssistantMessage(content=[TextBlock("Done.")], model="claude-sonnet-5-5", message_id="msg_1")
RESULT = ResultMessage("success", 1, 1, is_error=False, num_turns=1, session_id="s", terminal_reason="completed")


def system(subtype: str, **data: object) -> SystemMessage:
    return SystemMessage(subtype=subtype, data={"type": "system", "subtype": subtype, **data})


IDLE, RUNNING = (system("session_state_changed", state=state) for state in ("idle", "running"))


class PaperLine:
    """Plays messages, then waits for its input to be closed, as the CLI does."""

    def __init__(self, messages: list[object], *, broken: Crash | None = None) -> None:
        self._messages, self._broken = messages, broken
        self.prompted = False
        self.calls: list[str] = []

    async def connect(self, done: anyio.Event) -> None:
        self.calls.append("connect")
        self._done = done
        self.prompted = True

    async def messages(self) -> AsyncGenerator[object, None]:
        for message in self._messages:
            await anyio.lowlevel.checkpoint()
            yield message
        if self._broken:
            raise BrokenLineError(self._broken)
        await self._done.wait()
        self.calls.append("input closed")

    async def interrupt(self) -> None:
        self.calls.append("interrupt")

    async def stop_task(self, task: str) -> None:
        self.calls.append(f"stop {task}")

    async def disconnect(self) -> None:
        self.calls.append("disconnect")


@pytest.fixture
def request_() -> SessionRequest:
    place = Path("/nowhere")
    source = Source(kind="copy", commit=None, branch=None, dirty=False)
    confinement = Confinement((), {})
    workspace = Workspace("run", place, place, place, place, place, place, "0" * 40, source, confinement)
    endpoint = ModelEndpoint("http://127.0.0.1:9", "token")
    return SessionRequest("id", "Work.", workspace, ExecutionSettings(timeout_seconds=60), endpoint, anyio.Event())


def lead(request: SessionRequest, line: PaperLine) -> tuple[Evidence, list[SessionRecord]]:
    records: list[SessionRecord] = []

    async def through() -> Evidence:
        leading = Leading(request, records.append, Redactor())
        await leading.through(line)
        return leading.evidence()

    return anyio.run(through), records


def test_a_session_is_closed_once_it_is_idle_after_a_result(request_: SessionRequest) -> None:
    line = PaperLine([RUNNING, SAID, RESULT, IDLE])
    evidence, records = lead(request_, line)
    assert judge(evidence).status is SessionStatus.COMPLETED
    assert line.calls == ["connect", "input closed", "disconnect"]
    assert [record.type for record in records] == ["said", "ended"]


def test_a_result_while_work_goes_on_in_the_background_is_not_the_end(request_: SessionRequest) -> None:
    line = PaperLine([IDLE, RUNNING, SAID, RESULT, SAID, RESULT, IDLE])
    _, records = lead(request_, line)
    assert [record.type for record in records] == ["said", "ended", "said", "ended"]


def test_shells_that_still_run_are_stopped_before_the_input_is_closed(request_: SessionRequest) -> None:
    tasks = [{"task_id": "b1"}, {"task_id": "b2"}]
    earlier = system("background_tasks_changed", tasks=[{"task_id": "b0"}, *tasks])
    line = PaperLine([SAID, earlier, system("background_tasks_changed", tasks=tasks), RESULT, IDLE])
    lead(request_, line)
    assert line.calls == ["connect", "stop b1", "stop b2", "input closed", "disconnect"]


def test_a_line_that_breaks_is_evidence_and_is_let_go_of(request_: SessionRequest) -> None:
    crash = Crash(Fall.EXITED, exit_code=137)
    line = PaperLine([SAID], broken=crash)
    evidence, records = lead(request_, line)
    assert evidence.crash == crash
    assert line.calls == ["connect", "disconnect"]
    assert [record.type for record in records] == ["said"]


def test_lines_on_standard_error_are_recorded_in_order_and_a_flood_is_cut(request_: SessionRequest) -> None:
    records: list[SessionRecord] = []

    async def through() -> Evidence:
        leading = Leading(request_, records.append, Redactor())
        for number in range(205):
            leading.take_stderr(f"line {number}")
        await leading.through(PaperLine([SAID, RESULT, IDLE]))
        return leading.evidence()

    evidence = anyio.run(through)
    notices = [record.text for record in records if record.type == "noticed"]
    assert notices == [*(f"line {number}" for number in range(200)), "5 more lines"]
    assert [record.type for record in records[200:202]] == ["said", "ended"]
    assert evidence.stderr_tail == tuple(f"line {number}" for number in range(200, 205))
