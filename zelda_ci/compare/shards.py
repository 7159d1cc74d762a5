"""Suites dealt out to several machines: whole ones, the longest first, alike wherever it is computed. Pure."""

import hashlib
from collections.abc import Iterable, Mapping
from statistics import median

from zelda_ci.domain.base import Record
from zelda_ci.domain.numbers import some_of
from zelda_ci.domain.run import PlannedSuite, RunOutline, RunResult, ShardPlan

# Newest trials of a suite that say how long one takes.
MAX_TIMED = 5
# What a trial of which nothing is stored is taken to last, where nothing of any suite is.
GUESSED_SECONDS = 60.0


def deal(seconds: Mapping[str, float], shards: int) -> dict[str, int]:
    """By suite its shard, from 1: each goes to the shard that has least to do so far, the longest suite first.

    With m shards, the longest has at most 4/3 - 1/(3m) of the least possible (Graham, 1969). Equals are dealt by name.
    """
    # Suites that take no time are spread as well.
    loads = [(0.0, 0, number) for number in range(1, shards + 1)]
    dealt: dict[str, int] = {}
    for suite in sorted(seconds, key=lambda name: (-seconds[name], name)):
        load, count, shard = least = min(loads)
        loads[loads.index(least)] = (load + seconds[suite], count + 1, shard)
        dealt[suite] = shard
    return dealt


def trial_seconds(runs: Iterable[RunOutline], *, replayed: bool) -> dict[str, float]:
    """By suite, how long a trial takes, by the median of the newest; failed and interrupted ones say nothing."""
    # A replay takes seconds, and says nothing of a real session.
    valid = {(run.batch_id, run.run_id): run for run in runs if run.replayed is replayed and run.status.is_valid}
    found: dict[str, list[float]] = {}
    for run in sorted(valid.values(), key=lambda run: (run.finished_at, run.run_id)):
        found.setdefault(run.suite, []).append((run.finished_at - run.started_at).total_seconds())
    return {suite: median(seconds[-MAX_TIMED:]) for suite, seconds in found.items()}


def expected_to_take(per_trial: Mapping[str, float], trials: Mapping[str, int]) -> dict[str, float]:
    """By suite the seconds of all its trials; one of which nothing is stored is taken for a usual one."""
    known = [per_trial[suite] for suite in trials if suite in per_trial]
    usual = median(known) if known else GUESSED_SECONDS
    return {suite: per_trial.get(suite, usual) * count for suite, count in trials.items()}


def loads_of(plan: ShardPlan) -> tuple[float, ...]:
    return tuple(sum(suite.seconds for suite in plan.suites_of(number)) for number in range(1, plan.shards + 1))


def longest_suite(plan: ShardPlan) -> PlannedSuite | None:
    """The suite that alone takes longer than an equal share of the whole, so that more shards do not help."""
    share = sum(suite.seconds for suite in plan.suites) / plan.shards
    longest = max(plan.suites, key=lambda suite: suite.seconds, default=None)
    return longest if longest and longest.seconds > share else None


def budget_of(plan: ShardPlan, shard: int) -> float | None:
    """What a shard may spend: as large a part of the whole as its suites are expected to take of the whole time."""
    # Nothing that one shard leaves is there for another, so that all of them together never spend more than the whole.
    if plan.budget_usd is None:
        return None
    loads = loads_of(plan)
    whole = sum(loads)
    part = loads[shard - 1] / whole if whole else len(plan.suites_of(shard)) / max(1, len(plan.suites))
    # Downwards, to a hundredth of a cent.
    return int(plan.budget_usd * part * 10_000) / 10_000


def digest_of(record: Record) -> str:
    return hashlib.sha256(record.model_dump_json(by_alias=True, exclude_none=True).encode()).hexdigest()


def digest_of_trials(runs: Iterable[RunResult]) -> str:
    """Of the trials that count, whichever these are; their order says nothing."""
    keys = sorted(f"{run.batch_id}/{run.run_id}" for run in runs)
    return hashlib.sha256("\n".join(keys).encode()).hexdigest() if keys else ""


# What plans may differ in; what explains the rest comes first.
_PLAN = {"zelda": "version of Zelda", "commit": "tested commit", "shards": "number of shards", "budget_usd": "budget"}
_STORED = "stored trials"
_SUITE = {"name": "choice", "settings": "settings", "stored": _STORED, "trials": _STORED, "seconds": "stored durations"}
_FIX = "Give all jobs the same version, checkout, options and stored runs."


def difference(ours: ShardPlan, other: ShardPlan) -> str:
    """The first in what two plans differ, as a sentence, and what to do; empty where they are alike."""
    for key, what in _PLAN.items():
        one, two = (getattr(plan, key) for plan in (ours, other))
        if one != two:
            return f"Different {what}: {str(one or 'none')[:7]} and {str(two or 'none')[:7]}. {_FIX}"
    for key, what in _SUITE.items():
        here, there = ({suite.name: getattr(suite, key) for suite in plan.suites} for plan in (ours, other))
        if names := sorted(name for name in {**here, **there} if here.get(name) != there.get(name)):
            return f"Different {what} of {some_of(names, 3)}. {_FIX}"
    return f"Different order of the suites. {_FIX}" if ours != other else ""
