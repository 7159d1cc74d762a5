"""What this machine offers to confine runs with, and what of it a suite gets."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from zelda_ci.domain.suite import IsolationLevel, ResolvedSuite
from zelda_ci.workspace import levels
from zelda_ci.workspace.levels import Offered


@dataclass(frozen=True)
class Isolation:
    """What is there to confine runs with."""

    offered: Offered
    unsafe: bool = False
    """Whether a run may have no isolation at all."""
    programs: Sequence[Path] = ()
    """Programs of Zelda's own that run inside, the CLI above all."""

    def of(self, suite: ResolvedSuite) -> IsolationLevel:
        """The level of a suite's runs.

        Raises:
            ConfigError: It cannot be had.
        """
        settings = suite.isolation
        return levels.choose(self.offered, settings.level, settings.require, unsafe=self.unsafe)
