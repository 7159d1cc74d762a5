"""The table of formats that are read from output, each with the words without which it cannot be there."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from zelda_ci.domain.test_run import Source
from zelda_ci.test_output.runners import (
    go,
    jest,
    json_output,
    jvm_and_dotnet,
    mocha,
    native,
    node,
    pytest,
    ruby_and_php,
    rust,
    shell,
    tap,
    unittest,
)
from zelda_ci.test_output.tally import Lines, Recogniser, Tally
from zelda_ci.test_output.text import WIDEST


@dataclass(frozen=True)
class Format:
    """A recogniser is asked only where one of its hallmarks occurs, which is far cheaper to find out."""

    read: Recogniser
    source: Source
    hallmarks: tuple[str, ...]
    whole_lines: bool = False


FORMATS = (
    Format(json_output.read, "stream", ('"numTotalTests"', '"stats"', '"example_count"'), whole_lines=True),
    Format(go.read_json, "stream", ('"Action":',), whole_lines=True),
    Format(tap.read, "stream", ("TAP version", "1..")),
    Format(
        pytest.read, "summary", ("passed", "failed", "error", "skipped", "no tests", "xfailed", "xpassed", "deselected")
    ),
    Format(unittest.read, "summary", ("Ran ",)),
    Format(jest.read_jest, "summary", ("Test Suites:",)),
    Format(jest.read_vitest, "summary", ("Test Files ",)),
    Format(mocha.read_mocha, "summary", (" passing (",)),
    Format(mocha.read_jasmine, "summary", (" spec", "No specs found")),
    Format(mocha.read_ava, "summary", ("  \u2500",)),
    Format(node.read_node, "summary", ("\u2139 tests ",)),
    Format(node.read_bun, "summary", ("Ran ",)),
    Format(node.read_deno, "summary", (" passed",)),
    Format(node.read_node_tap, "summary", ("# { total: ",)),
    Format(node.read_playwright, "summary", ("Running ",)),
    Format(go.read_verbose, "summary", ("=== RUN ",)),
    Format(go.read_packages, "summary", ("ok  \t", "FAIL\t", "?   \t")),
    Format(rust.read_cargo, "summary", ("test result: ",)),
    Format(rust.read_nextest, "summary", (" run: ",)),
    Format(native.read_ctest, "summary", ("Test project ",)),
    Format(native.read_googletest, "summary", ("[====",)),
    Format(native.read_catch2, "summary", ("test cases: ", "All tests passed (", "No tests ran")),
    Format(ruby_and_php.read_rspec, "summary", (" example",)),
    Format(ruby_and_php.read_minitest, "summary", (" runs, ",)),
    Format(ruby_and_php.read_test_unit, "summary", (" notifications",)),
    Format(ruby_and_php.read_phpunit, "summary", ("PHPUnit ",)),
    Format(ruby_and_php.read_pest, "summary", (" assertion",)),
    Format(shell.read_bats, "summary", (" failure",)),
    Format(shell.read_prove, "summary", ("Files=",)),
    Format(jvm_and_dotnet.read_surefire, "summary", ("Tests run: ",)),
    Format(jvm_and_dotnet.read_gradle, "summary", (" completed",)),
    Format(
        jvm_and_dotnet.read_dotnet, "summary", ("Failed: ", "Total tests: ", "Test summary: ", "Test run summary: ")
    ),
)


ANY_HALLMARK = re.compile("|".join(sorted({re.escape(word) for form in FORMATS for word in form.hallmarks})))


def recognise(lines: Lines) -> Iterator[tuple[Source, Tally]]:
    """Everything that any format finds, in the order of the table."""
    text = "\n".join(lines)
    if not ANY_HALLMARK.search(text):
        return
    short = [line[:WIDEST] for line in lines]
    for form in FORMATS:
        if any(hallmark in text for hallmark in form.hallmarks):
            for tally in form.read(lines if form.whole_lines else short):
                yield form.source, tally
