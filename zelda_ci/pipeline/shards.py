"""A plan that every shard makes alike, and the results of all shards as those of one run."""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from zelda_ci import __version__
from zelda_ci.compare.shards import (
    budget_of,
    deal,
    difference,
    digest_of,
    digest_of_trials,
    expected_to_take,
    loads_of,
    longest_suite,
)
from zelda_ci.domain.arms import BaseSide
from zelda_ci.domain.run import BatchResult, RunResult, StoredTrials
from zelda_ci.domain.shards import PlannedSuite, ShardPlan
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.domain.trials import Side
from zelda_ci.errors import StorageError
from zelda_ci.pipeline import money
from zelda_ci.pipeline.invocation import RunOrder
from zelda_ci.pipeline.parts import PartFile, take_in, with_own_ids

MAX_NAMED = 10


@dataclass(frozen=True, kw_only=True)
class PlanFacts:
    """What a plan follows from: who knows the same facts makes the same plan."""

    suites: Sequence[ResolvedSuite]
    """All that run, as results hold them, in their order."""
    commit: str | None
    tree: str | None
    base: str | None
    sides: int
    """How many sides run as often as it takes to compare them; 0 where the number of trials is fixed."""
    stored: Mapping[str, StoredTrials] = field(default_factory=dict)
    """By suite, trials that need not be run again, or say what to expect."""
    trial_seconds: Mapping[str, float] = field(default_factory=dict)
    """By suite, how long a trial takes, as far as that is known."""
    budget_usd: float | None = None
    """Above what the suites say."""


def make_plan(facts: PlanFacts, shards: int, *, at_most: bool = False) -> ShardPlan:
    """Who runs what.

    Args:
        facts: What it follows from.
        shards: Their number.
        at_most: Whether there may be fewer, so that none has nothing to do.
    """
    names = [suite.name for suite in facts.suites]
    forecast = money.forecast(facts.suites, {}, sides=facts.sides, budget_usd=facts.budget_usd, stored=facts.stored)
    fewest = {row.suite: row.fewest for row in forecast.suites}
    trials = {name: fewest.get(name, 0) for name in names}
    seconds = expected_to_take(facts.trial_seconds, trials)
    if at_most:
        shards = min(shards, max(1, sum(count > 0 for count in trials.values())))
    dealt = deal(seconds, shards)
    suites = (
        PlannedSuite(
            name=suite.name,
            shard=dealt[suite.name],
            trials=trials[suite.name],
            seconds=seconds[suite.name],
            settings=digest_of(suite),
            stored=digest_of_trials(facts.stored.get(suite.name, StoredTrials()).all),
        )
        for suite in facts.suites
    )
    return ShardPlan(
        zelda=__version__,
        commit=facts.commit,
        tree=facts.tree,
        base=facts.base,
        shards=shards,
        budget_usd=forecast.budget_usd,
        suites=tuple(suites),
    )


def told(plan: ShardPlan) -> Iterator[str]:
    """The plan for people, in sentences."""
    loads = loads_of(plan)
    for number in range(1, plan.shards + 1):
        names = plan.names_of(number)
        budget = budget_of(plan, number)
        money_of = "" if budget is None else f", at most ${budget:.2f}"
        suites = _listed(names) or "no suite"
        yield f"Shard {number} of {plan.shards}: {suites}, about {loads[number - 1]:.0f} s of sessions{money_of}."
    if longest := longest_suite(plan):
        whole = sum(suite.seconds for suite in plan.suites)
        yield (
            f"{longest.name} alone takes about {longest.seconds:.0f} s of {whole:.0f} s, and a suite is never split: "
            "more shards make the run no shorter. Give that shard more jobs, or split the suite."
        )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return ", ".join(names[:MAX_NAMED]) + more


def counted_trials(stored: Mapping[str, StoredTrials], names: Collection[str]) -> dict[str, StoredTrials]:
    """Of some suites, the stored trials that count, as a part holds them."""
    return {name: stored[name] for name in names if name in stored and stored[name].all}


def counted_in(part: PartFile) -> tuple[RunResult, ...]:
    """The trials of both commits that a part has counted beside its own."""
    return tuple(run for each in part.part.counted.values() for run in (*each.head, *each.base))


