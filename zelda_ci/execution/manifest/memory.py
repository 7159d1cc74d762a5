"""CLAUDE.md files, the AGENTS.md files in their place, rules, and what both import."""

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from zelda_ci.domain.kinds import CLAUDE, KINDS, MEMORY_FALLBACKS, MEMORY_FILES, MEMORY_LOCAL, ItemKind
from zelda_ci.execution.manifest.findings import ScanFindings
from zelda_ci.execution.manifest.front_matter import COMMENT, MarkdownDocument, parse
from zelda_ci.execution.manifest.settings import NO_MEMORY, memory_excluded
from zelda_ci.execution.manifest.tree import Unfit
from zelda_ci.files import globs

MAX_IMPORT_DEPTH = 4

EXCLUDED = f"the project's settings exclude it (claudeMdExcludes or {NO_MEMORY})"
IMPORTED_BY = "imported by "
TWICE = "it is the same file as one that is loaded already"
NAMES, FALLBACKS = ((*names, *(f"{CLAUDE}/{name}" for name in names)) for names in (MEMORY_FILES, MEMORY_FALLBACKS))
(LOCAL,) = MEMORY_LOCAL

# Endings of files that Claude Code imports, besides none.
TEXT_FILES = frozenset(
    """
    adoc asciidoc astro bash bat c cc cfg cjs clj cljc cljs cmake cmd conf config cpp cs css csv cts cxx dart diff edn
    ejs elm env erb erl ex exs f f90 f95 fish for go gql gradle graphql h hbs hpp hrl hs htm html hxx ini jade java js
    json jsx kt kts latex less lhs lock log lua make makefile md mjs ml mli mts org patch php pl pm properties proto ps1
    pug py pyi pyw r rake rb rs rst sass sbt scala scss sh sql svelte swift tex text toml ts tsx txt vue xml yaml yml
    zsh
    """.split()  # noqa: SIM905
)
# A word with an @ before it; a blank in it has a backslash.
_IMPORT = re.compile(r"(?:^|\s)@((?:[^\s\\]|\\ )+)")
_PATH = re.compile(r"[a-zA-Z0-9._-]|~/|/.")
# Blocks alone: what is in them is parsed where it may name a file.
_MARKDOWN = MarkdownIt("commonmark").disable(["inline", "text_join"])


