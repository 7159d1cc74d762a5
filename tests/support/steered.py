"""Folders with files that steer Claude Code, and what a scan finds in them."""

from collections.abc import Mapping
from pathlib import Path

from zelda_ci.domain.kinds import ItemKind
from zelda_ci.domain.manifest import ManifestItem, ToolsManifest
from zelda_ci.domain.workspace import Confinement, Workspace, WorkspaceSource
from zelda_ci.execution.manifest.scan import scan
from zelda_ci.redact import Redactor

safe = Redactor()


def workspace_in(root: Path, folder: str = "") -> Workspace:
    """A workspace whose tree is `root`, for sessions that work in a folder of it."""
    return Workspace(
        run_id="sample-2026-01-01T00-00-00",
        base=root.parent,
        root=root,
        path=root / folder if folder else root,
        home=root.parent,
        tmp=root.parent,
        git_dir=root.parent,
        start="0" * 40,
        source=WorkspaceSource(kind="copy", commit=None, branch=None, dirty=False),
        confinement=Confinement((), {}),
    )


def write(root: Path, files: Mapping[str, str | bytes]) -> None:
    for name, content in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)


def scanned(
    tmp_path: Path, files: Mapping[str, str | bytes], *, folder: str = "", redact: Redactor = safe
) -> ToolsManifest:
    """What a scan of a tree of these files finds."""
    root = tmp_path / "tree"
    (root / folder).mkdir(parents=True, exist_ok=True)
    write(root, files)
    return scan(root, root / folder, redact)


def named(manifest: ToolsManifest, kind: ItemKind) -> dict[str, ManifestItem]:
    """The items of a kind by name; of several the last."""
    return {item.name: item for item in manifest.items if item.kind is kind}


def problems(manifest: ToolsManifest, kind: ItemKind) -> dict[str, str | None]:
    """Why each item of a kind is not loaded, by its file."""
    return {item.file: item.problem for item in manifest.items if item.kind is kind}


def head(body: str = "Do it.\n", **fields: str) -> str:
    """A Markdown file with front matter."""
    lines = "".join(f"{key.replace('_', '-')}: {value}\n" for key, value in fields.items())
    return f"---\n{lines}---\n{body}"
