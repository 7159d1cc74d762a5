import json
from typing import Any

import pytest

from tests.unit.model_proxy.requests import (
    ENVIRONMENT,
    SECRET,
    STATUS,
    body,
    called,
    fingerprint,
    noted,
    returned,
    said,
)

PROMPT = said("Add a route.")
CALL = called("Bash", command="ls /ws")


def result(output: str) -> dict[str, Any]:
    return body(PROMPT, CALL, returned(output))


def differing(one: dict[str, Any], other: dict[str, Any]) -> set[str]:
    """Names of the parts in which two requests differ."""
    first, second = fingerprint(one), fingerprint(other)
    assert (first.digest == second.digest) == (first == second)
    return {name for name in first.parts if first.parts[name] != second.parts[name]}


@pytest.mark.parametrize(
    "other",
    [
        body(PROMPT, CALL, returned("ok"), metadata={"user_id": "u2"}),
        body(PROMPT, CALL, returned("ok"), stream=False, max_tokens=64000),
        body(PROMPT, CALL, returned("ok"), system=[{"type": "text", "text": "Be good."}]),
        body(PROMPT, CALL, returned("ok"), system="Be good."),
        body({**PROMPT, "content": "Add a route."}, CALL, returned([{"type": "text", "text": "ok"}])),
        body(said(STATUS, "Add a route."), CALL, returned("ok")),
        body(PROMPT, noted(ENVIRONMENT, "Today's date is 2026-01-02."), CALL, returned("ok")),
        body(
            {"role": "user", "content": [{"type": "text", "text": "Add a route.", "cache_control": {"type": "x"}}]},
            CALL,
            returned("ok"),
        ),
    ],
    ids=["ids", "no stream", "billing line", "string", "string content", "git status", "environment and date", "cache"],
)
def test_what_varies_between_machines_and_days_does_not_count(other: dict[str, Any]) -> None:
    assert differing(result("ok"), other) == set()


def test_the_same_session_in_another_folder_is_the_same() -> None:
    text = json.dumps(body(said("Look at /ws/a."), noted(ENVIRONMENT), CALL, returned("/ws/a\n/home/zelda/x")))
    elsewhere = json.loads(text.replace("/ws", "/tmp/b c/ws").replace("/home/zelda", "/root/zelda"))
    here = fingerprint(json.loads(text))
    assert fingerprint(elsewhere, {"workspace": "/tmp/b c/ws", "home": "/root/zelda"}) == here
    assert here.said.endswith("{{workspace}}/a\n{{home}}/x")


@pytest.mark.parametrize(
    ("other", "parts"),
    [
        (body(said("Add a page."), CALL, returned("ok")), {"history"}),
        (body(PROMPT, called("Bash", command="ls"), returned("ok")), {"history"}),
        (body(PROMPT, CALL, returned("not ok")), {"last"}),
        (body(PROMPT, CALL, returned("ok", is_error=True)), {"last"}),
        (body(PROMPT, CALL, returned("ok"), said("And hurry.")), {"last"}),
        (body(PROMPT, noted("- foo: Foo things"), CALL, returned("ok")), {"context"}),
        (body(PROMPT, CALL, returned("ok"), system="Be bad."), {"system"}),
        (body(PROMPT, CALL, returned("ok"), tools=[]), {"tools"}),
        (body(PROMPT, CALL, returned("ok"), output_config={"effort": "high"}), {"options"}),
    ],
    ids=["prompt", "call", "result", "error flag", "words", "skills", "system prompt", "tools", "options"],
)
def test_every_other_change_is_in_the_part_it_belongs_to(other: dict[str, Any], parts: set[str]) -> None:
    assert differing(result("ok"), other) == parts


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("3 passed in 0.03s", "3 passed in 1.2s"),
        ("[main abd758e] first", "[main 1234567] first"),
        ("Date:   Sat Nov 21 05:12:38 2026 +0000", "Date:   Tue Jan 5 15:12:00 2027 -0130"),
        ("Sat Nov 21 05:12:38 UTC 2026", "Sun Nov 22 11:00:00 CET 2026"),
        ("at 2026-11-21T05:12:38.123Z", "at 2027-01-02 10:00:00+01:00"),
        (
            "total 20\n-rw-r--r-- 1 root root   16 Nov 21 05:12 CLAUDE.md",
            "total 8\n-rw-rw-r--. 1 me staff 16 Jan  2  2027 CLAUDE.md",
        ),
        (
            "platform linux -- Python 3.11.7, pytest-9.2.0\nplugins: xdist-3.8.0",
            "platform darwin -- Python 3.13.1, pytest-8.4.1\nplugins: cov-1.0.0",
        ),
        ("<Route object at 0x7f3a2b4c>", "<Route object at 0x10ffee>"),
        ("listening on 127.0.0.1:43123", "listening on localhost:80"),
        ("wrote /tmp/pytest-of-root/x-1", "wrote /var/folders/a1/b_c/T/x"),
        ("agentId: a261dd97fa5c6f07d\nduration_ms: 2998", "agentId: ad4659d5a9c57cb76\nduration_ms: 4"),
        ("git version 2.43.0", "git version 2.50.1"),
        ("pid 123 started", "pid 99 started"),
    ],
)
def test_circumstances_in_a_tools_output_do_not_count(one: str, other: str) -> None:
    assert differing(result(one), result(other)) == set()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("3 passed in 0.03s", "2 passed, 1 failed in 0.03s"),
        ("-rw-r--r-- 1 root root 16 Nov 21 05:12 a.md", "-rw-r--r-- 1 root root 16 Nov 21 05:12 b.md"),
        ("[main abd758e] first", "[main abd758e] second"),
        ("status 200", "status 404"),
        ("12 rows", "13 rows"),
    ],
)
def test_what_a_tool_found_out_counts(one: str, other: str) -> None:
    assert differing(result(one), result(other)) == {"last"}


