"""Messages of the real Agent SDK, as its own parser makes them, become records."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest
from claude_agent_sdk import (
    AssistantMessage,
    HookEventMessage,
    ResultMessage,
    SystemMessage,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)

from tests.support.scripted_replies import Message, Tokens
from tests.unit.execution.test_environment import request
from tests.unit.model_proxy.test_meter import begin, stream
from zelda_ci.domain.session import (
    Denied,
    Ended,
    HookRan,
    Noticed,
    ResponseEnded,
    Retried,
    SessionImage,
    SessionRecord,
    Started,
    ToolReturned,
    Usage,
)
from zelda_ci.execution.messages import Translator
from zelda_ci.redact import Redactor, Secret

SECRET = "of-the-user-0815"
MODEL = "claude-sonnet-5-5"
INIT = {
    "session_id": "s",
    "claude_code_version": "2.1.329",
    "model": MODEL,
    "permissionMode": "default",
    "tools": ["Bash"],
    "mcp_servers": [{"name": "docs", "status": "pending", "source": "project"}],
    "skills": ["greet"],
    "agents": [{"name": "reviewer"}],
    "slash_commands": ["clear"],
}


class Conversation:
    """A translator with a clock that ticks once per reading."""

    def __init__(self) -> None:
        ticks: Iterator[float] = iter(range(1, 1000))
        asked = request()
        self.meter = asked.meter
        self._translator = Translator(asked, Redactor([Secret(SECRET)]), lambda: next(ticks))

    def __call__(self, *messages: object) -> list[SessionRecord]:
        return [record for message in messages for record in self._translator.translate(message)]


@pytest.fixture
def hear() -> Conversation:
    return Conversation()


def assistant(*blocks: Any, **fields: Any) -> AssistantMessage:
    return AssistantMessage(content=list(blocks), **{"model": MODEL, "message_id": "msg_1", **fields})


def system(subtype: str, **data: Any) -> SystemMessage:
    return SystemMessage(subtype=subtype, data={"type": "system", "subtype": subtype, "uuid": "u", **data})


def result(**fields: Any) -> ResultMessage:
    basics = {"subtype": "success", "duration_ms": 1, "duration_api_ms": 1500, "is_error": False, "num_turns": 1}
    return ResultMessage(**{**basics, "session_id": "s", **fields})


def test_text_thinking_and_tool_calls_are_records_of_one_message(hear: Conversation) -> None:
    call = ToolUseBlock(id="toolu_1", name="Bash", input={"command": "ls"})
    assert hear(assistant(ThinkingBlock("", "sig"))) == []
    records = hear(assistant(ThinkingBlock("hm", "sig"), TextBlock("I look."), call, parent_tool_use_id="toolu_0"))
    thread = {"at": 2, "parent_tool_call_id": "toolu_0", "message_id": "msg_1", "model": MODEL}
    assert [record.model_dump(exclude={"type"}) for record in records] == [
        {**thread, "text": "hm", "thinking": True},
        {**thread, "text": "I look.", "thinking": False},
        {**thread, "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}},
    ]


@pytest.mark.parametrize(
    ("content", "output"),
    [
        ("plain", "plain"),
        (None, ""),
        ([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}], "one\ntwo"),
        (
            [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA" * 100}}],
            "[image: image/png, 300 bytes]",
        ),
        ([{"type": "tool_reference", "tool_name": "WebFetch"}], '{"type": "tool_reference", "tool_name": "WebFetch"}'),
        ([], ""),
    ],
)
def test_tool_results_become_text(hear: Conversation, content: Any, output: str) -> None:
    (returned,) = hear(UserMessage(content=[ToolResultBlock("toolu_1", content, None)]))
    assert isinstance(returned, ToolReturned)
    assert (returned.id, returned.output, returned.is_error) == ("toolu_1", output, False)


def test_a_response_is_recorded_once_with_the_tokens_that_the_meter_has_of_it(hear: Conversation) -> None:
    words = Message(({"type": "text", "text": "All."},), tokens=Tokens(7, 42, cache_read=90), id="msg_1")
    first, *rest = stream(words)
    exchange = begin(hear.meter)
    exchange.chunk(first)
    back = UserMessage(content=[ToolResultBlock("toolu_1", "ok")])
    records = hear(assistant(TextBlock("All."), usage={"output_tokens": 1}), back)
    for chunk in rest:
        exchange.chunk(chunk)
    records += hear(back, assistant(TextBlock("Other."), message_id="msg_2"), result())
    names = [type(record).__name__ for record in records]
    assert names == ["AssistantSaid", "ToolReturned", "ResponseEnded", "ToolReturned", "AssistantSaid", "Ended"]
    assert isinstance(records[2], ResponseEnded)
    assert records[2].usage == Usage(input_tokens=7, output_tokens=42, cache_read_tokens=90)


def test_the_init_message_says_what_was_loaded_and_is_repeated_only_with_news(hear: Conversation) -> None:
    connected = {**INIT, "mcp_servers": [{"name": "docs", "status": "connected"}]}
    records = hear(system("init", **INIT), system("init", **INIT), system("init", **connected))
    first, second = records
    assert isinstance(first, Started)
    assert isinstance(second, Started)
    assert first.model_dump(exclude={"type", "at"}) == {
        "session_id": "s",
        "cli_version": "2.1.329",
        "model": MODEL,
        "permission_mode": "default",
        "tools": ("Bash",),
        "mcp_servers": ({"name": "docs", "status": "pending"},),
        "skills": ("greet",),
        "agents": ("reviewer",),
        "slash_commands": ("clear",),
    }
    assert second.mcp_servers[0].status == "connected"


def test_retries_hooks_and_denials_have_records_of_their_own(hear: Conversation) -> None:
    hook = {"hook_name": "PreToolUse:Bash", "hook_event": "PreToolUse", "outcome": "error"}
    records = hear(
        system("api_retry", attempt=2, error_status=529, error="overloaded", retry_delay_ms=600),
        system("api_retry", attempt=1, error_status=None, error="unknown"),
        HookEventMessage(subtype="hook_started", hook_event_name="PreToolUse", data=hook),
        HookEventMessage(
            subtype="hook_response",
            hook_event_name="PreToolUse",
            data={**hook, "stdout": "out\n", "stderr": "err\n", "output": "err\n", "exit_code": 2},
        ),
        system("permission_denied", tool_name="Write", tool_use_id="toolu_1", message="not granted"),
    )
    assert [record.model_dump(exclude={"type", "at"}) for record in records] == [
        {"attempt": 2, "status": 529, "error": "overloaded", "delay_seconds": 0.6},
        {"attempt": 1, "status": None, "error": "unknown", "delay_seconds": 0.0},
        {
            "name": "PreToolUse:Bash",
            "event": "PreToolUse",
            "outcome": "error",
            "output": "out\nerr\n",
            "exit_code": 2,
        },
        {"tool": "Write", "tool_call_id": "toolu_1", "reason": "not granted"},
    ]
    assert [type(record) for record in records] == [Retried, Retried, HookRan, Denied]


def test_a_denial_that_only_the_result_tells_of_has_the_tools_own_words_for_a_reason(hear: Conversation) -> None:
    refused = [{"tool_name": "Bash", "tool_use_id": f"toolu_{number}"} for number in (1, 2, 3)]
    records = hear(
        system("permission_denied", tool_name="Bash", tool_use_id="toolu_1", message="not granted"),
        UserMessage(content=[ToolResultBlock("toolu_2", "hook error: not that", is_error=True)]),
        result(permission_denials=refused),
        result(permission_denials=refused),
    )
    denials = [(record.tool_call_id, record.reason) for record in records if isinstance(record, Denied)]
    assert denials == [
        ("toolu_1", "not granted"),
        ("toolu_2", "hook error: not that"),
        ("toolu_3", "refused by permissions or by a hook"),
    ]


@pytest.mark.parametrize("output", ["PreToolUse:Bash hook error: no", "Permission to use Bash with x has been denied."])
def test_a_refusal_is_recorded_where_it_is_answered(hear: Conversation, output: str) -> None:
    """Of a sub-agent's calls the result does not tell, and a session that is ended early has none."""
    refused = UserMessage(
        content=[ToolResultBlock("toolu_1", output, is_error=True), ToolResultBlock("toolu_2", output)]
    )
    again = result(permission_denials=[{"tool_name": "Bash", "tool_use_id": "toolu_1"}])
    denials = [record for record in hear(refused, again) if isinstance(record, Denied)]
    assert [(it.tool, it.tool_call_id, it.reason) for it in denials] == [("Bash", "toolu_1", output)]


