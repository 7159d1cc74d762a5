"""The scan: from the folder in which a session will work, up to the top of the tree and down to its leaves."""

import posixpath
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from zelda_ci.domain.kinds import CLAUDE, MEMORY_FALLBACKS, MEMORY_FILES, ItemKind
from zelda_ci.domain.manifest import RefusedSetting, ToolsManifest
from zelda_ci.domain.workspace import Workspace
from zelda_ci.errors import ExecutionError
from zelda_ci.execution.manifest import folders, settings
from zelda_ci.execution.manifest.findings import ScanFindings
from zelda_ci.execution.manifest.folders import SteeringFolder
from zelda_ci.execution.manifest.memory import Memory
from zelda_ci.execution.manifest.tree import Unfit
from zelda_ci.files import globs
from zelda_ci.redact import Redactor

# Of those further down: a folder in no repository may be somebody's whole disk.
MAX_FOLDERS = 50_000
# Of a line that is looked for in what a model was sent.
MIN_LINE_LENGTH = 4
MEMORY_NAMES = {CLAUDE, *MEMORY_FILES, *MEMORY_FALLBACKS}
PASSED_OVER = frozenset({".git", CLAUDE, "node_modules"})

# Returns, of the texts of settings files and the folder of a session, what Claude Code refuses of them.
Ask = Callable[[Mapping[str, str], str, Redactor], Sequence[RefusedSetting]]


def scan(top: Path, folder: Path, redact: Redactor, ask: Ask | None = None) -> ToolsManifest:
    """Return what the files of a tree, `top`, offer a session that works in one of its folders; nothing is loaded yet.

    Without `ask`, which asks Claude Code itself, only the rules of its files are known.
    """
    findings = ScanFindings(top, folder, redact)
    if ask:
        _ask(findings, ask)
    memory = _add_own(findings)
    for below, inside in _below(findings):
        if CLAUDE in inside:
            SteeringFolder(findings, posixpath.join(below, CLAUDE), below, below).add_documents()
            memory.add_rules(below, below=below)
        if inside & MEMORY_NAMES:
            memory.add_below(below)
    file = posixpath.join(findings.start, settings.SETTINGS_FILE)
    folders.add_hooks(findings, file, findings.settings.get("hooks"))
    return ToolsManifest(
        items=tuple(findings.items),
        refused=findings.refusals,
        notes=tuple(findings.notes),
        workspace=redact(str(top)),
        folder=redact(findings.start),
    )


def memory_lines(workspace: Workspace, redact: Redactor) -> frozenset[str]:
    """Return lines of the CLAUDE.md files that a session has from its start; none where it may have to do without.

    It reads what the session meets: a setup command may have changed what was tested.
    """
    findings = ScanFindings(workspace.root, workspace.path, redact)
    _add_own(findings)
    is_without = any(it.is_main and it.note == folders.WITHOUT_MEMORY for it in findings.items)
    if is_without or workspace.confinement.environment.get(settings.NO_MEMORY):
        return frozenset()
    own = [it for it in findings.items if it.kind is ItemKind.MEMORY and not (it.problem or it.description)]
    lines = (line.strip() for it in own for line in (it.text or "").splitlines())
    return frozenset(line for line in lines if len(line) >= MIN_LINE_LENGTH)


def _ask(findings: ScanFindings, ask: Ask) -> None:
    servers = (posixpath.join(folder, settings.SERVERS_FILE) for folder in globs.upwards(findings.start))
    contents = {}
    for file in (posixpath.join(findings.start, settings.SETTINGS_FILE), *servers):
        with suppress(Unfit):
            contents[file] = findings.tree.read(file)
    try:
        findings.refusals = tuple(ask(contents, findings.start, findings.redact))
    except ExecutionError as problem:
        findings.note(problem.message)
    for each in findings.refusals:
        findings.note(f"{each.file} is {each.effect}.")


def _add_own(findings: ScanFindings) -> Memory:
    """Add what the session has by its own folder and those above it; the CLAUDE.md files that are read are returned."""
    file = posixpath.join(findings.start, settings.SETTINGS_FILE)
    values = findings.json_object(file)
    # Of a file that Claude Code drops only the hooks are named, to say that they are not there.
    is_dropped = findings.refused(file, "")
    findings.settings = {"hooks": values.get("hooks")} if is_dropped else values
    # From the session's folder upwards, since of several servers of one name the nearest wins.
    chain, memory = globs.upwards(findings.start), Memory(findings)
    for folder in chain:
        SteeringFolder(findings, posixpath.join(folder, CLAUDE), folder).add_documents()
        memory.add_rules(folder)
        file = posixpath.join(folder, settings.SERVERS_FILE)
        folders.add_servers(findings, file, settings.table(findings.json_object(file), "mcpServers"))
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
