"""The way in: output and reports of a test command in, a summary out."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from zelda_ci.domain.test_run import RunnerCounts, Source, TestSummary
from zelda_ci.redact import Redactor
from zelda_ci.test_output import labels
from zelda_ci.test_output.recognisers import recognise
from zelda_ci.test_output.reports import files
from zelda_ci.test_output.reports.files import TEST_REPORTS, ReportFile
from zelda_ci.test_output.tally import NAMES_KEPT, Lines, Tally
from zelda_ci.test_output.text import GAP, Output

HOW_TO_GET_COUNTS = (
    "let the test command write a JUnit XML report (for example `pytest --junitxml=report.xml`) "
    "and name it in `testReport`"
)
LONGEST_NAME = 300
_MERGED = frozenset({"Cargo"})
"""Runners that start one program after the other: to the user they are one run."""
_SUMMARY_BESIDE = {
    "Jest JSON": ("Jest", "Vitest"),
    "Mocha JSON": ("Mocha",),
    "RSpec JSON": ("RSpec",),
    "Go JSON": ("Go -v", "Go"),
    "TAP": ("node-tap",),
}
"""Summaries of the runners that may have printed a stream."""

Found = tuple[Source, Tally]


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
    tallies, problems = files.read(reports, succeeded=exit_code == 0)
    found: list[Found] = [("report", tally) for tally in tallies]
    notes = [f"The report {problem.path} was not used: {problem.reason}." for problem in problems]
    if not any(tally.total for tally in tallies):
        # A report without any test says less than an output that tells of some.
        printed, doubt = from_output(output.lines())
        notes += [] if found else doubt
        found = printed or found
    runners = combine(_counts(source, tally, redact, several=len(found) > 1) for source, tally in found)
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


def _sum(one: RunnerCounts, other: RunnerCounts) -> RunnerCounts:
    parts = ("passed", "failed", "errored", "skipped", "flaky")
    total = {part: getattr(one, part) + getattr(other, part) for part in parts}
    return one.model_copy(update={**total, "failures": (*one.failures, *other.failures)[:NAMES_KEPT]})


def from_output(lines: Lines) -> tuple[list[Found], list[str]]:
    """What the output tells, and why it tells nothing."""
    found = _certain(_by_runner(lines))
    if GAP in lines and not _complete(found, lines.index(GAP)):
        return [], [f"The output was too long to be kept whole, so counts cannot be told from it; {HOW_TO_GET_COUNTS}."]
    if not found:
        return [], [f"No test runner was recognised in the output; {HOW_TO_GET_COUNTS}."]
    return found, []


def _by_runner(lines: Lines) -> Iterator[Found]:
    """Runners whose lines carry their label, then all others."""
    labelled = {label: found for label, own in labels.by_label(lines).items() if (found := _distinct(own))}
    for label, found in labelled.items():
        yield from ((source, replace(tally, label=label)) for source, tally in found)
    yield from _distinct(labels.without(lines, frozenset(labelled)) if labelled else lines)


def _distinct(lines: Lines) -> list[Found]:
    """Tallies in the order of the output, without those that tell of the same tests again."""
    return sorted(_once(_unquoted(_certain(recognise(lines)))), key=lambda item: item[1].last)


def _certain(found: Iterable[Found]) -> list[Found]:
    """What cannot be anything else; only where there is no such thing, what may be a summary."""
    everything = list(found)
    return [item for item in everything if item[1].certain] or everything


def _unquoted(found: Sequence[Found]) -> list[Found]:
    """Without runs that another runner quotes."""
    outer = sorted((tally for _, tally in found if tally.quotes), key=lambda tally: tally.first)
    begins = [tally.first for tally in outer]

    def quoted(tally: Tally) -> bool:
        nearest = bisect_right(begins, tally.last) - 1
        return not tally.quotes and nearest >= 0 and tally.last <= outer[nearest].last

    return [(source, tally) for source, tally in found if not quoted(tally)]


def _once(found: Sequence[Found]) -> Iterator[Found]:
    """Without the summary that a runner prints beside a stream, which then has the same numbers."""
    told = Counter(_numbers(tally) for source, tally in found if source == "stream")
    for source, tally in found:
        beside = (
            (stream, *_numbers(tally)[1:]) for stream, formats in _SUMMARY_BESIDE.items() if tally.format in formats
        )
        same = next((key for key in beside if told[key]), None) if source == "summary" else None
        if same:
            told[same] -= 1
        else:
            yield source, tally


def _numbers(tally: Tally) -> tuple[str, int, int, int]:
    return tally.format, tally.passed, tally.failed, tally.skipped


def _complete(found: Sequence[Found], gap: int) -> bool:
    """Whether nothing can be missing: exactly one run spans the gap, and it ran what it announced before."""
    across = [tally for _, tally in found if tally.first < gap < tally.last]
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
        failures=tuple(redact(redact(name[: 10 * LONGEST_NAME])[:LONGEST_NAME]) for name in tally.failures),
    )


def contradictions(summary: TestSummary, exit_code: int | None) -> tuple[str, ...]:
    """What does not fit together, one sentence each."""
    if exit_code is None or not summary.recognised:
        return ()
    lost = summary.failed + summary.errored
    units = "packages" if all(runner.unit == "packages" for runner in summary.runners) else "tests"
    if exit_code == 0 and lost:
        return (f"The command succeeded (exit code 0) though {lost} of {summary.total} {units} did not pass.",)
    if exit_code == 0 and not summary.ran:
        return ("The command succeeded (exit code 0) though it ran no test.",)
    if exit_code != 0 and not lost and summary.ran:
        return (f"The command failed (exit code {exit_code}) though {summary.passed} of {summary.ran} {units} passed.",)
    return ()
