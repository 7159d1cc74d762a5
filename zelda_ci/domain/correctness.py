"""What the suite's own commands showed about the code that a session left."""

from zelda_ci.domain.base import Record
from zelda_ci.domain.run import CommandResult
from zelda_ci.domain.test_run import CoverageSummary, TestSummary


class CorrectnessDetails(Record):
    """Raw numbers behind the functional correctness score. What is not configured, or was not reached, is absent."""

    passed: bool
    """Whether the code was built, its tests ran and passed, and the coverage threshold was reached."""
    shortfalls: tuple[str, ...] = ()
    """Why it did not pass, one sentence each."""
    build: CommandResult | None = None
    test: CommandResult | None = None
    """Not run where the build failed."""
    tests: TestSummary | None = None
    coverage: CoverageSummary | None = None
    coverage_threshold: float | None = None
    """In percent of lines."""
    parts: dict[str, float] = {}
    """Score 0 to 100 of each part that is configured: `build`, `tests`, `coverage`."""
    weights: dict[str, float] = {}
    """Share of each part in the score; together 100."""
    notes: tuple[str, ...] = ()
    """What to know about the numbers."""
