"""Coverage, from reports or as printed: Cobertura, JaCoCo, LCOV, Istanbul, coverage.py and Go."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import PurePosixPath
from typing import NamedTuple
from xml.etree.ElementTree import Element

import re2

from zelda_ci.domain.details import CoverageSummary
from zelda_ci.test_output.reports import RefusedXmlError, ReportFile, attribute_count, parse_xml
from zelda_ci.test_output.tally import GAP, MAX_WIDTH, Lines, Output, decode, matches

# Globs of well-known places, for files written after the command started.
COVERAGE_REPORTS = (
    "**/coverage/coverage-summary.json", "**/lcov.info", "coverage.xml", "coverage.json", "cobertura.xml",
    "**/cobertura-coverage.xml", "**/coverage.cobertura.xml", "**/target/site/jacoco/jacoco.xml",
    "**/build/reports/jacoco/*/*.xml", "coverage.out", "cover.out",
)  # fmt: skip
# Of several formats in one folder the first one counts.
_PREFERRED = ("coverage.py JSON", "Istanbul JSON summary", "lcov", "Cobertura XML", "JaCoCo XML", "Go cover profile")
_BLOCK = re2.compile(r"(\S+:\d+\.\d+,\d+\.\d+) (\d+) (\d+)$")
HOW_TO_GET_COVERAGE = "let the command write a Cobertura or lcov report and name it in `coverageReport`"
_TABLE = re2.compile(r"\|? *All files *\|([\d. |-]*)")
_HEADER = re2.compile(r"\|? *File *\|(.*)$")
_SUMMARY = re2.compile(r"(Statements|Branches|Lines) *: ([\d.]+)% \( (\d+)/(\d+) \)")
_TOTAL = re2.compile(r"TOTAL +([\d ]+?) +(\d+(?:\.\d+)?)%(?: |$)")
_NAMES = re2.compile(r"(?:Name +Stmts|File +(?:Lines|Branches)) +")
_GO_PACKAGE = re2.compile(r"ok  \t\S+\t(?:[\d.]+s|\(cached\))\tcoverage: ([\d.]+)% of statements")
_GO_TOTAL = re2.compile(r"total:\s+\(statements\)\s+([\d.]+)%$")


class Share(NamedTuple):
    """How much was reached: in percent, and as numbers where the format has them."""

    percent: float
    covered: int = 0
    valid: int = 0

    @classmethod
    def of(cls, covered: int | None, valid: int | None) -> "Share | None":
        """The share of a countable whole; none of nothing."""
        if covered is None or not valid or not 0 <= covered <= valid:
            return None
        return cls(100 * covered / valid, covered, valid)


class Coverage(NamedTuple):
    format: str
    lines: Share
    branches: Share | None = None


def _percent(text: str, scale: int = 1) -> Share | None:
    """A share as printed; None for what is no percentage."""
    with suppress(ValueError):
        if 0 <= (value := scale * float(text)) <= 100:
            return Share(value)
    return None


def _total(shares: Sequence[Share | None]) -> Share | None:
    """The share over all parts: by their numbers, or the percentage of the only one."""
    parts = [share for share in shares if share]
    if len(parts) < len(shares) or not parts:
        return None
    if len(parts) == 1:
        return parts[0]
    counted = all(share.valid for share in parts)
    return Share.of(sum(share.covered for share in parts), sum(share.valid for share in parts)) if counted else None


def _lcov(text: str) -> Coverage | None:
    """The totals of each file of an lcov tracefile, added up."""
    totals = dict.fromkeys(("LF", "LH", "BRF", "BRH"), 0)
    for line in text.splitlines() if "end_of_record" in text else ():
        key, _, value = line.partition(":")
        if key in totals and value.strip().isdecimal() and len(value) < 12:
            totals[key] += int(value)
    lines, branches = Share.of(totals["LH"], totals["LF"]), Share.of(totals["BRH"], totals["BRF"])
    return Coverage("lcov", lines, branches) if lines else None


def _go_profile(text: str) -> Coverage | None:
    """Statements of the blocks that ran; a block of several test programs ran if it did in any."""
    if not text.startswith("mode: "):
        return None
    blocks: dict[str, tuple[int, bool]] = {}
    for line in text.splitlines():
        if match := _BLOCK.match(line):
            blocks[match[1]] = (int(match[2][:9]), blocks.get(match[1], (0, False))[1] or match[3].strip("0") != "")
    share = Share.of(sum(size for size, ran in blocks.values() if ran), sum(size for size, _ in blocks.values()))
    return Coverage("Go cover profile", share) if share else None


def _json(text: str) -> Coverage | None:
    """Istanbul's summary or coverage.py's report."""
    try:
        document = json.loads(text)
        if totals := document.get("totals"):
            lines = Share.of(int(totals["covered_lines"]), int(totals["num_statements"]))
            branches = Share.of(int(totals.get("covered_branches", 0)), int(totals.get("num_branches", 0)))
            return Coverage("coverage.py JSON", lines, branches) if lines else None
        lines, branches = (
            part and (Share.of(int(part["covered"]), int(part["total"])) or _percent(str(part.get("pct"))))
            for part in map(document["total"].get, ("lines", "branches"))
        )
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError, OverflowError):
        return None
    return Coverage("Istanbul JSON summary", lines, branches) if lines else None


def _xml(raw: bytes) -> Coverage | None:
    """Cobertura, by the numbers of lines where they are given, else by the rate; or JaCoCo's counters."""
    try:
        root = parse_xml(raw)
    except RefusedXmlError:
        return None
    if root.tag == "coverage":
        lines, branches = _cobertura(root, "line", "lines"), _cobertura(root, "branch", "branches")
        return Coverage("Cobertura XML", lines, branches) if lines and root.get("line-rate") else None
    shares: dict[str | None, Share | None] = {}
    for counter in root.findall("counter") if root.tag == "report" else ():
        covered, missed = attribute_count(counter, "covered"), attribute_count(counter, "missed")
        shares[counter.get("type")] = Share.of(covered, None if covered is None or missed is None else covered + missed)
    lines = shares.get("LINE")
    return Coverage("JaCoCo XML", lines, shares.get("BRANCH")) if lines else None


