"""The context that a session's requests give its model: lines of CLAUDE.md files, tools, listings of what to call."""

import json
import re
from collections.abc import Mapping
from typing import Any

from zelda_ci.model_proxy.answer import dicts, texts
from zelda_ci.model_proxy.wire import Call

# What Claude Code lists for its model, and the names of tools that the model finds by a search.
LISTED = ("available for use with the Skill tool", "agent types for the Agent tool", "available via ToolSearch")
MAX_LISTINGS, MAX_TOOLS = 100, 5000
_DEFERRED = re.compile(r"^mcp__[\w-]+$", re.MULTILINE)


class LoadedContext:
    """The context of one run's model, as its requests have it."""

    def __init__(self) -> None:
        self.expected: frozenset[str] = frozenset()
        """Lines of the project's CLAUDE.md files: a session's first request holds at least one of them."""
        self.listings: dict[str, None] = {}
        """Texts that list what the model can call, in their order."""
        self.tools: set[str] = set()
        """Names of the model's tools, and of those that wait behind a search."""
        self.first: Call | None = None
        """The first request with tools, where the model is not asked."""
        self.definitions: dict[str, dict[str, Any]] = {}
        """Tools by name, where the model is not asked: also of those that wait behind a search."""
        self._openings: list[bool] = []
        """Of the requests that open a conversation with tools, whether they held an expected line."""

    @property
    def lacks_memory(self) -> bool:
        """Whether the session asked its model without a line of the project's CLAUDE.md files."""
        return bool(self.expected and self._openings) and not any(self._openings)

    def keep(self, call: Call) -> None:
        """Keep a request of a session whose model is not asked."""
        self.definitions |= {str(tool.get("name")): tool for tool in dicts(call.body.get("tools"))}
        if not (call.counts_tokens or self.first) and call.body.get("tools"):
            self.first = call
            self.request(call.body)

    def request(self, body: Mapping[str, Any]) -> None:
        """Note what a request tells the model."""
        messages = dicts(body.get("messages"))
        if len(self.tools) < MAX_TOOLS:
            self.tools |= {str(tool["name"]) for tool in dicts(body.get("tools")) if "name" in tool}
        if body.get("tools") and not any(message.get("role") == "assistant" for message in messages):
            told = json.dumps([body.get("system"), messages], ensure_ascii=False)
            self._openings.append(any(json.dumps(line, ensure_ascii=False)[1:-1] in told for line in self.expected))
        for message in messages:
            for text in texts(message.get("content")) if message.get("role") != "assistant" else ():
                if any(mark in text for mark in LISTED) and len(self.listings) < MAX_LISTINGS:
                    self.listings[text] = None
                    self.tools |= set(_DEFERRED.findall(text))
