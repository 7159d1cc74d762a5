"""Text from outside in GitHub's Markdown: it shows as it is, and is neither structure nor link nor mention."""

import re

SPLIT = "\u200b"
"""A character without width: GitHub looks for mentions and links in what was rendered, where escapes are gone."""

_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_MARKUP = re.compile(r"([\\`*_\[\]|~$])")
_LINKING = re.compile(r"@|#(?=\w)|:(?=[\w/+-])|\bwww(?=\.)|\bGH(?=-\d)", re.IGNORECASE)
_HASH = re.compile(r"\b[0-9a-f]{7,64}\b", re.IGNORECASE)
_LEADING = re.compile(r"^([-+](?=\s|$)|-(?=-)|=|#(?=[\s#]|$)|\d+(?=[.)](?:\s|$)))")


def gfm(text: str) -> str:
    """One line that is safe in a sentence, a list and a cell of a table; what acts is spelled out already."""
    line = " ".join(text.split())
    split = _HASH.sub(_without_commit, _LINKING.sub(rf"\g<0>{SPLIT}", line))
    escaped = _MARKUP.sub(r"\\\1", split).translate(_ENTITIES)
    return _LEADING.sub(lambda found: f"{found[0]}\\" if found[0].isdigit() else f"\\{found[0]}", escaped)


def _without_commit(found: re.Match[str]) -> str:
    """Seven hexadecimal digits in a row are enough for a link."""
    return SPLIT.join(found[0][start : start + 6] for start in range(0, len(found[0]), 6))
