import json
from typing import Any

import pytest

from tests.support.cases import for_each
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
from zelda_ci.model_proxy.cassettes import without_circumstances

PROMPT = said("Add a route.")
CALL = called("Bash", command="ls /ws")


def result(output: str) -> dict[str, Any]:
    return body(PROMPT, CALL, returned(output))


def differing(one: dict[str, Any], other: dict[str, Any]) -> set[str]:
    """Names of the parts in which two requests differ."""
    first, second = fingerprint(one), fingerprint(other)
    return {*first.differences(second), *(["last message"] if first.asked != second.asked else [])}


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
    assert here.last_message.endswith("{{zelda:workspace}}/a\n{{zelda:home}}/x")


@pytest.mark.parametrize(
    ("other", "parts"),
    [
        (body(PROMPT, CALL, returned("not ok")), {"last message"}),
        (body(PROMPT, CALL, returned("ok", is_error=True)), {"last message"}),
        (body(PROMPT, CALL, returned("ok"), said("And hurry.")), {"last message"}),
        (body(PROMPT, noted("- foo: Foo things"), CALL, returned("ok")), {"notes"}),
        (body(PROMPT, CALL, returned("ok"), system="Be bad."), {"system prompt"}),
        (body(PROMPT, CALL, returned("ok"), tools=[]), {"tools"}),
        (body(PROMPT, CALL, returned("ok"), output_config={"effort": "high"}), {"options"}),
    ],
    ids=["result", "error flag", "words", "skills", "system prompt", "tools", "options"],
)
def test_every_other_change_is_in_the_part_it_belongs_to(other: dict[str, Any], parts: set[str]) -> None:
    assert differing(result("ok"), other) == parts


@for_each(
    [
        ("3 passed in 0.03s", "3 passed in 1.2s"),
        ("Date:   Sat Nov 21 05:12:38 2026 +0000", "Date:   Tue Jan 5 15:12:00 2027 -0130"),
        ("Sat Nov 21 05:12:38 UTC 2026", "Sun Nov 22 11:00:00 CET 2026"),
        ("built November 21, 2026 at 5:12 AM", "built May 1, 2027 at 11:30:05 PM"),
        ("21 Nov 2026, 11/21/2026", "1 January 2027, 1/2/2027"),
        ("backup-20261121T051238Z.tar", "backup-20270102T110000Z.tar"),
        ("3F2504E0-4F89-11D3-9A0C-0305E82C3301", "AAAAAAAA-4F89-11D3-9A0C-0305E82C3301"),
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
        ("agentId: a261dd97fa5c6f07d\nduration_ms: 2998", "agentId: ad4659d5a9c57cb76\nduration_ms: 4"),
        ("git version 2.43.0", "git version 2.50.1"),
        ("  duration_ms: 0.505774", "  duration_ms: 1505.7"),
        ('{"duration": 0.5057741, "elapsed_ms": 505}', '{"duration": 12, "elapsed_ms": 99105}'),
        ('<testcase name="a" time="0.003"/>', '<testcase name="a" time="1.2"/>'),
        ("BUILD SUCCESSFUL in 5s", "BUILD SUCCESSFUL in 1m 12s"),
        ("real\t0m0.505s\nuser\t0m0.1s", "real\t1m10.5s\nuser\t0m10.123s"),
        ("\x1b[32m3 passed\x1b[0m in \x1b[33m0.12s\x1b[0m", "\x1b[32m3 passed\x1b[0m in \x1b[33m1.2s\x1b[0m"),
        ("  ✓ adds numbers", "  ✓ adds numbers (78ms)"),
        ('"Output":"ok\\t0.003s"', '"Output":"ok\\t1.3s"'),
        ("Time: 00:00.123, Memory: 6.00 MB", "Time: 01:10.004, Memory: 12.5 MB"),
        ("took 1.2e-05s", "took 3µs"),
        (
            "Output too large (105.9KB). Full output\nline\n0.12 and mo\n...\n</persisted-output>",
            "Output too large (106KB). Full output\nline\n0.1234 and\n...\n</persisted-output>",
        ),
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
        ("total 2.49", "total 2.50"),
        ("May 12 pass", "May 13 pass"),
        ("Mar 3 of 100", "Mar 4 of 100"),
        ("a.py:12:30", "a.py:12:31"),
        ("coverage: 57.14%", "coverage: 66.67%"),
        ("mean 0.333333333", "mean 0.333333334"),
        ("3 files changed, 5 insertions(+)", "3 files changed, 6 insertions(+)"),
        ("5 m wide", "6 m wide"),
        ("it took 10 percent, contained in 0.30", "it took 10 percent, contained in 0.31"),
    ],
)
def test_what_a_tool_found_out_counts(one: str, other: str) -> None:
    assert differing(result(one), result(other)) == {"last message"}


