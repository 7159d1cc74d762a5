"""Reports of test runners, as files or printed: JUnit XML, TRX and the like, and JSON; recognised by content alone."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element, ParseError, TreeBuilder, XMLParser

import re2

from zelda_ci.test_output.runners import read_go_json, read_tap
from zelda_ci.test_output.tally import MAX_COUNT, Lines, Output, Tally, decode, ends, first_names, matches, same_run

# Elements inside of each other; reports need about ten, a parser's stack bears thousands.
MAX_XML_DEPTH = 100
# Of a document; each costs a hundred times its bytes.
MAX_ELEMENTS = 1_000_000
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
# Globs of well-known places, for files written after the command started.
TEST_REPORTS = (
    # JUnit XML under the names that runners, their reporters and their manuals use
    "test-results/*.xml", "test-reports/*.xml", "reports/*.xml", "**/TEST-*.xml", "**/build/test-results/*/*.xml",
    # Any other name that says what it is: the content decides.
    "*.xml", "**/*test*.xml", "**/*Test*.xml", "**/*junit*.xml", "**/*unit*.xml", "**/*result*.xml", "**/*report*.xml",
    "**/*output*.xml", "*.json", "**/*test*.json", "**/*result*.json", "**/*report*.json", "**/*mochawesome*.json",
    # .NET
    "**/*.trx",
)  # fmt: skip
# Of all reports together, give or take one report: whoever writes them may want to fill the memory.
MAX_CASES = 1_000_000
_ROOT = re2.compile(rf"(?:<\?xml .*\?>)?<({'|'.join(_FORMATS)})[ >]")
_ONE_LINE = (
    '{"num', '{"version":', '{"testResults"', '{"coverageMap"', '{"success"', '{"stats"', '{"results"', '{"config"',
    '{"created"', '{"summary"', '{"run"', "[{",
)  # fmt: skip
_WRONG = (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, RecursionError)


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


class CaseOutcome(NamedTuple):
    """One test of a report."""

    name: str
    kind: str
    flaky: bool = False
    same: tuple[str, ...] = ()
    """What one test shares with its retries; empty where two tests can have it in common."""


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
    """Every test of a report, at any depth, from the tests themselves: totals in attributes are often wrong."""
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
    """Counts of one runner's tests."""
    # Where the command succeeded, a failed test that is listed again as passed passed on a retry; otherwise the two may
    # be different tests of the same name.
    passed = {outcome.same for outcome in outcomes if outcome.kind == "passed" and succeeded}
    failed = {outcome.same: outcome.name for outcome in outcomes if outcome.kind in {"failed", "errored"}}
    lucky = {same: name for same, name in failed.items() if same and same in passed}
    counted = [(outcome.kind, outcome.name) for outcome in outcomes if outcome.same not in lucky]
    flaky = sum(outcome.flaky for outcome in outcomes if outcome.same not in lucky) + len(lucky)
    return Tally.of(form, [*counted, *(("passed", name) for name in sorted(lucky.values()))], flaky=flaky, **more)


class ReportFile(NamedTuple):
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
        others = list(read_document(decode(report.raw))) or [*read_go_json(lines), *read_tap(lines)]
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


# --- JSON that runners write and print --------------------------------------------------------------------------------

Document = dict[str, Any]


def read_json_output(lines: Lines) -> Iterable[Tally]:
    """One tally per document: on a line of its own, or from a bracket to its end that both begin a line."""
    opened: int | None = None
    for index, line in enumerate(lines):
        bare = line.rstrip()
        if line.startswith(_ONE_LINE):
            yield from read_document(line, index, index)
        elif bare == "{" or (bare == "[" and opened is None):
            opened = index
        # Other output may follow on the line of the last brace.
        elif opened is not None and line[:1] == {"{": "}", "[": "]"}[lines[opened].rstrip()]:
            yield from read_document("\n".join([*lines[opened:index], line[:1]]), opened, index)
            opened = None


def read_document(text: str, first: int = 0, last: int = 0) -> Iterator[Tally]:
    """The tally of a document, if it is one of these."""
    try:
        # Infinity and NaN are no numbers of JSON, and no counts.
        document = json.loads(text, parse_constant=_count)
    except (ValueError, RecursionError):
        return
    for form in _FORMS:
        with suppress(*_WRONG):
            if tally := form(document):
                yield replace(tally, first=first, last=last)
                return


