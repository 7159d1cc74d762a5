"""Sessions of the real CLI against a scripted API: what is recorded of them, and that nothing of them is left."""

import json
from pathlib import Path

import anyio
import pytest

from tests.support.claude_sessions import TOKEN, Session, git, lead, make_workspace, with_more_time
from tests.support.patience import PATIENCE
from tests.support.scripted_api import ScriptedApi, text, tool_call
from zelda_ci.domain.session import (
    AssistantSaid,
    Denied,
    Ended,
    HookRan,
    Noticed,
    SessionRecord,
    SessionStatus,
    Started,
    ToolCalled,
    ToolReturned,
)
from zelda_ci.execution import claude_code

AGENT = {"description": "look", "prompt": "Look around.", "subagent_type": "general-purpose"}


def settings(**values: object) -> dict[str, str]:
    return {".claude/settings.json": json.dumps(values)}


def test_a_session_edits_runs_a_command_and_commits(tmp_path: Path) -> None:
    """Asked as Claude Code asks, with the token of the run."""
    steering = {"CLAUDE.md": "Always greet in Latin.\n", "notes.txt": "attached words\n"}
    workspace = make_workspace(tmp_path, {"app.py": "answer = 41\n", **steering})
    app = str(workspace.path / "app.py")
    script = [
        tool_call("Read", {"file_path": app}),
        tool_call("Edit", {"file_path": app, "old_string": "41", "new_string": "42"}),
        tool_call("Bash", {"command": "git commit --all --quiet --message=fix && git log --format=%s"}),
        text("Done.", thinking="It is all there."),
    ]
    with ScriptedApi(script) as api:
        session = Session(workspace, api.url, prompt="Mend it. See @notes.txt", settings={"model": "claude-haiku-5-5"})
        outcome = lead(session)

    assert (outcome.status, outcome.reason, outcome.code) == (SessionStatus.COMPLETED, None, None)
    assert git(workspace, "show", "HEAD:app.py") == "answer = 42"
    names = [type(record).__name__ for record in session.records]
    said = ["AssistantSaid", "AssistantSaid"]
    assert names == ["Started", *["ToolCalled", "ToolReturned"] * 3, *said, "Ended"]
    started, ended = session.records[0], session.records[-1]
    assert isinstance(started, Started)
    assert (started.session_id, started.permission_mode) == (session.session_id, "bypassPermissions")
    assert not {"WebFetch", "CronCreate", "SendMessage"} & set(started.tools)
    assert [call.name for call in session.of(ToolCalled)] == ["Read", "Edit", "Bash"]
    assert session.of(ToolReturned)[-1].output == "fix\nstart"
    assert [(said.text, said.thinking) for said in session.of(AssistantSaid)] == [
        ("It is all there.", True),
        ("Done.", False),
    ]
    assert isinstance(ended, Ended)
    assert ended.model_usage["claude-haiku-5-5"].output_tokens == 80
    assert [record.at for record in session.records] == sorted(record.at for record in session.records)
    assert ended.at <= round(outcome.wall_seconds, 3)

    request = api.requests[0]
    asked = json.dumps(request.messages)
    assert request.headers["x-api-key"] == TOKEN
    assert request.body["model"] == "claude-haiku-5-5"
    assert "# Harness" in json.dumps(request.body["system"])  # Claude Code's own prompt, not the SDK's empty one
    assert "Always greet in Latin." in asked
    assert "attached words" in asked
    assert not (workspace.home / ".claude" / "projects" / "memory").exists()


def test_a_sub_agent_is_recorded_under_the_call_that_started_it(tmp_path: Path) -> None:
    script = [tool_call("Agent", {**AGENT, "run_in_background": True}), text("Started."), text("Reported.")]
    agent = [tool_call("Bash", {"command": "echo inside"}, text="I look."), text("All is well.")]
    with ScriptedApi(script, agents=[agent]) as api:
        session = Session(make_workspace(tmp_path), api.url)
        outcome = lead(session)

    assert outcome.status is SessionStatus.COMPLETED
    agent_call, inner_call = session.of(ToolCalled)
    assert agent_call.parent_tool_call_id is None
    assert inner_call.parent_tool_call_id == agent_call.id
    inner = [said.text for said in session.of(AssistantSaid) if said.parent_tool_call_id == agent_call.id]
    assert inner == ["I look.", "All is well."]
    assert [returned.output for returned in session.of(ToolReturned) if returned.parent_tool_call_id] == ["inside"]
    # The main thread's turn ends first, and the report brings another one: two results, one start.
    assert len(session.of(Ended)) == 2
    assert len(session.of(Started)) == 1
    assert session.of(AssistantSaid)[-1].text == "Reported."


