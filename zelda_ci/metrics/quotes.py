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
# From this length on, a quote may end inside a word (never inside a number): judges cut long lines.
LONG_QUOTE = 30
MAX_OCCURRENCES = 200
# Thai is the first of the scripts that write without spaces; most of what follows is written so.
FIRST_WITHOUT_SPACES = 0x0E00

# What changes when a text is copied and means the same.
_SAME = str.maketrans(
    {"‘": "'", "’": "'", "“": '"', "”": '"', "‐": "-", "‑": "-", "–": "-", "—": "-", "…": "..."}  # noqa: RUF001
    | dict.fromkeys("\ufe0e\ufe0f", "")
)
# Of a terminal, also as it is shown to a judge.
_COLOUR = re.compile(r"(?:\x1b|⟦U\+001B [^⟦⟧\n]{1,40}⟧)\[[0-9;?]*[A-Za-z]")
# The number of a line, or where it was found by a look-up.
_NUMBER = r"[ \t]*\d+(?: \| ?|\t|→| *\|$)"
_FOUND_AT = r"(?:(?:after )?turn \d+(?: call \d+)?|[^\s:]{1,300}):\d+:(?: \[from column \d+ of \d+\])? "
_PREFIX = re.compile(rf"^(?:{_NUMBER}|{_FOUND_AT})", re.MULTILINE)
_SIGN = re.compile(r"^([+-])", re.MULTILINE)
_ADDED = re.compile(r"^\+", re.MULTILINE)
# What models put around a quote.
_AROUND = " \t\n`\"'“”….…"


class Standing(Enum):
    """What a line can prove; the value says why a PASS cannot rest on it."""

    FACT = ""
    WORDS = "these are the session's own words, which prove nothing about its work"
    ECHO = "the session had written this itself before, so that a result which repeats it proves nothing"
    TASK = "this is what was asked for, not what was done"
    FRAME = "these are headings and marks, not what the session did"
    REMOVED = "these lines were removed; where the removal itself is the proof, cite them by the kind removed"
    CONTEXT = "these lines of the patch were there before; cite an added line, or the final file"
    UNDONE = "this was written, but the patch does not have it; cite the final file or the patch"


@dataclass(frozen=True)
class Line:
    """A line of a text that can be cited; its standing may depend on the piece of it that is quoted."""

    text: str
    standing: Standing | Callable[[str], Standing] = Standing.FACT


# What a quote has of one line: the text, whether that is the whole line, and what it can prove.
Piece = tuple[str, bool, Standing]


def lines_of(text: str, standing: Standing | Callable[[str], Standing] = Standing.FACT) -> Iterator[Line]:
    """The lines of a text that all have the same standing."""
    return (Line(line, standing) for line in text.split("\n"))


class Passage:
    """Lines, none of which has a line break, in which quotes are looked up; in a patch, with their signs."""

    def __init__(self, lines: Iterable[Line], *, has_signs: bool = False) -> None:
        self._has_signs, given = has_signs, list(lines)
        # All at once: a text may have a million lines.
        words = (" ".join(text.split()) for text in _visible("\n".join(line.text for line in given)).split("\n"))
        self._lines = [(line, text) for line, text in zip(given, words, strict=False) if text]
        self._starts, size = [], 0
        for _, text in self._lines:
            self._starts.append(size)
            size += len(text) + 1
        self._text = " ".join(text for _, text in self._lines)

    def find(self, quote: str) -> Iterator[Sequence[Piece]]:
        """Every place at which a quote stands, as the pieces of lines that it covers."""
        for wanted in forms_of(quote, has_signs=self._has_signs):
            start = -1
            for _ in range(MAX_OCCURRENCES):
                if (start := self._text.find(wanted, start + 1)) < 0:
                    break
                end = start + len(wanted)
                if _is_copy(self._text, start, end):
                    pieces = list(self._pieces(start, end))
                    if len(wanted) > 1 or pieces[0][1]:
                        yield pieces

    def _pieces(self, start: int, end: int) -> Iterator[Piece]:
        position = bisect_right(self._starts, start) - 1
        while position < len(self._starts) and (first := self._starts[position]) < end:
            line, text = self._lines[position]
            if covered := text[max(0, start - first) : end - first]:
                standing = line.standing if isinstance(line.standing, Standing) else line.standing(covered)
                yield covered, covered == text, standing
            position += 1


def plain(text: str) -> str:
    """A text without what does not matter: what cannot be seen, and the marks that show it to a judge."""
    return " ".join(_visible(text).split())


def _visible(text: str) -> str:
    seen = unmarked(_COLOUR.sub("", text))
    return seen if seen.isascii() else unicodedata.normalize("NFC", seen.translate(_SAME))


def _is_copy(text: str, start: int, end: int) -> bool:
    """Whether a stretch of a text begins and ends where words do."""
    quote = text[start:end]
    is_long = sum(map(str.isalnum, quote)) >= LONG_QUOTE
    ends = ((text[max(0, start - 2) : start], quote[0]), (text[end : end + 2][::-1], quote[-1]))
    return all(_is_edge(outside, inner, is_long=is_long) for outside, inner in ends)


def _is_edge(outside: str, inner: str, *, is_long: bool) -> bool:
    """Whether a word begins at a character; read backwards, whether one ends there."""
    outer = outside[-1:]
    if inner.isdigit():
        # "3 passed" is not in "13 passed", nor "5" in "1.5".
        return not (outer.isalnum() or outer == "_" or (outer in {".", ","} and outside[:-1].isdigit()))
    # Scripts without spaces have no words that white space ends.
    is_inside = all(it == "_" or (it.isalnum() and ord(it) < FIRST_WITHOUT_SPACES) for it in (outer, inner))
    return not is_inside or (is_long and not outer.isdigit())


def shortcoming(pieces: Sequence[Piece], proving: Standing = Standing.FACT) -> str | None:
    """Why a PASS cannot rest on a quote; nothing where it can."""
    proofs = [(sum(map(str.isalnum, text)), is_whole) for text, is_whole, standing in pieces if standing is proving]
    if sum(size for size, _ in proofs) >= MIN_SUBSTANCE or any(size and is_whole for size, is_whole in proofs):
        return None
    weak = [standing for _, _, standing in pieces if standing not in {proving, Standing.FACT}]
    # What the judge meant to cite, rather than the heading above it.
    kind = next((standing for standing in weak if standing is not Standing.FRAME), weak[0] if weak else None)
    return kind.value if kind else "the quote is too short to prove anything; quote the whole line"


def forms_of(quote: str, *, has_signs: bool = False) -> list[str]:
    """A quote as it is, and as it may have been meant: without what stands around it or before its lines."""
    forms: list[str] = []
    for told in (quote, quote.strip(_AROUND)):
        for bare in (told, without_numbers(told)):
            forms += [bare, _SIGN.sub(r"\1 ", bare) if has_signs else _ADDED.sub("", bare)]
    return [form for form in dict.fromkeys(map(plain, forms)) if form]


def without_numbers(text: str) -> str:
    """A text without the numbers that stand before its lines."""
    return _PREFIX.sub("", text)
