"""Output and reports of a command in, its coverage out."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import PurePosixPath

import re2

from zelda_ci.domain.test_run import CoverageSummary
from zelda_ci.test_output.coverage.reports import (
    Coverage,
    Share,
    cobertura,
    go_profile,
    jacoco,
    json_report,
    lcov,
    percent,
    total,
)
from zelda_ci.test_output.reports import RefusedXmlError, ReportFile, parse_xml
from zelda_ci.test_output.tally import GAP, MAX_WIDTH, Lines, Output, decode, matches

_TABLE = re2.compile(r"\|? *All files *\|([\d. |-]*)")
_HEADER = re2.compile(r"\|? *File *\|(.*)$")
_SUMMARY = re2.compile(r"(Statements|Branches|Lines) *: ([\d.]+)% \( (\d+)/(\d+) \)")
_TOTAL = re2.compile(r"TOTAL +([\d ]+?) +(\d+(?:\.\d+)?)%(?: |$)")
_NAMES = re2.compile(r"(?:Name +Stmts|File +(?:Lines|Branches)) +")
_GO_PACKAGE = re2.compile(r"ok  \t\S+\t(?:[\d.]+s|\(cached\))\tcoverage: ([\d.]+)% of statements")
_GO_TOTAL = re2.compile(r"total:\s+\(statements\)\s+([\d.]+)%$")


def find_printed(lines: Lines) -> list[Coverage]:
    """What the most telling format that occurs says, once for every time it occurs."""
    text = "\n".join(lines)
    for hallmark, form in FORMATS:
        coverages = list(form(lines)) if hallmark in text else []
        if coverages:
            return coverages
    return []


def _table(lines: Lines) -> Iterator[Coverage]:
    """Istanbul's and Deno's table; its heading names the columns."""
    columns: list[str] = []
    for line in lines:
        if match := _HEADER.match(line):
            columns = [name.strip(" %").lower() for name in match[1].split("|")]
        elif (match := _TABLE.match(line)) and columns:
            row = dict(zip(columns, (percent(cell) for cell in match[1].split("|")), strict=False))
            share = row.get("lines") or row.get("line")
            if share:
                yield Coverage("Istanbul text", share, row.get("branch"))


def _printed_summary(lines: Lines) -> Iterator[Coverage]:
    shares: dict[str, Share] = {}
    for _, match in matches(lines, _SUMMARY):
        share = Share.of(int(match[3][:9]), int(match[4][:9]))
        if share:
            shares[match[1]] = share
        if match[1] == "Lines" and "Lines" in shares:
            yield Coverage("Istanbul text", shares["Lines"], shares.get("Branches"))
            shares = {}


def _coverage_py(lines: Lines) -> Iterator[Coverage]:
    heading = next((number for number, _ in matches(lines, _NAMES)), len(lines))
    for number, match in matches(lines, _TOTAL):
        # Without its heading only below a rule, or alone: else it may be a total of something else.
        if number < heading and lines[max(number - 1, 0)].strip("- ") and number:
            continue
        # With branches the printed percentage mixes them with lines, so it is computed from the columns.
        columns = [int(cell[:9]) for cell in match[1].split()]
        share = Share.of(columns[0] - columns[1], columns[0]) if len(columns) in {2, 4} else None
        printed = percent(match[2])
        if len(columns) == 2 and share and printed and abs(share.percent - printed.percent) > 1:
            # gcovr prints what was executed, where coverage.py prints what was missed.
            share = Share.of(columns[1], columns[0])
            share = share if share and abs(share.percent - printed.percent) <= 1 else printed
            yield Coverage("gcovr text", share)
        elif share:
            yield Coverage("coverage.py text", share)


def _go(lines: Lines) -> Iterator[Coverage]:
    totals = [share for _, match in matches(lines, _GO_TOTAL) if (share := percent(match[1]))]
    packages = [share for _, match in matches(lines, _GO_PACKAGE) if (share := percent(match[1]))]
    for share in totals[-1:] or packages:
        yield Coverage("Go", share)


# The most exact first, each with the words without which it cannot be there.
FORMATS: tuple[tuple[str, Callable[[Lines], Iterator[Coverage]]], ...] = (
    ("All files", _table),
    ("% ( ", _printed_summary),
    ("TOTAL ", _coverage_py),
    ("statements", _go),
)


# Globs of well-known places, for files written after the command started.
COVERAGE_REPORTS = (
    "**/coverage/coverage-summary.json",
    "**/lcov.info",
    "coverage.xml",
    "coverage.json",
    "cobertura.xml",
    "**/cobertura-coverage.xml",
    "**/coverage.cobertura.xml",
    "**/target/site/jacoco/jacoco.xml",
    "**/build/reports/jacoco/*/*.xml",
    "coverage.out",
    "cover.out",
)

_PREFERRED = ("coverage.py JSON", "Istanbul JSON summary", "lcov", "Cobertura XML", "JaCoCo XML")
HOW_TO_GET_COVERAGE = "let the command write a Cobertura or lcov report and name it in `coverageReport`"


def well_known_reports() -> tuple[str, ...]:
    """Globs, relative to the project, of the places where coverage reports are written."""
    return COVERAGE_REPORTS


def read_coverage(output: Output, reports: Iterable[ReportFile]) -> CoverageSummary:
    """Lines, and branches where the format has them: from reports, else from what was printed.

    Reports in one folder tell of the same code in several formats, so one of them counts;
    those of different folders are added up by their numbers.
    """
    coverages = _from_reports(reports)
    if not coverages:
        lines = output.lines()
        coverages = find_printed([line[:MAX_WIDTH] for line in lines])
        # What is missing may be another part of the same coverage.
        if GAP in lines and len(coverages) != 1:
            return CoverageSummary(note=f"The output was too long to be stored whole; {HOW_TO_GET_COVERAGE}.")
    if not coverages:
        return CoverageSummary(note=f"No coverage was recognised; {HOW_TO_GET_COVERAGE}.")
    return _summary(coverages)


def _summary(coverages: Sequence[Coverage]) -> CoverageSummary:
    lines = total([coverage.lines for coverage in coverages])
    if lines is None:
        shares = ", ".join(f"{coverage.lines.percent:g}%" for coverage in coverages[:5])
        why = f"Several coverages were found ({shares}) without the numbers to add them up"
        return CoverageSummary(note=f"{why}; {HOW_TO_GET_COVERAGE}.")
    branches = total([coverage.branches for coverage in coverages])
    return CoverageSummary(
        format=" and ".join(dict.fromkeys(coverage.format for coverage in coverages)),
        lines=round(lines.percent, 2),
        branches=None if branches is None else round(branches.percent, 2),
    )


def _from_reports(reports: Iterable[ReportFile]) -> list[Coverage]:
    folders: defaultdict[PurePosixPath, list[Coverage]] = defaultdict(list)
    # The same report found twice would count twice.
    for report in {report.raw: report for report in reports}.values():
        folders[PurePosixPath(report.path).parent].extend(_report(report.raw))
    return [coverage for coverages in folders.values() for coverage in _preferred(coverages)]


def _preferred(coverages: Sequence[Coverage]) -> Iterator[Coverage]:
    """All reports of the best format."""
    # One format may have a file for each package.
    best = min((_rank(coverage) for coverage in coverages), default=None)
    yield from (coverage for coverage in coverages if _rank(coverage) == best)


def _rank(coverage: Coverage) -> int:
    return _PREFERRED.index(coverage.format) if coverage.format in _PREFERRED else len(_PREFERRED)


def _report(raw: bytes) -> Iterator[Coverage]:
    text = decode(raw)
    if text.lstrip().startswith("<"):
        coverage = _xml(raw)
    elif text.lstrip().startswith("{"):
        coverage = json_report(text)
    else:
        coverage = go_profile(text) or lcov(text)
    if coverage:
        yield coverage


def _xml(raw: bytes) -> Coverage | None:
    try:
        root = parse_xml(raw)
    except RefusedXmlError:
        return None
    return cobertura(root) or jacoco(root)
