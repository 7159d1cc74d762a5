"""What the jobs that share a run have stored for each other: the plan, and the parts of the shards.

A part lies where any job of the run could have put it, so that nothing in it is believed that the plan does not say.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping

from zelda_ci.ci.context import CiContext
from zelda_ci.ci.earlier_runs import pull_request_of
from zelda_ci.ci.settings import ActionSettings
from zelda_ci.ci.stored_artifacts import artifacts_of_run, identity_of
from zelda_ci.compare.pool import is_usable
from zelda_ci.compare.shards import digest_of
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.shards import PinnedPlan, ShardOf, ShardPlan
from zelda_ci.errors import GitHubError, StorageError
from zelda_ci.github.api import Api
from zelda_ci.github.archives import MemberReader
from zelda_ci.github.schemas import Artifact
from zelda_ci.pipeline.parts import MAX_ARCHIVE_BYTES, MAX_MEMBER_BYTES, PartFile, read_part
from zelda_ci.pipeline.shards import RUN_AGAIN, counted_in
from zelda_ci.storage import codec

PLAN = "zelda-plan.json"
PLAN_MEMBERS = 10


def plan_name(settings: ActionSettings) -> str:
    """Of the artifact with the plan."""
    return f"{identity_of(settings).stem}.plan.{settings.context.run_attempt}"


def part_name(settings: ActionSettings, shard: ShardOf, attempt: int) -> str:
    """Of the artifact with the part of a shard."""
    return f"{identity_of(settings).stem}.{shard.file_stem}.{attempt}"


def pinned_plan(case: CiContext) -> PinnedPlan | None:
    """The plan whose hash the workflow hands on; absent where it hands on none.

    Raises:
        ZeldaError: It is not there, or is another one.
    """
    wanted = case.settings.plan
    if not wanted:
        return None
    stem = f"{identity_of(case.settings).stem}.plan"
    for artifact in _artifacts(case, rf"{re.escape(stem)}\.[0-9]+"):
        blob = _api(case).download(artifact.id, digest=artifact.digest, max_bytes=MAX_ARCHIVE_BYTES)
        members = MemberReader(blob, max_members=PLAN_MEMBERS).read(
            {PLAN}, max_member_bytes=MAX_MEMBER_BYTES, max_total_bytes=MAX_MEMBER_BYTES
        )
        data = members.get(PLAN, b"")
        if hashlib.sha256(data).hexdigest() == wanted:
            return codec.decode(PinnedPlan, data, PLAN)
    raise StorageError(
        f"No artifact {stem} of this run holds the plan with the hash {wanted[:12]}.",
        hint="Hand on the output plan of the job with mode: plan, and give all jobs the same artifact-name and "
        "comment-id. If the artifact was deleted, run all jobs again.",
        code="PLAN_MISSING",
    )


def received(case: CiContext) -> list[PartFile]:
    """The parts that jobs of this run have stored; of each shard, that of its newest attempt.

    Raises:
        StorageError: One is not what its name says.
    """
    found, problems = [], []
    form = rf"{re.escape(identity_of(case.settings).stem)}\.shard-[0-9]+-of-[0-9]+\.[0-9]+"
    parts = _artifacts(case, form)
    newest = {artifact.name.rpartition(".")[0]: artifact.name for artifact in reversed(parts)}
    for artifact in (each for each in parts if each.name in newest.values()):
        try:
            part = _read(case, artifact)
        except (StorageError, GitHubError) as problem:
            problems.append(f"{artifact.name}: {problem.message}")
            continue
        problems += [f"{artifact.name} is not believed: {why}." for why in _distrust(case, artifact, part)]
        found.append(part)
    if problems:
        raise StorageError("\n".join(problems), hint=f"Nothing was merged. {RUN_AGAIN}", code="PARTS_REFUSED")
    return found


def _read(case: CiContext, artifact: Artifact) -> PartFile:
    blob = _api(case).download(artifact.id, digest=artifact.digest, max_bytes=MAX_ARCHIVE_BYTES)
    return read_part(blob, artifact.name)


def _distrust(case: CiContext, artifact: Artifact, part: PartFile) -> Iterator[str]:
    """Why a part is not one of this run, though it lies among its artifacts."""
    told_by, context = part.part.origin, case.settings.context
    shard = ShardOf(number=part.part.shard, shards=part.part.plan.shards)
    if told_by is None:
        yield "it was made outside of a workflow"
        return
    if artifact.name != part_name(case.settings, shard, told_by.run_attempt):
        yield f"it holds the part of shard {shard}, attempt {told_by.run_attempt}"
    facts: Mapping[str, tuple[object, object]] = {
        "repository": (told_by.repository_id, context.repository_id),
        "run": (told_by.run_id, case.run_id),
        "commit": (told_by.sha, case.commit),
        "pull request's head": (told_by.head_sha, case.decision.head_sha or case.commit),
        "folder": (told_by.folder, case.settings.folder),
    }
    for what, (said, wanted) in facts.items():
        if said != wanted:
            yield f"it is of another {what}"
    yield from _about_the_counted(part)
    if told_by.run_attempt > context.run_attempt:
        yield f"it says that it is of attempt {told_by.run_attempt}, which is still to come"


def _about_the_counted(part: PartFile) -> Iterator[str]:
    """Why the trials of earlier attempts that a part brings are not believed."""
    counted = part.part.counted
    if any(each.stored for each in counted.values()):
        yield "it brings trials of the base of its own"
    plan = {suite.name: suite.settings for suite in part.part.plan.suites_of(part.part.shard)}
    if any(digest_of(run.config) != plan.get(run.suite) for run in counted_in(part)):
        yield "the trials that it has counted ran with other settings"


def _artifacts(case: CiContext, name: str) -> list[Artifact]:
    """Those of this run, of all its attempts, the newest first, whose name has a form."""
    listed = artifacts_of_run(_api(case), case.run_id)
    return [artifact for artifact in listed if not artifact.expired and re.fullmatch(name, artifact.name)]


def _api(case: CiContext) -> Api:
    if case.api is None:
        hint = "Pass github-token, and give the job `permissions: actions: read`."
        raise GitHubError("No token was given, so that plan and parts cannot be read.", hint=hint)
    return case.api


def kept_trials(case: CiContext, shard: ShardOf, plan: ShardPlan) -> tuple[RunResult, ...]:
    """What this shard has made of a pull request in an earlier attempt: nobody gets rid of a trial by running again.

    Raises:
        GitHubError: GitHub did not tell.
    """
    if pull_request_of(case) is None or case.settings.context.run_attempt == 1:
        return ()
    stem = f"{identity_of(case.settings).stem}.{shard.file_stem}"
    for artifact in _artifacts(case, rf"{re.escape(stem)}\.[0-9]+"):
        part = _read(case, artifact)
        is_ours = part.part.plan == plan and part.attempt < case.settings.context.run_attempt
        if is_ours and not [*_distrust(case, artifact, part)]:
            runs = (*counted_in(part), *part.batch.runs, *part.batch.base_runs)
            return tuple(run for run in runs if is_usable(run))
    return ()
