"""What a recogniser finds, before it is redacted, and the lines, labels and loops that recognisers share."""

import json
import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import Any

import re2

from zelda_ci.domain.details import Source, Unit

Lines = Sequence[str]

# Names of failed tests that are kept.
NAMES_KEPT = 10
# A count beyond this is no count of tests.
MAX_COUNT = 10_000_000
# The line that stands where output was cut.
GAP = "\0 output is missing here"
# Characters of a line that are looked at; JSON is read from the whole line.
MAX_WIDTH = 2_000
_SHORT_LINES = ("", "{", "}")
_COLUMN_ONE = re.compile(r"\x1b\[1?G|\x1b\[2K")
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_]|[()][A-B0-2])")
# What CI systems and loggers write before each line: a job and a step, a time or a step of a build; a level.
_STAMP = re2.compile(
    r"(?m)^(?:[^\t\n]{1,80}\t[^\t\n]{1,80}\t\x{feff}?)?"
    r"(?:\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?: ?Z|[+-]\d\d:?\d\d)?\]?"
    r"(?: \d\d[OE]\+?)?|\[\d\d:\d\d:\d\d(?:[.,]\d+)?Z?\]|\d\d:\d\d:\d\d(?:[.,]\d+)?Z?|#\d+ \d+\.\d+)(?: |$)"
)
LEVEL = re2.compile(r"(?m)^ *\[(?:info|error|warn|INFO|ERROR|WARNING|junit|java|exec|testng)\] ?")
# Every repetition is bounded, so that it needs no RE2, which takes ten times as long for a line.
_LABEL = re.compile(
    r"(?:\[(?P<bracket>[\w@./:#-]{1,80}|[\w. -]{1,60} #\d+-\d+)\]"  # concurrently, npm-run-all: [web] ...
    r"|(?P<task>[\w@./-]{1,80}[:#][\w.-]{1,80}):"  # turbo: web:test: ...
    r"|(?P<pnpm>[\w@./-]{1,80} [\w:.-]{1,40})[:$]"  # pnpm: packages/web test: ...
    r"|(?P<lerna>@?[\w./-]{1,80}):"  # lerna: web: ...
    r"|(?P<compose>[\w.-]{1,80}) *\|)"  # compose: web-1  | ...
    r"(?: |$)",
    re.ASCII,
)
MAX_LABELS = 200
# Labels inside of each other.
MAX_DEPTH = 2
_NO_LABELS = frozenset({"info", "error", "warning", "warn", "debug", "fatal", "trace", "doctest"})


@dataclass(frozen=True)
class Tally:
    """One run of one runner. `first` and `last` are the lines it spans, as far as they can be told."""

    format: str
    passed: int = 0
    failed: int = 0
    errored: int = 0
    skipped: int = 0
    flaky: int = 0
    failures: tuple[str, ...] = ()
    unit: Unit = "tests"
    first: int = 0
    last: int = 0
    complete: bool = False
    """Whether as many tests ended as the runner announced; a proof of completeness where the output has a gap."""
    source: Source = "summary"
    label: str = ""
    certain: bool = True
    """Whether nothing else can look like this; else it counts only where nothing certain was found."""
    proven: bool = False
    """Whether `first` is where the runner says that it begins, so that what stands up to `last` is its own."""
    ends: tuple[str, ...] = ()
    """The last words of the names of all tests that ran, sorted, where they are known."""
    doubt: str = ""
    """Why its numbers cannot be believed, or that there are none."""

    @classmethod
    def of(cls, form: str, outcomes: Iterable[tuple[str, str]], **more: Any) -> "Tally":
        """Of tests that are known one by one, each by the kind of its outcome and its name."""
        listed = list(outcomes)
        kinds = Counter(kind for kind, _ in listed)
        lost = first_names(name for kind, name in listed if kind in {"failed", "errored"})
        counts = kinds["passed"], kinds["failed"], kinds["errored"], kinds["skipped"]
        return cls(form, *counts, failures=lost, ends=ends(name for kind, name in listed if kind != "skipped"), **more)

    @property
    def total(self) -> int:
        """Tests that are known, run or not."""
        return sum(self.outcomes)

    @property
    def outcomes(self) -> tuple[int, int, int, int]:
        return self.passed, self.failed, self.errored, self.skipped

    @property
    def red(self) -> bool:
        """Whether a test failed or broke."""
        return self.failed + self.errored > 0

    def fits(self, announced: int | None) -> bool:
        """Whether so many tests can have ended so: what was skipped or broken may stand beside those announced."""
        return announced is not None and self.passed + self.failed <= announced <= self.total


def ends(names: Iterable[str]) -> tuple[str, ...]:
    """What names of tests have in common in all formats, which put suites, classes and files before them."""
    return tuple(sorted(words[-1] for name in names if (words := re.findall(r"\w+", name))))


