"""From what the commands showed to a score: pure."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from zelda_ci.domain.correctness import CorrectnessDetails
from zelda_ci.domain.run import CommandResult
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.domain.test_run import CoverageSummary, TestSummary
from zelda_ci.test_output.reading import contradictions

WEIGHTS = {"build": 40.0, "tests": 60.0}
WEIGHTS_WITH_COVERAGE = {"build": 30.0, "tests": 50.0, "coverage": 20.0}
MOST_WITHOUT_PASS = 99.0
"""Of 100: one failed test of ten thousand must not round to the full score."""


@dataclass(frozen=True)
class Evidence:
    """What the commands showed; absent is what is not configured, or was not reached."""

    build: CommandResult | None = None
    test: CommandResult | None = None
    tests: TestSummary = field(default_factory=TestSummary)
    coverage: CoverageSummary = field(default_factory=CoverageSummary)
    notes: tuple[str, ...] = ()


def weigh(suite: ResolvedSuite, evidence: Evidence) -> tuple[float, CorrectnessDetails]:
    """Score from 0 to 100, and what it rests on; the suite has at least one of the two commands.

        score = sum(weight * part) / sum(weight), over the parts that are configured

    `build` counts 100 or 0. `tests` counts the share of tests that passed among those that ran; where the numbers are
    not known, or do not explain why the command failed, the exit code decides. `coverage` counts 100 from the threshold
    on, below it the share of it that was reached. A command that did not end in time, or was not run, counts 0. What
    did not pass has at most 99, however little is missing.
    """
    parts, weights = dict(_parts(suite, evidence)), _weights(suite)
    total = sum(weights.values())
    score = sum(weights[part] * parts[part] for part in weights) / total
    shortfalls = tuple(_shortfalls(suite, evidence))
    details = CorrectnessDetails(
        passed=not shortfalls,
        shortfalls=shortfalls,
        build=evidence.build,
        test=evidence.test,
        tests=evidence.tests if evidence.test else None,
        coverage=evidence.coverage if "coverage" in weights or evidence.coverage.format else None,
        coverage_threshold=suite.coverage_threshold if "coverage" in weights else None,
        parts={part: round(parts[part], 2) for part in weights},
        weights={part: round(100 * weight / total, 2) for part, weight in weights.items()},
        notes=(*evidence.notes, *_notes(evidence)),
    )
    return min(score, 100.0 if details.passed else MOST_WITHOUT_PASS), details


def reasoning(details: CorrectnessDetails) -> str:
    """Why it did not pass, or what did."""
    return " ".join(details.shortfalls or _achievements(details))


def _weights(suite: ResolvedSuite) -> dict[str, float]:
    table = WEIGHTS if suite.coverage_threshold is None else WEIGHTS_WITH_COVERAGE
    command = {"build": suite.build_command, "tests": suite.test_command, "coverage": suite.test_command}
    return {part: weight for part, weight in table.items() if command[part] is not None}


def _parts(suite: ResolvedSuite, evidence: Evidence) -> Iterator[tuple[str, float]]:
    yield "build", 100.0 if _succeeded(evidence.build) else 0.0
    yield "tests", 100.0 * _share_passed(evidence)
    yield "coverage", 100.0 * _share_covered(suite, evidence)


def _succeeded(command: CommandResult | None) -> bool:
    return command is not None and command.exit_code == 0


def _share_passed(evidence: Evidence) -> float:
    tests = evidence.tests
    if evidence.test is None or evidence.test.exit_code is None:
        return 0.0
    explained = evidence.test.exit_code == 0 or tests.failed + tests.errored > 0
    if not tests.recognised or not explained:
        return 1.0 if evidence.test.exit_code == 0 else 0.0
    return tests.passed / tests.ran if tests.ran else 0.0


def _share_covered(suite: ResolvedSuite, evidence: Evidence) -> float:
    threshold, lines = suite.coverage_threshold, evidence.coverage.lines
    if threshold is None or lines is None:
        return 0.0
    return 1.0 if lines >= threshold else lines / threshold


def _shortfalls(suite: ResolvedSuite, evidence: Evidence) -> Iterator[str]:
    if suite.build_command is not None and not _succeeded(evidence.build):
        skipped = "; testCommand was not run" if suite.test_command is not None else ""
        yield f"buildCommand {_ending(suite, evidence.build)}{skipped}."
    elif suite.test_command is not None:
        yield from _test_shortfalls(suite, evidence)
        yield from _coverage_shortfalls(suite, evidence)


def _test_shortfalls(suite: ResolvedSuite, evidence: Evidence) -> Iterator[str]:
    tests, exit_code = evidence.tests, evidence.test.exit_code if evidence.test else None
    told = contradictions(tests, exit_code)
    lost = tests.failed + tests.errored
    if exit_code is None or not tests.recognised:
        if exit_code != 0:
            yield f"testCommand {_ending(suite, evidence.test)}."
    elif told:
        yield from told
    elif lost:
        units = "packages" if all(runner.unit == "packages" for runner in tests.runners) else "tests"
        yield f"{lost} of {tests.ran} {units} failed."
    elif not tests.ran:
        yield "testCommand ran no test."


def _ending(suite: ResolvedSuite, command: CommandResult | None) -> str:
    if command is None:
        return "was not run"
    if command.timed_out:
        return f"ran into its limit of {suite.command_timeout_seconds:g} s"
    return f"ended with exit code {command.exit_code}"


def _coverage_shortfalls(suite: ResolvedSuite, evidence: Evidence) -> Iterator[str]:
    threshold, lines = suite.coverage_threshold, evidence.coverage.lines
    if threshold is None:
        return
    if lines is None:
        yield f"Coverage is not known. {evidence.coverage.note or ''}".rstrip()
    elif lines < threshold:
        yield f"Coverage is {lines:g}%, below the threshold of {threshold:g}%."


def _notes(evidence: Evidence) -> Iterator[str]:
    if evidence.test and evidence.tests.note:
        yield evidence.tests.note


def _achievements(details: CorrectnessDetails) -> Iterator[str]:
    if details.build:
        yield "buildCommand succeeded."
    if details.tests and details.tests.recognised:
        yield f"{details.tests.passed} of {details.tests.ran} tests passed."
    elif details.test:
        yield f"testCommand succeeded. {details.tests.note or '' if details.tests else ''}".rstrip()
    if details.coverage and details.coverage.lines is not None:
        enough = f", at or above the threshold of {details.coverage_threshold:g}%" if details.coverage_threshold else ""
        yield f"Coverage is {details.coverage.lines:g}%{enough}."
