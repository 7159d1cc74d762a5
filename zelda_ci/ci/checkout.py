"""What lies in the workspace: the commit that is checked out, and the repository of the project where that is another.

A submodule has one, and so does what an earlier step has made or checked out.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from zelda_ci.ci.settings import ActionSettings
from zelda_ci.config.files import top_of
from zelda_ci.workspace.git import SUBMODULE, ask, read_commit, tree_files


@dataclass(frozen=True)
class Checkout:
    """What lies in the workspace: the commit at HEAD and its parents; without a repository, neither."""

    head: str | None = None
    parents: tuple[str, ...] = ()
    project: str | None = None
    """HEAD of the repository that the project lies in: a second checkout has one of its own."""
    nested: str | None = None
    """Top, from the workspace, of another repository in which the project lies: the event is about the one around."""
    nested_head: str | None = None
    named: str | None = None
    """The commit that the repository around names in its place: it is a submodule."""

    def base_of(self, head: str) -> str | None:
        """The commit into which HEAD merges another one; absent where it does not look like such a merge."""
        return self.parents[0] if len(self.parents) == 2 and self.parents[1] == head else None


async def read_checkout(settings: ActionSettings, environ: Mapping[str, str]) -> Checkout:
    """Read which commits are checked out."""
    workspace, project = settings.context.workspace.resolve(), settings.project.resolve()
    top = top_of(project)
    outer, own = [await read_commit(folder, environ) for folder in (workspace, project)]
    if top and outer and workspace in top.parents:
        path = top.relative_to(workspace).as_posix()
        named = gitlink(await ask(workspace, environ, "ls-tree", "-z", "--full-tree", "HEAD", "--", path) or b"")
        # A second checkout of the event's repository may be at another commit.
        origin, around = [await origin_of(folder, environ) for folder in (top, workspace)]
        plain, repository = origin.removesuffix("/").removesuffix(".git").lower(), settings.context.repository.lower()
        is_same = origin and (origin == around or plain.endswith((f"/{repository}", f":{repository}")))
        others = [(place, head.sha) for place, head in ((workspace, own), (top, outer)) if head]
        held = [await ask(place, environ, "cat-file", "-e", commit) is not None for place, commit in others]
        if named or not (is_same or any(held)):
            return Checkout(outer.sha, outer.parents, outer.sha, path, own.sha if own else None, named)
    head = outer or own
    return Checkout(head.sha, head.parents, own.sha if own else None) if head else Checkout()


def gitlink(listing: bytes) -> str | None:
    """The commit of the submodule that `git ls-tree` lists; absent where it lists none."""
    return next((entry.content for entry in tree_files(listing) if entry.mode == SUBMODULE), None)


async def origin_of(folder: Path, environ: Mapping[str, str]) -> str:
    """The address from which a repository was cloned; empty where it names none."""
    origin = await ask(folder, environ, "config", "--local", "--get", "remote.origin.url") or b""
    return origin.decode("utf-8", "replace").strip()
