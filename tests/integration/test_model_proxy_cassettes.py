"""Recording to a cassette and answering from it, over real HTTP."""

import json
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from tests.support.proxied import KEY, ask, client, open_run, upstream
from tests.support.scripted_api import Reply, ScriptedApi, http_error, raw, text, tool_call
from zelda_ci.errors import ProxyError
from zelda_ci.model_proxy.cassettes import load
from zelda_ci.model_proxy.meter import Meter

pytestmark = pytest.mark.anyio

HERE = {"workspace": "/here/ws"}
THERE = {"workspace": '/there/"other" place'}
WRITE = tool_call("Write", {"file_path": "/here/ws/a.txt", "content": "x\n/here/ws\n"}, text="I write /here/ws/a.txt.")


async def record(folder: Path, *replies: Reply, said: str = "Look into /here/ws.", **options: Any) -> Meter:
    """Record one request per reply: the same words, each at a later place."""
    with ScriptedApi(replies) as api:
        async with open_run(upstream(api.url), cassettes=folder, places=HERE) as meter:
            for _ in replies:
                await ask(meter, said, **options)
    return meter


def files(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def messages(body: bytes) -> list[Any]:
    """The data of an event stream."""
    return [json.loads(line[6:]) for line in body.decode().splitlines() if line.startswith("data: ")]


def tool_input(answer: httpx2.Response) -> Any:
    """The tool input of a streamed answer."""
    deltas = [event["delta"] for event in messages(answer.content) if event["type"] == "content_block_delta"]
    return json.loads("".join(delta.get("partial_json", "") for delta in deltas))


async def test_a_recording_answers_in_another_folder_without_key_or_network(tmp_path: Path) -> None:
    recorded = await record(tmp_path, WRITE)
    async with open_run(None, cassettes=tmp_path, places=THERE) as meter:
        answer = await ask(meter, f"Look into {THERE['workspace']}.")
    assert tool_input(answer) == {
        "file_path": '/there/"other" place/a.txt',
        "content": 'x\n/there/"other" place\n',
    }
    assert (meter.cassette.failure, meter.cassette.remarks) == (None, [])
    assert meter.usage().models == recorded.usage().models


async def test_errors_and_retries_are_replayed_with_what_the_cli_acts_on(tmp_path: Path) -> None:
    recorded = await record(tmp_path, http_error(503, "busy", headers={"retry-after": "0", "x-other": "y"}), text("x"))
    async with open_run(None, cassettes=tmp_path, places=HERE) as meter:
        first, second = [await ask(meter, "Look into /here/ws.") for _ in range(2)]
    assert (first.status_code, second.status_code) == (503, 200)
    assert first.json()["error"] == {"type": "api_error", "message": "busy"}
    assert (first.headers["retry-after"], "x-other" in first.headers) == ("0", False)
    for used in (recorded.usage(), meter.usage()):
        assert (used.requests, used.retries, used.errors) == (2, 1, {"503": 1})


@pytest.mark.parametrize(
    "body", [b"<html>/here/ws</html>\n\n", b"event: message_start\ndata: {no json\n\n", b"data: [1]\n\n", b""]
)
async def test_a_malformed_stream_is_replayed_as_it_was(tmp_path: Path, body: bytes) -> None:
    await record(tmp_path, raw(body))
    async with open_run(None, cassettes=tmp_path, places=HERE) as meter:
        assert (await ask(meter, "Look into /here/ws.")).content == body


async def test_a_stream_whose_lines_end_in_bare_returns_is_recorded_to_its_last_event(tmp_path: Path) -> None:
    await record(tmp_path, raw(b'data: {"type": "message_start"}\r\rdata: {"type": "message_stop"}\r\r'))
    (exchange,) = load(tmp_path / "run.json").exchanges
    assert exchange.content == ({"type": "message_start"}, {"type": "message_stop"})


async def test_a_cassette_holds_no_path_no_secret_and_no_token(tmp_path: Path) -> None:
    with ScriptedApi([text(f"Your key is {KEY}, you are in /here/ws.")]) as api:
        async with open_run(upstream(api.url), cassettes=tmp_path, places=HERE) as meter:
            await ask(meter, f"I have {KEY} and {meter.token} at {meter.base_url} in /here/ws.")
    content = (tmp_path / "run.json").read_text()
    assert [word for word in (KEY, meter.token, meter.base_url, "/here") if word in content] == []
    assert "I have *** and {{zelda:proxyToken}} at {{zelda:proxyUrl}} in {{zelda:workspace}}." in content
    assert "Your key is ***, you are in {{zelda:workspace}}." in content


async def test_a_request_without_a_match_is_refused_for_good_and_shows_the_nearest(tmp_path: Path) -> None:
    await record(tmp_path, text("x"))
    async with open_run(None, cassettes=tmp_path, places=HERE) as meter:
        answers = [await ask(meter, "Look into /here/else.") for _ in range(2)]
    assert [(answer.status_code, answer.headers["x-should-retry"]) for answer in answers] == [(409, "false")] * 2
    message = answers[0].json()["error"]["message"]
    assert message.startswith("Zelda's replay stops here: the recording has no answer for the request of main")
    assert "-Look into {{zelda:workspace}}.\n+Look into /here/else." in message
    assert message.endswith(str(meter.cassette.failure))
    assert meter.cassette.remarks == [], "the refusal says it all"


async def test_a_token_count_is_answered_and_not_recorded(tmp_path: Path) -> None:
    with ScriptedApi([text("x")]) as api:
        async with open_run(upstream(api.url), cassettes=tmp_path) as meter, client(meter) as http:
            await http.post("/v1/messages/count_tokens", json={})
            assert meter.usage().requests == 1
            await ask(meter)
    assert len(load(tmp_path / "run.json").exchanges) == 1
    async with open_run(None, cassettes=tmp_path) as meter, client(meter) as http:
        assert (await http.post("/v1/messages/count_tokens", json={"system": "y" * 400})).json() == {
            "input_tokens": 103
        }


# --- the file ------------------------------------------------------------------------------------------------------


async def test_a_recording_that_is_interrupted_keeps_the_good_one_before_it(tmp_path: Path) -> None:
    await record(tmp_path, text("good"))
    before = (tmp_path / "run.json").read_bytes()
    with ScriptedApi([text("bad")]) as api, anyio.CancelScope() as scope:
        async with open_run(upstream(api.url), cassettes=tmp_path) as meter:
            await ask(meter)
            scope.cancel()
            await anyio.sleep_forever()
    assert (tmp_path / "run.json").read_bytes() == before
    assert files(tmp_path) == ["run.json"]


async def test_a_full_disk_fails_the_recording_and_not_the_session(tmp_path: Path) -> None:
    (tmp_path / "no-folder").write_text("")
    meter = await record(tmp_path / "no-folder", text("x"), text("y"))
    assert meter.usage().requests == 2
    assert str(meter.cassette.failure).startswith(
        f"the recording {tmp_path / 'no-folder' / 'run.json'} cannot be written: "
    )


def edit(folder: Path, response: dict[str, Any]) -> None:
    value = json.loads((folder / "run.json").read_text())
    value["exchanges"][0] = {"request": value["exchanges"][0]["request"], "status": 200, **response}
    (folder / "run.json").write_text(json.dumps(value))


@pytest.mark.parametrize(
    "response",
    [
        {"content": [{"type": "content_block_delta", "index": "x", "delta": 5}, {"no": "type"}]},
        {"content": {"type": "message", "usage": "none", "model": 5}},
        {"content": "x", "headers": {"content-type": "\u2026\n"}},
    ],
)
async def test_a_strange_recording_never_breaks_the_proxy(tmp_path: Path, response: dict[str, Any]) -> None:
    await record(tmp_path, text("x"))
    edit(tmp_path, response)
    for streaming in (True, False):
        async with open_run(None, cassettes=tmp_path, places=HERE) as meter:
            assert (await ask(meter, "Look into /here/ws.", stream=streaming)).status_code in (200, 500)


@pytest.mark.parametrize("response", [{}, {"content": "", "status": 7}])
async def test_a_recording_edited_into_nonsense_is_an_error_before_the_session(
    tmp_path: Path, response: dict[str, Any]
) -> None:
    await record(tmp_path, text("x"))
    edit(tmp_path, response)
    with pytest.raises(ProxyError, match=r"is damaged: exchanges\.0\."):
        load(tmp_path / "run.json")
