"""The scan: from the folder in which a session will work, up to the top of the tree and down to its leaves."""

import posixpath
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from zelda_ci.domain import kinds
from zelda_ci.domain.kinds import CLAUDE, MEMORY_FALLBACKS, MEMORY_FILES, ItemKind
from zelda_ci.domain.manifest import RefusedSetting, ToolsManifest
from zelda_ci.domain.workspace import Workspace
from zelda_ci.errors import ExecutionError
from zelda_ci.execution.manifest import settings
from zelda_ci.execution.manifest.documents import Documents, SteeringFolder
from zelda_ci.execution.manifest.memory import Memory
from zelda_ci.execution.manifest.plugins import add_plugins
from zelda_ci.execution.manifest.tree import ScanFindings, Tree, Unfit
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
    """Return what the files of a tree offer a session that works in one of its folders; nothing is loaded yet.

    Args:
        top: Of the tree.
        folder: Of the session.
        redact: For everything that is found.
        ask: Asks Claude Code itself; without it only the rules of its files are known.
    """
    start = "" if folder == top else folder.relative_to(top).as_posix()
    findings = ScanFindings(Tree(top), redact)
    if ask:
        _ask(findings, start, ask)
    file = posixpath.join(start, settings.SETTINGS_FILE)
    project = settings.read_settings(findings, file)
    _add_loaded(findings, start, project)
    settings.add_hooks(findings, file, project.values.get("hooks"), project)
    return ToolsManifest(
        items=tuple(findings.items),
        refused=findings.refusals,
        notes=tuple(findings.notes),
        workspace=redact(str(top)),
        folder=redact(start),
    )


def memory_lines(workspace: Workspace, redact: Redactor) -> frozenset[str]:
    """Return lines of the CLAUDE.md files that a session has from its start; none where it may have to do without.

    It reads what the session meets: a setup command may have changed what was tested.
    """
    items = scan(workspace.root, workspace.path, redact).items
    is_without = any(it.is_main and "omitClaudeMd" in (it.note or "") for it in items)
    if is_without or workspace.confinement.environment.get(settings.NO_MEMORY):
        return frozenset()
    own = [it for it in items if it.kind is ItemKind.MEMORY and not (it.problem or it.below or it.description)]
    lines = (line.strip() for it in own for line in (it.text or "").splitlines())
    return frozenset(line for line in lines if len(line) >= MIN_LINE_LENGTH)


def _ask(findings: ScanFindings, start: str, ask: Ask) -> None:
    contents = {}
    for file in settings.settings_files(start):
        with suppress(Unfit):
            contents[file] = findings.tree.read(file)
    try:
        findings.refusals = tuple(ask(contents, start, findings.redact))
    except ExecutionError as problem:
        findings.note(problem.message)
    for each in findings.refusals:
        findings.note(f"{each.file} is {each.effect}.")


def _add_loaded(findings: ScanFindings, start: str, project: settings.ClaudeSettings) -> None:
    # From the session's folder upwards, since of several servers of one name the nearest wins.
    chain = globs.upwards(start)
    documents, memory, names = Documents(findings, project), Memory(findings, project.memory_excluded), set[str]()
    for folder in chain:
        documents.add(SteeringFolder(posixpath.join(folder, CLAUDE), folder))
        memory.add_rules(folder)
        file = posixpath.join(folder, settings.SERVERS_FILE)
        _add_servers(findings, file, settings.table(findings.json_object(file), "mcpServers"), project, names)
    for plugin, file, servers in add_plugins(findings, start, project, documents):
        _add_servers(findings, file, servers, project, names, plugin)
    memory.add_chain(chain)
    for folder, inside in _below(findings, start):
        if CLAUDE in inside:
            documents.add(SteeringFolder(posixpath.join(folder, CLAUDE), folder, folder))
            memory.add_rules(folder, below=folder)
        if inside & MEMORY_NAMES:
            memory.add_below(folder)


def _below(findings: ScanFindings, start: str) -> Iterator[tuple[str, set[str]]]:
    """Yield folders further down, the nearest first, with the names of what lies in them."""
    waiting = deque([start])
    for _ in range(MAX_FOLDERS):
        if not waiting:
            return
        folder = waiting.popleft()
        entries = findings.tree.entries(folder)
        if folder != start:
            yield folder, {entry.name for entry in entries}
        own = (entry for entry in entries if entry.is_folder and not entry.is_link)
        waiting += [entry.path for entry in own if entry.name not in PASSED_OVER]
    findings.note(f"Only the first {MAX_FOLDERS:,} folders of the project were searched.")


def _add_servers(
    findings: ScanFindings,
    file: str,
    servers: Mapping[str, Any],
    project: settings.ClaudeSettings,
    names: set[str],
    owner: str | None = None,
) -> None:
    """Add a finding for each server of a file; one in a nearer folder takes the place of one further up."""
    for name, server in servers.items():
        command, url = (settings.table(server).get(key) for key in ("command", "url"))
        # Arguments, headers and variables may hold secrets of any shape, and are left out.
        at = f"url: {url.partition('?')[0]}" if isinstance(url, str) else None
        reached = f"command: {command}" if isinstance(command, str) else at
        problem = findings.refused(file, f"mcpServers.{name}")
        if name in names:
            problem = "a server of the same name in a nearer folder takes its place"
        elif name in settings.texts(project.values.get("disabledMcpjsonServers")):
            problem = problem or "the project's settings switch it off (disabledMcpjsonServers)"
        elif reached is None:
            problem = problem or "neither a command nor a url says how to reach it"
        facts = {"description": reached, "problem": problem, "shadowed": name in names, "owner": owner}
        denied = project.denials(kinds.server(name))
        findings.add(ItemKind.MCP_SERVER, name, file, denied=denied, **facts)
        names.add(name)
