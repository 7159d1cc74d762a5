"""Printed summaries of runners by a table, one row for each closing line: counts are derived and checked against each other."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

import re2

from zelda_ci.test_output.tally import MAX_COUNT, MAX_LIST_LENGTH, Lines, Tally, first_names, preceding

Counts = Counter[str]


@dataclass(frozen=True)
class Grammar:
    """A summary in one line, or in a block of labelled lines that its anchor begins.

    Groups of the line: `t` total, `p` passed, `f` failed, `e` errored, `s` skipped (a digit behind for another one), `r`
    those that ran, and `l`: a list like `2 failed, 3 passed`.
    """

    format: str
    line: str
    start: str = ""
    """The line with which the runner begins; a run that began and has no summary never ended."""
    below: str = ""
    """The next line that is not blank, with groups of its own; without it this is no summary."""
    above: str = ""
    """One of the two nearest lines above that are not blank; without it this is no summary."""
    parts: str = ""
    """Lines that may stand among others below the first, each with groups of its own."""
    names: str = ""
    """A failing test's line, its name in the first group."""
    listed_below: bool = False
    """Whether failing tests are listed below the summary; else above it, or around it."""
    by_names: bool = False
    """Whether failures are assertions, so that failing tests are counted by name; without them in doubt."""
    repeat: Literal["each", "nested", "progress"] = "each"
    """What several of them are: runs, parts that a total repeats, or progress, of which the last counts."""
    holds: tuple[str, ...] = ()
    """Formats whose summaries this one adds up, or prints once more."""
    rest: str = ""
    """The kind of those that the total counts and no number names."""
    outside: str = ""
    """The kind of those that the total leaves out."""


# What loggers and build tools put before a line: a level, a mark.
_BEFORE = r"(?:\s*\[(?:info|error|warn|INFO|ERROR|WARNING|junit|java|exec|testng)\] ?)?"


@cache
def compiled(line: str) -> "re2._Regexp[str]":
    """The pattern of a whole line, with what may stand before it."""
    return re2.compile(rf"^{_BEFORE}(?:{line})\s*$")


