"""What is found without a session: by `zelda check`, `zelda lint` and `zelda context`."""

from typing import Literal

from zelda_ci.domain.base import Document, Record
from zelda_ci.domain.kinds import ItemKind
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


class ContextItem(Record):
    """One thing that steers, with what it takes of the context; sizes in tokens."""

    kind: ItemKind
    name: SafeText
    file: SafeText | None = None
    """Relative to the top of the tree; absent of what has no file there."""
    always: int = 0
    """Size of its part that is in the context of every session from the first request on."""
    on_demand: int = 0
    """Size of its part that comes when it is called, or when a file to which it applies is touched."""
    cut: int = 0
    """Characters by which its description is too long for the listing."""

    @property
    def key(self) -> tuple[ItemKind, str]:
        """What it is recognised by in another commit."""
        return self.kind, self.name


class ContextFinding(Record):
    """Something in the steering files that does not work as it is written."""

    file: SafeText
    line: int
    problem: SafeText
    fix: SafeText


class ContextListing(Document):
    """What a fresh session of one commit is given before the first prompt."""

    commit: SafeText | None = None
    """Absent where it is a plain folder or has uncommitted work."""
    model: SafeText
    window: int
    """Size of the model's context window, in tokens."""
    own: int
    """Size of Claude Code's own part: its system prompt and tools."""
    is_estimated: bool
    """True where no API counted the tokens."""
    items: tuple[ContextItem, ...] = ()
    findings: tuple[ContextFinding, ...] = ()

    @property
    def always(self) -> int:
        """Size of all items that are always in the context, without Claude Code's own part."""
        return sum(item.always for item in self.items)


class ContextReport(Document):
    """A listing, beside the one of the commit it is compared with."""

    head: ContextListing
    base: ContextListing | None = None
