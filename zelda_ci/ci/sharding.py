"""Several jobs share a run: one plans, each shard hands in its part, and one puts the parts together.

A part lies where any job of the run could have put it, so that nothing in it is believed that the plan does not say.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from zelda_ci.ci import baseline, evaluate, publish, storing
from zelda_ci.ci.baseline import BatchBaseline
from zelda_ci.ci.context import CiContext
from zelda_ci.ci.evaluate import PushPlan
from zelda_ci.ci.outputs import Files, json_of, provenance, write
from zelda_ci.ci.settings import ActionSettings
from zelda_ci.ci.stored_artifacts import PROVENANCE
from zelda_ci.compare.pool import StoredTrials
from zelda_ci.compare.shards import differences
from zelda_ci.domain.ci import Provenance
from zelda_ci.domain.outcome import Outcome, batch_outcome
from zelda_ci.domain.run import BatchResult, RunResult, empty_batch
from zelda_ci.domain.shards import (
    PinnedPlan,
    PinnedReference,
    PinnedTrials,
    ShardOf,
    ShardPart,
    ShardPlan,
)
from zelda_ci.errors import EXIT_INTERRUPTED, GitHubError, StorageError, ZeldaError
from zelda_ci.github.api import Api
from zelda_ci.github.archives import read_members
from zelda_ci.github.schemas import Artifact, understand
from zelda_ci.github.workflow_commands import empty
from zelda_ci.pipeline.parts import MAX_ARCHIVE_BYTES, MAX_MEMBER_BYTES, PartFile, part_members, read_part
from zelda_ci.pipeline.shards import RUN_AGAIN, bring_in, fitting, told
from zelda_ci.report.builders import baseline as words
from zelda_ci.report.text import escape_markdown, sentence
from zelda_ci.storage import codec

PLAN = "zelda-plan.json"
# Of 100 artifacts each: as many as the parts of the largest matrix may have.
PAGES_OF_ARTIFACTS = 10
PLAN_MEMBERS = 10


def plan_name(settings: ActionSettings) -> str:
    """Of the artifact with the plan."""
    return f"{settings.artifact_name}.plan"


def part_name(settings: ActionSettings, shard: ShardOf) -> str:
    """Of the artifact with the part of a shard."""
    return f"{settings.artifact_name}.{shard.file_stem}"


# --- the plan --------------------------------------------------------------------------------------------------------


def publish_plan(case: CiContext, plan: ShardPlan, planned: PushPlan) -> int:
    """Store the plan with what it rests on, and hand its hash over to the jobs that follow.

    Raises:
        GitHubError: GitHub does not take it.
    """
    data = codec.encode_pinned(_pinned(case, plan, planned))
    storing.upload_as(case, plan_name(case.settings), {PLAN: data, PROVENANCE: json_of(_origin(case))}, case.artifacts)
    lines = [*told(plan)] if plan.suites else ["No suite has to run."]
    for line in lines:
        case.log.say(line)
    shards = plan.shards if plan.suites else 0
    outputs = {
        "shards": str(shards),
        "matrix": json.dumps([f"{number}/{shards}" for number in range(1, shards + 1)]),
        "plan": hashlib.sha256(data).hexdigest(),
    }
    publish.warn(case.log, publish.summarise(case.settings.context, _listed("Zelda: the plan", lines)))
    publish.warn(case.log, publish.hand_over(case.settings.context, outputs))
    return 0


def _pinned(case: CiContext, plan: ShardPlan, planned: PushPlan) -> PinnedPlan:
    found = planned.baseline or BatchBaseline(words.SWITCHED_OFF, None)
    trials: dict[str, RunResult] = {}

    def keys(runs: Iterable[RunResult]) -> tuple[str, ...]:
        named = {f"{run.batch_id}/{run.run_id}": run for run in runs}
        trials.update(named)
        return tuple(named)

    counted = {
        name: PinnedTrials(head=keys(each.head), base=keys(each.base), pool=keys(each.pool), hints=keys(each.hints))
        for name, each in (planned.stored or {}).items()
    }
    pool = keys(found.pool.trials)
    references = {
        name: PinnedReference(fingerprint=each.fingerprint, is_exact=each.is_exact)
        for name, each in found.references.items()
    }
    return PinnedPlan(
        plan=plan,
        origin=_origin(case),
        baseline=found.origin,
        results=found.results,
        references=references,
        nights=found.nights,
        damage=found.damage,
        pool=pool,
        counted=None if planned.stored is None else counted,
        trials=trials,
        fingerprints=dict(planned.fingerprints),
        known=dict(planned.known),
        knows_earlier=planned.knows_earlier,
        remarks=planned.remarks,
    )


def restored(pinned: PinnedPlan) -> PushPlan:
    """What the job that planned had found out."""

    def runs(keys: Iterable[str]) -> tuple[RunResult, ...]:
        return tuple(pinned.trials[key] for key in keys)

    stored = None
    if pinned.counted is not None:
        stored = {
            name: StoredTrials(runs(each.head), runs(each.base), runs(each.pool), runs(each.hints))
            for name, each in pinned.counted.items()
        }
    found = baseline.restored(pinned)
    return PushPlan(found, pinned.fingerprints, pinned.known, stored, pinned.knows_earlier, pinned.remarks)


def pinned_plan(case: CiContext) -> PinnedPlan | None:
    """The plan whose hash the workflow hands on; absent where it hands on none.

    Raises:
        ZeldaError: It is not there, or is another one.
    """
    wanted = case.settings.plan
    if not wanted:
        return None
    name = plan_name(case.settings)
    for artifact in _artifacts(case, name):
        blob = _api(case).download(artifact.id, digest=artifact.digest, max_bytes=MAX_ARCHIVE_BYTES)
        members = read_members(
            blob,
            {PLAN},
            max_member_bytes=MAX_MEMBER_BYTES,
            max_total_bytes=MAX_MEMBER_BYTES,
            max_members=PLAN_MEMBERS,
        )
        data = members.get(PLAN, b"")
        if hashlib.sha256(data).hexdigest() == wanted:
            return codec.decode_pinned(data, PLAN)
    raise StorageError(
        f"The artifact {name} of this run does not hold the plan with the hash {wanted[:12]}.",
        hint="Hand on the output plan of the job with mode: plan, and give all jobs the same artifact-name and "
        "comment-id. If the artifact was deleted, run all jobs again.",
        code="PLAN_MISSING",
    )


def agreed(ours: ShardPlan, case: CiContext) -> ShardPlan:
    """The plan that was handed on, if what this job sees leads to the same one.

    Raises:
        StorageError: It does not.
    """
    if case.pinned is None or ours == case.pinned.plan:
        return ours
    why = "; ".join(differences(case.pinned.plan, ours))
    raise StorageError(f"This job would plan otherwise than the one before it. {_capital(why)}.", code="OTHER_PLAN")


# --- a shard ---------------------------------------------------------------------------------------------------------


def hand_in(
    case: CiContext, shard: ShardOf, plan: ShardPlan, platform: str, run: Callable[[], BatchResult] | None
) -> int:
    """Run the suites of a shard and store its part; the exit code says only whether that could be done.

    Args:
        case: The run.
        shard: This one.
        plan: Of all.
        platform: On which it runs.
        run: Runs its suites; absent where it has none.

    Raises:
        ZeldaError: Nothing could be run, or the part could not be stored.
    """
    case.log.say([*told(plan)][shard.number - 1])
    files = Files.of(case)
    files.clear()
    with evaluate.handlers_kept():
        batch = run() if run else empty_batch(case.now())
    with evaluate.undisturbed():
        # Whatever ran in the sessions may have found the files in which we speak to the runner.
        empty(case.settings.context.command_files.values())
        write(files.results, json_of(batch))
        origin = provenance(case, batch, plan.base)
        part = ShardPart(shard=shard.number, plan=plan, platform=platform, origin=origin)
        # A cancelled job has seconds left: its trials are what counts.
        with_files = case.settings.include_transcripts and not batch.interrupted
        held = part_members(part, batch, case.results_dir, with_files=with_files)
        members = {**held, PROVENANCE: json_of(origin)}
        service = case.hurried_artifacts if batch.interrupted else case.artifacts
        uploaded = storing.upload_as(
            case, part_name(case.settings, shard), {**members, PROVENANCE: json_of(origin)}, service
        )
        code = _exit_code(batch)
        lines = _about_the_part(shard, plan, batch)
        for line in lines:
            case.log.say(line)
        if code:
            case.log.report("error", " ".join(lines), title="Zelda")
        publish.warn(case.log, publish.summarise(case.settings.context, _listed(f"Zelda: shard {shard}", lines)))
        outputs = {"artifact-id": str(uploaded.id), "cost-usd": f"{batch.cost_usd:.4f}"}
        publish.warn(case.log, publish.hand_over(case.settings.context, outputs))
    return code


def _exit_code(batch: BatchResult) -> int:
    """What can be judged, whatever it shows, is judged when all parts are there."""
    outcome = batch_outcome(batch)
    if batch.interrupted:
        return EXIT_INTERRUPTED
    return outcome.exit_code if outcome >= Outcome.INCOMPLETE else 0


def _about_the_part(shard: ShardOf, plan: ShardPlan, batch: BatchResult) -> list[str]:
    sessions = len(batch.runs) + len(batch.base_runs)
    done = (
        f"{len(plan.names_of(shard.number))} of {len(plan.suites)} suites, {sessions} sessions, ${batch.cost_usd:.2f}"
    )
    lines = [f"Shard {shard}: {done}. The job with mode: merge compares and judges."]
    if batch.interrupted:
        lines.append("It was cancelled before its end: run it again.")
    elif _exit_code(batch):
        lines.append("Not everything could be run and judged. Running this job again runs its suites anew.")
    return lines


# --- the merge -------------------------------------------------------------------------------------------------------


def merge(case: CiContext, plan_for: Callable[[int], ShardPlan], planned: PushPlan) -> int:
    """Put the parts of all shards together and tell them as one run; returns its exit code.

    Args:
        case: The run.
        plan_for: The plan for a number of shards, as this job sees it.
        planned: What was found out before anything ran.

    Raises:
        ZeldaError: A part is missing, doubled or foreign, or its results cannot be written. An earlier comment says so.
    """
    try:
        parts = _fitting(case, plan_for)
    except ZeldaError as problem:
        text = "\n\n".join(escape_markdown(sentence(line)) for line in problem.user_message.splitlines())
        publish.replace_comment(case, f"### Zelda could not put the shards together\n\n{text}\n")
        raise
    for part in parts:
        case.log.say(f"{part.name}: {len(part.batch.runs)} trials, on {part.part.platform}, attempt {part.attempt}.")

    def run() -> BatchResult:
        return bring_in(parts, case.results_dir) if parts else empty_batch(case.now())

    return evaluate.evaluate(case, run, planned)


def _fitting(case: CiContext, plan_for: Callable[[int], ShardPlan]) -> tuple[PartFile, ...]:
    pinned = case.pinned
    if pinned:
        plan = agreed(plan_for(pinned.plan.shards), case)
        return fitting(_received(case), plan) if plan.suites else ()
    parts = _received(case)
    if not parts:
        return fitting(parts)
    return fitting(parts, plan_for(max(part.part.plan.shards for part in parts)))


def _received(case: CiContext) -> list[PartFile]:
    """The parts that jobs of this run have stored.

    Raises:
        StorageError: One is not what its name says.
    """
    found, problems = [], []
    form = re.compile(rf"{re.escape(case.settings.artifact_name)}\.shard-[0-9]+-of-[0-9]+")
    for artifact in _artifacts(case):
        if not form.fullmatch(artifact.name):
            continue
        try:
            blob = _api(case).download(artifact.id, digest=artifact.digest, max_bytes=MAX_ARCHIVE_BYTES)
            part = read_part(blob, artifact.name)
        except (StorageError, GitHubError) as problem:
            problems.append(f"{artifact.name}: {problem.message}")
            continue
        problems += [f"{artifact.name} is not believed: {why}." for why in _distrust(case, artifact, part)]
        found.append(part)
    if problems:
        raise StorageError("\n".join(problems), hint=f"Nothing was merged. {RUN_AGAIN}", code="PARTS_REFUSED")
    return found


def _distrust(case: CiContext, artifact: Artifact, part: PartFile) -> Iterator[str]:
    """Why a part is not one of this run, though it lies among its artifacts."""
    told_by, context = part.part.origin, case.settings.context
    shard = ShardOf(number=part.part.shard, shards=part.part.plan.shards)
    if artifact.name != part_name(case.settings, shard):
        yield f"it holds the part of shard {shard}"
    if artifact.workflow_run and artifact.workflow_run.id != case.run_id:
        yield "GitHub says that another run stored it"
    if told_by is None:
        yield "it was made outside of a workflow"
        return
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
    if told_by.run_attempt > context.run_attempt:
        yield f"it says that it is of attempt {told_by.run_attempt}, which is still to come"


def _artifacts(case: CiContext, name: str | None = None) -> list[Artifact]:
    """Those of this run, of all its attempts, the newest first."""
    path = f"actions/runs/{case.run_id}/artifacts"
    listed = _api(case).pages(path, key="artifacts", limit=PAGES_OF_ARTIFACTS, name=name)
    artifacts = sorted((understand(Artifact, entry) for entry in listed), key=lambda entry: entry.id, reverse=True)
    return [artifact for artifact in artifacts if not artifact.expired]


def _api(case: CiContext) -> Api:
    if case.api is None:
        hint = "Pass github-token, and give the job `permissions: actions: read`."
        raise GitHubError("No token was given, so that plan and parts cannot be read.", hint=hint)
    return case.api


def _origin(case: CiContext) -> Provenance:
    return provenance(case, empty_batch(case.now()), case.decision.base)


def _listed(title: str, lines: Iterable[str]) -> str:
    return f"### {title}\n\n" + "".join(f"- {escape_markdown(line)}\n" for line in lines)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