N = r"\d{1,9}"
_DOTNET_NAME = r"^(?:  Failed|failed) (\S.*?) (?:\[[<\d].*\]|\(\d.*\))$"
GRAMMARS: tuple[Grammar, ...] = (
    Grammar("Catch2", rf"All tests passed \({N} assertions? in (?P<p>{N}) test cases?\)"),
    Grammar("Catch2", r"(?P<p>No) tests ran", above=r"=====.*"),
    Grammar("Catch2", rf"test cases: +(?P<t>{N}) \| (?P<l>.*?)(?: \|)?", below=r"assertions: .*"),
    Grammar("doctest", rf"\[doctest\] test cases: +(?P<t>{N}) \| (?P<l>.*?)(?: \|)?", below=r"\[doctest\] assertions: .*"),
    Grammar("ScalaTest", rf"Suites: completed {N}, aborted (?P<e>{N})", names=r"^\[?[a-z]*\]? ?- (\S.*) \*\*\* FAILED \*\*\*",
            below=rf"Tests: succeeded (?P<p>{N}), failed (?P<f>{N}), canceled (?P<s>{N}), ignored (?P<s2>{N}), pending (?P<s3>{N})"),
    Grammar("ScalaTest", rf"Tests: succeeded (?P<p>{N}), failed (?P<f>{N}), canceled (?P<s>{N}), ignored (?P<s2>{N}), pending (?P<s3>{N})",
            names=r"^\[?[a-z]*\]? ?- (\S.*) \*\*\* FAILED \*\*\*"),
    Grammar("sbt", rf"(?:Passed|Failed|Error): Total (?P<t>{N}), Failed (?P<f>{N}), Errors (?P<e>{N}), Passed (?P<p>{N})"
            rf"(?:, (?:Skipped|Ignored) (?P<s>{N}))?(?:, (?:Skipped|Ignored|Canceled) (?P<s2>{N}))?(?:, (?:Canceled|Pending) (?P<s3>{N}))?(?:, Pending (?P<s4>{N}))?", holds=("ScalaTest", "JUnit 4", "TestNG")),
    Grammar("TestNG", rf"Total tests run: (?P<t>{N}),(?: Passes: {N},)? Failures: (?P<f>{N}), Skips: (?P<s>{N})", parts=rf"Configuration Failures: (?P<e>{N}), Skips: {N}", outside="errored"),
    Grammar("JUnit console", rf"\[ +{N} containers found +\](?P<f>x)?",
            parts=rf"\[ +(?:(?P<e>{N}) containers failed|(?P<s>{N}) tests skipped|(?P<s2>{N}) tests aborted|(?P<p>{N}) tests successful|(?P<f>{N}) tests failed) +\]"),
    Grammar("JUnit 4", rf"OK \((?P<p>{N}) tests?\)", names=r"^\d+\) (\S.*)$"),
    Grammar("JUnit 4", rf"Tests run: (?P<t>{N}), {{1,2}}Failures: (?P<f>{N})(?:, {{1,2}}Errors: (?P<e>{N}))?", names=r"^\d+\) (\S.*)$"),
    Grammar("Gradle", rf"(?P<t>{N}) tests? completed(?:, (?P<f>{N}) failed)?(?:, (?P<s>{N}) skipped)?", names=r"^(\S+ > .+) FAILED$"),
    Grammar("Dart", rf"\d\d:\d\d \+(?P<p>{N})(?: ~(?P<s>{N}))?(?: -(?P<f>{N}))?: (?:All tests passed!|Some tests failed\.|All (?:other )?tests (?:skipped|passed)[.!])",
            names=r"^\d\d:\d\d \+\d+(?: ~\d+)? -\d+: (\S.*) \[E\]$"),
    Grammar("Swift Testing", rf"[^\w]*Test run with (?P<p>{N}) tests?(?: in {N} suites?)? passed after .*", start=r"[^\w]*Test run started\."),
    Grammar("Swift Testing", rf"[^\w]*Test run with (?P<t>{N}) tests?(?: in {N} suites?)? failed after .* with (?P<f>{N}) issues?\.",
            start=r"[^\w]*Test run started\.", names=r"^[^\w]*Test (\S+\(.*?\)|\".*?\") failed after ", by_names=True),
    Grammar("XCTest", rf"\s*Executed (?P<t>{N}) tests?, with (?:(?P<s>{N}) tests? skipped and )?(?P<f>{N}) failures? \({N} unexpected\) in .*", repeat="nested",
            start=r"Test Suite '(?:All tests|Selected tests)' started at .*", names=r"^Test Case '-?\[?(\S.*?)\]?' failed \("),
    Grammar("RSpec", rf"(?P<t>{N}) examples?, (?P<f>{N}) failures?(?:, (?P<s>{N}) pending)?(?:, (?P<e>{N}) errors? occurred outside of examples)?",
            above=r"Finished in [\d.]+.*", outside="errored", names=r"^rspec \S+ # (\S.*)$", listed_below=True),
    Grammar("test-unit", rf"(?P<t>{N}) tests, {N} assertions, (?P<f>{N}) failures, (?P<e>{N}) errors, (?P<s>{N}) pendings, (?P<s2>{N}) omissions, {N} notifications",
            names=r"^(?:Failure|Error): ([\w?!]+\([\w:]+\))"),
    Grammar("Jasmine", rf"(?P<t>{N}) specs?, (?P<f>{N}) failures?(?:, (?P<s>{N}) pending specs?)?", below=r"Finished in [\d.]+ seconds?", names=r"^\d+\) (\S.*)$"),
    Grammar("Jasmine", r"(?P<p>No) specs found", below=r"Finished in [\d.]+ seconds?"),
    Grammar("Karma", rf"(?:.*: )?Executed (?P<r>{N}) of (?P<t>{N})(?: \((?P<f>{N}) FAILED\))?(?: \(skipped (?P<s>{N})\))?(?: SUCCESS)? \(.* / .*\)", repeat="progress"),
    Grammar("Karma", rf"TOTAL: (?:(?P<f>{N}) FAILED, )?(?P<p>{N}) SUCCESS", holds=("Karma",)),
    Grammar("Cypress", rf" *(?:\x{{2714}}|\x{{2716}}|\x{{221a}}|\xd7) +(?:All specs passed!|{N} of {N} failed \(\d+%\)) +[\d:]+[smh]* +(?P<t>{N}) +(?P<p>{N}|-) +(?P<f>{N}|-) +(?P<s>{N}|-) +(?P<s2>{N}|-)",
            holds=("Mocha",)),
    Grammar("Cucumber", rf"(?P<t>{N}) [Ss]cenarios? \((?P<l>.*)\)", below=rf"{N} [Ss]teps?.*|\d+m.*s|[\d.]+ ?m?s|-+", rest="failed"),
    Grammar("Robot Framework", rf"(?P<t>{N}) tests?(?: total)?, (?P<p>{N}) passed, (?P<f>{N}) failed(?:, (?P<s>{N}) skipped)?", repeat="nested"),
    Grammar(".NET", rf" *(?:Passed|Failed|Skipped|No test is available)! +- +Failed: +(?P<f>{N}), Passed: +(?P<p>{N}), Skipped: +(?P<s>{N}), Total: +(?P<t>{N}).*", names=_DOTNET_NAME),
    Grammar(".NET", rf"Test summary: total: (?P<t>{N}), failed: (?P<f>{N}), succeeded: (?P<p>{N}), skipped: (?P<s>{N}).*", repeat="nested", names=_DOTNET_NAME),
    Grammar(".NET", r"Test run summary: .*", repeat="nested", names=_DOTNET_NAME,
            parts=rf" +(?:total: (?P<t>{N})|failed: (?P<f>{N})|succeeded: (?P<p>{N})|skipped: (?P<s>{N}))"),
    Grammar("xUnit.net", rf".* Total: (?P<t>{N}), Errors: (?P<e>{N}), Failed: (?P<f>{N}), Skipped: (?P<s>{N}),.*", outside="errored"),
    Grammar("ExUnit", rf"(?P<l>(?:{N} (?:doctests?|propert(?:y|ies)|tests?), )+{N} failures?(?:, {N} (?:excluded|skipped|invalid))*)",
            above=r"Finished in [\d.]+ seconds.*", start=r"Running ExUnit with seed: .*", names=r"^ +\d+\) (?:test|doctest|property) (\S.*)$"),
    Grammar("node-tap", rf"# \{{ total: (?P<t>{N}), pass: (?P<p>{N})(?:, fail: (?P<f>{N}))?(?:, todo: (?P<s>{N}))?(?:, skip: (?P<s2>{N}))? \}}", names=r"^\x{2716} (\S.*)$"),
    Grammar("Behave", rf"(?P<p>{N}) scenarios? passed, (?P<f>{N}) failed, (?:(?P<e>{N}) error, )?(?P<s>{N}) skipped(?:, (?P<e2>{N}) undefined)?.*", names=r"^  \S+\.feature:\d+  (\S.*)$"),
    Grammar(".NET", rf"Total tests: (?P<t>{N})", repeat="nested", names=_DOTNET_NAME,
            parts=rf" +(?:Passed: +(?P<p>{N})|Failed: +(?P<f>{N})|Skipped: +(?P<s>{N}))"),
    Grammar("VSTest", rf"Total tests: (?P<t>{N})\. Passed: (?P<p>{N})\. Failed: (?P<f>{N})\. Skipped: (?P<s>{N})\."),
    Grammar("NUnit", rf" *Test Count: (?P<t>{N}), Pass(?:ed)?: (?P<p>{N}), Fail(?:ed)?: (?P<f>{N}), (?:Warn(?:ings)?: {N}, )?Inconclusive: (?P<s>{N}), Skip(?:ped)?: (?P<s2>{N})"),
    Grammar("Pester", rf"Tests Passed: (?P<p>{N}), Failed: (?P<f>{N}), Skipped: (?P<s>{N}),?(?: Inconclusive: (?P<s2>{N}),?)?(?: NotRun: (?P<s3>{N}))?.*",
            start=r"Starting discovery in \d+ files\.", parts=rf"Container failed: (?P<e>{N})", names=r"^ *\[-\] (\S.*?) [\d.]+m?s"),
    Grammar("Ginkgo", rf"(?:SUCCESS|FAIL)! -- .*?(?P<p>{N}) Passed \| (?P<f>{N}) Failed \| (?:{N} Flaked \| )?(?P<s>{N}) Pending \| (?P<s2>{N}) Skipped.*", names=r"^  \[FAIL\] (\S.*)$"),
    Grammar("gotestsum", rf"DONE (?:{N} runs, )?(?P<t>{N}) tests?(?:, (?P<s>{N}) skipped)?(?:, (?P<f>{N}) failures?)?(?:, (?P<e>{N}) errors?)? in [\d.]+s", holds=("Go", "Go -v", "Go JSON")),
)  # fmt: skip

