"""Output of parallel runners: lines that carry their runner's name are put back into one text per runner."""

import re
from collections import defaultdict
from collections.abc import Mapping

from zelda_ci.test_output.tally import Lines
from zelda_ci.test_output.text import GAP

_LABEL = re.compile(
    r"(?:\[(?P<bracket>[\w@./:#-]{1,80})\]"  # concurrently, npm-run-all: [web] ...
    r"|(?P<task>[\w@./-]{1,80}:[\w.-]{1,80}):"  # turbo: web:test: ...
    r"|(?P<pnpm>[\w@./-]{1,80} [\w:.-]{1,40})[:$]"  # pnpm: packages/web test: ...
    r"|(?P<lerna>@?[\w./-]{1,80}):"  # lerna: web: ...
    r"|(?P<compose>[\w.-]{1,80}) *\|)"  # compose: web-1  | ...
    r"(?: |$)"
)
_NO_LABELS = frozenset(
    {"INFO", "ERROR", "WARNING", "WARN", "DEBUG", "FATAL", "TRACE", "error", "warn", "info", "debug", "doctest"}
)


def by_label(lines: Lines) -> Mapping[str, list[str]]:
    """Lines without their label, for every label that a runner could have; a gap is a gap in each."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for line in lines:
        if line == GAP:
            # A label that was not seen yet may have spoken in the gap, so it starts with one.
            found.default_factory = lambda: [GAP]
            for kept in found.values():
                kept.append(GAP)
        elif parts := split(line):
            found[parts[0]].append(parts[1])
    return found


def without(lines: Lines, labels: frozenset[str]) -> list[str]:
    """The lines that carry none of these labels."""
    return [line for line in lines if (found := split(line)) is None or found[0] not in labels]


def split(line: str) -> tuple[str, str] | None:
    """Label and rest of a line that has a label."""
    if line[:1] != "[" and ":" not in line and "|" not in line and "$" not in line:
        return None
    found = _LABEL.match(line)
    if not found or not found.lastgroup:
        return None
    label = found[found.lastgroup]
    return None if label in _NO_LABELS else (label, line[found.end() :])
