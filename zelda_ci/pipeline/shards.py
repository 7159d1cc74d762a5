"""A run that several machines share: the plan of who runs what, the part that each hands in, and all parts as one run.

A part is an archive with a shard's results and the files of its runs, which anybody may have made: nobody trusts it.
"""

import hashlib
import os
import re
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO, Final

from zelda_ci import __version__
from zelda_ci.compare import shards as dealing
from zelda_ci.domain.numbers import some_of
from zelda_ci.domain.run import BatchResult, PlannedSuite, RunResult, ShardOf, ShardPart, ShardPlan, StoredTrials
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.domain.trials import Side
from zelda_ci.errors import ArtifactError, StorageError
from zelda_ci.files import untrusted
from zelda_ci.files.atomic import storage_errors, write_whole
from zelda_ci.github.archives import MemberReader, packed
from zelda_ci.pipeline import planning
from zelda_ci.pipeline.invocation import RunOrder
from zelda_ci.storage import codec, result_store
from zelda_ci.storage.result_store import FILE_NAME, IMAGES, RUNS, image_files

PART, RESULTS, FOLDER = "zelda-shard.json", "zelda-results.json", "shards"
LOGS = map(result_store.log_name, ("setup", "setup-again", "build", "test"))
FILES = (result_store.TRANSCRIPT, result_store.PATCH, result_store.MANIFEST, result_store.STEERING, *LOGS)
MAX_ARCHIVE_BYTES, MAX_MEMBER_BYTES, MAX_MEMBERS = 512 << 20, 256 << 20, 50_000
LIMITS: Final = {"max_member_bytes": MAX_MEMBER_BYTES, "max_total_bytes": 2 * MAX_MEMBER_BYTES}
MAX_NAMED = 10
# What is taken from an archive for the folder of a run.
_MEMBER = re.compile(rf"{RUNS}/(?P<run>[^/]+)/(?P<name>{'|'.join(map(re.escape, FILES))}|{IMAGES}/{FILE_NAME.pattern})")


def make_plan(
    order: RunOrder,
    suites: Sequence[ResolvedSuite],
    commit: str | None,
    seconds: Mapping[str, float],
    shards: int,
    *,
    at_most: bool = False,
) -> ShardPlan:
    """Plan who runs what; the same facts make the same plan.

    The suites are all that run, as results hold them; the seconds those of a trial of each, as far as known. `shards`
    may be the most of them, so that none has nothing to do.
    """
    forecast = planning.forecast(order, suites, {}, sides=2 if order.compares(suites) else 0)
    trials = dict.fromkeys((suite.name for suite in suites), 0) | {row.suite: row.fewest for row in forecast.suites}
    expected = dealing.expected_to_take(seconds, trials)
    shards = min(shards, max(1, sum(count > 0 for count in trials.values()))) if at_most else shards
    dealt = dealing.deal(expected, shards)
    planned = (
        PlannedSuite(
            name=suite.name,
            shard=dealt[suite.name],
            trials=trials[suite.name],
            seconds=expected[suite.name],
            settings=dealing.digest_of(suite),
            stored=dealing.digest_of_trials(order.stored.get(suite.name, StoredTrials()).all),
        )
        for suite in suites
    )
    money = forecast.budget_usd
    return ShardPlan(zelda=__version__, commit=commit, shards=shards, budget_usd=money, suites=tuple(planned))


def describe(plan: ShardPlan) -> list[str]:
    """The plan for people: a sentence for each shard, and a warning where one suite bounds the whole."""
    loads, lines = dealing.loads_of(plan), []
    for number, load in enumerate(loads, start=1):
        budget, names = dealing.budget_of(plan, number), some_of(plan.names_of(number), MAX_NAMED) or "no suite"
        at_most = "" if budget is None else f", at most ${budget:.2f}"
        lines.append(f"Shard {number} of {plan.shards}: {names}, about {load:.0f} s of sessions{at_most}.")
    if longest := dealing.longest_suite(plan):
        share = f"{longest.seconds:.0f} s of {sum(loads):.0f} s, and a suite is never split"
        advice = "more shards make the run no shorter. Give that shard more jobs, or split the suite."
        lines.append(f"{longest.name} alone takes about {share}: {advice}")
    return lines


