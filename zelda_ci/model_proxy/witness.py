"""What passed between a session and the API, kept as digests: what the transcript says is held against it.

Whoever can write into Claude Code's output can put words there that no model said. The proxy has seen every answer
before Claude Code did, and every request with what the tools had returned. Where an honest session may differ (answers
that broke off, inputs that Claude Code completes, results that it shortens), nothing is called a difference.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from zelda_ci.model_proxy import wire

# Of what is not known at once; a session has none, or a few where an answer broke off.
MAX_DOUBTS = 1000
MAX_DIFFERENCES = 5
MAX_OF_AN_ID = 100

# What Claude Code lists for its model, and the names of tools that the model finds by a search.
LISTED = ("available for use with the Skill tool", "agent types for the Agent tool", "available via ToolSearch")
MAX_LISTINGS, MAX_TOOLS = 100, 5000
_DEFERRED = re.compile(r"^mcp__[\w-]+$", re.MULTILINE)

# Characters by which a result is recognised: Claude Code shortens long ones, and adds its own notes at the end.
HEAD = 512
# What Claude Code sends in place of a result that is too long, or too old.
SHORTENED = ("<persisted-output>", "[Old tool result", "[Tool result")


@dataclass
class _Answer:
    """One message of the API's."""

    blocks: set[bytes] = field(default_factory=set)
    is_complete: bool = False


@dataclass(frozen=True)
class _Doubt:
    """Something that the transcript says, and that had not passed by when it did."""

    message: str
    block: bytes
    what: str
    call: str = ""


