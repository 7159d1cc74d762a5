"""What a scan has found so far, each finding redacted and cut to size as it comes."""

from dataclasses import dataclass, field
from typing import Any

from zelda_ci.domain.manifest import ItemKind, ManifestItem
from zelda_ci.execution.manifest.tree import Tree, Unfit
from zelda_ci.redact import Redactor, SafeText

MOST_ITEMS = 500
LONGEST_DESCRIPTION = 1536
"""Claude Code's own limit for what it tells the model of a skill."""

LONGEST_TEXT = 10_000
LONGEST_NAME = 300
MOST_GLOBS = 50


@dataclass
class Findings:
    """Collects entries of the manifest."""

    tree: Tree
    redact: Redactor
    items: list[ManifestItem] = field(default_factory=list)
    notes: list[SafeText] = field(default_factory=list)

    def add(self, kind: ItemKind, name: str, file: str, **facts: Any) -> None:
        """Keep a finding; `facts` are fields of `ManifestItem` as plain text."""
        if len(self.items) >= MOST_ITEMS:
            return
        fields = {key: self._safe(key, value) for key, value in facts.items()}
        self.items.append(ManifestItem(kind=kind, name=self._cut(name), file=self._cut(file), **fields))
        if len(self.items) == MOST_ITEMS:
            self.note(f"Only the first {MOST_ITEMS} skills, rules and other items are listed.")

    def note(self, sentence: str) -> None:
        """Keep what the user should know about the scan itself."""
        self.notes.append(self._cut(sentence, LONGEST_DESCRIPTION))

    def text(self, kind: ItemKind, name: str, file: str) -> str | None:
        """The text of a file; where it cannot be read, that is the finding."""
        try:
            return self.tree.read(file)
        except Unfit as problem:
            self.add(kind, name, file, problem=f"{problem}")
            return None

    def _safe(self, key: str, value: Any) -> Any:
        match value:
            case str():
                return self._cut(value, LONGEST_TEXT if key == "text" else LONGEST_DESCRIPTION)
            case tuple():
                return tuple(self._cut(item) for item in value[:MOST_GLOBS])
            case _:
                return value

    def _cut(self, text: str, limit: int = LONGEST_NAME) -> SafeText:
        # Redacted before it is cut: half a secret would not be known as one.
        safe = self.redact(text)
        return safe if len(safe) <= limit else self.redact(safe[: limit - 1] + "…")
