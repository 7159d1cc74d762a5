"""One closing summary for each runner of the table: passed, failed, errored and skipped."""

import re2

from tests.support.cases import for_each
from zelda_ci.redact import Redactor
from zelda_ci.test_output.grammars import GENERIC, GRAMMARS, compiled
from zelda_ci.test_output.reading import read_tests
from zelda_ci.test_output.tally import Output

SUMMARIES: dict[str, tuple[str, tuple[int, int, int, int]]] = {
    "Check": ("66%: Checks: 3, Failures: 1, Errors: 0", (2, 1, 0, 0)),
    "Criterion": ("[====] Synthesis: Tested: 4 | Passing: 2 | Failing: 2 | Crashing: 1 ", (2, 2, 0, 0)),
    "Unity": (
        "t.c:9:test_b:FAIL: Expected 1 Was 2\n\n-----------------------\n4 Tests 1 Failures 1 Ignored \nFAIL",
        (2, 1, 0, 1),
    ),
    "Ceedling": (
        "--------------------\nOVERALL TEST SUMMARY\n--------------------\nTESTED:  4\nPASSED:  2\nFAILED:  1\nIGNORED: 1\n",
        (2, 1, 0, 1),
    ),
    "CppUTest": (
        "t.cpp:9: error: Failure in TEST(Group, b)\n\tx\n\nErrors (1 failures, 4 tests, 3 ran, 5 checks, 1 ignored, 0 filtered out, 1 ms)",
        (2, 1, 0, 1),
    ),
    "CUnit": (
        "Run Summary:    Type  Total    Ran Passed Failed Inactive\n              suites      1      1    n/a      0        0\n"
        "               tests      3      3      2      1        0\n             asserts      5      5      4      1      n/a",
        (2, 1, 0, 0),
    ),
    "\xb5nit": ("2 of 3 (67%) tests successful, 1 (25%) test skipped.", (2, 1, 0, 1)),
    "greatest": ("Total: 4 tests (10 ms), 3 assertions\nPass: 2, fail: 1, skip: 1.", (2, 1, 0, 1)),
    "acutest": ("Test a...   [ OK ]\nTest b...   [ FAILED ]\nFAILED: 1 of 2 unit tests has failed.", (1, 1, 0, 0)),
    "Boost.Test": (
        'Running 3 test cases...\nt.cpp(9): error: in "suite/b": check 1 == 2 has failed\n\n*** 1 failure is detected in the test module "m"',
        (2, 1, 0, 0),
    ),
    "Boost.Test, all passed": ("Running 3 test cases...\n\n*** No errors detected", (3, 0, 0, 0)),
    "QtTest": (
        "********* Start testing of T *********\nPASS   : T::initTestCase()\nFAIL!  : T::b() Compared values are not the same\n"
        "Totals: 3 passed, 1 failed, 1 skipped, 0 blacklisted, 2ms\n********* Finished testing of T *********",
        (3, 1, 0, 1),
    ),
    "lit": (
        "Testing Time: 0.10s\n\nTotal Discovered Tests: 4\n  Unsupported: 1 (25.00%)\n  Passed     : 2 (50.00%)\n  Failed     : 1 (25.00%)",
        (2, 1, 0, 1),
    ),
    "DejaGnu": (
        "\t\t=== gcc Summary ===\n\n# of expected passes\t\t3\n# of unexpected failures\t1\n# of unsupported tests\t\t2",
        (3, 1, 0, 2),
    ),
    "Automake": (
        "# TOTAL: 5\n# PASS:  2\n# SKIP:  1\n# XFAIL: 1\n# FAIL:  1\n# XPASS: 0\n# ERROR: 0",
        (2, 1, 0, 2),
    ),
    "Meson": (
        "Ok:                 2   \nExpected Fail:      1   \nFail:               1   \nUnexpected Pass:    0   \nSkipped:            1   \nTimeout:            1   ",
        (2, 1, 1, 2),
    ),
    "Bazel": (
        "//a:t   PASSED in 0.1s\n//b:t   FAILED in 0.1s\n\nExecuted 2 out of 2 tests: 1 test passes and 1 fails locally.",
        (1, 1, 0, 0),
    ),
    "Bazel, all passed": ("Executed 0 out of 3 tests: 3 tests pass.", (3, 0, 0, 0)),
    "Buck2": (
        "Tests finished: Pass 3. Fail 1. Timeout 0. Fatal 0. Skip 1. Omit 0. Infra Failure 0. Build failure 0",
        (3, 1, 0, 1),
    ),
    "ScalaTest": (
        "[info] Run completed in 100 milliseconds.\n[info] Total number of tests run: 4\n[info] Suites: completed 2, aborted 0\n"
        "[info] Tests: succeeded 3, failed 1, canceled 0, ignored 1, pending 0\n[info] *** 1 TEST FAILED ***\n"
        "[error] Failed: Total 4, Failed 1, Errors 0, Passed 3, Ignored 1",
        (3, 1, 0, 1),
    ),
    "Specs2": ("Total for specification S\nFinished in 50 ms\n3 examples, 1 failure, 0 error", (2, 1, 0, 0)),
    "ZIO Test": ("2 tests passed. 1 tests failed. 1 tests ignored.", (2, 1, 0, 1)),
    "Kotest": (
        "Specs:  0 passed, 1 failed, 1 total\nTests:  2 passed, 1 failed, 1 ignored, 4 total\nTime:   1s",
        (2, 1, 0, 1),
    ),
    "TestNG": (
        "===============================================\nSuite\nTotal tests run: 4, Passes: 2, Failures: 1, Skips: 1\n"
        "===============================================",
        (2, 1, 0, 1),
    ),
    "JUnit console": (
        "[         2 containers found      ]\n[         2 containers successful ]\n[         4 tests found           ]\n"
        "[         1 tests skipped         ]\n[         3 tests started         ]\n[         0 tests aborted         ]\n"
        "[         2 tests successful      ]\n[         1 tests failed          ]",
        (2, 1, 0, 1),
    ),
    "JUnit 4": (
        "There was 1 failure:\n1) b(T)\njava.lang.AssertionError\n\nFAILURES!!!\nTests run: 3,  Failures: 1",
        (2, 1, 0, 0),
    ),
    "ExUnit": (
        "Running ExUnit with seed: 0, max_cases: 4\n\n..\n\n  1) test b (T)\n     t.exs:9\n\nFinished in 0.05 seconds (0.00s async, 0.05s sync)\n"
        "1 doctest, 3 tests, 1 failure, 1 skipped",
        (2, 1, 0, 1),
    ),
    "EUnit": ("  Failed: 1.  Skipped: 0.  Passed: 2.", (2, 1, 0, 0)),
    "Common Test": ("Failed 1 tests. Skipped 1 (0, 1) tests. Passed 2 tests.", (2, 1, 0, 1)),
    "Hspec": ("Finished in 0.0010 seconds\n4 examples, 1 failure, 1 pending", (2, 1, 0, 1)),
    "Tasty": ("  b: FAIL\n\n1 out of 3 tests failed (0.00s)", (2, 1, 0, 0)),
    "HUnit": ("Cases: 3  Tried: 3  Errors: 1  Failures: 1", (1, 1, 1, 0)),
    "Alcotest": ("1 failure! in 0.001s. 3 tests run.", (2, 1, 0, 0)),
    "OUnit": (
        "Ran: 3 tests in: 0.10 seconds.\nFAILED: Cases: 3 Tried: 3 Errors: 0 Failures: 1 Skip:1 Todo:0 Timeouts:0.",
        (1, 1, 0, 1),
    ),
    "clojure.test": (
        "FAIL in (b) (t.clj:9)\nRan 3 tests containing 5 assertions.\n2 failures, 0 errors.",
        (2, 1, 0, 0),
    ),
    "Elm": ("TEST RUN FAILED\n\nDuration: 100 ms\nPassed:   2\nFailed:   1", (2, 1, 0, 0)),
    "Expecto": (
        "[10:00:00 INF] EXPECTO! 4 tests run in 00:00:00.1 for t \u2013 2 passed, 1 ignored, 1 failed, 0 errored.  <Expecto>",
        (2, 1, 0, 1),
    ),
    "ERT": (
        "Ran 4 tests, 2 results as expected, 1 unexpected, 1 skipped (2026-01-01 10:00:00+0000, 0.1 sec)",
        (2, 1, 0, 1),
    ),
    "busted": ("2 successes / 1 failure / 0 errors / 1 pending : 0.001 seconds", (2, 1, 0, 1)),
    "LuaUnit": ("Ran 3 tests in 0.000 seconds, 2 successes, 1 failure", (2, 1, 0, 0)),
    "testthat": ("[ FAIL 0 | WARN 0 | SKIP 0 | PASS 1 ]\n[ FAIL 1 | WARN 0 | SKIP 1 | PASS 2 ]", (2, 1, 0, 1)),
    "Julia": (
        "Test Summary: | Pass  Fail  Error  Broken  Total  Time\nT             |    2     1      1       1      5  0.1s",
        (2, 1, 1, 1),
    ),
    "Dart": ("00:00 +0: loading t.dart\n00:01 +2 -1: b [E]\n00:01 +2 ~1 -1: Some tests failed.", (2, 1, 0, 1)),
    "Crystal": ("Finished in 1.2 milliseconds\n4 examples, 1 failures, 0 errors, 1 pending", (2, 1, 0, 1)),
    "XCTest": (
        "Test Suite 'All tests' started at 2026-01-01 10:00:00.000.\nTest Case '-[T b]' failed (0.1 seconds).\nTest Suite 'T' failed at 2026.\n"
        "\t Executed 3 tests, with 1 failure (0 unexpected) in 0.002 (0.003) seconds\nTest Suite 'All tests' failed at 2026.\n"
        "\t Executed 3 tests, with 1 failure (0 unexpected) in 0.002 (0.003) seconds",
        (2, 1, 0, 0),
    ),
    "Swift Testing": (
        "\u25c7 Test run started.\n\u2718 Test b() failed after 0.001 seconds with 2 issues.\n"
        "\u2718 Test run with 3 tests failed after 0.001 seconds with 2 issues.",
        (2, 1, 0, 0),
    ),
    "Zig": ("2 passed; 1 skipped; 1 failed.", (2, 1, 0, 1)),
    "Zig build": ("Build Summary: 1/3 steps succeeded; 1 failed; 2/3 tests passed; 1 failed", (2, 1, 0, 0)),
    "Pester": ("Tests completed in 1.2s\nTests Passed: 2, Failed: 1, Skipped: 1 NotRun: 0", (2, 1, 0, 1)),
    "Karma": (
        "Chrome Headless 120 (Linux): Executed 1 of 3 SUCCESS (0 secs / 0.001 secs)\nChrome Headless 120 (Linux): Executed 3 of 4 (1 FAILED) (skipped 1) (0.01 secs / 0.002 secs)",
        (2, 1, 0, 1),
    ),
    "Cypress": (
        "  2 passing (1s)\n  1 failing\n\n  1) a b:\n     Error\n\n  (Run Finished)\n\n"
        "    \u2716  1 of 1 failed (100%)                     00:01        3        2        1        -        -  ",
        (2, 1, 0, 0),
    ),
    "CodeceptJS": ("  FAIL  | 2 passed, 1 failed, 1 skipped   // 2s", (2, 1, 0, 1)),
    "uvu": ("  Total:     3\n  Passed:    2\n  Skipped:   0\n  Duration:  1.20ms", (2, 1, 0, 0)),
    "Japa": ("Tests  2 passed, 1 failed (3)\n Time  5ms", (2, 1, 0, 0)),
    "tap-spec": ("  total:     3\n  passing:   2\n  failing:   1\n  duration:  10ms", (2, 1, 0, 0)),
    "Foundry": (
        "Suite result: FAILED. 2 passed; 1 failed; 0 skipped; finished in 1.00ms (1.00ms CPU time)\n\n"
        "Ran 1 test suite in 5.00ms (1.00ms CPU time): 2 tests passed, 1 failed, 0 skipped (3 total tests)",
        (2, 1, 0, 0),
    ),
    "Move": ("Test result: FAILED. Total tests: 3; passed: 2; failed: 1", (2, 1, 0, 0)),
    "Cucumber": ("4 scenarios (1 failed, 1 undefined, 2 passed)\n12 steps (1 failed, 11 passed)\n0m0.1s", (2, 1, 1, 0)),
    "Behave": (
        "0 features passed, 1 failed, 0 skipped\n2 scenarios passed, 1 failed, 1 skipped\n8 steps passed, 1 failed, 2 skipped, 0 undefined\nTook 0m0.1s",
        (2, 1, 0, 1),
    ),
    "phpspec": ("2 specs\n3 examples (2 passed, 1 failed)\n10ms", (2, 1, 0, 0)),
    "Robot Framework": (
        "T | FAIL |\n4 tests, 2 passed, 1 failed, 1 skipped\n=====\nAll | FAIL |\n4 tests, 2 passed, 1 failed, 1 skipped",
        (2, 1, 0, 1),
    ),
    "stestr": (
        "======\nTotals\n======\nRan: 4 tests in 0.1 sec.\n - Passed: 2\n - Skipped: 1\n - Expected Fail: 0\n - Unexpected Success: 0\n - Failed: 1\nSum of execute time for each test: 0.1 sec.",
        (2, 1, 0, 1),
    ),
    "Trial": ("-" * 79 + "\nRan 4 tests in 0.010s\n\nFAILED (skips=1, failures=1, successes=2)", (2, 1, 0, 1)),
    "Avocado": ("RESULTS    : PASS 2 | ERROR 1 | FAIL 1 | SKIP 1 | WARN 0 | INTERRUPT 0 | CANCEL 0", (2, 1, 1, 1)),
    "atoum": ("Success (2 tests, 5/5 methods, 0 void method, 1 skipped method, 9 assertions)!", (4, 0, 0, 1)),
    "Nette Tester": ("FAILURES! (3 tests, 1 failure, 1 skipped, 0.1 seconds)", (1, 1, 0, 1)),
    "NUnit": (
        "Test Run Summary\n  Overall result: Failed\n  Test Count: 4, Passed: 2, Failed: 1, Warnings: 0, Inconclusive: 0, Skipped: 1",
        (2, 1, 0, 1),
    ),
    "xUnit.net": (
        "=== TEST EXECUTION SUMMARY ===\n   T  Total: 4, Errors: 0, Failed: 1, Skipped: 1, Time: 0.1s",
        (2, 1, 0, 1),
    ),
    "dbt": ("10:00:00  Done. PASS=2 WARN=0 ERROR=1 SKIP=1 TOTAL=4", (2, 1, 0, 1)),
    "utPLSQL": ("4 tests, 1 failed, 0 errored, 1 disabled, 0 warning(s)", (2, 1, 0, 1)),
    "Terraform": ("Failure! 2 passed, 1 failed, 1 skipped.", (2, 1, 0, 1)),
    "conftest": ("4 tests, 2 passed, 0 warnings, 2 failures, 0 exceptions", (2, 2, 0, 0)),
    "InSpec": (
        "Profile Summary: 1 successful control, 1 control failure, 0 controls skipped\nTest Summary: 2 successful, 1 failure, 1 skipped",
        (2, 1, 0, 1),
    ),
    "goss": ("Total Duration: 0.1s\nCount: 4, Failed: 1, Skipped: 1", (2, 1, 0, 1)),
    "Ginkgo": ("Ran 3 of 4 Specs in 0.001 seconds\nFAIL! -- 2 Passed | 1 Failed | 0 Pending | 1 Skipped", (2, 1, 0, 1)),
    "gotestsum": ("DONE 4 tests, 1 skipped, 1 failure in 0.1s", (2, 1, 0, 1)),
    "gocheck": ("OOPS: 2 passed, 1 FAILED", (2, 1, 0, 0)),
    "cocotb": ("** TESTS=3 PASS=2 FAIL=1 SKIP=0                 0.10           0.01          9.99  **", (2, 1, 0, 0)),
    "k6": ("     checks.........................: 66.66% \u2713 2        \u2717 1  ", (2, 1, 0, 0)),
    "Newman": (
        "\u2502                         \u2502           executed \u2502           failed \u2502\n\u2502              iterations \u2502                  1 \u2502                0 \u2502\n"
        "\u2502                requests \u2502                  1 \u2502                0 \u2502\n\u2502              assertions \u2502                  3 \u2502                1 \u2502",
        (2, 1, 0, 0),
    ),
    "AUnit": (
        "Total Tests Run:   3\n\nSuccessful Tests:  2\n\nFailed Assertions: 1\n\nUnexpected Errors: 0",
        (2, 1, 0, 0),
    ),
    "shellspec": (
        "Finished in 0.1 seconds (user 0.1 seconds, sys 0.1 seconds)\n4 examples, 1 failure, 1 skip",
        (2, 1, 0, 1),
    ),
    "Dredd": ("complete: 2 passing, 1 failing, 0 errors, 1 skipped, 4 total", (2, 1, 0, 1)),
    "an unknown runner in one line": ("Results: 2 passed, 1 failed, 1 skipped (4 total) in 0.1s", (2, 1, 0, 1)),
    "an unknown runner in labelled lines": ("Tests run: 4\nPassed: 2\nFailed: 1\nSkipped: 1\n", (2, 1, 0, 1)),
    "RSpec": (
        "Finished in 0.01 seconds (files took 0.1 seconds to load)\n4 examples, 1 failure, 1 pending, "
        "1 error occurred outside of examples\n\nFailed examples:\n\nrspec ./spec/a_spec.rb:3 # A does b",
        (2, 1, 1, 1),
    ),
    "test-unit": (
        "Failure: test_b(TestX)\nFinished in 0.1 seconds.\n------\n"
        "4 tests, 4 assertions, 1 failures, 0 errors, 1 pendings, 0 omissions, 0 notifications",
        (2, 1, 0, 1),
    ),
    "Jasmine": (
        "Failures:\n1) A does b\n\nPending:\n\n1) A does c\n\n3 specs, 1 failure, 1 pending spec\nFinished in 0.1 seconds",
        (1, 1, 0, 1),
    ),
    "Gradle": ("A > b() FAILED\n    x\n\n4 tests completed, 1 failed, 1 skipped", (2, 1, 0, 1)),
    "Catch2": (
        "test cases: 4 | 2 passed | 1 failed | 1 failed as expected\nassertions: 5 | 4 passed | 1 failed",
        (2, 1, 0, 1),
    ),
    "doctest": (
        "[doctest] test cases:  3 |  2 passed | 1 failed | 1 skipped\n[doctest] assertions: 5 | 4 passed | 1 failed |",
        (2, 1, 0, 1),
    ),
    ".NET, two assemblies and their total": (
        "  Failed T.A [10 ms]\nFailed!  - Failed:     1, Passed:     2, Skipped:     1, Total:     4, Duration: 10 ms - a.dll\n"
        "  Failed T.B [10 ms]\nFailed!  - Failed:     1, Passed:     0, Skipped:     0, Total:     1, Duration: 10 ms - b.dll\n"
        "Test summary: total: 5, failed: 2, succeeded: 2, skipped: 1, duration: 1s",
        (2, 2, 0, 1),
    ),
    ".NET, VSTest": (
        "Total tests: 4\n     Passed: 2\n     Failed: 1\n    Skipped: 1\n Total time: 1.2 Seconds",
        (2, 1, 0, 1),
    ),
    ".NET, testing platform": (
        "Test run summary: Failed!\n  total: 4\n  failed: 1\n  succeeded: 2\n  skipped: 1\n  duration: 1s 200ms",
        (2, 1, 0, 1),
    ),
}


