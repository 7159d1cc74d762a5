"""What `zelda check` finds, which tries what a run needs before a run pays for it, and `zelda lint`."""

from typing import Literal

from zelda_ci.domain.base import Document, Record
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
    """File and line of the command."""
    suites: tuple[str, ...] = ()
    """Names of the suites that it concerns; empty for all."""
    failing: SafeText | None = None
    """What is wrong with a command of the project's, in a sentence; of a warning, what stops no run."""
    output: SafeText | None = None
    """The last lines of what a command printed, where it did not do well."""
    seconds: float = 0.0
    cost_usd: float = 0.0
    remembered: bool = False
    """True where it was tried earlier, on the same commit with the same settings."""


class CheckReport(Document):
    """All checks of one invocation."""

    checks: tuple[Check, ...]
    seconds: float

    @property
    def failures(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if check.status == "failed")

    @property
    def failing(self) -> dict[str, SafeText]:
        """Failing build and tests before any session, by suite."""
        return {suite: check.failing for check in self.warnings if check.failing for suite in check.suites}

    @property
    def warnings(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if check.status == "warning")

    @property
    def exit_code(self) -> int:
        """2 where a check failed, else 0."""
        return 2 if self.failures else 0


class LintFinding(Record):
    """A remark, by a rule of docs/lint.md, on a criterion, a check, a suite or a file that steers."""

    file: str
    """Path from the project's folder."""
    line: int
    rule: str
    subject: str
    """The criterion or check, or the name of the suite or of what steers."""
    reason: str
    instead: tuple[str, ...] = ()
    """Lines of a suite or a command that would be better; empty where none follows mechanically."""


class LintReport(Document):
    """All findings, by place."""

    findings: tuple[LintFinding, ...] = ()
    not_tried: tuple[str, ...] = ()
    """Criteria of which only a judge could say whether a session that does nothing passes them, and none was asked."""
