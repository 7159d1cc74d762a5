"""Printed summaries of runners by a table, one row for each closing block: counts are derived and checked against each other."""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate
from typing import Any, Literal

import re2

from zelda_ci.test_output.tally import GAP, MAX_COUNT, Lines, Tally, first_names

N = r"\d{1,9}"
# The line with which a runner begins, and with `n` how many tests it has; what began and has no summary never ended.
STARTS = {
    "Vitest": r" RUN  v\d\S* .*",
    "Bun": r"bun test v\d\S* .*",
    "GoogleTest": rf"\[=+\] Running (?P<n>{N}) tests? from {N} test (?:suite|case)s?\.",
    "Playwright": rf"Running (?P<n>{N}) tests? using {N} workers?.*",
    "PHPUnit": r"PHPUnit \d+\.\d+\S* by .*",
    "CTest": r"Test project \S.*",
    "Cargo": rf"running (?P<n>{N}) tests?",
    "nextest": rf" *Starting (?P<n>{N}) tests? across .*",
    "Swift Testing": r"[^\w\n]*Test run started\.",
    "XCTest": r"Test Suite '(?:All tests|Selected tests)' started at .*",
    "ExUnit": r"Running ExUnit with seed: .*",
    "Pester": r"Starting discovery in \d+ files\.",
}
# Runners that never leave it out.
_ALWAYS_STARTED = frozenset({"Cargo", "CTest", "PHPUnit", "Playwright"})
# Lines that runners print first, and perhaps nothing after them.
SIGNS = {
    "Jasmine": "Started",
    "test-unit": r"Loaded suite .*",
    "Deno": rf"running {N} tests? from \S+",
    "Jest": "(?:PASS|FAIL) .*",
    "Minitest": "# Running:",
    "Maven Surefire": " *T E S T S",
    "prove": r"\S+\.t \.{2,}.*",
}
_DOTNET_NAME = r"^(?:  Failed|failed) (\S.*?) (?:\[[<\d].*\]|\(\d.*\))$"
_PHP = rf"Tests: (?P<t>{N}), Assertions: {N}(?:, Errors: (?P<e>{N}))?(?:, Failures: (?P<f>{N}))?.*\."
_PHP_SKIPPED = rf", (?:Skipped|Incomplete): (?P<s>{N})"
_PHP_NAME = r"^\d+\) (\S+::\S.*)$"
_CTEST_TIMES = r"(?:(?:|Total .*|Label .*|Subproject .*|\S.* = .*)\n)*"
_CTEST = r"\t? *\d+ - \S+ \(.*\)\n"
_LISTED = re2.compile(rf"({N}) ([A-Za-z][\w -]*?)|([A-Za-z][\w ]*?)=({N})")
_WORDS = {
    **dict.fromkeys(("total", "test", "doctest", "property", "properties"), "t"),
    **dict.fromkeys(("passed", "passes", "successes", "expected fail"), "p"),
    **dict.fromkeys(("failed", "failure", "unexpected successes", "unexpectedSuccesses"), "f"),
    **dict.fromkeys(("error", "invalid", "undefined", "ambiguous"), "e"),
    **dict.fromkeys(("skipped", "skip", "todo", "pending", "excluded", "failed as expected", "SKIP", "TODO",
                     "expected failures", "expectedFailures", "DEPRECATED", "KNOWNFAIL"), "s"),
}  # fmt: skip
# Characters below a summary in which its failing tests are looked for.
_BELOW = 100_000


@dataclass(frozen=True)
class Grammar:
    """The closing block of a runner, in patterns whose groups say what a number counts.

    Total: `t`; `r` those that ran; `g` where what no other number names has failed.
    Outcomes: `p` passed, `f` failed, `e` errored, `s` skipped, `o` failed or errored, `y` passed on a retry.
    Outside of the total: `x` errored, `d` skipped; `w` counted as errored by the block itself.
    Others: `k` flaky among the passed; `u` files that failed, errors where no test failed; `q` what must stand beside
    failures; `i` signs that belong to the run; `l` a list like `2 failed, 3 passed` or `failures=2`.
    A digit may follow the letter. A word in place of a number is one, `no` and `-` are none.
    """

    format: str
    end: str
    parts: str = ""
    """Lines inside of it with groups of their own."""
    around: str = ""
    """Lines anywhere in the run with groups of their own."""
    names: str = ""
    """A failing test's lines, its name in the groups."""
    named: Literal["run", "end", "below"] = "run"
    """Where failing tests are listed."""
    repeat: Literal["", "nested", "progress", "total"] = ""
    """What those before it are, if not runs: parts that it adds up, where the sums say so or always, or its progress."""
    marks: str = ""
    """Tests by a tick or by dots; a summary that does not count as many was printed by a test."""
    tests: str = ""
    """A failure with its test in the first group, where a test can fail more than once."""
    red: str = ""
    """A failure that the numbers must have."""


