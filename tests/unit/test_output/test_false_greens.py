"""What looks like a summary, a start or a failure never vanishes behind numbers that are green."""

import pytest

from tests.builders import safe, suite
from tests.support.cases import for_each
from tests.unit.test_output.fixtures import read
from zelda_ci.domain.details import CommandResult, TestSummary
from zelda_ci.metrics.functional_correctness import CommandEvidence, weigh
from zelda_ci.test_output.coverage import read_coverage
from zelda_ci.test_output.reading import contradictions
from zelda_ci.test_output.tally import Output

GREEN = "=== test session starts ===\ncollected 3 items\n\ntests/test_a.py ... [100%]\n\n=== 3 passed in 0.10s ===\n"
ABORTED = (
    "=== test session starts ===\ncollected 9 items\n\ntests/test_b.py ...\nFatal Python error: Segmentation fault\n"
)
JEST = "PASS ./a.test.js\n\nTest Suites: 1 passed, 1 total\nTests:       3 passed, 3 total\nTime:        1 s\n"
GREEN_JUNIT = "<testsuites><testsuite name='vitest'><testcase name='a'/><testcase name='b'/></testsuite></testsuites>"

# Each ends with exit code 0, because only the last command's counts, and none of them was green.
OUTPUTS: dict[str, str] = {
    "failing files of Vitest whose listing was cut": (
        " RUN  v3.0.0 /project\n\n Test Files  1 failed | 1 passed (2)\n      Tests  3 passed (3)\n   Duration  1.0s\n"
    ),
    "a GoogleTest that crashed before a second one": (
        "[==========] Running 3 tests from 1 test suite.\n[ RUN      ] A.b\n[       OK ] A.b (0 ms)\n[ RUN      ] A.c\n"
        "[==========] Running 1 test from 1 test suite.\n[       OK ] B.a (0 ms)\n"
        "[==========] 1 test from 1 test suite ran. (0 ms total)\n[  PASSED  ] 1 test.\n"
    ),
    "a cargo test that crashed before a second one": (
        "running 3 tests\ntest a ... ok\nrunning 1 test\ntest b ... ok\n\n"
        "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n"
    ),
    "a Playwright that was killed before a Jest": "Running 5 tests using 1 worker\n  ok 1 a.spec.ts:3:1 > a (5ms)\n"
    + JEST,
    "a PHPUnit that died before a second one": (
        "PHPUnit 11.0.0 by Sebastian Bergmann and contributors.\n\nRuntime:       PHP 8.3\n\n..\nPHP Fatal error:  x\n"
        "PHPUnit 11.0.0 by Sebastian Bergmann and contributors.\n\n.\n\nOK (1 test, 1 assertion)\n"
    ),
    "a collection error before a second pytest": (
        "=== test session starts ===\ncollected 0 items / 1 error\n\n=== ERRORS ===\n"
        "!!!!!!!!!! Interrupted: 1 error during collection !!!!!!!!!!\n" + GREEN
    ),
    "a pytest that crashed between the lines of another": GREEN.replace("\n===", f"\n{ABORTED}===", 1),
    "a pytest that is very quiet before another runner": "...FFEs                    [100%]\n" + JEST,
    "a failing Jest before one that lists no file": (
        "FAIL ./b.test.js\nTest Suites: 1 failed, 1 total\nTests:       1 failed, 1 total\n\n"
        "Test Suites: 1 passed, 1 total\nTests:       3 passed, 3 total\n"
    ),
    "a pytest that was killed before a prove of scripts that may be anyone's": (
        ABORTED.replace("Fatal Python error: Segmentation fault", "")
        + "a.sh .. ok\nFiles=1, Tests=5,  0 wallclock secs\nResult: PASS\n"
    ),
    "a pytest that was killed between two proves": (
        "t/x.t .. ok\n"
        + ABORTED.replace("Fatal Python error: Segmentation fault", "")
        + "t/a.t .. ok\nFiles=1, Tests=5,  0 wallclock secs\nResult: PASS\n"
    ),
    "a test program that crashed before another runner": "./a_test\nSegmentation fault (core dumped)\n" + JEST,
}


def green(summary: TestSummary) -> bool:
    """As the score sees it: numbers, or the exit code alone where there are none."""
    return not summary.unclear and not summary.failed + summary.errored and not contradictions(summary, 0)


@for_each(OUTPUTS)
def test_output_of_a_run_that_was_not_green_is_not_read_as_green(name: str) -> None:
    assert not green(read(OUTPUTS[name]))


@pytest.mark.parametrize("count", ["-5", "99999999999", "true", '"7"', "1.5", "Infinity", "1e400"])
def test_counts_that_cannot_be_are_no_counts(count: str) -> None:
    text = f'{{"numTotalTests":1,"numPassedTests":{count},"numFailedTests":0,"testResults":[]}}\n'
    assert not read(text).recognised
    assert not read(f'{{"stats":{{"passes":{count},"failures":0,"pending":0}},"failures":[],"passes":[]}}\n').recognised


@pytest.mark.parametrize(
    ("line", "lines"),
    [("TOTAL                                         15       2    13%", 13.33), ("TOTAL   7   1   86%", 85.71)],
)
def test_coverage_is_what_the_printed_percentage_says(line: str, lines: float) -> None:
    assert read_coverage(Output(f"log\n-----\n{line}\n"), ()).lines == lines


