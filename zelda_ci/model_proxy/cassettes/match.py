"""Fingerprints of requests, by which a replay finds the recorded exchange; and what differs where there is none."""

import difflib
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from zelda_ci.judge.prompts import OPENING
from zelda_ci.model_proxy.answer import dicts
from zelda_ci.model_proxy.cassettes.cassette import RecordedRequest
from zelda_ci.model_proxy.cassettes.normalise import (
    VOLATILE_SECTIONS,
    Placeholders,
    blocks,
    generated_ids,
    is_text,
    mapped,
    texts,
    without_circumstances,
    without_identifiers,
)
from zelda_ci.model_proxy.wire import Call
from zelda_ci.redact import Redactor

# Characters kept of the last message, for people and for showing what differs.
EXCERPT_HEAD, EXCERPT_TAIL = 3000, 1000

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
        self._digests: dict[str, str] = {}
        """Digest of a block without what varies, by the digest of all of it: each request repeats the one before."""

    def __call__(self, call: Call) -> RecordedRequest:
        """Return the fingerprint of a request, whose generated ids are placeholders from then on."""
        self._placeholders.update(generated_ids(call))
        body, messages = call.body, dicts(call.body.get("messages"))
        spoken = [message for message in messages if message.get("role") != "system"]
        answers = [index for index, message in enumerate(spoken) if message.get("role") == "assistant"]
        # After the model's last response: everything since then is what the request is about.
        border = answers[-1] + 1 if answers else 0
        last = [self._plain(block) for block in _blocks(spoken[border:])]
        system = [text for text in texts(body.get("system")) if not text.startswith(BILLING)]
        parts = {
            "last message": sorted(map(_digest, last)),
            "conversation": self._all(_blocks(spoken[:border])),
            "notes": self._notes(message for message in messages if message.get("role") == "system"),
            "system prompt": self._all(blocks("\n".join(system))),
            "tools": self._all(dicts(body.get("tools"))),
            "options": self._all([{key: value for key, value in body.items() if key not in NO_OPTIONS}]),
        }
        return RecordedRequest(
            turn=len(answers),
            model=self._redact(str(body.get("model", ""))),
            # Short digests: a recording has a hundred requests, not millions, and people compare them by eye.
            parts={name: _digest(part)[:16] for name, part in parts.items()},
            said=self._redact(_excerpt("\n".join(_readable(last)))),
        )

    def _all(self, items: Iterable[dict[str, Any]]) -> list[str]:
        """Return digests in an order of their own: that of parallel results, and of tools of servers, is chance."""
        found = []
        for item in items:
            key = _digest(item)
            if key not in self._digests:
                self._digests[key] = _digest(self._plain(item))
            found.append(self._digests[key])
        return sorted(found)

    def _notes(self, messages: Iterable[Mapping[str, Any]]) -> list[str]:
        """Return the lines of the CLI's notes: when each of them comes, and in which list, is a matter of time."""
        notes = [text for message in messages for text in texts(message.get("content"))]
        paragraphs = {paragraph.strip() for text in notes for paragraph in text.split("\n\n")}
        lasting = (paragraph for paragraph in paragraphs if not paragraph.startswith(VOLATILE_SECTIONS))
        return sorted({without_circumstances(self._text(line)) for it in lasting for line in it.splitlines() if line})

    def _plain(self, block: Mapping[str, Any]) -> dict[str, Any]:
        """Return a block without what varies: ids and paths, and in a tool's output times and the like."""
        # Where the cache begins changes from request to request, and says nothing of the conversation.
        kept = {key: value for key, value in block.items() if key != "cache_control"}
        if kept.get("type") == "tool_result":
            parts = [self._output(part) for part in blocks(kept.get("content"))]
            kept |= {"content": parts, "is_error": bool(kept.get("is_error"))}
        plain: dict[str, Any] = mapped(self._text, kept)
        return self._output(plain) if is_text(plain) and OPENING in plain["text"] else plain

    def _output(self, part: dict[str, Any]) -> dict[str, Any]:
        if is_text(part):
            return {"type": "text", "text": without_circumstances(self._text(part["text"]))}
        return part

    def _text(self, text: str) -> str:
        return self._redact(without_identifiers(self._placeholders.blank(text)))


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _blocks(messages: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    found = [block for message in messages for block in blocks(message.get("content"))]
    # Results come in the order in which the tools ended.
    found.sort(key=lambda block: str(block.get("tool_use_id", "~")))
    return [block for block in found if not (is_text(block) and STATUS.match(block["text"]))]


def _readable(items: Iterable[Any]) -> Iterator[str]:
    for item in items:
        match item:
            case {"type": "text", "text": str(text)}:
                yield text
            case {"type": "tool_result", "tool_use_id": name, "is_error": failed, "content": list(content)}:
                yield f"[result of {name}{', an error' if failed else ''}]"
                yield from _readable(content)
            case _:
                yield json.dumps(item)[:EXCERPT_TAIL]


def _excerpt(text: str) -> str:
    left_out = len(text) - EXCERPT_HEAD - EXCERPT_TAIL
    if left_out <= 0:
        return text
    return f"{text[:EXCERPT_HEAD]}\n[{left_out} characters]\n{text[-EXCERPT_TAIL:]}"


def same_words(recorded: RecordedRequest, request: RecordedRequest) -> bool:
    """Whether both say the same last, at the same place, to the same model."""
    is_same_place = (recorded.turn, recorded.model) == (request.turn, request.model)
    return is_same_place and recorded.parts.get("last message") == request.parts["last message"]


def differences(recorded: RecordedRequest, request: RecordedRequest) -> list[str]:
    """Return in what two requests differ; nothing where they are the same."""
    found = [f"the {part}" for part, digest in request.parts.items() if recorded.parts.get(part) != digest]
    if recorded.turn != request.turn:
        found.insert(0, f"the place (after {recorded.turn} model responses was recorded, now after {request.turn})")
    if recorded.model != request.model:
        found.insert(0, f"the model ({recorded.model} was recorded, {request.model} is asked)")
    return found


def diff(recorded: str, current: str) -> Sequence[str]:
    """Return the difference of two texts, shortened."""
    lines = list(difflib.unified_diff(recorded.splitlines(), current.splitlines(), "recorded", "now", n=1, lineterm=""))
    excerpt = [line if len(line) <= DIFF_WIDTH else line[:DIFF_WIDTH] + "..." for line in lines[:DIFF_LINES]]
    return [*excerpt, f"({len(lines) - DIFF_LINES} more lines)"] if len(lines) > DIFF_LINES else excerpt
