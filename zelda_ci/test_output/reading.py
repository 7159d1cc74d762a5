"""All that a test command tells: output and reports in, tests and coverage out."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import anyio
import anyio.to_thread

from zelda_ci.domain.details import CoverageSummary, RunnerCounts, TestSummary
from zelda_ci.process import OutputBuffer
from zelda_ci.redact import Redactor
from zelda_ci.test_output import runners
from zelda_ci.test_output.coverage import read_coverage
from zelda_ci.test_output.ledger import Ledger, account, alarms, uncounted
from zelda_ci.test_output.reports import RefusedXmlError, ReportFile, read_json_output, read_printed_xml, read_reports
from zelda_ci.test_output.summaries import read_summaries
from zelda_ci.test_output.tally import GAP, MAX_DEPTH, MAX_WIDTH, Lines, Output, Tally, by_label, first_names, split

# Output and reports are bounded and read in linear time; this is for a machine that is hardly there.
MAX_SECONDS = 120.0
# Kinds of reports.
TESTS: Final = "test"
COVERAGE: Final = "coverage"


class Findings(NamedTuple):
    """Tests and coverage, as a command's output and reports tell."""

    tests: TestSummary
    coverage: CoverageSummary


async def find(
    exit_code: int | None,
    printed: OutputBuffer,
    reports: Mapping[str, Sequence[ReportFile]],
    redact: Redactor,
    *,
    max_seconds: float = MAX_SECONDS,
) -> Findings:
    """Read the output of a test command, and its reports by kind, in a thread; counts are unclear where that fails."""

    def read() -> Findings:
        output = Output(*printed.pieces())
        tests = read_tests(output, reports.get(TESTS, ()), exit_code, redact)
        return Findings(tests, read_coverage(output, reports.get(COVERAGE, ())))

    try:
        with anyio.fail_after(max_seconds):
            return await anyio.to_thread.run_sync(read, abandon_on_cancel=True)
    except TimeoutError:
        problem = f"that took longer than {max_seconds:g} s"
    # Output may be hostile: whatever it does to a reader, the other suites go on.
    except Exception as error:  # noqa: BLE001
        problem = f"the reader broke off ({type(error).__name__})"
    told = f"its output could not be read: {problem}"
    return Findings(TestSummary(unclear=(redact(told),)), CoverageSummary(note=f"Of the tests, {told}."))


Reader = Callable[[Lines], Iterable[Tally]]
# Each is asked only where one of its hallmarks occurs, which is far cheaper to find out.
STREAMS: tuple[tuple[Reader, tuple[str, ...]], ...] = (
    (read_json_output, ('"numTotalTests"', '"stats"', '"example_count"', '"summary"')),
    (read_printed_xml, ("<test", "<Test", "<assembl")),
    (runners.read_go_json, ('"Action":',)),
    (runners.read_tap, ("TAP version", "1..")),
)
SUMMARIES: tuple[tuple[Reader, tuple[str, ...]], ...] = (
    (runners.read_pytest, ("test session starts", " in ", "[100%]")),
    (runners.read_go_verbose, ("=== RUN ",)),
    (runners.read_go_packages, ("ok  \t", "FAIL\t", "?   \t")),
    (read_summaries, ("",)),
)


def recognise(lines: Lines) -> Iterator[Tally]:
    """Everything that any format finds: streams first, of whole lines."""
    text = "\n".join(lines)
    for read, hallmarks in STREAMS:
        if any(hallmark in text for hallmark in hallmarks):
            yield from (replace(tally, source="stream") for tally in read(lines))
    # Some expressions take time that grows with the square of the length; no summary has such long lines.
    short = [line[:MAX_WIDTH] for line in lines]
    for read, hallmarks in SUMMARIES:
        if any(hallmark in text for hallmark in hallmarks):
            yield from read(short)


HOW_TO_GET_COUNTS = (
    "let the test command write a JUnit XML report (for example `pytest --junitxml=report.xml`) "
    "and name it in `testReport`"
)
MAX_NAME_LENGTH = 300
# Runners that start one program after the other: to the user they are one run.
_MERGED = frozenset({"Cargo", ".NET"})


