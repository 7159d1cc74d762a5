"""Which recorded exchange belongs to a request: fingerprints of requests, and how they are matched."""

import difflib
import hashlib
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from zelda_ci.judge.prompts import OPENING
from zelda_ci.model_proxy.cassettes.cassette import Exchange, RecordedRequest
from zelda_ci.model_proxy.cassettes.normalise import (
    VOLATILE_SECTIONS,
    Placeholders,
    plain,
    without_circumstances,
    without_identifiers,
)
from zelda_ci.redact import Redactor, SafeText

# Characters of texts that are remembered for one run.
MAX_REMEMBERED = 16 << 20

# Characters kept of the last user content, for people and for showing what differs.
EXCERPT_HEAD, EXCERPT_TAIL = 3000, 1000

OTHERWISE_COVERED = frozenset({"model", "messages", "system", "tools"})
# Ids, and what the CLI changes when it repeats a request without streaming.
WITHOUT_MEANING = frozenset({"metadata", "stream", "max_tokens"})

# What the CLI says of a command or sub-agent in the background, when that ends: in which request is a matter of time.
_NEWS = re.compile(r"<task-notification>.*?</task-notification>", re.DOTALL)

_END_OF_NEWS = "</task-notification>"

# What it puts before the news, and a list of tools that is with the first news of a session, whatever they are.
_NOTICE = re.compile(r"\[SYSTEM NOTIFICATION[^\n]*(?:\n[^\n<]+)*|<tools-used-before-summary>[^<]*</[^<>]+>")

_EMPTY = re.compile(r"<system-reminder>\s*</system-reminder>")

_STATUS = re.compile(r"<system-reminder>\n[^\n]*\n# gitStatus\n")


@dataclass(frozen=True)
class RequestFingerprint:
    """A request, reduced to what two runs of the same session have in common."""

    turn: int
    """Number of assistant messages in the conversation."""
    model: str
    parts: Mapping[str, str]
    """Digest of each part: the `last` user content, the `history` before it, the CLI's notes (`context`), the `system`
    prompt, `tools` and other `options`."""
    tools: tuple[str, ...]
    excerpt: SafeText
    """The last user content as text, shortened in the middle."""

    @property
    def digest(self) -> str:
        """Of everything together."""
        return _digest([self.turn, self.model, dict(sorted(self.parts.items()))])


class Fingerprints:
    """Takes the fingerprints of one run's requests; remembers texts, since each request repeats the one before."""

    def __init__(self, placeholders: Placeholders, redact: Redactor) -> None:
        self._placeholders = placeholders
        self._redact = redact
        self._plain: dict[str, str] = {}
        self._output: dict[str, str] = {}
        self._remembered = 0

    def __call__(self, body: Mapping[str, Any]) -> RequestFingerprint:
        """Take the fingerprint of a request's body."""
        messages = [message for message in _list(body.get("messages")) if isinstance(message, dict)]
        spoken = [message for message in messages if message.get("role") != "system"]
        answers = [index for index, message in enumerate(spoken) if message.get("role") == "assistant"]
        # After the model's last response: everything since then is what the request is about.
        border = answers[-1] + 1 if answers else 0
        last = self._blocks(spoken[border:])
        tools = [tool for tool in _list(body.get("tools")) if isinstance(tool, dict)]
        # The CLI lists tools in the order in which their servers have connected.
        tools.sort(key=lambda tool: str(tool.get("name")))
        rest = {key: value for key, value in body.items() if key not in OTHERWISE_COVERED | WITHOUT_MEANING}
        parts = {
            "last": last,
            "history": [[role, self._blocks(content)] for role, content in _by_role(spoken[:border])],
            "context": self._context(message for message in messages if message.get("role") == "system"),
            "system": [self._text(text) for text in _texts(body.get("system")) if not _is_billing(text)],
            "tools": self._tree(tools),
            "options": self._tree(rest),
        }
        return RequestFingerprint(
            turn=len(answers),
            model=str(body.get("model", "")),
            # Short digests: a recording has a hundred requests, not millions, and people compare them by eye.
            parts={name: _digest(part)[:16] for name, part in parts.items()},
            tools=tuple(str(tool.get("name")) for tool in tools),
            excerpt=self._redact(_excerpt("\n".join(_readable(last)))),
        )

    def _blocks(self, messages: Iterable[Mapping[str, Any]]) -> list[Any]:
        """Content without what varies; tool results in the order of their ids, not of their arrival."""
        blocks = [
            block
            for message in messages
            for block in map(_content_of, _content(message.get("content")))
            if block and not _is_status(block)
        ]
        results = [block for block in blocks if block.get("type") == "tool_result"]
        results.sort(key=lambda block: str(block.get("tool_use_id")))
        others = [block for block in blocks if block.get("type") != "tool_result"]
        return [*map(self._result, results), *map(self._other, others)]

    def _other(self, block: Mapping[str, Any]) -> Any:
        if _is_text(block) and OPENING in block["text"]:
            return {"type": "text", "text": self._circumstance(block["text"])}
        return self._tree(dict(block))

    def _result(self, block: Mapping[str, Any]) -> dict[str, Any]:
        content = [
            {"type": "text", "text": self._circumstance(part["text"])} if _is_text(part) else self._tree(part)
            for part in _content(block.get("content"))
        ]
        head = {key: block.get(key) for key in ("type", "tool_use_id")}
        return {**head, "is_error": bool(block.get("is_error")), "content": content}

    def _context(self, messages: Iterable[Mapping[str, Any]]) -> list[str]:
        """The CLI's notes, as a set of lines: when each of them comes, and in which list, is a matter of time."""
        texts = (text for message in messages for text in _texts(message.get("content")))
        paragraphs = {paragraph.strip() for text in texts for paragraph in _without_news(text).split("\n\n")}
        relevant = (paragraph for paragraph in paragraphs if not paragraph.startswith(VOLATILE_SECTIONS))
        return sorted({self._circumstance(line) for paragraph in relevant for line in paragraph.splitlines() if line})

    def _tree(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, dict):
            # Where the cache begins changes from request to request, and says nothing of the conversation.
            return {key: self._tree(item) for key, item in value.items() if key != "cache_control"}
        if isinstance(value, list):
            return [self._tree(item) for item in value]
        return value

    def _text(self, text: str) -> str:
        if text not in self._plain:
            self._remembered += len(text)
            if self._remembered > MAX_REMEMBERED:
                self._remembered = len(text)
                self._plain.clear()
                self._output.clear()
            blank = plain(self._placeholders.blank(text))
            self._plain[text] = self._redact(without_identifiers(blank))
        return self._plain[text]

    def _circumstance(self, text: str) -> str:
        if text not in self._output:
            self._output[text] = without_circumstances(self._text(text))
        return self._output[text]


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _content(value: Any) -> list[dict[str, Any]]:
    """Content blocks, also of content that is one string."""
    if isinstance(value, str):
        return [{"type": "text", "text": value}]
    return [block for block in _list(value) if isinstance(block, dict)]


