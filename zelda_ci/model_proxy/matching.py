"""Which recorded exchange belongs to a request."""

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from zelda_ci.model_proxy.cassette import Exchange, RecordedRequest
from zelda_ci.model_proxy.fingerprint import Fingerprint

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
        return tuple(_name(index, request) for index, request in self._left())

    def match(self, agent_id: str | None, asked: Fingerprint) -> Match | Mismatch:
        """Find the exchange: the same request exactly, else the same last words at the same place to the same model.

        What the CLI had said of tasks in the background by then may differ, but not say other things of the same task.
        """
        candidates = list(self._candidates(agent_id))
        for fits in (_is_same, _has_same_words):
            for index, request in candidates:
                if fits(request, asked) and not _contradictions(request, asked):
                    self._used.add(index)
                    self._threads[agent_id] = request.thread
                    return Match(index, tuple(_differences(request, asked)))
        return Mismatch(_explanation(self._threads.get(agent_id, "a new sub-agent"), candidates, asked))

    def _candidates(self, agent_id: str | None) -> Iterator[tuple[int, RecordedRequest]]:
        if agent_id in self._threads:
            yield from ((index, one) for index, one in self._left() if one.thread == self._threads[agent_id])
            return
        taken = set(self._threads.values())
        for index, request in self._left():
            if request.thread not in taken:
                taken.add(request.thread)
                yield index, request

    def _left(self) -> Iterator[tuple[int, RecordedRequest]]:
        return ((index, request) for index, request in enumerate(self._recorded) if index not in self._used)


def _is_same(recorded: RecordedRequest, asked: Fingerprint) -> bool:
    return recorded.digest == asked.digest


def _has_same_words(recorded: RecordedRequest, asked: Fingerprint) -> bool:
    place = (recorded.turn, recorded.model, recorded.parts.get("last"))
    return place == (asked.turn, asked.model, asked.parts["last"])


def _contradictions(recorded: RecordedRequest, asked: Fingerprint) -> list[str]:
    """The calls whose work in the background ended otherwise."""
    return sorted(call for call, digest in asked.news.items() if recorded.news.get(call, digest) != digest)


def _differences(recorded: RecordedRequest, asked: Fingerprint) -> Iterator[str]:
    if recorded.model != asked.model:
        yield f"the model ({recorded.model} was recorded, {asked.model} is asked)"
    if recorded.turn != asked.turn:
        yield f"the place ({recorded.turn} model responses before it were recorded, now there are {asked.turn})"
    for part, name in PART_NAMES.items():
        if recorded.parts.get(part) != asked.parts[part]:
            yield name + (_tool_changes(recorded, asked) if part == "tools" else "")
    if calls := _contradictions(recorded, asked):
        yield f"how tasks in the background ended ({', '.join(calls)})"


def _tool_changes(recorded: RecordedRequest, asked: Fingerprint) -> str:
    gone = [f"-{name}" for name in recorded.tools if name not in asked.tools]
    new = [f"+{name}" for name in asked.tools if name not in recorded.tools]
    return f" ({' '.join(gone + new)})" if gone or new else ""


def _explanation(thread: str, candidates: Sequence[tuple[int, RecordedRequest]], asked: Fingerprint) -> str:
    place = f"the request of {'the main thread' if thread == 'main' else thread} after {asked.turn} model responses"
    if not candidates:
        return f"the recording has no further answer for {place}"
    index, nearest = min(candidates, key=lambda one: (abs(one[1].turn - asked.turn), one[0]))
    changes = "; ".join(_differences(nearest, asked))
    reason = (
        f"the recording has no answer for {place}; the nearest is {_name(index, nearest)}, and these differ: {changes}"
    )
    return "\n".join([reason, *_diff(nearest.said, asked.said)])


def _diff(recorded: str, asked: str) -> list[str]:
    lines = list(difflib.unified_diff(recorded.splitlines(), asked.splitlines(), "recorded", "now", n=1, lineterm=""))
    shown = [line if len(line) <= DIFF_WIDTH else line[:DIFF_WIDTH] + "..." for line in lines[:DIFF_LINES]]
    return [*shown, f"({len(lines) - DIFF_LINES} more lines)"] if len(lines) > DIFF_LINES else shown


def _name(index: int, request: RecordedRequest) -> str:
    return f"exchange {index + 1} ({request.thread}, after {request.turn} model responses)"
