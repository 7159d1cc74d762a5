"""Cuts a transcript between turns, never inside one. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

SEPARATOR = "\n\n"
HEAD_SHARE = 0.6
"""Of a text that has to be shortened: how things began tells a little more than how they ended."""


@dataclass(frozen=True)
class Chunk:
    """Consecutive units that fit together."""

    text: str
    units: tuple[int, ...]
    """Positions of the units in it, from 0."""
    shortened: tuple[int, ...] = ()
    """Those of them that did not fit whole."""


def chunked(units: Sequence[str], budget_chars: int) -> tuple[Chunk, ...]:
    """Fill chunks one after the other; every unit is in exactly one, in order.

    A unit larger than the budget gets a chunk of its own, with its middle replaced by a marker that says how much is
    missing. No chunk is larger than the budget, unless the budget is smaller than the marker.
    """
    chunks: list[Chunk] = []
    gathered: list[int] = []
    size = 0
    for position, unit in enumerate(units):
        if len(unit) > budget_chars:
            chunks += _closed(units, gathered)
            gathered, size = [], 0
            chunks.append(Chunk(windowed(unit, budget_chars), (position,), (position,)))
            continue
        if gathered and size + len(SEPARATOR) + len(unit) > budget_chars:
            chunks += _closed(units, gathered)
            gathered, size = [], 0
        size += len(unit) + (len(SEPARATOR) if gathered else 0)
        gathered.append(position)
    return (*chunks, *_closed(units, gathered))


def windowed(text: str, budget_chars: int) -> str:
    """The text, or its head and tail around a marker that says how many characters are left out."""
    if len(text) <= budget_chars:
        return text
    room = max(0, budget_chars - len(_marker(len(text))))
    head = int(room * HEAD_SHARE)
    tail = room - head
    return text[:head] + _marker(len(text) - room) + (text[-tail:] if tail else "")


def _marker(characters: int) -> str:
    return f"\n[... {characters} characters are left out here: this was too long to be shown whole ...]\n"


def _closed(units: Sequence[str], gathered: Sequence[int]) -> list[Chunk]:
    if not gathered:
        return []
    return [Chunk(SEPARATOR.join(units[position] for position in gathered), tuple(gathered))]
