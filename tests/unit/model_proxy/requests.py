"""Bodies of Messages API requests, as Claude Code sends them."""

import json
from typing import Any

from zelda_ci.model_proxy.cassettes import RecordedRequest, SessionTexts
from zelda_ci.model_proxy.wire import ApiAnswer, Call, once
from zelda_ci.redact import Redactor, Secret

PLACES = {"workspace": "/ws", "home": "/home/zelda"}
SECRET = "hunter2hunter2"

ENVIRONMENT = "# Environment\nYou are here:\n - Primary working directory: /ws\n - OS Version: Linux 6.1"
STATUS = "<system-reminder>\nUse this:\n# gitStatus\nRecent commits:\nabd758e first\n</system-reminder>"


def said(*texts: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text} for text in texts]}


def noted(*paragraphs: str) -> dict[str, Any]:
    return {"role": "system", "content": "\n\n".join(paragraphs)}


def called(name: str, **tool_input: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": name, "input": tool_input}]}


def returned(output: Any, *, call: str = "toolu_1", is_error: bool = False) -> dict[str, Any]:
    return {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": call, "content": output, "is_error": is_error}],
    }


def body(*messages: dict[str, Any], **options: Any) -> dict[str, Any]:
    return {
        "model": "claude-sonnet-5-5",
        "system": [{"type": "text", "text": "x-anthropic-billing-header: cc=1"}, {"type": "text", "text": "Be good."}],
        "tools": [{"name": "Bash", "description": "in /ws", "input_schema": {}}],
        "metadata": {"user_id": "u1"},
        "max_tokens": 32000,
        "stream": True,
        "messages": list(messages),
        **options,
    }


def call(request: dict[str, Any], agent: str | None = None) -> Call:
    headers = [(b"x-claude-code-agent-id", agent.encode())] if agent else []
    return Call("/v1/messages?beta=true", headers, json.dumps(request).encode(), request)


def fingerprint(
    request: dict[str, Any], places: dict[str, str] | None = None, agent: str | None = None
) -> RecordedRequest:
    return SessionTexts(places or PLACES, Redactor([Secret(SECRET)])).fingerprint(call(request, agent))


def answered(status: int, **headers: str) -> ApiAnswer:
    named = [(name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in headers.items()]
    return ApiAnswer(status, named, once(b""))
