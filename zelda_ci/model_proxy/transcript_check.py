"""The check of a transcript against what passed between Claude Code and the API, which is kept as digests.

Whoever can write into Claude Code's output can put words there that no model said; the proxy saw every answer before.
Where an honest session may differ (answers that broke off, inputs that Claude Code completes), nothing is called a
difference; what tools returned is not compared.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from zelda_ci.model_proxy.wire import dicts, read_object

MAX_DIFFERENCES, MAX_DESCRIPTION = 5, 300
# Fields of deltas that grow a block.
DELTAS = ("text", "thinking", "partial_json")


class TranscriptCheck:
    """Compares one run's transcript with its answers."""

    def __init__(self) -> None:
        self.is_complete: dict[str, bool] = {}
        """By the API's message, whether all of it has come."""
        self.passed = set[bytes]()
        """Blocks of answers, and calls as Claude Code repeats them to the API."""
        self.calls, self.tools = set[str](), set[str]()
        """Calls that the API has begun, and their tools: one may run before the rest of the answer has come."""
        self._repeated, self._differences = set[str](), list[str]()
        self._claims: list[tuple[str, str, bytes, str]] = []
        """Description, message, digest and call of what the transcript has."""

    def request(self, body: Mapping[str, Any]) -> None:
        """Note the calls that a request repeats, from the last message back to one that is known."""
        for message in reversed(dicts(body.get("messages"))):
            is_known = False
            for block in dicts(message.get("content")):
                if block.get("type") == "tool_use":
                    call, name = str(block.get("id")), str(block.get("name"))
                    is_known |= call in self._repeated
                    self._repeated.add(call)
                    self.passed.add(_digest_of_call(call, name, block.get("input")))
            if is_known:
                return

    def said(self, message: str, text: str, *, thinking: bool) -> None:
        """Check a text of a model's message."""
        kind = "thinking" if thinking else "text"
        self._claims.append((f"the {kind} of message {message}", message, _digest_of_text(message, kind, text), ""))

    def called(self, message: str, call: str, name: str, arguments: object) -> None:
        """Check a tool call in a model's message."""
        description = f"the call {call} of {name} in message {message}"
        self._claims.append((description, message, _digest_of_call(call, name, arguments), call))

    def returned(self, call: str) -> None:
        """Check that a tool's result is one of a call that the API made."""
        if call not in self.calls:
            self._differences.append(f"the result of {call}, a call that no model made")

    def differences(self) -> tuple[str, ...]:
        """Return what the transcript says and did not pass, the first of it, once the session is over."""
        found = list(self._differences)
        for description, message, digest, call in self._claims:
            # Of an answer that broke off the session may have got less than a block.
            is_cut = not self.is_complete.get(message, True)
            # Claude Code completes the input of some calls; the next request says how.
            is_open = call in self.calls and call not in self._repeated
            if message not in self.is_complete or not (digest in self.passed or is_cut or is_open):
                found.append(description)
        return tuple(dict.fromkeys(it[:MAX_DESCRIPTION] for it in found))[:MAX_DIFFERENCES]


class PassedAnswer:
    """Observes the events of one answer, and puts its blocks together."""

    def __init__(self, check: TranscriptCheck) -> None:
        self._check, self._is_readable = check, True
        self._message: str | None = None
        self._block: dict[str, Any] | None = None
        self._pieces: list[str] = []

    def event(self, event: Mapping[str, Any]) -> None:
        """Take in the next event."""
        match event:
            case {"type": "message_start", "message": {"id": str(message)}}:
                self._message = message
                self._check.is_complete.setdefault(message, False)
            case {"type": "content_block_start", "content_block": dict(block)}:
                self._block, self._pieces = block, []
                if isinstance(call := block.get("id"), str):
                    self._check.calls.add(call)
                    self._check.tools.add(str(block.get("name")))
            case {"type": "content_block_delta", "delta": dict(delta)}:
                self._pieces += [piece for key in DELTAS if isinstance(piece := delta.get(key), str)]
            case {"type": "content_block_stop"} if self._message and self._block:
                self._end(self._message, self._block, "".join(self._pieces))
            case {"type": "message_stop"} if self._message:
                self._check.is_complete[self._message] = self._is_readable

    def _end(self, message: str, block: dict[str, Any], rest: str) -> None:
        """Note a block with what its deltas added."""
        match block:
            case {"type": "text" | "thinking" as kind}:
                self._check.passed.add(_digest_of_text(message, kind, f"{block.get(kind) or ''}{rest}"))
            case {"id": str(call), "name": str(name)}:
                arguments = read_object(rest.encode("utf-8", "surrogatepass")) if rest else block.get("input")
                # Cut off by the limit of tokens: what Claude Code makes of it is its own affair.
                self._is_readable &= arguments is not None or not rest
                self._check.passed.add(_digest_of_call(call, name, arguments))
            case _:
                pass


def _digest_of_text(message: str, kind: str, text: str) -> bytes:
    # Halves of characters, which a cut leaves, count as any such.
    return _digest(message, kind, text.strip().encode("utf-16", "surrogatepass").decode("utf-16", "replace"))


def _digest_of_call(call: str, name: str, arguments: object) -> bytes:
    def number(text: str) -> float:
        # JavaScript has one kind of numbers, and knows no -0.
        return float(text) + 0.0

    try:
        equal = json.loads(json.dumps(arguments), parse_int=number, parse_float=number)
        return _digest(call, name, equal if isinstance(equal, dict) else {})
    except RecursionError:
        return _digest(call, name, "deep")


def _digest(*parts: object) -> bytes:
    return hashlib.blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=16).digest()
