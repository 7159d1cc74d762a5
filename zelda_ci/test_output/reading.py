"""Output and reports of a test command in, a summary out."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from zelda_ci.domain.test_run import RunnerCounts, Source, TestSummary
from zelda_ci.redact import Redactor
from zelda_ci.test_output import documents
from zelda_ci.test_output.labels import MAX_DEPTH, by_label, without
from zelda_ci.test_output.ledger import Ledger, SourcedTally, account, alarms, uncounted
from zelda_ci.test_output.reports import TEST_REPORTS, ReportFile, read_printed_xml, read_reports
from zelda_ci.test_output.runners import go, python, tap
from zelda_ci.test_output.summaries import read_summaries
from zelda_ci.test_output.tally import GAP, MAX_WIDTH, Lines, Output, Tally, first_names

# Each is asked only where one of its hallmarks occurs, which is far cheaper to find out.
STREAMS: tuple[tuple[Callable[[Lines], Iterable[Tally]], tuple[str, ...]], ...] = (
    (documents.read_json_output, ('"numTotalTests"', '"stats"', '"example_count"', '"summary"')),
    (read_printed_xml, ("<test", "<Test", "<assembl")),
    (go.read_json, ('"Action":',)),
)
SUMMARIES: tuple[tuple[Callable[[Lines], Iterable[Tally]], tuple[str, ...]], ...] = (
    (tap.read_tap, ("TAP version", "1..")),
    (python.read_pytest, ("test session starts", " in ")),
    (go.read_verbose, ("=== RUN ",)),
    (go.read_packages, ("ok  \t", "FAIL\t", "?   \t")),
    (read_summaries, ("",)),
)


def recognise(lines: Lines) -> Iterator[tuple[Source, Tally]]:
    """Everything that any format finds: streams first, of whole lines."""
    text = "\n".join(lines)
    # Some expressions take time that grows with the square of the length; no summary has such long lines.
    short = [line[:MAX_WIDTH] for line in lines]
    for formats, own in ((STREAMS, lines), (SUMMARIES, short)):
        for read, hallmarks in formats:
            if any(hallmark in text for hallmark in hallmarks):
                stream = formats is STREAMS or read is tap.read_tap
                yield from (("stream" if stream else "summary", tally) for tally in read(own))


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
            doubts += uncounted(lines)
            notes += [] if doubts else why
    elif not any(tally.red for tally in tallies):
        # Failures that were printed, and that reports without any do not know.
        printed = [tally for _, tally in ledger.counted if tally.red]
        doubts += [
            f"{one.format} printed {one.failed + one.errored} failures, and no report has one" for one in printed
        ]
        doubts += ledger.doubts
    if doubts:
        notes.append(f"The output is unclear: {'; '.join(doubts)}; {HOW_TO_GET_COUNTS}.")
        return TestSummary(note=redact(" ".join(notes)), unclear=tuple(map(redact, doubts)))
    runners = combine(_counts(source, tally, redact, several=len(tallied) > 1) for source, tally in tallied)
    return TestSummary(runners=runners, note=redact(" ".join(notes)) if notes else None)


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
    if GAP in lines and not _complete(ledger.counted, lines.index(GAP)):
        red = any(tally.red for _, tally in ledger.counted if tally.certain)
        doubts = ("what is left of the output tells of failures",) if red else () if ledger.counted else ledger.doubts
        why = f"The output was too long to be stored whole, so it gives no reliable counts; {HOW_TO_GET_COUNTS}."
        return Ledger(doubts=doubts), [why]
    if not ledger.counted and not ledger.doubts:
        return ledger, [f"No test runner was recognised in the output; {HOW_TO_GET_COUNTS}."]
    return ledger, []


def _by_runner(lines: Lines, depth: int = MAX_DEPTH) -> Ledger:
    """Runners whose lines carry their label, or one inside of another, then all others."""
    ledgers = {label: _by_runner(own, depth - 1) for label, own in by_label(lines).items()} if depth else {}
    # A label only counts where a runner speaks behind it: many lines begin with a word and a colon.
    speaking = {
        label: ledger
        for label, ledger in ledgers.items()
        if ledger.doubts or any(tally.certain for _, tally in ledger.counted)
    }
    rest = without(lines, speaking)
    ledger = account(rest, recognise(rest))
    if not speaking and not ledger.counted:
        speaking = {label: own for label, own in ledgers.items() if own.counted}
    labelled = [
        (source, replace(tally, label=f"{label} {tally.label}".rstrip()))
        for label, own in speaking.items()
        for source, tally in own.counted
    ]
    doubts = [doubt for own in speaking.values() for doubt in own.doubts]
    whole = Ledger((*labelled, *ledger.counted))
    if not whole.red and (ledger.counted or depth == MAX_DEPTH):
        doubts += alarms(rest, ledger.counted)
    return Ledger(whole.counted, tuple(dict.fromkeys((*doubts, *ledger.doubts))))


def _complete(tallied: Sequence[SourcedTally], gap: int) -> bool:
    """Whether nothing can be missing: exactly one run spans the gap, and it ran what it announced before."""
    across = [tally for _, tally in tallied if tally.first < gap < tally.last]
    return len(across) == 1 and across[0].complete


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