def _count(value: Any) -> int:
    """A count of tests; raises ValueError where it cannot be one."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_COUNT:
        raise ValueError("no count")
    return value


def _tally(form: str, counts: Iterable[int], tests: Iterable[tuple[str, Any]], flaky: int = 0) -> Tally:
    """A tally of counts, and of tests by outcome and name as far as they are listed."""
    passed, failed, errored, skipped = counts
    listed = [(kind, str(name).strip()) for kind, name in tests]
    names = first_names(name for kind, name in listed if kind == "failed")
    ran = ends(name for kind, name in listed if kind in {"passed", "failed", "other"})
    return Tally(form, passed, failed, errored, skipped, flaky, names, ends=ran)


def _jest(document: Document) -> Tally | None:
    tests: list[tuple[str, Any]] = []
    broken: list[tuple[str, Any]] = []
    flaky = 0
    for suite in document["testResults"]:
        listed = suite.get("assertionResults") or suite.get("testResults") or ()
        tests += [(test["status"], test.get("fullName") or test.get("title")) for test in listed]
        green = [test for test in listed if test["status"] == "passed"]
        flaky += sum(_count(test.get("invocations") or 1) > 1 or bool(test.get("retryReasons")) for test in green)
        # Vitest does not count files that failed to load: such a file failed and has no tests.
        broken += [("failed", suite.get("name"))] if suite.get("status") == "failed" and not listed else []
    total, passed, failed = (_count(document[f"num{kind}Tests"]) for kind in ("Total", "Passed", "Failed"))
    pending = _count(document.get("numPendingTests", 0)) + _count(document.get("numTodoTests", 0))
    unloaded = max(len(broken), _count(document.get("numRuntimeErrorTestSuites", 0)))
    # Files that could not be loaded may stand for no test, or for one.
    if not total <= passed + failed + pending + unloaded or passed + failed > total:
        return None
    lost = 0 if tests or failed else _count(document.get("numFailedTestSuites", 0))
    return _tally("Jest JSON", (passed, failed, max(unloaded, lost), pending), [*tests, *broken], flaky)


def _mocha(document: Document) -> Tally | None:
    stats = document["stats"]
    kinds = (("passed", "passes"), ("failed", "failures"))
    tests = [(kind, test) for kind, part in kinds for test in document.get(part, ())]
    skipped = _count(stats["pending"]) + _count(stats.get("skipped", 0) if "results" in document else 0)
    counts = _count(stats["passes"]), _count(stats["failures"]), 0, skipped
    flaky = sum(kind == "passed" and _count(test.get("currentRetry") or 0) > 0 for kind, test in tests)
    return _tally("Mocha JSON", counts, [(kind, test["fullTitle"]) for kind, test in tests], flaky)


def _rspec(document: Document) -> Tally | None:
    summary = document["summary"]
    total, failed, pending = (_count(summary[f"{part}_count"]) for part in ("example", "failure", "pending"))
    outside = _count(summary.get("errors_outside_of_examples_count", 0))
    tests = [(test["status"], test.get("full_description")) for test in document["examples"]]
    return _tally("RSpec JSON", (_count(total - failed - pending), failed, outside, pending), tests)


def _playwright(document: Document) -> Tally | None:
    parts = ("expected", "unexpected", "skipped", "flaky")
    expected, failed, skipped, flaky = (_count(document["stats"][part]) for part in parts)
    return _tally("Playwright JSON", (expected + flaky, failed, len(document.get("errors", ())), skipped), (), flaky)


def _ctrf(document: Document) -> Tally | None:
    summary, tests = document["results"]["summary"], document["results"].get("tests", ())
    counts = [_count(summary.get(part, 0)) for part in ("passed", "failed", "other", "skipped", "pending")]
    if sum(counts) != _count(summary["tests"]):
        return None
    flaky = sum(test.get("flaky") is True for test in tests)
    return _tally("CTRF", (*counts[:3], sum(counts[3:])), [(test["status"], test["name"]) for test in tests], flaky)


_FORMS: tuple[Callable[[Any], Tally | None], ...] = (_jest, _mocha, _rspec, _playwright, _ctrf)
