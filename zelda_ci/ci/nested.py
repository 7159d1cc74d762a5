"""A project in a repository of its own inside the workspace: a submodule, or one that an earlier step has made."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from zelda_ci.ci.settings import ActionSettings
from zelda_ci.config.files import top_of
from zelda_ci.errors import ConfigError
from zelda_ci.workspace.git import ask, read_commit


@dataclass(frozen=True)
class NestedRepository:
    """The repository in which the project lies; the event is about the one around it."""

    path: str
    """Of its top, relative to the workspace."""
    head: str | None
    named: str | None = None
    """The commit that the repository around it names in its place: it is a submodule."""

    def check(self) -> None:
        """Refuse a submodule at another commit than the one that is asked for with the workspace's."""
        if self.named and self.head != self.named:
            found = self.head[:7] if self.head else "no commit"
            raise ConfigError(
                f"The submodule {self.path} is at {found}, but the commit that is checked out names {self.named[:7]}.",
                hint="In the step with actions/checkout, write `submodules: recursive` under `with:`, and let no later "
                "step move the submodule.",
                code="OTHER_COMMIT",
            )


async def find(settings: ActionSettings, environ: Mapping[str, str]) -> NestedRepository | None:
    """The project's repository, where the workspace's HEAD is that of another; absent for a checkout of the same."""
    workspace, top = settings.context.workspace.resolve(), top_of(settings.project.resolve())
    outer = await read_commit(workspace, environ)
    if top is None or outer is None or workspace not in top.parents:
        return None
    path = top.relative_to(workspace).as_posix()
    inner = await read_commit(top, environ)
    head = inner.sha if inner else None
    named = gitlink(await ask(workspace, environ, "ls-tree", "-z", "--full-tree", "HEAD", "--", path) or b"")
    if named is None and await _are_the_same(settings, environ, workspace, top):
        return None
    return NestedRepository(path, head, named)


def gitlink(entry: bytes) -> str | None:
    """The commit that an entry of `git ls-tree` names; absent where it is no submodule."""
    mode, _, rest = entry.partition(b" ")
    return rest.split()[1].decode() if mode == b"160000" else None


async def _are_the_same(settings: ActionSettings, environ: Mapping[str, str], workspace: Path, top: Path) -> bool:
    """Whether a second checkout in the workspace is of the event's repository, too: it may be at another commit."""
    origin, outer = [
        (await ask(each, environ, "config", "--local", "--get", "remote.origin.url") or b"").decode("utf-8", "replace")
        for each in (top, workspace)
    ]
    plain = origin.strip().removesuffix("/").removesuffix(".git").lower()
    repository = settings.context.repository.lower()
    if origin and (origin == outer or plain.endswith((f"/{repository}", f":{repository}"))):
        return True
    heads = [await read_commit(each, environ) for each in (top, workspace)]
    others = zip((workspace, top), heads, strict=True)
    return any([head and await ask(place, environ, "cat-file", "-e", head.sha) is not None for place, head in others])
