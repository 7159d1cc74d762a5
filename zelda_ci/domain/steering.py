"""Which of the files that steer Claude Code a session felt: loaded, used, missed, broke; and which files it touched."""

from dataclasses import dataclass
from typing import Literal

from zelda_ci.domain.base import Record
from zelda_ci.domain.kinds import ItemKind
from zelda_ci.redact import SafeText


class Unit(Record):
    """One thing that steers: a skill, a rule, a CLAUDE.md file and so on."""

    kind: ItemKind
    path: SafeText
    """Of its file, from the top of the tested tree; a skill's is its SKILL.md."""
    name: SafeText
    """As the session knows it; of rules and CLAUDE.md files, the file."""


class UnitUse(Record):
    """What became of a unit in one session."""

    unit: Unit
    loaded: bool = False
    """The session had it: of skills and sub-agents name and description, of rules and CLAUDE.md files the text."""
    used: bool = False
    """It was called, its file was read, or the judge says that it applied."""
    missed: bool = False
    """The judge says that it should have been used."""
    broken: bool = False
    """The judge says that a rule was broken, or a tool misused or its instructions ignored."""
    problem: SafeText | None = None
    """Of a plugin that the project wants: why the session has it not, or not all of it."""


class SuiteUse(Record):
    """In how many trials of a suite a unit played which part."""

    suite: str
    loaded: int = 0
    used: int = 0
    missed: int = 0
    broken: int = 0


class UnitCoverage(Record):
    """A unit, and the suites that had it."""

    unit: Unit
    touched: bool
    """Whether a suite used, missed or broke it; of what works without a call, whether one had it."""
    suites: tuple[SuiteUse, ...] = ()


class SuiteCoverage(Record):
    """A suite of which trials tell."""

    suite: str
    trials: int
    touches: bool
    """Whether it used, missed or broke anything."""


class SteeringCoverage(Record):
    """Which suites felt which of the files that steer: what none of them touches comes first."""

    schema_version: Literal[1] = 1
    units: tuple[UnitCoverage, ...] = ()
    suites: tuple[SuiteCoverage, ...] = ()
    unknown: tuple[str, ...] = ()
    """Suites that were run, and none of whose trials tells."""


@dataclass(frozen=True)
class SteeringChange:
    """A file that steers Claude Code and that the pull request changes."""

    path: str
    """From the top of the repository."""
    line: int | None = None
    """The first that differs, as the head has it; absent where the file is gone, or its text is not known."""
    suites: frozenset[str] | None = None
    """That may feel it; absent: all."""
    is_gone: bool = False

    def concerns(self, suite: str) -> bool:
        """Whether a suite may feel it."""
        return self.suites is None or suite in self.suites
