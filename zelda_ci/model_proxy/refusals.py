"""Refusals that a run has got already: Claude Code sends what was refused with 400 five times more.

It leaves out one option after the other, whatever the refusal says, and `x-should-retry: false` does not keep it from
that. So repetitions are answered from memory. One that leaves out, or changes, what the refusal names is asked for:
gateways that do not know an option of Claude Code's are used that way.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from zelda_ci.model_proxy import wire
from zelda_ci.model_proxy.wire import DO_NOT_RETRY, JSON, Call, Headers, Sink, error_body, send_whole

# Refusals of the 4xx kind that may be none in a moment.
PASSING = frozenset({408, 409, 425, 429})

MAX_REMEMBERED = 20
MAX_BODY = 64 << 10
MAX_FACTS = 5000

# Requests to the API at one place of the conversation once it has refused one of them.
MAX_ATTEMPTS = 2

# An option of a request: its name, and its value where that is a name or a number.
Fact = tuple[str, str]

_IDENTIFIER = re.compile(r"[a-z][a-z0-9_-]{0,63}")
_WORD = re.compile(r"[A-Za-z0-9_-]+")


@dataclass
class Refusal:
    """An answer of the API that may say no; hears it as it passes."""

    attempts: int = 1
    """How often the API was asked at this place."""
    facts: frozenset[Fact] = frozenset()
    """Of the refused request."""
    status: int = 0
    headers: Headers = field(default_factory=list)
    body: bytes = b""

    def start(self, status: int, headers: Headers) -> None:
        self.status, self.headers = status, [header for header in headers if header[0] != b"content-length"]

    def chunk(self, data: bytes) -> None:
        """The next bytes; only those of a refusal are kept."""
        if self._is_final and len(self.body) <= MAX_BODY:
            self.body += data

    @property
    def counts(self) -> bool:
        """Whether a repetition would get the same."""
        return self._is_final and len(self.body) <= MAX_BODY

    @property
    def _is_final(self) -> bool:
        may_pass = self.status in PASSING or (b"x-should-retry", b"true") in self.headers
        return 400 <= self.status < 500 and not may_pass

    def is_addressed_by(self, call: Call) -> bool:
        """Whether a request is without what the refusal names, or has another value for it."""
        facts = frozenset(_facts(call))
        changed = {name for name, _ in self.facts ^ facts} | {value for _, value in self.facts - facts}
        return not changed.isdisjoint(_WORD.findall(self._server_message))

    @property
    def _server_message(self) -> str:
        match wire.read_object(self.body):
            case {"error": {"message": str(message)}}:
                return message
            case _:
                return self.body.decode("utf-8", "replace")


class Refusals:
    """Of one run, by place in the conversation."""

    def __init__(self) -> None:
        self._by_place: dict[bytes, Refusal] = {}

    def of(self, place: bytes, call: Call) -> Refusal | None:
        """The refusal that answers this request, too; None where the API has to be asked."""
        refusal = self._by_place.get(place)
        if refusal is None or (refusal.attempts < MAX_ATTEMPTS and refusal.is_addressed_by(call)):
            return None
        return refusal

    def observer(self, place: bytes) -> Refusal:
        """Hears the answer to a request that the API is asked for."""
        earlier = self._by_place.get(place)
        return Refusal(earlier.attempts + 1 if earlier else 1)

    def remember(self, place: bytes, call: Call, refusal: Refusal) -> None:
        """The answer has ended."""
        if refusal.counts:
            refusal.facts = frozenset(_facts(call))
            self._keep(place, refusal)
        elif 200 <= refusal.status < 300:
            self._by_place.pop(place, None)

    def give_up(self, place: bytes, why: str) -> None:
        """The answer was beyond a limit, and would be so again."""
        headers = [JSON, *DO_NOT_RETRY]
        self._keep(place, Refusal(MAX_ATTEMPTS, status=502, headers=headers, body=error_body("api_error", why)))

    def _keep(self, place: bytes, refusal: Refusal) -> None:
        self._by_place[place] = refusal
        if len(self._by_place) > MAX_REMEMBERED:
            del self._by_place[next(iter(self._by_place))]


async def repeat(refusal: Refusal, sink: Sink) -> None:
    """Give the same answer again."""
    await send_whole(sink, refusal.status, refusal.headers, refusal.body)


def _facts(call: Call) -> Iterator[Fact]:
    """The options of a request, wherever they are in it."""
    return islice(_all_facts(call), MAX_FACTS)


def _all_facts(call: Call) -> Iterator[Fact]:
    for beta in (call.header("anthropic-beta") or "").split(","):
        yield "anthropic-beta header", beta.strip()
    waiting: list[Any] = [call.body]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting += value
        elif isinstance(value, dict):
            waiting += value.values()
            yield from ((name, _option(inner)) for name, inner in value.items())


def _option(value: Any) -> str:
    is_name = isinstance(value, str) and _IDENTIFIER.fullmatch(value)
    return str(value) if is_name or isinstance(value, int | float) else ""
