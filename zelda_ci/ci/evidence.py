"""Stored trials that count beside those of a run: looked up once, pinned for jobs that share it, compared with."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property

from pydantic import Field

from zelda_ci.compare.pool import TrialPool, by_age, grouped, is_of_platform, stored_trials, summarize_pool
from zelda_ci.domain.base import Document
from zelda_ci.domain.ci import BaselineOrigin, BaselineState, PoolSummary
from zelda_ci.domain.nights import NightlyHistory
from zelda_ci.domain.numbers import format_count, some_of
from zelda_ci.domain.run import BatchResult, Fingerprint, RunResult, ShardPlan, StoredTrials
from zelda_ci.domain.trials import PoolSettings, Side
from zelda_ci.report.builders.phrases import pool_words

# Suites that a sentence names.
MAX_NAMED = 20


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
    new: tuple[str, ...] | None = None
    """Suites that need to run; absent where all do."""
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

    def knowing(self, expected: Mapping[str, Fingerprint], wanted: Mapping[str, int]) -> "Evidence":
        """With the suites that need not run: as many trials of them are stored as are wanted."""
        stored = {name: stored_trials(self.states, name, each) for name, each in expected.items()}
        new = tuple(name for name, count in stored.items() if count < wanted[name])
        named = [f"{name} ({format_count(stored[name], 'stored trial')})" for name in stored if name not in new]
        if not named:
            return self.replace(fingerprints=dict(expected))
        remark = f"Not run, since trials of the same files and settings are stored: {some_of(named, MAX_NAMED)}."
        remarks = (*self.remarks, f"{remark} The input run-all runs every suite.")
        return self.replace(fingerprints=dict(expected), new=new, remarks=remarks)

    def against(self, runs: Sequence[RunResult], now: datetime, *, is_choice: bool = False) -> "Evidence":
        """With the pooled trials that may be compared with these runs in place of one run's.

        Where their suites are a choice, the others were not removed.
        """
        if self.results is None:
            return self
        heads, names = {run.suite: run for run in runs if run.fingerprint}, {run.suite for run in runs}
        known = dict.fromkeys([*(run.suite for run in self.results.runs), *self.references])
        suites = [name for name in known if name in names or not is_choice]
        if not suites:
            sentence = f"no baseline yet: the stored results ({self.origin.sentence}) are of other suites"
            origin = self.origin.replace(state=BaselineState.NONE_YET, sentence=sentence, commit=None)
            return self.replace(origin=origin, results=None)
        chosen = {name: self._chosen(name, heads.get(name)) for name in suites}
        kept = tuple(run for each in chosen.values() for run in sorted(each, key=by_age))
        pool = summarize_pool(run for name in suites if name in heads.keys() & self.references for run in chosen[name])
        origin = with_pool(self.origin, pool, now) if pool and pool.runs > 1 else self.origin
        return self.replace(results=self.results.replace(runs=kept), origin=origin)

    def _chosen(self, suite: str, head: RunResult | None) -> Sequence[RunResult]:
        """What a suite is compared with: stored trials of the head's platform and of the code of a side, else others.

        Others are those of the nearest commit that ran it; the comparison names what differs.
        """
        own = [run for run in self.results.runs if run.suite == suite] if self.results else []
        if suite not in self.references:
            return own
        state, alike = self.references[suite], list[RunResult]()
        stored = [(run, run.fingerprint) for run in self.states.of(suite, state.outcome) if run.fingerprint]
        if head and (now := head.fingerprint):
            recent, trees = stored[: head.config.pool.max_trials], {state.tree, now.tree}
            alike = [run for run, each in recent if each.tree in trees and is_of_platform(each, now)]
        exact = [run for run, each in stored if each.tree == state.tree]
        return alike or own or exact or [run for run, _ in stored]


def with_pool(origin: BaselineOrigin, pool: PoolSummary, now: datetime) -> BaselineOrigin:
    """A baseline whose stored trials are of several runs: which, in words."""
    return origin.replace(sentence=f"{origin.sentence}; {pool_words(pool, now)}", pool=pool)


NOTHING = Evidence(origin=BaselineOrigin(state=BaselineState.OFF, sentence=""))


class PinnedPlan(Document):
    """A plan with the evidence that it rests on, so that nothing that is stored later changes it."""

    plan: ShardPlan
    attempt: int
    """Attempt of the workflow's run that made it."""
    evidence: Evidence
