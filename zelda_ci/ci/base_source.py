"""Where the base of a job's pull request can be had, also for a project in a submodule."""

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import anyio

from zelda_ci.ci.base import BaseSource, fetch_files, missing
from zelda_ci.ci.context import CiContext
from zelda_ci.ci.nested import gitlink, submodule_commit
from zelda_ci.redact import Redactor
from zelda_ci.workspace.git import prepare


def source_of(case: CiContext, environ: Mapping[str, str]) -> BaseSource:
    """Where the base can be had."""
    settings, context, nested = case.settings, case.settings.context, case.decision.nested
    return BaseSource(
        project=settings.project,
        workspace=context.workspace,
        server_url=context.server_url,
        repository=context.repository,
        token=settings.github_token,
        environ=environ,
        nested=nested,
    )


def at_submodule(case: CiContext, environ: Mapping[str, str]) -> CiContext:
    """The case with the commit of the project's submodule that the base names in place of the base itself.

    Where the base has no such submodule, it has nothing of the project.

    Raises:
        ConfigError: The submodule is not where the tested commit says, or the base commit cannot be had.
        WorkspaceError: There is no git, or it did not end.
    """
    decision = case.decision
    if decision.nested:
        decision.nested.check()
    if not (decision.base and decision.nested and decision.nested.named):
        return case
    foreign = replace(decision, nested=replace(decision.nested, named=None))
    around = source_of(replace(case, decision=foreign), environ)
    with tempfile.TemporaryDirectory(prefix="zelda-base-") as name:
        place = Path(name).resolve()
        redact = Redactor(case.settings.secrets())
        named = anyio.run(_named, decision.base, decision.nested.path, around, place, redact)
    return replace(case, decision=replace(decision, base=named) if named else foreign)


async def _named(commit: str, path: str, around: BaseSource, place: Path, redact: Redactor) -> str | None:
    git, top = prepare(place, around.environ, redact), around.top
    if (await git.within(top).attempt("rev-parse", "-q", "--verify", f"{commit}^{{tree}}")).exit_code == 0:
        return await submodule_commit(top, around.environ, commit, path)
    fetched = await fetch_files(git, commit, around, place / "fetched", lambda _: False)
    if fetched is None:
        raise missing(commit, around)
    return gitlink(await fetched("ls-tree", "-z", "--full-tree", commit, "--", path))