_KINDS = {"t": "total", "r": "ran", "p": "passed", "f": "failed", "e": "errored", "s": "skipped"}
_LISTED = re2.compile(r"(\d{1,9}) (\w[\w ]*)")
_WORDS = {
    **dict.fromkeys(("test", "doctest", "property", "properties"), "total"),
    **dict.fromkeys(("passed",), "passed"),
    **dict.fromkeys(("failed", "failure"), "failed"),
    **dict.fromkeys(("error", "invalid", "undefined", "ambiguous"), "errored"),
    **dict.fromkeys(("skipped", "pending", "excluded", "failed as expected"), "skipped"),
}


@cache
def _index() -> tuple[Any, list[tuple[int, bool]]]:
    """All lines of the table as one automaton, and which row (and whether its start) each belongs to."""
    automaton = re2.Set.MatchSet()
    owners: list[tuple[int, bool]] = []
    for number, grammar in enumerate(GRAMMARS):
        automaton.Add(compiled(grammar.line).pattern)
        owners.append((number, False))
        if grammar.start:
            automaton.Add(compiled(grammar.start).pattern)
            owners.append((number, True))
    automaton.Compile()
    return automaton, owners


def read_summaries(lines: Lines) -> Iterator[Tally]:
    """A tally for every summary that the table knows; and one for each run that began and never ended."""
    automaton, owners = _index()
    found: list[tuple[Grammar, Tally]] = []
    starts: dict[str, list[int]] = {}
    done = -1
    for index, line in enumerate(lines):
        rows = sorted(owners[number] for number in automaton.Match(line) or ())
        for number, begins in rows:
            if begins:
                begun = starts.setdefault(GRAMMARS[number].format, [])
                begun += [index] if index not in begun[-1:] else []
        read = next((entry for number, begins in rows if not begins and index > done
                     and (entry := _entry(GRAMMARS[number], lines, index, starts))), None)  # fmt: skip
        if read:
            found.append(read)
            done = read[1].last
    yield from _named(lines, _joined(found), starts)


