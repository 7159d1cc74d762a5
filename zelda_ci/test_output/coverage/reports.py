"""Coverage reports: XML of Cobertura and JaCoCo, LCOV, Go's profile, JSON; and how several add up."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree.ElementTree import Element

import re2

from zelda_ci.test_output.reports import attribute_count


@dataclass(frozen=True)
class Share:
    """How much was reached: in percent, and as numbers where the format has them."""

    percent: float
    covered: int | None = None
    valid: int | None = None

    @classmethod
    def of(cls, covered: int, valid: int) -> "Share | None":
        """The share of a countable whole; none of nothing."""
        return cls(100 * covered / valid, covered, valid) if valid > 0 and 0 <= covered <= valid else None


@dataclass(frozen=True)
class Coverage:
    format: str
    lines: Share
    branches: Share | None = None


def percent(text: str) -> Share | None:
    """A share as printed; None for what is no percentage."""
    try:
        value = float(text)
    except ValueError:
        return None
    return Share(value) if 0 <= value <= 100 else None


def total(shares: Sequence[Share | None]) -> Share | None:
    """The share over all parts: by their numbers, or the one percentage that all of them give."""
    if not shares or None in shares:
        return None
    parts = [share for share in shares if share is not None]
    if len({share.percent for share in parts}) == 1 and len(parts) == 1:
        return parts[0]
    counted = [(share.covered, share.valid) for share in parts if share.covered is not None and share.valid is not None]
    if len(counted) < len(parts):
        return None
    return Share.of(sum(covered for covered, _ in counted), sum(valid for _, valid in counted))


_BLOCK = re2.compile(r"(\S+:\d+\.\d+,\d+\.\d+) (\d+) (\d+)$")


def lcov(text: str) -> Coverage | None:
    """The totals of each file of an lcov tracefile, added up."""
    if "end_of_record" not in text:
        return None
    totals = dict.fromkeys(("LF", "LH", "BRF", "BRH"), 0)
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key in totals and value.strip().isdecimal() and len(value) < 12:
            totals[key] += int(value)
    lines, branches = Share.of(totals["LH"], totals["LF"]), Share.of(totals["BRH"], totals["BRF"])
    return Coverage("lcov", lines, branches) if lines else None


def go_profile(text: str) -> Coverage | None:
    """Statements of the blocks that ran; a block of several test programs ran if it did in any."""
    if not text.startswith("mode: "):
        return None
    blocks: dict[str, tuple[int, bool]] = {}
    for line in text.splitlines():
        if match := _BLOCK.match(line):
            ran = blocks.get(match[1], (0, False))[1] or match[3].strip("0") != ""
            blocks[match[1]] = (int(match[2][:9]), ran)
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


def cobertura(root: Element) -> Coverage | None:
    """By the numbers of lines where they are given, else by the rate."""
    if root.tag != "coverage" or root.get("line-rate") is None:
        return None
    lines = _share(root, "lines-covered", "lines-valid") or _rate(root, "line-rate")
    counted = root.get("branches-valid")
    branches = _share(root, "branches-covered", "branches-valid") if counted else _rate(root, "branch-rate")
    return Coverage("Cobertura XML", lines, branches) if lines else None


def _share(element: Element | None, covered: str, *parts: str) -> Share | None:
    """Of attributes: what is covered, and the parts of the whole."""
    counts = [] if element is None else [attribute_count(element, name) for name in (covered, *parts)]
    known = [count for count in counts if count is not None]
    return Share.of(known[0], sum(known[1:])) if len(known) > len(parts) else None


def _rate(root: Element, name: str) -> Share | None:
    try:
        return percent(str(100 * float(root.get(name) or "nan")))
    except ValueError:
        return None


def jacoco(root: Element) -> Coverage | None:
    """By the counters of the whole report."""
    if root.tag != "report":
        return None
    counters = {counter.get("type"): counter for counter in root.findall("counter")}
    lines, branches = (_share(counters.get(kind), "covered", "covered", "missed") for kind in ("LINE", "BRANCH"))
    return Coverage("JaCoCo XML", lines, branches) if lines else None