def stored_in(parts: Iterable[PartFile]) -> dict[str, StoredTrials]:
    """By suite, the stored trials that all parts have counted."""
    return {name: each for part in parts for name, each in part.part.counted.items()}


# What to do where a part is missing or cannot be used.
RUN_AGAIN = "Run that shard again (on GitHub: Re-run failed jobs), then merge again."


def fitting(parts: Sequence[PartFile], plan: ShardPlan | None = None) -> tuple[PartFile, ...]:
    """One part of each shard, in their order.

    Args:
        parts: All that were found.
        plan: Which they must have; else that of most of them.

    Raises:
        StorageError: A part is missing, doubled or foreign, or does not hold what its shard was to run. All of it is
            named.
    """
    if not parts and plan is None:
        hint = "Name the folder with the files zelda-shard-*.zip; on GitHub, look why no shard has stored its part."
        raise StorageError("There is no part of any shard, so nothing can be merged.", hint=hint, code="NO_PARTS")
    newest_attempt = max((part.attempt for part in parts), default=1)
    current = [part for part in parts if part.attempt == newest_attempt]
    wanted = plan or _most_common(current)
    same = [part for part in parts if part.part.plan == wanted]
    # What an earlier attempt with another plan has left says nothing of this one.
    problems = [_foreign(part, wanted) for part in current if part.part.plan != wanted]
    by_shard: dict[int, list[PartFile]] = {}
    for part in same:
        by_shard.setdefault(part.part.shard, []).append(part)
    chosen = []
    for number in range(1, wanted.shards + 1):
        found = by_shard.get(number, [])
        newest = [part for part in found if part.attempt == max(each.attempt for each in found)]
        if len(newest) > 1:
            names = " and ".join(part.name for part in newest)
            problems.append(f"Shard {number} of {wanted.shards} is there twice: {names}. Remove the one that is wrong.")
        elif not newest:
            suites = _listed(wanted.names_of(number)) or "no suite"
            problems.append(f"Shard {number} of {wanted.shards} is missing ({suites}): it failed, or was cancelled.")
        else:
            problems += [f"{newest[0].name}: {why}" for why in _objections(newest[0], wanted)]
            chosen.append(newest[0])
    problems += _of_different_bases(chosen)
    if problems:
        raise StorageError("\n".join(problems), hint=f"Nothing was merged. {RUN_AGAIN}", code="PARTS_REFUSED")
    return tuple(chosen)


def _most_common(parts: Sequence[PartFile]) -> ShardPlan:
    plans = [part.part.plan for part in parts]
    return max(plans, key=plans.count)


def _foreign(part: PartFile, wanted: ShardPlan) -> str:
    return f"{part.name} is of another plan. {difference(wanted, part.part.plan)}"


def _of_different_bases(parts: Sequence[PartFile]) -> Iterator[str]:
    """One machine may have had the base, and another not: what they ran is not one comparison."""
    bases: dict[tuple[str | None, bool], list[PartFile]] = {}
    for part in parts:
        if part.batch.base or part.batch.runs:
            base = part.batch.base
            bases.setdefault((base.commit if base else None, base is not None), []).append(part)
    if len(bases) > 1:
        said = (
            f"{commit[:12] if commit else 'none'} in {', '.join(part.name for part in of_base)}"
            for (commit, _), of_base in bases.items()
        )
        yield f"The shards ran beside different bases: {'; '.join(said)}. Run those again that had none."


def _objections(part: PartFile, plan: ShardPlan) -> Iterator[str]:
    """Why a part is not what its shard was to hand in; it may be forged."""
    shard, batch = part.part.shard, part.batch
    if batch.interrupted:
        yield f"shard {shard} was cancelled before its end"
        return
    own = {suite.name: suite for suite in plan.suites_of(shard)}
    runs = (*batch.runs, *batch.base_runs)
    told_of = {*(run.suite for run in runs), *(arms.suite for arms in batch.arms)}
    if strangers := sorted(told_of - own.keys()):
        yield f"it holds {_listed(strangers)}, which shard {shard} was not to run"
        return
    if len({run.run_id for run in runs}) != len(runs) or len({_place(run) for run in runs}) != len(runs):
        yield "it holds a trial twice"
    if wrong := [run.run_id for run in runs if digest_of(run.config) != own[run.suite].settings]:
        yield f"{wrong[0]} ran with other settings than planned"
    if wrong := [run.run_id for run in runs if _is_elsewhere(run, batch, plan)]:
        yield f"{wrong[0]} is of another commit or side than it should be"
    budget = budget_of(plan, shard)
    if batch.budget_usd not in {budget, None} or (
        budget is not None and batch.budget_usd is None and not _is_free(batch)
    ):
        yield "its budget is not the one that was planned"
    made = {run.suite for run in (*batch.runs, *counted_in(part))} | {arms.suite for arms in batch.arms if arms.unpaid}
    if lacking := [name for name, suite in own.items() if suite.trials and name not in made]:
        yield f"it holds no trial of {_listed(lacking)}"


