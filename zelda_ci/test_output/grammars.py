"""The table of printed summaries: one row for each runner's closing line or block of labels and numbers."""

from dataclasses import dataclass
from functools import cache

import re2

# The format of summaries that name no runner.
GENERIC = "test summary"


@dataclass(frozen=True)
class Grammar:
    """A summary in one line, or in a block of labelled lines that its anchor begins.

    Groups of the line: `t` total, `p` passed, `f` failed, `e` errored, `s` skipped (a digit behind for another one), or
    `r` those that ran, or `l`: a list of counts in words. Without any group the whole line is such a list.
    """

    format: str
    line: str
    rows: int = 0
    """How many more lines may belong to it: a list of counts each."""
    start: str = ""
    """The line with which the runner begins; a run that began and has no summary never ended."""
    below: str = ""
    """The next line that is not blank, with groups of its own; without it this is no summary."""
    above: str = ""
    """One of the two nearest lines above that are not blank; without it this is no summary."""
    names: str = ""
    """A failing test's line, its name in the first group."""
    listed_below: bool = False
    """Whether failing tests are listed below the summary; else above it, or around it."""
    by_names: bool = False
    """Whether failures in the summary are assertions, so that failing tests are counted by name; without them in doubt."""
    repeat: str = "each"
    """What several of them are: a run `each`, parts that a total repeats (`nested`), or `progress`, of which the last counts."""
    holds: tuple[str, ...] = ()
    """Formats whose summaries this one adds up, or prints once more."""
    certain: bool = True
    rest: str = ""
    """The kind of those that the total counts and no number names."""
    outside: str = ""
    """The kind of those that the total leaves out."""
    parts: str = ""
    """Lines that may stand among others below the first, each with groups of its own."""


# What loggers and build tools put before a line: a level, a mark.
_BEFORE = r"(?:\s*\[(?:info|error|warn|INFO|ERROR|WARNING|junit|java|exec|testng)\] ?)?"


@cache
def compiled(line: str) -> "re2._Regexp[str]":
    """The pattern of a whole line, with what may stand before it."""
    return re2.compile(rf"^{_BEFORE}(?:{line})\s*$")


N = r"\d{1,9}"
_TIME = r"[\d.:]+ ?(?:[mnu\xb5\x{3bc}]?s|m|min|sec(?:ond)?s?|milliseconds|microseconds|h)?"
_JVM = ("ScalaTest", "Specs2", "MUnit", "ZIO Test", "Kotest", "JUnit 4", "TestNG", "utest")
_MOCHA = ("Mocha",)
_DOTNET_NAME = r"^(?:  Failed|failed) (\S.*?) (?:\[[<\d].*\]|\(\d.*\))$"

_OUTCOMES = (
    "(?i:pass|fail|succe|\\bok\\b|error|tests?\\b|specs?\\b|examples?\\b|scenarios?\\b|total|cases\\b|ran\\b|executed)"
)
_WORDS_AND_NUMBERS = rf".{{0,200}}(?:\d.{{0,200}}{_OUTCOMES}|{_OUTCOMES}.{{0,200}}\d).{{0,200}}"