def order_of(order: RunOrder, plan: ShardPlan, shard: int) -> RunOrder:
    """What a shard runs, of what was ordered as a whole."""
    others, budget = [it.name for it in plan.suites if it.shard != shard], dealing.budget_of(plan, shard)
    return replace(order, names=plan.names_of(shard), tags=(), elsewhere=others, budget_usd=budget)


@dataclass(frozen=True)
class PartFile:
    """A part that was read, nothing of it believed yet but its form; messages call it by its name."""

    name: str
    archive: MemberReader
    said: ShardPart
    batch: BatchResult

    @property
    def runs(self) -> tuple[RunResult, ...]:
        """All that its shard has made."""
        return (*self.batch.runs, *self.batch.base_runs)


def run_files(results_dir: Path, runs: Iterable[RunResult], names: Iterable[str]) -> Iterator[tuple[str, Path]]:
    """By path within an archive, those of some files of runs that are there; images are with them."""
    names = tuple(names)
    for run in runs:
        folder = results_dir / RUNS / run.run_id
        for name in (*names, *image_files(folder)):
            path = folder / name
            if path.is_file() and not path.is_symlink():
                yield f"{RUNS}/{run.run_id}/{name}", path


def part_members(
    part: ShardPart, batch: BatchResult, results_dir: Path, *, with_files: bool
) -> Mapping[str, Path | bytes]:
    """What a part holds, by path within it."""
    files = run_files(results_dir, (*batch.runs, *batch.base_runs), FILES) if with_files else ()
    return {PART: codec.encode(part, indent=2), RESULTS: codec.encode(batch), **dict(files)}


def write_part(part: ShardPart, batch: BatchResult, results_dir: Path) -> Path:
    """Write a part as a file; returns where it is."""
    target = results_dir / FOLDER / f"zelda-{ShardOf(number=part.shard, shards=part.plan.shards).file_stem}.zip"
    with packed(part_members(part, batch, results_dir, with_files=True)) as archive:
        write_whole(target, iter(partial(archive.read, 1 << 20), b""), durable=False)
    return target


def read_part(file: IO[bytes], name: str) -> PartFile:
    """Read what a part says of itself, and its results; the file stays open for the files of its runs."""
    with _damages(name):
        archive = MemberReader(file, max_members=MAX_MEMBERS)
        found = archive.read({PART, RESULTS}, **LIMITS)
    if missing := {PART, RESULTS} - found.keys():
        message = f"{name} is no part of a run: it holds no {min(missing)}."
        raise StorageError(message, hint="`zelda run --shard 2/4` writes one.", code="PART_DAMAGED")
    said = codec.decode(ShardPart, found[PART], f"{name}: {PART}")
    part = PartFile(name, archive, said, codec.decode(BatchResult, found[RESULTS], f"{name}: {RESULTS}"))
    if wrong := [run.run_id for run in part.runs if not result_store.is_run_id(run.run_id)]:
        raise StorageError(f"{name} cannot be used: a run in it is called {wrong[0]!a}.", code="PART_DAMAGED")
    return part


@contextmanager
def parts_in(folder: Path) -> Iterator[list[PartFile]]:
    """The parts in a folder and below, as downloads of many artifacts leave them, open for a block."""
    with ExitStack() as opened:
        found = []
        for path in sorted(folder.rglob("zelda-shard-*-of-*.zip")):
            # A link is followed: the user has named the folder in which it lies.
            with storage_errors(path):
                file = opened.enter_context(open(os.path.realpath(path), "rb", opener=untrusted.open_regular))
            found.append(read_part(file, str(path.relative_to(folder))))
        yield found


