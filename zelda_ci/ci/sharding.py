"""Several jobs share a run: one plans, each shard hands in its part, and one puts the parts together.

A part lies where any job of the run could have put it, so that nothing in it is believed that the plan does not say.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from zelda_ci.ci import evaluate, publish
from zelda_ci.ci.baseline import pull_request_of
from zelda_ci.ci.context import CiContext
from zelda_ci.ci.evidence import Evidence, PinnedPlan
from zelda_ci.ci.stored_artifacts import PROVENANCE, RESULTS, artifacts_of_run, identity_of
from zelda_ci.ci.storing import clear_files, provenance, upload
from zelda_ci.compare.pool import is_usable
from zelda_ci.compare.shards import difference, digest_of
from zelda_ci.domain.numbers import format_count
from zelda_ci.domain.outcome import Outcome, batch_outcome
from zelda_ci.domain.run import BatchResult, RunResult, StoredTrials, empty_batch
from zelda_ci.domain.shards import ShardOf, ShardPart, ShardPlan
from zelda_ci.domain.trials import Side
from zelda_ci.errors import EXIT_INTERRUPTED, GitHubError, StorageError, ZeldaError
from zelda_ci.files.atomic import write_whole
from zelda_ci.github.archives import MemberReader
from zelda_ci.github.schemas import Artifact
from zelda_ci.pipeline.parts import MAX_ARCHIVE_BYTES, MAX_MEMBER_BYTES, PartFile, part_members, read_part
from zelda_ci.pipeline.shards import RUN_AGAIN, bring_in, counted_in, fitting, told
from zelda_ci.report.text import escape_markdown, json_of, sentence
from zelda_ci.storage import codec

PLAN = "zelda-plan.json"
PLAN_MEMBERS = 10


# --- the plan --------------------------------------------------------------------------------------------------------


def publish_plan(case: CiContext, plan: ShardPlan, evidence: Evidence) -> int:
    """Store the plan with what it rests on, and hand its hash over to the jobs that follow."""
    origin = provenance(case, empty_batch(case.now()), case.decision.base)
    data = codec.encode(PinnedPlan(plan=plan, origin=origin, evidence=evidence))
    upload(case, _name(case, "plan", origin.run_attempt), {PLAN: data, PROVENANCE: json_of(origin).encode()})
    shards = plan.shards if plan.suites else 0
    outputs = {
        "shards": str(shards),
        "matrix": json.dumps([f"{number}/{shards}" for number in range(1, shards + 1)]),
        "plan": hashlib.sha256(data).hexdigest(),
    }
    _tell(case, "Zelda: the plan", [*told(plan)] if plan.suites else ["No suite has to run."], outputs)
    return 0


def pinned_plan(case: CiContext) -> PinnedPlan | None:
    """The plan whose hash the workflow hands on; absent where it hands on none."""
    wanted = case.settings.plan
    if not wanted:
        return None
    for artifact in _artifacts(case, "plan"):
        members = MemberReader(_downloaded(case, artifact), max_members=PLAN_MEMBERS).read(
            {PLAN}, max_member_bytes=MAX_MEMBER_BYTES, max_total_bytes=MAX_MEMBER_BYTES
        )
        data = members.get(PLAN, b"")
        if hashlib.sha256(data).hexdigest() == wanted:
            return codec.decode(PinnedPlan, data, PLAN)
    name = f"{identity_of(case.settings).stem}.plan"
    raise StorageError(
        f"No artifact {name} of this run holds the plan with the hash {wanted[:12]}.",
        hint="Hand on the output plan of the job with mode: plan, and give all jobs the same artifact-name and "
        "comment-id. If the artifact was deleted, run all jobs again.",
        code="PLAN_MISSING",
    )


def agreed(ours: ShardPlan, case: CiContext) -> ShardPlan:
    """The plan that was handed on, if what this job sees leads to the same one."""
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

    `run` is given the trials of earlier attempts, and absent where the shard has no suite.

    Raises:
        ZeldaError: Nothing could be run, or the part could not be stored.
    """
    case.log.say([*told(plan)][shard.number - 1])
    clear_files(case)
    kept = _kept_trials(case, shard, plan) if run else ()
    if kept:
        case.log.say(f"Of an earlier attempt of this shard {format_count(len(kept), 'trial')} can be counted, too.")
    batch = evaluate.emptying(case, partial(run, kept)) if run else empty_batch(case.now())
    origin = provenance(case, batch, plan.base)
    counted = {
        name: StoredTrials(
            head=tuple(run for run in kept if run.suite == name and run.side is Side.HEAD),
            base=tuple(run for run in kept if run.suite == name and run.side is Side.BASE),
        )
        for name in {run.suite for run in kept} & {*plan.names_of(shard.number)}
    }
    part = ShardPart(shard=shard.number, plan=plan, platform=platform, origin=origin, counted=counted)

    def store(*, is_hurried: bool) -> int:
        # A cancelled job has seconds left: its trials are what counts.
        with_files = case.settings.include_transcripts and not is_hurried
        held = part_members(part, batch, case.results_dir, with_files=with_files)
        name = _name(case, shard.file_stem, origin.run_attempt)
        service = case.hurried_artifacts if is_hurried else case.artifacts
        return upload(case, name, {**held, PROVENANCE: json_of(origin).encode()}, service)

    with evaluate.undisturbed():
        write_whole(case.output / RESULTS, [json_of(batch).encode()], durable=False)
    is_cancelled = batch.interrupted
    try:
        artifact_id = None if is_cancelled else store(is_hurried=False)
    except KeyboardInterrupt:
        artifact_id, is_cancelled = None, True
    with evaluate.undisturbed():
        artifact_id = artifact_id or store(is_hurried=True)
        # What can be judged, whatever it shows, is judged when all parts are there.
        outcome = batch_outcome(batch)
        code = outcome.exit_code if outcome >= Outcome.INCOMPLETE else 0
        suites = f"{len(plan.names_of(shard.number))} of {format_count(len(plan.suites), 'suite')}"
        sessions = format_count(len(batch.runs) + len(batch.base_runs), "session")
        done = f"{suites}, {sessions}, ${batch.cost_usd:.2f}"
        lines = [f"Shard {shard}: {done}. The job with mode: merge compares and judges."]
        if batch.interrupted:
            lines.append("It was cancelled before its end: run it again.")
        elif code:
            lines.append("Not everything could be run and judged. Running this job again runs its suites anew.")
        code = EXIT_INTERRUPTED if is_cancelled else code
        if code:
            case.log.report("error", " ".join(lines), title="Zelda")
        outputs = {"artifact-id": str(artifact_id), "cost-usd": f"{batch.cost_usd:.4f}"}
        _tell(case, f"Zelda: shard {shard}", lines, outputs)
    return code


