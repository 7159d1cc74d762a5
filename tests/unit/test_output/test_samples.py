"""Outputs that no reader was written for: how many are read, and that nothing false is stated about the others."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.builders import suite
from zelda_ci.domain.details import CommandResult, TestSummary
from zelda_ci.metrics.functional_correctness import CommandEvidence, weigh
from zelda_ci.redact import Redactor
from zelda_ci.test_output.coverage import read_coverage
from zelda_ci.test_output.reading import Findings, read_tests
from zelda_ci.test_output.reports import ReportFile
from zelda_ci.test_output.tally import Output

FOLDER = Path(__file__).parents[2] / "data/test_output_samples"
REDACT = Redactor()


class Verdict(StrEnum):
    """How a reading compares to what may be stated; the worst one that applies."""

    FALSE_GREEN = "false green"
    WRONG = "wrong"
    UNREAD = "unread"
    RIGHT = "right"


@dataclass(frozen=True)
class Counts:
    """What a reading states. A failed test and a broken one are both lost: runners draw that line differently."""

    passed: int
    lost: int
    skipped: int

    @classmethod
    def expected(cls, parts: dict[str, int]) -> "Counts":
        return cls(parts["passed"], parts["failed"] + parts["errored"], parts["skipped"])

    @classmethod
    def stated(cls, summary: TestSummary) -> "Counts | None":
        """What was read; nothing where nothing was recognised."""
        if not summary.recognised:
            return None
        return cls(summary.passed, summary.failed + summary.errored, summary.skipped)


@dataclass(frozen=True, eq=False)
class Sample:
    """One output. `expected` is an entry of expected.yaml, see README.md beside it."""

    runner: str
    name: str
    expected: dict[str, Any]
    output: bytes
    reports: tuple[ReportFile, ...]

    def __str__(self) -> str:
        return f"{self.runner}/{self.name}"

    @property
    def exit_code(self) -> int:
        return int(self.expected["exit_code"])

    @property
    def allowed(self) -> list[Counts]:
        """Counts that are true of it."""
        counts = self.expected["counts"]
        known = [counts] if isinstance(counts, dict) else []
        return [Counts.expected(parts) for parts in (*known, *self.expected.get("may_state", ()))]

    def read(self) -> Findings:
        output = Output(self.output)
        return Findings(read_tests(output, self.reports, self.exit_code, REDACT), read_coverage(output, self.reports))

    def verdict(self, found: Findings) -> Verdict:
        """How a reading of it compares to what may be stated, of the tests and of their coverage."""
        made = {self._of_tests(found.tests), self._of_coverage(found.coverage.lines)}
        return next(verdict for verdict in Verdict if verdict in made)

    def _of_coverage(self, lines: float | None) -> Verdict:
        """Told apart only where the sample is about it."""
        allowed = self.expected.get("coverage")
        if allowed is None or lines in allowed or (lines is None and "none" in allowed):
            return Verdict.RIGHT
        return Verdict.UNREAD if lines is None else Verdict.WRONG

    def _of_tests(self, summary: TestSummary) -> Verdict:
        stated = Counts.stated(summary)
        if stated is None:
            if self._is_lost and self._passes(summary):
                return Verdict.FALSE_GREEN
            return Verdict.RIGHT if self._rightly_unread(summary) else Verdict.UNREAD
        if not self.expected.get("green") and self._passes(summary):
            return Verdict.FALSE_GREEN
        if self.expected["counts"] == "none":
            return Verdict.RIGHT if not summary.ran else Verdict.WRONG
        return Verdict.RIGHT if stated in self.allowed else Verdict.WRONG

    @property
    def _is_lost(self) -> bool:
        """Whether no test ran, or some certainly failed: a check that is green says something false."""
        return self.expected["counts"] == "none" or (bool(self.allowed) and all(counts.lost for counts in self.allowed))

    def _rightly_unread(self, summary: TestSummary) -> bool:
        """Whether there is nothing that must be read: no counts, or no tests and a check that is not green."""
        counts = self.expected["counts"]
        return counts == "unknown" or (counts == "none" and not self._passes(summary))

    def _passes(self, summary: TestSummary) -> bool:
        """Whether a check that rests on these numbers would be green."""
        ended = CommandResult(
            command=REDACT("make test"), exit_code=self.exit_code, seconds=1, output=REDACT(""), output_bytes=0
        )
        return weigh(suite(test_command="make test"), CommandEvidence(test=ended, tests=summary))[1].passed


def samples() -> Iterator[Sample]:
    for file in sorted(FOLDER.glob("*/expected.yaml")):
        for name, expected in yaml.load(file.read_text("utf-8"), yaml.CSafeLoader).items():
            output = file.with_name(f"{name}.txt").read_bytes()
            kept = file.with_name(f"{name}.reports")
            paths = sorted(path for path in kept.rglob("*") if path.is_file())
            reports = tuple(ReportFile(path.relative_to(kept).as_posix(), path.read_bytes()) for path in paths)
            yield Sample(file.parent.name, name, expected, output, reports)


@pytest.mark.parametrize("part", range(3))
def test_everything_is_read_and_nothing_false_is_stated(part: int) -> None:
    found = {str(sample): sample.verdict(sample.read()) for sample in list(samples())[part::3]}
    others = {name: made for name, made in found.items() if made is not Verdict.RIGHT}
    # Its output lies in files that are no reports of tests.
    assert others in ({}, {"gotestsum/failed": Verdict.UNREAD})