def _cobertura(root: Element, part: str, parts: str) -> Share | None:
    counted = Share.of(attribute_count(root, f"{parts}-covered"), attribute_count(root, f"{parts}-valid"))
    # There are none: the rate says 0 or 1.
    if counted or attribute_count(root, f"{parts}-valid") == 0:
        return counted
    return _percent(root.get(f"{part}-rate") or "nan", scale=100)


def _table(lines: Lines) -> Iterator[Coverage]:
    """Istanbul's and Deno's table; its heading names the columns."""
    columns: list[str] = []
    for line in lines:
        if match := _HEADER.match(line):
            columns = [name.strip(" %").lower() for name in match[1].split("|")]
        elif (match := _TABLE.match(line)) and columns:
            row = dict(zip(columns, map(_percent, match[1].split("|")), strict=False))
            if share := row.get("lines") or row.get("line"):
                yield Coverage("Istanbul text", share, row.get("branch"))


def _printed_summary(lines: Lines) -> Iterator[Coverage]:
    branches: Share | None = None
    for _, match in matches(lines, _SUMMARY):
        share = Share.of(int(match[3][:9]), int(match[4][:9]))
        branches = share if match[1] == "Branches" and share else branches
        if match[1] == "Lines" and share:
            yield Coverage("Istanbul text", share, branches)
            branches = None


def _coverage_py(lines: Lines) -> Iterator[Coverage]:
    heading = next((number for number, _ in matches(lines, _NAMES)), len(lines))
    for number, match in matches(lines, _TOTAL):
        # Without its heading only below a rule, or alone: else it may be a total of something else.
        columns = [int(cell[:9]) for cell in match[1].split()]
        if (number < heading and number and lines[number - 1].strip("- ")) or len(columns) not in {2, 4}:
            continue
        # With branches the printed percentage mixes them with lines, so it is computed from the columns.
        missed, executed = Share.of(columns[0] - columns[1], columns[0]), Share.of(columns[1], columns[0])
        printed = _percent(match[2])
        # gcovr prints what was executed, where coverage.py prints what was missed.
        if missed and printed and len(columns) == 2 and abs(missed.percent - printed.percent) > 1:
            near = executed if executed and abs(executed.percent - printed.percent) <= 1 else printed
            yield Coverage("gcovr text", near)
        elif missed:
            yield Coverage("coverage.py text", missed)


def _go(lines: Lines) -> Iterator[Coverage]:
    totals = [share for _, match in matches(lines, _GO_TOTAL) if (share := _percent(match[1]))]
    packages = [share for _, match in matches(lines, _GO_PACKAGE) if (share := _percent(match[1]))]
    yield from (Coverage("Go", share) for share in totals[-1:] or packages)


# The most exact first, each with the words without which it cannot be there.
FORMATS: tuple[tuple[str, Callable[[Lines], Iterator[Coverage]]], ...] = (
    ("All files", _table),
    ("% ( ", _printed_summary),
    ("TOTAL ", _coverage_py),
    ("statements", _go),
)


def read_coverage(output: Output, reports: Iterable[ReportFile]) -> CoverageSummary:
    """Lines, and branches where the format has them: from reports, else from what was printed."""
    coverages = list(_from_reports(reports))
    if not coverages:
        lines = output.lines()
        text, short = "\n".join(lines), [line[:MAX_WIDTH] for line in lines]
        coverages = next(filter(None, (list(form(short)) for hallmark, form in FORMATS if hallmark in text)), [])
        # What is missing may be another part of the same coverage.
        if GAP in lines and len(coverages) != 1:
            return CoverageSummary(note=f"The output was too long to be stored whole; {HOW_TO_GET_COVERAGE}.")
    if not coverages:
        return CoverageSummary(note=f"No coverage was recognised; {HOW_TO_GET_COVERAGE}.")
    whole, branches = _total([one.lines for one in coverages]), _total([one.branches for one in coverages])
    if whole is None:
        shares = ", ".join(f"{one.lines.percent:g}%" for one in coverages[:5])
        why = f"Several coverages were found ({shares}) without the numbers to add them up"
        return CoverageSummary(note=f"{why}; {HOW_TO_GET_COVERAGE}.")
    return CoverageSummary(
        format=" and ".join(dict.fromkeys(one.format for one in coverages)),
        lines=round(whole.percent, 2),
        branches=round(branches.percent, 2) if branches else None,
    )


def _from_reports(reports: Iterable[ReportFile]) -> Iterator[Coverage]:
    """The coverage in each folder, whose reports tell of the same code in several formats, so that one counts."""
    folders: defaultdict[PurePosixPath, list[Coverage]] = defaultdict(list)
    # The same report found twice would count twice.
    for report in {report.raw: report for report in reports}.values():
        text = decode(report.raw)
        form = text.lstrip()[:1]
        coverage = _xml(report.raw) if form == "<" else _json(text) if form == "{" else _go_profile(text) or _lcov(text)
        folders[PurePosixPath(report.path).parent] += [coverage] if coverage else []
    for coverages in folders.values():
        # One format may have a file for each package.
        best = min((_PREFERRED.index(coverage.format) for coverage in coverages), default=None)
        yield from (coverage for coverage in coverages if _PREFERRED.index(coverage.format) == best)
