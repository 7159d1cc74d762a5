"""Several jobs share a run: one plans, each shard hands in its part, and one puts the parts together."""

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from zelda_ci.ci import evaluate, publish, storing
from zelda_ci.ci.context import CiContext
from zelda_ci.ci.evidence import Evidence, PinnedPlan
from zelda_ci.ci.outputs import Files, json_of, provenance, write
from zelda_ci.ci.stored_artifacts import PROVENANCE
from zelda_ci.ci.stored_parts import PLAN, kept_trials, part_name, plan_name, received
from zelda_ci.compare.shards import difference
from zelda_ci.domain.ci import Provenance
from zelda_ci.domain.numbers import format_count
from zelda_ci.domain.outcome import Outcome, batch_outcome
from zelda_ci.domain.run import BatchResult, RunResult, StoredTrials, empty_batch
from zelda_ci.domain.shards import ShardOf, ShardPart, ShardPlan
from zelda_ci.domain.trials import Side
from zelda_ci.errors import EXIT_INTERRUPTED, StorageError, ZeldaError
from zelda_ci.pipeline.parts import PartFile, part_members
from zelda_ci.pipeline.shards import bring_in, counted_in, fitting, told
from zelda_ci.report.text import escape_markdown, sentence
from zelda_ci.storage import codec

# --- the plan --------------------------------------------------------------------------------------------------------


def publish_plan(case: CiContext, plan: ShardPlan, evidence: Evidence) -> int:
    """Store the plan with what it rests on, and hand its hash over to the jobs that follow.

    Raises:
        GitHubError: GitHub does not take it.
    """
    data = codec.encode(PinnedPlan(plan=plan, origin=_origin(case), evidence=evidence))
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


def agreed(ours: ShardPlan, case: CiContext) -> ShardPlan:
    """The plan that was handed on, if what this job sees leads to the same one.

    Raises:
        StorageError: It does not.
    """
    if case.pinned is None or ours == case.pinned.plan:
        return ours
    why = difference(case.pinned.plan, ours)
    raise StorageError(f"This job would plan otherwise than the one before it. {why}", code="OTHER_PLAN")


# --- a shard ---------------------------------------------------------------------------------------------------------


def hand_in(
    case: CiContext,
    shard: ShardOf,
    plan: ShardPlan,
    platform: str,
    run: Callable[[Sequence[RunResult]], BatchResult] | None,
) -> int:
    """Run the suites of a shard and store its part; the exit code says only whether that could be done.

    Args:
        case: The run.
        shard: This one.
        plan: Of all.
        platform: On which it runs.
        run: Runs its suites, given the trials of earlier attempts; absent where it has none.

    Raises:
        ZeldaError: Nothing could be run, or the part could not be stored.
    """
    case.log.say([*told(plan)][shard.number - 1])
    files = Files.of(case)
    files.clear()
    kept = kept_trials(case, shard, plan) if run else ()
    if kept:
        case.log.say(f"Of an earlier attempt of this shard {format_count(len(kept), 'trial')} can be counted, too.")
    batch = evaluate.emptying(case, partial(run, kept)) if run else empty_batch(case.now())
    with evaluate.undisturbed():
        write(files.results, json_of(batch))
        origin = provenance(case, batch, plan.base)
        counted = {
            name: StoredTrials(
                head=tuple(run for run in kept if run.suite == name and run.side is Side.HEAD),
                base=tuple(run for run in kept if run.suite == name and run.side is Side.BASE),
            )
            for name in {run.suite for run in kept} & {*plan.names_of(shard.number)}
        }
        part = ShardPart(shard=shard.number, plan=plan, platform=platform, origin=origin, counted=counted)
        # A cancelled job has seconds left: its trials are what counts.
        with_files = case.settings.include_transcripts and not batch.interrupted
        held = part_members(part, batch, case.results_dir, with_files=with_files)
        service = case.hurried_artifacts if batch.interrupted else case.artifacts
        name, members = part_name(case.settings, shard, origin.run_attempt), {**held, PROVENANCE: json_of(origin)}
        uploaded = storing.upload_as(case, name, members, service)
        _tell(case, shard, plan, batch, uploaded.id)
    return _exit_code(batch)


def _tell(case: CiContext, shard: ShardOf, plan: ShardPlan, batch: BatchResult, artifact_id: int) -> None:
    lines = _about_the_part(shard, plan, batch)
    for line in lines:
        case.log.say(line)
    if _exit_code(batch):
        case.log.report("error", " ".join(lines), title="Zelda")
    publish.warn(case.log, publish.summarise(case.settings.context, _listed(f"Zelda: shard {shard}", lines)))
    outputs = {"artifact-id": str(artifact_id), "cost-usd": f"{batch.cost_usd:.4f}"}
    publish.warn(case.log, publish.hand_over(case.settings.context, outputs))


def _exit_code(batch: BatchResult) -> int:
    """What can be judged, whatever it shows, is judged when all parts are there."""
    outcome = batch_outcome(batch)
    if batch.interrupted:
        return EXIT_INTERRUPTED
    return outcome.exit_code if outcome >= Outcome.INCOMPLETE else 0


def _about_the_part(shard: ShardOf, plan: ShardPlan, batch: BatchResult) -> list[str]:
    suites = f"{len(plan.names_of(shard.number))} of {format_count(len(plan.suites), 'suite')}"
    sessions = format_count(len(batch.runs) + len(batch.base_runs), "session")
    done = f"{suites}, {sessions}, ${batch.cost_usd:.2f}"
    lines = [f"Shard {shard}: {done}. The job with mode: merge compares and judges."]
    if batch.interrupted:
        lines.append("It was cancelled before its end: run it again.")
    elif _exit_code(batch):
        lines.append("Not everything could be run and judged. Running this job again runs its suites anew.")
    return lines


# --- the merge -------------------------------------------------------------------------------------------------------


def merge(case: CiContext, plan_for: Callable[[int], ShardPlan], evidence: Evidence) -> int:
    """Put the parts of all shards together and tell them as one run; returns its exit code.

    Args:
        case: The run.
        plan_for: The plan for a number of shards, as this job sees it.
        evidence: What is stored and counts.

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
        trials = format_count(len(part.batch.runs), "trial")
        case.log.say(f"{part.name}: {trials}, on {part.part.platform}, attempt {part.attempt}.")

    def run() -> BatchResult:
        return bring_in(parts, case.results_dir) if parts else empty_batch(case.now())

    kept = tuple(trial for part in parts for trial in counted_in(part))
    return evaluate.evaluate(case, run, evidence.replace(earlier=(*evidence.earlier, *kept)))


def _fitting(case: CiContext, plan_for: Callable[[int], ShardPlan]) -> tuple[PartFile, ...]:
    pinned = case.pinned
    if pinned:
        plan = agreed(plan_for(pinned.plan.shards), case)
        # Whoever runs all jobs again makes a new plan; what is left of those before says nothing.
        own = [part for part in received(case) if part.attempt >= pinned.origin.run_attempt]
        return fitting(own, plan) if plan.suites else ()
    parts = received(case)
    if not parts:
        return fitting(parts)
    return fitting(parts, plan_for(max(part.part.plan.shards for part in parts)))


def _origin(case: CiContext) -> Provenance:
    return provenance(case, empty_batch(case.now()), case.decision.base)


def _listed(title: str, lines: Iterable[str]) -> str:
    return f"### {title}\n\n" + "".join(f"- {escape_markdown(line)}\n" for line in lines)
