import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.scripted_replies import ApiRequest, Message, Tokens, events, sse, text
from tests.unit.model_proxy.requests import body, call, called, noted, returned, said
from zelda_ci.domain.session import Usage
from zelda_ci.model_proxy import wire
from zelda_ci.model_proxy.meter import Meter, MeteredExchange
from zelda_ci.model_proxy.wire import Call, CassetteState

PROMPT = said("Add a route.")


def meter(budget_usd: float | None = None) -> Meter:
    return Meter("http://127.0.0.1:1", "token", budget_usd, CassetteState())


def stream(reply: Message) -> list[bytes]:
    message = reply.as_json(ApiRequest("/v1/messages", {}, body(PROMPT), b"", None, 0))
    return [sse(event) for event in events(message, reply.tokens)]


def begin(counts: Meter, request: dict[str, Any] | None = None) -> MeteredExchange:
    exchange = counts.begin(call(request or body(PROMPT)))
    exchange.start(200)
    return exchange


def test_tokens_are_counted_while_the_answer_streams() -> None:
    counts = meter()
    exchange = begin(counts)
    first, *others = stream(text("Done.", tokens=Tokens(100, 50, cache_read=7, cache_write_1h=3)))
    exchange.chunk(first)
    assert counts.usage().models["claude-sonnet-5-5"].total == 100 + 1 + 7 + 3
    for event in others:
        exchange.chunk(event)
    counts.end(exchange)
    used = counts.usage().models["claude-sonnet-5-5"]
    assert used.cost_usd == pytest.approx((100 * 2 + 50 * 10 + 7 * 0.1 + 3 * 4) / 1e6)
    kinds = (used.input_tokens, used.output_tokens, used.cache_read_tokens, used.cache_write_tokens)
    assert kinds == (100, 50, 7, 3)


def test_models_are_counted_apart_and_a_dated_answer_under_the_name_that_was_asked_for() -> None:
    counts = meter()
    for asked, answered in [
        ("claude-haiku-4-5", "claude-haiku-4-5-20251001"),
        ("claude-haiku-4-5", "claude-opus-5-5"),
        ("gpt-7", "gpt-7-mini"),
    ]:
        exchange = begin(counts, body(PROMPT, model=asked))
        for event in stream(text("x", model=answered)):
            exchange.chunk(event)
        counts.end(exchange)
    assert {name: model.cost_known for name, model in counts.usage().models.items()} == {
        "claude-haiku-4-5": True,
        "claude-opus-5-5": True,
        "gpt-7-mini": False,
    }


def test_errors_are_counted_by_status_and_inside_a_stream_too() -> None:
    counts = meter(budget_usd=1e-9)
    for status in (529, 529, 401):
        exchange = counts.begin(call(body(PROMPT)))
        exchange.start(status)
        exchange.chunk(b"<html>busy</html>" if status == 401 else b'{"type": "error"}')
        counts.end(exchange)
        assert not counts.is_spent
    exchange = begin(counts)
    exchange.chunk(sse({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}))
    counts.end(exchange)
    assert counts.usage().errors == {"401": 1, "529": 3}
    assert counts.usage().models == {}


def test_a_request_that_repeats_a_failed_one_is_a_retry() -> None:
    counts = meter()
    for _ in range(2):  # one that repeats a successful one is none
        counts.end(begin(counts))
    failed = counts.begin(call(body(PROMPT)))
    failed.start(529)
    counts.end(failed)
    again = body(PROMPT, noted("x"), stream=False, max_tokens=1, thinking=None)
    counts.end(counts.begin(call(again)))  # other options, the CLI's own notes: still the same conversation
    assert counts.usage().retries == 1
    counts.end(counts.begin(call(body(PROMPT, called("Bash"), returned("ok")))))
    counts.end(counts.begin(call(body(PROMPT), agent="a1")))
    assert (counts.usage().requests, counts.usage().retries) == (6, 1)


