"""What a scan found in a project's files, made safe to keep: items of the manifest, and notes on the scan itself."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from zelda_ci.domain.kinds import ItemKind
from zelda_ci.domain.manifest import ManifestItem, RefusedSetting
from zelda_ci.execution.manifest.front_matter import MarkdownDocument, parse
from zelda_ci.execution.manifest.tree import Missing, Tree, Unfit
from zelda_ci.redact import Redactor, SafeText

# Claude Code's own limit for what it shows the model of a skill.
MAX_DESCRIPTION_LENGTH = 1536
MAX_TEXT_LENGTH = 10_000


class ScanFindings:
    """Reads the files of a tree for a session in one of its folders, and collects entries of the manifest."""

    def __init__(self, top: Path, folder: Path, redact: Redactor) -> None:
        self.tree, self.redact = Tree(top), redact
        self.start = "" if folder == top else folder.relative_to(top).as_posix()
        """Folder of the session, from the top of the tree."""
        self.settings: Mapping[str, Any] = {}
        """The project's."""
        self.refusals: tuple[RefusedSetting, ...] = ()
        """What Claude Code itself says that it does not load."""
        self.items = list[ManifestItem]()
        self.notes = list[SafeText]()
        self._taken = dict[tuple[str, str], str]()
        """Files by what calls them and their name."""

    def add(self, kind: ItemKind, name: str, file: str, **facts: Any) -> None:
        """Keep a finding; `facts` are fields of `ManifestItem` as plain text."""
        fields = {key: self._safe(value, key) for key, value in facts.items()}
        self.items.append(ManifestItem(kind=kind, name=self._safe(name), file=self._safe(file), **fields))

    def note(self, sentence: str) -> None:
        """Keep what the user should know about the scan itself."""
        self.notes.append(self._safe(sentence))

    def refused(self, file: str, entry: str) -> str | None:
        """Return why Claude Code does not load an entry of a settings file, where it says so."""
        found = (each for each in self.refusals if each.file == file and each.concerns(entry))
        return next((f"Claude Code does not load it: {each.problem}" for each in found), None)

    def claim(self, call: str, name: str, file: str) -> str:
        """Take a name for a file, and return the file that has it: another one that came before."""
        return self._taken.setdefault((call, name), file)

    def document(self, kind: ItemKind, name: str, file: str) -> MarkdownDocument | None:
        """Read a document; where it cannot be read, that is the finding."""
        try:
            return parse(self.tree.read(file))
        except Unfit as problem:
            self.add(kind, name, file, problem=f"{problem}")
            return None

    def json_object(self, file: str) -> dict[str, Any]:
        """Read a JSON file that holds an object; anything else is empty, and noted unless the file is missing."""
        try:
            content = json.loads(self.tree.read(file))
        except Missing:
            return {}
        except (Unfit, ValueError, RecursionError) as problem:
            cause = problem if isinstance(problem, Unfit) else "it is not valid JSON"
            if not self.refused(file, ""):
                self.note(f"Nothing in {file} was loaded: {cause}.")
            return {}
        return content if isinstance(content, dict) else {}

    def _safe(self, value: Any, key: str = "") -> Any:
        if isinstance(value, tuple):
            return tuple(map(self._safe, value))
        if not isinstance(value, str):
            return value
        limit = MAX_TEXT_LENGTH if key == "text" else MAX_DESCRIPTION_LENGTH
        # Redacted before it is cut: half a secret would not be known as one.
        safe = self.redact(value)
        return safe if len(safe) <= limit else self.redact(safe[: limit - 1] + "…")