def _kept_trials(case: CiContext, shard: ShardOf, plan: ShardPlan) -> tuple[RunResult, ...]:
    """What this shard has made of a pull request in an earlier attempt: nobody gets rid of a trial by running again."""
    if pull_request_of(case) is None or case.settings.context.run_attempt == 1:
        return ()
    for artifact in _artifacts(case, re.escape(shard.file_stem)):
        part = read_part(_downloaded(case, artifact), artifact.name)
        is_ours = part.part.plan == plan and part.attempt < case.settings.context.run_attempt
        if is_ours and not [*_distrust(case, artifact, part)]:
            runs = (*counted_in(part), *part.batch.runs, *part.batch.base_runs)
            return tuple(run for run in runs if is_usable(run))
    return ()


# --- the merge -------------------------------------------------------------------------------------------------------


def merge(case: CiContext, plan_for: Callable[[int], ShardPlan], evidence: Evidence) -> int:
    """Put the parts of all shards together and tell them as one run; returns its exit code.

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
        own = [part for part in _received(case) if part.attempt >= pinned.origin.run_attempt]
        return fitting(own, plan) if plan.suites else ()
    parts = _received(case)
    return fitting(parts, plan_for(max(part.part.plan.shards for part in parts)) if parts else None)


def _received(case: CiContext) -> list[PartFile]:
    """The parts that jobs of this run have stored; of each shard, that of its newest attempt.

    Raises:
        StorageError: One is not what its name says.
    """
    found, problems = [], []
    parts = _artifacts(case, r"shard-[0-9]+-of-[0-9]+")
    newest = {artifact.name.rpartition(".")[0]: artifact.name for artifact in reversed(parts)}
    for artifact in (each for each in parts if each.name in newest.values()):
        try:
            part = read_part(_downloaded(case, artifact), artifact.name)
        except (StorageError, GitHubError) as problem:
            problems.append(f"{artifact.name}: {problem.message}")
            continue
        problems += [f"{artifact.name} is not believed: {why}." for why in _distrust(case, artifact, part)]
        found.append(part)
    if problems:
        raise StorageError("\n".join(problems), hint=f"Nothing was merged. {RUN_AGAIN}", code="PARTS_REFUSED")
    return found


def _distrust(case: CiContext, artifact: Artifact, part: PartFile) -> Iterator[str]:
    """Why a part is not what its artifact, which GitHub says is of this run, should hold; the plan says the rest."""
    plan, shard = part.part.plan, ShardOf(number=part.part.shard, shards=part.part.plan.shards)
    if artifact.name != _name(case, shard.file_stem, part.attempt):
        yield f"it holds the part of shard {shard}, attempt {part.attempt}"
    if any(each.stored for each in part.part.counted.values()):
        yield "it brings trials of the base of its own"
    settings = {suite.name: suite.settings for suite in plan.suites_of(shard.number)}
    if any(digest_of(run.config) != settings.get(run.suite) for run in counted_in(part)):
        yield "the trials that it has counted ran with other settings"


# --- artifacts -------------------------------------------------------------------------------------------------------


def _name(case: CiContext, kind: str, attempt: int) -> str:
    return f"{identity_of(case.settings).stem}.{kind}.{attempt}"


def _artifacts(case: CiContext, kind: str) -> list[Artifact]:
    """Those of this run, of all its attempts, the newest first, whose kind has a form."""
    if case.api is None:
        hint = "Pass github-token, and give the job `permissions: actions: read`."
        raise GitHubError("No token was given, so that plan and parts cannot be read.", hint=hint)
    form = re.compile(rf"{re.escape(identity_of(case.settings).stem)}\.{kind}\.[0-9]+")
    return [it for it in artifacts_of_run(case.api, case.run_id) if not it.expired and form.fullmatch(it.name)]


def _downloaded(case: CiContext, artifact: Artifact) -> bytes:
    assert case.api  # noqa: S101 - it has listed the artifact
    return case.api.download(artifact.id, digest=artifact.digest, max_bytes=MAX_ARCHIVE_BYTES)


def _tell(case: CiContext, title: str, lines: Sequence[str], outputs: Mapping[str, str]) -> None:
    for line in lines:
        case.log.say(line)
    summary = f"### {title}\n\n" + "".join(f"- {escape_markdown(line)}\n" for line in lines)
    case.log.record(summary, outputs)
