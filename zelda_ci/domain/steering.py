"""Which of the files that steer Claude Code a session felt: loaded, used, missed, broke; and which files it touched."""

from zelda_ci.domain.base import Document, Record
from zelda_ci.domain.kinds import ItemKind
from zelda_ci.redact import SafeText


class Unit(Record):
    """One thing that steers: a skill, a rule, a CLAUDE.md file and so on."""

    kind: ItemKind
    path: SafeText
    """Path of its file from the top of the tested tree; of a skill, the SKILL.md."""
    name: SafeText
    """Name by which the session knows it; for rules and CLAUDE.md files, the file."""


class UnitUse(Record):
    """Use of a unit in one session."""

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
    """Reason why the session lacks a plugin that the project wants, or a part of it."""


class SuiteUse(Record):
    """Number of a suite's trials in which a unit was loaded, used, missed or broken."""

    suite: str
    loaded: int = 0
    used: int = 0
    missed: int = 0
    broken: int = 0


class UnitCoverage(Record):
    """A unit, and the suites that had it."""

    unit: Unit
    touched: bool
    """True where a suite used, missed or broke it, or had it where it works without a call."""
    suites: tuple[SuiteUse, ...] = ()


class SuiteCoverage(Record):
    """A suite with trials that show what it used."""

    suite: str
    trials: int
    touches: bool
    """True where it used, missed or broke anything."""


class SteeringCoverage(Document):
    """Coverage of the files that steer by suites: what none of them touches comes first."""

    units: tuple[UnitCoverage, ...] = ()
    suites: tuple[SuiteCoverage, ...] = ()
    unknown: tuple[str, ...] = ()
    """Suites that were run without a trial that shows what it used."""


class SteeringChange(Record):
    """A file that steers Claude Code and that differs between two sides."""

    path: str
    """Path from the top of the repository."""
    line: int | None = None
    """The first that differs, as the head has it; absent where the file is gone, or its text is not known."""
    suites: tuple[str, ...] | None = None
    """Suites that it may concern; None for all."""
    is_gone: bool = False

    def concerns(self, suite: str) -> bool:
        return self.suites is None or suite in self.suites
