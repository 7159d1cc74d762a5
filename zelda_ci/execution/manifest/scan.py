"""The scan: from the folder in which a session will work, up to the top of the tree and down to its leaves.

CLAUDE.md files, the AGENTS.md files in their place, rules, and what both import are read here, the rest in `folders`.
"""

import posixpath
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any

from zelda_ci.domain.kinds import CLAUDE, KINDS, MEMORY_FALLBACKS, MEMORY_FILES, MEMORY_LOCAL, ItemKind
from zelda_ci.domain.manifest import RefusedSetting, ToolsManifest
from zelda_ci.domain.workspace import Workspace
from zelda_ci.errors import ExecutionError
from zelda_ci.execution.manifest import folders
from zelda_ci.execution.manifest.folders import SteeringFolder
from zelda_ci.execution.manifest.front_matter import MarkdownDocument, mentioned, parse
from zelda_ci.execution.manifest.tree import NO_MEMORY, SERVERS_FILE, SETTINGS_FILE, ScanFindings, Unfit, table
from zelda_ci.files import globs
from zelda_ci.redact import Redactor

# Of those further down: a folder in no repository may be somebody's whole disk.
MAX_FOLDERS = 50_000
# Of a line that is looked for in what a model was sent.
MIN_LINE_LENGTH = 4
MEMORY_NAMES = {CLAUDE, *MEMORY_FILES, *MEMORY_FALLBACKS}
PASSED_OVER = frozenset({".git", CLAUDE, "node_modules"})
MAX_IMPORT_DEPTH = 4

EXCLUDED = f"the project's settings exclude it (claudeMdExcludes or {NO_MEMORY})"
IMPORTED_BY = "imported by "
NAMES, FALLBACKS = ((*names, *(f"{CLAUDE}/{name}" for name in names)) for names in (MEMORY_FILES, MEMORY_FALLBACKS))
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

# Returns, of the texts of settings files and the folder of a session, what Claude Code refuses of them.
Ask = Callable[[Mapping[str, str], str, Redactor], Sequence[RefusedSetting]]


class Memory:
    """Reads the CLAUDE.md files and rules of one folder after the other."""

    def __init__(self, findings: ScanFindings) -> None:
        self.findings = findings
        self._visited = set[str]()
        """Files without links."""

    def add_chain(self, folders: Sequence[str]) -> None:
        """Add what is there from the start: of the project's folder and those above it."""
        own = [file for folder in folders for file in _in(folder, NAMES) if self._has_text(file)]
        local = [file for folder in folders for file in _in(folder, MEMORY_LOCAL)]
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
                is_again = self.findings.tree.real(file) in self._visited
                problem = "it is the same file as one that is loaded already" if is_again else None
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
        if globs.matches(self.findings.memory_excluded(), file):
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
            if path.startswith(("/", "~")) or posixpath.relpath(file, self.findings.start or ".").startswith(".."):
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
            elif problem and path.rstrip(".,:;!?").lower().endswith(".md"):
                self._visited.add(file)
                self.findings.add(ItemKind.MEMORY, file, importer, description=described, problem=problem)

    def _has_text(self, file: str) -> bool:
        with suppress(Unfit):
            return bool(parse(self.findings.tree.read(file)).shown)
        return False


def _in(folder: str, names: Iterable[str]) -> list[str]:
    return [posixpath.join(folder, name) for name in names]


def scan(top: Path, folder: Path, redact: Redactor, ask: Ask | None = None) -> ToolsManifest:
    """Return what the files of a tree offer a session that works in one of its folders; nothing is loaded yet."""
    # Without `ask`, which asks Claude Code itself, only the rules of its files are known.
    findings = ScanFindings(top, folder, redact)
    if ask:
        servers = (posixpath.join(above, SERVERS_FILE) for above in globs.upwards(findings.start))
        contents = {}
        for file in (posixpath.join(findings.start, SETTINGS_FILE), *servers):
            with suppress(Unfit):
                contents[file] = findings.tree.read(file)
        try:
            findings.refusals = tuple(ask(contents, findings.start, redact))
        except ExecutionError as problem:
            findings.note(problem.message)
        for each in findings.refusals:
            findings.note(f"{each.file} is {each.effect}.")
    memory = _add_own(findings)
    for below, inside in _below(findings):
        if CLAUDE in inside:
            SteeringFolder(findings, posixpath.join(below, CLAUDE), below, below).add_documents()
            memory.add_rules(below, below=below)
        if inside & MEMORY_NAMES:
            memory.add_below(below)
    file = posixpath.join(findings.start, SETTINGS_FILE)
    folders.add_hooks(findings, file, findings.settings.get("hooks"))
    return ToolsManifest(
        items=tuple(findings.items),
        refused=findings.refusals,
        notes=tuple(findings.notes),
        workspace=redact(str(top)),
        folder=redact(findings.start),
    )


def memory_lines(workspace: Workspace, redact: Redactor) -> frozenset[str]:
    """Return lines of the CLAUDE.md files that a session has from its start; none where it may have to do without."""
    # Of what the session meets: a setup command may have changed what was tested.
    findings = ScanFindings(workspace.root, workspace.path, redact)
    _add_own(findings)
    is_without = any(it.is_main and it.note == folders.WITHOUT_MEMORY for it in findings.items)
    if is_without or workspace.confinement.environment.get(NO_MEMORY):
        return frozenset()
    own = [it for it in findings.items if it.kind is ItemKind.MEMORY and not (it.problem or it.description)]
    lines = (line.strip() for it in own for line in (it.text or "").splitlines())
    return frozenset(line for line in lines if len(line) >= MIN_LINE_LENGTH)


def _add_own(findings: ScanFindings) -> Memory:
    """Add what the session has by its own folder and those above it; the CLAUDE.md files that are read are returned."""
    file = posixpath.join(findings.start, SETTINGS_FILE)
    values = findings.json_object(file)
    # Of a file that Claude Code drops only the hooks are named, to say that they are not there.
    is_dropped = findings.refused(file, "")
    findings.settings = {"hooks": values.get("hooks")} if is_dropped else values
    # From the session's folder upwards, since of several servers of one name the nearest wins.
    chain, memory = globs.upwards(findings.start), Memory(findings)
    for folder in chain:
        SteeringFolder(findings, posixpath.join(folder, CLAUDE), folder).add_documents()
        memory.add_rules(folder)
        file = posixpath.join(folder, SERVERS_FILE)
        folders.add_servers(findings, file, table(findings.json_object(file), "mcpServers"))
    folders.add_plugins(findings)
    memory.add_chain(chain)
    return memory


def _below(findings: ScanFindings) -> Iterator[tuple[str, set[str]]]:
    """Yield folders further down, the nearest first, with the names of what lies in them."""
    waiting = deque([findings.start])
    for _ in range(MAX_FOLDERS):
        if not waiting:
            return
        folder = waiting.popleft()
        entries = findings.tree.entries(folder)
        if folder != findings.start:
            yield folder, {entry.name for entry in entries}
        own = (entry for entry in entries if entry.is_folder and not entry.is_link)
        waiting += [entry.path for entry in own if entry.name not in PASSED_OVER]
    findings.note(f"Only the first {MAX_FOLDERS:,} folders of the project were searched.")