@for_each(SUMMARIES)
def test_a_closing_summary_is_read_as_its_runner_means_it(name: str) -> None:
    text, wanted = SUMMARIES[name]
    for around in (text, f"some log\n{text}\n", f"compiling\n\n{text}\n\nnpm ERR! code 1\nDone.\n"):
        summary = read_tests(Output(around), (), 1, Redactor())
        found = [(one.passed, one.failed, one.errored, one.skipped) for one in summary.runners]
        assert found == [wanted], (summary.formats, summary.unclear)


STAMPS = (
    "2026-01-01T10:00:00.1234567Z ",
    "[2026-01-01 10:00:00] ",
    "test\tRun tests\t2026-01-01T10:00:00Z ",
    "#12 1.234 ",
)


@for_each([(name, stamp) for name in SUMMARIES for stamp in STAMPS])
def test_the_time_that_a_log_puts_before_each_line_changes_no_number(name: str, stamp: str) -> None:
    text, wanted = SUMMARIES[name]
    stamped = "".join(f"{stamp}{line}\n" for line in text.split("\n"))
    summary = read_tests(Output(stamped), (), 1, Redactor())
    assert [(one.passed, one.failed, one.errored, one.skipped) for one in summary.runners] == [wanted]


def test_a_failing_test_is_named_with_its_own_run() -> None:
    runs = [
        f"Finished in 0.01 seconds\n3 examples, 1 failure\n\nFailed examples:\n\nrspec ./a_spec.rb:3 # {name}\n"
        for name in ("first", "second")
    ]
    found = read_tests(Output("\n".join(runs)), (), 1, Redactor())
    assert [runner.failures for runner in found.runners] == [("first",), ("second",)]


def test_two_runners_may_have_the_same_numbers() -> None:
    rspec, other = "Finished in 0.01 seconds\n3 examples, 0 failures", "ran\n# Running:\n\nFinished in 0.1s\n"
    minitest = f"{other}3 runs, 3 assertions, 0 failures, 0 errors, 0 skips"
    found = read_tests(Output(f"{rspec}\n{minitest}\n"), (), 0, Redactor())
    assert [(runner.format, runner.passed) for runner in found.runners] == [("RSpec", 3), ("Minitest", 3)]


def test_every_row_names_its_groups_as_the_reader_knows_them() -> None:
    for grammar in GRAMMARS:
        assert {name[0] for name in compiled(grammar.line).groupindex} <= set("tprfesl"), grammar.format
        assert not grammar.names or re2.compile(grammar.names).groups == 1, grammar.format
    assert GRAMMARS[-1].format == GENERIC
