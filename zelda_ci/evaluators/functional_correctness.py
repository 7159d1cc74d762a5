"""Whether the code that a session left can be built, passes its tests and is covered by them."""

from collections.abc import Mapping
from typing import Final

from zelda_ci.domain.evaluation import EvalContext, Metric
from zelda_ci.domain.run import CommandResult
from zelda_ci.domain.session import SessionStatus
from zelda_ci.domain.suite import Command, ResolvedSuite
from zelda_ci.domain.workspace import Workspace
from zelda_ci.errors import ConfigError
from zelda_ci.evaluators.base import Outcome, Scored, Unscored
from zelda_ci.evaluators.bench import Bench, Order, Ran, Step
from zelda_ci.evaluators.correctness_score import Evidence, reasoning, weigh
from zelda_ci.redact import Redactor
from zelda_ci.test_output import reading
from zelda_ci.test_output.coverage import reading as coverage
from zelda_ci.test_output.text import Output

TEST_REPORTS = "test"
COVERAGE_REPORTS = "coverage"
UNUSABLE: Final = {126: "not executable", 127: "not found"}
"""What shells and launchers mean by an exit code. Other programs hardly use these."""

ABANDONED: Final = {
    SessionStatus.FAILED: "The session failed, so build and tests were not run.",
    SessionStatus.INTERRUPTED: "The run was interrupted, so build and tests were not run to their end.",
}


class FunctionalCorrectness:
    """Build and tests by the suite's own commands, one after the other; needs no judge."""

    metric: Final = Metric.FUNCTIONAL_CORRECTNESS
    version: Final = "2"

    def __init__(self, bench: Bench, redact: Redactor) -> None:
        self._bench = bench
        self._redact = redact

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
            score, details = weigh(suite, Evidence(notes=(context.unready,)))
            return Scored(score, f"{context.unready} {reasoning(details)}", details)
        score, details = weigh(suite, await self._gather(suite, workspace))
        return Scored(score, reasoning(details), details)

    async def _gather(self, suite: ResolvedSuite, workspace: Workspace) -> Evidence:
        build: CommandResult | None = None
        if suite.build_command is not None:
            order = Order(Step.BUILD, suite.build_command, suite.command_timeout_seconds)
            build = (await self._bench.run(workspace, order)).result.in_brief(self._redact)
            check_usable("buildCommand", build, workspace.confinement.environment)
        if suite.test_command is None or (build and build.exit_code != 0):
            return Evidence(build)
        evidence = self._read(build, await self._bench.run(workspace, _test_order(suite, suite.test_command)))
        # A runner that counted failures did run: some end with the number of failed tests.
        if evidence.test and not evidence.tests.failed + evidence.tests.errored:
            check_usable("testCommand", evidence.test, workspace.confinement.environment)
        return evidence

    def _read(self, build: CommandResult | None, ran: Ran) -> Evidence:
        result, redact = ran.result, self._redact
        notes = tuple(str(redact(note)) for note in ran.notes)
        if result.exit_code is None:  # what an ended runner left is no result
            return Evidence(build, result.in_brief(redact), notes=notes)
        output = Output.marked(result.output, result.gap) if result.gap else Output(result.output)
        tests = reading.read_tests(output, ran.written.get(TEST_REPORTS, ()), result.exit_code, redact)
        covered = coverage.read_coverage(output, ran.written.get(COVERAGE_REPORTS, ()))
        return Evidence(build, result.in_brief(redact), tests, covered, notes)


def check_usable(key: str, done: CommandResult, environment: Mapping[str, str]) -> None:
    """See to it that a command is one that can be run here: what nobody could start says nothing of the code.

    Raises:
        ConfigError: A shell, or whoever else ended with its exit code, could not find or start a program.
    """
    if done.exit_code in UNUSABLE:
        last_line = done.output.rstrip().rpartition("\n")[2]
        raise ConfigError(
            f"{key} cannot be run ({UNUSABLE[done.exit_code]}, exit code {done.exit_code}): {done.command}: "
            f"{last_line or 'no output'}. PATH in the run: {environment.get('PATH', '')}",
            hint="Install what is missing where PATH leads, or let setupCommand do it.",
            code="COMMAND_NOT_FOUND",
        )


def _test_order(suite: ResolvedSuite, command: Command) -> Order:
    reports = {
        TEST_REPORTS: suite.test_report or reading.well_known_reports(),
        COVERAGE_REPORTS: suite.coverage_report or coverage.well_known_reports(),
    }
    return Order(Step.TEST, command, suite.command_timeout_seconds, reports)