@contextmanager
def _damages(name: str) -> Iterator[None]:
    try:
        yield
    except ArtifactError as problem:
        why = problem.message.removeprefix("The artifact cannot be used: ")
        raise StorageError(f"{name} is no part of a run: {why}", code="PART_DAMAGED") from None


# What to do where a part is missing or cannot be used.
RUN_AGAIN = "Run that shard again (on GitHub: Re-run failed jobs), then merge again."


def check_parts(parts: Sequence[PartFile], pinned: ShardPlan | None = None) -> tuple[PartFile, ...]:
    """One part of each shard, in their order, by the plan that was made for all; raises `StorageError` for the rest."""
    if not parts and pinned is None:
        hint = "Name the folder with the files zelda-shard-*.zip."
        raise StorageError("There is no part of any shard, so nothing can be merged.", hint=hint, code="NO_PARTS")
    plans = [part.said.plan for part in parts]
    plan = pinned or max(plans, key=plans.count)
    others = [part for part in parts if part.said.plan != plan]
    problems = [f"{part.name} is of another plan. {dealing.difference(plan, part.said.plan)}" for part in others]
    chosen = []
    for number in range(1, plan.shards + 1) if plan.suites or not pinned else ():
        found = [part for part in parts if part.said.plan == plan and part.said.shard == number]
        shard = f"Shard {number} of {plan.shards}"
        if len(found) > 1:
            names = " and ".join(part.name for part in found)
            problems.append(f"{shard} is there twice: {names}. Remove the one that is wrong.")
        elif not found:
            names = some_of(plan.names_of(number), MAX_NAMED) or "no suite"
            problems.append(f"{shard} is missing ({names}): it failed, or was cancelled.")
        else:
            problems += [f"{found[0].name}: {why}" for why in _objections(found[0], plan)]
            chosen += found
    # One machine may have had the base, and another not: what they ran is not one comparison.
    bases = defaultdict[str, list[str]](list)
    for part in chosen:
        if part.batch.base or part.batch.runs:
            bases[(part.batch.base and part.batch.base.commit) or "none"].append(part.name)
    if len(bases) > 1:
        said = "; ".join(f"{commit[:7]} in {', '.join(names)}" for commit, names in bases.items())
        problems.append(f"The shards ran beside different bases: {said}. Run those again that had none.")
    if problems:
        raise StorageError("\n".join(problems), hint=f"Nothing was merged. {RUN_AGAIN}", code="PARTS_REFUSED")
    return tuple(chosen)


def _objections(part: PartFile, plan: ShardPlan) -> Iterator[str]:
    """Why a part is not what its shard was to hand in; it may be forged."""
    batch, earlier = part.batch, part.said.earlier
    if batch.interrupted:
        yield f"shard {part.said.shard} was cancelled before its end"
        return
    own = {suite.name: suite for suite in plan.suites_of(part.said.shard)}
    named = {run.suite for run in (*part.runs, *earlier)} | {arms.suite for arms in batch.arms}
    if strangers := sorted(named - own.keys()):
        yield f"it holds {some_of(strangers, MAX_NAMED)}, which shard {part.said.shard} was not to run"
        return
    if len({(run.suite, run.side, run.trial) for run in part.runs}) != len(part.runs):
        yield "it holds a trial twice"
    if wrong := [it.run_id for it in (*part.runs, *earlier) if dealing.digest_of(it.config) != own[it.suite].settings]:
        yield f"{wrong[0]} ran with other settings than planned"
    commits = {Side.HEAD: plan.commit, Side.BASE: batch.base.commit if batch.base else None}
    # What could not even be copied knows no commit.
    if wrong := [run.run_id for run in part.runs if run.source and run.source.commit != commits[run.side]]:
        yield f"{wrong[0]} is of another commit than it should be"
    made = {run.suite for run in (*batch.runs, *earlier)} | {arms.suite for arms in batch.arms if arms.unpaid}
    made |= {name for name, each in part.said.counted.items() if each.head or each.base}
    if lacking := [name for name, suite in own.items() if suite.trials and name not in made]:
        yield f"it holds no trial of {some_of(lacking, MAX_NAMED)}"


