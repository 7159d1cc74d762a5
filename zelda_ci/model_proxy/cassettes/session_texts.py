"""A run's texts as a recording holds them: without secrets, paths and ids, and requests as fingerprints."""

import hashlib
import itertools
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from zelda_ci.judge.rendering import OPENING
from zelda_ci.model_proxy.answer import blocks, dicts, texts
from zelda_ci.model_proxy.cassettes.cassette import RecordedRequest
from zelda_ci.model_proxy.cassettes.normalise import without_circumstances, without_identifiers
from zelda_ci.model_proxy.wire import Call
from zelda_ci.redact import Redactor, SafeText

# Parts of their own; and ids, and what the CLI changes when it repeats a request without streaming.
NO_OPTIONS = frozenset({"model", "messages", "system", "tools", "metadata", "stream", "max_tokens"})

# The CLI's note on branch and recent commits, which have other hashes each time, and its line for the bill.
STATUS, BILLING = re.compile(r"<system-reminder>\n[^\n]*\n# gitStatus\n"), "x-anthropic-billing-header"

# Beginnings of paragraphs that the CLI writes about the machine, the day, the tokens used and what is on its way.
VOLATILE_SECTIONS = (
    "# Environment",
    "Today's date is",
    "The date has changed",
    "<total_tokens>",
    "The following MCP servers are still connecting",
    "[SYSTEM NOTIFICATION",
)

# Ids that Claude Code makes up and its tools report: the model repeats them later, to reach what they stand for.
_HANDLE = re.compile(r"(?:\bagentId: |\bwith ID: |/tool-results/)([ab][0-9a-z]{8,16})\b")

_MARK = re.compile(r"\{\{zelda:([\w-]+)\}\}")


class SessionTexts:
    """Takes secrets, paths and ids out of the texts of one run, and puts paths and ids back, as `{{zelda:name}}`.

    A path also has a mark for its slug, as which Claude Code names its folders after the working directory.

    Args:
        places: Text by name (letters, digits, underscores). Where two overlap, the longer wins, then the earlier.
        redact: Masks secrets, for good.
    """

    def __init__(self, places: Mapping[str, str], redact: Redactor) -> None:
        self.redact = redact
        self._values: dict[str, str] = {}
        self._marks: dict[str, str] = {}
        self._pattern = re.compile("(?!)")
        self.add({name: value for name, value in places.items() if len(value) > 1})

    def add(self, values: Mapping[str, str]) -> None:
        """Add values that have turned up; a name keeps its first value."""
        if values.keys() <= self._values.keys():
            return
        for name, value in values.items():
            self._values.setdefault(name, value)
            if value.startswith("/"):
                self._values.setdefault(f"{name}-slug", "/" + re.sub(r"[^A-Za-z0-9]", "-", value))
        spelled = ((name, _json(value)[1:-1]) for name, value in reversed(self._values.items()))
        self._marks = {value: f"{{{{zelda:{name}}}}}" for name, value in spelled}
        # A regular expression takes the first alternative that fits, and one path may begin with another.
        longest_first = sorted(self._marks, key=len, reverse=True)
        # A value ends where a word ends.
        self._pattern = re.compile(rf"(?:{'|'.join(map(re.escape, longest_first))})(?![A-Za-z0-9_])")

    def blank(self, value: Any) -> Any:
        """Take the values out of every string of a JSON value, keys included."""
        return json.loads(self._pattern.sub(lambda match: self._marks[match[0]], _json(value)))

    def fill(self, value: Any) -> Any:
        """Put the values back into every string of a JSON value."""
        values = self._values
        return json.loads(_MARK.sub(lambda match: _json(values.get(match[1], match[0]))[1:-1], _json(value)))

    def fingerprint(self, call: Call) -> RecordedRequest:
        """Reduce a request to what two runs of the same session have in common; its generated ids are added."""
        self.add(generated_ids(call))
        body, messages = call.body, dicts(call.body.get("messages"))
        notes = [message for message in messages if message.get("role") == "system"]
        spoken = [message for message in messages if message.get("role") != "system"]
        # What is before the model's last response was the last message of earlier requests.
        last = itertools.takewhile(lambda message: message.get("role") != "assistant", reversed(spoken))
        context = {
            "prompt": self._said(spoken[:1]),
            "system prompt": [text for text in texts(body.get("system")) if not text.startswith(BILLING)],
            "notes": self._notes(notes),
            # Servers bring their tools in an order that is chance.
            "tools": sorted(map(self._digest, dicts(body.get("tools")))),
            "options": {key: value for key, value in body.items() if key not in NO_OPTIONS},
        }
        return RecordedRequest(
            thread="sub-agent" if call.agent_id else "main",
            turn=sum(message.get("role") == "assistant" for message in messages),
            model=self.redact(str(body.get("model", ""))),
            last_message=self._said(last),
            context={name: self._digest(part) for name, part in context.items()},
        )

    def _said(self, messages: Iterable[Mapping[str, Any]]) -> SafeText:
        """Return the text of messages; results come in the order in which the tools ended."""
        told = (block for message in messages for block in blocks(message.get("content")))
        return self.redact("\n".join(sorted(map(self._readable, told))).strip())

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
        plain = self.redact(without_identifiers(json.dumps(self.blank(value), sort_keys=True)))
        # Short: a recording has a hundred requests, not millions, and people compare them by eye.
        return hashlib.sha256(plain.encode()).hexdigest()[:16]

    def _plain(self, text: str) -> str:
        return self.redact(without_identifiers(self.blank(text)))


def generated_ids(call: Call) -> dict[str, str]:
    """Return the session's id and the handles in a request's tool results, by names that are the same in every run."""
    session = call.header("x-claude-code-session-id")
    found = {"sessionId": session} if session else {}
    for message in dicts(call.body.get("messages")):
        for block in dicts(message.get("content")):
            if block.get("type") == "tool_result" and (match := _HANDLE.search("\n".join(texts(block.get("content"))))):
                found["handle_" + re.sub(r"[^A-Za-z0-9]", "_", str(block.get("tool_use_id")))] = match[1]
    return found


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
