"""A command of the suite and what it said about itself: counts of each runner, coverage, and which format said it."""

from typing import Literal

from zelda_ci.domain.base import Record
from zelda_ci.redact import Redactor, SafeText

# A report file; a machine-readable stream in the output; the closing summary that a runner prints.
Source = Literal["report", "stream", "summary"]

# What was counted: `go test` without `-v` tells packages only.
Unit = Literal["tests", "packages"]
LAST_LINES = 20
# Of a command's output: what its result keeps once all of it lies in a file of its own.
LAST_CHARACTERS = 4_000


class CommandResult(Record):
    """One command of the suite: exit code is absent when it was ended by its timeout, or with Zelda."""

    command: SafeText
    exit_code: int | None = None
    timed_out: bool = False
    seconds: float
    output: SafeText
    """Head and tail of what it printed, standard error included; in a stored result the last lines."""
    output_bytes: int
    truncated: bool = False

    def in_brief(self, redact: Redactor) -> "CommandResult":
        """The result with the last lines of its output only, as it is stored."""
        lines = self.output[-LAST_CHARACTERS:].splitlines()[-LAST_LINES:]
        return self.replace(output=redact("\n".join(lines)))


class RunnerCounts(Record):
    """One runner's numbers. A test counts once: `errored` are those that broke outside of an assertion."""

    format: str
    """Name of the recognised format, like `pytest` or `JUnit XML`."""
    source: Source
    unit: Unit = "tests"
    label: SafeText | None = None
    """Prefix of its lines in the output, or folder of its reports, where there are several runners."""
    passed: int = 0
    failed: int = 0
    errored: int = 0
    skipped: int = 0
    """Skipped, pending, ignored, to do, or failing as expected."""
    flaky: int = 0
    """Tests among the passed that passed on a retry, as far as the format tells."""
    failures: tuple[SafeText, ...] = ()
    """Names of the first failed or errored tests."""

    @property
    def total(self) -> int:
        """Tests that are known, run or not."""
        return self.passed + self.failed + self.errored + self.skipped


class TestSummary(Record):
    """Numbers of one test command; no runner means that no format was recognised."""

    __test__ = False  # not a pytest class

    runners: tuple[RunnerCounts, ...] = ()
    note: SafeText | None = None
    """Sentence on why nothing was recognised and how to get counts, or on the numbers."""
    unclear: tuple[SafeText, ...] = ()
    """Signs of a failure, or of a run without an end, that could not be counted: then there are no numbers, and
    whatever the exit code says, it is no pass."""

    @property
    def recognised(self) -> bool:
        return bool(self.runners)

    @property
    def passed(self) -> int:
        return sum(runner.passed for runner in self.runners)

    @property
    def failed(self) -> int:
        return sum(runner.failed for runner in self.runners)

    @property
    def errored(self) -> int:
        return sum(runner.errored for runner in self.runners)

    @property
    def skipped(self) -> int:
        return sum(runner.skipped for runner in self.runners)

    @property
    def flaky(self) -> int:
        return sum(runner.flaky for runner in self.runners)

    @property
    def total(self) -> int:
        return sum(runner.total for runner in self.runners)

    @property
    def ran(self) -> int:
        """Tests that were not skipped. Zero is no success."""
        return self.total - self.skipped

    @property
    def failures(self) -> tuple[SafeText, ...]:
        """Names of failed tests, runner by runner."""
        return tuple(name for runner in self.runners for name in runner.failures)


class CoverageSummary(Record):
    """Share of the code that the tests reached, in percent; without `lines` nothing was recognised."""

    format: str | None = None
    lines: float | None = None
    branches: float | None = None
    note: str | None = None
    """Sentence on why nothing was recognised, and how to get a number."""


class CorrectnessDetails(Record):
    """Raw numbers behind the functional correctness score. What is not configured, or was not reached, is absent."""

    passed: bool
    """True where the code was built, its tests ran and passed, and the coverage threshold was reached."""
    shortfalls: tuple[str, ...] = ()
    """Reasons why it did not pass, one sentence each."""
    build: CommandResult | None = None
    test: CommandResult | None = None
    """Not run where the build failed."""
    tests: TestSummary | None = None
    coverage: CoverageSummary | None = None
    coverage_threshold: float | None = None
    """Threshold in percent of lines."""
    parts: dict[str, float] = {}
    """Score 0 to 100 of each part that is configured: `build`, `tests`, `coverage`."""
    weights: dict[str, float] = {}
    """Share of each part in the score; together 100."""
    notes: tuple[str, ...] = ()
    """Remarks on the numbers."""
