"""A model that has been talked into everything."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.hostile.action import Action
from tests.support.scripted_api import ApiRequest, Message, Reply, text

MODEL = "claude-sonnet-5-5"


TOGETHER = 8
"""Scripts that one call of Bash runs, one after the other: a session of a hundred calls is slow."""


class Model:
    """One message per call of a tool, then the end."""

    def __init__(self, actions: Sequence[Action], facts: Mapping[str, str], last_words: str = "Done.") -> None:
        self._actions, self._facts, self._last_words = actions, facts, last_words

    def answer(self, request: ApiRequest) -> Reply:
        if request.body.get("model") != MODEL:
            return text("Another model.")
        said = sum(message["role"] == "assistant" for message in request.messages)
        calls = list(self._calls(_workspace(request)))
        return calls[said] if said < len(calls) else text(self._last_words)

    def _calls(self, workspace: str) -> Iterator[Message]:
        scripts: list[str] = []
        for action in self._actions:
            scripts += [action.id] if action.script else []
            if scripts and (action.tools or len(scripts) == TOGETHER):
                yield _bash(scripts)
                scripts = []
            for number, tool in enumerate(action.tools):
                places = {**self._facts, "workspace": workspace}
                given = {name: value.format(**places) for name, value in tool.input.items()}
                yield _call(f"toolu_{action.id}_{number}", tool.name, given)
        if scripts:
            yield _bash(scripts)


def _bash(ids: Sequence[str]) -> Message:
    command = {"command": f"sh attacks/act {' '.join(ids)}", "timeout": 240_000}
    return _call(f"toolu_{'-'.join(ids)}_0", "Bash", command)


def _call(ident: str, name: str, given: dict[str, Any]) -> Message:
    return Message(({"type": "tool_use", "id": ident, "name": name, "input": given},), stop_reason="tool_use")


def _workspace(request: ApiRequest) -> str:
    found = re.search(r"working directory: ([^\\\"\n]+)", request.raw_body.decode("utf-8", "replace"))
    return found[1].strip() if found else "/nowhere"
