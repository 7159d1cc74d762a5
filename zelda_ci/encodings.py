"""What a text says in other spellings: wrapped, escaped, dumped in digits, in base64.

Each spelling gives a view: what it stands for, and where that stands in the text. Every view is made in one pass.
"""

import binascii
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import accumulate
from operator import itemgetter
from typing import Any, NamedTuple

import re2

_LINE_END = re.compile(rb"\n|\\n")


class Segment(NamedTuple):
    """A part of a view, in which so many bytes of the text (`width`) stand for so many of the view (`step`)."""

    begin: int
    """In the view."""
    source: int
    """In the text."""
    width: int = 1
    step: int = 1


class View(NamedTuple):
    """What a text stands for."""

    data: bytes
    segments: Sequence[Segment]
    lines_of: bytes | None = None
    """The text, where whole lines of it are meant: a dump repeats in characters what it says in digits."""

    def source(self, start: int, end: int) -> tuple[int, int]:
        """Where in the text a part of the view stands."""
        first, last = self._segment(start), self._segment(end - 1)
        if self.lines_of is not None:
            line_end = _LINE_END.search(self.lines_of, last.source + 2)
            return first.source, line_end.start() if line_end else len(self.lines_of)
        return (
            first.source + (start - first.begin) * first.width // first.step,
            last.source - (-(end - last.begin) * last.width // last.step),
        )

    def _segment(self, position: int) -> Segment:
        return self.segments[bisect_right(self.segments, position, key=itemgetter(0)) - 1]


def _compile(pattern: bytes) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = 64 << 20
    return re2.compile(pattern, options)


# Between the lines of a text, also in JSON.
_BREAK = re.compile(rb"(?:\r?\n|(?:\\r)?\\n)[ \t]*")
# With what a diff, a quotation, `cat -n` and the Read tool put before each line.
_MARKED_BREAK = re.compile(
    rb"(?:\r?\n|(?:\\r)?\\n)(?:[ \t]{0,8}[0-9]{1,6}(?:\xe2\x86\x92|\t)|[ \t]{0,40}[-+|>]?[ \t]{0,40})"
)
_MARKED = _compile(
    rb"(?:^|\n|\\n)[ \t]{0,8}[0-9]{1,6}(?:\xe2\x86\x92|\t)"
    rb"|(?:^|\n|\\n)[ \t]{0,40}(?:\+[^\n]{4,200}\n[ \t]{0,40}\+|-[^\n]{4,200}\n[ \t]{0,40}-|[>|])"
)


def joined(data: bytes) -> Iterator[tuple[bytes, "Callable[[], View]"]]:
    """The text without its line breaks, and what finds the places, which takes longer; the text itself without any."""
    if b"\n" not in data and b"\\n" not in data:
        yield data, lambda: View(data, [Segment(0, 0)])
        return
    text = _without_breaks(data)
    yield text, partial(_joined_view, data, text, _BREAK)
    if _MARKED.search(data):
        text = _MARKED_BREAK.sub(b"", data)
        yield text, partial(_joined_view, data, text, _MARKED_BREAK)


def _without_breaks(data: bytes) -> bytes:
    """The same as `_BREAK` would make of it, ten times as fast."""
    plain = data.replace(b"\r\n", b"\n").replace(rb"\r\n", b"\n").replace(rb"\n", b"\n")
    first, *others = plain.split(b"\n")
    return b"".join([first, *(line.lstrip(b" \t") for line in others)])


def _joined_view(data: bytes, text: bytes, pattern: re.Pattern[bytes]) -> View:
    segments, begin, source = [Segment(0, 0)], 0, 0
    for match in pattern.finditer(data):
        begin += match.start() - source
        source = match.end()
        segments.append(Segment(begin, source))
    return View(text, segments)


_ESCAPE = re.compile(
    rb"\\{1,4}(?:u([0-9A-Fa-f]{4})|u\{0{0,4}([0-9A-Fa-f]{1,4})\}|x([0-9A-Fa-f]{2}))|%([0-9A-Fa-f]{2})"
    rb"|&#x0{0,4}([0-9A-Fa-f]{1,4});|\\{1,4}([0-3][0-7]{2})|&#0{0,4}([0-9]{1,4});"
)
_ESCAPE_BASES = (16, 16, 16, 16, 16, 8, 10)
MIN_ESCAPES = 4


def unescaped(data: bytes) -> View | None:
    """The text with characters in place of their numbers."""
    matches = [*_ESCAPE.finditer(data)]
    if len(matches) < MIN_ESCAPES:
        return None
    pieces: list[bytes] = []
    segments: list[Segment] = []
    begin = source = 0
    for match in matches:
        if match.start() > source:
            segments.append(Segment(begin, source))
            pieces.append(data[source : match.start()])
            begin += match.start() - source
        group = match.lastindex or 1
        char = _encoded(int(match[group], _ESCAPE_BASES[group - 1]), is_byte=group in {3, 4, 6})
        segments.append(Segment(begin, match.start(), match.end() - match.start(), max(1, len(char))))
        pieces.append(char)
        begin += len(char)
        source = match.end()
    segments.append(Segment(begin, source))
    pieces.append(data[source:])
    return View(b"".join(pieces), segments)


def _encoded(number: int, *, is_byte: bool) -> bytes:
    return bytes([number]) if is_byte else chr(number).encode("utf-8", "replace")


# What base64 turns eight characters into, twice.
MIN_RUN = 16
_RUN = re.compile(rb"[A-Za-z0-9+/_-]{%d,}" % MIN_RUN)
_STANDARD = bytes.maketrans(b"-_", b"+/")
# Between two runs, so that nothing is read across them.
_GAP = b"////"


def from_base64(data: bytes) -> Iterator[View]:
    """What stands in runs of base64, which may begin at any of four places: what stands before looks like base64."""
    runs = [match.span() for match in _RUN.finditer(data)]
    if not runs:
        return
    text = data.translate(_STANDARD)
    for shift in range(4):
        pieces: list[bytes] = []
        segments: list[Segment] = []
        begin = 0
        for start, end in runs:
            first, count = start + shift, (end - start - shift) // 4
            segments.append(Segment(begin, first, 4, 3))
            # The last characters, of which four make three bytes only with what is missing.
            tail = text[first + 4 * count : end]
            pieces += (text[first : first + 4 * count], tail, b"A" * (4 - len(tail)), _GAP)
            begin += 3 * (count + 2)
        yield View(binascii.a2b_base64(b"".join(pieces)), segments)


_HEX_RUN = _compile(rb"(?:[0-9A-Fa-f]{2}){8,}")


def from_hex(data: bytes) -> View | None:
    """What stands in runs of hexadecimal digits."""
    pieces: list[bytes] = []
    segments: list[Segment] = []
    begin = 0
    for match in _HEX_RUN.finditer(data):
        piece = binascii.unhexlify(match[0])
        segments.append(Segment(begin, match.start(), 2, 1))
        pieces += (piece, b"\xff")
        begin += len(piece) + 1
    return View(b"".join(pieces), segments) if pieces else None


# A line of a dump: perhaps an offset, then groups of digits, then perhaps the same in characters.
_LINE_START = rb"(?m)(?:^|\\n|\")[ \t>|+-]{0,8}(?:[0-9]{1,6}(?:\xe2\x86\x92|\t))?[ \t]{0,8}"
_DIGITS = rb"(?:0x|\\x)?[0-9A-Fa-f]{2,16}"
_SEPARATOR = rb"(?:,? {1,8}|[,:-])"
_DUMP_LINE = _compile(
    _LINE_START
    # With an offset,
    + rb"(?:(?:[0-9A-Fa-f]{4,16}:|[0-9A-Fa-f]{6,16})[ \t]{1,8}("
    + (_DIGITS + rb"(?: {1,8}" + _DIGITS + rb")*)")
    # without one, or anywhere in a line.
    + (rb"|[ (\[{]{0,8}((?:" + _DIGITS + _SEPARATOR + rb"){2,}" + _DIGITS + rb"))")
    + (rb"|((?:" + _DIGITS + _SEPARATOR + rb"){5,}" + _DIGITS + rb")")
)
_GROUP = re.compile(rb"(?:0x|\\x)?([0-9A-Fa-f]+)")
_CHARACTER_LINE = _compile(_LINE_START + rb"(?:[0-9A-Fa-f]{4,16}:?)?((?: {2,3}(?:\\?[!-~]|[0-7]{3}| )){3,})")
_CHARACTER = re.compile(rb" {2,3}(\\?[!-~]|[0-7]{3}| )")
_NAMED_CHARACTERS = {b"\\n": b"\n", b"\\t": b"\t", b"\\r": b"\r", b"\\0": b"\0"}
_HEX_GROUPS = {2, 4, 8, 16}

Line = tuple[int, list[bytes]]


def from_dumps(data: bytes) -> Iterator[View]:
    """What lines of digits stand for: bytes or words, in hexadecimal, octal or decimal digits, and `od -c`."""
    matches = [(match.start(), match[1] or match[2] or match[3]) for match in _DUMP_LINE.finditer(data)]
    wide = [(start, _GROUP.findall(digits)) for start, digits in matches]
    # Two blanks are a gap in the middle, or what follows are characters that look like digits.
    narrow = [(start, _GROUP.findall(digits.partition(b"  ")[0])) for start, digits in matches]
    for lines in (wide, narrow) if narrow != wide else (wide,) if wide else ():
        yield from (_dumped(data, lines, read) for read in (_hex, _swapped_hex, _octal, _decimal, _binary))
    characters = [(match.start(), _CHARACTER.findall(match[1])) for match in _CHARACTER_LINE.finditer(data)]
    if characters:
        yield _dumped(data, characters, _characters)


def _dumped(data: bytes, lines: Sequence[Line], read: Callable[[list[bytes]], bytes]) -> View:
    pieces = [read(groups) for _, groups in lines]
    begins = accumulate(map(len, pieces), initial=0)
    segments = [Segment(begin, start) for begin, (start, _), piece in zip(begins, lines, pieces, strict=False) if piece]
    return View(b"".join(pieces), segments, data)


def _hex(groups: list[bytes]) -> bytes:
    # What no word of a dump is as long as is an offset, and stands before the first word.
    offset = next((number for number in reversed(range(len(groups))) if len(groups[number]) not in _HEX_GROUPS), -1)
    return binascii.unhexlify(b"".join(groups[offset + 1 :]))


def _swapped_hex(groups: list[bytes]) -> bytes:
    """Words, of which the last byte comes first."""
    sizes = set(map(len, groups))
    return b"".join(binascii.unhexlify(group)[::-1] for group in groups) if {2} != sizes <= _HEX_GROUPS else b""


def _octal(groups: list[bytes]) -> bytes:
    size = {3: 1, 6: 2}.get(len(groups[0]), 0)
    if not size or {*map(len, groups)} != {3 * size}:
        return b""
    try:
        return b"".join(int(group, 8).to_bytes(size, "little") for group in groups)
    except (ValueError, OverflowError):
        return b""


def _decimal(groups: list[bytes]) -> bytes:
    try:
        return bytes(map(int, groups)) if max(map(len, groups)) <= 3 else b""
    except ValueError:
        return b""


def _binary(groups: list[bytes]) -> bytes:
    digits = b"".join(groups)
    is_binary = {*map(len, groups)} == {8} and not digits.strip(b"01")
    return int(digits, 2).to_bytes(len(groups), "big") if is_binary else b""


def _characters(words: list[bytes]) -> bytes:
    return b"".join(
        bytes([int(word, 8) & 255]) if len(word) == 3 else _NAMED_CHARACTERS.get(word, word) for word in words
    )


# Without any of these a text stands for nothing but itself; what random bytes decode to mostly has none.
_HINT = _compile(
    rb"[A-Za-z0-9+/_-]{16}|(?:(?:0x)?[0-9A-Fa-f]{2,16}(?:,? {1,8}|[,:-])){2}|"
    rb"(?:\\{1,4}[ux0-3{]{1,2}|%|&#x?)[0-9A-Fa-f]{2}|(?: {2,3}[!-~]){3}|[!-~]{4}(?:\r?\n|\\n)"
)


def may_hide(data: bytes) -> bool:
    """Whether a text may stand for another."""
    return _HINT.search(data) is not None


_TEXT = _compile(rb"[\t\n\r -~]{16,}")


def texts(data: bytes) -> View:
    """The parts that are text, of what was decoded: most of what is not meant to be decoded comes out as none."""
    spans = [match.span() for match in _TEXT.finditer(data)]
    begins = accumulate((end - start + 1 for start, end in spans), initial=0)
    segments = [Segment(begin, start) for begin, (start, _) in zip(begins, spans, strict=False)]
    return View(b"\0".join(data[start:end] for start, end in spans), segments)


def decoded(data: bytes) -> Iterator[View]:
    """What a text without line breaks stands for, by each way of writing it."""
    yield from filter(None, (unescaped(data), from_hex(data)))
    yield from from_base64(data)
