"""Which recorded exchange answers a request, and what is said where none does."""

import json
from typing import Any

import pytest

from tests.unit.model_proxy.requests import PLACES, body, call, called, fingerprint, returned, said
from zelda_ci.model_proxy.cassettes import NOT_EXACT, Cassette, Exchange, ReplaySource, SessionTexts
from zelda_ci.redact import Redactor

pytestmark = pytest.mark.anyio

PROMPT = said("Add a route.")
CALL = called("Bash", command="ls /ws")
FIRST = body(PROMPT)
SECOND = body(PROMPT, CALL, returned("a.py"))
SAFE = Redactor()


def replay(*requests: dict[str, Any], agent: str | None = None) -> ReplaySource:
    """A replay of requests, which answers with their numbers."""
    exchanges = tuple(
        Exchange(
            request=fingerprint(request, agent=agent),
            status=200,
            content=SAFE(str(number)),
        )
        for number, request in enumerate(requests, start=1)
    )
    cassette = Cassette(zelda="1", cli=SAFE("unknown"), label="a", exchanges=exchanges)
    return ReplaySource(cassette, SessionTexts(PLACES, SAFE))


async def answer(source: ReplaySource, request: dict[str, Any], agent: str | None = None) -> str:
    """The text of an answer, or the message of a refusal."""
    async with source.answer(call(request, agent)) as found:
        text = b"".join([chunk async for chunk in found.chunks])
    return str(json.loads(text)["error"]["message"]) if found.status == 409 else text.decode()


async def test_each_exchange_is_handed_out_once() -> None:
    source = replay(FIRST, SECOND)
    assert [await answer(source, SECOND), await answer(source, FIRST)] == ["2", "1"]
    assert source.remarks == []
    assert (await answer(source, FIRST)).endswith(
        "the recording has no answer for the request of main after 0 model responses"
    )


async def test_repeated_requests_get_the_answers_in_recorded_order() -> None:
    source = replay(FIRST, FIRST, SECOND)
    assert [await answer(source, FIRST), await answer(source, FIRST)] == ["1", "2"]
    assert source.remarks == [f"{NOT_EXACT}: not asked for: exchange 3 (main after 1 model responses)"]


@pytest.mark.parametrize(
    ("options", "difference"),
    [
        ({"system": "Be bad."}, "system prompt"),
        ({"tools": []}, "tools"),
        ({"thinking": {"type": "adaptive"}}, "options"),
    ],
)
async def test_the_same_words_suffice_and_the_difference_is_reported(options: dict[str, Any], difference: str) -> None:
    other = body(PROMPT, **options)
    source = replay(FIRST)
    assert await answer(source, other) == "1"
    assert source.remarks == [f"{NOT_EXACT}: exchange 1 was used although these differ: {difference}"]
    assert await answer(replay(other, FIRST), FIRST) == "2", "the exact one is preferred"


@pytest.mark.parametrize(
    ("request_", "difference"),
    [
        (body(said("Add a page.")), "-Add a route.\n+Add a page."),
        (body(PROMPT, model="claude-opus-5-5"), "\n+main after 0 model responses, claude-opus-5-5 is told:"),
        (body(PROMPT, CALL, PROMPT), "\n+main after 1 model responses, claude-sonnet-5-5 is told:"),
    ],
    ids=["other words", "other model", "other place"],
)
async def test_other_words_another_model_or_another_place_never_match(
    request_: dict[str, Any], difference: str
) -> None:
    why = await answer(replay(FIRST), request_)
    assert "the nearest is exchange 1 (main after 0 model responses):\n--- recorded\n+++ now" in why
    assert difference in why


async def test_the_nearest_exchange_is_shown_as_a_short_difference() -> None:
    listing = "\n".join(f"file {number}" for number in range(100))
    source = replay(FIRST, body(PROMPT, CALL, returned(listing)))
    why = await answer(source, body(PROMPT, CALL, returned(listing.replace("file 50", "file fifty"))))
    assert "exchange 2" in why
    assert "-file 50\n+file fifty" in why
    everything_else = await answer(source, body(PROMPT, CALL, returned("y" * 5000 + "\n" + "z\n" * 500)))
    assert "more lines)" in everything_else
    assert max(map(len, everything_else.splitlines()[1:])) < 200


async def test_a_sub_agent_is_recognised_by_its_prompt_not_by_its_arrival() -> None:
    alpha, beta = body(said("alpha")), body(said("beta"))
    alpha_later, beta_later = (body(said(name), CALL, returned("ok")) for name in ("alpha", "beta"))
    source = replay(alpha, beta, alpha_later, beta_later, agent="z")
    asked = [(beta, "x"), (alpha, "y"), (beta_later, "x"), (alpha_later, "y")]
    assert [await answer(source, request, agent) for request, agent in asked] == ["2", "1", "4", "3"]