def test_totals_of_a_report_that_tell_of_failures_it_does_not_list_are_not_green() -> None:
    assert not green(read("", ("r.xml", "<testsuite tests='2' errors='1'><testcase name='x'/></testsuite>")))


@pytest.mark.parametrize(
    "line",
    [
        "No scenarios\nNo steps",
        "No test matches the given testcase filter `Name~x` in /app/T.dll",
        "No tests found, exiting with code 0",
        "No test files found, exiting with code 0",
        "Incomplete: No specs found",
        "[INFO] No tests to run.",
    ],
)
def test_a_run_without_any_test_is_not_green_and_one_beside_others_changes_nothing(line: str) -> None:
    for label in ("", "[web] ", "web-1  | "):
        assert not green(read(f"starting\n{label}{line}\n"))
        assert read(f"{label}{line}\n{GREEN}").passed == 3
        assert read(f"{label}{line}\n", ("junit.xml", GREEN_JUNIT)).passed == 2


def test_a_suite_that_jest_could_not_load_is_an_error() -> None:
    report = (
        '{"numTotalTests": 1, "numPassedTests": 1, "numFailedTests": 0, "numRuntimeErrorTestSuites": 1, "success": false,'
        ' "testResults": [{"status": "passed", "assertionResults": [{"status": "passed", "title": "a"}]}]}'
    )
    assert read("", ("jest.json", report)).errored == 1


XML = {
    "NUnit 3 XML": (
        "<test-run><test-case fullname='a' result='Passed'/><test-case fullname='b' result='Failed'/>"
        "<test-case fullname='c' result='Failed' label='Error'/><test-case fullname='d' result='Skipped'/></test-run>"
    ),
    "xUnit.net XML": "<assembly><test name='a' result='Pass'/><test name='b' result='Fail'/><test name='d' result='Skip'/></assembly>",
}


@pytest.mark.parametrize("printed", [False, True])
@pytest.mark.parametrize("form", XML)
def test_xml_is_recognised_by_its_content_under_any_name_and_where_it_was_printed(form: str, *, printed: bool) -> None:
    document = f'<?xml version="1.0" encoding="UTF-8"?>\n{XML[form]}\n'
    summary = (
        read(f"log\n{document}log\n", exit_code=1) if printed else read("", ("out/any.xml", document), exit_code=1)
    )
    assert {it.format for it in summary.runners} == {form}
    assert (summary.passed, summary.failed, summary.skipped) == (1, 1, XML[form].count("'d'") or XML[form].count(">d<"))
    assert summary.errored == XML[form].count("'c'") + XML[form].count(">c<")
    assert summary.failures[0] == "b"


@pytest.mark.parametrize(
    "line",
    [
        "Test Suites: 1 failed, 2 passed, 3 total",
        "FAILED (failures=2)",
        "BUILD FAILURE",
        "[INFO] BUILD FAILURE",
        "BUILD FAILED in 3s",
        "Fatal Python error: Segmentation fault",
        "run.sh: line 3: 4711 Segmentation fault      ./suite",
        "[web] BUILD FAILURE",
        "3 tests, 1 failed",
        "Ran 3 tests: 1 failed in 0.1s",
        "5 runs, 5 assertions, 1 failures, 0 errors, 0 skips",
        "\u2716 1 failed, 2 passed",
        "##teamcity[testFailed name='a' message='x']",
        "--- FAIL: TestX (0.00s)",
    ],
)
def test_a_printed_failure_alone_is_unclear_also_with_exit_code_0(line: str) -> None:
    for output in (f"compiling\n{line}\n", f"[api] compiling\n{line}\n"):
        assert read(output).unclear


def test_a_failure_behind_a_label_is_not_hidden_by_the_green_runner_of_another_label() -> None:
    assert read("".join(f"[web] {line}\n" for line in JEST.splitlines()) + "[api] BUILD FAILURE\n").unclear


@pytest.mark.parametrize(
    "failing",
    [
        "--- FAIL: TestX (0.00s)\n    x_test.go:5: bad\nFAIL\nFAIL\texample.com/x\t0.005s\nFAIL\n",
        "\n  Array\n    1) should fail\n\n  0 passing (5ms)\n  1 failing\n\n  1) Array\n       should fail:\n     Error: x\n",
    ],
    ids=["Go", "Mocha"],
)
def test_a_failing_runner_between_the_lines_of_a_green_one_is_not_hidden(failing: str) -> None:
    begun, ended = GREEN.split("tests/test_a.py", 1)
    summary = read(f"{begun}{failing}tests/test_a.py{ended}")
    assert summary.unclear or contradictions(summary, 0)


@pytest.mark.parametrize(
    "line",
    [
        "INFO: 3 logins failed, account locked",
        "WARN: Segmentation fault handler installed",
        "rejects a BUILD FAILURE of the upstream",
        "[web] the last build failed, retrying",
    ],
)
def test_a_log_line_that_mentions_a_failure_is_no_verdict(line: str) -> None:
    assert not read(f"{line}\nok\n").unclear
    assert not read(f"{line}\n{GREEN}").unclear


def test_an_unclear_output_scores_nothing_and_says_which_line_it_is() -> None:
    ended = CommandResult(command=safe("make test"), exit_code=0, seconds=1, output=safe(""), output_bytes=0)
    evidence = CommandEvidence(test=ended, tests=read(ABORTED + JEST))
    score, details = weigh(suite(test_command="make test"), evidence)
    assert (score, details.passed) == (0.0, False)
    assert "test session starts" in details.shortfalls[0]