def _place(run: RunResult) -> tuple[str, Side, int]:
    return run.suite, run.side, run.trial


def _is_free(batch: BatchResult) -> bool:
    """A replay has no budget, since it costs nothing; nor has who ran nothing."""
    return all(run.replayed for run in (*batch.runs, *batch.base_runs))


def _is_elsewhere(run: RunResult, batch: BatchResult, plan: ShardPlan) -> bool:
    """Whether a trial is not of the commit of its side; what could not even be copied knows none."""
    wanted = plan.commit if run.side is Side.HEAD else batch.base.commit if batch.base else None
    is_on_side = (run.side is Side.HEAD) == any(run is each for each in batch.runs)
    return not is_on_side or (run.source is not None and run.source.commit != wanted)


def merged(plan: ShardPlan, parts: Sequence[PartFile]) -> BatchResult:
    """The results of all shards as those of one invocation: suite by suite in the plan's order."""
    batches = [part.batch for part in parts]
    places = {suite.name: place for place, suite in enumerate(plan.suites)}
    name = merged_id(batches)
    bases: list[BaseSide] = [batch.base for batch in batches if batch.base]
    budgets = [batch.budget_usd for batch in batches if batch.budget_usd is not None]

    def of_side(runs: Iterable[RunResult]) -> tuple[RunResult, ...]:
        chosen = sorted(runs, key=lambda run: (places[run.suite], run.trial))
        return tuple(run.replace(batch_id=name) for run in chosen)

    return BatchResult(
        batch_id=name,
        started_at=min(batch.started_at for batch in batches),
        finished_at=max(batch.finished_at for batch in batches),
        interrupted=any(batch.interrupted for batch in batches),
        planned=sum(batch.planned or 0 for batch in batches),
        runs=of_side(run for batch in batches for run in batch.runs),
        base_runs=of_side(run for batch in batches for run in batch.base_runs),
        arms=tuple(sorted((arms for batch in batches for arms in batch.arms), key=lambda arms: places[arms.suite])),
        base=bases[0] if bases else None,
        budget_usd=plan.budget_usd if budgets else None,
        ended=next((batch.ended for batch in batches if batch.ended), None),
        notes=tuple(dict.fromkeys(note for batch in batches for note in batch.notes)),
        failing_before={suite: why for batch in batches for suite, why in batch.failing_before.items()},
    )


def merged_id(batches: Sequence[BatchResult]) -> str:
    """The same for the same parts, so that who merges them twice counts no trial twice."""
    ids = "\n".join(sorted(batch.batch_id for batch in batches))
    began = min(batch.started_at for batch in batches)
    return f"{began:%Y-%m-%dT%H-%M-%S}-{hashlib.sha256(ids.encode()).hexdigest()[:4]}"


def order_of(order: RunOrder, plan: ShardPlan, shard: int) -> RunOrder:
    """What a shard runs, of what was ordered as a whole."""
    own = plan.names_of(shard)
    others = [suite.name for suite in plan.suites if suite.shard != shard]
    return replace(order, names=own, tags=(), elsewhere=others, budget_usd=budget_of(plan, shard))


def bring_in(parts: Sequence[PartFile], results_dir: Path) -> BatchResult:
    """The results of fitting parts as those of one invocation, whose runs are stored here as if they were made here.

    Raises:
        StorageError: There was no room or no permission, or a part is damaged.
    """
    name = merged_id([part.batch for part in parts])
    own, former = with_own_ids(parts, results_dir, name)
    batch = merged(own[0].part.plan, own)
    take_in(own, batch, former, results_dir)
    return batch
