"""Which part of a change made a suite worse: sessions of the head with parts taken back, and what each round taught."""

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from pathlib import Path
from statistics import geometric_mean

from zelda_ci.compare.attribution import Arm, Search
from zelda_ci.compare.sides import RunMetrics
from zelda_ci.domain.attribution import Attribution, ChangeUnit, Round, unit_words
from zelda_ci.domain.comparison import Delta, SuiteComparison, Verdict
from zelda_ci.domain.measures import Measure
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.domain.trials import SuiteArms
from zelda_ci.events import Emit, Learnt
from zelda_ci.pipeline.changed_files import printable, read_changes
from zelda_ci.pipeline.comparing import kept_comparison
from zelda_ci.pipeline.invocation import Prepared
from zelda_ci.pipeline.planning import Budget
from zelda_ci.pipeline.selecting import evidence, project_files
from zelda_ci.pipeline.tools import PlannedRun, label_of
from zelda_ci.redact import Redactor
from zelda_ci.selection.choice import choose
from zelda_ci.storage.references import LATEST, find_runs
from zelda_ci.storage.result_store import ResultStore
from zelda_ci.workspace import units
from zelda_ci.workspace.git import Git
from zelda_ci.workspace.units import ChangeUnits
from zelda_ci.workspace.variants import Variant

# Numbers of which it can be the length alone, and that no session has twice.
RESOURCES = (Measure.COST, Measure.TOKENS, Measure.TURNS)
Sides = tuple[tuple[RunResult, ...], tuple[RunResult, ...]]
"""Trials of base and head."""
SOUGHT = (*RESOURCES, Measure.FUNCTIONAL_CORRECTNESS)


@dataclass(frozen=True)
class Regressed:
    """A criterion or a measure of a suite that got worse, with the trials of both sides that showed it."""

    suite: str
    subject: str
    measure: Measure | None
    bases: tuple[RunResult, ...]
    heads: tuple[RunResult, ...]

    @property
    def base(self) -> list[float]:
        """Outcomes of the base."""
        return self._outcomes(self.bases)

    @property
    def head(self) -> list[float]:
        """Outcomes of the head."""
        return self._outcomes(self.heads)

    def _outcomes(self, runs: Iterable[RunResult]) -> list[float]:
        return [it for run in runs if (it := outcome(run, self.subject, self.measure)) is not None]


def regressions(suites: Iterable[SuiteComparison], result: Callable[[str], RunResult]) -> Iterator[Regressed]:
    """What got worse, suite by suite, criteria first; `result` finds a run by its id."""
    for suite in suites:
        subjects: list[tuple[str, Measure | None, Delta]] = [(it.criterion, None, it) for it in suite.criteria]
        subjects += [(it.measure.value, it.measure, it) for it in suite.measures if it.measure in SOUGHT]
        for subject, measure, delta in subjects:
            if delta.verdict is Verdict.REGRESSED:
                yield Regressed(suite.suite, subject, measure, *_sides(suite, result))


def _sides(suite: SuiteComparison, result: Callable[[str], RunResult]) -> Sides:
    base, head = (tuple(map(result, side.run_ids)) if side else () for side in (suite.baseline, suite.candidate))
    return base, head


@dataclass(frozen=True)
class Asked:
    """A stored comparison or run about which somebody asks."""

    worse: tuple[Regressed, ...]
    """What it can be about, the first of which is meant."""
    base: str | None = None
    """The commit that was compared with."""
    left_usd: float | None = None
    """What the comparison has left of its budget; absent without one."""


def asked_about(results_dir: Path, reference: str, criterion: int | None) -> Asked:
    """What got worse in a stored comparison, or the criterion with a number in it, if it ever failed.

    Raises:
        StorageError: There is no such run.
    """
    history = ResultStore(results_dir)
    runs = [history.result(run_id) for run_id in find_runs(history, reference)]
    suites, made = {run.suite for run in runs}, kept_comparison(results_dir, runs[0].batch_id)
    sides: dict[str, Sides] = {name: ((), tuple(run for run in runs if run.suite == name)) for name in suites}
    if made is None:
        return Asked(tuple(_failing(sides, criterion)))
    batch, comparison = made[0], made[1].comparison
    chosen = [it for it in comparison.suites if reference == LATEST or it.suite in suites]
    worse = [*regressions(chosen, history.result)]
    if criterion:
        worse = [*_failing({it.suite: _sides(it, history.result) for it in chosen}, criterion)]
    left = None if batch.budget_usd is None else batch.budget_usd - batch.cost_usd
    return Asked(tuple(worse), batch.base.commit if batch.base else None, left)


def _failing(sides: Mapping[str, Sides], criterion: int | None) -> Iterator[Regressed]:
    """Criteria that trials of the head did not meet: the one with a number, or all."""
    for suite, (bases, heads) in sides.items():
        names = [name for run in heads[-1:] for name in RunMetrics(run).judgements]
        for number, name in enumerate(names, 1):
            found = Regressed(suite, name, None, bases, heads)
            if criterion in (None, number) and 0.0 in found.head:
                yield found


def outcome(run: RunResult, subject: str, measure: Measure | None) -> float | None:
    """What a trial shows: of a criterion and of build and tests 100 or 0, of a resource how much it was."""
    if not run.status.is_valid:
        return None
    value = RunMetrics(run).outcomes.get(subject) if measure is None else RunMetrics(run).values.get(measure)
    if measure in RESOURCES:
        return value or None
    return None if value is None else 100.0 * (value >= 100)