class TranscriptWitness:
    """One run's; see `execution.agent.Witness`."""

    def __init__(self) -> None:
        self._answers: dict[str, _Answer] = {}
        self._calls: set[str] = set()
        self._repeated: set[str] = set()
        self._inputs: dict[str, bytes] = {}
        """What calls were given, as Claude Code repeats it to the API."""
        self._heads: dict[str, str] = {}
        """The beginning of each result, as it first went to the API."""
        self._returned: dict[str, list[str]] = {}
        """The beginnings of results of the transcript that have not gone to the API."""
        self._doubts: list[_Doubt] = []
        self._differences: list[str] = []
        self.expected: frozenset[str] = frozenset()
        """Lines of the project's CLAUDE.md files: a session's first request holds at least one of them."""
        self.listings: dict[str, None] = {}
        """Texts in which the model was told what it can call, in their order."""
        self.tools: set[str] = set()
        """Names of tools that the model was told."""
        self._openings: list[bool] = []
        """Of the requests that open a conversation with tools, whether they held one."""

    # --- what the API's side sees ---------------------------------------------------------------------------------

    def answer(self, message: str) -> _Answer:
        """The answer of that id, which is begun if it is new."""
        return self._answers.setdefault(message, _Answer())

    def begin(self, block: Mapping[str, Any]) -> None:
        """A block of an answer begins: a tool may be called before the rest has come."""
        if isinstance(call := block.get("id"), str):
            # Some gateways number the calls of each answer anew: what such a one gave back cannot be told apart.
            (self._repeated if call in self._calls else self._calls).add(call)

    def block(self, answer: _Answer, block: Mapping[str, Any]) -> None:
        """A block of an answer is over."""
        match block:
            case {"type": "text", "text": str(text)}:
                answer.blocks.add(_digest("text", text.strip()))
            case {"type": "thinking", "thinking": str(text)}:
                answer.blocks.add(_digest("thinking", text.strip()))
            case {"id": str(call), "name": str(name)}:
                answer.blocks.add(_digest_of_call(call, name, block.get("input")))
            case _:
                pass

    def request(self, body: Mapping[str, Any]) -> None:
        """A request begins: notes the results in it, from the last one back to one that is known."""
        messages = body.get("messages")
        self._hear(body)
        if body.get("tools") and not any(message.get("role") == "assistant" for message in _list(body, "messages")):
            told = json.dumps([body.get("system"), messages], ensure_ascii=False)
            self._openings.append(any(json.dumps(line, ensure_ascii=False)[1:-1] in told for line in self.expected))
        for message in reversed(messages if isinstance(messages, list) else []):
            blocks = [block for block in _list(message, "content") if isinstance(block, dict)]
            news = [self._note(block) for block in blocks]
            if not all(news):
                return

    def _hear(self, body: Mapping[str, Any]) -> None:
        """Note what the model is told of what it can call: tools, those that wait behind a search, and listings."""
        if len(self.tools) < MAX_TOOLS:
            self.tools |= {
                str(tool["name"]) for tool in _list(body, "tools") if isinstance(tool, dict) and "name" in tool
            }
        for message in _list(body, "messages"):
            if not isinstance(message, dict) or message.get("role") == "assistant":
                continue
            content = message.get("content")
            for text in _texts(content if isinstance(content, list) else [content]):
                if any(mark in text for mark in LISTED) and len(self.listings) < MAX_LISTINGS:
                    self.listings[text] = None
                    self.tools |= set(_DEFERRED.findall(text))

    def _note(self, block: Mapping[str, Any]) -> bool:
        """Whether it says something new, or nothing."""
        match block:
            case {"type": "tool_result", "tool_use_id": str(call)}:
                if call in self._heads:
                    return False
                self._heads[call] = _head(block.get("content"))
                for head in self._returned.pop(call, ()):
                    self._compare(call, head)
            case {"type": "tool_use", "id": str(call), "name": str(name)}:
                self._inputs[call] = _digest_of_call(call, name, block.get("input"))
            case _:
                pass
        return True

    # --- what the transcript says ---------------------------------------------------------------------------------

    def began(self, message: str) -> None:
        """A model's message begins."""
        if message not in self._answers:
            self._differ(f"message {_shown(message)}")

    def said(self, message: str, text: str, *, thinking: bool) -> None:
        """A text of a model's message."""
        kind = "thinking" if thinking else "text"
        self._claim(_Doubt(message, _digest(kind, text.strip()), f"the {kind} of message {_shown(message)}"))

    def called(self, message: str, call: str, name: str, given: object) -> None:
        """A tool call in a model's message."""
        what = f"the call {_shown(call)} of {_shown(name)} in message {_shown(message)}"
        self._claim(_Doubt(message, _digest_of_call(call, name, given), what, call))

    def returned(self, call: str, content: object) -> None:
        """What a tool call gave back."""
        head = _head(content)
        if call not in self._calls:
            self._differ(f"the result of {_shown(call)}, a call that no model made")
        elif call in self._heads:
            self._compare(call, head)
        elif len(waiting := self._returned.setdefault(call, [])) < MAX_DIFFERENCES:
            waiting.append(head)

    @property
    def lacks_memory(self) -> bool:
        """Whether the session asked its model, and told it nothing of the project's CLAUDE.md files."""
        return bool(self.expected and self._openings) and not any(self._openings)

    def differences(self) -> tuple[str, ...]:
        """What the transcript says and did not pass by: known for certain once the session is over."""
        for doubt in self._doubts:
            self._settle(doubt)
        self._doubts.clear()
        return tuple(self._differences)

    def _claim(self, claim: _Doubt) -> None:
        answer = self._answers.get(claim.message)
        if answer and claim.block in answer.blocks:
            return
        # Most can be settled by now: the API is told soon what Claude Code has completed.
        if len(self._doubts) == MAX_DOUBTS:
            self.differences()
        self._doubts.append(claim)

    def _settle(self, doubt: _Doubt) -> None:
        answer = self._answers.get(doubt.message)
        if answer is None:
            self._differ(doubt.what)
        # Of an answer that broke off the session may have got less than a block.
        elif answer.is_complete and doubt.block not in answer.blocks:
            # Claude Code completes the input of some calls, and says so to the API too.
            is_known = doubt.call in self._calls and self._inputs.get(doubt.call, doubt.block) == doubt.block
            if not is_known:
                self._differ(doubt.what)

    def _compare(self, call: str, head: str) -> None:
        sent = self._heads[call]
        length = min(len(sent), len(head))
        if call not in self._repeated and sent[:length] != head[:length] and not sent.startswith(SHORTENED):
            self._differ(f"the result of {_shown(call)}, of which the API was told otherwise")

    def _differ(self, what: str) -> None:
        if len(self._differences) < MAX_DIFFERENCES and what not in self._differences:
            self._differences.append(what)


