"""The scan: from the folder in which a session will work, up to the top of the tree and down to its leaves."""

import posixpath
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from zelda_ci.domain import kinds
from zelda_ci.domain.kinds import CLAUDE, KINDS, MEMORY_FALLBACKS, MEMORY_FILES, MEMORY_LOCAL, ItemKind
from zelda_ci.domain.manifest import RefusedSetting, ToolsManifest
from zelda_ci.domain.workspace import Workspace
from zelda_ci.errors import ExecutionError
from zelda_ci.execution.manifest import settings
from zelda_ci.execution.manifest.documents import Documents, parse
from zelda_ci.execution.manifest.plugins import add_plugins
from zelda_ci.execution.manifest.settings import NO_MEMORY, ClaudeSettings, json_object
from zelda_ci.execution.manifest.tree import Exhausted, Missing, ScanFindings, Tree, TreeEntry, Unfit
from zelda_ci.files import globs
from zelda_ci.redact import Redactor


def add_servers(
    findings: ScanFindings,
    file: str,
    servers: object,
    settings: ClaudeSettings,
    names: set[str],
    owner: str | None = None,
) -> None:
    """A finding for each server of a file; one in a nearer folder takes the place of one further up."""
    for name, server in servers.items() if isinstance(servers, dict) else ():
        shadowed = name in names
        problem = findings.refused(file, f"mcpServers.{name}") or _problem(name, server, settings)
        if shadowed:
            problem = "a server of the same name in a nearer folder takes its place"
        findings.add(
            ItemKind.MCP_SERVER,
            name,
            file,
            description=_described(server),
            problem=problem,
            shadowed=shadowed,
            owner=owner,
            denied=settings.denials(kinds.server(name)),
        )
        names.add(name)


def _problem(name: str, server: object, settings: ClaudeSettings) -> str | None:
    if name in settings.servers_off:
        return "the project's settings switch it off (disabledMcpjsonServers)"
    if not isinstance(server, dict) or not isinstance(server.get("command") or server.get("url"), str):
        return "neither a command nor a url says how to reach it"
    return None


def _described(server: Any) -> str | None:
    """How it is reached."""
    # Arguments, headers and variables may hold secrets of any shape, and are left out.
    if not isinstance(server, dict):
        return None
    command, url = server.get("command"), server.get("url")
    if isinstance(command, str):
        return f"command: {command}"
    return f"url: {url.partition('?')[0]}" if isinstance(url, str) else None


MAX_IMPORT_DEPTH = 4
MAX_IMPORTS = 400
# Characters in which imports are looked for, in all.
MAX_PARSED = 400_000

EXCLUDED = f"the project's settings exclude it (claudeMdExcludes or {NO_MEMORY})"
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
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
# Blocks alone: what is in them is parsed where it may name a file.
_MARKDOWN = MarkdownIt("commonmark").disable(["inline", "text_join"])


