"""Suites dealt out to several machines: whole ones, the longest first, alike wherever it is computed. Pure."""

import hashlib
from collections.abc import Iterable, Mapping
from statistics import median

from zelda_ci.domain.base import Record
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.shards import PlannedSuite, ShardPlan

# Newest trials of a suite that say how long one takes.
MAX_TIMED = 5
# What a trial of which nothing is stored is taken to last, where nothing of any suite is.
GUESSED_SECONDS = 60.0


def deal(seconds: Mapping[str, float], shards: int) -> dict[str, int]:
    """By suite its shard, from 1: each goes to the shard that has least to do so far, the longest suite first.

    With m shards, the longest has at most 4/3 - 1/(3m) of the least possible (Graham, 1969). Of equals the first by
    name comes first, and goes to the first shard. So everybody who knows the same seconds deals alike.

    Args:
        seconds: By suite, how long it is expected to take.
        shards: Their number, at least 1.
    """
    loads = [0.0] * shards
    counts = [0] * shards
    dealt: dict[str, int] = {}
    for suite in sorted(seconds, key=lambda name: (-seconds[name], name)):
        # Suites that take no time are spread as well.
        shard = min(range(shards), key=lambda number: (loads[number], counts[number], number))
        loads[shard] += seconds[suite]
        counts[shard] += 1
        dealt[suite] = shard + 1
    return dealt


def trial_seconds(runs: Iterable[RunResult], *, replayed: bool) -> dict[str, float]:
    """By suite, how long a trial takes, by the median of the newest; failed and interrupted ones say nothing."""
    found: dict[str, dict[tuple[str, str], RunResult]] = {}
    for run in runs:
        if run.replayed is replayed and run.status.is_valid:
            found.setdefault(run.suite, {})[run.batch_id, run.run_id] = run
    newest = {
        suite: sorted(each.values(), key=lambda run: (run.finished_at, run.run_id), reverse=True)[:MAX_TIMED]
        for suite, each in found.items()
    }
    return {
        suite: median((run.finished_at - run.started_at).total_seconds() for run in runs)
        for suite, runs in newest.items()
    }


def expected_to_take(per_trial: Mapping[str, float], trials: Mapping[str, int]) -> dict[str, float]:
    """By suite the seconds of all its trials; one of which nothing is stored is taken for a usual one.

    Args:
        per_trial: By suite, how long one takes, as far as that is known.
        trials: By suite, how many there will be at least; in the plan's order.
    """
    known = [per_trial[suite] for suite in trials if suite in per_trial]
    usual = median(known) if known else GUESSED_SECONDS
    return {suite: per_trial.get(suite, usual) * count for suite, count in trials.items()}


def loads_of(plan: ShardPlan) -> tuple[float, ...]:
    """Of each shard, the seconds of its suites together."""
    return tuple(sum(suite.seconds for suite in plan.suites_of(number)) for number in range(1, plan.shards + 1))


def longest_suite(plan: ShardPlan) -> PlannedSuite | None:
    """The suite that alone takes longer than an equal share of the whole, so that more shards do not help."""
    share = sum(suite.seconds for suite in plan.suites) / plan.shards
    longest = max(plan.suites, key=lambda suite: suite.seconds, default=None)
    return longest if longest and plan.shards > 1 and longest.seconds > share else None


def budget_of(plan: ShardPlan, shard: int) -> float | None:
    """What a shard may spend: as large a part of the whole as its suites are expected to take of the whole time.

    Nothing that one shard leaves is there for another, so that all of them together never spend more than the whole.
    """
    if plan.budget_usd is None:
        return None
    loads = loads_of(plan)
    whole = sum(loads)
    part = loads[shard - 1] / whole if whole else len(plan.suites_of(shard)) / max(1, len(plan.suites))
    # Downwards, to a hundredth of a cent.
    return int(plan.budget_usd * part * 10_000) / 10_000


def digest_of(record: Record) -> str:
    """Of a record, the same wherever it is computed."""
    text = record.model_dump_json(by_alias=True, exclude_none=True)
    return hashlib.sha256(text.encode()).hexdigest()


def digest_of_trials(runs: Iterable[RunResult]) -> str:
    """Of the trials that count, whichever these are; their order says nothing."""
    keys = sorted(f"{run.batch_id}/{run.run_id}" for run in runs)
    return hashlib.sha256("\n".join(keys).encode()).hexdigest() if keys else ""


_STORED = "something was stored meanwhile: pin the plan, or give all jobs the same stored runs"

# What plans may differ in, and what to do about it; what explains the rest comes first.
_OF_PLANS = {
    "zelda": ("version of Zelda", "install the same version in all jobs"),
    "commit": ("tested commit", "check out the same commit in all jobs"),
    "tree": ("tested files", "check out the same files in all jobs"),
    "base": ("base", "name the same commit as the base in all jobs"),
    "shards": ("number of shards", "give all jobs the same number of shards"),
    "budget_usd": ("budget", "give all jobs the same budget"),
}
_OF_SUITES = {
    "name": ("choice", "choose the same suites in all jobs"),
    "settings": ("settings", "give all jobs the same options, inputs and variables"),
    "stored": ("stored trials", _STORED),
    "trials": ("stored trials", _STORED),
    "seconds": ("stored durations", _STORED),
}


def difference(ours: ShardPlan, other: ShardPlan) -> str:
    """The first in what two plans differ, as a sentence that says what to do; empty where they are alike."""
    for key, (what, fix) in _OF_PLANS.items():
        values = [getattr(plan, key) for plan in (ours, other)]
        if values[0] != values[1]:
            one, two = ("none" if value is None else str(value)[:12] for value in values)
            return f"Different {what}: {one} and {two} ({fix})."
    for key, (what, fix) in _OF_SUITES.items():
        here, there = ({suite.name: getattr(suite, key) for suite in plan.suites} for plan in (ours, other))
        if names := sorted(name for name in {**here, **there} if here.get(name) != there.get(name)):
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            return f"Different {what} of {', '.join(names[:3])}{more} ({fix})."
    return "Different order of the suites (run the same files in all jobs)." if ours != other else ""