def _texts(value: Any) -> list[str]:
    return [block["text"] for block in _content(value) if _is_text(block)]


def _is_text(block: Mapping[str, Any]) -> bool:
    return block.get("type") == "text" and isinstance(block.get("text"), str)


def _is_status(block: Mapping[str, Any]) -> bool:
    """The CLI's note on branch and recent commits, which have other hashes each time."""
    return _is_text(block) and _STATUS.match(block["text"]) is not None


def _content_of(block: dict[str, Any]) -> dict[str, Any]:
    """The block, or nothing where it only told of tasks in the background."""
    if not _is_text(block) or (rest := _without_news(block["text"])) == block["text"]:
        return block
    return {**block, "text": rest} if rest else {}


def _without_news(text: str) -> str:
    # Up to the last end, so that none is looked for in vain: that would take the square of the time.
    told, end, rest = text.rpartition(_END_OF_NEWS)
    without = _NOTICE.sub("", _NEWS.sub("", told + end) + rest)
    return text if without == text else _EMPTY.sub("", without).strip()


def _by_role(messages: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    """Messages of one side that follow each other, as one."""
    # A note of the CLI may or may not have come between them.
    for role, group in itertools.groupby(messages, key=lambda message: str(message.get("role"))):
        yield role, list(group)


def _is_billing(text: str) -> bool:
    return text.startswith("x-anthropic-billing-header")


def _readable(blocks: Iterable[Any]) -> Iterator[str]:
    for block in blocks:
        match block:
            case {"type": "text", "text": str(text)}:
                yield text
            case {"type": "tool_result", "tool_use_id": name, "is_error": failed, "content": list(content)}:
                yield f"[result of {name}{', an error' if failed else ''}]"
                yield from _readable(content)
            case _:
                yield json.dumps(block)[:EXCERPT_TAIL]


def _excerpt(text: str) -> str:
    left_out = len(text) - EXCERPT_HEAD - EXCERPT_TAIL
    if left_out <= 0:
        return text
    return f"{text[:EXCERPT_HEAD]}\n[{left_out} characters]\n{text[-EXCERPT_TAIL:]}"


DIFF_LINES = 16
DIFF_WIDTH = 160

PART_NAMES = {
    "last": "what was said to the model last",
    "history": "the conversation before that",
    "context": "Claude Code's notes (skills, agents, environment)",
    "system": "the system prompt",
    "tools": "the tools",
    "options": "other request options",
}


@dataclass(frozen=True)
class Match:
    """The exchange to answer with; `differences` is empty when the request is exactly the recorded one."""

    index: int
    differences: tuple[str, ...] = ()


@dataclass(frozen=True)
class Mismatch:
    """No recorded exchange can honestly answer the request; `reason` says why and shows the nearest one."""

    reason: str


class Matcher:
    """Hands each recorded exchange out once.

    A sub-agent is recognised by its first request: which of several parallel ones asks first is chance. From then on
    it gets the answers of that recorded thread only.
    """

    def __init__(self, exchanges: Sequence[Exchange]) -> None:
        self._recorded = [exchange.request for exchange in exchanges]
        self._used: set[int] = set()
        self._threads: dict[str | None, str] = {None: "main"}

    @property
    def unused(self) -> tuple[str, ...]:
        """The exchanges that were not asked for."""
        return tuple(_name(index, request) for index, request in self._unused())

    def match(self, agent_id: str | None, fingerprint: RequestFingerprint) -> Match | Mismatch:
        """Find the exchange: the same request exactly, else the same last words at the same place to the same model."""
        candidates = list(self._candidates(agent_id))
        for fits in (_is_same, _has_same_words):
            for index, request in candidates:
                if fits(request, fingerprint):
                    self._used.add(index)
                    self._threads[agent_id] = request.thread
                    return Match(index, tuple(_differences(request, fingerprint)))
        return Mismatch(_explanation(self._threads.get(agent_id, "a new sub-agent"), candidates, fingerprint))

    def _candidates(self, agent_id: str | None) -> Iterator[tuple[int, RecordedRequest]]:
        if agent_id in self._threads:
            yield from (
                (index, recorded) for index, recorded in self._unused() if recorded.thread == self._threads[agent_id]
            )
            return
        threads = set(self._threads.values())
        for index, request in self._unused():
            if request.thread not in threads:
                threads.add(request.thread)
                yield index, request

    def _unused(self) -> Iterator[tuple[int, RecordedRequest]]:
        return ((index, request) for index, request in enumerate(self._recorded) if index not in self._used)


def _is_same(recorded: RecordedRequest, fingerprint: RequestFingerprint) -> bool:
    return recorded.digest == fingerprint.digest


def _has_same_words(recorded: RecordedRequest, fingerprint: RequestFingerprint) -> bool:
    place = (recorded.turn, recorded.model, recorded.parts.get("last"))
    return place == (fingerprint.turn, fingerprint.model, fingerprint.parts["last"])


def _differences(recorded: RecordedRequest, fingerprint: RequestFingerprint) -> Iterator[str]:
    if recorded.model != fingerprint.model:
        yield f"the model ({recorded.model} was recorded, {fingerprint.model} is asked)"
    if recorded.turn != fingerprint.turn:
        yield f"the place ({recorded.turn} model responses before it were recorded, now there are {fingerprint.turn})"
    for part, name in PART_NAMES.items():
        if recorded.parts.get(part) != fingerprint.parts[part]:
            yield name + (_tool_changes(recorded, fingerprint) if part == "tools" else "")


def _tool_changes(recorded: RecordedRequest, fingerprint: RequestFingerprint) -> str:
    missing = [f"-{name}" for name in recorded.tools if name not in fingerprint.tools]
    new = [f"+{name}" for name in fingerprint.tools if name not in recorded.tools]
    return f" ({' '.join(missing + new)})" if missing or new else ""


def _explanation(
    thread: str, candidates: Sequence[tuple[int, RecordedRequest]], fingerprint: RequestFingerprint
) -> str:
    place = (
        f"the request of {'the main thread' if thread == 'main' else thread} after {fingerprint.turn} model responses"
    )
    if not candidates:
        return f"the recording has no further answer for {place}"
    index, nearest = min(candidates, key=lambda candidate: (abs(candidate[1].turn - fingerprint.turn), candidate[0]))
    changes = "; ".join(_differences(nearest, fingerprint))
    reason = (
        f"the recording has no answer for {place}; the nearest is {_name(index, nearest)}, and these differ: {changes}"
    )
    return "\n".join([reason, *_diff(nearest.said, fingerprint.excerpt)])


def _diff(recorded: str, current: str) -> list[str]:
    lines = list(difflib.unified_diff(recorded.splitlines(), current.splitlines(), "recorded", "now", n=1, lineterm=""))
    excerpt = [line if len(line) <= DIFF_WIDTH else line[:DIFF_WIDTH] + "..." for line in lines[:DIFF_LINES]]
    return [*excerpt, f"({len(lines) - DIFF_LINES} more lines)"] if len(lines) > DIFF_LINES else excerpt


def _name(index: int, request: RecordedRequest) -> str:
    return f"exchange {index + 1} ({request.thread}, after {request.turn} model responses)"