GRAMMARS: tuple[Grammar, ...] = (
    # Python
    Grammar("unittest", rf"-{{50,}}\n(?:.*\n){{0,2}}?Ran (?P<t>{N}) tests? in [\d.]+s.*\n(?:.*\n){{0,4}}?(?:OK|FAILED|PASSED|NO TESTS RAN)(?: \((?P<l>.*)\))?",
        names=r"^={50,}\n(?:FAIL|ERROR|UNEXPECTED SUCCESS): (\S.*)$", tests=r"^={50,}\n(?:FAIL|ERROR): (\S+ \([^)\n]*\)|\S.*)",
        around=r"^={50,}\nERROR: (?P<w>(?:setUp|tearDown)(?:Class|Module) .*)"),
    Grammar("Behave", rf"(?P<p>{N}) scenarios? passed, (?P<f>{N}) failed, (?:(?P<e>{N}) error, )?(?P<s>{N}) skipped(?:, (?P<e2>{N}) undefined)?.*", names=r"^  \S+\.feature:\d+  (\S.*)$"),
    Grammar("Robot Framework", rf"(?P<t>{N}) tests?(?: total)?, (?P<p>{N}) passed, (?P<f>{N}) failed(?:, (?P<s>{N}) skipped)?", repeat="nested"),
    # Node
    Grammar("Jest", rf"Test Suites: +(?:(?P<u>{N}) failed, )?.*\n+Tests: +(?P<l>.*)", around=r"^FAIL (?P<x>\S.*)\n  \x{25cf} Test suite failed to run$",
        names=r"^  \x{25cf} (?:Test suite failed to run|Console|(\S.*))$", red=r"^FAIL \S"),
    Grammar("Vitest", rf" *Test Files +(?:(?P<u>{N}) failed)?.*\n+ *Tests +(?:(?P<p>no) tests|(?P<l>.*?) \({N}\))(?:\n+ *Errors +(?P<x>{N}) errors?)?",
        around=rf"^\W*Failed Suites (?P<x>{N})\W*$|^ *[\x{{2713}}\x{{221a}}\x{{2714}}] .*(?P<k>\(retry x\d+\))$", names=r"^ *FAIL {1,2}(?:(\S.*?) \[ .*|(\S.* > .*))$"),
    Grammar("Mocha", rf" +(?P<p>{N}) passing \(\d+[a-z]+\)(?:\n+ *(?P<s>{N}) pending)?(?:\n+ *(?P<f>{N}) failing(?:\n+  (?P<q>1\)) \S.*)?)?",
        marks=r"^(?: +([\x{2714}\x{2713}\x{221a}]) |  ([.\x{2024}!,\x{204e}]+)$)", names=r"^  \d+\) (\S.*(?:\n {5,}.*)*?):$", named="below"),
    Grammar("node:test", rf"\x{{2139}} tests (?P<t>{N})\n(?:\x{{2139}} (?:suites|pass|fail|cancelled|skipped|todo) {N}\n){{6}}\x{{2139}} duration_ms .*",
        parts=rf"^\x{{2139}} (?:pass (?P<p>{N})|fail (?P<f>{N})|cancelled (?P<e>{N})|skipped (?P<s>{N})|todo (?P<s2>{N}))$",
        names=r"^ *\x{2716} (?:failing tests:|(\S.*?)(?: \([\d.]+ms\))?)$", named="below"),
    Grammar("node-tap", rf"# \{{ total: (?P<t>{N}), pass: (?P<p>{N})(?:, fail: (?P<f>{N}))?(?:, todo: (?P<s>{N}))?(?:, skip: (?P<s2>{N}))? \}}", names=r"^\x{2716} (\S.*)$"),
    Grammar("Bun", rf"(?: {N} \S.*\n)* (?P<f>{N}) fail\n(?: {N} \S.*\n)*Ran (?P<t>{N}) tests? across {N} files?\. .*\[[\d.]+m?s\]", parts=rf"^ (?:(?P<p>{N}) pass|(?P<s>{N}) (?:skip|todo)|(?P<u>{N}) errors?)$",
        around=r"^(?:\(pass\)|\x{2713}) .*(?P<k>\(attempt \d+\))", names=r"^(?:\(fail\)|\x{2717}) (\S.*?)(?: \[[\d.]+m?s\])?$"),
    Grammar("Deno", rf"\n(?:ok|FAILED) \| (?P<p>{N}) passed(?: \({N} steps?\))? \| (?P<f>{N}) failed(?: \({N} steps?\))?(?: \| (?P<s>{N}) ignored(?: \({N} steps?\))?)?(?: \| {N} measured)?(?: \| {N} filtered out)? \(\d\w*\)",
        names=r"^(\S.* => (?:\./|file:|https?:)\S+)$"),
    Grammar("Playwright", rf"(?:  {N} (?:passed|failed|flaky|skipped|did not run|interrupted)(?: \([^)\n]*\))?(?:\n    .*)*\n?)+",
        parts=rf"^  (?:(?P<p>{N}) passed|(?P<f>{N}) failed|(?P<y>{N}) flaky|(?P<s>{N}) (?:skipped|did not run)|(?P<e>{N}) interrupted)(?: \(.*\))?$", names=r"^    (\S.*?)[ \x{2500}]*$", named="end"),
    Grammar("Jasmine", rf"(?P<t>{N}) specs?, (?P<f>{N}) failures?(?:, (?P<s>{N}) pending specs?)?\n+Finished in [\d.]+ seconds?", names=r"^\d+\) (\S.*)$"),
    Grammar("Jasmine", r"(?P<p>No) specs found\n+Finished in [\d.]+ seconds?"),
    Grammar("Karma", rf"(?:.*: )?Executed (?P<r>{N}) of (?P<t>{N})(?: \((?P<f>{N}) FAILED\))?(?: \(skipped (?P<s>{N})\))?(?: SUCCESS)? \(.* / .*\)", repeat="progress"),
    Grammar("Karma", rf"TOTAL: (?:(?P<f>{N}) FAILED, )?(?P<p>{N}) SUCCESS", repeat="total"),
    Grammar("Cypress", rf" *(?:\x{{2714}}|\x{{2716}}|\x{{221a}}|\xd7) +(?:All specs passed!|{N} of {N} failed \(\d+%\)) +[\d:]+[smh]* +(?P<t>{N}) +(?P<p>{N}|-) +(?P<f>{N}|-) +(?P<s>{N}|-) +(?P<s2>{N}|-)"),
    # Rust and Go
    Grammar("Cargo", rf"(?:failures:\n(?:    .*\n)+\n)?test result: (?:ok|FAILED)\. (?P<p>{N}) passed; (?P<f>{N}) failed; (?P<s>{N}) ignored; (?P<p2>{N}) measured; {N} filtered out.*", names=r"^    (\S.*)$", named="end"),
    Grammar("nextest", rf" *Summary \[ *[\d.]+s\] +{N}(?:/{N})? tests? run: (?P<p>{N}) passed(?: \((?:[^)\n]*?(?P<k>{N}) flaky)?[^)\n]*\))?(?:, (?P<f>{N}) failed(?: \([^)\n]*\))?)?(?:, (?P<e>{N}) exec failed)?(?:, (?P<e2>{N}) timed out)?(?:, (?P<s>{N}) skipped)?",
        names=r"^ *(?:TRY \d+ )?(?:FAIL|TIMEOUT|XFAIL|SIG\w+|ABORT|LEAK-FAIL) \[[^]\n]*\](?: \([^)\n]*\))? +(\S.*)$", named="below"),
    Grammar("Ginkgo", rf"(?:SUCCESS|FAIL)! -- .*?(?P<p>{N}) Passed \| (?P<f>{N}) Failed \| (?:{N} Flaked \| )?(?P<s>{N}) Pending \| (?P<s2>{N}) Skipped.*", names=r"^  \[FAIL\] (\S.*)$"),
    Grammar("gotestsum", rf"DONE (?:{N} runs, )?(?P<t>{N}) tests?(?:, (?P<s>{N}) skipped)?(?:, (?P<f>{N}) failures?)?(?:, (?P<e>{N}) errors?)? in [\d.]+s"),
    # Java, Kotlin, Scala
    Grammar("Maven Surefire", rf"Results ?:\n(?:.*\n)*?Tests run: (?P<t>{N}), Failures: (?P<f>{N}), Errors: (?P<e>{N}), Skipped: (?P<s>{N})(?:, Flakes: (?P<k>{N}))?",
        names=r"^  ?(?:Run \d+: )?([\w.$]+(?:\[[^]\n]*\])?)[:>\xbb ]", named="end"),
    Grammar("ScalaTest", rf"(?:Suites: completed {N}, aborted (?P<e>{N})\n+)?Tests: succeeded (?P<p>{N}), failed (?P<f>{N}), canceled (?P<s>{N}), ignored (?P<s2>{N}), pending (?P<s3>{N})", names=r"^ ?- (\S.*) \*\*\* FAILED \*\*\*"),
    Grammar("sbt", rf"(?:Passed|Failed|Error): Total (?P<t>{N}), Failed (?P<f>{N}), Errors (?P<e>{N}), Passed (?P<p>{N})"
        rf"(?:, (?:Skipped|Ignored) (?P<s>{N}))?(?:, (?:Skipped|Ignored|Canceled) (?P<s2>{N}))?(?:, (?:Canceled|Pending) (?P<s3>{N}))?(?:, Pending (?P<s4>{N}))?"),
    Grammar("TestNG", rf"Total tests run: (?P<t>{N}),(?: Passes: {N},)? Failures: (?P<f>{N}), Skips: (?P<s>{N})(?:\nConfiguration Failures: (?P<x>{N}), Skips: {N})?"),
    Grammar("JUnit console", rf"\[ +{N} containers found +\]\n(?:\[ .*\n)*\[ +{N} tests failed +\]", parts=rf"^\[ +(?:(?P<e>{N}) containers failed|(?P<s>{N}) tests (?:skipped|aborted)|(?P<p>{N}) tests successful|(?P<f>{N}) tests failed) +\]"),
    Grammar("JUnit 4", rf"OK \((?P<p>{N}) tests?\)", names=r"^\d+\) (\S.*)$"),
    Grammar("JUnit 4", rf"Tests run: (?P<t>{N}), {{1,2}}Failures: (?P<f>{N})(?:, {{1,2}}Errors: (?P<e>{N}))?", names=r"^\d+\) (\S.*)$"),
    Grammar("Gradle", rf"(?P<t>{N}) tests? completed(?:, (?P<f>{N}) failed)?(?:, (?P<s>{N}) skipped)?", names=r"^(\S+ > .+) FAILED$"),
    # .NET and PowerShell
    Grammar(".NET", rf" *(?:Passed|Failed|Skipped|No test is available)! +- +Failed: +(?P<f>{N}), Passed: +(?P<p>{N}), Skipped: +(?P<s>{N}), Total: +(?P<t>{N}).*", names=_DOTNET_NAME),
    Grammar(".NET", rf"Test summary: total: (?P<t>{N}), failed: (?P<f>{N}), succeeded: (?P<p>{N}), skipped: (?P<s>{N}).*", repeat="nested", names=_DOTNET_NAME),
    Grammar(".NET", r"Test run summary: .*(?:\n .*)+", repeat="nested", names=_DOTNET_NAME, parts=rf"^ +(?:total: (?P<t>{N})|failed: (?P<f>{N})|succeeded: (?P<p>{N})|skipped: (?P<s>{N}))$"),
    Grammar(".NET", rf"Total tests: (?P<t>{N})(?:\n .*)*", repeat="nested", names=_DOTNET_NAME, parts=rf"^ +(?:Passed: +(?P<p>{N})|Failed: +(?P<f>{N})|Skipped: +(?P<s>{N}))$"),
    Grammar("VSTest", rf"Total tests: (?P<t>{N})\. Passed: (?P<p>{N})\. Failed: (?P<f>{N})\. Skipped: (?P<s>{N})\."),
    Grammar("NUnit", rf" *Test Count: (?P<t>{N}), Pass(?:ed)?: (?P<p>{N}), Fail(?:ed)?: (?P<f>{N}), (?:Warn(?:ings)?: {N}, )?Inconclusive: (?P<s>{N}), Skip(?:ped)?: (?P<s2>{N})"),
    Grammar("xUnit.net", rf".* Total: (?P<t>{N}), Errors: (?P<x>{N}), Failed: (?P<f>{N}), Skipped: (?P<s>{N}),.*"),
    Grammar("Pester", rf"Tests Passed: (?P<p>{N}), Failed: (?P<f>{N}), Skipped: (?P<s>{N}),?(?: Inconclusive: (?P<s2>{N}),?)?(?: NotRun: (?P<s3>{N}))?.*(?:\n(?:.*\n){{0,60}}?Container failed: (?P<e>{N}))?", names=r"^ *\[-\] (\S.*?) [\d.]+m?s"),
    # Ruby, PHP, Elixir, Dart
    Grammar("RSpec", rf"Finished in [\d.]+.*\n+(?:.*\n+)?(?P<t>{N}) examples?, (?P<f>{N}) failures?(?:, (?P<s>{N}) pending)?(?:, (?P<x>{N}) errors? occurred outside of examples)?", names=r"^rspec \S+ # (\S.*)$", named="below"),
    Grammar("Minitest", rf"Finished in [\d.]+.*\n(?:.*\n)*?(?P<t>{N}) runs, {N} assertions, (?P<f>{N}) failures, (?P<e>{N}) errors, (?P<s>{N}) skips", names=r"^ *\d+\) (?:Failure|Error):\n(\S+#[^\s:\[]+)"),
    Grammar("test-unit", rf"(?P<t>{N}) tests, {N} assertions, (?P<f>{N}) failures, (?P<e>{N}) errors, (?P<s>{N}) pendings, (?P<s2>{N}) omissions, {N} notifications", names=r"^(?:Failure|Error): ([\w?!]+\([\w:]+\))"),
    Grammar("Cucumber", rf"(?P<g>{N}) [Ss]cenarios? \((?P<l>.*)\)\n+(?:{N} [Ss]teps?.*|\d+m.*s|[\d.]+ ?m?s|-+)"),
    Grammar("PHPUnit", rf"OK \((?P<p>{N}) tests?, {N} assertions?\)|(?P<p2>No) tests executed!"),
    # Up to PHPUnit 9 a warning is an outcome of a test of its own; later it is a remark about one.
    Grammar("PHPUnit", rf"WARNINGS!\n{_PHP}", names=_PHP_NAME, parts=rf"{_PHP_SKIPPED}|, Warnings: (?P<e2>{N})"),
    Grammar("PHPUnit", rf"(?:FAILURES!|ERRORS!|OK, but .*!|There (?:was|were) .*|.* by .*)\n{_PHP}", names=_PHP_NAME, parts=_PHP_SKIPPED),
    Grammar("Pest", rf"  Tests: {{2,}}\d.* \({N} assertions?\)",
        parts=rf"(?P<p>{N}) (?:passed|risky|deprecated|warning|notice)|(?P<f>{N}) failed|(?P<s>{N}) (?:skipped|todo|incomplete)"),
    Grammar("ExUnit", rf"Finished in [\d.]+ seconds.*\n+(?:.*\n+)?(?P<l>(?:{N} (?:doctests?|propert(?:y|ies)|tests?), )+{N} failures?(?:, {N} (?:excluded|skipped|invalid))*)", names=r"^ +\d+\) (?:test|doctest|property) (\S.*)$"),
    Grammar("Dart", rf"\d\d:\d\d \+(?P<p>{N})(?: ~(?P<s>{N}))?(?: -(?P<f>{N}))?: (?:All tests passed!|Some tests failed\.|All (?:other )?tests (?:skipped|passed)[.!])",
        names=r"^\d\d:\d\d \+\d+(?: ~\d+)? -\d+: (\S.*) \[E\]$"),
    # Swift, C, C++
    Grammar("Swift Testing", rf"[^\w\n]*Test run with (?P<p>{N}) tests?(?: in {N} suites?)? passed after .*"),
    # Issues are failed assertions, of which a test can have several.
    Grammar("Swift Testing", rf"[^\w\n]*Test run with (?P<t>{N}) tests?(?: in {N} suites?)? failed after .* with (?P<u>{N}) issues?\.",
        around=r"^[^\w\n]*Test (?P<f>\S+\(.*?\)|\".*?\") failed after ", names=r"^[^\w\n]*Test (\S+\(.*?\)|\".*?\") failed after "),
    Grammar("XCTest", rf"[ \t]*Executed (?P<t>{N}) tests?, with (?:(?P<s>{N}) tests? skipped and )?(?P<f>{N}) failures? \({N} unexpected\) in .*", repeat="nested",
        names=r"^Test Case '-?\[?(\S.*?)\]?' failed \("),
    Grammar("Catch2", rf"All tests passed \({N} assertions? in (?P<p>{N}) test cases?\)"),
    Grammar("Catch2", r"=====.*\n(?P<p>No) tests ran"),
    Grammar("Catch2", rf"test cases: +(?P<t>{N}) \| (?P<l>.*?)(?: \|)?\n+assertions: .*"),
    Grammar("doctest", rf"\[doctest\] test cases: +(?P<t>{N}) \| (?P<l>.*?)(?: \|)?\n+\[doctest\] assertions: .*"),
    Grammar("CTest", rf"{N}% tests passed, (?P<o>{N}) tests? failed out of (?P<t>{N})(?:\n{_CTEST_TIMES}The following tests did not run:\n(?:{_CTEST})+)?(?:\n{_CTEST_TIMES}The following tests FAILED:\n(?:{_CTEST})+)?.*",
        parts=r"^\t? *\d+ - \S+ \((?:(?P<f>Failed)|(?P<d>Disabled)|(?P<s>Skipped)|(?P<e>[^)\n]*))\)", names=r"^\t? *\d+ - (?:\S+ \((?:Disabled|Skipped)\)|(\S+) \()", named="end",
        around=r"^ *\d+/\d+ Test +#\d+: .*\*\*\*.*\n(?:.*\n)?    Test +#\d+: .* (?P<k>Passed) "),
    Grammar("CTest", r"(?P<p>No) tests were found!!!"),
    Grammar("GoogleTest", rf"\[=+\] (?P<g>{N}) tests? from {N} test (?:suite|case)s? ran\..*\n\[  PASSED  \] (?P<p>{N}) tests?\.(?:\n\[  SKIPPED \] (?P<s>{N}) tests?[.,].*(?:\n\[  SKIPPED \] .*)*)?"
        rf"(?:\n\[  FAILED  \] {N} tests?, listed below:(?:\n\[  FAILED  \] .*)*)?(?:\n+ *{N} FAILED TESTS?)?(?:\n+  YOU HAVE (?P<d>{N}) DISABLED TESTS?)?",
        names=r"^\[  FAILED  \] ([^\s,]+)(?:, where .*)?$", named="end"),
    # Shell and Perl
    Grammar("Bats", rf"(?P<t>{N}) tests?, (?P<f>{N}) failures?(?:, (?P<e>{N}) not run)?(?:, (?P<s>{N}) skipped)?(?: in [\d.]+ seconds?)?", marks=r"^ ([\x{2713}\x{2717}]) ", names=r"^ \x{2717} (\S.*?)(?: \[\d+\])?$"),
    Grammar("prove", rf"(?:Test Summary Report\n-+\n(?:.*\n)*?)?Files=(?P<i>{N}), Tests=(?P<t>{N}), .*\nResult: (?:PASS|(?P<o>FAIL)|NOTESTS)",
        parts=rf"^\S+ +\(Wstat: .* Tests: {N} Failed: (?P<f>{N})\)|^  Parse errors: (?P<x>Bad plan)", names=r"^(\S+) +\(Wstat: .*\n  Failed tests?: +([\d, -]+)", named="end"),
)  # fmt: skip


