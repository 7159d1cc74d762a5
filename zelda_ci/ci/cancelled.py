"""A pull request's run that is cancelled stores the trials that were over: they count when it is run again.

Otherwise whoever sees a bad trial could cancel the job, run it again, and be rid of it. The runner waits for ten
seconds only, so this is the last that is done, and as small as it can be.
"""

from zelda_ci.ci import baseline_words as words
from zelda_ci.ci.baseline import pull_request_of
from zelda_ci.ci.context import CiContext, CiResult
from zelda_ci.ci.event import number
from zelda_ci.ci.outputs import json_of, provenance
from zelda_ci.ci.stored_artifacts import MAX_MEMBER_BYTES, POOL, PROVENANCE, RESULTS
from zelda_ci.ci.storing import pool_to_store, upload
from zelda_ci.compare.pool import is_usable
from zelda_ci.errors import GitHubError
from zelda_ci.storage.codec import encode_pool


def store_trials(case: CiContext, result: CiResult) -> None:
    """Upload the trials that were over and judged, whatever they show, with those of earlier runs.

    Args:
        case: The run.
        result: What it has found; told whether the trials are stored.
    """
    batch = result.batch
    trials = sum(map(is_usable, (*batch.runs, *batch.base_runs)))
    if not trials or not _counts_later(case):
        return
    origin = provenance(case, batch, case.decision.target.commit if case.decision.target else None)
    members = {PROVENANCE: json_of(origin), RESULTS: json_of(batch)}
    if result.evidence.knows_earlier:
        members[POOL] = encode_pool(pool_to_store(case, result), MAX_MEMBER_BYTES)
    try:
        uploaded = upload(case, members, service=case.hurried_artifacts)
    except GitHubError as problem:
        note = f"{words.CANCELLED_LOST} {problem.message}"
    else:
        result.artifact_id = uploaded.id
        note = words.cancelled_kept(trials)
    result.notes.append(note)
    case.log.say(note)


def _counts_later(case: CiContext) -> bool:
    """Whether a later run could count these trials: of a fork's, its author would choose them."""
    of = number(case.settings.event, "pull_request", "head", "repo", "id")
    return pull_request_of(case) is not None and of == case.settings.context.repository_id
