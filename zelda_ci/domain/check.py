"""What `zelda check` finds: one check is one thing that a run needs, tried before a run pays for it."""

from typing import Literal

from zelda_ci.domain.base import Record
from zelda_ci.redact import SafeText

Status = Literal["passed", "warning", "failed", "skipped"]


class Check(Record):
    """One thing that was tried. A warning stops nothing; a failure means that no run could go well."""

    subject: str
    """`git`, `disk`, `isolation`, `model`, `judge`, or the key of a command."""
    about: SafeText
    """The command or model, or what was found."""
    status: Status
    message: SafeText | None = None
    hint: str | None = None
    origin: str | None = None
    """Where the command stands: file and line."""
    suites: tuple[str, ...] = ()
    """Those that it concerns; empty where it is all."""
    failing: SafeText | None = None
    """What of the project's build or tests fails before any session, where that stops no run."""
    output: SafeText | None = None
    """The last lines of what a command printed, where it did not do well."""
    seconds: float = 0.0
    cost_usd: float = 0.0
    remembered: bool = False
    """Whether it was tried earlier, on the same commit with the same settings."""


class CheckReport(Record):
    """All of one invocation."""

    schema_version: int = 1
    checks: tuple[Check, ...]
    seconds: float

    @property
    def failures(self) -> tuple[Check, ...]:
        """What has to be mended first."""
        return tuple(check for check in self.checks if check.status == "failed")

    @property
    def failing(self) -> dict[str, SafeText]:
        """By suite, what of its build and tests fails before any session."""
        return {suite: check.failing for check in self.checks if check.failing for suite in check.suites}

    @property
    def warnings(self) -> tuple[Check, ...]:
        """What one should know."""
        return tuple(check for check in self.checks if check.status == "warning")

    @property
    def exit_code(self) -> int:
        """That of a configuration that cannot be used, or success."""
        return 2 if self.failures else 0
