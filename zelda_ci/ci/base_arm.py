"""The whole base commit, for trials beside those of the pull request, where the checkout does not hold it."""

from zelda_ci.ci.base import BaseSource, addresses, networked
from zelda_ci.errors import WorkspaceError
from zelda_ci.workspace.base_commit import UNAVAILABLE, Bring
from zelda_ci.workspace.git import Git

FETCHED = "refs/zelda/base"
NOBODY = "the repository has no address that could be asked"


def bring(source: BaseSource) -> Bring:
    """Fetches a commit by git, with the job's token where the address is GitHub's own."""

    async def brought(git: Git, commit: str) -> str:
        reason = await _fetch(git, commit, source)
        if reason is None:
            return commit
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
