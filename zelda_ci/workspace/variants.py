"""The tested tree with something of it taken back or out: one more commit, in a repository of Zelda's own."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path

from zelda_ci.workspace import units
from zelda_ci.workspace.git import Git
from zelda_ci.workspace.source import Project

Edit = Callable[[Git, str], Awaitable[str]]
"""Makes a commit of another, in the repository to which the given git is set; raises `WorkspaceError`."""


@dataclass(frozen=True)
class Variant:
    """What is changed of the tested tree, and how."""

    name: str
    """In words that follow "the tested files"."""
    edit: Edit
    borrow: tuple[Path, ...] = ()
    """Further repositories with objects that it needs."""


async def at(project: Project, variant: Variant, folder: Path, git: Git) -> Project:
    """The project as the variant has it; its commit lies in a new repository `folder`."""
    there = units.prepare(folder, git, project.commit, project.objects, *variant.borrow)
    commit = await variant.edit(there, project.commit)
    before = project.source
    source = before.replace(commit=commit, parent=before.parent or before.commit) if before.commit else before
    return replace(project, source=source, objects=folder, commit=commit)