def test_a_result_keeps_what_the_verdict_and_the_bill_need(hear: Conversation) -> None:
    usage = {"inputTokens": 1, "outputTokens": 2, "cacheReadInputTokens": 3, "cacheCreationInputTokens": 4}
    (ended,) = hear(
        result(
            subtype="error_max_turns",
            is_error=True,
            num_turns=3,
            total_cost_usd=0.5,
            model_usage={
                MODEL: {**usage, "costUSD": 0.4, "costBasis": "list"},
                "claude-unheard-of": {"costUSD": 0.1, "costBasis": "unknown", "inputTokens": 1.5},
            },
            errors=["Reached maximum number of turns (2)"],
            terminal_reason="max_turns",
            stop_reason="tool_use",
        )
    )
    counted = {"input_tokens": 1, "output_tokens": 2, "cache_read_tokens": 3, "cache_write_tokens": 4}
    nothing = dict.fromkeys(counted, 0)
    assert isinstance(ended, Ended)
    assert ended.model_dump(exclude={"type", "at"}) == {
        "subtype": "error_max_turns",
        "is_error": True,
        "terminal_reason": "max_turns",
        "stop_reason": "tool_use",
        "api_error_status": None,
        "turns": 3,
        "api_seconds": 1.5,
        "cost_usd": 0.5,
        "model_usage": {
            MODEL: {**counted, "cost_usd": 0.4, "cost_known": True},
            "claude-unheard-of": {**nothing, "cost_usd": 0.1, "cost_known": False},
        },
        "text": None,
        "errors": ("Reached maximum number of turns (2)",),
    }


