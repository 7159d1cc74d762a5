"""A model that has been talked into everything."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tests.hostile.action import Action
from tests.support.scripted_api import ApiRequest, Message, Reply, text

MODEL = "claude-sonnet-5-5"


class Model:
    """One message per call of a tool, then the end."""

    def __init__(self, actions: Sequence[Action], facts: Mapping[str, str], last_words: str = "Done.") -> None:
        self._actions, self._facts, self._last_words = actions, facts, last_words

    def answer(self, request: ApiRequest) -> Reply:
        if request.body.get("model") != MODEL:
            return text("Another model.")
        said = sum(message["role"] == "assistant" for message in request.messages)
        calls = [call for action in self._actions for call in self._messages(action, _workspace(request))]
        return calls[said] if said < len(calls) else text(self._last_words)

    def _messages(self, action: Action, workspace: str) -> list[Message]:
        calls: list[tuple[str, dict[str, Any]]] = []
        if action.script:
            calls.append(("Bash", {"command": f"sh attacks/act {action.id}", "timeout": 30_000}))
        places = {**self._facts, "workspace": workspace}
        for tool in action.tools:
            given = {name: value.format(**places) for name, value in tool.input.items()}
            calls.append((tool.name, given))
        return [_call(f"toolu_{action.id}_{number}", *call) for number, call in enumerate(calls)]


def _call(ident: str, name: str, given: dict[str, Any]) -> Message:
    return Message(({"type": "tool_use", "id": ident, "name": name, "input": given},), stop_reason="tool_use")


def _workspace(request: ApiRequest) -> str:
    found = re.search(r"working directory: ([^\\\"\n]+)", request.raw_body.decode("utf-8", "replace"))
    return found[1].strip() if found else "/nowhere"