@cache
def _lines_like(pattern: str) -> Any:
    """A pattern that begins where a line does."""
    return re2.compile(f"(?m){pattern}")


@cache
def _any_of(patterns: tuple[str, ...]) -> Any:
    options = re2.Options()
    options.max_mem = 256 << 20
    unnamed = (re2.sub(r"\(\?P<\w+>", "(?:", pattern) for pattern in patterns)
    return re2.compile(f"(?m)^(?:{'|'.join(unnamed)})[ \t]*$", options)


@dataclass(frozen=True)
class _Closing:
    """A closing block, with its first and last line."""

    row: Grammar
    first: int
    last: int
    match: Any
    counts: Counter[str]
    tally: Tally


class _Text:
    """Lines as one text, and what the table finds in it."""

    def __init__(self, lines: Lines) -> None:
        self._text = "\n".join(lines)
        self._offsets = [0, *accumulate(len(line) + 1 for line in lines)]
        self._gap = max((index for index, line in enumerate(lines) if line == GAP), default=-1)

    def has(self, patterns: tuple[str, ...]) -> bool:
        """Whether any of these stands in it, which is far cheaper to find out than which."""
        return _any_of(patterns).search(self._text) is not None

    def closings(self) -> Mapping[str, list[_Closing]]:
        """The closing blocks of each format; of two that end with the same line, that of the upper row."""
        ends: dict[int, _Closing] = {}
        for row in GRAMMARS:
            for first, last, match in self._find(row.end):
                tally = derive(row.format, counts := _counts(row, match))
                if tally and last not in ends:
                    ends[last] = _Closing(row, first, last, match, counts, tally)
        closings: defaultdict[str, list[_Closing]] = defaultdict(list)
        for _, closing in sorted(ends.items()):
            closings[closing.row.format].append(closing)
        return closings

    def runs(self, form: str, closings: Iterable[_Closing]) -> Iterator[Tally]:
        """The runs of a format, and a doubt for each that began and did not end."""
        starts = [(line, match.groupdict().get("n")) for line, _, match in self._find(STARTS.get(form))]
        begun, signs = [line for line, _ in starts], [line for line, _, _ in self._find(SIGNS.get(form))]
        by_start: defaultdict[int, list[_Closing]] = defaultdict(list)
        for closing in self._marked(closings):
            by_start[bisect_right(begun, closing.first) - 1].append(closing)
        runs: list[tuple[Grammar, Tally]] = []
        done = -1
        for position, (line, number) in enumerate([(-1, None), *starts], start=-1):
            chosen, announced = by_start[position], int(number) if number else None
            if position >= 0:
                # A test can print such a summary too: the real one comes last, and has as many tests as were announced.
                chosen = [one for one in chosen if announced is None or one.tally.red or one.tally.fits(announced)][-1:]
            if line >= 0 and line > self._gap and not chosen:
                yield Tally(form, first=line, last=line, doubt=f"a run of {form} began and did not end")
            for closing in chosen:
                # The last sign, since an earlier one is that of a run without an end; or one for each file.
                after, before = bisect_right(signs, done), bisect_left(signs, closing.first)
                files = closing.counts["i"] or (before - after if form in {"Jest", "Deno"} else 1)
                first = line if form in STARTS else signs[max(after, before - files)] if after < before else -1
                begins = max(first, done + 1)
                tally = _finished(closing, self._text, self._offsets[begins])
                # A test may have printed what has not begun.
                certain = tally.certain and (first >= 0 or form not in _ALWAYS_STARTED)
                tally = replace(tally, first=begins, last=closing.last, certain=certain, proven=first >= 0)
                _join(runs, closing.row, replace(tally, complete=tally.fits(announced)))
                done = closing.last
        yield from (tally for _, tally in runs)

    def _find(self, pattern: str | None) -> Iterator[tuple[int, int, Any]]:
        """Whole lines that a pattern describes: the first, the last, and the match."""
        for match in _lines_like(rf"^(?:{pattern})[ \t]*$").finditer(self._text) if pattern else ():
            first, last = (bisect_right(self._offsets, offset) - 1 for offset in (match.start(), match.end()))
            if GAP not in match[0]:
                yield first, last - match[0].endswith("\n"), match

    def _marked(self, closings: Iterable[_Closing]) -> Iterator[_Closing]:
        """Where a runner marks its tests, only what counts as many, or lists failures without any mark."""
        marks: list[int] = []
        ticks, dots = [0], [0]
        done = 0
        for closing in closings:
            if closing.row.marks and not marks:
                for match in _lines_like(closing.row.marks).finditer(self._text):
                    marks.append(match.start())
                    ticks.append(ticks[-1] + (match.lastindex == 1))
                    dots.append(dots[-1] + sum(mark in ".\u2024" for mark in match[match.lastindex]))
            begin, end = bisect_left(marks, done), bisect_left(marks, closing.match.start())
            passed, failed = closing.tally.passed, closing.tally.failed
            marked = ticks[end] - ticks[begin] or dots[end] - dots[begin]
            unmarked = begin == end and ("q" in closing.counts or not closing.tally.total)
            if not closing.row.marks:
                yield closing
            elif unmarked or (begin < end and marked in {passed, passed + failed}):
                yield replace(closing, tally=replace(closing.tally, certain=not unmarked or failed > 0))
                done = closing.match.end()


