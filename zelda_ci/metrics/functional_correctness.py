"""Functional correctness: build, tests and coverage of the code that a session left, and the score."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from zelda_ci.domain.details import CommandResult, CorrectnessDetails, CoverageSummary, TestSummary
from zelda_ci.domain.measures import Metric
from zelda_ci.domain.run import EvalContext
from zelda_ci.domain.session import SessionStatus
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.domain.workspace import Workspace
from zelda_ci.errors import ConfigError
from zelda_ci.metrics.base import CommandRequest, Outcome, Scored, Services, Unscored
from zelda_ci.process import OutputBuffer
from zelda_ci.test_output.coverage import COVERAGE_REPORTS
from zelda_ci.test_output.reading import COVERAGE, TESTS, contradictions, find
from zelda_ci.test_output.reports import TEST_REPORTS

WEIGHTS = {"build": 40.0, "tests": 60.0}
WEIGHTS_WITH_COVERAGE = {"build": 30.0, "tests": 50.0, "coverage": 20.0}
# Of 100: one failed test of ten thousand must not round to the full score.
MAX_SCORE_WITHOUT_PASS = 99.0
MAX_PART_OF_SOME = 99.99
# Of what tests print: as much as can be read in a few seconds.
MAX_READ_BYTES = 8 << 20
# What shells and launchers mean by an exit code. Other programs hardly use these.
UNUSABLE = {126: "not executable", 127: "not found"}
ABANDONED = {
    SessionStatus.FAILED: "The session failed, so build and tests were not run.",
    SessionStatus.INTERRUPTED: "The run was interrupted, so build and tests were not run to their end.",
}


@dataclass(frozen=True)
class CommandEvidence:
    """What the commands showed; absent is what is not configured, or was not reached."""

    build: CommandResult | None = None
    test: CommandResult | None = None
    tests: TestSummary = field(default_factory=TestSummary)
    coverage: CoverageSummary = field(default_factory=CoverageSummary)
    notes: tuple[str, ...] = ()


def weigh(suite: ResolvedSuite, evidence: CommandEvidence) -> tuple[float, CorrectnessDetails]:
    """Score from 0 to 100, the weighted mean of the parts that are configured, and what it rests on.

    `build` counts 100 or 0. `tests` counts the share of tests that passed among those that ran; where the numbers are
    not known, or do not explain why the command failed, the exit code decides. `coverage` counts 100 from the threshold
    on, below it the share of it that was reached. A command that did not end in time, or was not run, counts 0.
    """
    threshold, lines = suite.coverage_threshold, evidence.coverage.lines
    table = WEIGHTS if threshold is None else WEIGHTS_WITH_COVERAGE
    commands = {"build": suite.build_command, "tests": suite.test_command, "coverage": suite.test_command}
    weights = {part: weight for part, weight in table.items() if commands[part] is not None}
    parts = {
        "build": 100.0 * _succeeded(evidence.build),
        "tests": 100.0 * _share_passed(evidence),
        # Without a threshold this part has no weight.
        "coverage": 0.0 if lines is None else 100.0 if lines >= (threshold or 0) else 100.0 * lines / (threshold or 1),
    }
    total = sum(weights.values())
    shortfalls = tuple(_shortfalls(suite, evidence))
    details = CorrectnessDetails(
        passed=not shortfalls,
        shortfalls=shortfalls,
        build=evidence.build,
        test=evidence.test,
        tests=evidence.tests if evidence.test else None,
        coverage=evidence.coverage if "coverage" in weights or evidence.coverage.format else None,
        coverage_threshold=threshold if "coverage" in weights else None,
        # Never up to the full score: 99999 of 100000 tests are not all.
        parts={part: 100.0 if parts[part] >= 100 else min(round(parts[part], 2), MAX_PART_OF_SOME) for part in weights},
        weights={part: round(100 * weight / total, 2) for part, weight in weights.items()},
        notes=(*evidence.notes, *([evidence.tests.note] if evidence.test and evidence.tests.note else [])),
    )
    score = sum(weights[part] * parts[part] for part in weights) / total
    return min(score, 100.0 if details.passed else MAX_SCORE_WITHOUT_PASS), details


def reasoning(details: CorrectnessDetails) -> str:
    reached = ["buildCommand succeeded."] if details.build else []
    if details.tests and details.tests.recognised:
        reached.append(f"{details.tests.passed} of {details.tests.ran} tests passed.")
    elif details.test:
        reached.append(f"testCommand succeeded. {details.tests.note or '' if details.tests else ''}".rstrip())
    if details.coverage and details.coverage.lines is not None:
        enough = f", at or above the threshold of {details.coverage_threshold:g}%" if details.coverage_threshold else ""
        reached.append(f"Coverage is {details.coverage.lines:g}%{enough}.")
    return " ".join(details.shortfalls or reached)


def _succeeded(command: CommandResult | None) -> bool:
    return command is not None and command.exit_code == 0


def _share_passed(evidence: CommandEvidence) -> float:
    tests = evidence.tests
    if evidence.test is None or evidence.test.exit_code is None or tests.unclear:
        return 0.0
    is_explained = _succeeded(evidence.test) or tests.failed + tests.errored > 0
    if not tests.recognised or not is_explained:
        return float(_succeeded(evidence.test))
    return tests.passed / tests.ran if tests.ran else 0.0


def _shortfalls(suite: ResolvedSuite, evidence: CommandEvidence) -> Iterator[str]:
    if suite.build_command is not None and not _succeeded(evidence.build):
        skipped = "; testCommand was not run" if suite.test_command is not None else ""
        yield f"buildCommand {ending(suite, evidence.build)}{skipped}."
        return
    if suite.test_command is None:
        return
    tests, exit_code = evidence.tests, evidence.test.exit_code if evidence.test else None
    if exit_code is None or not (tests.recognised or tests.unclear):
        if exit_code != 0:
            yield f"testCommand {ending(suite, evidence.test)}."
    elif conflicts := contradictions(tests, exit_code):
        yield from conflicts
    elif lost := tests.failed + tests.errored:
        units = "packages" if all(runner.unit == "packages" for runner in tests.runners) else "tests"
        yield f"{lost} of {tests.ran} {units} failed."
    elif not tests.ran:
        yield "testCommand ran no test."
    threshold, lines = suite.coverage_threshold, evidence.coverage.lines
    if threshold is not None and lines is None:
        yield f"Coverage is not known. {evidence.coverage.note or ''}".rstrip()
    elif threshold is not None and lines is not None and lines < threshold:
        yield f"Coverage is {lines:g}%, below the threshold of {threshold:g}%."


def ending(suite: ResolvedSuite, command: CommandResult | None) -> str:
    """How a command ended, after its name in a sentence."""
    if command is None:
        return "was not run"
    if command.timed_out:
        return f"ran into its limit of {suite.command_timeout_seconds:g} s"
    return f"ended with exit code {command.exit_code}"


class FunctionalCorrectness:
    """Build and tests by the suite's own commands, one after the other; needs no judge."""

    metric = Metric.FUNCTIONAL_CORRECTNESS
    version = "2"

    def __init__(self, services: Services) -> None:
        self._bench, self._redact = services.commands, services.redact

    async def evaluate(self, context: EvalContext) -> Outcome:
        """Run the commands and score what they show."""
        suite, workspace = context.suite, context.workspace
        if suite.build_command is None and suite.test_command is None:
            return Unscored("not configured: the suite has neither buildCommand nor testCommand")
        if reason := ABANDONED.get(context.transcript.status):
            return Unscored(reason)
        if workspace is None:
            return Unscored("The workspace is gone, so build and tests could not be run.", failed=True)
        if context.unready:
            score, details = weigh(suite, CommandEvidence(notes=(context.unready,)))
            return Scored(score, f"{context.unready} {reasoning(details)}", details)
        build = await self.build(suite, workspace)
        is_built = suite.build_command is None or _succeeded(build)
        score, details = weigh(suite, await self.test(suite, workspace, build) if is_built else CommandEvidence(build))
        return Scored(score, reasoning(details), details)

    async def build(self, suite: ResolvedSuite, workspace: Workspace) -> CommandResult | None:
        """Run the build, where the suite has one; raises ConfigError where it cannot be run here."""
        if suite.build_command is None:
            return None
        order = CommandRequest("build", suite.build_command, suite.command_timeout_seconds)
        build = (await self._bench.run(workspace, order)).result.in_brief(self._redact)
        check_usable("buildCommand", build, workspace.confinement.environment)
        return build

    async def test(self, suite: ResolvedSuite, workspace: Workspace, build: CommandResult | None) -> CommandEvidence:
        """Run the tests, where the suite has some, and read what they say; raises ConfigError as `build` does."""
        if suite.test_command is None:
            return CommandEvidence(build)
        reports = {TESTS: suite.test_report or TEST_REPORTS, COVERAGE: suite.coverage_report or COVERAGE_REPORTS}
        printed = OutputBuffer(MAX_READ_BYTES)
        order = CommandRequest("test", suite.test_command, suite.command_timeout_seconds, reports, printed)
        ran = await self._bench.run(workspace, order)
        result, notes = ran.result.in_brief(self._redact), tuple(str(self._redact(note)) for note in ran.notes)
        evidence = CommandEvidence(build, result, notes=notes)
        # What a runner left that was ended is no result.
        if result.exit_code is not None:
            found = await find(result.exit_code, printed, ran.written, self._redact)
            evidence = CommandEvidence(build, result, found.tests, found.coverage, notes)
        # A runner that counted failures did run: some end with the number of failed tests.
        if not evidence.tests.failed + evidence.tests.errored:
            check_usable("testCommand", result, workspace.confinement.environment)
        return evidence


def check_usable(key: str, done: CommandResult, environment: Mapping[str, str]) -> None:
    """Raise ConfigError where a program could not be found or started, which says nothing of the code."""
    if done.exit_code in UNUSABLE:
        last_line = done.output.rstrip().rpartition("\n")[2]
        raise ConfigError(
            f"{key} cannot be run ({UNUSABLE[done.exit_code]}, exit code {done.exit_code}): {done.command}: "
            f"{last_line or 'no output'}. PATH in the run: {environment.get('PATH', '')}",
            hint="Install what is missing where PATH leads, or let setupCommand do it: what a session has installed is "
            "not there for build and tests.",
            code="COMMAND_NOT_FOUND",
        )