class AnswerReader:
    """Puts an answer's blocks together from its events, for a witness."""

    def __init__(self, witness: TranscriptWitness) -> None:
        self._witness = witness
        self._answer: _Answer | None = None
        self._blocks: dict[int, dict[str, Any]] = {}
        self._parts: dict[int, list[str]] = {}
        self._is_readable = True

    def event(self, event: Mapping[str, Any]) -> None:
        """The next event of a stream."""
        match event:
            case {"type": "message_start", "message": {"id": str(message)}}:
                self._answer = self._witness.answer(message)
            case {"type": "content_block_start", "index": int(index), "content_block": dict(block)}:
                self._blocks[index], self._parts[index] = block, []
                self._witness.begin(block)
            case {"type": "content_block_delta", "index": int(index), "delta": dict(delta)} if index in self._parts:
                self._parts[index] += [part for key in DELTAS if isinstance(part := delta.get(key), str)]
            case {"type": "content_block_stop", "index": int(index)} if index in self._blocks and self._answer:
                self._end(self._answer, self._blocks.pop(index), "".join(self._parts.pop(index)))
            case {"type": "message_stop"} if self._answer:
                self._answer.is_complete = self._is_readable
            case _:
                pass

    def message(self, message: Mapping[str, Any]) -> None:
        """An answer that is no stream."""
        if isinstance(number := message.get("id"), str):
            answer = self._witness.answer(number)
            for block in _list(message, "content"):
                if isinstance(block, dict):
                    self._witness.begin(block)
                    self._witness.block(answer, block)
            answer.is_complete = True

    def _end(self, answer: _Answer, block: dict[str, Any], rest: str) -> None:
        """A block is over, with what its deltas added."""
        kind = block.get("type")
        if kind in ("text", "thinking"):
            block = {**block, kind: f"{block.get(kind) or ''}{rest}"}
        elif rest:
            given = wire.read_object(rest.encode("utf-8", "surrogatepass"))
            # Cut off by the limit of tokens: what Claude Code makes of it is its own affair.
            self._is_readable = self._is_readable and given is not None
            block = {**block, "input": given}
        self._witness.block(answer, block)


DELTAS = ("text", "thinking", "partial_json")


def _texts(blocks: Iterable[object]) -> Iterator[str]:
    for block in blocks:
        match block:
            case str(text) | {"type": "text", "text": str(text)}:
                yield text
            case _:
                pass


def _list(value: object, key: str) -> list[Any]:
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, list) else []


def _head(content: object) -> str:
    """The beginning of what a tool gave back, as far as it is text."""
    texts = _texts(content if isinstance(content, list) else [content])
    return "\n".join(texts).strip()[:HEAD]


def _shown(name: str) -> str:
    return name if len(name) <= MAX_OF_AN_ID else f"{name[:MAX_OF_AN_ID]}…"


def _digest_of_call(call: str, name: str, given: object) -> bytes:
    return _digest(call, name, _canonical(given if isinstance(given, dict) else {}))


def _canonical(value: object) -> bytes:
    """JSON that is the same whoever wrote it: JavaScript has one kind of numbers, and knows no -0."""
    try:
        return json.dumps(_with_equal_numbers(value), sort_keys=True).encode()
    except RecursionError:
        return b"deep"


def _with_equal_numbers(value: object) -> object:
    match value:
        case dict():
            return {key: _with_equal_numbers(item) for key, item in value.items()}
        case list():
            return [_with_equal_numbers(item) for item in value]
        case int() | float() if not isinstance(value, bool):
            with suppress(OverflowError):
                return float(value) + 0.0
            return None
        case _:
            return value


def _digest(*parts: str | bytes) -> bytes:
    """Of parts that cannot run into each other; characters that were cut in halves count as any such."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        data = part if isinstance(part, bytes) else _paired(part)
        digest.update(b"%d:" % len(data))
        digest.update(data)
    return digest.digest()


def _paired(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