def read_summaries(lines: Lines) -> Iterator[Tally]:
    """A tally for every run that ends with a summary of the table, and for each that began and never ended."""
    text = _Text(lines)
    closings = text.closings() if text.has(tuple(row.end for row in GRAMMARS)) else {}
    for form in dict.fromkeys((*(STARTS if text.has(tuple(STARTS.values())) else ()), *closings)):
        yield from text.runs(form, closings.get(form, ()))


def _join(runs: list[tuple[Grammar, Tally]], row: Grammar, whole: Tally) -> None:
    """Add a run, and take away the parts that it repeats, or its progress."""
    if row.repeat == "progress" and runs and runs[-1][0] == row:
        runs.pop()
    sums = (0, 0, 0, 0)
    # Of so many parts at most: the whole is the nearest.
    for position in range(len(runs) - 1, max(-1, len(runs) - 1_000), -1) if row.repeat else ():
        part = runs[position][1].outcomes
        sums = sums[0] + part[0], sums[1] + part[1], sums[2] + part[2], sums[3] + part[3]
        if sums == whole.outcomes:
            del runs[position:]
            break
    # One that leaves out what was skipped says less than parts that give the same.
    if row.repeat == "total" and runs and sums[:3] == whole.outcomes[:3]:
        return
    if row.repeat == "total":
        runs.clear()
    runs.append((row, whole))


