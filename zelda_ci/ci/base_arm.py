"""The whole base commit, for trials beside those of the pull request, where the checkout does not hold it."""

from zelda_ci.ci.base import BaseSource, addresses, networked
from zelda_ci.errors import WorkspaceError
from zelda_ci.workspace.base_commit import UNAVAILABLE, Bring
from zelda_ci.workspace.git import Git

FETCHED = "refs/zelda/base"


def bring(source: BaseSource) -> Bring:
    """Brings a commit by git: with the job's token where the address is GitHub's own."""

    async def brought(git: Git, commit: str) -> str:
        networking = networked(git, source)
        quiet = ("-q", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--no-auto-maintenance")
        refusals = []
        for address in await addresses(git.within(source.top, GIT_DIR=str(source.top / ".git")), source):
            arguments = ("fetch", *quiet, "--depth=1", "--", address, f"+{commit}:{FETCHED}")
            outcome = await networking.attempt(*arguments)
            if outcome.exit_code == 0:
                return commit
            refusals.append(networking.failure(arguments, outcome).message)
        reason = refusals[-1] if refusals else "the repository has no address that could be asked"
        hint = "Give actions/checkout `fetch-depth: 2`, or the step its github-token and the job contents: read."
        message = f"The base commit {commit[:7]} could not be had: {reason}"
        raise WorkspaceError(message, hint=hint, code=UNAVAILABLE)

    return brought
