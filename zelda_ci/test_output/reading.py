"""Output and reports of a test command in, a summary out."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from zelda_ci.domain.test_run import RunnerCounts, Source, TestSummary
from zelda_ci.redact import Redactor
from zelda_ci.test_output import documents
from zelda_ci.test_output.ledger import Ledger, SourcedTally, account, alarms, uncounted
from zelda_ci.test_output.reports import TEST_REPORTS, ReportFile, read_printed_xml, read_reports
from zelda_ci.test_output.runners import go_and_rust, jest, jvm, native, node, python, ruby_and_php, tap
from zelda_ci.test_output.summaries import read_summaries
from zelda_ci.test_output.tally import GAP, MAX_WIDTH, Lines, Output, Recogniser, Tally, first_names

# Every repetition is bounded, so that it needs no RE2, which takes ten times as long for a line.
_LABEL = re.compile(
    r"(?:\[(?P<bracket>[\w@./:#-]{1,80}|[\w. -]{1,60} #\d+-\d+)\]"  # concurrently, npm-run-all: [web] ...
    r"|(?P<task>[\w@./-]{1,80}[:#][\w.-]{1,80}):"  # turbo: web:test: ...
    r"|(?P<pnpm>[\w@./-]{1,80} [\w:.-]{1,40})[:$]"  # pnpm: packages/web test: ...
    r"|(?P<lerna>@?[\w./-]{1,80}):"  # lerna: web: ...
    r"|(?P<compose>[\w.-]{1,80}) *\|)"  # compose: web-1  | ...
    r"(?: |$)",
    re.ASCII,
)
MAX_LABELS = 200
_NO_LABELS = frozenset({"info", "error", "warning", "warn", "debug", "fatal", "trace", "doctest"})


def by_label(lines: Lines) -> Mapping[str, list[str]]:
    """Lines without their label, for every label that a runner could have; a gap is a gap in each."""
    labelled: defaultdict[str, list[str]] = defaultdict(list)
    for line in lines:
        if line == GAP:
            # A label that was not seen yet may have spoken in the gap, so it starts with one.
            labelled.default_factory = lambda: [GAP]
            for rest in labelled.values():
                rest.append(GAP)
        elif parts := split(line):
            labelled[parts[0]].append(parts[1])
    # More are words of a log: nobody runs as many runners at once, and each of them is read for itself.
    most = set(sorted(labelled, key=lambda label: -len(labelled[label]))[:MAX_LABELS])
    return {label: own for label, own in labelled.items() if label in most}


def _layers(lines: Lines, depth: int = 2) -> Iterator[Lines]:
    """The lines, those of each label without it, and so on where one stands inside of another."""
    yield lines
    if depth:
        for own in by_label(lines).values():
            yield from _layers(own, depth - 1)


def without(lines: Lines, labels: frozenset[str]) -> list[str]:
    """The lines that carry none of these labels."""
    return [line for line in lines if (parts := split(line)) is None or parts[0] not in labels]


def split(line: str) -> tuple[str, str] | None:
    """Label and rest of a line that has a label."""
    if line[:1] != "[" and ":" not in line and "|" not in line and "$" not in line:
        return None
    match = _LABEL.match(line)
    if not match or not match.lastgroup:
        return None
    label = match[match.lastgroup]
    # CTest numbers the lines that its tests print.
    return (
        None if label.lower() in _NO_LABELS or (label.isdecimal() and line[0] != "[") else (label, line[match.end() :])
    )


@dataclass(frozen=True)
class Format:
    """A recogniser is asked only where one of its hallmarks occurs, which is far cheaper to find out."""

    read: Recogniser
    source: Source
    hallmarks: tuple[str, ...]
    whole_lines: bool = False


FORMATS = (
    Format(
        documents.read_json_output,
        "stream",
        ('"numTotalTests"', '"stats"', '"example_count"', '"summary"'),
        whole_lines=True,
    ),
    Format(read_printed_xml, "stream", ("<test", "<Test", "<assembl"), whole_lines=True),
    Format(go_and_rust.read_json, "stream", ('"Action":',), whole_lines=True),
    Format(tap.read_tap, "stream", ("TAP version", "1..")),
    Format(
        python.read_pytest,
        "summary",
        ("test session starts", "passed", "failed", "error", "skipped", "no tests", "xfailed", "xpassed", "deselected"),
    ),
    Format(python.read_unittest, "summary", ("Ran ",)),
    Format(jest.read_jest, "summary", ("Test Suites:",)),
    Format(jest.read_vitest, "summary", ("Test Files ",)),
    Format(node.read_mocha, "summary", (" passing (",)),
    Format(node.read_node, "summary", ("\u2139 tests ",)),
    Format(node.read_bun, "summary", ("Ran ",)),
    Format(node.read_deno, "summary", (" passed",)),
    Format(node.read_playwright, "summary", ("Running ",)),
    Format(go_and_rust.read_verbose, "summary", ("=== RUN ",)),
    Format(go_and_rust.read_packages, "summary", ("ok  \t", "FAIL\t", "?   \t")),
    Format(go_and_rust.read_cargo, "summary", ("test result: ",)),
    Format(go_and_rust.read_nextest, "summary", (" run: ",)),
    Format(native.read_ctest, "summary", ("Test project ",)),
    Format(native.read_googletest, "summary", ("[====",)),
    Format(ruby_and_php.read_minitest, "summary", (" runs, ",)),
    Format(ruby_and_php.read_phpunit, "summary", ("PHPUnit ",)),
    Format(ruby_and_php.read_pest, "summary", (" assertion",)),
    Format(tap.read_bats, "summary", (" failure",)),
    Format(tap.read_prove, "summary", ("Files=",)),
    Format(jvm.read_surefire, "summary", ("Tests run: ",)),
)


def recognise(lines: Lines) -> Iterator[tuple[Source, Tally]]:
    """Everything that any format finds, in the order of the table."""
    text = "\n".join(lines)
    # Some expressions take time that grows with the square of the length; no summary has such long lines.
    short = [line[:MAX_WIDTH] for line in lines]
    for form in FORMATS:
        if any(hallmark in text for hallmark in form.hallmarks):
            for tally in form.read(lines if form.whole_lines else short):
                yield form.source, tally
    yield from (("summary", tally) for tally in read_summaries(short))


HOW_TO_GET_COUNTS = (
    "let the test command write a JUnit XML report (for example `pytest --junitxml=report.xml`) "
    "and name it in `testReport`"
)
MAX_NAME_LENGTH = 300
# Runners that start one program after the other: to the user they are one run.
_MERGED = frozenset({"Cargo", ".NET"})


def well_known_reports() -> tuple[str, ...]:
    """Globs, relative to the project, of the places where runners write reports."""
    return TEST_REPORTS


def read_tests(output: Output, reports: Iterable[ReportFile], exit_code: int | None, redact: Redactor) -> TestSummary:
    """What a test command did: from its reports, else from a stream in its output, else from closing summaries.

    Args:
        output: What it printed, whole or as head and tail.
        reports: Report files written by this command, and by no earlier one.
        exit_code: Of the command; None when it was ended.
        redact: Through which names of tests become `SafeText`.
    """
    tallies, problems = read_reports(reports, succeeded=exit_code == 0)
    notes = [f"The report {problem.path} was not used: {problem.reason}." for problem in problems]
    lines = output.lines()
    ledger, why = from_output(lines)
    # What was printed tells what a broken report would have, and an exit code that a failure was in it.
    lost = exit_code == 0 and not ledger.counted
    doubts = [f"the report {problem.path} cannot be read" for problem in problems if problem.broken and lost]
    tallied: Sequence[SourcedTally] = [("report", tally) for tally in tallies]
    if not any(tally.total for tally in tallies):
        # A report without any test says less than an output that tells of some.
        tallied = ledger.counted or tallied
        doubts += ledger.doubts
        if not tallied:
            doubts += dict.fromkeys(doubt for own in _layers(lines) for doubt in uncounted(own))
            notes += [] if doubts else why
    elif not any(tally.failed + tally.errored for tally in tallies):
        doubts += [*ledger.doubts, *_hidden(ledger)]
    if doubts:
        notes.append(f"The output is unclear: {'; '.join(doubts)}; {HOW_TO_GET_COUNTS}.")
        return TestSummary(note=redact(" ".join(notes)), unclear=tuple(map(redact, doubts)))
    runners = combine(_counts(source, tally, redact, several=len(tallied) > 1) for source, tally in tallied)
    return TestSummary(runners=runners, note=redact(" ".join(notes)) if notes else None)


def _hidden(ledger: Ledger) -> Iterator[str]:
    """Failures that were printed, and that reports without any do not know."""
    for _, tally in ledger.counted:
        if tally.failed + tally.errored:
            yield f"{tally.format} printed {tally.failed + tally.errored} failures, and no report has one"


def combine(runners: Iterable[RunnerCounts]) -> tuple[RunnerCounts, ...]:
    """Runners in order; runs of a runner that starts several programs in one command become one."""
    merged: list[RunnerCounts] = []
    for runner in runners:
        last = merged[-1] if merged else None
        if last and runner.format in _MERGED and (last.format, last.label) == (runner.format, runner.label):
            merged[-1] = _sum(last, runner)
        else:
            merged.append(runner)
    return tuple(merged)


def _sum(first: RunnerCounts, second: RunnerCounts) -> RunnerCounts:
    parts = ("passed", "failed", "errored", "skipped", "flaky")
    total = {part: getattr(first, part) + getattr(second, part) for part in parts}
    return first.replace(**total, failures=first_names((*first.failures, *second.failures)))


def from_output(lines: Lines) -> tuple[Ledger, list[str]]:
    """What the output tells, and why it tells nothing."""
    ledger = _by_runner(lines)
    tallied = ledger.counted
    if GAP in lines and not _complete(tallied, lines.index(GAP)):
        red = any(tally.failed + tally.errored for _, tally in tallied if tally.certain)
        doubts = ("what is left of the output tells of failures",) if red else () if tallied else ledger.doubts
        why = f"The output was too long to be stored whole, so it gives no reliable counts; {HOW_TO_GET_COUNTS}."
        return Ledger(doubts=doubts), [why]
    if not tallied and not ledger.doubts:
        return ledger, [f"No test runner was recognised in the output; {HOW_TO_GET_COUNTS}."]
    return ledger, []


def _by_runner(lines: Lines, *, nested: bool = False) -> Ledger:
    """Runners whose lines carry their label, or one inside of another, then all others."""
    # A label only counts where a runner speaks behind it: many lines begin with a word and a colon.
    ledgers = {
        label: account(own, recognise(own)) if nested else _by_runner(own, nested=True)
        for label, own in by_label(lines).items()
    }
    certain = {
        label: ledger for label, ledger in ledgers.items()
        if ledger.doubts or any(tally.certain for _, tally in ledger.counted)
    }  # fmt: skip
    rest = without(lines, frozenset(certain)) if certain else lines
    ledger = account(rest, recognise(rest))
    if not certain and not ledger.counted:
        certain = {label: own for label, own in ledgers.items() if own.counted}
    labelled = [
        (source, replace(tally, label=f"{label} {tally.label}".rstrip()))
        for label, own in certain.items()
        for source, tally in own.counted
    ]
    counted = (*labelled, *ledger.counted)
    doubts = [doubt for own in certain.values() for doubt in own.doubts]
    if not nested and not any(tally.failed + tally.errored for _, tally in counted):
        # Where a runner counts, its ledger knows which words of failure are the runner's own.
        silent = [own for label, own in by_label(rest).items() if label not in certain]
        layers = [layer for own in silent for layer in _layers(own, 1)]
        doubts += [doubt for own in (*layers, *([] if ledger.counted else [rest])) for doubt in alarms(own)]
    return Ledger(counted, tuple(dict.fromkeys((*doubts, *ledger.doubts))))


def _complete(tallied: Sequence[SourcedTally], gap: int) -> bool:
    """Whether nothing can be missing: exactly one run spans the gap, and it ran what it announced before."""
    across = [tally for _, tally in tallied if tally.first < gap < tally.last]
    return len(across) == 1 and across[0].announced is not None and across[0].announced == across[0].total


def _counts(source: Source, tally: Tally, redact: Redactor, *, several: bool) -> RunnerCounts:
    return RunnerCounts(
        format=tally.format,
        source=source,
        unit=tally.unit,
        label=redact(tally.label) if tally.label and several else None,
        passed=tally.passed,
        failed=tally.failed,
        errored=tally.errored,
        skipped=tally.skipped,
        flaky=min(tally.flaky, tally.passed),
        failures=tuple(redact(redact(name[: 10 * MAX_NAME_LENGTH])[:MAX_NAME_LENGTH]) for name in tally.failures),
    )


def contradictions(summary: TestSummary, exit_code: int | None) -> tuple[str, ...]:
    """What does not fit together, one sentence each."""
    if summary.unclear:
        return (f"The output of the tests is unclear: {'; '.join(summary.unclear)}.",)
    if exit_code is None or not summary.recognised:
        return ()
    unsuccessful = summary.failed + summary.errored
    units = "packages" if all(runner.unit == "packages" for runner in summary.runners) else "tests"
    if exit_code == 0 and unsuccessful:
        return (f"The command succeeded (exit code 0) though {unsuccessful} of {summary.total} {units} did not pass.",)
    if exit_code == 0 and not summary.ran:
        return ("The command succeeded (exit code 0) though it ran no test.",)
    if exit_code != 0 and not unsuccessful and summary.ran:
        return (f"The command failed (exit code {exit_code}) though {summary.passed} of {summary.ran} {units} passed.",)
    return ()