class Memory:
    """Reads the CLAUDE.md files and rules of one folder after the other."""

    def __init__(self, findings: ScanFindings) -> None:
        self.findings = findings
        self._visited = set[str]()
        """Files without links."""

    def add_chain(self, folders: Sequence[str]) -> None:
        """Add what is there from the start: of the project's folder and those above it."""
        own = [file for folder in folders for file in _in(folder, NAMES) if self._has_text(file)]
        local = [posixpath.join(folder, LOCAL) for folder in folders]
        instead = next(iter((*own, *filter(self.findings.tree.exists, local))), None)
        for folder in folders:
            self._add(_in(folder, NAMES))
            self._add(_in(folder, FALLBACKS), problem=instead and f"{instead} is there, and takes its place")
        self._add(local, problem="it is one developer's own, and only what a project shares is tested")

    def add_below(self, folder: str) -> None:
        """Add what waits for files of a folder further down."""
        has_memory = any(map(self._has_text, _in(folder, NAMES)))
        self._add(_in(folder, NAMES if has_memory else FALLBACKS), below=folder)

    def add_rules(self, base: str, *, below: str = "") -> None:
        """Add the rules of the `.claude` folder in `base`; what they import is there from the start."""
        for file in self.findings.tree.files(posixpath.join(base, CLAUDE, KINDS[ItemKind.RULE].folder), ".md"):
            if document := self.findings.document(ItemKind.RULE, file, file):
                problem = TWICE if self.findings.tree.real(file) in self._visited else None
                facts: dict[str, Any] = {"description": document.first_line, "paths": document.paths, "base": base}
                self._add_document(ItemKind.RULE, file, document, below=below, problem=problem, **facts)

    def _add(self, files: Iterable[str], **facts: Any) -> None:
        tree = self.findings.tree
        for file in files:
            is_new = tree.exists(file) and tree.real(file) not in self._visited
            if is_new and (document := self.findings.document(ItemKind.MEMORY, file, file)):
                self._add_document(ItemKind.MEMORY, file, document, **facts)

    def _add_document(
        self, kind: ItemKind, file: str, document: MarkdownDocument, depth: int = 0, **facts: Any
    ) -> None:
        """Add a file that was read, and what it imports; `depth` files import each other up to it."""
        self._visited.add(self.findings.tree.real(file))
        if globs.matches(memory_excluded(self.findings.settings), file):
            facts["problem"] = EXCLUDED
        self.findings.add(kind, file, file, text=document.shown, announced=False, **facts)
        if not facts.get("problem"):
            self._imports(file, document.body, facts.get("below", ""), depth + 1)

    def _imports(self, importer: str, text: str, below: str, depth: int) -> None:
        # They begin where the file really lies.
        folder, described = posixpath.dirname(self.findings.tree.real(importer)), f"{IMPORTED_BY}{importer}"
        for path in dict.fromkeys(mentioned(text)):
            file, content, problem = posixpath.normpath(posixpath.join(folder, path)), "", None
            # Imports may go in circles.
            if self.findings.tree.real(file) in self._visited:
                continue
            if path.startswith(("/", "~")) or file.startswith(".."):
                file, problem = path, "it lies outside the project, which cannot be approved in a test run"
            else:
                try:
                    content = self.findings.tree.read(file)
                except Unfit as unfit:
                    problem = f"{unfit}"
            if content:
                if (ending := PurePosixPath(file).suffix.lower()) and ending[1:] not in TEXT_FILES:
                    problem = "Claude Code imports no files with this ending"
                elif depth > MAX_IMPORT_DEPTH:
                    problem = f"it is imported more than {MAX_IMPORT_DEPTH} files deep"
                facts = {"description": described, "below": below, "problem": problem}
                self._add_document(ItemKind.MEMORY, file, parse(content), depth, **facts)
            # An @ begins many words that are no import: only what is surely meant as a file is worth a finding.
            elif problem and path.endswith(".md"):
                self._visited.add(file)
                self.findings.add(ItemKind.MEMORY, file, importer, description=described, problem=problem)

    def _has_text(self, file: str) -> bool:
        with suppress(Unfit):
            return bool(parse(self.findings.tree.read(file)).shown)
        return False


def _in(folder: str, names: Iterable[str]) -> list[str]:
    return [posixpath.join(folder, name) for name in names]


def mentioned(text: str) -> Iterator[str]:
    """Yield paths after an @ in the running text of Markdown and beside comments: not in code or other HTML."""
    references: dict[str, Any] = {}
    for block in _MARKDOWN.parse(text, references) if "@" in text else ():
        for words in _words(block, references) if "@" in block.content else ():
            for match in _IMPORT.finditer(words):
                path = match[1].partition("#")[0].replace("\\ ", " ")
                if _PATH.match(path):
                    yield path


def _words(block: Token, references: dict[str, Any]) -> Iterator[str]:
    """Yield texts of a block, from one mark to the next."""
    parts = [block] if block.type == "html_block" else []
    if block.type == "inline":
        _MARKDOWN.inline.parse(block.content, _MARKDOWN, references, parts)
    words = ""
    for part in parts:
        if part.type == "text":
            words += part.content
        elif part.type == "text_special" and not (part.info == "escape" and part.content != part.markup):
            words += part.markup
        else:
            yield words
            words = ""
            is_comment = part.content.lstrip().startswith("<!--") and "-->" in part.content
            if part.type in ("html_block", "html_inline") and is_comment:
                yield COMMENT.sub("", part.content)
    yield words
