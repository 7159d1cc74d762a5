"""Captured runs: what a real runner printed and wrote, and the numbers that its project was made to give."""

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from zelda_ci.domain.details import TestSummary
from zelda_ci.redact import Redactor
from zelda_ci.test_output.reading import read_tests
from zelda_ci.test_output.reports import ReportFile
from zelda_ci.test_output.tally import Output

REDACT = Redactor()
FOLDER = Path(__file__).parents[2] / "data/test_output"
PARTS = ("format", "passed", "failed", "errored", "skipped", "flaky")


@dataclass(frozen=True)
class Fixture:
    name: str
    about: dict[str, Any]
    output: bytes
    reports: tuple[ReportFile, ...]

    @property
    def exit_code(self) -> int:
        return int(self.about["exitCode"])

    @property
    def expected(self) -> list[dict[str, Any]]:
        """What each runner is expected to give; none for output that cannot be recognised."""
        expect = self.about["expect"]
        if expect.get("unrecognised"):
            return []
        return list(expect["runners"]) if "runners" in expect else [expect]

    @cached_property
    def summary(self) -> TestSummary:
        """Of what the runner printed and wrote."""
        return self.read(self.output)

    def read(self, output: bytes) -> TestSummary:
        return read_tests(Output(output), () if self.only_coverage else self.reports, self.exit_code, REDACT)

    @property
    def only_coverage(self) -> bool:
        """Whether its reports tell of coverage, not of tests."""
        return "coverage" in self.about["expect"]


def read(text: str, *reports: tuple[str, str], exit_code: int | None = 0) -> TestSummary:
    """What a command is read to have said that printed this and wrote these reports, by path."""
    return read_tests(Output(text), [ReportFile(path, raw.encode()) for path, raw in reports], exit_code, REDACT)


def fixtures() -> list[Fixture]:
    return [_fixture(path) for path in sorted(FOLDER.glob("*/*.json"))]


def _fixture(path: Path) -> Fixture:
    kept = path.with_suffix(".reports")
    reports = tuple(
        ReportFile(str(file.relative_to(kept)), file.read_bytes()) for file in sorted(kept.rglob("*")) if file.is_file()
    )
    output = path.with_suffix(".txt").read_bytes()
    return Fixture(f"{path.parent.name}/{path.stem}", json.loads(path.read_text()), output, reports)


def numbers(summary: TestSummary) -> list[dict[str, Any]]:
    return [{part: getattr(runner, part) for part in PARTS} for runner in summary.runners]


def expected_numbers(fixture: Fixture) -> list[dict[str, Any]]:
    return [{part: expect[part] for part in PARTS} for expect in fixture.expected]