def read_tests(output: Output, reports: Iterable[ReportFile], exit_code: int | None, redact: Redactor) -> TestSummary:
    """What a test command did: from its own reports, else from a stream in its output, else from closing summaries."""
    reported, problems = read_reports(reports, succeeded=exit_code == 0)
    notes = [f"The report {path} was not used: {problem}." for path, problem in problems]
    lines = output.lines()
    ledger, why = _from_output(lines)
    # What was printed tells what a broken report would have, and an exit code that a failure was in it.
    lost = exit_code == 0 and not ledger.counted
    broken = [path for path, problem in problems if isinstance(problem, RefusedXmlError)]
    doubts = [f"the report {path} cannot be read" for path in broken if lost]
    counted: Sequence[Tally] = reported
    if not any(tally.total for tally in reported):
        # A report without any test says less than an output that tells of some.
        counted = ledger.counted or reported
        doubts += ledger.doubts
        if not counted:
            doubts += uncounted(lines)
            notes += [] if doubts else [f"{why}; {HOW_TO_GET_COUNTS}."]
    elif not any(tally.red for tally in reported):
        # Failures that were printed, and that reports without any do not know.
        red = [(tally.format, tally.failed + tally.errored) for tally in ledger.counted if tally.red]
        doubts += [f"{form} printed {lost} failures, and no report has one" for form, lost in red]
        doubts += ledger.doubts
    if doubts:
        notes.append(f"The output is unclear: {'; '.join(doubts)}; {HOW_TO_GET_COUNTS}.")
        return TestSummary(note=redact(" ".join(notes)), unclear=tuple(map(redact, doubts)))
    runners = tuple(_counts(tally, redact, several=len(counted) > 1) for tally in _merged(counted))
    return TestSummary(runners=runners, note=redact(" ".join(notes)) if notes else None)


def _from_output(lines: Lines) -> tuple[Ledger, str]:
    """What the output tells, and why it tells nothing."""
    ledger = _by_runner(lines)
    if GAP not in lines:
        return ledger, "No test runner was recognised in the output"
    # Nothing is missing if exactly one run spans the gap, and it ran what it announced before.
    gap = lines.index(GAP)
    if [tally.complete for tally in ledger.counted if tally.first < gap < tally.last] == [True]:
        return ledger, ""
    red = any(tally.red and tally.certain for tally in ledger.counted)
    doubts = ("what is left of the output tells of failures",) if red else () if ledger.counted else ledger.doubts
    return Ledger(doubts=doubts), "The output was too long to be stored whole, so it gives no reliable counts"


def _by_runner(lines: Lines, depth: int = MAX_DEPTH) -> Ledger:
    """Runners whose lines carry their label, or one inside of another, then all others."""
    ledgers = {label: _by_runner(own, depth - 1) for label, own in by_label(lines).items()} if depth else {}
    # A label only counts where a runner speaks behind it: many lines begin with a word and a colon.
    speaking = {label: own for label, own in ledgers.items() if own.doubts or any(one.certain for one in own.counted)}
    rest = [it for it in lines if (parts := split(it)) is None or parts[0] not in speaking] if speaking else lines
    ledger = account(rest, recognise(rest))
    if not speaking and not ledger.counted:
        speaking = {label: own for label, own in ledgers.items() if own.counted}
    labelled = [(f"{label} {one.label}".rstrip(), one) for label, own in speaking.items() for one in own.counted]
    counted = (*(replace(tally, label=label) for label, tally in labelled), *ledger.counted)
    doubts = [doubt for own in speaking.values() for doubt in own.doubts]
    if not any(tally.red for tally in counted) and (ledger.counted or depth == MAX_DEPTH):
        doubts += alarms(rest, ledger.counted)
    return Ledger(counted, tuple(dict.fromkeys((*doubts, *ledger.doubts))))


def _merged(tallies: Iterable[Tally]) -> list[Tally]:
    """Runs in order; those of a runner that starts several programs in one command become one."""
    merged: list[Tally] = []
    for tally in tallies:
        last = merged[-1] if merged else None
        if last and tally.format in _MERGED and (last.format, last.label) == (tally.format, tally.label):
            kinds = ("passed", "failed", "errored", "skipped", "flaky")
            counts: Any = {kind: getattr(last, kind) + getattr(tally, kind) for kind in kinds}
            merged[-1] = replace(last, failures=first_names((*last.failures, *tally.failures)), **counts)
        else:
            merged.append(tally)
    return merged


def _counts(tally: Tally, redact: Redactor, *, several: bool) -> RunnerCounts:
    counts = {name: getattr(tally, name) for name in RunnerCounts.model_fields}
    counts["label"] = redact(tally.label) if tally.label and several else None
    counts["flaky"] = min(tally.flaky, tally.passed)
    names = (redact(name[: 10 * MAX_NAME_LENGTH])[:MAX_NAME_LENGTH] for name in tally.failures)
    return RunnerCounts(**counts | {"failures": tuple(map(redact, names))})


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
