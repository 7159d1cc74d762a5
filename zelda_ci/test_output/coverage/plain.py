"""lcov, Go's cover profile, Istanbul's JSON summary and coverage.py's JSON."""

import json
import re
from typing import Any

from zelda_ci.test_output.coverage.measure import Coverage, Share, percent

_BLOCK = re.compile(r"(\S+:\d+\.\d+,\d+\.\d+) (\d+) (\d+)$")


def lcov(text: str) -> Coverage | None:
    """The totals of each file of an lcov tracefile, added up."""
    if "end_of_record" not in text:
        return None
    found = dict.fromkeys(("LF", "LH", "BRF", "BRH"), 0)
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key in found and value.strip().isdecimal() and len(value) < 12:
            found[key] += int(value)
    lines, branches = Share.of(found["LH"], found["LF"]), Share.of(found["BRH"], found["BRF"])
    return Coverage("lcov", lines, branches) if lines else None


def go_profile(text: str) -> Coverage | None:
    """Statements of the blocks that ran; a block of several test programs ran if it did in any."""
    if not text.startswith("mode: "):
        return None
    blocks: dict[str, tuple[int, bool]] = {}
    for line in text.splitlines():
        if found := _BLOCK.match(line):
            ran = blocks.get(found[1], (0, False))[1] or found[3].strip("0") != ""
            blocks[found[1]] = (int(found[2][:9]), ran)
    share = Share.of(sum(size for size, ran in blocks.values() if ran), sum(size for size, _ in blocks.values()))
    return Coverage("Go cover profile", share) if share else None


def json_report(text: str) -> Coverage | None:
    """Istanbul's summary or coverage.py's report."""
    try:
        document = json.loads(text)
        return _istanbul(document) or _coverage_py(document)
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError, OverflowError):
        return None


def _istanbul(document: dict[str, Any]) -> Coverage | None:
    totals = document.get("total")
    if not isinstance(totals, dict) or "lines" not in totals:
        return None
    lines, branches = (_istanbul_share(totals.get(part)) for part in ("lines", "branches"))
    return Coverage("Istanbul JSON summary", lines, branches) if lines else None


def _istanbul_share(part: dict[str, Any] | None) -> Share | None:
    if not part:
        return None
    return Share.of(int(part["covered"]), int(part["total"])) or percent(str(part.get("pct")))


def _coverage_py(document: dict[str, Any]) -> Coverage | None:
    totals = document.get("totals")
    if not isinstance(totals, dict):
        return None
    lines = Share.of(int(totals["covered_lines"]), int(totals["num_statements"]))
    branches = Share.of(int(totals.get("covered_branches", 0)), int(totals.get("num_branches", 0)))
    return Coverage("coverage.py JSON", lines, branches) if lines else None