def _counts(row: Grammar, match: Any) -> Counter[str]:
    """The counts of a closing block, by the letter of their kind; `?` for what is not understood."""
    # What the shape of the block leaves room for, and is not there, is none.
    counts: Counter[str] = Counter({name[0]: 0 for name in match.groupdict() if name[0] in "fesol"})
    for found in (match, *(_lines_like(row.parts).finditer(match[0]) if row.parts else ())):
        for name, text in found.groupdict().items():
            if (text is not None or name == "q") and name != "l":
                counts[name[0]] += _number(text or "no")
    for entry in re2.split(r" *[,|] *", match["l"]) if match.groupdict().get("l") else ():
        part = _LISTED.fullmatch(entry)
        word = (part[2] or part[3]) if part else ""
        kind = _WORDS.get(word) or _WORDS.get(word.removesuffix("s"), "?")
        counts[kind] += int(part[1] or part[4]) if part else 1
    return counts


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else text.lower() not in {"no", "-"}


def derive(form: str, counts: Counter[str]) -> Tally | None:
    """A tally of counts, which says so where they do not fit each other; None where there are none."""
    passed, errored, skipped = counts["p"] + counts["y"], counts["e"], counts["s"]
    failed = counts["f"] or max(0, counts["o"] - errored - counts["x"])
    whole = next((counts[kind] for kind in "tgr" if kind in counts), None)
    # A total alone says nothing about how its tests ended; failures without their list were printed by a test.
    if not counts.keys() & set("pfeoyul?") or (counts["f"] and counts.get("q") == 0):
        return None
    doubt = f"{form} prints counts that there cannot be" if counts["?"] or max(counts.values()) > MAX_COUNT else ""
    if whole is not None:
        rest = whole - passed - failed - errored - skipped
        # Some leave what was skipped out of the total. What nothing explains did not pass.
        if (
            (rest < 0 and rest != -skipped)
            or (rest > 0 and "p" in counts and "g" not in counts)
            or ("r" in counts and counts["r"] not in {whole, whole - skipped})
        ):
            doubt = doubt or f"{form} prints a total that its numbers do not give"
        elif "p" in counts or "y" in counts:
            failed += max(0, rest)
        else:
            passed = max(0, rest)
    errored = max(errored + counts["x"], 0 if failed else counts["u"])
    return Tally(form, passed, failed, errored, skipped + counts["d"], counts["k"] + counts["y"], doubt=doubt)


