"""Takes out of texts in what two runs of the same session differ: times, ids, places. None of it decides a match.

Numbers are recognised by their shape: by a unit of time beside them, by the name of what they measure, or by a format
that only times and addresses have. A number without any of these counts: `12 rows` is not `13 rows`.

All expressions are RE2's: their time grows with the text and not with its square, whatever a session's tools print.
"""

from collections.abc import Callable
from typing import Any

import re2

from zelda_ci.domain.manifest import CONNECTED_LATE

_WEEKDAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_DATE = rf"\b{_WEEKDAY},? +(?:{_MONTH} +\d+|\d+ {_MONTH}) +[\d: ]+(?:[A-Z]{{2,5}} )?(?:\d{{4}})?(?: ?[+-]\d{{4}})?"
_NUMBER = r"\d[\d,_]*(?:\.\d+)?(?:[eE][+-]?\d+)?"
_UNIT = r"(?:[nuµμm]s|s|msecs?|secs?|mins?|(?:milli|micro|nano)?seconds?|millis|minutes?)"
_LARGE_UNIT = r"(?:d|days?|h|hrs?|hours?|m|mins?|minutes?)"
_MEASURED = rf"(?:duration|elapsed|latency|timestamp|timing|time)(?:[_-]?(?:in[_-]?)?{_UNIT})?"

_UUID = re2.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b")

_CIRCUMSTANCES: tuple[tuple[str, str | Callable[[Any], str]], ...] = (
    (r"\x1b\[[\d;]*[A-Za-z]", ""),
    # Claude Code's own: ids (they have names in a session's requests by now, not in a judge's), and where the preview
    # of a long output ends, which depends on the length of the numbers in it.
    (r"(\bagentId: |\bwith ID: |/tool-results/|/tasks/)[ab][0-9a-z]{8,16}\b", r"\1<handle>"),
    (r"Output too large \([^)\n]*\)", "Output too large (<size>)"),
    (r"\n[^\n]*\n\.\.\.\n</persisted-output>", "\n</persisted-output>"),
    # Machines and days.
    (r"^[-dlbcps][rwxsStT-]{9}[.+@]? +\d+ +\S+ +\S+ +\d+(?:, +\d+)? +\S+ +\S+ +\S+ ", "<ls> "),
    (r"^total \d+$", "total <n>"),
    (r"^(?:platform|plugins:|rootdir:|cachedir:) .*$", "<pytest>"),
    (_DATE, "<time>"),
    (r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?(?:Z\b|[+-]\d\d:?\d\d))?)?", "<time>"),
    (r"\b\d{1,2}:\d\d:\d\d(?:[.,]\d+)?\b|\b\d{1,3}:\d\d\.\d+\b", "<time>"),
    (r"\b1[5-9]\d{8}(?:\d{3}){0,3}(?:\.\d+)?\b", "<time>"),
    # Places, processes, chance; the ports are those that a system chooses.
    (r"(?:/(?:tmp|var/folders|var/tmp)|\{\{zelda:tmp\}\})/[\w.+/{}-]+", "<temporary>"),
    (r"\b(?:127\.0\.0\.1|localhost|0\.0\.0\.0):\d+|\[::1?\]:\d+", "<local>"),
    (r"\b([Pp]orts?)\b[\"' :=#]{1,4}(?:3[2-9]|[45]\d|6[0-5])\d{3}\b", r"\1 <local>"),
    (r"\b0x[0-9a-fA-F]{4,}\b", "<address>"),
    (r"\b(?:p?pid|P?PID|[Pp]rocess(?: ?(?:id|ID))?)\b[\"' :=#]{1,4}\d+", "<process>"),
    (r"(?i)\b(seed)\b[\"' :=]{1,4}\d+", r"\1 <seed>"),
    # Durations, and what is computed from them. None begins inside a word, unless that is an escape in JSON.
    (rf"\b{_NUMBER} ?[A-Za-z]+/s(?:ec(?:onds?)?)?\b", "<rate>"),
    (rf"(?i)({_MEASURED})\b[\"')]{{0,2}} ?[:=] *[\"']?{_NUMBER}(?: ?{_UNIT})?\b", r"\1 <duration>"),
    (rf"(^|[^\w.]|\\[tnr])(?:{_NUMBER} ?{_LARGE_UNIT},? ?)*{_NUMBER} ?{_UNIT}\b", r"\1<duration>"),
    (r"^(ok[ \t]+\S+[ \t]+)\(cached\)", r"\1<duration>"),
    (rf"\b([Mm]em(?:ory)?(?: usage| used)?)[\"' :=]{{1,4}}{_NUMBER} ?[KMG]i?B\b", r"\1 <size>"),
    # The rest of a fraction is no hash.
    (r"(\d\.\d\w*)|\b[0-9a-f]{7,64}\b", lambda match: match[1] or "<hash>"),
    (r"\bv?\d+\.\d+\.\d+[\w.+-]*", "<version>"),
    # Runners tell some durations only where they are long, and fill lines up to a width.
    (r"[ \t]*[(\[]<(?:duration|time)>[)\]]", ""),
    (r"[ \t]+(<(?:duration|time|rate|size)>)", r" \1"),
    (r"={3,}|_{3,}|\*{3,}|~{3,}|-{3,}", lambda match: match[0][:3]),
    # Our own, in what a judge is asked: which server was late, and where a text is cut, which depends on the length of
    # such numbers.
    (rf" \({CONNECTED_LATE}[^)\n]*\)", ""),
    (r"(?:^[^\n]*)?\n\[\.\.\. \d+ characters are left out here[^\n]*\n[^\n]*", "<left out>"),
)
CIRCUMSTANCES = tuple((re2.compile(f"(?m){pattern}"), new) for pattern, new in _CIRCUMSTANCES)


def without_identifiers(text: str) -> str:
    """Return the text without session and message ids."""
    # RE2 reads no halves of characters, which a text has that was cut.
    return str(_UUID.sub("<uuid>", text.encode(errors="replace").decode()))


def without_circumstances(text: str) -> str:
    """Return a tool's output without times, durations, hashes, versions, processes, ports and owners."""
    text = without_identifiers(text)
    for pattern, new in CIRCUMSTANCES:
        text = pattern.sub(new, text)
    return text
