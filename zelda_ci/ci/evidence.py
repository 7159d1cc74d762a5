"""Stored trials that count beside those of a run: looked up once, pinned for jobs that share it, compared with."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from operator import attrgetter

from pydantic import Field

from zelda_ci.ci import baseline_words as words
from zelda_ci.compare.pool import TrialPool, grouped, is_of_platform, stored_trials, summarize_pool
from zelda_ci.domain.base import Document
from zelda_ci.domain.ci import BaselineOrigin, BaselineState
from zelda_ci.domain.fingerprint import Fingerprint
from zelda_ci.domain.nights import NightlyHistory
from zelda_ci.domain.run import BatchResult, RunResult, StoredTrials
from zelda_ci.domain.shards import ShardPlan
from zelda_ci.domain.trials import PoolSettings, Side

by_age = attrgetter("finished_at", "run_id")


class Evidence(Document):
    """What is stored of earlier runs, or why there is nothing."""

    origin: BaselineOrigin
    results: BatchResult | None = None
    """Results of the base; absent where there are none."""
    pool: tuple[RunResult, ...] = ()
    """Trusted trials of the base branch, of any state of its files."""
    references: dict[str, Fingerprint] = Field(default_factory=dict)
    """State of the base by suite."""
    nights: NightlyHistory = NightlyHistory()
    """What suites showed in the scheduled runs before."""
    damage: str = ""
    """Why the newest history could not be read, where there is one."""
    earlier: tuple[RunResult, ...] = ()
    """Trials of both commits by earlier runs of the same pull request: they count like the run's own."""
    knows_earlier: bool = False
    """Whether these are all of them: GitHub could be asked, and was."""
    fingerprints: dict[str, Fingerprint] = Field(default_factory=dict)
    """States of the tested commit by suite, also of suites that need not run; empty where nobody asked."""
    known: dict[str, int] = Field(default_factory=dict)
    """Suites that need not run, with the number of their stored trials."""
    limits: dict[str, PoolSettings] | None = None
    """Limits of the pool by suite, where trials are added as needed; absent where their number is fixed."""
    remarks: tuple[str, ...] = ()

    @cached_property
    def states(self) -> TrialPool:
        """The pool by suite and state."""
        return grouped(self.pool)

    @property
    def heads(self) -> tuple[RunResult, ...]:
        """Earlier trials of the tested files."""
        return tuple(run for run in self.earlier if run.side is Side.HEAD)

    @property
    def bases(self) -> tuple[RunResult, ...]:
        """Trials of the base that ran beside them."""
        return tuple(run for run in self.earlier if run.side is Side.BASE)

    @property
    def trials_of_base(self) -> tuple[RunResult, ...]:
        """The nearest commit's own, and stored ones of the same state of a suite; each once."""
        same = (run for name, each in self.references.items() for run in self.states.of(name, each.outcome))
        own = self.results.runs if self.results else ()
        return tuple({(run.batch_id, run.run_id): run for run in (*own, *same)}.values())

    @cached_property
    def stored(self) -> dict[str, StoredTrials]:
        """What counts before any trial is made, by suite; nothing where the number of trials is fixed."""
        return {
            name: StoredTrials(
                head=tuple(run for run in self.heads if run.suite == name),
                base=tuple(run for run in self.bases if run.suite == name),
                stored=self.states.stored(name, self.references.get(name), limits),
            )
            for name, limits in (self.limits or {}).items()
        }

    @property
    def new(self) -> tuple[str, ...]:
        """Of the suites with a fingerprint, those that need to run."""
        return tuple(name for name in self.fingerprints if name not in self.known)

    @property
    def notes(self) -> tuple[str, ...]:
        """Which suites are not run, and why; and what else readers should know."""
        return (*([words.not_run(self.known)] if self.known else []), *self.remarks)

    def knowing(self, expected: Mapping[str, Fingerprint], wanted: Mapping[str, int]) -> "Evidence":
        """With the suites of which as many trials are stored as are wanted."""
        stored = {name: stored_trials(self.states, name, each) for name, each in expected.items()}
        known = {name: count for name, count in stored.items() if count >= wanted[name]}
        return self.replace(fingerprints=dict(expected), known=known)

    def of_suites(self, names: Collection[str]) -> "Evidence":
        """Results of some suites: where some were chosen, the others were not removed."""
        if self.results is None:
            return self
        runs = tuple(run for run in self.results.runs if run.suite in names)
        references = {name: each for name, each in self.references.items() if name in names}
        if runs or references:
            return self.replace(results=self.results.replace(runs=runs), references=references)
        return self.replace(origin=words.of_other_suites(self.origin), results=None)

    def against(self, runs: Sequence[RunResult], now: datetime) -> "Evidence":
        """With the pooled trials that may be compared with these runs in place of one run's."""
        if self.results is None or not self.references:
            return self
        own, origin = defaultdict[str, list[RunResult]](list), self.origin
        for run in self.results.runs:
            own[run.suite].append(run)
        heads = {run.suite: run for run in runs if run.fingerprint}
        chosen = {name: self._chosen(name, heads.get(name), tuple(own[name])) for name in [*own, *self.references]}
        kept = tuple(run for each in chosen.values() for run in sorted(each, key=by_age))
        if not kept:
            return self
        summary = summarize_pool(run for name in self.references if name in heads for run in chosen[name])
        if summary and summary.runs > 1:
            origin = words.with_pool(origin, summary, now)
        return self.replace(results=self.results.replace(runs=kept), origin=origin)

    def _chosen(self, suite: str, head: RunResult | None, own: tuple[RunResult, ...]) -> tuple[RunResult, ...]:
        """What a suite is compared with: stored trials of the head's platform and of the code of a side, else others.

        Others are those of the nearest commit that ran it; the comparison names what differs.
        """
        if suite not in self.references:
            return own
        state, now = self.references[suite], head.fingerprint if head else None
        trials = self.states.of(suite, state.outcome)
        exact = tuple(run for run in trials if run.fingerprint and run.fingerprint.tree == state.tree)
        if head is None or now is None:
            return own or exact or trials
        alike = tuple(
            run
            for run in trials[: head.config.pool.max_trials]
            if run.fingerprint
            and run.fingerprint.tree in {state.tree, now.tree}
            and is_of_platform(run.fingerprint, now)
        )
        return alike or own or exact or trials


NOTHING = Evidence(origin=BaselineOrigin(state=BaselineState.OFF, sentence=""))


class PinnedPlan(Document):
    """A plan with the evidence that it rests on, so that nothing that is stored later changes it."""

    plan: ShardPlan
    attempt: int
    """Attempt of the workflow's run that made it."""
    evidence: Evidence
