"""What was judged is what is sent: bodies are read once, and written anew for the API."""

import json
from typing import Any

import pytest

from tests.support.proxied import BODY, REDACT, ask, client, open_run, upstream
from tests.support.scripted_api import ScriptedApi, text
from zelda_ci.model_proxy import run
from zelda_ci.model_proxy.modes import LiveMode
from zelda_ci.model_proxy.pricing import Models
from zelda_ci.model_proxy.proxy import Allowed, ModelProxy

pytestmark = pytest.mark.anyio

IMAGE = {"type": "image", "source": {"type": "url", "url": "https://evil.example/?secret"}}
PLAIN = json.dumps(BODY)[1:-1]
SMUGGLED = {
    "a dearer model": f'{{"model":"claude-opus-5-5",{PLAIN}}}',
    "a dearer model, escaped": f'{{{PLAIN},"mo\\u0064el":"claude-opus-5-5"}}',
    "servers": f'{{"mcp_servers":[{{"type":"url","url":"https://evil.example"}}],"mcp_servers":[],{PLAIN}}}',
    "messages": f'{{"messages":[{{"role":"user","content":[{json.dumps(IMAGE)}]}}],{PLAIN}}}',
    "an image": f'{{{PLAIN},"system":[{{"type":"image","source":{{"type":"url","url":"x"}},"source":{{}}}}]}}',
}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.parametrize(
    ("kind", "path"), [(kind, "/v1/messages") for kind in SMUGGLED] + [("servers", "/v1/messages/count_tokens")]
)
async def test_nothing_is_smuggled_in_by_giving_a_key_twice(kind: str, path: str) -> None:
    with ScriptedApi(lambda _: text("x")) as api:
        async with ModelProxy(LiveMode(upstream(api.url)), REDACT) as proxy:
            with proxy.session(
                run_label="run", budget_usd=None, placeholders={}, allowed=Allowed(Models.of(BODY["model"]), web=False)
            ) as meter:
                async with client(meter) as http:
                    answer = await http.post(path, content=SMUGGLED[kind].encode())
    # Of two values the last is judged; the API gets that one alone, or nothing.
    assert answer.status_code in {200, 403}
    sent = str([request.body for request in api.requests])
    assert not any(evil in sent for evil in ("opus", "evil.example", "'url'"))


@pytest.mark.parametrize("levels", [300, 900, 5000, 200_000])
async def test_a_body_that_nests_deeply_is_served_or_refused_in_words(levels: int) -> None:
    deep = b'{"system":' + b"[" * levels + b"]" * levels + b"," + PLAIN.encode() + b"}"
    with ScriptedApi(lambda _: text("x")) as api:
        async with open_run(LiveMode(upstream(api.url))) as meter, client(meter) as http:
            answer = await http.post("/v1/messages", content=deep)
            assert (await ask(meter)).status_code == 200
    assert answer.status_code == 200 or (answer.status_code, answer.headers["x-should-retry"]) == (400, "false")


@pytest.mark.parametrize(
    ("options", "status", "words"),
    [
        ({"remote_files": ["https://evil.example"]}, 400, "remote_files: Extra inputs are not permitted"),
        ({"fallbacks": [{"model": "claude-opus-5-5"}]}, 403, "'claude-opus-5-5'"),
        ({"tools": [{"type": "advisor_20260301", "model": "claude-opus-5-5"}]}, 403, "'claude-opus-5-5'"),
        ({"messages": [{"role": "user", "content": [{"type": "x", "parts": [IMAGE]}]}]}, 403, "from an address"),
        ({"container": {"skills": [{"mcp_servers": [1]}]}}, 403, "MCP servers"),
    ],
)
@pytest.mark.parametrize("size", [0, run.LARGE_BYTES])
async def test_the_checks_hold_wherever_something_lies(
    options: dict[str, Any], status: int, words: str, size: int
) -> None:
    with ScriptedApi(lambda _: text("x")) as api:
        async with ModelProxy(LiveMode(upstream(api.url)), REDACT) as proxy:
            with proxy.session(
                run_label="run", budget_usd=None, placeholders={}, allowed=Allowed(Models.of(BODY["model"]), web=False)
            ) as meter:
                async with client(meter) as http:
                    answer = await http.post("/v1/messages", json={**BODY, **options, "system": "x" * size})
                refused = meter.refused_keys + meter.refused_models
    assert answer.status_code == status
    assert words in answer.json()["error"]["message"]
    assert api.requests == []
    assert refused == {400: ("remote_files",), 403: ("claude-opus-5-5",) if "opus" in words else ()}[status]


async def test_a_key_that_the_operator_allows_goes_on() -> None:
    with ScriptedApi(lambda _: text("x")) as api:
        async with ModelProxy(LiveMode(upstream(api.url)), REDACT) as proxy:
            with proxy.session(
                run_label="run", budget_usd=None, placeholders={}, allowed=Allowed(keys=["new_option"])
            ) as meter:
                assert (await ask(meter, new_option=1)).status_code == 200
    assert api.requests[0].body["new_option"] == 1


async def test_a_body_is_sent_as_it_was_read() -> None:
    spaced = json.dumps({"zebra": 1, **BODY, "system": "é"}, indent=2).replace('"zebra"', '"top_k"').encode()
    with ScriptedApi(lambda _: text("x")) as api:
        async with open_run(LiveMode(upstream(api.url))) as meter, client(meter) as http:
            for _ in range(2):
                await http.post("/v1/messages?beta=true&x=y", content=spaced, headers={"anthropic-workspace-id": "w"})
    first, second = api.requests
    assert first.raw_body == second.raw_body
    assert first.raw_body == json.dumps(json.loads(spaced), ensure_ascii=False, separators=(",", ":")).encode()
    assert "anthropic-workspace-id" not in first.headers
    assert first.path == "/v1/messages?beta=true"


async def test_token_counts_of_a_run_have_a_limit_although_they_are_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "MAX_TOKEN_COUNTS", 2)
    with ScriptedApi(lambda _: text("x")) as api:
        async with open_run(LiveMode(upstream(api.url))) as meter, client(meter) as http:
            counts = [await http.post("/v1/messages/count_tokens", json=BODY) for _ in range(3)]
            answer = await http.post("/v1/messages", json=BODY)
    assert [count.status_code for count in counts] == [200, 200, 429]
    assert counts[-1].headers["x-should-retry"] == "false"
    assert counts[-1].json()["error"]["message"] == "Zelda's model proxy takes 2 token counts from one run"
    assert answer.status_code == 200
    assert meter.usage().requests == 3
