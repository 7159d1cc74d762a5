"""CLAUDE.md files, what they import, and the AGENTS.md files that take their place."""

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from zelda_ci.domain import globs
from zelda_ci.domain.manifest import ItemKind
from zelda_ci.execution.manifest.findings import Findings
from zelda_ci.execution.manifest.tree import Missing, Unfit

DEEPEST_IMPORT = 4
MOST_IMPORTS = 100

NAMES = ("CLAUDE.md", ".claude/CLAUDE.md")
FALLBACKS = ("AGENTS.md", ".claude/AGENTS.md")
LOCAL = "CLAUDE.local.md"

_IMPORT = re.compile(r"(?:^|\s)@((?:[^\s\\]|\\ )+)", re.MULTILINE)
_NO_TEXT = re.compile(
    r"^```.*?(?:^```|\Z)|^~~~.*?(?:^~~~|\Z)|<!--.*?(?:-->|\Z)|`[^`\n]*`|^(?: {4}|\t).*?$", re.DOTALL | re.MULTILINE
)


@dataclass
class Memory:
    """Reads the CLAUDE.md files of one folder after the other."""

    findings: Findings
    excluded: Sequence[str]
    _known: set[str] = field(default_factory=set)

    def add_chain(self, folders: Sequence[str]) -> None:
        """What is there from the start: of the project's folder and those above it."""
        written = [name for folder in folders for name in NAMES if self._has_text(_in(folder, name))]
        local = [_in(folder, LOCAL) for folder in folders if self.findings.tree.exists(_in(folder, LOCAL))]
        for folder in folders:
            for name in NAMES:
                self._add(_in(folder, name))
            for name in FALLBACKS:
                instead = written[0] if written else local[0] if local else None
                self._add(_in(folder, name), problem=instead and f"{instead} is there, and takes its place")
        for file in local:
            self._add(file, problem="it is one developer's own, and only what a project shares is tested")

    def add_below(self, folder: str) -> None:
        """What waits for files of a folder further down."""
        written = [name for name in NAMES if self._has_text(_in(folder, name))]
        for name in NAMES if written else FALLBACKS:
            self._add(_in(folder, name), below=folder)

    def _add(self, file: str, *, below: str = "", problem: str | None = None) -> None:
        try:
            text = self.findings.tree.read(file)
        except Missing:
            return
        except Unfit as unfit:
            self.findings.add(ItemKind.MEMORY, file, file, problem=f"{unfit}")
            return
        if globs.matches(self.excluded, file):
            problem = "the project's settings exclude it (claudeMdExcludes)"
        self._found(file, text, below, problem)
        if not problem:
            self._imports(file, text, below, 1)

    def _imports(self, importer: str, text: str, below: str, depth: int) -> None:
        for path in dict.fromkeys(_mentioned(text)):
            file = posixpath.normpath(posixpath.join(posixpath.dirname(importer), path))
            if file in self._known or len(self._known) > MOST_IMPORTS:
                continue
            if path.startswith(("/", "~")) or file.startswith(".."):
                self._missed(importer, path, path, "it lies outside the project, which nobody can approve in a test")
            elif content := self._imported(importer, path, file):
                problem = f"it is imported more than {DEEPEST_IMPORT} files deep" if depth > DEEPEST_IMPORT else None
                self._found(file, content, below, problem, f"imported by {importer}")
                if not problem:
                    self._imports(file, content, below, depth + 1)

    def _imported(self, importer: str, path: str, file: str) -> str | None:
        try:
            return self.findings.tree.read(file)
        except Unfit as problem:
            # An @ begins many words that are no import: only what is surely meant as a file is worth a finding.
            if path.endswith(".md"):
                self._missed(importer, path, file, str(problem))
            return None

    def _missed(self, importer: str, path: str, file: str, problem: str) -> None:
        if path.endswith((".md", ".txt")):
            self._known.add(file)
            self.findings.add(ItemKind.MEMORY, file, importer, description=f"imported by {importer}", problem=problem)

    def _found(self, file: str, text: str, below: str, problem: str | None, described: str | None = None) -> None:
        self._known.add(file)
        self.findings.add(
            ItemKind.MEMORY,
            file,
            file,
            description=described,
            text=text.strip(),
            below=below,
            announced=False,
            problem=problem,
        )

    def _has_text(self, file: str) -> bool:
        try:
            return bool(self.findings.tree.read(file).strip())
        except Unfit:
            return False


def _mentioned(text: str) -> Iterator[str]:
    """Paths after an @ in running text: not in code, not in comments."""
    for found in _IMPORT.finditer(_NO_TEXT.sub("", text)):
        yield found[1].replace("\\ ", " ").partition("#")[0]


def _in(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
