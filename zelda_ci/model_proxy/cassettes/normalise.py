"""Takes out of texts in what two runs of the same session differ: times, ids, paths. None of it decides a match.

Numbers are recognised by their shape: by a unit of time beside them, by the name of what they measure, or by a format
that only times and addresses have. A number without any of these counts: `12 rows` is not `13 rows`.

All expressions are RE2's: their time grows with the text and not with its square, whatever a session's tools print.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import re2

from zelda_ci.domain.manifest import CONNECTED_LATE
from zelda_ci.model_proxy.answer import dicts
from zelda_ci.model_proxy.wire import Call

_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_NUMBER = r"\d[\d,_]*(?:\.\d+)?(?:[eE][+-]?\d+)?"
# What stands before a duration: it does not begin inside a word, unless that is an escape in JSON.
_BEFORE = r"(^|[^\w.]|\\[tnr])"
_UNIT = r"(?:[nuµμm]s|s|msecs?|secs?|mins?|(?:milli|micro|nano)?seconds?|millis|minutes?)"
_LARGE_UNIT = r"(?:d|days?|h|hrs?|hours?|m|mins?|minutes?)"
_MEASURED = (
    r"(?:duration|elapsed|runtime|latency|uptime|took|timestamp|timing)"
    r"(?:[_-]?(?:in[_-]?)?(?:ns|us|ms|s|secs?|seconds|millis|nanos))?"
)
_TIMES = (
    rf"\b{_DAY},? +(?:{_MONTH} +\d+|\d+ {_MONTH}) +[\d: ]+(?:[A-Z]{{2,5}} )?(?:\d{{4}})?(?: ?[+-]\d{{4}})?",
    r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?(?:Z\b|[+-]\d\d:?\d\d))?)?",
    r"\b\d{1,2}:\d\d:\d\d(?:[.,]\d+)?\b|\b\d{1,3}:\d\d\.\d+\b",
    r"\b1[5-9]\d{8}(?:\d{3}){0,3}(?:\.\d+)?\b",
)
# A port that the system chose.
_EPHEMERAL = r"(?:3[2-9]\d{3}|[45]\d{4}|6[0-5]\d{3})"

_UUID = re2.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b")

_OUTPUTS: tuple[tuple[str, str | Callable[[Any], str]], ...] = (
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
    (r'\bhostname="[^"\n]*"', "<host>"),
    ("|".join(_TIMES), "<time>"),
    # Places, processes, chance.
    (r"(?:/(?:tmp|var/folders|var/tmp)|\{\{zelda:tmp\}\})/[\w.+/{}-]+", "<temporary>"),
    (r"\b(?:127\.0\.0\.1|localhost|0\.0\.0\.0):\d+|\[::1?\]:\d+", "<local>"),
    (rf"\b([Pp]orts?)\b[\"' :=#]{{1,4}}{_EPHEMERAL}\b", r"\1 <local>"),
    (r"\b0x[0-9a-fA-F]{4,}\b", "<address>"),
    (r"\b(?:p?pid|P?PID|[Pp]rocess(?: ?(?:id|ID))?)\b[\"' :=#]{1,4}\d+", "<process>"),
    (r"(?i)\b(seed)\b[\"' :=]{1,4}\d+", r"\1 <seed>"),
    # Durations, and what is computed from them.
    (rf"\b{_NUMBER} ?[A-Za-z]+/s(?:ec(?:onds?)?)?\b", "<rate>"),
    (rf"(?i)({_MEASURED})\b[^\w\n]{{1,6}}{_NUMBER}(?: ?{_UNIT})?\b", r"\1 <duration>"),
    (rf"(?i)(time(?:[_-]?ms)?)\b[\"')]{{0,2}} ?[:=] *[\"']?{_NUMBER}(?: ?{_UNIT})?\b", r"\1 <duration>"),
    (rf"{_BEFORE}(?:{_NUMBER} ?{_LARGE_UNIT},? ?)*{_NUMBER} ?{_UNIT}\b", r"\1<duration>"),
    (rf"{_BEFORE}(?:{_NUMBER} ?(?:h|hrs?|hours?|d|days?),? ?)+{_NUMBER} ?{_LARGE_UNIT}\b", r"\1<duration>"),
    (rf"^(real|user|sys)\s+{_NUMBER}$", r"\1 <duration>"),
    (rf"\b{_NUMBER} (wallclock|usr|sys|cusr|csys|CPU|total$)", r"<duration> \1"),
    (r"\b(in|after) \d+\.\d{2,}($|[^\w%.])", r"\1 <duration>\2"),
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
OUTPUTS = tuple((re2.compile(f"(?m){pattern}"), new) for pattern, new in _OUTPUTS)

# Beginnings of paragraphs that the CLI writes about the machine, the day, the tokens used and what is on its way.
VOLATILE_SECTIONS = (
    "# Environment",
    "Today's date is",
    "The date has changed",
    "<total_tokens>",
    "The following MCP servers are still connecting",
    "[SYSTEM NOTIFICATION",
)


def without_identifiers(text: str) -> str:
    """Return the text without session and message ids."""
    # RE2 reads no halves of characters, which a text has that was cut.
    return str(_UUID.sub("<uuid>", text.encode(errors="replace").decode()))


def without_circumstances(text: str) -> str:
    """Return a tool's output without times, durations, hashes, versions, processes, ports and owners."""
    text = without_identifiers(text)
    for pattern, new in OUTPUTS:
        text = pattern.sub(new, text)
    return text


