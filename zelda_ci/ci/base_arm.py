"""The whole base commit, for trials beside those of the pull request, where the checkout does not hold it."""

from collections.abc import Callable

from zelda_ci.ci.base import BaseSource, addresses, networked
from zelda_ci.ci.base_api import supply
from zelda_ci.errors import GitHubError, WorkspaceError
from zelda_ci.workspace.base_commit import UNAVAILABLE, Bring
from zelda_ci.workspace.git import Git

FETCHED = "refs/zelda/base"
NOBODY = "the repository has no address that could be asked"


def bring(source: BaseSource, say: Callable[[str], None]) -> Bring:
    """Brings a commit by git, with the job's token where the address is GitHub's own; else as GitHub's archive.

    Args:
        source: Where it can be had.
        say: Told how it came, where that is not by git.
    """

    async def brought(git: Git, commit: str) -> str:
        refusal = await _fetch(git, commit, source)
        if refusal is None:
            return commit
        reason = refusal
        if source.api is not None:
            try:
                held = await supply(git, source.api, commit)
            except GitHubError as problem:
                reason = f"{refusal.rstrip('.')}. As an archive neither: {problem.message}"
            else:
                say(f"The base commit {commit[:7]} came as an archive through GitHub's API; by git: {refusal}")
                return held
        hint = "Give actions/checkout `fetch-depth: 2`, or the step its github-token and the job contents: read."
        message = f"The base commit {commit[:7]} could not be had: {reason}"
        raise WorkspaceError(message, hint=hint, code=UNAVAILABLE)

    return brought


async def _fetch(git: Git, commit: str, source: BaseSource) -> str | None:
    """Fetch it by git; returns why that was not possible."""
    networking, reason = networked(git, source), NOBODY
    quiet = ("-q", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--no-auto-maintenance")
    for address in await addresses(git.within(source.top, GIT_DIR=str(source.top / ".git")), source):
        arguments = ("fetch", *quiet, "--depth=1", "--", address, f"+{commit}:{FETCHED}")
        outcome = await networking.attempt(*arguments)
        if outcome.exit_code == 0:
            return None
        reason = networking.failure(arguments, outcome).message
    return reason
