"""What a session changed: the work tree's state now against the commit it started from, whatever git says of itself."""

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio

from zelda_ci.domain.workspace import Changes
from zelda_ci.redact import Redactor
from zelda_ci.workspace import bare, patch
from zelda_ci.workspace.folder import RunFolder
from zelda_ci.workspace.git import Git
from zelda_ci.workspace.snapshot import Snapshot
from zelda_ci.workspace.store import Store
from zelda_ci.workspace.survey import look_over, set_aside

LARGEST_RAW = 256 << 20
DIFF = ("diff-index", "--cached", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all", "-M", "-l1000")
MOST_NAMED = 50
CONFIGURATION = {"core.protecthfs": "false", "core.protectntfs": "false", "core.compression": "1", "core.fsync": "none"}
"""Nothing from here is ever checked out, and nothing of it is kept."""


@dataclass(frozen=True)
class Start:
    """The state before the session, beyond its reach."""

    commit: str
    store: Store
    object_format: str
    settings: Mapping[str, str]


async def compute(folder: RunFolder, start: Start, target: Path, plumbing: Git, redact: Redactor) -> Changes:
    """Write the patch and count what is in it.

    Raises:
        WorkspaceError: Git failed altogether, for instance for want of room.
    """
    scratch = folder.path / "changes"
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        return await _compute(folder, start, scratch, target, plumbing, redact)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


async def _compute(
    folder: RunFolder, start: Start, scratch: Path, target: Path, plumbing: Git, redact: Redactor
) -> Changes:
    repository = scratch / "git"
    settings = {**start.settings, **CONFIGURATION}
    bare.create(repository, object_format=start.object_format, settings=settings, borrow=start.store.objects)
    root = _tree(folder, scratch)
    git = plumbing.within(root, GIT_DIR=str(repository), GIT_WORK_TREE=str(root))
    survey = await anyio.to_thread.run_sync(look_over, root)
    with set_aside(root, [*survey.nested, *survey.traps], scratch / "aside"):
        snapshot = Snapshot(git, repository, root)
        left_out = await snapshot.take(folder.index, folder.git_dir / "worktrees" / folder.root.name / "index")
    for trap in survey.traps:
        left_out[trap] = "not a plain file"
    left_out |= dict.fromkeys(survey.closed, "cannot be listed")
    return await _written(git, start.commit, left_out, scratch, target, redact)


def _tree(folder: RunFolder, scratch: Path) -> Path:
    """The work tree, or an empty folder where the session put something else in its place."""
    if folder.is_intact():
        return folder.root
    empty = scratch / "empty"
    empty.mkdir()
    return empty


async def _written(
    git: Git, start: str, left_out: Mapping[bytes, str], scratch: Path, target: Path, redact: Redactor
) -> Changes:
    stats = _counted(await git(*DIFF, "--numstat", "-z", start))
    raw = scratch / "raw.patch"
    complete = await git.into(raw, *DIFF, "-p", "--binary", "--no-color", start, max_bytes=LARGEST_RAW)
    preface = _preface(left_out)
    written, cut = await anyio.to_thread.run_sync(lambda: patch.store(raw, target, preface, redact, complete=complete))
    names = sorted({*(name for name, _, _ in stats), *left_out})
    return Changes(
        files=tuple(redact(os.fsdecode(name)) for name in names),
        insertions=sum(added for _, added, _ in stats),
        deletions=sum(removed for _, _, removed in stats),
        patch=target,
        patch_bytes=written,
        truncated=cut or bool(left_out),
    )


def _preface(left_out: Mapping[bytes, str]) -> Sequence[str]:
    lines = [f"not in this patch: {os.fsdecode(name)!r} ({why})" for name, why in sorted(left_out.items())]
    more = len(lines) - MOST_NAMED
    return [*lines[:MOST_NAMED], *([f"and {more} more"] if more > 0 else [])]


def _counted(said: bytes) -> list[tuple[bytes, int, int]]:
    """Name, added and removed lines from `--numstat -z`; a renamed file by its new name, a binary one without lines."""
    fields = iter(said.split(b"\0"))
    found: list[tuple[bytes, int, int]] = []
    for entry in fields:
        if not entry:
            continue
        added, removed, name = entry.split(b"\t", 2)
        if not name:
            next(fields)
            name = next(fields)
        found.append((name, int(added.replace(b"-", b"0")), int(removed.replace(b"-", b"0"))))
    return found
