"""Report files of test runners: JUnit XML and TRX; bytes in, tallies out."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any
from xml.etree.ElementTree import Element, ParseError, TreeBuilder, XMLParser

import re2

from zelda_ci.test_output import documents
from zelda_ci.test_output.runners import go, tap
from zelda_ci.test_output.tally import Lines, Output, Tally, decode, matches, same_run

# Elements inside of each other; reports need about ten, a parser's stack bears thousands.
MAX_XML_DEPTH = 100
# Of a document; each costs a hundred times its bytes.
MAX_ELEMENTS = 1_000_000


class RefusedXmlError(ValueError):
    """A document that is not read: not well-formed, with entities, nested too deep, or endless."""


class _XmlTree(TreeBuilder):
    """Refuses what would fill the memory while it is built."""

    depth = elements = 0

    def start(self, tag: str, attrs: dict[str, str]) -> Element:
        self.depth, self.elements = self.depth + 1, self.elements + 1
        if self.depth > MAX_XML_DEPTH or self.elements > MAX_ELEMENTS:
            raise RefusedXmlError("it is nested too deep or has too many elements")
        # TRX has a namespace, and so do some JUnit dialects; the names alone tell them apart.
        return super().start(tag.rpartition("}")[2], attrs)

    def end(self, tag: str) -> Element:
        self.depth -= 1
        return super().end(tag.rpartition("}")[2])


def parse_xml(raw: bytes) -> Element:
    """The root of a document, without namespaces; raises RefusedXmlError where it should not be parsed, or cannot."""
    # No report needs entities. In an encoding that hides them here, the parser bounds what they become.
    if b"<!ENTITY" in raw:
        raise RefusedXmlError("it declares entities")
    parser = XMLParser(target=_XmlTree())  # noqa: S314 - nothing is fetched, and its size is bounded
    try:
        parser.feed(raw)
        root: Element = parser.close()
    except (ParseError, LookupError, ValueError) as problem:
        raise RefusedXmlError(f"it is not well-formed XML ({problem})") from problem
    return root


@dataclass(frozen=True)
class CaseOutcome:
    """One test of a report."""

    name: str
    kind: str
    flaky: bool = False
    same: tuple[str, ...] = ()
    """What one test shares with its retries; empty where two tests can have it in common."""


# What the formats call an outcome, without regard to case. Another word, or none, is a test that did not run.
_KINDS = {
    **dict.fromkeys(("pass", "passed", "success", "successful", "ok", "passedbutrunaborted", "warning", "completed",
                     "xpass"), "passed"),
    **dict.fromkeys(("fail", "failed", "failure", "assertion failed"), "failed"),
    **dict.fromkeys(("error", "timeout", "aborted", "disconnected", "cancelled", "notrunnable", "invalid"), "errored"),
}  # fmt: skip


# By the root of a document: its format, and the attributes with the name and the outcome of a test.
_FORMATS = {
    **dict.fromkeys(("testsuites", "testsuite", "testcase"), ("JUnit XML", "", "")),
    "TestRun": ("TRX", "testName", "outcome"),
    "test-run": ("NUnit 3 XML", "fullname", "result"),
    **dict.fromkeys(("assemblies", "assembly"), ("xUnit.net XML", "name", "result")),
}
_NOT_RUN = frozenset({"notrun", "disabled", "skipped", "ignored"})


def attribute_count(element: Element, name: str) -> int | None:
    """The count in an attribute; None where there is none."""
    text = element.get(name) or ""
    return int(text) if text.isdecimal() and len(text) < 12 else None


def _read_attributes(root: Element, name: str, outcome: str) -> Iterator[CaseOutcome]:
    """Every test; those inside of a data-driven or ordered test count instead of it."""

    def is_test(element: Element) -> bool:
        said = element.get(outcome) is not None or name == "testName"
        return said and element.get(name) is not None and element.tag != "test-suite"

    for test in filter(is_test, root.iter()):
        if sum(map(is_test, test.iter())) == 1:
            # NUnit tells an error from a failure by a label.
            word = "error" if test.get("label") == "Error" else (test.get(outcome) or "").lower()
            yield CaseOutcome(test.get(name) or "", _KINDS.get(word, "skipped"), same=(test.get(name) or "",))


def _read_junit(root: Element) -> Iterator[CaseOutcome]:
    """Every test of a report, in order, from the tests themselves: totals in attributes are often wrong."""
    # Tests are looked for at any depth: some runners nest suites, some leave tests outside of every suite.
    parents = {case: suite for suite in root.iter("testsuite") for case in suite.findall("testcase")}
    for case in root.iter("testcase"):
        suite, group, name = (parents.get(case, root).get("name"), case.get("classname") or "", case.get("name") or "")
        tags = {child.tag for child in case}
        status, result = ((case.get(attribute) or "").lower() for attribute in ("status", "result"))
        # Some reporters name the outcome in an attribute only. A passed test has `flakyFailure`, never `rerunFailure`.
        said = {_KINDS.get(status), _KINDS.get(result)}
        signs = (
            ("errored", "error" in tags),
            ("failed", "failure" in tags),
            ("skipped", "skipped" in tags or status in _NOT_RUN),
            ("errored", "errored" in said or "rerunError" in tags),
            ("failed", "failed" in said or "rerunFailure" in tags),
        )
        kind = next((kind for kind, applies in signs if applies), "passed")
        # node:test calls every class "test": there, and without a class, two tests of a suite may share their name.
        same = (suite or "", group, name) if group not in {"", "test"} and kind != "skipped" else ()
        shown = name if group in name or group == "test" else f"{group}::{name}"
        yield CaseOutcome(shown, kind, kind == "passed" and bool(tags & {"flakyFailure", "flakyError"}), same)


def read_xml(raw: bytes, *, succeeded: bool) -> tuple[str, list[CaseOutcome]]:
    """Format and tests of a document, by its root and what is in it; names, texts and file names say nothing.

    Raises RefusedXmlError where it should not be parsed or contradicts itself, ValueError for XML of another kind.
    """
    root = parse_xml(raw)
    if root.tag not in _FORMATS:
        raise ValueError("it is not XML of tests")
    form, name, outcome = _FORMATS[root.tag]
    outcomes = list(_read_attributes(root, name, outcome) if name else _read_junit(root))
    if succeeded and not any(one.kind in {"failed", "errored"} for one in outcomes):
        suites = (suite for suite in root.iter() if suite.tag in {"testsuites", "testsuite"})
        if any(attribute_count(suite, part) for suite in suites for part in ("failures", "errors")):
            raise RefusedXmlError("its totals tell of failures that it does not list")
    return form, outcomes


def tally(form: str, outcomes: list[CaseOutcome], *, succeeded: bool, **more: Any) -> Tally:
    """Counts of one runner's tests.

    Where the command succeeded, a failed test that is listed again as passed passed on a retry; otherwise the two may
    be different tests of the same name.
    """
    passed = {outcome.same for outcome in outcomes if outcome.kind == "passed" and succeeded}
    failed = {outcome.same: outcome.name for outcome in outcomes if outcome.kind in {"failed", "errored"}}
    lucky = {same: name for same, name in failed.items() if same and same in passed}
    counted = [(outcome.kind, outcome.name) for outcome in outcomes if outcome.same not in lucky]
    flaky = sum(outcome.flaky for outcome in outcomes if outcome.same not in lucky) + len(lucky)
    return Tally.of(form, [*counted, *(("passed", name) for name in sorted(lucky.values()))], flaky=flaky, **more)


# Globs of well-known places, for files written after the command started.
TEST_REPORTS = (
    # JUnit XML under the names that runners, their reporters and their manuals use
    "test-results/*.xml",
    "test-reports/*.xml",
    "reports/*.xml",
    "**/TEST-*.xml",
    "**/build/test-results/*/*.xml",
    # Any other name that says what it is: the content decides.
    "*.xml",
    "**/*test*.xml",
    "**/*Test*.xml",
    "**/*junit*.xml",
    "**/*unit*.xml",
    "**/*result*.xml",
    "**/*report*.xml",
    "**/*output*.xml",
    "*.json",
    "**/*test*.json",
    "**/*result*.json",
    "**/*report*.json",
    "**/*mochawesome*.json",
    # .NET
    "**/*.trx",
)


# Of all reports together, give or take one report: whoever writes them may want to fill the memory.
MAX_CASES = 1_000_000


@dataclass(frozen=True)
class ReportFile:
    """A report that the caller found and read safely; `path` is relative to the project."""

    path: str
    raw: bytes


def read_reports(reports: Iterable[ReportFile], *, succeeded: bool) -> tuple[list[Tally], list[tuple[str, ValueError]]]:
    """A tally per folder and format, and the paths of what could not be used with why; a copy counts once."""
    cases: defaultdict[tuple[str, str], list[CaseOutcome]] = defaultdict(list)
    tallies: list[Tally] = []
    problems: list[tuple[str, ValueError]] = []
    budget = MAX_CASES
    # Two globs may find one file, and some tools write a report to two places.
    for report in {report.raw: report for report in reports}.values():
        if budget < 0:
            problems.append((report.path, ValueError(f"there are more than {MAX_CASES} test cases before it")))
            continue
        folder = str(PurePosixPath(report.path).parent)
        if report.raw.lstrip(b"\xef\xbb\xbf\xff\xfe\0 \t\r\n").startswith(b"<"):
            try:
                form, outcomes = read_xml(report.raw, succeeded=succeeded)
            except ValueError as problem:
                problems.append((report.path, problem))
            else:
                budget -= len(outcomes)
                cases[form, folder].extend(outcomes)
            continue
        # JSON and TAP, which are written to files as they are printed.
        lines = Output(report.raw).lines()
        others = list(documents.read_document(decode(report.raw))) or [*go.read_json(lines), *tap.read_tap(lines)]
        tallies.extend(replace(other, label=folder) for other in others)
        if not others:
            problems.append((report.path, ValueError("no format was recognised in it")))
    for (form, folder), outcomes in cases.items():
        tallies.append(tally(form, outcomes, succeeded=succeeded, label=folder))
    return [replace(report, source="report") for report in _once(tallies)], problems


def _once(tallies: list[Tally]) -> list[Tally]:
    """Each run once, where several reports tell of it: in several formats, or in a folder and in folders inside."""
    by_format: dict[str, list[Tally]] = {}
    for report in sorted(tallies, key=lambda report: (-report.total, -report.flaky)):
        by_format.setdefault(report.format, []).append(report)
    groups: list[list[Tally]] = []
    for group in by_format.values():
        if not any(same_run(group, other) for other in groups):
            groups.append(group)
    kept: list[Tally] = []
    for report in (report for group in groups for report in group):
        others = [other for other in kept if other.format != report.format]
        alike = (other for other in by_format[report.format] if other.label != report.label)
        inside = [other for other in alike if PurePosixPath(other.label).is_relative_to(report.label)]
        if not same_run([report], inside) and not any(same_run([report], [other]) for other in others):
            kept.append(report)
    return [report for report in tallies if any(report is other for other in kept)]


_ROOT = re2.compile(rf"(?:<\?xml .*\?>)?<({'|'.join(_FORMATS)})[ >]")


def read_printed_xml(lines: Lines) -> Iterator[Tally]:
    """Documents that begin and end with a line: whoever has no place for a report prints it."""
    last = -1
    endless: set[str] = set()
    for first, match in matches(lines, _ROOT):
        root = match[1]
        if first <= last or root in endless:
            continue
        end = next((index for index in range(first, len(lines)) if f"</{root}>" in lines[index]), None)
        if end is None:
            endless.add(root)
            continue
        last = end
        with suppress(ValueError):
            form, outcomes = read_xml("\n".join(lines[first : last + 1]).encode("utf-8", "replace"), succeeded=False)
            yield tally(form, outcomes, succeeded=False, first=first, last=last, proven=True)
