"""Quotes, and the texts in which they are looked up: every line of a text knows what it can prove. Pure.

A quote stands in a text if it was copied: word by word, in order, from the beginning of a word to the end of one. What
nobody can see or keep when copying does not matter: white space, line numbers, the shape of quotation marks. Whether a
quote that stands there also proves something depends on the lines from which it was copied.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from zelda_ci.judge.characters import unmarked

# Letters and digits of a quote that is less than a line; of a whole line one is enough: "OK" may be all there is.
MIN_SUBSTANCE = 4
MIN_LENGTH = 2
# From this length on, a quote may end inside a word (never inside a number): judges cut long lines.
LONG_QUOTE = 30
MAX_OCCURRENCES = 200

# What changes when a text is copied and means the same.
_SAME = str.maketrans(
    {"‘": "'", "’": "'", "“": '"', "”": '"', "‐": "-", "‑": "-", "–": "-", "—": "-", "…": "..."}  # noqa: RUF001
    | dict.fromkeys("\ufe0e\ufe0f", "")
)


# Of a terminal, also as it is shown to a judge.
_COLOUR = re.compile(r"(?:\x1b|⟦U\+001B [^⟦⟧]{1,40}⟧)\[[0-9;?]*[A-Za-z]")


class Standing(Enum):
    """What a line can prove; the value says why a PASS cannot rest on it."""

    FACT = ""
    WORDS = "these are the session's own words, which prove nothing about its work"
    ECHO = "the command only printed what the session had written itself"
    TASK = "this is what was asked for, not what was done"
    FRAME = "these are headings and marks, not what the session did"
    REMOVED = "these lines were removed; where the removal itself is the proof, cite removed:PATH"
    CONTEXT = "these lines of the patch were there before; cite an added line, or the final file as PATH:LINE"
    UNDONE = "this was written, but it is no longer there; cite the final file or the patch"


@dataclass(frozen=True)
class Line:
    """A line of a text that can be cited."""

    text: str
    standing: Standing = Standing.FACT
    told: Callable[[str], Standing] | None = None
    """What a piece of the line really is, where that depends on the words."""


@dataclass(frozen=True)
class Piece:
    """What a quote has of one line."""

    text: str
    is_whole: bool
    line: Line

    @property
    def standing(self) -> Standing:
        """Of the piece, which may be less than that of its line."""
        return self.line.told(self.text) if self.line.told else self.line.standing


class Passage:
    """Lines in which quotes are looked up.

    Args:
        lines: In order.
        has_signs: Of a patch, in which + and - are part of what is quoted.
    """

    def __init__(self, lines: Iterable[Line], *, has_signs: bool = False) -> None:
        self.has_signs = has_signs
        told = list(lines)
        # All at once: a text may have a million lines.
        words = [" ".join(text.split()) for text in _visible("\n".join(line.text for line in told)).split("\n")]
        numbers = (position for position, line in enumerate(told) for _ in range(line.text.count("\n") + 1))
        self._lines: list[Line] = []
        self._texts: list[str] = []
        self._starts: list[int] = []
        size = 0
        for number, text in zip(numbers, words, strict=False):
            if text:
                self._lines.append(told[number])
                self._texts.append(text)
                self._starts.append(size)
                size += len(text) + 1
        self._text = " ".join(self._texts)

    def places_of(self, wanted: str) -> Iterator[Sequence[Piece]]:
        """Every place at which a quote that is `plain` stands, as the pieces of lines that it covers."""
        start = self._text.find(wanted)
        for _ in range(MAX_OCCURRENCES):
            if start < 0:
                return
            end = start + len(wanted)
            if _is_copy(self._text, start, end):
                pieces = list(self._pieces(start, end))
                if len(wanted) >= MIN_LENGTH or all(piece.is_whole for piece in pieces):
                    yield pieces
            start = self._text.find(wanted, start + 1)

    def _pieces(self, start: int, end: int) -> Iterator[Piece]:
        position = bisect_right(self._starts, start) - 1
        while position < len(self._starts) and self._starts[position] < end:
            first, text = self._starts[position], self._texts[position]
            covered = text[max(0, start - first) : end - first]
            if covered:
                yield Piece(covered, covered == text, self._lines[position])
            position += 1


def plain(text: str) -> str:
    """A text without what does not matter: what cannot be seen, and the marks that show it to a judge."""
    return " ".join(_visible(text).split())


def _visible(text: str) -> str:
    seen = unmarked(_COLOUR.sub("", text))
    return seen if seen.isascii() else unicodedata.normalize("NFC", seen.translate(_SAME))


def _is_copy(text: str, start: int, end: int) -> bool:
    """Whether a stretch of a text begins and ends where words do."""
    is_long = sum(map(str.isalnum, text[start:end])) >= LONG_QUOTE
    return _is_edge(text[max(0, start - 2) : start], text[start:end], is_long=is_long) and _is_edge(
        text[end : end + 2][::-1], text[start:end][::-1], is_long=is_long
    )


def _is_edge(before: str, after: str, *, is_long: bool) -> bool:
    """Whether a word begins between two texts; read backwards, whether one ends there."""
    outer, inner = before[-1:], after[:1]
    if inner.isdigit():
        # "3 passed" is not in "13 passed", nor "5" in "1.5".
        return not (outer.isalnum() or outer == "_" or (outer in {".", ","} and before[:-1].isdigit()))
    if not (_is_word(outer) and _is_word(inner)):
        return True
    return is_long and not outer.isdigit()


def _is_word(character: str) -> bool:
    """Whether it is part of a word that white space ends: scripts without spaces have no such words."""
    return character == "_" or (character.isalnum() and ord(character or " ") < FIRST_WITHOUT_SPACES)


# Thai is the first of the scripts that write without spaces; most of what follows is written so.
FIRST_WITHOUT_SPACES = 0x0E00


def shortcoming(pieces: Sequence[Piece], proving: Standing = Standing.FACT) -> str | None:
    """Why a PASS cannot rest on a quote; nothing where it can."""
    proofs = [piece for piece in pieces if piece.standing is proving]
    if sum(_substance(piece.text) for piece in proofs) >= MIN_SUBSTANCE:
        return None
    if any(piece.is_whole and _substance(piece.text) for piece in proofs):
        return None
    weak = [piece.standing for piece in pieces if piece.standing not in {proving, Standing.FACT}]
    # What the judge meant to cite, rather than the heading above it.
    kind = next((standing for standing in weak if standing is not Standing.FRAME), weak[0] if weak else None)
    return kind.value if kind else "the quote is too short to prove anything; quote the whole line"


def _substance(text: str) -> int:
    return sum(map(str.isalnum, text))


_NUMBERED = re.compile(r"^[ \t]*\d+(?: \| ?|\t|→| *\|$)", re.MULTILINE)
# Of a line that was looked up.
_FOUND_AT = re.compile(
    r"^(?:turn \d+(?: call \d+ \(its line \d+\))?|after turn \d+|[^\s:]{1,300}:\d+):(?: \[column \d+ of \d+\])? ",
    re.MULTILINE,
)
_SIGN = re.compile(r"^([+-])", re.MULTILINE)
_ADDED = re.compile(r"^\+", re.MULTILINE)
_CODE_MARK = re.compile(r"^[ \t]*(?:```|~~~)[\w+-]*[ \t]*$", re.MULTILINE)
_ELLIPSIS = re.compile(r"^[ \t\n]*(?:\.\.\.|…)|(?:\.\.\.|…)[ \t\n]*$")


def forms_of(quote: str, mark: str, *, has_signs: bool = False) -> Iterator[str]:
    """A quote in every form in which it may stand in a text, as it is first; `mark` is that of Zelda's headings."""
    told = quote.replace(f"[{mark} ", "[") if mark else quote
    seen: set[str] = set()
    for bare in (told, _CODE_MARK.sub("", told), told.strip().strip("`\"'“”"), _unescaped(told)):
        for unnumbered in (bare, without_numbers(bare), _FOUND_AT.sub("", bare)):
            for form in (
                unnumbered,
                _ELLIPSIS.sub("", unnumbered),
                _signed(unnumbered) if has_signs else _ADDED.sub("", unnumbered),
            ):
                words = plain(form)
                if words and words not in seen:
                    seen.add(words)
                    yield words


def _unescaped(text: str) -> str:
    """A quote that was escaped once too often for JSON."""
    return text.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"')


def _signed(text: str) -> str:
    return _SIGN.sub(r"\1 ", text)


def without_numbers(text: str) -> str:
    """A text without the numbers that stand before its lines."""
    return _NUMBERED.sub("", text)
