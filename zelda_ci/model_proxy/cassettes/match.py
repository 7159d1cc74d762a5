"""Fingerprints of requests, by which a replay finds the recorded exchange; and what differs where there is none."""

import difflib
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from zelda_ci.judge.prompts import OPENING
from zelda_ci.model_proxy.answer import dicts
from zelda_ci.model_proxy.cassettes.cassette import RecordedRequest
from zelda_ci.model_proxy.cassettes.normalise import (
    VOLATILE_SECTIONS,
    Placeholders,
    blocks,
    generated_ids,
    mapped,
    texts,
    without_circumstances,
    without_identifiers,
)
from zelda_ci.model_proxy.wire import Call
from zelda_ci.redact import Redactor

# Parts of their own; and ids, and what the CLI changes when it repeats a request without streaming.
NO_OPTIONS = frozenset({"model", "messages", "system", "tools", "metadata", "stream", "max_tokens"})

# The CLI's note on branch and recent commits, which have other hashes each time, and its line for the bill.
STATUS, BILLING = re.compile(r"<system-reminder>\n[^\n]*\n# gitStatus\n"), "x-anthropic-billing-header"

DIFF_LINES = 16
DIFF_WIDTH = 160


class Fingerprints:
    """Reduces the requests of one run to what two runs of the same session have in common."""

    def __init__(self, placeholders: Placeholders, redact: Redactor) -> None:
        self._placeholders = placeholders
        self._redact = redact

    def __call__(self, call: Call) -> RecordedRequest:
        """Return the fingerprint of a request, whose generated ids are placeholders from then on."""
        self._placeholders.update(generated_ids(call))
        body, messages = call.body, dicts(call.body.get("messages"))
        spoken = [message for message in messages if message.get("role") != "system"]
        answers = [index for index, message in enumerate(spoken) if message.get("role") == "assistant"]
        # What is before the model's last response was the last message of earlier requests.
        last = [it for message in spoken[answers[-1] + 1 if answers else 0 :] for it in blocks(message.get("content"))]
        context = {
            "system prompt": [text for text in texts(body.get("system")) if not text.startswith(BILLING)],
            "notes": self._notes(message for message in messages if message.get("role") == "system"),
            # Servers bring their tools in an order that is chance.
            "tools": sorted(map(self._digest, dicts(body.get("tools")))),
            "options": {key: value for key, value in body.items() if key not in NO_OPTIONS},
        }
        return RecordedRequest(
            turn=len(answers),
            model=self._redact(str(body.get("model", ""))),
            # Results come in the order in which the tools ended.
            last_message=self._redact("\n".join(sorted(map(self._readable, last))).strip()),
            context={name: self._digest(part) for name, part in context.items()},
        )

    def _notes(self, messages: Iterable[Mapping[str, Any]]) -> list[str]:
        """Return the lines of the CLI's notes: when each of them comes, and in which list, is a matter of time."""
        notes = [text for message in messages for text in texts(message.get("content"))]
        paragraphs = {paragraph.strip() for text in notes for paragraph in text.split("\n\n")}
        lasting = (paragraph for paragraph in paragraphs if not paragraph.startswith(VOLATILE_SECTIONS))
        return sorted({without_circumstances(self._plain(line)) for it in lasting for line in it.splitlines() if line})

    def _readable(self, block: Mapping[str, Any]) -> str:
        """Return a block as text, without ids and paths, and in a tool's output without times and the like."""
        match block:
            case {"type": "text", "text": str(text)}:
                plain = "" if STATUS.match(text) else self._plain(text)
                return without_circumstances(plain) if OPENING in plain else plain
            case {"type": "tool_result"}:
                output = [without_circumstances(self._readable(part)) for part in blocks(block.get("content"))]
                failed = ", an error" if block.get("is_error") else ""
                return "\n".join([f"[result of {block.get('tool_use_id')}{failed}]", *output])
            case _:
                return f"[{block.get('type')} {self._digest(block)}]"

    def _digest(self, value: Any) -> str:
        if isinstance(value, dict):
            # Where the cache begins changes from request to request.
            value = {key: item for key, item in value.items() if key != "cache_control"}
        plain = json.dumps(mapped(self._plain, value), sort_keys=True)
        # Short: a recording has a hundred requests, not millions, and people compare them by eye.
        return hashlib.sha256(plain.encode()).hexdigest()[:16]

    def _plain(self, text: str) -> str:
        return self._redact(without_identifiers(self._placeholders.blank(text)))


def differences(recorded: RecordedRequest, request: RecordedRequest) -> list[str]:
    """Return in what two requests differ beside what they ask."""
    return [name for name, digest in request.context.items() if recorded.context.get(name) != digest]


def diff(recorded: RecordedRequest, request: RecordedRequest) -> str:
    """Return the difference of what two requests ask, shortened."""
    texts = recorded.asked.splitlines(), request.asked.splitlines()
    lines = list(difflib.unified_diff(*texts, "recorded", "now", n=1, lineterm=""))
    shown = [line if len(line) <= DIFF_WIDTH else line[:DIFF_WIDTH] + "..." for line in lines[:DIFF_LINES]]
    return "\n".join([*shown, f"({len(lines) - DIFF_LINES} more lines)"] if len(lines) > DIFF_LINES else shown)
