"""Who may ask the proxy, what may be asked, which credentials go where, and that what was judged is what is sent."""

import json
from typing import Any

import anyio
import pytest

from tests.support.proxied import BODY, KEY, REDACT, ask, client, open_run, plain_client, upstream
from tests.support.scripted_api import ScriptedApi, Tokens, http_error, text
from zelda_ci.model_proxy import proxy
from zelda_ci.model_proxy.policy import Allowed
from zelda_ci.model_proxy.proxy import ModelProxy
from zelda_ci.model_proxy.upstream import Upstream
from zelda_ci.redact import Secret

pytestmark = pytest.mark.anyio

USED = Tokens(input=1000, output=100)
COST = (1000 * 2 + 100 * 10) / 1e6


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("POST", "/v1/messages", {}, 401),
        ("POST", "/v1/messages", {"x-api-key": "wrong"}, 401),
        ("POST", "/v1/messages", {"x-api-key": "ü"}, 401),
        ("POST", "/v1/messages", {"authorization": "Bearer wrong"}, 401),
        ("POST", "/v1/messages", {"authorization": "Basic TOKEN"}, 401),
        ("POST", "/v1/messages", {"x-api-key": "TOKEN", "host": "evil.example"}, 403),
        ("POST", "/v1/messages", {"x-api-key": "TOKEN", "host": "127.0.0.1.evil.example:80"}, 403),
        ("GET", "/v1/messages", {"x-api-key": "TOKEN"}, 405),
        ("PUT", "/v1/messages/count_tokens", {"x-api-key": "TOKEN"}, 405),
        ("POST", "/v1/models", {"x-api-key": "TOKEN"}, 404),
        ("POST", "/v1/messages/batches", {"x-api-key": "TOKEN"}, 404),
        ("POST", "/v1/messages/../messages/batches", {"x-api-key": "TOKEN"}, 404),
        ("HEAD", "/api/hello", {}, 404),
    ],
)
async def test_anything_but_the_messages_api_with_the_runs_token_is_refused(
    method: str, path: str, headers: dict[str, str], status: int
) -> None:
    with ScriptedApi([]) as api:
        async with open_run(upstream(api.url)) as meter:
            given = [(name.encode(), value.replace("TOKEN", meter.token).encode()) for name, value in headers.items()]
            async with plain_client() as http:
                answer = await http.request(method, meter.base_url + path, headers=given, json=BODY)
    assert answer.status_code == status
    assert method == "HEAD" or answer.json()["type"] == "error"
    assert api.requests == []
    assert meter.usage().requests == 0


@pytest.mark.parametrize(
    "headers", [{"x-api-key": "TOKEN"}, {"authorization": "Bearer TOKEN"}, {"Authorization": "bearer  TOKEN"}]
)
async def test_the_runs_token_opens_and_only_the_real_key_goes_on(headers: dict[str, str]) -> None:
    secret = {
        "cookie": "a=b",
        "proxy-authorization": "Basic x",
        "connection": "keep-alive, x-private",
        "x-private": "1",
    }
    with ScriptedApi([text("x")]) as api:
        async with open_run(upstream(api.url)) as meter, plain_client() as http:
            given = {**secret, **{name: value.replace("TOKEN", meter.token) for name, value in headers.items()}}
            answer = await http.post(meter.base_url + "/v1/messages", headers=given, json=BODY)
    sent = api.requests[0].headers
    assert answer.status_code == 200
    assert sent["x-api-key"] == KEY
    assert [name for name in ("authorization", "cookie", "proxy-authorization", "x-private") if name in sent] == []
    assert meter.token not in str(sent)


async def test_a_gateway_gets_its_own_headers() -> None:
    headers = {
        "Authorization": Secret("Bearer gw"),
        "x-portkey-api-key": Secret("pk"),
        "x-portkey-provider": Secret("@a"),
    }
    with ScriptedApi([text("x")]) as api:
        async with (
            open_run(Upstream(headers, api.url, {})) as meter,
            client(meter, **{"X-Portkey-Provider": "@b"}) as http,
        ):
            await http.post("/v1/messages", json=BODY)
    sent = api.requests[0].headers
    assert (sent["authorization"], sent["x-portkey-api-key"], sent["x-portkey-provider"]) == ("Bearer gw", "pk", "@a")
    assert "x-api-key" not in sent


async def test_a_key_that_the_api_quotes_does_not_reach_the_session() -> None:
    error = http_error(401, f"invalid key {KEY}", headers={"x-debug": KEY})
    with ScriptedApi([error]) as api:
        async with open_run(upstream(api.url)) as meter:
            answer = await ask(meter)
    assert meter.usage().errors == {"401": 1}
    assert KEY not in answer.text + str(answer.headers)
    assert answer.json()["error"]["message"] == "invalid key ***"


async def test_two_runs_side_by_side_are_counted_apart() -> None:
    with ScriptedApi(lambda _: text("x", tokens=USED)) as api:
        async with ModelProxy(upstream(api.url), REDACT) as proxy:
            async with (
                proxy.session(run_label="a", budget_usd=None, placeholders={}) as first,
                proxy.session(run_label="b", budget_usd=None, placeholders={}) as second,
                anyio.create_task_group() as group,
            ):
                for meter in (first, second, second):
                    group.start_soon(ask, meter)
            assert (await ask(first)).status_code == 401, "a token ends with its run"
    assert first.token != second.token
    assert (first.usage().requests, second.usage().requests) == (1, 2)
    assert second.usage().cost_usd == pytest.approx(2 * COST)