def _entry(grammar: Grammar, lines: Lines, index: int, starts: Mapping[str, list[int]]) -> tuple[Grammar, Tally] | None:
    match = compiled(grammar.line).match(lines[index])
    if not match:
        return None
    if grammar.above and not any(map(compiled(grammar.above).match, preceding(lines, index, 2))):
        return None
    # A line that only begins the block of others counts nothing itself.
    begins = (grammar.parts or grammar.below) and not compiled(grammar.line).groupindex
    counts = _counts(match) or (Counter() if begins else None)
    last = None if counts is None else _more(grammar, lines, index, counts)
    if counts is None or last is None:
        return None
    if compiled(grammar.start).groupindex and starts.get(grammar.format):
        counts["total"] = int(compiled(grammar.start).match(lines[starts[grammar.format][-1]])["t"])
    _complete(grammar, counts)
    tally = derive(grammar.format, counts)
    if tally is None:
        return None
    return grammar, replace(tally, first=index, last=last, head=index, holds=grammar.holds)


def _more(grammar: Grammar, lines: Lines, index: int, counts: Counts) -> int | None:
    """Add what the lines below say; the last of them, or None where the one that must be there is not."""
    last = index
    if grammar.below:
        last, line = next(_below(lines, index, 1), (index, ""))
        under = compiled(grammar.below).match(line)
        more = _counts(under) if under and compiled(grammar.below).groupindex else Counter()
        if not under or more is None:
            return None
        counts.update(more)
    return _parts(grammar, lines, last, counts) if grammar.parts else last


def _parts(grammar: Grammar, lines: Lines, first: int, counts: Counts) -> int:
    last = first
    for end in range(first + 1, min(len(lines), first + MAX_PARTS)):
        if compiled(grammar.line).match(lines[end]):
            break
        if part := compiled(grammar.parts).match(lines[end]):
            counts.update(_named_counts(part))
            last = end
    return last


# Lines below an anchor in which its parts are looked for.
MAX_PARTS = 60


def _complete(grammar: Grammar, counts: Counts) -> None:
    """What the total says about the kind that no number names, and what it leaves out."""
    if grammar.outside:
        counts["total"] += counts[grammar.outside]
    known = counts["ran"] or counts["passed"] + counts["failed"] + counts["errored"] + counts["skipped"]
    if grammar.rest and not counts[grammar.rest] and "total" in counts:
        counts[grammar.rest] = max(0, counts["total"] - known) if counts["ran"] or grammar.rest != "skipped" else 0


def _below(lines: Lines, index: int, rows: int) -> Iterator[tuple[int, str]]:
    blank = 0
    for end in range(index + 1, min(len(lines), index + 1 + 2 * rows)):
        if lines[end].strip():
            blank = 0
            yield end, lines[end]
        elif (blank := blank + 1) > 1:
            return


def _counts(match: Any) -> Counts | None:
    """The counts of a line; none where its list says what is not understood."""
    groups = match.groupdict()
    if "l" not in groups:
        return _named_counts(match) if groups else None
    counts: Counts = Counter()
    for entry in re2.split(r" *[,|] *", groups["l"] or ""):
        part = _LISTED.fullmatch(entry)
        kind = part and (_WORDS.get(part[2]) or _WORDS.get(part[2].removesuffix("s")))
        if not kind:
            return None
        counts[kind] += int(part[1])
    if groups.get("t"):
        counts["total"] = int(groups["t"])
    return counts


