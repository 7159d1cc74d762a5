"""The proxy when the API, the network or the session breaks off."""

import httpx2
import pytest
from anyio.abc import AnyByteStream

from tests.support.proxied import BODY, REDACT, ask, client, listening, open_run, until, upstream
from tests.support.scripted_api import ScriptedApi, Tokens, cut_after, raw, text
from zelda_ci.model_proxy.modes import LiveMode
from zelda_ci.model_proxy.proxy import ModelProxy

USED = Tokens(input=1000, output=100)

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_an_api_that_hangs_up_without_an_answer_is_a_502() -> None:
    async def hang_up(stream: AnyByteStream) -> None:
        await stream.receive()
        await stream.aclose()

    async with listening(hang_up) as url, open_run(LiveMode(upstream(url))) as meter:
        assert (await ask(meter)).status_code == 502
    assert meter.usage().errors == {"connection": 1}


@pytest.mark.parametrize("streaming", [True, False], ids=["chunked", "with length"])
async def test_an_answer_that_breaks_off_breaks_off_for_the_session_too(
    streaming: bool,  # noqa: FBT001 - a case of the table
    capfd: pytest.CaptureFixture[str],
) -> None:
    reply = cut_after(4, text("Some words.", tokens=USED)) if streaming else raw(b'{"type": "mess', length=500)
    with ScriptedApi([reply]) as api:
        async with open_run(LiveMode(upstream(api.url))) as meter:
            with pytest.raises(httpx2.RemoteProtocolError):
                await ask(meter)
    used = meter.usage()
    assert used.errors == {"connection": 1}
    assert {name: model.total for name, model in used.models.items()} == (
        {"claude-sonnet-5-5": 1001} if streaming else {}
    )
    assert capfd.readouterr() == ("", "")


async def test_when_the_session_leaves_so_does_the_request_and_what_was_seen_is_counted() -> None:
    with ScriptedApi([text("Some words.", tokens=USED, delay=0.05)]) as api:
        async with open_run(LiveMode(upstream(api.url))) as meter, client(meter) as http:
            async with http.stream("POST", "/v1/messages", json=BODY) as answer:
                await anext(answer.aiter_raw())
            await until(lambda: api.disconnects == 1)
    assert meter.usage().models["claude-sonnet-5-5"].input_tokens == 1000
    assert meter.usage().errors == {}


async def test_the_end_of_a_run_ends_its_requests() -> None:
    with ScriptedApi([text("Some words.", delay=0.05)]) as api:
        async with ModelProxy(LiveMode(upstream(api.url)), REDACT) as proxy:
            with proxy.session(run_label="a", budget_usd=None, placeholders={}) as meter:
                http = client(meter)
                asked = http.build_request("POST", "/v1/messages", json=BODY)
                answer = await http.send(asked, stream=True)
            with pytest.raises(httpx2.RemoteProtocolError):
                await answer.aread()
            await until(lambda: api.disconnects == 1)
            await http.aclose()
