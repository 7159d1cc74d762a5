"""Sessions of the real CLI that end badly, early or by force: status, reason, and what was captured."""

import errno
import os
import signal
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.claude_sessions import Session, lead, make_workspace, with_more_time
from tests.support.scripted_api import (
    Message,
    ScriptedApi,
    http_error,
    tool_call,
)
from zelda_ci.domain.session import (
    Ended,
    SessionRecord,
    SessionStatus,
    ToolCalled,
    ToolReturned,
)
from zelda_ci.execution.outcome import SessionOutcome

ENDLESS = tool_call("Bash", {"command": "touch running; tail -f /dev/null"})
"""A tool call that says when it runs, and never returns."""


def stalled() -> Message:
    """An answer whose stream falls silent after its first event."""
    return Message(({"type": "text", "text": "never said"},), gate=threading.Event())


async def until(condition: Callable[[], object]) -> None:
    while not condition():  # noqa: ASYNC110  # what other processes do sets no event here
        await anyio.sleep(0.01)


async def meanwhile(session: Session, act: Callable[[], Coroutine[Any, Any, None]]) -> SessionOutcome:
    """Lead the session while something happens beside it."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(act)
        outcome = await session.lead()
        tasks.cancel_scope.cancel()
    return outcome


def test_a_session_that_uses_all_its_turns_says_so(tmp_path: Path) -> None:
    with ScriptedApi([tool_call("Bash", {"command": "echo on"})] * 3) as api:
        session = Session(make_workspace(tmp_path), api.url, settings={"max_turns": 2})
        outcome = lead(session)

    assert (outcome.status, outcome.code) == (SessionStatus.MAX_TURNS, "MAX_TURNS")
    assert len(api.requests) == 2
    assert session.of(Ended)[0].subtype == "error_max_turns"


def test_a_session_whose_budget_is_spent_is_interrupted_and_its_result_kept(tmp_path: Path) -> None:
    with ScriptedApi([ENDLESS]) as api:
        session = Session(make_workspace(tmp_path), api.url)

        async def spend() -> None:
            await until((session.workspace.path / "running").exists)
            session.meter.exhausted.set()

        outcome = anyio.run(meanwhile, session, spend)

    assert (outcome.status, outcome.code) == (SessionStatus.BUDGET_EXCEEDED, "BUDGET_EXCEEDED")
    ended = session.of(Ended)[-1]
    assert ended.terminal_reason == "aborted_tools"
    assert ended.cost_usd == pytest.approx(0.00022)
    assert session.of(ToolReturned)[0].is_error
    assert session.survivors() == []


def test_a_session_that_hangs_ends_at_its_deadline(tmp_path: Path) -> None:
    def ends(place: Path, seconds: int) -> bool:
        with ScriptedApi([stalled()]) as api:
            session = Session(make_workspace(place), api.url, settings={"timeout_seconds": seconds})
            outcome = lead(session)
        assert (outcome.status, outcome.code) == (SessionStatus.TIMED_OUT, "SESSION_TIMED_OUT")
        assert outcome.reason == f"The session did not end within its limit of {seconds} s (timeoutSeconds)."
        assert outcome.wall_seconds >= seconds
        if not api.requests:
            return False
        assert len(api.requests) == 1
        assert session.of(Ended)[-1].subtype == "error_during_execution"
        return True

    with_more_time(ends, tmp_path, 6, 30, 90)


def test_a_failing_api_fails_the_session_with_a_code_and_a_sentence(tmp_path: Path) -> None:
    def fails(place: Path, seconds: int) -> bool:
        with ScriptedApi(lambda _: http_error(401, "invalid x-api-key")) as api:
            session = Session(make_workspace(place), api.url, settings={"timeout_seconds": seconds})
            outcome = lead(session)
        if not api.requests or outcome.status is SessionStatus.TIMED_OUT:
            return False
        assert (outcome.status, outcome.code) == (SessionStatus.FAILED, "AUTHENTICATION_FAILED")
        assert outcome.reason
        assert "\n" not in outcome.reason
        assert session.of(Ended)[-1].is_error
        return True

    with_more_time(fails, tmp_path, 8, 40, 120)


def test_a_killed_cli_fails_the_session_and_keeps_what_was_said(tmp_path: Path) -> None:
    with ScriptedApi([ENDLESS]) as api:
        session = Session(make_workspace(tmp_path), api.url)

        async def kill() -> None:
            await until((session.workspace.path / "running").exists)
            os.kill(next(pid for pid in map(int, session.survivors()) if _is_cli(pid)), signal.SIGKILL)

        outcome = anyio.run(meanwhile, session, kill)

    assert (outcome.status, outcome.code) == (SessionStatus.FAILED, "CLI_KILLED")
    assert outcome.reason == "Claude Code was killed by signal 9."
    assert [call.name for call in session.of(ToolCalled)] == ["Bash"]
    assert session.survivors() == []


def _is_cli(pid: int) -> bool:
    # Not by its `exe`, which it closes to others. What it has started may end meanwhile.
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip() == "claude"
    return False


@pytest.mark.parametrize("phase", ["starting", "running a tool"])
def test_cancellation_ends_everything_and_goes_on(tmp_path: Path, phase: str) -> None:
    with ScriptedApi([ENDLESS]) as api:
        session = Session(make_workspace(tmp_path), api.url)
        ready: dict[str, Callable[[], object]] = {
            "starting": session.survivors,
            "running a tool": (session.workspace.path / "running").exists,
        }

        async def cancel() -> bool:
            with anyio.CancelScope() as scope:
                await meanwhile(session, lambda: _cancelled_when(ready[phase], scope))
            return scope.cancelled_caught

        assert anyio.run(cancel)

    assert session.survivors() == []
    if phase == "running a tool":
        assert session.of(Ended)[-1].subtype == "error_during_execution"


async def _cancelled_when(condition: Callable[[], object], scope: anyio.CancelScope) -> None:
    await until(condition)
    scope.cancel()


def test_a_session_that_cannot_be_recorded_is_ended(tmp_path: Path) -> None:
    heard: list[SessionRecord] = []

    def listen(record: SessionRecord) -> None:
        heard.append(record)
        if isinstance(record, ToolCalled):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with ScriptedApi([ENDLESS]) as api:
        session = Session(make_workspace(tmp_path), api.url)
        outcome = anyio.run(session.lead, listen)

    assert (outcome.status, outcome.code) == (SessionStatus.FAILED, "RECORDING_FAILED")
    assert "could not be recorded" in str(outcome.reason)
    assert isinstance(heard[-1], ToolCalled)
    assert session.survivors() == []


def test_a_prompt_that_never_reaches_a_model_fails_the_session(tmp_path: Path) -> None:
    with ScriptedApi([]) as api:
        session = Session(make_workspace(tmp_path), api.url, prompt="/clear")
        outcome = lead(session)

    assert (outcome.status, outcome.code) == (SessionStatus.FAILED, "NO_MODEL_CALL")
    assert "the prompt was taken as a command of Claude Code" in str(outcome.reason)
    assert not session.of(Ended)[0].is_error


def test_a_model_that_says_nothing_was_asked(tmp_path: Path) -> None:
    with ScriptedApi([Message(())] * 2) as api:
        outcome = lead(Session(make_workspace(tmp_path), api.url))

    assert outcome.status is SessionStatus.COMPLETED
