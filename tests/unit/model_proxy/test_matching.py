from typing import Any

import pytest

from tests.unit.model_proxy.requests import body, called, fingerprint, returned, said
from zelda_ci.model_proxy.cassettes.cassette import Exchange, RecordedRequest, RecordedResponse
from zelda_ci.model_proxy.cassettes.match import Match, Matcher, Mismatch
from zelda_ci.redact import Redactor

PROMPT = said("Add a route.")
CALL = called("Bash", command="ls")
FIRST = body(PROMPT)
SECOND = body(PROMPT, CALL, returned("a.py"))


def recorded(request: dict[str, Any], thread: str = "main") -> Exchange:
    found, redact = fingerprint(request), Redactor()
    return Exchange(
        request=RecordedRequest(
            thread=thread,
            turn=found.turn,
            model=redact(found.model),
            digest=found.digest,
            parts=dict(found.parts),
            tools=tuple(map(redact, found.tools)),
            said=found.excerpt,
        ),
        response=RecordedResponse(status=200, text=redact("")),
    )


def match(matcher: Matcher, request: dict[str, Any], agent: str | None = None) -> Match | Mismatch:
    return matcher.match(agent, fingerprint(request))


def reason(found: Match | Mismatch) -> str:
    assert isinstance(found, Mismatch)
    return found.reason


def test_each_exchange_is_handed_out_once() -> None:
    matcher = Matcher([recorded(FIRST), recorded(SECOND)])
    assert match(matcher, SECOND) == Match(1)
    assert match(matcher, FIRST) == Match(0)
    assert matcher.unused == ()
    assert reason(match(matcher, FIRST)) == (
        "the recording has no further answer for the request of the main thread after 0 model responses"
    )


def test_repeated_requests_get_the_answers_in_recorded_order() -> None:
    matcher = Matcher([recorded(FIRST), recorded(FIRST), recorded(SECOND)])
    assert [match(matcher, FIRST), match(matcher, FIRST)] == [Match(0), Match(1)]
    assert matcher.unused == ("exchange 3 (main, after 1 model responses)",)


@pytest.mark.parametrize(
    ("options", "difference"),
    [
        ({"system": "Be bad."}, "the system prompt"),
        ({"tools": [{"name": "Bash"}, {"name": "New"}]}, "the tools (+New)"),
        ({"tools": []}, "the tools (-Bash)"),
        ({"thinking": {"type": "adaptive"}}, "other request options"),
    ],
)
def test_the_same_words_suffice_and_the_difference_is_told(options: dict[str, Any], difference: str) -> None:
    other = body(PROMPT, **options)
    assert match(Matcher([recorded(FIRST)]), other) == Match(0, (difference,))
    assert match(Matcher([recorded(other), recorded(FIRST)]), FIRST) == Match(1), "the exact one is preferred"


@pytest.mark.parametrize(
    ("request_", "said_differently"),
    [
        (body(said("Add a page.")), "what was said to the model last\n--- recorded\n+++ now"),
        (body(PROMPT, model="claude-opus-5-5"), "the model (claude-sonnet-5-5 was recorded, claude-opus-5-5 is asked)"),
        (body(PROMPT, CALL, PROMPT), "the place (0 model responses before it were recorded, now there are 1)"),
    ],
    ids=["other words", "other model", "other place"],
)
def test_other_words_another_model_or_another_place_never_match(
    request_: dict[str, Any], said_differently: str
) -> None:
    why = reason(match(Matcher([recorded(FIRST)]), request_))
    assert "the nearest is exchange 1 (main, after 0 model responses), and these differ: " in why
    assert said_differently in why


def test_the_nearest_exchange_is_shown_as_a_short_difference() -> None:
    listing = "\n".join(f"file {number}" for number in range(100))
    matcher = Matcher([recorded(FIRST), recorded(body(PROMPT, CALL, returned(listing)))])
    why = reason(match(matcher, body(PROMPT, CALL, returned(listing.replace("file 50", "file fifty")))))
    assert "exchange 2" in why
    assert "-file 50\n+file fifty" in why
    everything_else = reason(match(matcher, body(PROMPT, CALL, returned("y" * 5000 + "\n" + "z\n" * 500))))
    assert "more lines)" in everything_else
    assert max(map(len, everything_else.splitlines()[1:])) < 200


def test_a_sub_agent_is_recognised_by_its_first_request_not_by_its_arrival() -> None:
    alpha, beta = body(said("alpha")), body(said("beta"))
    matcher = Matcher(
        [
            recorded(alpha, "agent-1"),
            recorded(beta, "agent-2"),
            recorded(body(said("alpha"), CALL, returned("ok")), "agent-1"),
            recorded(body(said("beta"), CALL, returned("ok")), "agent-2"),
        ]
    )
    assert match(matcher, beta, "x") == Match(1)
    assert match(matcher, alpha, "y") == Match(0)
    assert match(matcher, body(said("beta"), CALL, returned("ok")), "x") == Match(3)
    assert match(matcher, body(said("alpha"), CALL, returned("ok")), "y") == Match(2)
