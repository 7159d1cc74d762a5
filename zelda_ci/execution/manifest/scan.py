"""The scan: from the folder in which a session will work, up to the top of the tree and down to its leaves."""

from collections import deque
from collections.abc import Iterator
from pathlib import PurePosixPath

from zelda_ci.domain.manifest import ToolsManifest
from zelda_ci.domain.workspace import Workspace
from zelda_ci.execution.manifest import servers, settings
from zelda_ci.execution.manifest.documents import Documents
from zelda_ci.execution.manifest.findings import Findings
from zelda_ci.execution.manifest.memory import Memory
from zelda_ci.execution.manifest.tree import Entry, Exhausted, Tree
from zelda_ci.redact import Redactor

MOST_FOLDERS = 4_000
DEEPEST = 12
MEMORY_NAMES = {".claude", "CLAUDE.md", "AGENTS.md"}
PASSED_OVER = frozenset({".git", ".claude", "node_modules"})


def scan(workspace: Workspace, redact: Redactor) -> ToolsManifest:
    """What the workspace's files offer, before anything has run in it.

    Nothing is loaded yet: `zelda_ci.domain.loading` settles that once the session has told what it had.
    """
    start = workspace.path.relative_to(workspace.root).as_posix().removeprefix(".")
    with Tree(workspace.root) as tree:
        findings = Findings(tree, redact)
        try:
            _look(findings, start)
        except Exhausted:
            tree.crowded = True
        if tree.crowded:
            findings.note("The project has more files than Zelda looks at: the list may be incomplete.")
    return ToolsManifest(
        items=tuple(findings.items),
        notes=tuple(findings.notes),
        workspace=redact(str(workspace.root)),
        folder=redact(start),
    )


def _look(findings: Findings, start: str) -> None:
    chain = list(_upwards(start))
    settings_file = f"{start}/.claude/settings.json" if start else ".claude/settings.json"
    project = settings.read(findings, settings_file)
    documents = Documents(findings, project)
    memory = Memory(findings, project.memory_excluded)
    known: set[str] = set()
    for folder in chain:
        documents.add(folder)
        servers.add(findings, f"{folder}/.mcp.json" if folder else ".mcp.json", project, known)
    memory.add_chain(chain)
    settings.add_hooks(findings, project, settings_file)
    for folder, names in _below(findings, start):
        if ".claude" in names:
            documents.add(folder, below=folder)
        if names & MEMORY_NAMES:
            memory.add_below(folder)


def _upwards(start: str) -> Iterator[str]:
    """The folder of the session, then those above it."""
    path = PurePosixPath(start)
    for folder in (path, *path.parents):
        yield folder.as_posix().removeprefix(".")


def _below(findings: Findings, start: str) -> Iterator[tuple[str, set[str]]]:
    """Folders further down, the nearest first, with the names of what lies in them."""
    waiting, count = deque([(start, 0)]), 0
    while waiting and count < MOST_FOLDERS:
        folder, depth = waiting.popleft()
        count += 1
        entries = findings.tree.entries(folder)
        if folder != start:
            yield folder, {entry.name for entry in entries}
        if depth < DEEPEST:
            waiting += [(entry.path, depth + 1) for entry in entries if _is_entered(entry)]
    if waiting:
        findings.note(f"Only the first {MOST_FOLDERS} folders of the project were searched.")


def _is_entered(entry: Entry) -> bool:
    return entry.is_folder and not entry.is_link and entry.name not in PASSED_OVER