@dataclass
class Memory:
    """Reads the CLAUDE.md files of one folder after the other."""

    findings: ScanFindings
    excluded: Sequence[str]
    _visited: set[str] = field(default_factory=set)
    """Where the files really lie."""
    _parsed: int = 0

    def add_chain(self, folders: Sequence[str]) -> None:
        """What is there from the start: of the project's folder and those above it."""
        memories = [name for folder in folders for name in NAMES if self._has_text(_in(folder, name))]
        local = [_in(folder, LOCAL) for folder in folders if self.findings.tree.exists(_in(folder, LOCAL))]
        for folder in folders:
            for name in NAMES:
                self._add(_in(folder, name))
            for name in FALLBACKS:
                instead = memories[0] if memories else local[0] if local else None
                self._add(_in(folder, name), problem=instead and f"{instead} is there, and takes its place")
        for file in local:
            self._add(file, problem="it is one developer's own, and only what a project shares is tested")

    def add_below(self, folder: str) -> None:
        """What waits for files of a folder further down."""
        memories = [name for name in NAMES if self._has_text(_in(folder, name))]
        for name in NAMES if memories else FALLBACKS:
            self._add(_in(folder, name), below=folder)

    def _add(self, file: str, *, below: str = "", problem: str | None = None) -> None:
        if self.findings.tree.real(file) in self._visited:
            return
        try:
            text = self.findings.tree.read(file)
        except Missing:
            return
        except Unfit as unfit:
            self.findings.add(ItemKind.MEMORY, file, file, problem=f"{unfit}")
            return
        if globs.matches(self.excluded, file):
            problem = EXCLUDED
        self._add_finding(file, text, below, problem)
        if not problem:
            self._imports(file, parse(text).body, below, 1)

    def add_rules(self, base: str, *, below: str = "") -> None:
        """Add the rules of the `.claude` folder in `base`; what they import is there from the start."""
        for file in self.findings.tree.files(_in(base, f"{CLAUDE}/{KINDS[ItemKind.RULE].folder}"), ".md"):
            if (text := self.findings.text(ItemKind.RULE, file, file)) is None:
                continue
            document = parse(text)
            is_twice = self.findings.tree.real(file) in self._visited
            problem = EXCLUDED if globs.matches(self.excluded, file) else TWICE if is_twice else None
            self.findings.add(
                ItemKind.RULE,
                file,
                file,
                description=document.first_line,
                text=_told(text),
                paths=document.paths,
                base=base,
                below=below,
                announced=False,
                problem=problem,
            )
            self._visited.add(self.findings.tree.real(file))
            if not problem:
                self._imports(file, document.body, below, 1)

    def _imports(self, importer: str, text: str, below: str, depth: int) -> None:
        # They begin where the file really lies.
        folder = posixpath.dirname(self.findings.tree.real(importer))
        self._parsed += len(text) if "@" in text else 0
        if self._parsed > MAX_PARSED:
            self.findings.note(f"Imports in {importer} were not looked for: CLAUDE.md files and rules are too long.")
            return
        for path in dict.fromkeys(mentioned(text)):
            file = posixpath.normpath(posixpath.join(folder, path))
            # Imports may go in circles.
            if self.findings.tree.real(file) in self._visited or len(self._visited) > MAX_IMPORTS:
                continue
            if path.startswith(("/", "~")) or file.startswith(".."):
                self._missed(
                    importer, path, path, "it lies outside the project, which cannot be approved in a test run"
                )
            elif content := self._imported(importer, path, file):
                problem = EXCLUDED if globs.matches(self.excluded, file) else None
                if (ending := PurePosixPath(file).suffix.lower()) and ending[1:] not in TEXT_FILES:
                    problem = "Claude Code imports no files with this ending"
                elif depth > MAX_IMPORT_DEPTH:
                    problem = f"it is imported more than {MAX_IMPORT_DEPTH} files deep"
                self._add_finding(file, content, below, problem, f"imported by {importer}")
                if not problem:
                    self._imports(file, parse(content).body, below, depth + 1)

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
            self._visited.add(file)
            self.findings.add(ItemKind.MEMORY, file, importer, description=f"imported by {importer}", problem=problem)

    def _add_finding(self, file: str, text: str, below: str, problem: str | None, described: str | None = None) -> None:
        self._visited.add(self.findings.tree.real(file))
        self.findings.add(
            ItemKind.MEMORY,
            file,
            file,
            description=described,
            text=_told(text),
            below=below,
            announced=False,
            problem=problem,
        )

    def _has_text(self, file: str) -> bool:
        try:
            return bool(_told(self.findings.tree.read(file)))
        except Unfit:
            return False


def _told(text: str) -> str:
    """What the model is told of a file: neither its head nor its comments."""
    return _COMMENT.sub("", parse(text).body).strip()


def mentioned(text: str) -> Iterator[str]:
    """Paths after an @ in the running text of Markdown, and beside comments: not in code, addresses or other HTML."""
    references: dict[str, Any] = {}
    for block in _MARKDOWN.parse(text, references) if "@" in text else ():
        for words in _words(block, references) if "@" in block.content else ():
            for match in _IMPORT.finditer(words):
                path = match[1].partition("#")[0].replace("\\ ", " ")
                if _PATH.match(path):
                    yield path


def _words(block: Token, references: dict[str, Any]) -> Iterator[str]:
    """Texts of a block, from one mark to the next."""
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
                yield _COMMENT.sub("", part.content)
    yield words


