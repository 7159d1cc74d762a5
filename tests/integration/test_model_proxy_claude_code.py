"""The real Claude Code CLI through the proxy: recording and replay, budget, prices, broken connections."""

import dataclasses
import json
import re
from collections import Counter
from pathlib import Path

import pytest

from tests.support.proxied import open_run, upstream
from tests.support.real_cli import CliSession, folders, run_cli
from tests.support.scripted_api import (
    ApiRequest,
    Message,
    Reply,
    Script,
    ScriptedApi,
    Tokens,
    http_error,
    text,
    tool_call,
    tool_calls,
)
from zelda_ci.model_proxy.cassettes import load
from zelda_ci.model_proxy.meter import Meter
from zelda_ci.model_proxy.upstream import Upstream

pytestmark = pytest.mark.anyio


async def lead(base: Path, api: Upstream | None, cassettes: Path | None = None) -> tuple[CliSession, Meter]:
    """One session in the folders below `base`, which are made unless they are there."""
    workspace, home = folders(base)
    places = {"workspace": str(workspace), "home": str(home)}
    async with open_run(api, cassettes=cassettes, places=places) as meter:
        session = await run_cli(meter.base_url, meter.token, workspace, home)
    return session, meter


async def record(base: Path, cassettes: Path, script: Script) -> CliSession:
    with ScriptedApi(script) as api:
        session, _ = await lead(base, upstream(api.url), cassettes)
    return session


def elsewhere(entries: list[str], base: Path, other: Path) -> list[str]:
    """The entries as they would read in another folder."""
    return sorted(entry.replace(str(base), str(other)) for entry in entries)


async def test_a_session_is_replayed_with_the_same_transcript_in_another_folder(tmp_path: Path) -> None:
    first, second = tmp_path / "one", tmp_path / "two" / "deeper"
    note = first / "workspace" / "note.txt"
    script: list[Reply] = [
        http_error(503, "busy"),
        tool_call("Bash", {"command": "mkdir sub && echo 1 > sub/a.txt; ls -la; date"}, text="First I look around."),
        tool_calls(
            [
                ("Write", {"file_path": str(note), "content": 'a\n"b"\n'}),
                ("Bash", {"command": "cat sub/a.txt; pwd; echo $HOME $TMPDIR"}),
            ]
        ),
        text(f"I wrote {note}.", tokens=Tokens(100, 10, cache_read=1000, cache_write_1h=50)),
    ]
    recorded = await record(first, tmp_path / "cassettes", script)
    session, meter = await lead(second, None, tmp_path / "cassettes")

    assert (meter.cassette.failure, meter.cassette.remarks) == (None, [])
    assert (meter.usage().errors, meter.usage().retries) == ({"503": 1}, 1)
    assert (second / "workspace" / "note.txt").read_text() == 'a\n"b"\n'
    assert session.result["result"] == f"I wrote {second}/workspace/note.txt."
    assert spoken(session) == elsewhere(spoken(recorded), first, second)
    assert len(spoken(session)) == len(recorded.transcript) - 1
    assert session.model_usage == recorded.model_usage
    assert meter.usage().cost_usd == pytest.approx(session.result["total_cost_usd"])

    # The cassette names no folder of this machine.
    assert str(tmp_path) not in (tmp_path / "cassettes" / "run.json").read_text()
    assert load(tmp_path / "cassettes" / "run.json").cli.startswith("claude-cli/")


def spoken(session: CliSession) -> list[str]:
    """The transcript without the times that `ls -la` and `date` printed.

    Sorted, because a call may be over before the next call of the same answer is reported.
    """
    entries = (json.dumps(entry) for entry in session.transcript)
    return sorted(entry for entry in entries if "total " not in entry)


async def test_sub_agents_get_their_own_answers_in_a_replay(tmp_path: Path) -> None:
    recorded = await record(tmp_path / "one", tmp_path / "cassettes", agents)
    session, meter = await lead(tmp_path / "two", None, tmp_path / "cassettes")
    assert meter.cassette.failure is None
    assert not [remark for remark in meter.cassette.remarks if "not asked for" in remark]
    assert Counter(said(session)) == Counter(said(recorded))


def agents(request: ApiRequest) -> Message:
    """A session with two sub-agents, whose answers take their time as those of a model do."""
    if request.agent is None:
        options = {"subagent_type": "general-purpose", "run_in_background": False}
        started = [("Agent", {"prompt": name, "description": name, **options}) for name in ("alpha", "beta")]
        return tool_calls(started) if request.index == 0 else text(f"Main {request.index}.", delay=0.05)
    name = request.messages[0]["content"][-1]["text"]
    turn = sum(message["role"] == "assistant" for message in request.messages)
    if turn == 2:
        return text(f"I was {name}.", id=f"msg_{name}", delay=0.05)
    call = tool_call("Bash", {"command": f"echo {name} {turn}"}, delay=0.05 if name == "alpha" else 0.08)
    named = tuple({**block, "id": f"toolu_{name}_{turn}"} for block in call.content)
    return dataclasses.replace(call, id=f"msg_{name}_{turn}", content=named)