def test_the_budget_is_spent_when_cost_reaches_it_but_the_answer_may_end() -> None:
    counts = meter(budget_usd=0.01)
    exchange = begin(counts)
    for event in stream(text("x", tokens=Tokens(1, 999))):
        exchange.chunk(event)
    assert not counts.is_spent
    counts.end(exchange)
    assert not counts.exhausted.is_set()
    last = begin(counts)
    last.chunk(stream(text("x", tokens=Tokens(5)))[0])
    assert counts.is_spent
    assert not counts.exhausted.is_set()
    counts.end(last)
    assert counts.exhausted.is_set()


@pytest.mark.parametrize(
    "event",
    [
        {"type": "message_start"},
        {"type": "message_start", "message": "x"},
        {"type": "message_delta", "usage": {"output_tokens": "many"}},
        {"type": "error"},
    ],
)
def test_nonsense_counts_nothing(event: dict[str, Any]) -> None:
    counts = meter()
    exchange = begin(counts)
    exchange.chunk(sse(event))
    exchange.chunk(b'data: no json "message_start"\n\n')
    counts.end(exchange)
    assert counts.cost_usd == 0
    assert counts.usage().errors == {}


def test_a_stream_is_metered_and_checked_by_its_bytes_alone() -> None:
    counts = meter(budget_usd=0.001)
    exchange = begin(counts)
    exchange.chunk(b"\n")
    for event in stream(text("Done.", tokens=Tokens(5, 99), id="msg_1")):
        exchange.chunk(event)
    counts.end(exchange)
    assert counts.cost_usd == pytest.approx(0.001)
    assert counts.is_spent
    assert counts.usage_of("msg_1") == Usage(input_tokens=5, output_tokens=99)
    assert counts.usage_of("msg_2") is None
    counts.transcript_check.said("msg_1", "Done.", thinking=False)
    assert counts.transcript_check.differences() == ()


def test_answers_are_forgotten_when_they_are_over() -> None:
    counts, sent = meter(), stream(text("x" * 200_000))
    tracemalloc.start()
    try:
        for _ in range(20):
            exchange = begin(counts)
            for event in sent:
                exchange.chunk(event)
            counts.end(exchange)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 1_000_000


ZEROS = b'data: {"type": "message_delta", "usage": {"output_tokens": 0}}\n\n'


@pytest.mark.parametrize("usage", [None, [1], {}, {"input_tokens": 5}, {"output_tokens": -1}])
def test_an_answer_that_does_not_say_what_it_used_costs_a_guess(usage: object) -> None:
    counts = meter(budget_usd=0.001)
    exchange = begin(counts)
    exchange.chunk(sse({"type": "message_start", "message": {"id": "msg_1", "model": 5, "usage": usage}}) * 100)
    assert counts.cost_usd < 0.001
    counts.end(exchange)
    (used,) = counts.usage().models.values()
    assert used.cost_usd >= 0.001
    assert not used.cost_known
    assert counts.exhausted.is_set()


def failed(status: int) -> Callable[[MeteredExchange], None]:
    return lambda exchange: exchange.start(status)


def silent(exchange: MeteredExchange) -> None:
    exchange.heard_at -= 30
    exchange.is_left = True


def answered(exchange: MeteredExchange) -> None:
    for event in stream(text("Done.")):
        exchange.chunk(event)


@pytest.mark.parametrize(
    ("ends", "error"),
    [
        ([answered], None),
        ([failed(500), answered], None),
        ([answered, failed(500)], "500"),
        ([answered, failed(529)], "529"),
        ([failed(429)], "429"),
        ([failed(401)], None),
        ([answered, silent], "connection"),
        ([lambda exchange: exchange.chunk(b"<html>Hello</html>")], "connection"),
        ([lambda exchange: setattr(exchange, "is_left", True)], None),
        ([], None),
    ],
)
def test_the_api_failed_at_the_end_where_its_last_answer_did(
    ends: list[Callable[[MeteredExchange], None]], error: str | None
) -> None:
    counts = meter()
    for end in ends:
        exchange = begin(counts)
        end(exchange)
        counts.end(exchange)
    asked = call(body(PROMPT))
    counts.end(counts.begin(Call("/v1/messages/count_tokens", asked.headers, asked.raw_body, asked.body)))
    assert counts.failure_at_end(30) == error
    assert counts.failure_at_end(1000) == (None if silent in ends else error)