# Of a sub-agent, of a command in the background, of the file that holds an output too long to show.
_HANDLE = re.compile(r"(?:\bagentId: |\bwith ID: |/tool-results/)([ab][0-9a-z]{8,16})\b")


def generated_ids(call: Call) -> dict[str, str]:
    """Return the session's id and the handles in a request's tool results, by names that are the same in every run."""
    session = call.header("x-claude-code-session-id")
    found = {"sessionId": session} if session else {}
    for message in dicts(call.body.get("messages")):
        for block in dicts(message.get("content")):
            if block.get("type") == "tool_result" and (match := _HANDLE.search("\n".join(texts(block.get("content"))))):
                found["handle_" + re.sub(r"[^A-Za-z0-9]", "_", str(block.get("tool_use_id")))] = match[1]
    return found


def blocks(content: object) -> list[dict[str, Any]]:
    """Return the blocks of a message's content, also of one that is a string."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else dicts(content)


def texts(content: object) -> list[str]:
    """Return the texts of a message's content."""
    return [text for block in blocks(content) if isinstance(text := block.get("text"), str)]


_MARK = re.compile(r"\{\{zelda:([\w-]+)\}\}")


class Placeholders:
    """A reversible mapping between values and marks like `{{zelda:workspace}}`.

    A path also has a mark for its slug, as which Claude Code names its folders after the working directory.

    Args:
        values: Text by name (letters, digits, underscores). Where two overlap, the longer wins, then the earlier.
    """

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values: dict[str, str] = {}
        self._marks: dict[str, str] = {}
        self._pattern = re.compile("(?!)")
        self.update({name: value for name, value in values.items() if len(value) > 1})

    def update(self, values: Mapping[str, str]) -> None:
        """Add values that have turned up; a name keeps its first value."""
        if values.keys() <= self._values.keys():
            return
        for name, value in values.items():
            self._values.setdefault(name, value)
            if value.startswith("/"):
                self._values.setdefault(f"{name}-slug", "/" + re.sub(r"[^A-Za-z0-9]", "-", value))
        for name, value in self._values.items():
            self._marks.setdefault(value, f"{{{{zelda:{name}}}}}")
        # A regular expression takes the first alternative that fits, and one path may begin with another.
        longest_first = sorted(self._marks, key=len, reverse=True)
        # A value ends where a word ends.
        self._pattern = re.compile(rf"(?:{'|'.join(map(re.escape, longest_first))})(?![A-Za-z0-9_])")

    def blank(self, value: Any) -> Any:
        """Take the values out of every string of a JSON value, keys included."""
        return mapped(lambda text: self._pattern.sub(lambda match: self._marks[match[0]], text), value)

    def fill(self, value: Any) -> Any:
        """Put the values back into every string of a JSON value."""
        return mapped(lambda text: _MARK.sub(lambda match: self._values.get(match[1], match[0]), text), value)


def mapped(change: Callable[[str], str], value: Any) -> Any:
    """Return a JSON value with every string in it changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(key): mapped(change, item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [mapped(change, item) for item in value]
    return value
