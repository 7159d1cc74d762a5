"""What a word without quotes means in a Zelda file: the few forms on which every YAML version agrees.

YAML 1.1 reads `on` as true, `12:30` as 750 and `2026-02-13` as a date, YAML 1.2 does not; editors and tools are split.
Such words are neither guessed nor passed through: they are a `Surprise`, and an error wherever they appear.
"""

import re
from dataclasses import dataclass

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset({"true", "True", "TRUE"})
_FALSE = frozenset({"false", "False", "FALSE"})
_SWITCH = frozenset({"y", "n", "yes", "no", "on", "off"})

# Eighteen digits fit into 64 bits.
_INT = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})")
_FLOAT = re.compile(r"[-+]?([0-9]{1,18}\.[0-9]{0,18}|\.[0-9]{1,18})")

_LONGEST_NUMBER = 64
_DATE = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(([Tt]|[ \t]+)[0-9][0-9:. \tZz+-]*)?")
_ODD_NUMBER = re.compile(
    r"""[-+]?(
        [0-9][0-9_]*                          # leading zero (octal), underscores, or too long
      | 0[xob][0-9a-fA-F_]+
      | [0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?  # sexagesimal
      | ([0-9][0-9_]*\.?[0-9_]*|\.[0-9_]+)([eE][-+]?[0-9]+)?
      | \.(inf|Inf|INF)
    )|\.(nan|NaN|NAN)""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class Surprise:
    """A word that YAML readers understand in different ways."""

    text: str


def plain_value(text: str) -> str | int | float | bool | Surprise | None:
    """The value of an unquoted word."""
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if _INT.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    return Surprise(text) if _surprises(text) else text


def _surprises(text: str) -> bool:
    if text.lower() in _SWITCH or text in {"=", "<<"}:
        return True
    if len(text) > _LONGEST_NUMBER:
        return text.lstrip("+-").isdecimal()
    return bool(_DATE.fullmatch(text) or _ODD_NUMBER.fullmatch(text))
