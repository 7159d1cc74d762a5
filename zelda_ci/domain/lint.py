"""What `zelda lint` finds."""

from zelda_ci.domain.base import Document, Record


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