def _named_counts(match: Any) -> Counts:
    # What the shape of the line leaves room for, and is not there, is none.
    groups = match.groupdict()
    counts: Counts = Counter({_KINDS[name[0]]: 0 for name in groups if name[0] in "fes"})
    for name, text in groups.items():
        if text is not None:
            counts[_KINDS[name[0]]] += int(text) if text.isdecimal() else 0
    return counts


def derive(form: str, counts: Counts) -> Tally | None:
    """A tally of counts that fit each other; None where they do not, or where none of them can be derived."""
    if any(count > MAX_COUNT for count in counts.values()):
        return None
    whole = counts.get("total", counts.get("ran"))
    failed, errored, skipped = counts["failed"], counts["errored"], counts["skipped"]
    if "ran" in counts and "total" in counts and counts["ran"] not in {counts["total"], counts["total"] - skipped}:
        return None
    if "passed" not in counts:
        # A total alone says nothing about how its tests ended.
        if whole is None or whole < failed + errored + skipped or not counts.keys() & {"failed", "errored"}:
            return None
        return Tally(form, whole - failed - errored - skipped, failed, errored, skipped)
    passed = counts["passed"]
    # Some leave what was skipped out of the total.
    if whole is not None and whole not in {passed + failed + errored + skipped, passed + failed + errored}:
        return None
    return Tally(form, passed, failed, errored, skipped)


def _joined(found: Sequence[tuple[Grammar, Tally]]) -> list[tuple[Grammar, Tally]]:
    """Without parts whose total stands below them, and without what was progress only."""
    kept: list[tuple[Grammar, Tally]] = []
    for grammar, tally in found:
        if grammar.repeat == "progress":
            kept = [item for item in kept if item[0].format != grammar.format or item[0].repeat != "progress"]
        elif grammar.repeat == "nested":
            kept = _without_parts(kept, grammar, tally)
        kept.append((grammar, tally))
    return kept


def _without_parts(kept: list[tuple[Grammar, Tally]], grammar: Grammar, whole: Tally) -> list[tuple[Grammar, Tally]]:
    sums = (0, 0, 0, 0)
    for position in range(len(kept) - 1, -1, -1):
        other, part = kept[position]
        if other.format != grammar.format:
            break
        sums = (sums[0] + part.passed, sums[1] + part.failed, sums[2] + part.errored, sums[3] + part.skipped)
        if sums == (whole.passed, whole.failed, whole.errored, whole.skipped):
            return kept[:position]
    return kept


def _named(lines: Lines, found: Sequence[tuple[Grammar, Tally]], starts: dict[str, list[int]]) -> Iterator[Tally]:
    previous: dict[str, int] = {}
    for grammar, tally in found:
        form = grammar.format
        after = previous.get(form, -1)
        begun = [start for start in starts.get(form, ()) if after < start <= tally.last]
        starts[form] = [start for start in starts.get(form, ()) if start > tally.last]
        previous[form] = tally.last
        first = begun[-1] if begun else after + 1
        listed = lines[tally.last if grammar.listed_below else first : tally.last + MAX_LIST_LENGTH]
        yield replace(_failures(listed, grammar, tally), first=first, proven=bool(begun))
        yield from (_unended(form, start) for start in begun[:-1])
    for form, open_starts in starts.items():
        yield from (_unended(form, start) for start in open_starts)


def _unended(form: str, start: int) -> Tally:
    return Tally(form, first=start, last=start, head=start, doubt=f"a run of {form} began and did not end")


def _failures(lines: Lines, grammar: Grammar, tally: Tally) -> Tally:
    """With the names of failing tests, which count where the summary counts assertions."""
    if not (grammar.names or grammar.by_names) or not tally.failed + tally.errored:
        return tally
    found = map(re2.compile(grammar.names).search, lines) if grammar.names else ()
    names = dict.fromkeys(match[1] for match in found if match)
    if grammar.by_names:
        total = tally.total
        if not names and tally.failed == 1:
            return tally
        if not names or len(names) > total:
            return replace(tally, doubt=f"{grammar.format} counts failed assertions, and their tests are not named")
        return replace(
            tally, passed=total - len(names) - tally.skipped, failed=len(names), errored=0, failures=first_names(names)
        )
    # What else is listed in the same way, pending tests say, stands below the failures.
    return replace(tally, failures=first_names(names)[: tally.failed + tally.errored])