def said(session: CliSession) -> list[str]:
    """Texts and tool calls with the thread they belong to."""
    answers = [message for message in session.messages if message["type"] == "assistant"]
    blocks = [(one.get("parent_tool_use_id"), block) for one in answers for block in one["message"]["content"]]
    return [f"{parent}: {block.get('text')} {block.get('id')}" for parent, block in blocks]


SKILL = "---\nname: greet\ndescription: Greets.\n---\n{} be kind."


async def test_a_replay_with_other_steering_files_stops_and_says_what_changed(tmp_path: Path) -> None:
    def project(base: Path, word: str) -> Path:
        workspace, _ = folders(base)
        skill = workspace / ".claude/skills/greet/SKILL.md"
        skill.parent.mkdir(parents=True)
        skill.write_text(SKILL.format(word))
        return base

    script = [tool_call("Skill", {"skill": "greet"}), text("Hello.")]
    await record(project(tmp_path / "one", "Always"), tmp_path / "cassettes", script)
    session, meter = await lead(project(tmp_path / "two", "Never"), None, tmp_path / "cassettes")
    assert session.result["api_error_status"] == 409
    for said_of_it in (str(meter.cassette.failure), session.result["result"]):
        assert "-Always be kind.\n+Never be kind." in said_of_it


async def test_what_the_cli_names_at_random_is_found_again_by_the_replayed_model(tmp_path: Path) -> None:
    """A long output goes to a file with a random name, which the model then reads; a commit has a new hash."""

    def script(request: ApiRequest) -> Message:
        match request.index:
            case 0:
                return tool_call("Bash", {"command": "seq 1 20000; echo the end; git init -q"})
            case 1:
                saved = re.search(r"Full output saved to: (\S+)", request.last_user_text)
                assert saved
                return tool_calls([("Bash", {"command": f"tail -n 1 {saved[1]}"}), ("Bash", {"command": COMMIT})])
            case _:
                return text("Read.")

    await record(tmp_path / "one", tmp_path / "cassettes", script)
    session, meter = await lead(tmp_path / "two", None, tmp_path / "cassettes")
    assert (meter.cassette.failure, meter.cassette.remarks) == (None, [])
    assert "the end" in str(session.transcript[-3])


COMMIT = "sleep 0.1; git -c user.name=a -c user.email=b commit -q --allow-empty -m first && git log"


PRICED = {
    "claude-sonnet-5-5": Tokens(1000, 200, cache_read=30_000, cache_write_5m=4000, cache_write_1h=500),
    "claude-fable-5-2": Tokens(1000, 200, cache_read=30_000, cache_write_5m=4000, cache_write_1h=500),
    "claude-haiku-5-5": Tokens(50_001, 200, cache_read=20_000, cache_write_5m=20_000, cache_write_1h=10_000),
    "claude-haiku-4-5-20251001": Tokens(1000, 200, cache_read=30_000, cache_write_5m=4000, web_searches=2),
    "claude-of-tomorrow": Tokens(1000, 200, cache_read=30_000, cache_write_5m=4000, cache_write_1h=500),
}


async def test_our_prices_are_those_of_the_cli(tmp_path: Path) -> None:
    """Of each model a sub-agent, so that one session asks all of them."""
    workspace, _ = folders(tmp_path)
    for model in PRICED:
        agent = workspace / f".claude/agents/{model}.md"
        agent.parent.mkdir(parents=True, exist_ok=True)
        agent.write_text(f"---\nname: {model}\ndescription: Asks.\nmodel: {model}\n---\nAsk.\n")
    task = {"prompt": "p", "description": "d", "run_in_background": False}
    calls = [("Agent", {**task, "subagent_type": model}) for model in PRICED]

    def script(request: ApiRequest) -> Message:
        is_first = request.agent is None and request.index == 0
        return tool_calls(calls) if is_first else text("Hello.", tokens=PRICED[request.body["model"]])

    with ScriptedApi(script) as api:
        session, meter = await lead(tmp_path, upstream(api.url))
    for model in PRICED:
        theirs, ours = session.model_usage[model], meter.usage().models[model]
        assert ours.cost_usd == pytest.approx(theirs["costUSD"]), model
        assert ours.cost_known == (theirs["costBasis"] == "list")
        assert (ours.input_tokens, ours.output_tokens, ours.cache_read_tokens, ours.cache_write_tokens) == (
            theirs["inputTokens"],
            theirs["outputTokens"],
            theirs["cacheReadInputTokens"],
            theirs["cacheCreationInputTokens"],
        )
