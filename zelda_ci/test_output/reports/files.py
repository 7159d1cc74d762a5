"""Report files that the caller has read, whatever their format."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from zelda_ci.test_output.reports import junit, trx
from zelda_ci.test_output.reports.xml import parse
from zelda_ci.test_output.runners import go, json_output, tap
from zelda_ci.test_output.tally import Tally
from zelda_ci.test_output.text import Output, decode

TEST_REPORTS = (
    # JUnit XML under the names that runners, their reporters and their manuals use
    "junit.xml",
    "report.xml",
    "test-results.xml",
    "test-report.xml",
    "test-results/*.xml",
    "test-reports/*.xml",
    "reports/*.xml",
    "nose2-junit.xml",
    "**/junit.xml",
    "**/junit-*.xml",
    "**/TEST-*.xml",
    "**/target/surefire-reports/TEST-*.xml",
    "**/target/failsafe-reports/TEST-*.xml",
    "**/target/nextest/*/junit.xml",
    "**/build/test-results/*/*.xml",
    "**/test_detail.xml",
    # .NET
    "**/TestResults/*.trx",
    "*.trx",
)
"""Globs of well-known places, for files written after the command started."""


MOST_CASES = 1_000_000
"""Of all reports together, give or take one report: whoever writes them may want to fill the memory."""


@dataclass(frozen=True)
class ReportFile:
    """A report that the caller found and read safely; `path` is relative to the project."""

    path: str
    raw: bytes


@dataclass(frozen=True)
class Problem:
    """A report that could not be used, and why, in words that follow its name."""

    path: str
    reason: str


def read(reports: Iterable[ReportFile], *, succeeded: bool) -> tuple[list[Tally], list[Problem]]:
    """A tally per folder and format, and what could not be read. A copy of a report counts once."""
    cases: defaultdict[tuple[str, str], list[junit.Outcome]] = defaultdict(list)
    tallies: list[Tally] = []
    problems: list[Problem] = []
    left = MOST_CASES
    for report in {report.raw: report for report in reports}.values():
        if left < 0:
            problems.append(Problem(report.path, f"there are more than {MOST_CASES} test cases before it"))
            continue
        folder = str(PurePosixPath(report.path).parent)
        try:
            form, outcomes = _cases(report.raw)
            left -= len(outcomes)
            cases[form, folder].extend(outcomes)
        except ValueError as problem:
            found = list(_other(report.raw))
            tallies.extend(replace(tally, label=folder) for tally in found)
            if not found:
                problems.append(Problem(report.path, str(problem)))
    for (form, folder), outcomes in cases.items():
        tallies.append(replace(junit.tally(outcomes, succeeded=succeeded), format=form, label=folder))
    return tallies, problems


def _cases(raw: bytes) -> tuple[str, list[junit.Outcome]]:
    if not raw.lstrip(b"\xef\xbb\xbf\xff\xfe\0 \t\r\n").startswith(b"<"):
        raise ValueError("no format was recognised in it")
    if b"TestRun" in raw[:2_000]:
        return "TRX", trx.read(parse(raw))
    return "JUnit XML", junit.read(raw)


def _other(raw: bytes) -> Iterator[Tally]:
    """JSON and TAP, which are written to files as they are printed."""
    text = decode(raw)
    found = list(json_output.read_document(text))
    if not found:
        lines = Output(text).lines()
        found = [*go.read_json(lines), *tap.read(lines)]
    yield from found