def test_a_hook_that_blocks_is_recorded_as_a_hook_and_as_a_denial_and_messages_of_many_megabytes_are_read(
    tmp_path: Path,
) -> None:
    block = "grep -q 'touch made' || exit 0; echo not that >&2; exit 2"
    hook = {"matcher": "Bash", "hooks": [{"type": "command", "command": block}]}
    files = {"big.txt": "first line\n" + "x" * 100 + "\n" * 3_000_000}
    workspace = make_workspace(tmp_path, {**files, **settings(hooks={"PreToolUse": [hook]})})
    big = str(workspace.path / "big.txt")
    script = [
        tool_call("Bash", {"command": "touch made"}),
        tool_call("Bash", {"command": "head -c 5000000 /dev/zero | tr '\\0' y"}),
        tool_call("Read", {"file_path": big, "limit": 1}),
        tool_call("Edit", {"file_path": big, "old_string": "first", "new_string": "second"}),
        text("Done."),
    ]
    with ScriptedApi(script) as api:
        session = Session(workspace, api.url)
        outcome = lead(session)

    assert outcome.status is SessionStatus.COMPLETED
    assert not (workspace.path / "made").exists()
    ran = session.of(HookRan)[0]
    assert (ran.name, ran.event, ran.outcome, ran.output) == ("PreToolUse:Bash", "PreToolUse", "error", "not that\n")
    call, denied = session.of(ToolCalled)[0], session.of(Denied)[0]
    assert (denied.tool, denied.tool_call_id) == ("Bash", call.id)
    assert "not that" in denied.reason
    assert [returned.is_error for returned in session.of(ToolReturned)] == [True, False, False, False]
    assert Path(big).read_text().startswith("second line")


def test_background_shells_and_daemons_do_not_outlive_a_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claude_code, "BACKGROUND_SECONDS", 2.0)
    monkeypatch.setattr(claude_code, "CLOSE_SECONDS", PATIENCE)
    script = [
        tool_call("Bash", {"command": "tail -f /dev/null", "run_in_background": True}),
        tool_call("Bash", {"command": "setsid nohup tail -f /dev/null >/dev/null 2>&1 & echo $! > daemon.pid"}),
        text("Both run."),
    ]
    with ScriptedApi(script) as api:
        session = Session(make_workspace(tmp_path), api.url)
        outcome = lead(session)

    assert outcome.status is SessionStatus.COMPLETED
    assert (session.workspace.path / "daemon.pid").read_text().strip().isdigit()
    # The CLI ended by itself: its shell was stopped, so nobody had to be killed.
    stopped = [notice.text for notice in session.of(Noticed) if notice.kind == "task_notification"]
    assert stopped == ["stopped: tail -f /dev/null"]
    assert outcome.wall_seconds == pytest.approx(session.of(Ended)[-1].at, abs=1.0)


def test_the_end_of_a_command_in_the_background_begins_another_turn(tmp_path: Path) -> None:
    wait = "until [ -e turn-is-over ]; do sleep 0.1; done"
    script = [
        tool_call("Bash", {"command": f"{wait}; echo made > made", "run_in_background": True}),
        text("I wait."),
        tool_call("Bash", {"command": "cat made"}),
        text("It is there."),
    ]

    def hear(record: SessionRecord) -> None:
        if isinstance(record, Ended):
            (session.workspace.path / "turn-is-over").touch()

    with ScriptedApi(script) as api:
        session = Session(make_workspace(tmp_path), api.url)
        outcome = anyio.run(session.lead, hear)

    assert outcome.status is SessionStatus.COMPLETED
    assert [returned.output for returned in session.of(ToolReturned)][-1] == "made"
    assert [notice.text.partition(":")[0] for notice in session.of(Noticed)] == ["completed"]
    assert session.of(AssistantSaid)[-1].text == "It is there."
    assert len(session.of(Ended)) == 2


def test_a_session_that_only_waits_for_the_background_at_its_deadline_has_ended_well(tmp_path: Path) -> None:
    script = [tool_call("Bash", {"command": "tail -f /dev/null", "run_in_background": True}), text("It runs.")]

    def ends_well(place: Path, seconds: int) -> bool:
        with ScriptedApi(script) as api:
            session = Session(make_workspace(place), api.url, settings={"timeout_seconds": seconds})
            outcome = lead(session)
        if len(api.requests) < len(script):
            return False
        assert outcome.status is SessionStatus.COMPLETED
        return True

    with_more_time(ends_well, tmp_path, 10, 40, 120)


def test_a_fork_is_recorded_under_its_call_with_all_that_it_costs(tmp_path: Path) -> None:
    call = {"description": "d", "prompt": "Look again.", "subagent_type": "fork"}
    script = [tool_call("Agent", call), text("Started."), text("Reported.")]
    with ScriptedApi(script, agents=[[text("I am a fork.")]]) as api:
        session = Session(make_workspace(tmp_path), api.url)
        outcome = lead(session)

    assert outcome.status is SessionStatus.COMPLETED
    (forked,) = session.of(ToolCalled)
    said = [(said.parent_tool_call_id, said.text) for said in session.of(AssistantSaid)]
    # The fork and the main thread go on side by side.
    assert sorted(said, key=str) == [(forked.id, "I am a fork."), (None, "Reported."), (None, "Started.")]
    ended = session.of(Ended)[-1]
    assert sum(usage.output_tokens for usage in ended.model_usage.values()) == 20 * len(api.requests) == 80