def test_the_circumstances_of_a_prompt_do_count() -> None:
    assert differing(body(said("Wait 5 seconds.")), body(said("Wait 9 seconds."))) == {"prompt", "last message"}


def test_parallel_results_are_the_same_in_any_order() -> None:
    both = [returned("a", call="toolu_1"), returned("b", call="toolu_2")]
    swapped = [returned("b", call="toolu_1"), returned("a", call="toolu_2")]
    assert differing(body(PROMPT, CALL, *both), body(PROMPT, CALL, *reversed(both))) == set()
    assert differing(body(PROMPT, CALL, *both), body(PROMPT, CALL, *swapped)) == {"last message"}


def test_the_order_in_which_servers_bring_their_tools_does_not_count() -> None:
    tools = [{"name": "mcp__a__x"}, {"name": "mcp__b__y"}]
    one = body(PROMPT, noted("These tools can be searched:\nmcp__a__x\nmcp__b__y"), tools=tools)
    pending = "The following MCP servers are still connecting\nb"
    other = body(PROMPT, noted("These tools can be searched:\nmcp__b__y\nmcp__a__x", pending), tools=tools[::-1])
    assert differing(one, other) == set()


def test_what_was_said_is_readable_and_without_secrets() -> None:
    found = fingerprint(body(PROMPT, CALL, returned(f"xxx key {SECRET}", is_error=True), said("~ Go on.")))
    assert found.turn == 1
    assert found.last_message == "[result of toolu_1, an error]\nxxx key ***\n~ Go on."


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
    assert fingerprint(nonsense) == fingerprint(nonsense)


def judged(*units: str, mark: str = "1a2b3c4d") -> dict[str, Any]:
    """What a judge is asked about a session of these pieces."""
    inner = "\n\n".join(f"[{mark} {unit}" for unit in units)
    return body(said(f'<evidence-{mark * 4} kind="transcript">\n{inner}\n</evidence-{mark * 4}>'))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("with ID: b3odubl7b. Output", "with ID: bz81kq0pw. Output"),
        (
            "is in {{zelda:tmp}}/claude-0/x/tasks/b3odubl7b.output",
            "is in {{zelda:tmp}}/claude-0/x/tasks/bz81kq0pw.output",
        ),
        ("- mcp__a [mcpServer]: a (it connected late: 3.1 s after the start)", "- mcp__a [mcpServer]: a"),
    ],
)
def test_what_the_judge_sees_of_ids_and_of_late_servers_does_not_count(one: str, other: str) -> None:
    assert differing(judged(f"turn 1]\n{one}"), judged(f"turn 1]\n{other}")) == set()


# Each took seconds to minutes: the square of its length.
LONG = {
    "a list of numbers": "[" + ",".join(str(number % 1000) for number in range(5000)) + "]",
    "digits with commas": "1," * 6_000,
    "durations that do not end": "1d," * 5_000,
    "words with hyphens": "a-" * 8_000,
    "one line": "deadbeef " * 10_000,
    "blanks": " " * 120_000 + "x",
    "empty lines": "\n" * 120_000 + "x",
    "sizes that do not end": "Output too large (" * 4_000,
    "servers that do not end": " (it connected late:" * 4_000,
}


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_the_time_for_circumstances_grows_with_the_text_and_not_with_its_square(text: str) -> None:
    assert without_circumstances(text)  # the limit is that of every unit test
