"""Report files of test runners: JUnit XML and TRX; bytes in, tallies out."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any
from xml.etree.ElementTree import Element, ParseError, TreeBuilder, XMLParser
from xml.parsers import expat

from junitparser import JUnitXml, TestCase

from zelda_ci.test_output import documents
from zelda_ci.test_output.runners import go_and_rust, tap
from zelda_ci.test_output.tally import Output, Tally, decode, first_names

# Elements inside of each other; reports need about ten, a parser's stack bears thousands.
MAX_XML_DEPTH = 100


# Of a document; each costs a hundred times its bytes.
MAX_ELEMENTS = 1_000_000


class RefusedXmlError(ValueError):
    """A document that is not read: not well-formed, with entities, nested too deep, or endless."""


def check_xml(raw: bytes) -> None:
    """Refuse entities, absurd depth and what is not XML, before any tree is built.

    Raises:
        RefusedXmlError: The document should not be parsed.
    """
    parser = expat.ParserCreate()
    _watch(parser)
    try:
        # Once without building a tree: the memory that a document needs is known only afterwards.
        parser.Parse(raw, True)  # noqa: FBT003 - expat's own signature
    except RefusedXmlError:
        raise
    except (expat.ExpatError, LookupError, ValueError) as problem:
        raise RefusedXmlError(f"it is not well-formed XML ({problem})") from problem


def _watch(parser: expat.XMLParserType) -> None:
    depth = count = 0

    def declare(_name: str, _system: str | None, _public: str | None, internal: int) -> None:
        # A reference to a DTD elsewhere is harmless, for nothing is ever fetched: JaCoCo and Cobertura write one.
        if internal:
            raise RefusedXmlError("it declares a document type of its own")

    def refuse(*_: object) -> None:
        raise RefusedXmlError("it declares entities")

    def enter(*_: object) -> None:
        nonlocal depth, count
        depth += 1
        count += 1
        if depth > MAX_XML_DEPTH:
            raise RefusedXmlError("it is nested too deep")
        if count > MAX_ELEMENTS:
            raise RefusedXmlError("it has too many elements")

    def leave(*_: object) -> None:
        nonlocal depth
        depth -= 1

    parser.StartDoctypeDeclHandler = declare
    parser.EntityDeclHandler = refuse
    parser.StartElementHandler = enter
    parser.EndElementHandler = leave


def parse_xml(raw: bytes) -> Element:
    """The root of a checked document, with namespaces cut off the names.

    Raises:
        RefusedXmlError: The document should not be parsed, or cannot be.
    """
    check_xml(raw)
    parser = XMLParser(target=TreeBuilder())  # noqa: S314 - check() refused what makes it unsafe
    try:
        parser.feed(raw)
        root: Element = parser.close()
    except (ParseError, LookupError, ValueError) as problem:
        raise RefusedXmlError(f"it is not well-formed XML ({problem})") from problem
    for element in root.iter():
        # TRX has a namespace, and so do some JUnit dialects; the names alone tell them apart.
        element.tag = element.tag.rpartition("}")[2]
    return root


_FAILED = frozenset({"failure"})
_ERRORED = frozenset({"error"})
_SKIPPED = frozenset({"skipped"})
_FLAKY = frozenset({"flakyFailure", "flakyError"})
_NOT_RUN = frozenset({"notrun", "disabled", "skipped", "ignored"})


@dataclass(frozen=True)
class CaseOutcome:
    """One test of a report."""

    name: str
    kind: str
    flaky: bool = False


def read_junit(raw: bytes) -> list[CaseOutcome]:
    """Every test of a report, in order, from the tests themselves: totals in attributes are often wrong.

    Raises:
        RefusedXmlError: The report should not be parsed.
        ValueError: It is XML, but not JUnit's.
    """
    check_xml(raw)
    try:
        root = JUnitXml.fromstring(raw)
    except Exception as problem:  # the parser's own errors share no class
        raise ValueError("it is not JUnit XML") from problem
    # Tests are looked for at any depth: some runners nest suites, some leave tests outside of every suite.
    return [_outcome(element) for element in root._elem.iter("testcase")]  # noqa: SLF001


def _outcome(element: Any) -> CaseOutcome:
    tags = {child.tag.rpartition("}")[2] for child in element if isinstance(child.tag, str)}
    status = str(element.get("status") or "").lower()
    name = _name(TestCase.fromelem(element))  # type: ignore[no-untyped-call] # the library's own gap
    if tags & _ERRORED:
        return CaseOutcome(name, "errored")
    if tags & _FAILED:
        return CaseOutcome(name, "failed")
    if tags & _SKIPPED or status in _NOT_RUN:
        return CaseOutcome(name, "skipped")
    return CaseOutcome(name, "passed", flaky=bool(tags & _FLAKY))


def _name(case: TestCase) -> str:
    group, name = str(case.classname or ""), str(case.name or "")
    return name if group in name or group == "test" else f"{group}::{name}"


def tally(outcomes: list[CaseOutcome], *, succeeded: bool) -> Tally:
    """Counts of one runner's tests.

    Args:
        outcomes: Of one or several reports of the same runner.
        succeeded: Whether the command did. Then a failed test that is listed again as passed passed on a retry;
            otherwise the two may be different tests of the same name.
    """
    counted = _after_retries(outcomes) if succeeded else outcomes
    kinds = [outcome.kind for outcome in counted]
    return Tally(
        "JUnit XML", kinds.count("passed"), kinds.count("failed"), kinds.count("errored"), kinds.count("skipped"),
        sum(outcome.flaky for outcome in counted),
        first_names(outcome.name for outcome in counted if outcome.kind in {"failed", "errored"}),
    )  # fmt: skip


def _after_retries(outcomes: list[CaseOutcome]) -> list[CaseOutcome]:
    passed = {outcome.name for outcome in outcomes if outcome.kind == "passed"}
    failed = {outcome.name for outcome in outcomes if outcome.kind in {"failed", "errored"}}
    lucky = passed & failed
    others = [outcome for outcome in outcomes if outcome.name not in lucky]
    return [*others, *(CaseOutcome(name, "passed", flaky=True) for name in sorted(lucky))]


_KINDS = {
    "passed": "passed",
    "passedbutrunaborted": "passed",
    "warning": "passed",
    "completed": "passed",
    "failed": "failed",
    "error": "errored",
    "timeout": "errored",
    "aborted": "errored",
    "disconnected": "errored",
}


def read_trx(root: Element) -> list[CaseOutcome]:
    """Every result; those inside of a data-driven or ordered test count instead of it."""
    outcomes: list[CaseOutcome] = []
    for results in root.iter("Results"):
        for result in results:
            inner = [item for group in result.iter("InnerResults") for item in group]
            outcomes.extend(_trx_outcome(item) for item in (inner or [result]))
    return outcomes


def _trx_outcome(result: Element) -> CaseOutcome:
    kind = _KINDS.get(str(result.get("outcome") or "").lower(), "skipped")
    return CaseOutcome(str(result.get("testName") or ""), kind)


# Globs of well-known places, for files written after the command started.
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


# Of all reports together, give or take one report: whoever writes them may want to fill the memory.
MAX_CASES = 1_000_000


@dataclass(frozen=True)
class ReportFile:
    """A report that the caller found and read safely; `path` is relative to the project."""

    path: str
    raw: bytes


@dataclass(frozen=True)
class ReportProblem:
    """A report that could not be used, and why, in words that follow its name."""

    path: str
    reason: str
    broken: bool = False
    """Whether it may have told of failures."""


def read_reports(reports: Iterable[ReportFile], *, succeeded: bool) -> tuple[list[Tally], list[ReportProblem]]:
    """A tally per folder and format, and what could not be read. A copy of a report counts once."""
    cases: defaultdict[tuple[str, str], list[CaseOutcome]] = defaultdict(list)
    tallies: list[Tally] = []
    problems: list[ReportProblem] = []
    budget = MAX_CASES
    # Two globs may find one file, and some tools write a report to two places.
    for report in {report.raw: report for report in reports}.values():
        if budget < 0:
            problems.append(ReportProblem(report.path, f"there are more than {MAX_CASES} test cases before it"))
            continue
        folder = str(PurePosixPath(report.path).parent)
        try:
            form, outcomes = _cases(report.raw)
            budget -= len(outcomes)
            cases[form, folder].extend(outcomes)
        # Not XML, or XML of another kind: perhaps one of the formats that are printed as well as written.
        except ValueError as problem:
            others = list(_other(report.raw))
            tallies.extend(replace(tally, label=folder) for tally in others)
            if not others:
                problems.append(ReportProblem(report.path, str(problem), isinstance(problem, RefusedXmlError)))
    for (form, folder), outcomes in cases.items():
        tallies.append(replace(tally(outcomes, succeeded=succeeded), format=form, label=folder))
    return tallies, problems


def _cases(raw: bytes) -> tuple[str, list[CaseOutcome]]:
    if not raw.lstrip(b"\xef\xbb\xbf\xff\xfe\0 \t\r\n").startswith(b"<"):
        raise ValueError("no format was recognised in it")
    if b"TestRun" in raw[:2_000]:
        return "TRX", read_trx(parse_xml(raw))
    return "JUnit XML", read_junit(raw)


def _other(raw: bytes) -> Iterator[Tally]:
    """JSON and TAP, which are written to files as they are printed."""
    text = decode(raw)
    tallies = list(documents.read_document(text))
    if not tallies:
        lines = Output(text).lines()
        tallies = [*go_and_rust.read_json(lines), *tap.read_tap(lines)]
    yield from tallies
