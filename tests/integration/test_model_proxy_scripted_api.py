"""The scripted API itself: a script that does not fit its session must fail the test."""

import json
import re
import urllib.error
import urllib.request
from typing import Any

import pytest

from tests.support.patience import PATIENCE
from tests.support.scripted_api import ScriptedApi, text


def ask(api: ScriptedApi, agent: str | None = None) -> Any:
    headers = {"x-claude-code-agent-id": agent} if agent else {}
    request = urllib.request.Request(f"{api.url}/v1/messages", json.dumps({"messages": []}).encode(), headers)
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(request, timeout=PATIENCE) as answer:
        return json.load(answer)["content"][0]["text"]


def ask_in_vain(api: ScriptedApi) -> None:
    with pytest.raises(urllib.error.HTTPError, match="400"):
        ask(api)


def fails_with(words: str) -> Any:
    return pytest.raises(AssertionError, match=f"^{re.escape(words)}$")


def test_each_thread_has_its_own_script() -> None:
    with ScriptedApi([text("main 1"), text("main 2")], agents=[[text("first")], [text("second")]]) as api:
        assert [ask(api), ask(api, "x"), ask(api, "y"), ask(api)] == ["main 1", "first", "second", "main 2"]
    assert api.unused == 0


def test_a_request_beyond_the_script_is_refused_and_fails_the_test() -> None:
    api = ScriptedApi([text("x")])
    with fails_with("the script of the main thread is used up: more than 1 requests"), api:
        ask(api)
        ask_in_vain(api)
        ask_in_vain(api)
