"""A CLI that breaks down or speaks nonsense: a program that plays it shows what the real one hardly ever does."""

import gc
from pathlib import Path

import pytest
from claude_agent_sdk._internal.transport.subprocess_cli import SubprocessCLITransport

from tests.support.claude_sessions import Session, lead, make_workspace, shebang
from zelda_ci.domain.session import Noticed, SessionStatus

UNREACHABLE = "http://127.0.0.1:9"


FAKE = """\
{shebang}
import json, sys
def say(**message): print(json.dumps(message), flush=True)
while (request := json.loads(sys.stdin.readline()))["type"] == "control_request":
    answer = {{"subtype": "success", "request_id": request["request_id"], "response": {{}}}}
    say(type="control_response", response=answer)
{body}
"""


RESULT = """\
counted = dict(duration_ms=1, duration_api_ms=1, is_error=False, num_turns=1, session_id="s", total_cost_usd="a lot")
say(type="result", subtype="success", **counted)
sys.stdin.read()
"""


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        ("sys.exit('something is missing')", "CLI_CRASHED", "exit code 1 before the session was over: something is"),
        ("", "CLI_CRASHED", "exit code 0"),
        ("print('{' + 'x' * (65 << 20), flush=True); sys.stdin.read()", "CLI_OUTPUT_TOO_LONG", "64 MiB"),
        (RESULT, "SESSION_FAILED", "result cannot be read"),
        ("print('{broken', flush=True); sys.stdin.read()", "SESSION_FAILED", "broke off"),
    ],
    ids=["crash", "silent end", "long line", "strange result", "broken line"],
)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_cli_that_breaks_down_is_explained(tmp_path: Path, body: str, code: str, said: str) -> None:
    outcome = lead(Session(make_workspace(tmp_path, level="none"), UNREACHABLE, cli=_fake(tmp_path, body)))
    gc.collect()  # the SDK drops the pipe of a CLI that it gave up on, and the warning must come here

    assert (outcome.status, outcome.code) == (SessionStatus.FAILED, code)
    assert said in str(outcome.reason)


def test_messages_that_nobody_knows_or_can_read_are_noted_and_not_fatal(tmp_path: Path) -> None:
    messages = [
        {"type": "from_the_future", "a": 1},
        {"type": "assistant", "message": "not an object with content"},
        {"type": "system", "subtype": "brand_new", "words": "hear me"},
    ]
    body = f"for message in {messages!r}: say(**message)"
    session = Session(make_workspace(tmp_path, level="none"), UNREACHABLE, cli=_fake(tmp_path, body))
    outcome = lead(session)

    assert outcome.code == "CLI_CRASHED"
    unreadable, brand_new = session.of(Noticed)
    assert unreadable.kind == "unreadable"
    assert (brand_new.kind, brand_new.text) == ("brand_new", '{"words": "hear me"}')


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("exit 7", "CLI_START_FAILED", "ended with exit code 7 while starting"),
        ("kill -9 $$", "CLI_KILLED", "killed by signal 9"),
    ],
)
def test_a_cli_that_ends_before_it_is_written_to_is_explained_as_one_that_ends_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, code: str, said: str
) -> None:
    write = SubprocessCLITransport.write

    async def write_late(self: SubprocessCLITransport, data: str) -> None:
        assert self._process
        await self._process.wait()
        await write(self, data)

    monkeypatch.setattr(SubprocessCLITransport, "write", write_late)
    cli = _program(tmp_path, f"#!/bin/sh\n{line}\n")
    outcome = lead(Session(make_workspace(tmp_path, level="none"), UNREACHABLE, cli=cli))
    assert (outcome.status, outcome.code) == (SessionStatus.FAILED, code)
    assert said in str(outcome.reason)


def _fake(folder: Path, body: str) -> Path:
    return _program(folder, FAKE.format(shebang=shebang(), body=body))


def _program(folder: Path, source: str) -> Path:
    program = folder / "fake-claude"
    program.write_text(source)
    program.chmod(0o755)
    return program
