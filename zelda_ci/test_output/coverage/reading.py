"""The way in: output and reports of a command in, its coverage out."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath

from zelda_ci.domain.test_run import CoverageSummary
from zelda_ci.test_output.coverage import plain, printed, xml
from zelda_ci.test_output.coverage.measure import Coverage, total
from zelda_ci.test_output.reports.files import ReportFile
from zelda_ci.test_output.reports.xml import RefusedXmlError, parse
from zelda_ci.test_output.text import GAP, WIDEST, Output, decode

COVERAGE_REPORTS = (
    "**/coverage/coverage-summary.json",
    "**/lcov.info",
    "coverage.xml",
    "coverage.json",
    "cobertura.xml",
    "**/cobertura-coverage.xml",
    "**/coverage.cobertura.xml",
    "**/clover.xml",
    "**/target/site/jacoco/jacoco.xml",
    "**/build/reports/jacoco/*/*.xml",
    "coverage.out",
    "cover.out",
)
"""Globs of well-known places, for files written after the command started."""

_PREFERRED = ("coverage.py JSON", "Istanbul JSON summary", "lcov", "Cobertura XML", "JaCoCo XML", "Clover XML")
HOW_TO_GET_COVERAGE = "let the command write a Cobertura or lcov report and name it in `coverageReport`"


def well_known_reports() -> tuple[str, ...]:
    """Globs, relative to the project, of the places where coverage reports are written."""
    return COVERAGE_REPORTS


def read_coverage(output: Output, reports: Iterable[ReportFile]) -> CoverageSummary:
    """Lines, and branches where the format has them: from reports, else from what was printed.

    Reports in one folder tell of the same code in several formats, so one of them counts;
    those of different folders are added up by their numbers.
    """
    found = _from_reports(reports)
    if not found:
        lines = output.lines()
        found = printed.find([line[:WIDEST] for line in lines])
        if GAP in lines and len(found) != 1:
            return CoverageSummary(note=f"The output was too long to be kept whole; {HOW_TO_GET_COVERAGE}.")
    if not found:
        return CoverageSummary(note=f"No coverage was recognised; {HOW_TO_GET_COVERAGE}.")
    return _summary(found)


def _summary(found: Sequence[Coverage]) -> CoverageSummary:
    lines = total([one.lines for one in found])
    if lines is None:
        shares = ", ".join(f"{one.lines.percent:g}%" for one in found[:5])
        why = f"Several coverages were found ({shares}) without the numbers to add them up"
        return CoverageSummary(note=f"{why}; {HOW_TO_GET_COVERAGE}.")
    branches = total([one.branches for one in found])
    return CoverageSummary(
        format=" and ".join(dict.fromkeys(one.format for one in found)),
        lines=round(lines.percent, 2),
        branches=None if branches is None else round(branches.percent, 2),
    )


def _from_reports(reports: Iterable[ReportFile]) -> list[Coverage]:
    folders: defaultdict[PurePosixPath, list[Coverage]] = defaultdict(list)
    for report in {report.raw: report for report in reports}.values():
        folders[PurePosixPath(report.path).parent].extend(_report(report.raw))
    return [one for found in folders.values() for one in _preferred(found)]


def _preferred(found: Sequence[Coverage]) -> Iterator[Coverage]:
    """All reports of the best format; one format may have a file for each package."""
    best = min((_rank(one) for one in found), default=None)
    yield from (one for one in found if _rank(one) == best)


def _rank(one: Coverage) -> int:
    return _PREFERRED.index(one.format) if one.format in _PREFERRED else len(_PREFERRED)


def _report(raw: bytes) -> Iterator[Coverage]:
    text = decode(raw)
    if text.lstrip().startswith("<"):
        found = _xml(raw)
    elif text.lstrip().startswith("{"):
        found = plain.json_report(text)
    else:
        found = plain.go_profile(text) or plain.lcov(text)
    if found:
        yield found


def _xml(raw: bytes) -> Coverage | None:
    try:
        root = parse(raw)
    except RefusedXmlError:
        return None
    return xml.cobertura(root) or xml.clover(root) or xml.jacoco(root)
