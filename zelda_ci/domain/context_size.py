"""What a project's steering takes of a session's context: a listing of one commit, and the change between two."""

from zelda_ci.domain.base import Document, Record
from zelda_ci.domain.kinds import ItemKind
from zelda_ci.redact import SafeText


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
    """Characters of its description that are left out of the listing."""

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
