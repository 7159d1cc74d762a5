"""Report files: what counts, what is refused, and what they say together."""

import json

import pytest

from zelda_ci.redact import Redactor, Secret
from zelda_ci.test_output import reports
from zelda_ci.test_output.reading import contradictions, read_tests
from zelda_ci.test_output.reports import RefusedXmlError, ReportFile, parse_xml
from zelda_ci.test_output.tally import Output

NOTHING = Output("")
LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10 if n else "ha"}">' for n in range(10))
HOSTILE = {
    "a billion laughs": f"<!DOCTYPE t [{LAUGHS}]><testsuite><testcase name='&l9;'/></testsuite>",
    "an external entity": (
        '<!DOCTYPE t [<!ENTITY x SYSTEM "file:///etc/passwd">]>'
        "<testsuite><testcase name='a'>&x;</testcase></testsuite>"
    ),
    "depth without end": "<testsuite>" * 100_000,
    "closed depth": "<testsuite>" * 5_000 + "</testsuite>" * 5_000,
    "an unknown encoding": '<?xml version="1.0" encoding="made-up"?><testsuite><testcase name="a"/></testsuite>',
    "an undefined entity": "<testsuite><testcase name='a'/>&nothing;</testsuite>",
    "half a document": "<testsuite><testcase name='a'",
    "an empty file": "",
    "another XML": "<html><body/></html>",
    "no XML": "PASS",
}
ENCODED = {"utf-8": str.encode, "utf-16": lambda text: text.encode("utf-16")}


def read(*reports: tuple[str, str], exit_code: int = 1, output: Output = NOTHING):
    return read_tests(output, [ReportFile(path, text.encode()) for path, text in reports], exit_code, Redactor())


@pytest.mark.parametrize("encoding", ENCODED)
@pytest.mark.parametrize("attack", HOSTILE)
def test_a_report_that_should_not_be_parsed_gives_no_number_and_is_named(attack: str, encoding: str) -> None:
    raw = ENCODED[encoding](HOSTILE[attack])
    summary = read_tests(NOTHING, [ReportFile("report.xml", raw)], 1, Redactor())
    assert not summary.total
    assert "report.xml" in str(summary.note) or summary.runners == () or "another" in attack


def test_a_report_without_tests_does_not_hide_what_was_printed() -> None:
    output = Output("== test session starts ==\ncollected 2 items\n\n== 2 passed in 0.1s ==\n")
    assert read(("r.xml", "<testsuites/>"), output=output).total == 2
    assert [it.format for it in read(("r.xml", "<testsuites/>")).runners] == ["JUnit XML"]
    # Nor does one that cannot be read, and it is named.
    summary = read(("r.xml", "<broken"), output=output)
    assert [it.format for it in summary.runners] == ["pytest"]
    assert "r.xml" in str(summary.note)


def test_reports_of_several_packages_are_listed_and_summed() -> None:
    one = "<testsuite><testcase name='x'/><testcase name='y'><failure/></testcase></testsuite>"
    two = "<testsuites><testsuite><testcase name='z'><skipped/></testcase></testsuite></testsuites>"
    summary = read(("a/junit.xml", one), ("b/junit.xml", two))
    assert [(runner.label, runner.total) for runner in summary.runners] == [("a", 2), ("b", 1)]
    assert (summary.passed, summary.failed, summary.skipped, summary.total) == (1, 1, 1, 3)


def test_the_same_report_in_two_places_counts_once_and_its_tests_count_whatever_its_attributes_say() -> None:
    text = "<testsuite tests='900' failures='3'><testcase name='x'/></testsuite>"
    assert read(("a/junit.xml", text), ("b/junit.xml", text)).total == 1


