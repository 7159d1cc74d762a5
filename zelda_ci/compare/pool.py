"""Trials of many runs as one sample: which are counted, and in what words.

Everything that decides here is known before a trial is made (fingerprint, time), so that no outcome can choose itself.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache, cached_property
from operator import attrgetter

from zelda_ci.domain.comparison import PoolSummary
from zelda_ci.domain.outcome import Outcome, run_outcome
from zelda_ci.domain.run import NAMED_FILES, PLATFORM, STEERING, SUITE_FILES, Fingerprint, RunResult, StoredTrials
from zelda_ci.domain.trials import PoolSettings, Side

# Clocks of two machines may differ by this much; whatever claims to be newer was not made yet.
CLOCK_DIFFERENCE = timedelta(minutes=5)

by_age = attrgetter("finished_at", "run_id")
# Parts of a platform that are known before a session; the CLI comes with its SDK.
KNOWN_PLATFORM = ("agentSdk", "system", "isolationLevel")


@dataclass(frozen=True)
class TrialPool:
    """Trials that can be counted, each once, by suite and outcome fingerprint, newest first."""

    groups: Mapping[tuple[str, str], tuple[RunResult, ...]] = field(default_factory=dict)

    @cached_property
    def trials(self) -> tuple[RunResult, ...]:
        """All of them, in an order that depends on them alone."""
        return tuple(run for _, group in sorted(self.groups.items()) for run in group)

    def of(self, suite: str, outcome: str) -> tuple[RunResult, ...]:
        return self.groups.get((suite, outcome), ())

    def stored(self, suite: str, base: Fingerprint | None, settings: PoolSettings) -> tuple[RunResult, ...]:
        """The trials of the base's state of a suite, newest first; without a state there are none."""
        return self.of(suite, base.outcome)[: settings.max_trials] if base else ()

    def of_laptop(
        self, suite: str, base: Fingerprint | None, head: Fingerprint, settings: PoolSettings
    ) -> StoredTrials:
        """What one developer has stored: trials of both states, told apart by their fingerprints alone.

        Trials of the base that ran beside those of this very head belong to looks that have begun: in one comparison
        with these, or going on with one. Where head and base are the same state, all are the base's: of itself a trial
        is no evidence.
        """
        stored = self.stored(suite, base, settings)
        is_changed = base is None or (base.outcome, base.tree) != (head.outcome, head.tree)
        own = tuple(same_as(self.of(suite, head.outcome), head)) if is_changed else ()
        began, batches = min((run.started_at for run in own), default=None), {run.batch_id for run in own}
        beside = tuple(
            run
            for run in stored
            if base and began and run.side is Side.BASE and (run.started_at >= began or run.batch_id in batches)
            if run.fingerprint and run.fingerprint.tree == base.tree and is_of_platform(run.fingerprint, head)
        )
        taken = {id(run) for run in (*own, *beside)}
        return StoredTrials(head=own, base=beside, stored=tuple(run for run in stored if id(run) not in taken))


def pool_of(groups: Iterable[Iterable[RunResult]], settings: Callable[[str], PoolSettings], now: datetime) -> TrialPool:
    """The trials of several sources as one pool, within the limits of age and number."""
    # A trial that several sources hold counts once. Of one state of a suite the newest are kept, whatever they show.
    limits = cache(settings)

    def is_recent(run: RunResult) -> bool:
        return -CLOCK_DIFFERENCE <= now - run.finished_at <= timedelta(days=limits(run.suite).max_age_days)

    whole = grouped(run for group in groups for run in group if is_valid(run) and is_recent(run))
    kept = {key: group[: limits(key[0]).max_trials] for key, group in whole.groups.items()}
    return TrialPool({key: group for key, group in kept.items() if group})


def grouped(trials: Iterable[RunResult]) -> TrialPool:
    """Trials as a pool without limits; those without a fingerprint are left out."""
    found: dict[tuple[str, str], dict[tuple[str, str], RunResult]] = {}
    for run in trials:
        if run.fingerprint is not None:
            found.setdefault((run.suite, run.fingerprint.outcome), {}).setdefault((run.batch_id, run.run_id), run)
    return TrialPool({key: tuple(sorted(group.values(), key=by_age, reverse=True)) for key, group in found.items()})


def is_valid(run: RunResult) -> bool:
    """Whether a run says something of the tested files."""
    return run.fingerprint is not None and run.status.is_valid


def is_usable(run: RunResult) -> bool:
    """Whether it was judged completely, too."""
    return is_valid(run) and run_outcome(run) is not Outcome.INCOMPLETE


def is_of_platform(own: Fingerprint, head: Fingerprint) -> bool:
    """Whether a trial was made on the head's platform, as far as that is known."""
    if head.parts.get("models", head.platform):
        return own.platform == head.platform
    return all(own.parts.get(part) == head.parts.get(part) for part in KNOWN_PLATFORM)


def same_as(trials: Iterable[RunResult], head: Fingerprint) -> list[RunResult]:
    """Of a suite's trials, those of the head's very state, its code and platform."""
    return [
        run
        for run in trials
        if (own := run.fingerprint)
        and (own.outcome, own.tree) == (head.outcome, head.tree)
        and is_of_platform(own, head)
    ]


def is_beside(own: Fingerprint, head: Fingerprint) -> bool:
    """Whether a trial of the base was made as one of the head would be: they differ in the project's files alone."""
    settled = {*own.parts, *head.parts} - {STEERING, SUITE_FILES, NAMED_FILES, *PLATFORM}
    return is_of_platform(own, head) and all(own.parts.get(part) == head.parts.get(part) for part in settled)


def stored_trials(pool: TrialPool, suite: str, expected: Fingerprint) -> int:
    """How many trials a pool has of a suite as it would run now."""
    return sum(is_of_platform(run.fingerprint, expected) for run in pool.of(suite, expected.outcome) if run.fingerprint)


def summarize_pool(trials: Iterable[RunResult]) -> PoolSummary | None:
    counted = list(trials)
    if not counted:
        return None
    return PoolSummary(
        trials=len(counted),
        per_suite=max(Counter(run.suite for run in counted).values()),
        runs=len({run.batch_id for run in counted}),
        newest_at=max(run.finished_at for run in counted),
    )