def _finished(closing: _Closing, text: str, begins: int) -> Tally:
    """What a run says with the lines above and below its closing block."""
    row, counts, end = closing.row, closing.counts.copy(), closing.match.start()
    around = text[begins : closing.match.end()]
    broken: dict[str, None] = {}
    for match in _lines_like(row.around).finditer(around) if row.around else ():
        for name, word in match.groupdict().items():
            if word and word not in broken:
                counts["t" if name == "w" else name[0]] += _number(word)
                broken |= {word: None} if name == "x" and not word.isdecimal() else {}
    tally = replace(derive(row.format, counts) or closing.tally, certain=closing.tally.certain)
    if not tally.red:
        doubt = row.red and _lines_like(row.red).search(around)
        return replace(tally, doubt=f"{row.format} lists files that failed, and counts fewer") if doubt else tally
    listed = around if row.named == "run" else closing.match[0] if row.named == "end" else text[end : end + _BELOW]
    found = _lines_like(row.names).finditer(listed) if row.names else ()
    said = (" ".join(" ".join(filter(None, match.groups())).split()) for match in found)
    names = list(dict.fromkeys(filter(None, said)))
    if row.tests:
        failing = [match[1] for match in _lines_like(row.tests).finditer(around)]
        again = len(failing) - len(set(failing)) if len(failing) >= closing.tally.failed + closing.tally.errored else 0
        # A subtest that fails makes its test fail once.
        failed = max(0, tally.failed - again)
        errored = tally.errored - max(0, again - tally.failed)
        tally = replace(tally, passed=tally.passed + again, failed=failed, errored=errored)
    lost = closing.tally.failed + closing.tally.errored + len(broken)
    return replace(tally, failures=first_names([*names, *broken])[: max(lost, tally.failed + tally.errored)])