def same_run(ones: Sequence[Tally], others: Sequence[Tally]) -> bool:
    """Whether both tell of the same tests: as many of each outcome, and of the same names where they have any."""
    (passed, lost, names), other = _told(ones), _told(others)
    return passed + lost > 0 and (passed, lost) == other[:2] and (not (names and other[2]) or names == other[2])


def _told(tallies: Sequence[Tally]) -> tuple[int, int, list[str]]:
    named = all(tally.ends for tally in tallies if tally.passed + tally.failed + tally.errored)
    return (
        sum(tally.passed for tally in tallies),
        sum(tally.failed + tally.errored for tally in tallies),
        sorted(end for tally in tallies for end in tally.ends) if named else [],
    )


@cache
def _multiline(pattern: str) -> Any:
    options = re2.Options()
    # No class of characters goes on in the next line.
    options.never_nl = True
    return re2.compile(f"(?m)^(?:{pattern})", options)


def matches(lines: Lines, pattern: Any) -> Iterator[tuple[int, Any]]:
    """Line number and match of every line that begins as the pattern says, by one pass over all of them."""
    text = "\n".join(lines)
    ends: list[int] = []
    for match in _multiline(pattern.pattern).finditer(text):
        # An empty match says nothing, and patterns without a line's end may go on in the next line.
        ends = ends or list(accumulate((len(line) + 1 for line in lines), initial=-1))[1:]
        yield bisect_left(ends, match.start()), match


def first_names(names: Iterable[str]) -> tuple[str, ...]:
    """Each name once, the first ones only."""
    return tuple(dict.fromkeys(names))[:NAMES_KEPT]


@dataclass(frozen=True)
class Output:
    """What a command printed: whole, or its head and its tail with something missing between."""

    head: str | bytes
    tail: str | bytes | None = None

    def lines(self) -> list[str]:
        """Visible lines; `GAP` stands where output is missing, and the cut lines beside it are left out."""
        head = visible_lines(decode(self.head))
        if self.tail is None:
            return _relevant(head)
        return _relevant([*head[:-1], GAP, *visible_lines(decode(self.tail))[1:]])


def _relevant(lines: list[str]) -> list[str]:
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
    # PowerShell writes UTF-16 with a byte order mark where it redirects output to a file.
    if (encoding := json.detect_encoding(raw)) in {"utf-8-sig", "utf-16", "utf-32"}:
        return raw.decode(encoding, "replace")
    return raw.decode("utf-8", "replace")


def visible_lines(text: str) -> list[str]:
    """Lines without escape sequences, stamps and levels; where a line was overwritten, what was written last."""
    text = text.removeprefix("\ufeff")
    if "\x1b" in text:
        text = _ESCAPE.sub("", _COLUMN_ONE.sub("\r", text))
    if "\r" in text:
        # Progress displays that only ever return to the start of the line.
        written = text.split("\n") if "\n" in text else text.split("\r")
        text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in written)
    # A lone surrogate stands for a byte that was no text; the patterns take no such thing.
    plain: str = LEVEL.sub("", _STAMP.sub("", text.encode("utf-8", "replace").decode()))
    return plain.split("\n")


# --- labels that whoever runs several commands at once writes before each line ----------------------------------------


def split(line: str) -> tuple[str, str] | None:
    """Label and rest of a line that has a label."""
    if line[:1] != "[" and ":" not in line and "|" not in line and "$" not in line:
        return None
    match = _LABEL.match(line)
    label = match[match.lastgroup] if match and match.lastgroup else ""
    # CTest numbers the lines that its tests print.
    if not match or label.lower() in _NO_LABELS or (label.isdecimal() and line[0] != "["):
        return None
    return label, LEVEL.sub("", line[match.end() :])


def by_label(lines: Lines) -> Mapping[str, list[str]]:
    """Lines without their label, for every label that a runner could have; a gap is a gap in each."""
    labelled: defaultdict[str, list[str]] = defaultdict(list)
    for line in lines:
        if line == GAP:
            # A label that was not seen yet may have spoken in the gap, so it starts with one.
            labelled.default_factory = lambda: [GAP]
            for rest in labelled.values():
                rest.append(GAP)
        elif parts := split(line):
            labelled[parts[0]].append(parts[1])
    # More are words of a log: nobody runs as many runners at once, and each of them is read for itself.
    most = set(sorted(labelled, key=lambda label: -len(labelled[label]))[:MAX_LABELS])
    return {label: own for label, own in labelled.items() if label in most}


def without_label(line: str) -> str:
    """A line without its labels; empty where it has none."""
    rest = ""
    for _ in range(MAX_DEPTH):
        if parts := split(rest or line):
            rest = parts[1]
    return rest
