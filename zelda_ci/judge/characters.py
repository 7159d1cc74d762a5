"""Characters that deceive a reader: those that act or hide, and letters that look like those of another script."""

import re
import unicodedata
from collections.abc import Iterator

# Categories of characters that act or hide: controls, escapes, bidi overrides, joiners, line separators.
ACTING = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
INVISIBLE = {"\u034f", "\u115f", "\u1160", "\u17b4", "\u17b5", "\u2800", "\u3164", "\uffa0"}
# Variation selectors beyond those of emoji carry hidden text.
SELECTORS = range(0xE0100, 0xE01F0)
# Scripts with letters that look like Latin ones; by the first word of the names of their characters.
ALIKE = frozenset({"CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "LISU", "FULLWIDTH", "MATHEMATICAL"})
# Combining marks upon one letter in any living script; a pile of them paints over the neighbouring lines.
MAX_MARKS = 3
# What is read as one name: identifiers, paths, domains, addresses.
_NAME = re.compile(r"[^\W_](?:[\w./@:-]*[^\W_])?")
_LATIN = re.compile(r"[A-Za-z]")
_FOREIGN = re.compile(r"[^\W\x00-\x7f]")
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")
_BEYOND_PLAIN = re.compile(r"[^\x20-\x7e]+")
_UNUSUAL = re.compile(r"[^\t\n\r\x20-\x7e]")
_MARK = re.compile(r"⟦(?:U\+[0-9A-F]{4,6} [^⟦⟧\n]{1,100}|[A-Z]{4,12} letters)⟧")


def acts(char: str) -> bool:
    """Whether a character acts or hides instead of being seen."""
    return unicodedata.category(char) in ACTING or char in INVISIBLE or ord(char) in SELECTORS


def marked(text: str) -> str:
    """The text with marks for what deceives a reader: in place of what acts or hides, behind look-alikes in a name."""
    # Words of one script that stand by themselves are what they look like. Marking twice adds nothing.
    if text.isascii() and not _UNUSUAL.search(text):
        return text
    lines = text.translate(_Acting()).split("\n")
    return "\n".join(_NAME.sub(_name, line) if _FOREIGN.search(line) else line for line in lines)


def spelled(text: str, keep: str = "") -> str:
    r"""One line that says the same, with what acts or hides spelt out, like `\x1b`; characters in `keep` stay."""
    if text.isascii() and text.isprintable():  # at once for most
        return text
    return _BEYOND_PLAIN.sub(lambda found: "".join(_spelled(found[0], keep)), text)


def _spelled(run: str, keep: str) -> Iterator[str]:
    marks = 0
    for char in run:
        marks = marks + 1 if unicodedata.category(char) in {"Mn", "Me"} else 0
        deceives = char not in keep and (acts(char) or marks > MAX_MARKS)
        yield char.encode("unicode_escape").decode() if deceives else char


def unmarked(text: str) -> str:
    """The text without marks, and without what acts or hides: for comparing what was shown with what was copied."""
    if text.isascii() and not _UNUSUAL.search(text):
        return text
    return "".join(char for char in _MARK.sub("", text) if char in "\t\n\r" or not acts(char))


class _Acting(dict[int, str]):
    """A table for `str.translate` that fills itself: few characters occur, and each of them often."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        name = unicodedata.name(char, unicodedata.category(char))
        is_seen = char in "\t\n\r" or not acts(char)
        self[code] = char if is_seen else f"⟦U+{code:04X} {name}⟧"
        return self[code]


def _name(found: re.Match[str]) -> str:
    name = found[0]
    if name.isascii() or _MARK.match(found.string, found.end()):
        return name
    is_mixed = _LATIN.search(name) or unicodedata.normalize("NFKC", name).isascii()
    return _BEYOND_ASCII.sub(_foreign, name) if is_mixed else name


def _foreign(found: re.Match[str]) -> str:
    scripts = {unicodedata.name(char, "").partition(" ")[0] for char in found[0]} & ALIKE
    return found[0] + "".join(f"⟦{script} letters⟧" for script in sorted(scripts))
