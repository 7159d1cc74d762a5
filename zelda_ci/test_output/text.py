"""Command output as a person would see it: decoded, without escape sequences, line by line."""

import codecs
import re
from dataclasses import dataclass

GAP = "\0 output is missing here"
"""The line that stands where output was cut."""

WIDEST = 2_000
"""Characters of a line that are looked at; JSON is read from the whole line."""

_SHORT_LINES = ("", "{", "}")
_COLUMN_ONE = re.compile(r"\x1b\[1?G|\x1b\[2K")
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_]|[()][A-B0-2])")
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


@dataclass(frozen=True)
class Output:
    """What a command printed: whole, or its head and its tail with something missing between."""

    head: str | bytes
    tail: str | bytes | None = None

    @classmethod
    def marked(cls, text: str, marker: str) -> "Output":
        """Output in which a line containing `marker` stands for what is missing."""
        head, found, tail = text.partition(marker)
        return cls(head, tail) if found else cls(head)

    def lines(self) -> list[str]:
        """Visible lines; `GAP` stands where output is missing, and the cut lines beside it are left out."""
        head = visible_lines(decode(self.head))
        if self.tail is None:
            return _telling(head)
        return _telling([*head[:-1], GAP, *visible_lines(decode(self.tail))[1:]])


def _telling(lines: list[str]) -> list[str]:
    """Without lines of one character, which no format needs but `{` and `}`, and without more than one blank line."""
    return [
        line
        for line, before in zip(lines, ["", *lines], strict=False)
        if len(line) > 1 or (line != before and line in _SHORT_LINES)
    ]


def decode(raw: str | bytes) -> str:
    """Text of any bytes: by their byte order mark, else UTF-8, with what is neither replaced."""
    if isinstance(raw, str):
        return raw
    for mark, encoding in _MARKS:
        if raw.startswith(mark):
            return raw.decode(encoding, "replace")
    if b"\0" in raw[:200] and raw[1:200:2].count(0) > len(raw[:200]) // 3:
        return raw.decode("utf-16-le", "replace")
    return raw.decode("utf-8", "replace")


def visible_lines(text: str) -> list[str]:
    """Lines without escape sequences; where a line was overwritten, what was written last."""
    text = text.removeprefix("\ufeff")
    if "\x1b" in text:
        text = _ESCAPE.sub("", _COLUMN_ONE.sub("\r", text))
    if "\r" not in text:
        return text.split("\n")
    if "\n" not in text:
        return text.split("\r")
    return [_last_written(line) for line in text.split("\n")]


def _last_written(line: str) -> str:
    written = line.rstrip("\r")
    return written[written.rfind("\r") + 1 :]
