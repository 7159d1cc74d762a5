"""What differs between two runs of the same session: times, ids, paths. None of it decides a match.

Numbers are recognised by their shape: by a unit of time beside them, by the name of what they measure, or by a format
that only times and addresses have. A number without any of these counts: `12 rows` is not `13 rows`.

All expressions are RE2's: their time grows with the text and not with its square, whatever a session's tools print.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

import re2

from zelda_ci.domain.manifest import CONNECTED_LATE
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
    (r"(?:/(?:tmp|var/folders|var/tmp)|\{\{tmp\}\})/[\w.+/{}-]+", "<temporary>"),
    (r"\b(?:127\.0\.0\.1|localhost|0\.0\.0\.0):\d+|\[::1?\]:\d+", "<local>"),
    (rf"\b([Pp]orts?)\b[\"' :=#]{{1,4}}{_EPHEMERAL}\b", r"\1 <local>"),
    (r"\b0x[0-9a-fA-F]{4,}\b", "<address>"),
    (r"\b(?:p?pid|P?PID|[Pp]rocess(?: ?(?:id|ID))?)\b[\"' :=#]{1,4}\d+", "<process>"),
    (r"^ *\d+ (?:pts/\d+|tty\w+|\?) ", "<process> "),
    (r"^(\[\d+\])[+-]? +\d+$", r"\1 <process>"),
    (r"(?i)\b(seed)\b[\"' :=]{1,4}\d+", r"\1 <seed>"),
    # Durations, and what is computed from them.
    (rf"[ \t]*\({_NUMBER}\)( ?{_UNIT})\b", r"\1"),
    (rf"\b{_NUMBER} ?[A-Za-z]+/s(?:ec(?:onds?)?)?\b", "<rate>"),
    (rf"(?i)({_MEASURED})\b[^\w\n]{{1,6}}{_NUMBER}(?: ?{_UNIT})?\b", r"\1 <duration>"),
    (rf"(?i)(time(?:[_-]?ms)?)\b[\"')]{{0,2}} ?[:=] *[\"']?{_NUMBER}(?: ?{_UNIT})?\b", r"\1 <duration>"),
    (rf"{_BEFORE}(?:{_NUMBER} ?{_LARGE_UNIT},? ?)*{_NUMBER} ?{_UNIT}\b", r"\1<duration>"),
    (rf"{_BEFORE}(?:{_NUMBER} ?(?:h|hrs?|hours?|d|days?),? ?)+{_NUMBER} ?{_LARGE_UNIT}\b", r"\1<duration>"),
    (rf"^(real|user|sys)\s+{_NUMBER}$", r"\1 <duration>"),
    (rf"\b{_NUMBER} (wallclock|usr|sys|cusr|csys|CPU|total$)", r"<duration> \1"),
    (r"\b(in|after) \d+\.\d{2,}($|[^\w%.])", r"\1 <duration>\2"),
    (r"^(ok[ \t]+\S+[ \t]+)\(cached\)", r"\1<duration>"),
    (rf"\b{_NUMBER}% cpu\b", "<rate>"),
    (rf"\b([Mm]em(?:ory)?(?: usage| used)?)[\"' :=]{{1,4}}{_NUMBER} ?[KMG]i?B\b", r"\1 <size>"),
    (rf"(\(kbytes\): ){_NUMBER}", r"\1<size>"),
    # The rest of a fraction is no hash.
    (r"(\d\.\d\w*)|\b[0-9a-f]{7,64}\b", lambda match: match[1] or "<hash>"),
    (r"\bv?\d+\.\d+\.\d+[\w.+-]*", "<version>"),
    # Runners tell some durations only where they are long, and fill lines up to a width.
    (r"[ \t]*[(\[]<(?:duration|time)>[)\]]", ""),
    (r"[ \t]+(<(?:duration|time|rate|size)>)", r" \1"),
    (r"={3,}|_{3,}|\*{3,}|~{3,}|-{3,}", lambda match: match[0][:3]),
    # Our own, in what a judge is asked: which server was late, and where a text is cut, which depends on the length of
    # such numbers.
    (r"\n+(</evidence-)", "\n\\1"),
    (rf" \({CONNECTED_LATE}[^)\n]*\)", ""),
    (r"(?:^[^\n]*)?\n\[\.\.\. \d+ characters are left out here[^\n]*\n[^\n]*", "<left out>"),
)
OUTPUTS = tuple((re2.compile(f"(?m){pattern}"), new) for pattern, new in _OUTPUTS)

_TASK = re2.compile(r"\S+ notice\]\ntask_notification: ")

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
    """The text without session and message ids."""
    # RE2 reads no halves of characters, which a text has that was cut.
    return str(_UUID.sub("<uuid>", text.encode(errors="replace").decode()))


def without_circumstances(text: str) -> str:
    """The output of a tool without times, durations, hashes, versions, processes, ports and owners."""
    text = without_identifiers(_without_tasks(text))
    for pattern, new in OUTPUTS:
        text = pattern.sub(new, text)
    return text


def _without_tasks(text: str) -> str:
    """What a judge is asked, without which background tasks had ended by the end of the session."""
    first, *pieces = text.split("\n\n[")
    kept = [first]
    for piece in pieces:
        if _TASK.match(piece):
            kept[-1] += "".join(piece.partition("\n</evidence-")[1:])
        else:
            kept.append(piece)
    return "\n\n[".join(kept)


# Of a sub-agent, of a command in the background, of the file that holds an output too long to show.
_HANDLE = re.compile(r"(?:\bagentId: |\bwith ID: |/tool-results/)([ab][0-9a-z]{8,16})\b")


def named(call: Call) -> dict[str, str]:
    """The session's id and the handles in the request's tool results, by names that are the same in every run."""
    session = call.header("x-claude-code-session-id")
    placeholders = {f"handle_{re.sub(r'[^A-Za-z0-9]', '_', name)}": handle for name, handle in _handles(call.body)}
    return {**({"sessionId": session} if session else {}), **placeholders}


def _handles(body: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for message in _objects(body.get("messages")):
        for block in _objects(message.get("content")):
            if block.get("type") == "tool_result" and (match := _HANDLE.search(_text(block.get("content")))):
                yield str(block.get("tool_use_id")), match[1]


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "\n".join(str(part.get("text", "")) for part in _objects(content))


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    return (item for item in value if isinstance(item, dict)) if isinstance(value, list) else iter(())


# Marks a `{{name}}` that was in the text itself.
LITERAL = "literal:"


def _json(value: str) -> str:
    return json.dumps(value)[1:-1]


def _wide_json(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)[1:-1]


def _escaped_json(value: str) -> str:
    return _json(value).replace("/", "\\/")


def _slug(value: str) -> str:
    """As Claude Code names its folders after the working directory."""
    return "/" + re.sub(r"[^A-Za-z0-9]", "-", value)


# How a path may be spelled otherwise: in JSON inside a text (three ways), in a URL, as a folder's name.
SPELLINGS: Mapping[str, Callable[[str], str]] = {
    "json": _json,
    "wide": _wide_json,
    "slashes": _escaped_json,
    "url": quote,
    "slug": _slug,
}


class Placeholders:
    """A reversible mapping between values and their names.

    Args:
        values: Text by name (letters, digits, underscores). Where two overlap, the longer wins, then the earlier.
    """

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values: dict[str, str] = {}
        self._add({name: value for name, value in values.items() if len(value) > 1})

    def update(self, values: Mapping[str, str]) -> None:
        """Add values that have turned up; a name keeps its first value."""
        if new := {name: value for name, value in values.items() if name not in self._values}:
            self._add(new)

    def _add(self, new: Mapping[str, str]) -> None:
        self._values.update(new)
        self._marks: dict[str, str] = {}
        for name, value in self._values.items():
            for spelling, mark in _spelled(name, value):
                self._marks.setdefault(spelling, mark)
        names = "|".join(sorted(map(re.escape, self._values), reverse=True)) or "(?!)"
        kinds = "|".join(SPELLINGS)
        # In the text before: a mark that was already there, or a value that ends where a word ends.
        # A regular expression takes the first alternative that fits, and one path may begin with another.
        longest_first = sorted(self._marks, key=len, reverse=True)
        values = "|".join(map(re.escape, longest_first)) or "(?!)"
        own = rf"\{{\{{(?:{LITERAL})*(?:{names})(?::(?:{kinds}))?\}}\}}"
        self._spelled = re.compile(rf"({own})|(?:{values})(?![A-Za-z0-9_])")
        self._marked = re.compile(rf"\{{\{{({LITERAL})?((?:{LITERAL})*)({names})(?::({kinds}))?\}}\}}")

    def blank(self, text: str) -> str:
        """Take the values out."""
        return self._spelled.sub(self._mark, text)

    def fill(self, text: str) -> str:
        """Put the values back."""
        return self._marked.sub(self._value, text) if "{{" in text else text

    def blank_tree(self, value: Any) -> Any:
        """Take the values out of every string of a JSON value, keys included."""
        return _map(self.blank, value)

    def fill_tree(self, value: Any) -> Any:
        """Put the values back into every string of a JSON value."""
        return _map(self.fill, value)

    def _mark(self, match: re.Match[str]) -> str:
        if match[1]:
            return "{{" + LITERAL + match[1][2:]
        return self._marks[match[0]]

    def _value(self, match: re.Match[str]) -> str:
        literal, more, name, kind = match.groups()
        if literal:
            return "{{" + more + name + (f":{kind}" if kind else "") + "}}"
        value = self._values[name]
        return SPELLINGS[kind](value) if kind else value


def plain(text: str) -> str:
    """Marks without their spelling, which depends on the path's characters."""
    return re.sub(rf"\{{\{{(\w+):(?:{'|'.join(SPELLINGS)})\}}\}}", r"{{\1}}", text)


def _spelled(name: str, value: str) -> Iterator[tuple[str, str]]:
    yield value, f"{{{{{name}}}}}"
    # Only paths turn up in other spellings; a token or an id is the same text everywhere.
    if value.startswith("/"):
        for kind, spell in SPELLINGS.items():
            if (spelling := spell(value)) != value:
                yield spelling, f"{{{{{name}:{kind}}}}}"


def _map(change: Callable[[str], str], value: Any) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(key): _map(change, item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_map(change, item) for item in value]
    return value
