"""What differs between two runs of the same session on two days or machines, and therefore never decides a match."""

import re

_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"

_IDENTIFIERS = ((r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", "<uuid>"),)

_OUTPUTS = (
    (r"^[-dlbcps][rwxsStT-]{9}[.+@]? +\d+ +\S+ +\S+ +\d+(?:, +\d+)? +\S+ +\S+ +\S+ ", "<ls> "),
    (r"^total \d+$", "total <n>"),
    (r"^(?:platform|plugins:|rootdir:|cachedir:) .*$", "<pytest>"),
    (rf"\b{_DAY},? +(?:{_MONTH} +\d+|\d+ {_MONTH}) +[\d: ]+(?:[A-Z]{{2,5}} )?(?:\d{{4}})?(?: ?[+-]\d{{4}})?", "<time>"),
    (r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?(?:Z\b|[+-]\d\d:?\d\d))?)?", "<time>"),
    (r"\b\d{1,2}:\d\d:\d\d(?:[.,]\d+)?\b", "<time>"),
    (r"/(?:tmp|var/folders|var/tmp)/[\w.+/-]+", "<temporary>"),
    (r"\b(?:127\.0\.0\.1|localhost):\d+", "<local>"),
    (r"\b0x[0-9a-fA-F]{4,}\b", "<address>"),
    (r"\b[0-9a-f]{7,64}\b", "<hash>"),
    (r"\bv?\d+\.\d+\.\d+[\w.+-]*", "<version>"),
    (r"\b(?:pid|PID|process)[ :=#]+\d+", "<process>"),
    (r"\bduration_ms\W{1,4}\d+", "duration_ms <n>"),
    (r"\b\d+(?:\.\d+)? ?(?:ns|us|µs|ms|s|secs?|seconds?|mins?|minutes?)\b", "<duration>"),
)

IDENTIFIERS = tuple((re.compile(pattern), name) for pattern, name in _IDENTIFIERS)
OUTPUTS = tuple((re.compile(pattern, re.MULTILINE), name) for pattern, name in _OUTPUTS)

VOLATILE_SECTIONS = ("# Environment", "Today's date is", "<total_tokens>")
"""Beginnings of paragraphs that the CLI writes about the machine, the day and the tokens used."""


def without_identifiers(text: str) -> str:
    """Session and message ids."""
    for pattern, name in IDENTIFIERS:
        text = pattern.sub(name, text)
    return text


def without_circumstances(text: str) -> str:
    """Times, durations, hashes, versions, ports and owners in the output of tools."""
    text = without_identifiers(text)
    for pattern, name in OUTPUTS:
        text = pattern.sub(name, text)
    return text
