"""Several jobs share a run: one plans, each shard stores its part, and one merges the parts.

A part lies where any job of the run could have put it, so that nothing in it is believed that the plan does not say.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from typing import IO

from zelda_ci import __version__
from zelda_ci.ci import evaluate, publish
from zelda_ci.ci.baseline import pull_request_of
from zelda_ci.ci.context import CiContext
from zelda_ci.ci.publish import HURRY_SECONDS, clear_files, upload
from zelda_ci.ci.stored import RESULTS, Evidence, PinnedPlan, read_members
from zelda_ci.compare.pool import is_usable
from zelda_ci.compare.shards import difference, digest_of
from zelda_ci.domain.numbers import format_count
from zelda_ci.domain.outcome import Outcome, batch_outcome
from zelda_ci.domain.run import BatchResult, RunResult, ShardOf, ShardPart, ShardPlan, empty_batch
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.errors import StorageError, ZeldaError
from zelda_ci.files.atomic import write_whole
from zelda_ci.github.repository import Artifact, artifacts_of_run
from zelda_ci.pipeline import shards
from zelda_ci.pipeline.shards import MAX_ARCHIVE_BYTES, MAX_MEMBER_BYTES, describe, read_part
from zelda_ci.report.text import escape_markdown, json_of
from zelda_ci.storage import codec

PLAN = "zelda-plan.json"


def publish_plan(case: CiContext, plan: ShardPlan, evidence: Evidence) -> int:
    """Store the plan with what it rests on, and hand its hash over to the jobs that follow."""
    data = codec.encode(PinnedPlan(plan=plan, attempt=case.settings.context.run_attempt, evidence=evidence))
    upload(case, _name(case, "plan"), {PLAN: data})
    count = plan.shards if plan.suites else 0
    outputs = {
        "shards": str(count),
        "matrix": json.dumps([f"{number}/{count}" for number in range(1, count + 1)]),
        "plan": hashlib.sha256(data).hexdigest(),
    }
    _tell(case, "Zelda: the plan", describe(plan) if plan.suites else ["No suite has to run."], outputs)
    return 0


def pinned_plan(case: CiContext) -> PinnedPlan | None:
    """The plan whose hash the workflow hands on; absent for a job that is none of several, or makes the plan."""
    wanted = case.settings.plan
    if not case.settings.is_sharded or case.settings.mode == "plan":
        return None
    with _refusal_in_comment(case):
        for artifact in _artifacts(case, "plan") if wanted else ():
            data = read_members(case.github, artifact, {PLAN}, MAX_MEMBER_BYTES).get(PLAN, b"")
            if hashlib.sha256(data).hexdigest() == wanted:
                return codec.decode(PinnedPlan, data, PLAN)
        hint = (
            "Hand on the output plan of the job with mode: plan, and give all jobs the same artifact-name and "
            "comment-id. If that job failed, or its artifact was deleted, run all jobs again."
        )
        message = "This job shares a run, but was handed no plan."
        if wanted:
            message = f"No artifact {case.identity.stem}.plan of this run holds the plan with the hash {wanted[:12]}."
        raise StorageError(message, hint=hint, code="PLAN_MISSING")


def check_plan(plan: ShardPlan, shard: ShardOf | None, suites: Sequence[ResolvedSuite], commit: str | None) -> None:
    """Refuse to run, or without a shard to merge, what this job sees otherwise than it was planned, before it costs."""
    settings = {suite.name: digest_of(suite) for suite in suites}
    here = plan.replace(
        zelda=__version__,
        commit=commit,
        shards=shard.shards if shard else plan.shards,
        suites=tuple(each.replace(settings=settings.get(each.name, "")) for each in plan.suites),
    )
    if why := difference(plan, here):
        raise StorageError(f"This job sees other than what was planned. {why}", code="OTHER_PLAN")


def run_shard(
    case: CiContext, shard: ShardOf, plan: ShardPlan, platform: str, run: Callable[[Sequence[RunResult]], BatchResult]
) -> int:
    """Run the suites of a shard, with trials of earlier attempts, and store its part; the code says if it could."""
    case.log.say(describe(plan)[shard.number - 1])
    clear_files(case)
    names = plan.names_of(shard.number)
    earlier = _earlier_trials(case, shard, plan) if names else ()
    if earlier:
        case.log.say(f"Of an earlier attempt of this shard {format_count(len(earlier), 'trial')} can be counted, too.")
    batch = evaluate.emptying(case, partial(run, earlier)) if names else empty_batch(case.now())
    part = ShardPart(shard=shard.number, plan=plan, platform=platform, earlier=earlier)
    name, members = _name(case, shard.file_stem), partial(shards.part_members, part, batch, case.results_dir)
    artifact_id, outcome = None, batch_outcome(batch)
    with evaluate.undisturbed():
        write_whole(case.output / RESULTS, [json_of(batch).encode()], durable=False)
    try:
        if not batch.interrupted:
            artifact_id = upload(case, name, members(with_files=case.settings.include_transcripts))
    except KeyboardInterrupt:
        outcome = Outcome.INTERRUPTED
    with evaluate.undisturbed():
        # A cancelled job has seconds left: its trials are what counts.
        artifact_id = artifact_id or upload(case, name, members(with_files=False), HURRY_SECONDS)
        # What can be judged, whatever it shows, is judged when all parts are there.
        code = outcome.exit_code if outcome >= Outcome.INCOMPLETE else 0
        suites = f"{len(names)} of {format_count(len(plan.suites), 'suite')}"
        done = f"{suites}, {format_count(len(batch.runs) + len(batch.base_runs), 'session')}, ${batch.cost_usd:.2f}"
        lines = [f"Shard {shard}: {done}. The job with mode: merge compares and judges."]
        if batch.interrupted:
            lines.append("It was cancelled before its end: run it again.")
        elif code:
            lines.append("Not everything could be run and judged. Running this job again runs its suites anew.")
        if code:
            case.log.report("error", " ".join(lines), title="Zelda")
        outputs = {"artifact-id": str(artifact_id), "cost-usd": f"{batch.cost_usd:.4f}"}
        _tell(case, f"Zelda: shard {shard}", lines, outputs)
    return code


def _earlier_trials(case: CiContext, shard: ShardOf, plan: ShardPlan) -> tuple[RunResult, ...]:
    """What this shard has made of a pull request in earlier attempts: nobody gets rid of a trial by running again."""
    if pull_request_of(case) is None or case.settings.context.run_attempt == 1:
        return ()
    names = plan.names_of(shard.number)
    for artifact in _artifacts(case, re.escape(shard.file_stem)):
        with _downloaded(case, artifact) as file:
            part = read_part(file, artifact.name)
        if part.said.plan == plan:
            return tuple(run for run in (*part.said.earlier, *part.runs) if run.suite in names and is_usable(run))
    return ()


def merge(case: CiContext, pinned: PinnedPlan) -> int:
    """Put the parts of all shards together and report them as one run; returns its exit code.

    An earlier comment says so where a part is missing, doubled or foreign.
    """
    with ExitStack() as opened:
        with _refusal_in_comment(case):
            stored = [read_part(opened.enter_context(_downloaded(case, it)), it.name) for it in _newest(case, pinned)]
            parts = shards.check_parts(stored, pinned.plan)
        for part in parts:
            case.log.say(f"{part.name}: {format_count(len(part.batch.runs), 'trial')}, on {part.said.platform}.")

        run = partial(shards.import_parts, parts, case.results_dir) if parts else partial(empty_batch, case.now())
        earlier = (run for part in parts for run in part.said.earlier)
        evidence = pinned.evidence.replace(earlier=(*pinned.evidence.earlier, *earlier))
        return evaluate.evaluate(case, run, evidence)


def _newest(case: CiContext, pinned: PinnedPlan) -> Iterator[Artifact]:
    """The parts that jobs of this run have stored since it was planned; of each shard, that of its newest attempt."""
    newest = dict[str, str]()
    for artifact in _artifacts(case, r"shard-[0-9]+-of-[0-9]+"):
        shard, _, attempt = artifact.name.rpartition(".")
        # Whoever runs all jobs again makes a new plan; what is left of those before says nothing.
        if int(attempt) >= pinned.attempt and newest.setdefault(shard, attempt) == attempt:
            yield artifact


@contextmanager
def _refusal_in_comment(case: CiContext) -> Iterator[None]:
    """Have an earlier comment say why nothing is merged, which it may contradict."""
    try:
        yield
    except ZeldaError as problem:
        if case.settings.mode == "merge":
            text = publish.problem_text("Zelda could not put the shards together", problem.user_message)
            publish.replace_comment(case, text)
        raise


def _name(case: CiContext, kind: str) -> str:
    return f"{case.identity.stem}.{kind}.{case.settings.context.run_attempt}"


def _artifacts(case: CiContext, kind: str) -> list[Artifact]:
    """Those of this run, of all its attempts, the newest first, whose kind has a form."""
    form = re.compile(rf"{re.escape(case.identity.stem)}\.{kind}\.[0-9]+")
    return [it for it in artifacts_of_run(case.github, case.run_id) if not it.expired and form.fullmatch(it.name)]


def _downloaded(case: CiContext, artifact: Artifact) -> AbstractContextManager[IO[bytes]]:
    return case.github.download(artifact.id, digest=artifact.digest, max_bytes=MAX_ARCHIVE_BYTES)


def _tell(case: CiContext, title: str, lines: Sequence[str], outputs: Mapping[str, str]) -> None:
    for line in lines:
        case.log.say(line)
    summary = f"### {title}\n\n" + "".join(f"- {escape_markdown(line)}\n" for line in lines)
    case.log.record(summary, outputs)