IMAGE = {"type": "image", "source": {"type": "url", "url": "https://evil.example/?secret"}}
PLAIN = json.dumps(BODY)[1:-1]
SMUGGLED = {
    "a dearer model": f'{{"model":"claude-opus-5-5",{PLAIN}}}',
    "a dearer model, escaped": f'{{{PLAIN},"mo\\u0064el":"claude-opus-5-5"}}',
    "servers": f'{{"mcp_servers":[{{"type":"url","url":"https://evil.example"}}],"mcp_servers":[],{PLAIN}}}',
    "messages": f'{{"messages":[{{"role":"user","content":[{json.dumps(IMAGE)}]}}],{PLAIN}}}',
    "an image": f'{{{PLAIN},"system":[{{"type":"image","source":{{"type":"url","url":"x"}},"source":{{}}}}]}}',
}


@pytest.mark.parametrize(
    ("kind", "path"), [(kind, "/v1/messages") for kind in SMUGGLED] + [("servers", "/v1/messages/count_tokens")]
)
async def test_nothing_is_smuggled_in_by_giving_a_key_twice(kind: str, path: str) -> None:
    with ScriptedApi(lambda _: text("x")) as api:
        run_of_one = open_run(upstream(api.url), allowed=Allowed(BODY["model"], web=False))
        async with run_of_one as meter, client(meter) as http:
            answer = await http.post(path, content=SMUGGLED[kind].encode())
    # Of two values the last is judged; the API gets that one alone, or nothing.
    assert answer.status_code in {200, 403}
    sent = str([request.body for request in api.requests])
    assert not any(evil in sent for evil in ("opus", "evil.example", "'url'"))


@pytest.mark.parametrize("levels", [300, 900, 5000, 200_000])
async def test_a_body_that_nests_deeply_is_served_or_refused_in_words(levels: int) -> None:
    deep = b'{"system":' + b"[" * levels + b"]" * levels + b"," + PLAIN.encode() + b"}"
    with ScriptedApi(lambda _: text("x")) as api:
        async with open_run(upstream(api.url)) as meter, client(meter) as http:
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
async def test_the_checks_hold_wherever_something_lies(options: dict[str, Any], status: int, words: str) -> None:
    with ScriptedApi(lambda _: text("x")) as api:
        run_of_one = open_run(upstream(api.url), allowed=Allowed(BODY["model"], web=False))
        async with run_of_one as meter, client(meter) as http:
            answer = await http.post("/v1/messages", json={**BODY, **options})
    assert answer.status_code == status
    assert words in answer.json()["error"]["message"]
    assert api.requests == []
    named = next((name for name in ("remote_files", "claude-opus-5-5") if name in words), "")
    assert [named in remark for remark in meter.remarks] == ([True] if named else [])


async def test_a_key_that_the_operator_allows_goes_on() -> None:
    with ScriptedApi(lambda _: text("x")) as api:
        async with (
            ModelProxy(upstream(api.url), REDACT) as proxy,
            proxy.session(
                run_label="run", budget_usd=None, placeholders={}, allowed=Allowed(keys=["new_option"])
            ) as meter,
        ):
            assert (await ask(meter, new_option=1)).status_code == 200
    assert api.requests[0].body["new_option"] == 1


HEADERS = {"anthropic-workspace-id": "w", "anthropic-beta": "b"}


async def test_a_body_is_sent_as_it_was_read() -> None:
    spaced = json.dumps({"zebra": 1, **BODY, "system": "é"}, indent=2).replace('"zebra"', '"top_k"').encode()
    with ScriptedApi(lambda _: text("x")) as api:
        async with open_run(upstream(api.url)) as meter, client(meter) as http:
            for _ in range(2):
                await http.post("/v1/messages?beta=true&x=y", content=spaced, headers=HEADERS)
    first, second = api.requests
    assert first.raw_body == second.raw_body
    assert first.raw_body == json.dumps(json.loads(spaced), ensure_ascii=False, separators=(",", ":")).encode()
    assert "anthropic-workspace-id" not in first.headers
    assert first.headers["anthropic-beta"] == "b"
    assert first.path == "/v1/messages?beta=true"


async def test_token_counts_of_a_run_have_a_limit_although_they_are_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy, "MAX_TOKEN_COUNTS", 2)
    with ScriptedApi(lambda _: text("x")) as api:
        async with open_run(upstream(api.url)) as meter, client(meter) as http:
            counts = [await http.post("/v1/messages/count_tokens", json=BODY) for _ in range(3)]
            answer = await http.post("/v1/messages", json=BODY)
    assert [count.status_code for count in counts] == [200, 200, 429]
    assert counts[-1].headers["x-should-retry"] == "false"
    assert counts[-1].json()["error"]["message"] == "Zelda's model proxy takes 2 token counts from one run"
    assert answer.status_code == 200
    assert meter.usage().requests == 3
