"""What functional correctness needs of the world: a place where commands run and leave reports."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from zelda_ci.domain.run import CommandResult
from zelda_ci.domain.suite import Command
from zelda_ci.domain.workspace import Workspace
from zelda_ci.test_output.reports.files import ReportFile


class Step(StrEnum):
    """The commands that decide."""

    BUILD = "build"
    TEST = "test"


@dataclass(frozen=True)
class Order:
    """A command to run; `reports` are globs by kind, relative to the folder where commands work."""

    step: Step
    command: Command
    timeout_seconds: float
    reports: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Ran:
    """How it went, with all output that was kept, and the reports that it wrote, by kind."""

    result: CommandResult
    written: Mapping[str, Sequence[ReportFile]] = field(default_factory=dict)
    notes: Sequence[str] = ()


class Bench(Protocol):
    """Runs the suite's commands in a workspace."""

    async def run(self, workspace: Workspace, order: Order) -> Ran:
        """Run a command to its end or its deadline."""