@pytest.mark.parametrize(
    ("message", "kind", "text"),
    [
        (system("status", status="compacting"), "status", '{"status": "compacting"}'),
        (system("status", status=None, compact_result="success"), "status", '{"compact_result": "success"}'),
        (system("informational", content="Blank prompt", level="warning"), "informational", "Blank prompt"),
        (system("model_fallback", to="x"), "model_fallback", '{"to": "x"}'),
        (system("empty"), "empty", ""),
        (KeyError("usage"), "unreadable", "KeyError: 'usage'"),
        (ThinkingBlock("hm", "sig"), "ThinkingBlock", '{"thinking": "hm", "signature": "sig"}'),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_all_else_but_what_drives_a_display_is_noted_and_never_fatal(
    hear: Conversation, message: object, kind: str, text: str
) -> None:
    silent = [system("session_state_changed", state="idle"), system("status", status="requesting")]
    silent += [system("thinking_tokens", estimated_tokens=3), system("background_tasks_changed", tasks=[])]
    (noticed,) = hear(*silent, message)
    assert isinstance(noticed, Noticed)
    assert (noticed.kind, noticed.text) == (kind, text)


def test_no_record_holds_a_secret(hear: Conversation) -> None:
    records = hear(
        assistant(TextBlock(SECRET), ToolUseBlock(id="t", name=SECRET, input={SECRET: [SECRET]}), message_id=SECRET),
        UserMessage(content=[ToolResultBlock(SECRET, [{"type": "text", "text": SECRET}], is_error=True)]),
        system("odd", words=SECRET),
        system("init", **{**INIT, "skills": [SECRET], "mcp_servers": [{"name": SECRET, "status": SECRET}]}),
        system("api_retry", error=SECRET),
        result(result=SECRET, errors=[SECRET], permission_denials=[{"tool_use_id": SECRET}], model_usage={SECRET: {}}),
        ValueError(SECRET),
    )
    assert len(records) == 9
    assert SECRET not in "".join(record.model_dump_json() for record in records)


IMAGE = SessionImage(media_type="image/png", size_bytes=3, sha256="0" * 64)


def image(data: object, media_type: object = "image/png") -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}


def test_images_of_a_result_are_kept_and_named_in_order() -> None:
    given: list[str] = []

    def keep(encoded: str) -> SessionImage | str:
        given.append(encoded)
        return IMAGE if encoded == "AAAA" else "its base64 is damaged"

    translator = Translator(dataclasses.replace(request(), keep_image=keep), Redactor(), lambda: 1)
    content = [{"type": "text", "text": "Seen:"}, image("AAAA"), image("broken"), image(7), image("AAAA")]
    (returned,) = translator.translate(UserMessage(content=[ToolResultBlock("toolu_1", content)]))
    assert isinstance(returned, ToolReturned)
    assert returned.images == (IMAGE, IMAGE)
    assert given == ["AAAA", "broken", "AAAA"]
    assert returned.output.splitlines() == [
        "Seen:",
        "[image: image/png, 3 bytes]",
        "[image: image/png, 4 bytes]",
        "[the image was not kept: its base64 is damaged]",
        "[image]",
        "[image: image/png, 3 bytes]",
    ]