@pytest.mark.parametrize(("exit_code", "counted"), [(0, (1, 0, 1)), (1, (1, 1, 0))])
def test_a_failed_test_that_is_listed_again_as_passed_is_flaky_when_the_command_succeeded(
    exit_code: int, counted: tuple[int, int, int]
) -> None:
    case = "<testcase classname='C' name='t'>"
    retried = f"<testsuite>{case}<failure/></testcase>{case}</testcase></testsuite>"
    summary = read(("r.xml", retried), exit_code=exit_code)
    assert (summary.passed, summary.failed, summary.flaky) == counted


@pytest.mark.parametrize("group", ["", " classname='test'"])
def test_a_failing_and_a_passing_test_of_two_suites_are_two_tests_though_they_share_their_name(group: str) -> None:
    case = f"<testcase name='works'{group}>"
    failing = f"<testsuite name='A'>{case}<failure/></testcase></testsuite>"
    passing = f"<testsuite name='B'>{case}</testcase></testsuite>"
    summary = read(("r.xml", f"<testsuites>{failing}{passing}</testsuites>"), exit_code=0)
    assert (summary.passed, summary.failed, summary.flaky) == (1, 1, 0)
    assert contradictions(summary, 0)


@pytest.mark.parametrize(
    ("case", "counted"),
    [
        ("<testcase name='t' status='failed'/>", (0, 1, 0, 0)),
        ("<testcase name='t' result='failed'/>", (0, 1, 0, 0)),
        ("<testcase name='t' status='error'/>", (0, 0, 1, 0)),
        ("<testcase name='t' status='run' result='completed'/>", (1, 0, 0, 0)),
        ("<testcase name='t'><rerunFailure/></testcase>", (0, 1, 0, 0)),
        ("<testcase name='t'><rerunError/></testcase>", (0, 0, 1, 0)),
        ("<testcase name='t'><flakyFailure/></testcase>", (1, 0, 0, 1)),
    ],
)
def test_a_junit_test_failed_where_only_an_attribute_or_a_failed_rerun_says_so(
    case: str, counted: tuple[int, int, int, int]
) -> None:
    summary = read(("r.xml", f"<testsuite name='s'>{case}</testsuite>"), exit_code=0)
    assert (summary.passed, summary.failed, summary.errored, summary.flaky) == counted


def test_ctrf_counts_each_test_once_and_is_not_believed_where_its_counts_do_not_add_up() -> None:
    summary = {"tests": 5, "passed": 2, "failed": 1, "pending": 1, "skipped": 1, "other": 0}
    tests = [{"name": "a", "status": "passed", "flaky": True}, {"name": "b", "status": "failed"}]
    found = read(("ctrf.json", json.dumps({"results": {"summary": summary, "tests": tests}})))
    assert [(it.format, it.flaky) for it in found.runners] == [("CTRF", 1)]
    assert (found.passed, found.failed, found.skipped, found.failures) == (2, 1, 2, ("b",))
    assert not read(("ctrf.json", json.dumps({"results": {"summary": {**summary, "tests": 9}}}))).recognised


def test_a_printed_report_is_one_however_many_suites_lie_in_it() -> None:
    inner = "<testsuite>\n<testcase name='x'/>\n</testsuite>\n"
    assert read(output=Output(f"<testsuites>\n{inner}{inner.replace('x', 'y')}</testsuites>\n")).total == 2


def test_secrets_in_names_are_masked_and_a_name_without_end_is_cut() -> None:
    key = "sk-ant-fake-0123456789abcdef"
    cases = "".join(f"<testcase name='{name}'><failure/></testcase>" for name in (f"uses {key}", "x" * 100_000))
    report = ReportFile("r.xml", f"<testsuite>{cases}</testsuite>".encode())
    assert read_tests(NOTHING, [report], 1, Redactor([Secret(key)])).failures == ("uses ***", "x" * 300)


def test_a_report_without_end_is_refused_before_it_fills_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "MAX_ELEMENTS", 1_000)
    raw = b"<testsuite>" + b"<a/>" * 1_000 + b"</testsuite>"
    with pytest.raises(RefusedXmlError, match="too many elements"):
        parse_xml(raw)