def import_parts(parts: Sequence[PartFile], results_dir: Path) -> BatchResult:
    """The results of checked parts as those of one invocation, in the plan's order, stored as if made here."""
    plan, batches = parts[0].said.plan, [part.batch for part in parts]
    places, name = {suite.name: place for place, suite in enumerate(plan.suites)}, merged_id(batches)
    own = (run.replace(batch_id=name) for part in parts for run in part.runs)
    runs = sorted(own, key=lambda run: (places[run.suite], run.trial))
    batch = BatchResult(
        batch_id=name,
        started_at=min(batch.started_at for batch in batches),
        finished_at=max(batch.finished_at for batch in batches),
        planned=sum(batch.planned or 0 for batch in batches),
        runs=tuple(run for run in runs if run.side is Side.HEAD),
        base_runs=tuple(run for run in runs if run.side is Side.BASE),
        arms=tuple(sorted((arms for batch in batches for arms in batch.arms), key=lambda arms: places[arms.suite])),
        base=next((batch.base for batch in batches if batch.base), None),
        # A replay has none, since it costs nothing.
        budget_usd=plan.budget_usd if any(batch.budget_usd is not None for batch in batches) else None,
        ended=next((batch.ended for batch in batches if batch.ended), None),
        notes=tuple(dict.fromkeys(note for batch in batches for note in batch.notes)),
        failing_before={suite: why for batch in batches for suite, why in batch.failing_before.items()},
    )
    ids = Counter(run.run_id for run in runs)
    if doubled := [run_id for run_id, count in ids.items() if count > 1]:
        raise StorageError(f"Several parts hold a run called {doubled[0]}.", code="PARTS_REFUSED")
    for part in parts:
        _store_runs(part, name, results_dir)
    return batch


def merged_id(batches: Sequence[BatchResult]) -> str:
    """The same for the same parts, so that who merges them twice counts no trial twice."""
    ids = "\n".join(sorted(batch.batch_id for batch in batches))
    began = min(batch.started_at for batch in batches)
    return f"{began:%Y-%m-%dT%H-%M-%S}-{hashlib.sha256(ids.encode()).hexdigest()[:4]}"


def _store_runs(part: PartFile, batch_id: str, results_dir: Path) -> None:
    """Store the runs of a part with their files, as those of the merged batch."""
    members = defaultdict[str, dict[str, str]](dict)
    for found in filter(None, map(_MEMBER.fullmatch, part.archive.names)):
        members[found["run"]][found[0]] = found["name"]
    for run in part.runs:
        folder, result = results_dir / RUNS / run.run_id, codec.encode(run.replace(batch_id=batch_id), indent=2)
        # One at a time: two that merge the same parts make the same drafts.
        with result_store.ResultStore(results_dir).locked():
            if folder.exists():
                # Made on this machine, or merged before: its files are all there.
                before = None
                with suppress(StorageError):
                    before = result_store.RunFolder(folder).result().batch_id
                if before not in {batch_id, part.batch.batch_id}:
                    hint = "Merge in a folder of its own: it is the run of another invocation."
                    raise StorageError(f"A run called {run.run_id} is here already.", hint=hint, code="PARTS_REFUSED")
                write_whole(folder / result_store.RESULT, [result], durable=False)
                continue
            # It appears whole: half of a run would be taken for one that is under way for ever.
            draft, names = results_dir / FOLDER / f"{run.run_id}.draft", members[run.run_id]
            with _damages(part.name):
                files = {names[path]: data for path, data in part.archive.read(names, **LIMITS).items()}
            with storage_errors(draft):
                if draft.exists():
                    shutil.rmtree(draft)
            for name, data in {**files, result_store.RESULT: result}.items():
                write_whole(draft / name, [data], durable=False)
            with storage_errors(folder):
                draft.rename(folder)