@dataclass(frozen=True)
class Change:
    """The units of a change, and how sessions without some of them are made."""

    found: ChangeUnits
    objects: Path
    """Repository with those of the base."""

    @property
    def units(self) -> tuple[ChangeUnit, ...]:
        return tuple(part.unit for part in self.found.parts)

    def without(self, arm: Arm) -> Variant | None:
        """The head with some units as they were; nothing of it changed for none."""

        async def edit(git: Git, _: str) -> str:
            return await replace(self.found, git=git).without(arm)

        names = " and ".join(unit_words(self.units[index]) for index in sorted(arm))
        return Variant(f"with {names} as before", edit, (self.objects,)) if arm else None


async def felt_change(prepared: Prepared, suite: str, trials: Sequence[RunResult]) -> Change:
    """The units that differ between base and head; what a suite cannot feel, by what its trials used, is one of them.

    Raises:
        WorkspaceError: One of the sides cannot be had.
    """
    (head, git), (base, _) = await prepared.workspaces.tested(), await prepared.base_workspaces.tested()
    project = project_files(prepared.loaded, head.prefix.as_posix())
    chosen = [it for it in prepared.chosen if it.resolved.name == suite]
    known = evidence(chosen, project.folder, trials, prepared.environ)
    with tempfile.TemporaryDirectory(prefix="zelda-units-") as name:
        both = units.prepare(Path(name) / "both", git, head.commit, head.objects, base.objects)
        changes = await read_changes(both, base.commit, head.commit, project.folder)

        def is_felt(path: str) -> bool:
            own = tuple(it for it in changes.files if it.path == printable(path))
            return choose(replace(changes, files=own), known, project)[0].runs

        return Change(await units.read_units(both, base.commit, head.commit, is_felt), base.objects)


class Investigation:
    """The sessions of a search: a schedule that asks for the next round when one is over."""

    def __init__(self, worse: Regressed, change: Change, suite: ResolvedSuite, redact: Redactor, *, emit: Emit) -> None:
        self._worse, self._change, self._suite, self._redact, self._emit = worse, change, suite, redact, emit
        lengths = [part.characters for part in change.found.parts] if worse.measure in RESOURCES else None
        # Where nobody ran the base, who asks takes for granted that it met the criterion.
        base = worse.base or [100.0]
        self._search = Search(len(change.units), base=base, head=worse.head, lengths=lengths)
        self._variants: dict[Arm, Variant | None] = {}
        self._waiting: dict[int, Arm] = {}
        self._seen: list[tuple[Arm, float | None]] = []
        self._rounds: list[Round] = []
        self._confirmation: list[tuple[Arm, float]] = []
        self._made, self._cost, self.budget = 0, 0.0, Budget()

    def next(self) -> Sequence[PlannedRun]:
        """The next round, as far as there is money for it, once the last one is over."""
        if self._waiting:
            return []
        if self._made and not self._learn():
            return []
        arms, name = list(self._search.next_arms()), self._suite.name
        while arms and not self.budget.fits(Counter({name: len(arms)}), Counter()):
            arms.pop()
        planned = []
        for arm in arms:
            self._made += 1
            self._waiting[self._made] = arm
            if arm not in self._variants:
                self._variants[arm] = self._change.without(arm)
            label = label_of(name, self._made)
            planned.append(PlannedRun(self._suite, self._made, label, variant=self._variants[arm]))
        return planned

    def take(self, planned: PlannedRun, result: RunResult | None) -> None:
        """Note what a session showed."""
        arm = self._waiting.pop(planned.trial)
        if result:
            self._cost += result.whole_cost_usd
        self._seen.append((arm, outcome(result, self._worse.subject, self._worse.measure) if result else None))

    def ends(self) -> tuple[SuiteArms, ...]:
        """Nothing: the attribution says how far it came."""
        return ()

    def _learn(self) -> bool:
        """Learn from the round; whether it said anything."""
        seen, self._seen = self._seen, []
        known = [(arm, value) for arm, value in seen if value is not None]
        confirming = self._search.confirming
        self._confirmation += [(arm, value) for arm, value in known if arm == {confirming}]
        self._search.observe([arm for arm, _ in seen], [value for _, value in seen])
        if self._search.confirming != confirming:
            self._confirmation = []
        for arm in dict.fromkeys(arm for arm, _ in known):
            self._rounds.append(self._round(arm, [value for other, value in known if other == arm]))
        if known:
            self._emit(Learnt(self.attribution))
        return bool(known)

    def _round(self, arm: Arm, values: Sequence[float]) -> Round:
        return Round(reverted=tuple(sorted(arm)), passed=sum(map(self._is_good, values)), sessions=len(values))

    def _is_good(self, value: float) -> bool:
        """Whether a session was like those of the base."""
        if self._worse.measure not in RESOURCES:
            return value == 100
        return value < sqrt(geometric_mean(self._worse.base) * geometric_mean(self._worse.head))

    @property
    def attribution(self) -> Attribution:
        """What is known by now."""
        verdict, confirmed = self._search.verdict, self._confirmation
        return Attribution(
            suite=self._redact(self._worse.suite),
            subject=self._redact(self._worse.subject),
            units=self._change.units,
            suspicions=self._search.suspicions(),
            rounds=tuple(self._rounds),
            confirmation=self._round(confirmed[0][0], [it for _, it in confirmed]) if confirmed else None,
            verdict=verdict,
            cost_usd=self._cost,
        )