GRAMMARS: tuple[Grammar, ...] = (
    # C and C++
    Grammar("Check", rf"\d+%: Checks: (?P<t>{N}), Failures: (?P<f>{N}), Errors: (?P<e>{N})"),
    Grammar("Criterion", rf"\[====\] Synthesis: Tested: (?P<t>{N}) \| Passing: (?P<p>{N}) \| Failing: (?P<f>{N}) \| Crashing: {N}"),
    Grammar("Unity", rf"(?P<t>{N}) Tests (?P<f>{N}) Failures (?P<s>{N}) Ignored", names=r"^\S+?:\d+:(\w+):FAIL"),
    Grammar("Ceedling", rf"TESTED: +(?P<t>{N})", rows=3, holds=("Unity",)),
    Grammar("CppUTest", rf"OK \((?P<t>{N}) tests?, {N} ran, {N} checks, (?P<s>{N}) ignored, (?P<s2>{N}) filtered out, {N} ms\)(?P<f>0)?"),
    Grammar("CppUTest", rf"Errors \((?:(?P<f>{N}) failures?, )?(?P<t>{N}) tests?, {N} ran, {N} checks, (?P<s>{N}) ignored, (?P<s2>{N}) filtered out, {N} ms\)",
            names=r"error: Failure in TEST\(([^)]+)\)", by_names=True),
    Grammar("CUnit", rf" *tests +(?P<t>{N}) +{N} +(?P<p>{N}) +(?P<f>{N}) +{N}"),
    Grammar("\xb5nit", rf"(?P<p>{N}) of (?P<t>{N}) \(\d+%\) tests? successful, (?P<s>{N}) \(\d+%\) tests? skipped\.", rest="failed", outside="skipped"),
    Grammar("greatest", rf"Total: (?P<t>{N}) tests? \(.*", rows=1),
    Grammar("acutest", rf"SUCCESS: (?P<p>{N}) unit tests? ha(?:ve|s) passed\."),
    Grammar("acutest", rf"FAILED: (?P<f>{N}) of (?P<t>{N}) unit tests? ha(?:ve|s) failed\.", names=r"^Test (\S+?)\.\.\. +\[ FAILED \]"),
    Grammar("Boost.Test", r"\*\*\* No errors detected(?P<f>0)?", start=rf"Running (?P<t>{N}) test cases?\.\.\."),
    Grammar("Boost.Test", rf"\*\*\* (?P<f>{N}) failures? (?:is|are) detected.* in the test module .*", start=rf"Running (?P<t>{N}) test cases?\.\.\.",
            names=r"error: in \"([^\"]+)\"", by_names=True),
    Grammar("QtTest", rf"Totals: {N} passed, {N} failed, {N} skipped(?:, {N} blacklisted)?(?:, {N}ms)?",
            start=r"\*+ Start testing of \S+ \*+", names=r"^(?:FAIL!|XPASS)  : (\S+?)(?:\(.*)?$"),
    Grammar("Boost.UT", rf"All tests passed \({N} asserts? in (?P<p>{N}) tests?\)"),
    Grammar("Boost.UT", rf"tests: +(?P<t>{N}) \| (?P<f>{N}) failed"),
    Grammar("Catch2", rf"All tests passed \({N} assertions? in (?P<p>{N}) test cases?\)"),
    Grammar("Catch2", r"(?P<p>No) tests ran", above=r"=====.*"),
    Grammar("Catch2", rf"test cases: +(?P<t>{N}) \| (?P<l>.*?)(?: \|)?", below=r"assertions: .*"),
    Grammar("doctest", rf"\[doctest\] test cases: +(?P<t>{N}) \| (?P<l>.*?)(?: \|)?", below=r"\[doctest\] assertions: .*"),
    Grammar("snitch", rf"(?:success|error): .*\((?P<t>{N}) test cases?(?:, (?P<f>{N}) failed)?.*\)"),
    Grammar("bandit", rf"Test run complete\. (?P<l>{N} tests? run\. {N} succeeded\..*)"),
    Grammar("lest", rf"[^\w]*[Aa]ll (?P<p>{N}) tests? passed\.?(?: in [\d.]+s\.)?"),
    Grammar("lest", rf"[^\w]*(?P<f>{N}) (?:out )?of (?P<t>{N}) tests? failed\.?(?: in [\d.]+s\.)?"),
    Grammar("cmocka", rf"\[=+\] (?:\S+: )?(?P<t>{N}) (?:test\(s\) run|test cases ran)\.",
            parts=rf"\[  (?:PASSED  \] (?P<p>{N})|SKIPPED \] (?:\S+: )?(?P<s>{N})|FAILED  \] (?:\S+: )?(?P<f>{N})) tests?(?:\(s\))?\b?.*"),
    Grammar("Boost.Test", r'Test module ".*" has .*', start=rf"Running (?P<t>{N}) test cases?\.\.\.",
            parts=rf" +(?:(?P<p>{N}) test cases? out of {N} passed|(?P<f>{N}) test cases? out of {N} failed|(?P<s>{N}) test cases? out of {N} skipped|(?P<e>{N}) test cases? out of {N} aborted)"),
    Grammar("Autotest", rf"All (?P<p>{N}) tests were successful\."),
    Grammar("Autotest", rf"(?:ERROR: )?(?P<t>{N}) tests? (?:were|was) run,", rows=3, outside="skipped"),
    Grammar("KUnit", rf"Testing complete\. Ran (?P<t>{N}) tests: (?P<l>.*)"),
    Grammar("Please", rf"{N} test targets? and (?P<l>{N} tests? run[;:] .*)"),
    Grammar("lit", rf"Total Discovered Tests: (?P<t>{N})", rows=12),
    Grammar("DejaGnu", rf"# of expected passes\s+(?P<p>{N})", rows=8),
    Grammar("Automake", rf"# TOTAL: +(?P<t>{N})", rows=6),
    Grammar("Meson", rf"Ok: +{N} *", rows=8, holds=("TAP", "GoogleTest", "Catch2", "Check", "Unity")),
    Grammar("Bazel", rf"Executed {N} out of (?P<t>{N}) tests?: (?P<l>{N} tests? pass(?:es)?.*)\."),
    Grammar("Bazel", rf"Executed {N} out of (?P<t>{N}) tests?: (?:(?P<p>{N}) tests? pass(?:es)?(?:,| and) )?(?:(?P<e>{N}) fails? to build(?:,| and)? ?)?"
            rf"(?:(?P<f>{N}) fails? (?:locally|remotely)(?:,| and)? ?)?(?:(?P<s>{N}) (?:was|were) skipped)?\."),
    Grammar("Buck2", rf"Tests finished: Pass {N}\. Fail {N}\..*"),
    # JVM
    Grammar("ScalaTest", rf"Suites: completed {N}, aborted (?P<e>{N})", names=r"^\[?[a-z]*\]? ?- (\S.*) \*\*\* FAILED \*\*\*",
            below=rf"Tests: succeeded (?P<p>{N}), failed (?P<f>{N}), canceled (?P<s>{N}), ignored (?P<s2>{N}), pending (?P<s3>{N})"),
    Grammar("ScalaTest", rf"Tests: succeeded (?P<p>{N}), failed (?P<f>{N}), canceled (?P<s>{N}), ignored (?P<s2>{N}), pending (?P<s3>{N})",
            names=r"^\[?[a-z]*\]? ?- (\S.*) \*\*\* FAILED \*\*\*"),
    Grammar("MUnit", rf"Test run \S+ finished: (?P<f>{N}) failed, (?P<s>{N}) ignored, (?P<t>{N}) total, .*"),
    Grammar("sbt", rf"(?:Passed|Failed|Error): Total (?P<t>{N}), Failed (?P<f>{N}), Errors (?P<e>{N}), Passed (?P<p>{N})"
            rf"(?:, (?:Skipped|Ignored) (?P<s>{N}))?(?:, (?:Skipped|Ignored|Canceled) (?P<s2>{N}))?(?:, (?:Canceled|Pending) (?P<s3>{N}))?(?:, Pending (?P<s4>{N}))?", holds=_JVM),
    Grammar("ZIO Test", rf"(?P<p>{N}) tests? passed\. (?P<f>{N}) tests? failed\. (?P<s>{N}) tests? ignored\."),
    Grammar("Kotest", rf"Tests: +{N} passed, {N} failed, {N} ignored, {N} total"),
    Grammar("TestNG", rf"Total tests run: (?P<t>{N}),(?: Passes: {N},)? Failures: (?P<f>{N}), Skips: (?P<s>{N})", parts=rf"Configuration Failures: (?P<e>{N}), Skips: {N}", outside="errored"),
    Grammar("JUnit console", rf"\[ +{N} containers found +\](?P<f>x)?",
            parts=rf"\[ +(?:(?P<e>{N}) containers failed|(?P<s>{N}) tests skipped|(?P<s2>{N}) tests aborted|(?P<p>{N}) tests successful|(?P<f>{N}) tests failed) +\]"),
    Grammar("JUnit 4", rf"OK \((?P<p>{N}) tests?\)", names=r"^\d+\) (\S.*)$"),
    Grammar("JUnit 4", rf"Tests run: (?P<t>{N}), {{1,2}}Failures: (?P<f>{N})(?:, {{1,2}}Errors: (?P<e>{N}))?", names=r"^\d+\) (\S.*)$"),
    Grammar("Ant", rf"Tests run: (?P<t>{N}), Failures: (?P<f>{N}), Errors: (?P<e>{N})(?:, Skipped: (?P<s>{N}))?, Time elapsed: .* sec"),
    Grammar("Gradle", rf"(?P<t>{N}) tests? completed(?:, (?P<f>{N}) failed)?(?:, (?P<s>{N}) skipped)?", names=r"^(\S+ > .+) FAILED$"),
    Grammar("gradle-test-logger", rf"(?:SUCCESS|FAILURE): Executed (?P<t>{N}) tests? in .*?(?: \((?:(?P<f>{N}) failed)?(?:, )?(?:(?P<s>{N}) skipped)?\))?", holds=("Gradle",)),
    # Functional languages
    Grammar("ExUnit", rf"(?:{N} (?:doctests?|propert(?:y|ies)), )*{N} tests?, {N} failures?(?:, {N} (?:excluded|skipped|invalid))*",
            start=r"Running ExUnit with seed: .*", names=r"^ +\d+\) (?:test|doctest|property) (\S.*)$"),
    Grammar("ExUnit", rf"{N} (?:doctests?|propert(?:y|ies)), {N} failures?(?:, {N} (?:excluded|skipped|invalid))*"),
    Grammar("EUnit", rf" +(?:All (?P<p>{N}) tests|(?P<p2>{N}) tests|Test) passed\."),
    Grammar("EUnit", rf" +Failed: (?P<f>{N})\. +Skipped: (?P<s>{N})\. +Passed: (?P<p>{N})\."),
    Grammar("Common Test", rf"(?:Skipped (?P<s>{N}) \({N}, {N}\) tests?\. )?(?:Failed (?P<f>{N}) tests?\. )?(?:Skipped (?P<s2>{N}) \({N}, {N}\) tests?\. )?Passed (?P<p>{N}) tests?\."),
    Grammar("Common Test", rf".*TEST COMPLETE, (?P<p>{N}) ok, (?P<f>{N}) failed(?:, (?P<s>{N}) skipped)? of (?P<t>{N}) test cases"),
    Grammar("Tasty", rf"All (?P<p>{N}) tests? passed \([\d.]+s\)"),
    Grammar("Tasty", rf"(?P<f>{N}) out of (?P<t>{N}) tests? failed \([\d.]+s\)", names=r"^ +(\S.*?): +FAIL"),
    Grammar("HUnit", rf"Cases: (?P<t>{N}) +Tried: {N} +Errors: (?P<e>{N}) +Failures: (?P<f>{N})", repeat="progress"),
    Grammar("OUnit", rf"FAILED: Cases: (?P<t>{N}) Tried: {N} Errors: (?P<e>{N}) Failures: (?P<f>{N}) Skip: ?(?P<s>{N}) Todo: ?(?P<s2>{N}) Timeouts: ?(?P<e2>{N})\.?"),
    Grammar("OUnit", rf"Ran: (?P<p>{N}) tests in: [\d.]+ seconds\.", below="OK"),
    Grammar("Alcotest", rf"Test Successful in [\d.]+s\. (?P<p>{N}) tests? run\."),
    Grammar("Alcotest", rf"(?P<f>{N}) failures?! in [\d.]+s\. (?P<t>{N}) tests? run\."),
    Grammar("clojure.test", rf"Ran (?P<t>{N}) tests containing {N} assertions\.", rows=1, names=r"^(?:FAIL|ERROR) in \(?([^\s)]+)", by_names=True),
    Grammar("kaocha", rf"(?P<t>{N}) tests?, {N} assertions?, (?:(?P<e>{N}) errors?, )?(?:(?P<s>{N}) pending, )?(?P<f>{N}) failures?\.", names=r"^(?:FAIL|ERROR) in (\S+)", by_names=True),
    Grammar("Elm", rf"Passed: +{N}", rows=3, start=r"Running {N} tests?\. To reproduce these results.*".replace("{N}", N)),
    Grammar("PureScript Spec", rf"(?P<p>{N})/(?P<t>{N}) (?:tests?|properties) passed(?:, (?P<f>{N}) failed)?", rest="failed"),
    Grammar("Hedgehog", rf"\s*(?:\x{{2717}}|\x{{2713}}) (?:(?P<f>{N}) failed[,.] ?)?(?:(?P<p>{N}) succeeded\.)?"),
    Grammar("Buttercup", rf"Ran (?:(?P<r>{N}) out of )?(?P<t>{N}) specs?, (?P<f>{N}) failed, in .*", rest="skipped"),
    Grammar("Expecto", rf"(?:\[.*?\] )?EXPECTO! {N} tests? run in [\d:.]+ for .*? [\x{{2013}}-] (?P<l>{N} passed, {N} ignored, {N} failed, {N} errored)\..*"),
    Grammar("ERT", rf"Ran (?P<t>{N}) tests?, (?P<p>{N}) results? as expected(?:, (?P<f>{N}) unexpected)?(?:, (?P<s>{N}) skipped)? .*"),
    Grammar("FiveAM", rf" *Did (?P<t>{N}) checks?\.", rows=3),
    Grammar("rackunit", rf"(?P<f>{N})/(?P<t>{N}) test failures"),
    Grammar("plunit", rf"% (?P<f>{N}) tests? failed.*", below=rf"% (?P<p>{N}) (?:tests? )?passed.*"),
    Grammar("plunit", rf"% (?:All )?(?P<p>{N}) tests? passed.*"),
    Grammar("gleeunit", rf"(?:(?P<t>{N}) tests|(?P<p>{N}) passed), (?:no failures|(?P<f>{N}) failures?)"),
    # Scripting languages
    Grammar("busted", rf"{N} success(?:es)? / {N} failures? / {N} errors? / {N} pending : [\d.]+ seconds"),
    Grammar("LuaUnit", rf"Ran (?P<t>{N}) tests in [\d.]+ seconds, (?P<p>{N}) success(?:es)?(?:, (?P<f>{N}) failures?)?(?:, (?P<e>{N}) errors?)?(?:, (?P<s>{N}) skipped)?(?:, {N} non-selected)?",
            names=r"^\d+\) (\S+)$"),
    Grammar("plenary", rf"Success: *\t{N}\s*", rows=2),
    Grammar("testthat", rf"\[ FAIL {N} \| WARN {N} \| SKIP {N} \| PASS {N} \]", repeat="progress", names=r"^── (?:Failure|Error) \([^)]*\): (\S.*?) ─*$"),
    Grammar("tinytest", rf"All ok, (?P<p>{N}) results.*"),
    Grammar("tinytest", rf"Showing {N} out of (?P<t>{N}) results: (?P<f>{N}) fails?, (?P<p>{N}) passes.*"),
    Grammar("RUnit", rf"Number of test functions: (?P<t>{N})", rows=3),
    Grammar("Dart", rf"\d\d:\d\d \+(?P<p>{N})(?: ~(?P<s>{N}))?(?: -(?P<f>{N}))?: (?:All tests passed!|Some tests failed\.|All (?:other )?tests (?:skipped|passed)[.!])",
            names=r"^\d\d:\d\d \+\d+(?: ~\d+)? -\d+: (\S.*) \[E\]$"),
    Grammar("Swift Testing", rf"[^\w]*Test run with (?P<p>{N}) tests?(?: in {N} suites?)? passed after .*", start=r"[^\w]*Test run started\."),
    Grammar("Swift Testing", rf"[^\w]*Test run with (?P<t>{N}) tests?(?: in {N} suites?)? failed after .* with (?P<f>{N}) issues?\.",
            start=r"[^\w]*Test run started\.", names=r"^[^\w]*Test (\S+\(.*?\)|\".*?\") failed after ", by_names=True),
    Grammar("XCTest", rf"\s*Executed (?P<t>{N}) tests?, with (?:(?P<s>{N}) tests? skipped and )?(?P<f>{N}) failures? \({N} unexpected\) in .*", repeat="nested",
            start=r"Test Suite '(?:All tests|Selected tests)' started at .*", names=r"^Test Case '-?\[?(\S.*?)\]?' failed \("),
    Grammar("Zig", rf"(?P<p>{N}) passed; (?P<s>{N}) skipped; (?P<f>{N}) failed\."),
    Grammar("Zig", rf"Build Summary: .*?; (?P<p>{N})/(?P<t>{N}) tests passed(?:; (?P<s>{N}) skipped)?(?:; (?P<f>{N}) failed)?(?:; {N} leaked)?.*"),
    Grammar("dub", rf"(?P<p>{N}) modules passed unittests"),
    Grammar("dub", rf"(?P<f>{N})/(?P<t>{N}) modules FAILED unittests"),
    Grammar("silly", rf"Summary: {N} passed, {N} failed in .*"),
    Grammar("Nim testament", rf"PASS: +{N} +SKIP: +{N} +FAIL: +{N}"),
    Grammar("V", r"Summary for all V _test\.v files: (?P<l>.*? total)\..*"),
    Grammar("Odin", rf"Finished (?P<t>{N}) tests? in .*?\. (?:All tests were successful|(?P<f>{N}) tests? failed|The test failed|The test was successful)\."),
    Grammar("AUnit", rf"Total Tests Run: +(?P<t>{N})", rows=3),
    Grammar("Pester", rf"Tests Passed: {N}, Failed: {N}, Skipped: {N},? .*", start=r"Starting discovery in \d+ files\.", parts=rf"Container failed: (?P<e>{N})", names=r"^ *\[-\] (\S.*?) [\d.]+m?s"),
    Grammar("Bacon", rf"(?P<t>{N}) specifications \({N} requirements\), (?P<f>{N}) failures, (?P<e>{N}) errors"),
    Grammar("RSpec", rf"(?P<t>{N}) examples?, (?P<f>{N}) failures?(?:, (?P<s>{N}) pending)?(?:, (?P<e>{N}) errors? occurred outside of examples)?",
            above=r"Finished in [\d.]+.*", outside="errored", names=r"^rspec \S+ # (\S.*)$", listed_below=True),
    Grammar("test-unit", rf"(?P<t>{N}) tests, {N} assertions, (?P<f>{N}) failures, (?P<e>{N}) errors, (?P<s>{N}) pendings, (?P<s2>{N}) omissions, {N} notifications",
            above=r"Finished in [\d.]+.*", names=r"^(?:Failure|Error): ([\w?!]+\([\w:]+\))"),
    Grammar("shUnit2", rf"Ran (?P<t>{N}) tests?\.", by_names=True,
            below=rf"(?:OK|FAILED)(?: \((?:failures=(?P<f>{N}))?,?(?:skipped=(?P<s>{N}))?\))?"),
    Grammar("cram", rf"# Ran (?P<t>{N}) tests?, (?P<s>{N}) skipped, (?P<f>{N}) failed\."),
    Grammar("tcltest", rf"\S+:\s+Total\s+(?P<t>{N})\s+Passed\s+(?P<p>{N})\s+Skipped\s+(?P<s>{N})\s+Failed\s+(?P<f>{N})"),
    # Node and browsers
    Grammar("Jasmine", rf"(?P<t>{N}) specs?, (?P<f>{N}) failures?(?:, (?P<s>{N}) pending specs?)?", below=r"Finished in [\d.]+ seconds?", names=r"^\d+\) (\S.*)$"),
    Grammar("Jasmine", r"(?P<p>No) specs found", below=r"Finished in [\d.]+ seconds?"),
    Grammar("node-tap", r"# \{ (?P<l>total: .*) \}", names=r"^\x{2716} (\S.*)$"),
    Grammar("Karma", rf"(?:.*: )?Executed (?P<r>{N}) of (?P<t>{N})(?: \((?P<f>{N}) FAILED\))?(?: \(skipped (?P<s>{N})\))?(?: SUCCESS)? \(.* / .*\)", repeat="progress"),
    Grammar("Karma", rf"TOTAL: (?:(?P<f>{N}) FAILED, )?(?P<p>{N}) SUCCESS", holds=("Karma",)),
    Grammar("Cypress", rf" *(?:\x{{2714}}|\x{{2716}}|\x{{221a}}|\xd7) +(?:All specs passed!|{N} of {N} failed \(\d+%\)) +[\d:]+[smh]* +(?P<t>{N}) +(?P<p>{N}|-) +(?P<f>{N}|-) +(?P<s>{N}|-) +(?P<s2>{N}|-)",
            holds=_MOCHA),
    Grammar("TestCafe", rf" *(?P<f>{N})/(?P<t>{N}) failed \(.*\)", parts=rf" *(?P<s>{N}) skipped", outside="skipped"),
    Grammar("Nightwatch", rf" *- (?P<f>{N}) tests? failed(?:, (?P<p>{N}) passed)?.*"),
    Grammar("Nightwatch", rf"\s*\x{{2728}} PASSED\. (?P<p>{N}) (?:total )?assertions?.*", repeat="progress"),
    Grammar("CodeceptJS", rf" *(?:OK|FAIL) +\| (?P<l>{N} passed.*?) +// .*"),
    Grammar("Kahlan", rf"Executed (?P<p>{N}) of (?P<t>{N}) (?:PASS|FAIL)(?: \((?:FAILURE: (?P<f>{N}))?(?:, )?(?:EXCEPTION: (?P<e>{N}))?\))? in .*"),
    Grammar("uvu", rf" *Total: +(?P<t>{N})", rows=4, outside="skipped", rest="failed"),
    Grammar("lab", rf"(?P<p>{N}) tests? passed"),
    Grammar("Japa", rf"Tests +(?P<l>.*{N}.*?) \((?P<t>{N})\)", certain=False),
    Grammar("Intern", rf"TOTAL: tested {N} platforms?, (?P<p>{N}) passed, (?P<f>{N}) failed(?:, (?P<s>{N}) skipped)?"),
    Grammar("Web Test Runner", rf".*{N}/{N} test files \| (?P<l>{N} passed, .*)", repeat="progress"),
    Grammar("Newman", rf".*\x{{2502}} +requests \x{{2502}} +{N} \x{{2502}} +(?P<e>{N}) \x{{2502}}", outside="errored",
            parts=rf".*\x{{2502}} +assertions \x{{2502}} +(?P<t>{N}) \x{{2502}} +(?P<f>{N}) \x{{2502}}"),
    Grammar("k6", rf" *\W*checks\.+: [\d.]+% +(?:\x{{2713}}|\x{{2714}}) (?P<p>{N}) +(?:\x{{2717}}|\x{{2716}}) (?P<f>{N})"),
    Grammar("k6", rf" *checks_succeeded\.+: [\d.]+% +(?P<p>{N}) out of (?P<t>{N})"),
    Grammar("Hurl", rf"Executed files: +(?P<t>{N})(?: .*)?", parts=rf"(?:Succeeded files: +(?P<p>{N})|Failed files: +(?P<f>{N})) .*"),
    Grammar("Foundry", rf"Ran {N} test suites? in .*: (?P<p>{N}) tests passed, (?P<f>{N}) failed, (?P<s>{N}) skipped \((?P<t>{N}) total tests\)", holds=("Foundry",)),
    Grammar("Foundry", rf"(?:Suite|Test) result: (?:ok|FAILED)\. (?P<p>{N}) passed; (?P<f>{N}) failed; (?:(?P<s>{N}) skipped; )?finished in .*", names=r"^\[FAIL.*?\] (\S+?)\("),
    Grammar("Move", rf"Test result: (?:OK|FAILED)\. Total tests: (?P<t>{N}); passed: (?P<p>{N}); failed: (?P<f>{N})"),
    # Behaviour-driven
    Grammar("Cucumber", rf"(?P<t>{N}) [Ss]cenarios? \((?P<l>.*)\)", below=rf"{N} [Ss]teps?.*|\d+m.*s|[\d.]+ ?m?s|-+", rest="failed"),
    Grammar("Behave", rf"{N} scenarios? passed, {N} failed, .*skipped.*", names=r"^  \S+\.feature:\d+  (\S.*)$"),
    Grammar("phpspec", rf"{N} examples? \((?P<l>.*)\)"),
    Grammar("Gauge", rf"Scenarios:\s+{N} executed\s+.*"),
    Grammar("Karate", rf"scenarios: +{N} \| passed: +{N} \| failed: +{N} \| time: .*", repeat="nested"),
    Grammar("Robot Framework", rf"(?P<t>{N}) tests?, (?P<p>{N}) passed, (?P<f>{N}) failed(?:, (?P<s>{N}) skipped)?", repeat="nested"),
    # Python
    Grammar("green", rf"Ran (?P<t>{N}) tests? in [\d.]+s using {N} process(?:es)?", below=r"(?:OK|FAILED) \((?P<l>.*)\)"),
    Grammar("stestr", rf" - Passed: (?P<p>{N})", rows=5),
    Grammar("Avocado", rf"RESULTS +: PASS {N} \| ERROR {N} \| FAIL {N} \| SKIP {N} .*"),
    Grammar("ward", rf"\W*(?P<t>{N}) Tests? Encountered.*", rows=6),
    Grammar("zope.testrunner", rf" *(?:Ran|Total:) (?P<l>{N} tests?,? (?:with )?{N} failures?, {N} errors?.*)", repeat="nested"),
    Grammar("doctest.py", rf"(?P<p>{N}) passed and (?P<f>{N}) failed\."),
    # PHP
    Grammar("atoum", rf"(?:Success|Failure) \({N} tests?, {N}/(?P<t>{N}) methods?, {N} void methods?, (?P<s>{N}) skipped methods?(?:, (?P<e>{N}) uncompleted methods?)?(?:, (?P<f>{N}) failures?, (?P<f2>{N}) errors?, (?P<f3>{N}) exceptions?)?(?:, {N} assertions?)?\)!", names=r"^(\S+::\S+\(\)):$", by_names=True),
    Grammar("Nette Tester", rf"OK \((?P<l>{N} tests?.*?), [\d.]+ seconds\)"),
    Grammar("Nette Tester", rf"FAILURES! \((?P<l>{N} tests?, {N} failures?.*?), [\d.]+ seconds\)"),
    # .NET
    Grammar(".NET", rf" *(?:Passed|Failed|Skipped|No test is available)! +- +Failed: +(?P<f>{N}), Passed: +(?P<p>{N}), Skipped: +(?P<s>{N}), Total: +(?P<t>{N}).*", names=_DOTNET_NAME),
    Grammar(".NET", rf"Test summary: total: (?P<t>{N}), failed: (?P<f>{N}), succeeded: (?P<p>{N}), skipped: (?P<s>{N}).*", repeat="nested", names=_DOTNET_NAME),
    Grammar(".NET", r"Test run summary: .*", repeat="nested", names=_DOTNET_NAME,
            parts=rf" +(?:total: (?P<t>{N})|failed: (?P<f>{N})|succeeded: (?P<p>{N})|skipped: (?P<s>{N}))"),
    Grammar(".NET", rf"Total tests: (?P<t>{N})", rows=3, repeat="nested", names=_DOTNET_NAME),
    Grammar("xUnit.net", rf".* Total: (?P<t>{N}), Errors: (?P<e>{N}), Failed: (?P<f>{N}), Skipped: (?P<s>{N}),.*", outside="errored"),
    Grammar("NUnit", rf" *Test Count: {N}, Passed: {N}, Failed: {N}, .*"),
    Grammar("NUnit", rf"Tests run: (?P<t>{N}), Errors: (?P<e>{N}), Failures: (?P<f>{N}), Inconclusive: (?P<s>{N}), Time: .*"),
    Grammar("VSTest", rf"Total tests: {N}\. Passed: {N}\. Failed: {N}\. Skipped: {N}\."),
    # Infrastructure and SQL
    Grammar("dbt", rf"[\d: ]*Done\. PASS=(?P<p>{N}) WARN=(?P<p2>{N}) ERROR=(?P<f>{N}) SKIP=(?P<s>{N}) (?:NO-OP={N} )?TOTAL=(?P<t>{N})"),
    Grammar("utPLSQL", rf"{N} tests?, {N} failed, {N} errored, {N} disabled, {N} warning\(s\)"),
    Grammar("tSQLt", rf".*Test Case Summary: (?P<l>{N} test case\(s\) executed, .*)"),
    Grammar("Terraform", rf"(?:Success|Failure)! {N} passed, {N} failed(?:, {N} skipped)?\."),
    Grammar("OPA", rf"PASS: (?P<p>{N})/(?P<t>{N})", parts=rf"(?:FAIL: (?P<f>{N})|SKIPPED: (?P<s>{N})|ERROR: (?P<e>{N}))/{N}"),
    Grammar("OPA", rf"FAIL: (?P<f>{N})/(?P<t>{N})", parts=rf"(?:SKIPPED: (?P<s>{N})|ERROR: (?P<e>{N}))/{N}"),
    Grammar("conftest", rf"{N} tests?, {N} passed, {N} warnings?, {N} failures?, {N} exceptions?.*"),
    Grammar("Checkov", rf"Passed checks: (?P<p>{N}), Failed checks: (?P<f>{N}), Skipped checks: (?P<s>{N})"),
    Grammar("InSpec", rf"Test Summary: (?P<p>{N}) successful, (?P<f>{N}) failures?, (?P<s>{N}) skipped"),
    Grammar("goss", rf"Count: (?P<t>{N}), Failed: (?P<f>{N})(?:, Skipped: (?P<s>{N}))?"),
    Grammar("Kyverno", rf"Test Summary: (?P<p>{N}) tests? passed and (?P<f>{N}) tests? failed"),
    # Go
    Grammar("Ginkgo", rf"(?:SUCCESS|FAIL)! -- .*?{N} Passed \| {N} Failed \| .*", names=r"^  \[FAIL\] (\S.*)$"),
    Grammar("gotestsum", rf"DONE (?P<l>(?:{N} runs, )?{N} tests?.*) in [\d.]+s", holds=("Go", "Go -v", "Go JSON")),
    Grammar("gocheck", rf"OK: (?P<p>{N}) passed(?:, (?P<s>{N}) skipped)?"),
    Grammar("gocheck", rf"OOPS: (?P<l>{N} passed, .*)"),
    # Scientific, hardware
    Grammar("cocotb", rf".*\*\* TESTS=(?P<t>{N}) PASS=(?P<p>{N}) FAIL=(?P<f>{N}) SKIP=(?P<s>{N}) .*"),
    Grammar("VUnit", rf"pass (?P<p>{N}) of (?P<t>{N})"),
    Grammar("MATLAB", rf" +{N} Passed, {N} Failed, {N} Incomplete\."),
    Grammar("Octave", rf"PASSES (?P<p>{N}) out of (?P<t>{N}) tests?.*"),
    Grammar("pFUnit", rf" *\((?P<p>{N}) tests?\)"),
    Grammar("cabal", rf"{N} of {N} test suites \((?P<p>{N}) of (?P<t>{N}) test cases\) passed\.", rest="failed", certain=False),
    Grammar("CppUnit", rf"OK \((?P<p>{N})\)"),
    Grammar("CxxTest", rf"Running .*tests? \((?P<p>{N}) tests?\)[. ]*OK!"),
    Grammar("CxxTest", rf"Failed (?P<f>{N}) (?:and Skipped (?P<s>{N}) )?of (?P<t>{N}) tests?"),
    Grammar("Maestro", rf"(?P<f>{N})/(?P<t>{N}) Flows? Failed.*"),
    Grammar("Maestro", rf"(?P<p>{N})/(?P<t>{N}) Flows? Passed.*", rest="failed"),
    Grammar("Mamba", rf"(?P<f>{N}) examples? failed of (?P<t>{N}) ran in .*"),
    Grammar("Mamba", rf"(?P<p>{N}) examples? ran in .*"),
    Grammar("Midje", rf"All checks \((?P<p>{N})\) succeeded\."),
    Grammar("Midje", rf"FAILURE: (?P<f>{N}) checks? failed\. +\(But (?P<p>{N}) succeeded\.\)"),
    Grammar("run-tests.php", rf"Number of tests : +(?P<t>{N}).*",
            parts=rf"(?:Tests skipped +: +(?P<s>{N})|Tests failed +: +(?P<f>{N})|Tests passed +: +(?P<p>{N})|Expected fail +: +(?P<s2>{N})|Tests borked +: +(?P<e>{N})) .*"),
    Grammar("TestCafe", rf" *(?P<p>{N}) passed \([\dms ]+\)(?P<f>0)?", parts=rf" *(?P<s>{N}) skipped", start=r" *Running tests in:"),
    Grammar("Twister", rf".*\b(?P<p>{N}) of (?P<t>{N}) (?:executed )?test (?:configurations|cases) passed \([\d.]+%\),? .*?(?P<f>{N}) failed(?:, (?P<e>{N}) errored)?.*", repeat="progress"),
    Grammar("Ztest", rf"SUITE (?:PASS|FAIL) - .*: pass = (?P<p>{N}), fail = (?P<f>{N}), skip = (?P<s>{N}), total = (?P<t>{N}).*"),
    Grammar("vader", rf"Success/Total: (?P<p>{N})/(?P<t>{N}).*", rest="failed"),
    Grammar("ZUnit", rf"(?P<t>{N}) tests? run in .*", parts=rf"\W*(?:Passed +(?P<p>{N})|Failed +(?P<f>{N})|Errors +(?P<e>{N})|Skipped +(?P<s>{N}))"),
    # What many more print: tests and outcomes in words, in a line or under each other.
    Grammar(GENERIC, _WORDS_AND_NUMBERS, certain=False),
    Grammar(GENERIC, _WORDS_AND_NUMBERS, rows=12, certain=False),
)  # fmt: skip
