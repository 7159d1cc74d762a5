"""Labels that whoever runs several commands at once writes before each line."""

import re
from collections import defaultdict
from collections.abc import Mapping

from zelda_ci.test_output.tally import GAP, LEVEL, Lines

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


def bare(line: str) -> str:
    """A line without its labels; empty where it has none."""
    rest = ""
    for _ in range(MAX_DEPTH):
        if parts := split(rest or line):
            rest = parts[1]
    return rest
