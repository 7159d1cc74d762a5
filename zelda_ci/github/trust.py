"""What must be true of an artifact before its results count as a branch's baseline: pure.

A fork can open a pull request from a branch that it calls `main`. The run belongs to this repository, and so does its
artifact, with `head_branch` "main": names prove nothing, the ids of repositories, the event and the workflow do.
Whether the run succeeded is no condition: Zelda's own gate makes runs red.
"""

from zelda_ci.domain.ci import Provenance
from zelda_ci.github.schemas import ArtifactRun, Run

TRUSTED_EVENTS = frozenset({"push", "schedule", "workflow_dispatch"})
"""What runs on commits that are already on a branch of this repository; pull requests are not."""


def is_of_branch(run: ArtifactRun, branch: str, repository_id: int) -> bool:
    """Whether a run was for this repository's own branch, as far as a list of artifacts tells."""
    return run.repository_id == run.head_repository_id == repository_id and run.head_branch == branch


def distrust_of_run(run: Run, listed: ArtifactRun, workflow_id: int) -> str | None:
    """Why the results of a run are nobody's baseline; absent where they may be one."""
    if run.event not in TRUSTED_EVENTS:
        return f"it was stored by a {run.event} run"
    if run.workflow_id != workflow_id:
        return "it was stored by another workflow"
    if run.head_repository is None or run.head_repository.id != listed.repository_id:
        return "it was stored by a run for another repository"
    if (run.id, run.head_branch, run.head_sha) != (listed.id, listed.head_branch, listed.head_sha):
        return "GitHub tells two things of its run"
    return None


def distrust_of_provenance(told: Provenance, run: Run) -> str | None:
    """Why what an artifact tells of itself, which whoever stored it can choose, is not believed.

    A repository may be renamed: its id tells.
    """
    if run.head_repository is None or told.repository_id != run.head_repository.id:
        return "it names another repository than GitHub"
    if told.run_id != run.id:
        return "it names another run than GitHub"
    if run.head_sha != told.sha:
        return "it names another commit than GitHub"
    if not told.complete:
        return "its run was cut short, or not judged completely"
    return None