def test_a_sub_agent_is_lost_only_where_the_api_failed_its_last_request() -> None:
    counts, asked = meter(), call(body(PROMPT))
    ends = {"": [500], "mended": [500, 200], "lost": [200, 529], "refused": [400]}
    for agent, status in ((agent, each) for agent, statuses in ends.items() for each in statuses):
        headers = [*asked.headers, *([(b"x-claude-code-agent-id", agent.encode())] if agent else [])]
        exchange = counts.begin(Call(asked.path, headers, asked.raw_body, asked.body))
        exchange.start(status)
        counts.end(exchange)
    assert counts.usage().lost_agents == 1


@pytest.mark.parametrize("answer", [b"<html>Hello</html>", b'{"content": ', b"data: nonsense\n\n", ZEROS])
def test_an_answer_that_cannot_be_read_counts_as_spent(answer: bytes) -> None:
    counts = meter(budget_usd=0.001)
    exchange = begin(counts)
    exchange.chunk(answer * 100)
    counts.end(exchange)
    assert counts.cost_usd == 0
    assert counts.exhausted.is_set()


STARTED: dict[str, Any] = {"type": "message_start", "message": {"id": "msg_1", "usage": {}}}
ERROR: dict[str, Any] = {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}


def test_what_an_answer_cost_before_an_error_in_it_is_estimated() -> None:
    counts = meter(budget_usd=0.0001)
    exchange = begin(counts)
    exchange.chunk(sse(STARTED) + sse({"type": "ping", "padding": "x" * 1000}) + sse(ERROR))
    counts.end(exchange)
    assert counts.usage().errors == {"529": 1}
    assert counts.cost_usd == 0
    assert counts.is_spent


@pytest.mark.parametrize(
    "answer", [wire.write(ERROR), b'{"error": {"type": "overloaded_error"}}', b'{"error": "busy"}']
)
def test_an_error_with_a_good_status_is_one_and_costs_nothing(answer: bytes) -> None:
    counts = meter(budget_usd=1e-9)
    exchange = begin(counts)
    exchange.chunk(answer)
    counts.end(exchange)
    assert counts.usage().errors == {"529" if b"overloaded" in answer else "500": 1}
    assert counts.failure_at_end(30) in {"529", "500"}
    assert not counts.is_spent


@pytest.mark.parametrize("used", [{}, {"input_tokens": "1000"}, {"input_tokens": -1}])
def test_an_answer_that_counts_only_its_output_has_an_input_all_the_same(used: dict[str, Any]) -> None:
    counts, request = meter(), body(said("x" * 40_000))
    exchange = begin(counts, request)
    exchange.chunk(sse({"type": "message_start", "message": {"id": "msg_1", "usage": used}}))
    exchange.chunk(sse({"type": "message_delta", "usage": {"output_tokens": 50}}))
    counts.end(exchange)
    assert counts.cost_usd == pytest.approx((len(call(request).raw_body) // 4 * 2 + 50 * 10) / 1e6)
    assert not counts.usage().models["claude-sonnet-5-5"].cost_known


@pytest.mark.parametrize("limit", ["32000", 32000.5, None, -1])
def test_an_estimate_has_no_limit_that_only_the_api_can_read(limit: object) -> None:
    counts = meter()
    exchange = begin(counts, body(PROMPT, max_tokens=limit))
    exchange.chunk(b"x" * 40_000)
    exchange.is_left = True
    counts.end(exchange)
    assert exchange.estimated_usd > 10_000 * 10 / 1e6