def _in(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


MAX_FOLDERS = 4_000
# Of a line that is looked for in what a model was told.
MIN_LINE_LENGTH = 4
MAX_DEPTH = 12
MEMORY_NAMES = {CLAUDE, *MEMORY_FILES, *MEMORY_FALLBACKS}
PASSED_OVER = frozenset({".git", ".claude", "node_modules"})


# Says of the texts of settings files, and the folder of a session, what Claude Code refuses of them.
Ask = Callable[[Mapping[str, str], str, Redactor], Sequence[RefusedSetting]]


def scan(workspace: Workspace, redact: Redactor, ask: Ask | None = None) -> ToolsManifest:
    """What the workspace's files offer, before anything has run in it.

    Nothing is loaded yet: `zelda_ci.domain.manifest` settles that once the session has told what it had.
    """
    return scan_folder(workspace.root, workspace.path, redact, ask)


def memory_lines(workspace: Workspace, redact: Redactor) -> frozenset[str]:
    """Lines of the CLAUDE.md files that a session has from its start; none where it may have been told to do without.

    It reads what the session meets: a setup command may have changed what was tested.
    """
    items = scan(workspace, redact).items
    if workspace.confinement.environment.get(NO_MEMORY) or any(
        it.is_main and "omitClaudeMd" in (it.note or "") for it in items
    ):
        return frozenset()
    own = [it for it in items if it.kind is ItemKind.MEMORY and not (it.problem or it.below or it.description)]
    lines = (line.strip() for it in own for line in (it.text or "").splitlines())
    return frozenset(line for line in lines if len(line) >= MIN_LINE_LENGTH)


def scan_folder(top: Path, folder: Path, redact: Redactor, ask: Ask | None = None) -> ToolsManifest:
    """What the files of a tree offer a session that works in one of its folders.

    Args:
        top: Of the tree.
        folder: Of the session.
        redact: For everything that is found.
        ask: Asks Claude Code itself; without it only the rules of its files are known.
    """
    start = "" if folder == top else folder.relative_to(top).as_posix()
    with Tree(top) as tree:
        findings = ScanFindings(tree, redact)
        try:
            if ask:
                _ask(findings, start, ask)
            _scan_project(findings, start)
        except Exhausted:
            tree.crowded = True
        if tree.crowded:
            findings.note("The project has more files than Zelda looks at: the list may be incomplete.")
    return ToolsManifest(
        items=tuple(findings.items),
        settings=tuple(findings.settings),
        refused=findings.refusals,
        notes=tuple(findings.notes),
        workspace=redact(str(top)),
        folder=redact(start),
    )


def _ask(findings: ScanFindings, start: str, ask: Ask) -> None:
    texts = {}
    for file in settings.settings_files(start):
        with suppress(Unfit):
            texts[file] = findings.tree.read(file)
    try:
        findings.refusals = tuple(ask(texts, start, findings.redact))
    except ExecutionError as problem:
        findings.note(problem.message)
    for each in findings.refusals:
        findings.note(f"{each.file} is {each.effect}.")


def _scan_project(findings: ScanFindings, start: str) -> None:
    # From the session's folder upwards, since of several servers of one name the nearest wins.
    chain = globs.upwards(start)
    settings_file = _in(start, settings.SETTINGS_FILE)
    project = settings.read_settings(findings, settings_file)
    documents = Documents(findings, project)
    memory = Memory(findings, project.memory_excluded)
    server_names: set[str] = set()
    for folder in chain:
        documents.add(folder)
        memory.add_rules(folder)
        file = _in(folder, ".mcp.json")
        add_servers(findings, file, json_object(findings, file).get("mcpServers"), project, server_names)
    for file, servers, prefix, plugin in add_plugins(findings, start, project, documents):
        named = {f"{prefix}{name}": server for name, server in servers.items()}
        add_servers(findings, file, named, project, server_names, plugin)
    memory.add_chain(chain)
    settings.add_hooks(findings, project, settings_file)
    findings.settings += settings.find_settings(findings, project, settings_file)
    for folder, names in _below(findings, start):
        if ".claude" in names:
            documents.add(folder, below=folder)
            memory.add_rules(folder, below=folder)
        if names & MEMORY_NAMES:
            memory.add_below(folder)


def _below(findings: ScanFindings, start: str) -> Iterator[tuple[str, set[str]]]:
    """Folders further down, the nearest first, with the names of what lies in them."""
    # Breadth first, so that the folders that are left out are those far down.
    waiting, count = deque([(start, 0)]), 0
    while waiting and count < MAX_FOLDERS:
        folder, depth = waiting.popleft()
        count += 1
        entries = findings.tree.entries(folder)
        if folder != start:
            yield folder, {entry.name for entry in entries}
        if depth < MAX_DEPTH:
            waiting += [(entry.path, depth + 1) for entry in entries if _is_entered(entry)]
    if waiting:
        findings.note(f"Only the first {MAX_FOLDERS} folders of the project were searched.")


def _is_entered(entry: TreeEntry) -> bool:
    return entry.is_folder and not entry.is_link and entry.name not in PASSED_OVER
