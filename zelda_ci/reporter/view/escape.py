"""The one place where text from outside is made harmless to look at.

Redaction took the secrets; what is left may still be written by a hostile session to forge a line of the report, to
hide one, or to command the terminal or the CI log.
"""

import unicodedata

ACTING = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
"""Categories of characters that act or hide: controls, escapes, bidi overrides, joiners, line separators."""

INVISIBLE = {"\u034f", "\u115f", "\u1160", "\u17b4", "\u17b5", "\u2800", "\u3164", "\uffa0"}

NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}

MOST_MARKS = 3
"""Combining marks upon one letter in any living script; a pile of them paints over the neighbouring lines."""


def visible(text: str, limit: int = 200) -> str:
    """One line in which nothing acts and nothing hides; what is left out of the middle is marked."""
    return _spelled(_clipped(text, limit))


def sentence(text: str, limit: int = 600) -> str:
    """Prose as one line: white space of any kind folds into single blanks; a long end is cut and marked."""
    words = " ".join(text[: 8 * limit].split())
    return _spelled(words if len(words) <= limit else words[:limit].rstrip() + " …")


def _clipped(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}…{text[-half:]}"


def _spelled(text: str) -> str:
    r"""The text with what acts spelled out, like `\x1b`. `##[` would be a command anywhere in a line of a CI log."""
    if text.isascii() and text.isprintable():
        return text.replace("##[", "# #[")
    spelled: list[str] = []
    marks = 0
    for char in text:
        category = unicodedata.category(char)
        marks = marks + 1 if category in {"Mn", "Me"} else 0
        acts = category in ACTING or char in INVISIBLE or marks > MOST_MARKS
        spelled.append(_code(char) if acts else char)
    return "".join(spelled).replace("##[", "# #[")


def _code(char: str) -> str:
    number = ord(char)
    if number < 0x100:
        return NAMED.get(char, f"\\x{number:02x}")
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