def test_the_circumstances_of_a_prompt_do_count() -> None:
    assert differing(body(said("Wait 5 seconds.")), body(said("Wait 9 seconds."))) == {"last"}


def test_parallel_results_are_the_same_in_any_order() -> None:
    both = [returned("a", call="toolu_1"), returned("b", call="toolu_2")]
    swapped = [returned("b", call="toolu_1"), returned("a", call="toolu_2")]
    assert differing(body(PROMPT, CALL, *both), body(PROMPT, CALL, *reversed(both))) == set()
    assert differing(body(PROMPT, CALL, *both), body(PROMPT, CALL, *swapped)) == {"last"}


def test_notes_are_a_set_of_paragraphs_wherever_they_stand() -> None:
    early = body(PROMPT, noted("Skills: a", "Agents: b"), CALL, returned("ok"))
    late = body(PROMPT, noted("Agents: b"), CALL, returned("ok"), noted("Skills: a"))
    assert differing(early, late) == set()


def test_ids_in_the_news_of_a_background_agent_do_not_count() -> None:
    news = "<task-notification>\n<task-id>{}</task-id>\n<result>{}</result>\n<duration_ms>{}</duration_ms>"
    one, other = news.format("a261dd97fa5c6f07d", "4", 12), news.format("ad4659d5a9c57cb76", "4", 9)
    assert differing(body(PROMPT, said(one)), body(PROMPT, said(other))) == set()
    assert differing(body(PROMPT, said(one)), body(PROMPT, said(one.replace(">4<", ">5<")))) == {"last"}


def test_what_was_said_is_readable_short_and_without_secrets() -> None:
    found = fingerprint(body(PROMPT, CALL, returned("x" * 9000 + f" key {SECRET}", is_error=True), said("Go on.")))
    assert found.turn == 1
    assert found.said.startswith("[result of toolu_1, an error]\nxxx")
    assert found.said.endswith("key ***\nGo on.")
    assert len(found.said) < 4100


@pytest.mark.parametrize(
    "nonsense",
    [
        {},
        {"messages": None, "tools": 7, "system": 1, "model": None},
        {"messages": ["x", 1, {"role": "user"}, {"role": "user", "content": 5}, {"role": "assistant"}]},
        {"messages": [{"role": "user", "content": [None, {"type": "tool_result"}, {"type": "text"}, {"a": "\ud83d"}]}]},
        {"messages": [{"role": "user", "content": [{"type": "image", "source": {"data": "AAAA"}}]}]},
    ],
)
def test_any_json_has_a_fingerprint(nonsense: dict[str, Any]) -> None:
    assert len(fingerprint(nonsense).digest) == 64
