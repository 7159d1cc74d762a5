"""Which part of a change made a suite worse, and what a part is worth: sessions with parts taken back or out."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from math import sqrt
from pathlib import Path
from statistics import geometric_mean
from typing import Literal

from zelda_ci.compare.attribution import Arm, Search
from zelda_ci.compare.inference import of_pass_rates
from zelda_ci.compare.sides import RunMetrics
from zelda_ci.domain.attribution import Attribution, ChangeUnit, CriterionWorth, PassCount, Round, unit_words
from zelda_ci.domain.comparison import Comparison, Delta, SuiteComparison, TrialStatistics, Verdict
from zelda_ci.domain.measures import Measure
from zelda_ci.domain.run import RunResult, StoredTrials
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.domain.trials import Side, TrialPlan, plan_of
from zelda_ci.errors import ConfigError, StorageError
from zelda_ci.events import Emit
from zelda_ci.files import temporary
from zelda_ci.overrides import Given, Overrides
from zelda_ci.pipeline.comparing import kept_comparison
from zelda_ci.pipeline.fingerprints import evidence, printable, project_files, read_changes
from zelda_ci.pipeline.invocation import Prepared, RunOrder
from zelda_ci.pipeline.planning import Budget, PlannedRun, label_of
from zelda_ci.redact import Redactor
from zelda_ci.selection.choice import choose
from zelda_ci.storage.references import LATEST, find, newest_batch
from zelda_ci.storage.result_store import ResultStore
from zelda_ci.workspace import units
from zelda_ci.workspace.git import Git
from zelda_ci.workspace.source import BaseOrder
from zelda_ci.workspace.units import ChangeUnits, Variant

# Numbers of which it can be the length alone, and that no session has twice.
RESOURCES = (Measure.COST, Measure.TOKENS, Measure.TURNS)
SOUGHT = (*RESOURCES, Measure.FUNCTIONAL_CORRECTNESS)
# Trials of base and head.
Sides = tuple[tuple[RunResult, ...], tuple[RunResult, ...]]


@dataclass(frozen=True)
class Regressed:
    """A criterion or a measure of a suite that got worse, with the trials of both sides that showed it."""

    batch_id: str
    suite: str
    subject: str
    measure: Measure | None
    bases: tuple[RunResult, ...]
    heads: tuple[RunResult, ...]

    @property
    def outcomes(self) -> tuple[list[float], list[float]]:
        """What the trials of base and head show, as far as they do."""
        base, head = ([outcome(run, self.subject, self.measure) for run in it] for it in (self.bases, self.heads))
        return [it for it in base if it is not None], [it for it in head if it is not None]


def regressions(
    batch_id: str, suites: Iterable[SuiteComparison], result: Callable[[str], RunResult]
) -> Iterator[Regressed]:
    """What got worse in a batch, suite by suite, criteria first; `result` finds a run by its id."""
    for suite in suites:
        subjects: list[tuple[str, Measure | None, Delta]] = [(it.criterion, None, it) for it in suite.criteria]
        subjects += [(it.measure.value, it.measure, it) for it in suite.measures if it.measure in SOUGHT]
        for subject, measure, delta in subjects:
            if delta.verdict is Verdict.REGRESSED:
                yield Regressed(batch_id, suite.suite, subject, measure, *_sides(suite, result))


def _sides(suite: SuiteComparison, result: Callable[[str], RunResult]) -> Sides:
    base, head = (tuple(map(result, side.run_ids)) if side else () for side in (suite.baseline, suite.candidate))
    return base, head


@dataclass(frozen=True)
class Asked:
    """A stored comparison or run about which somebody asks: first of all what got worse first."""

    worse: tuple[Regressed, ...]
    base: str | None
    """The commit that was compared with."""
    left_usd: float | None
    """What the comparison has left of its budget; absent without one."""


def asked_about(results_dir: Path, reference: str, criterion: int | None) -> Asked:
    """What got worse in a stored comparison, or the criterion with a number in it, if it ever failed."""
    history = ResultStore(results_dir)
    whole, run_ids = find(history, newest_batch(history) if reference == LATEST else reference)
    runs = [history.result(run_id) for run_id in run_ids]
    names, batch_id = {run.suite for run in runs}, whole or runs[0].batch_id
    made = kept_comparison(results_dir, batch_id)
    if made is None:
        heads = [run for run in runs if run.side is Side.HEAD]
        alone: dict[str, Sides] = {name: ((), tuple(run for run in heads if run.suite == name)) for name in names}
        return Asked(tuple(_failing(batch_id, alone, criterion)), None, None)
    compared, report = made
    batch, suites = report.batch, [it for it in compared.comparison.suites if whole or it.suite in names]
    sides = {suite.suite: _sides(suite, history.result) for suite in suites if criterion}
    worse = _failing(batch_id, sides, criterion) if criterion else regressions(batch_id, suites, history.result)
    left = None if batch.budget_usd is None else batch.budget_usd - batch.cost_usd
    return Asked(tuple(worse), batch.base.commit if batch.base else None, left)


def _failing(batch_id: str, sides: Mapping[str, Sides], criterion: int | None) -> Iterator[Regressed]:
    """Criteria that trials of the head did not meet: the one with a number, or all."""
    for suite, (bases, heads) in sides.items():
        names = [name for run in heads[-1:] for name in RunMetrics(run).judgements]
        for number, name in enumerate(names, 1):
            found = Regressed(batch_id, suite, name, None, bases, heads)
            if criterion in (None, number) and 0.0 in found.outcomes[1]:
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
    """The units of a change, and how sessions without some of them are made, from the base's repository of objects."""

    found: ChangeUnits
    objects: Path

    @property
    def units(self) -> tuple[ChangeUnit, ...]:
        return tuple(part.unit for part in self.found.parts)

    def without(self, arm: Arm) -> Variant:
        """The head with some units as they were; with none a variant, too, whose runs belong to the search alone."""

        async def edit(git: Git, _: str) -> str:
            return await replace(self.found, git=git).without(arm)

        names = " and ".join(unit_words(self.units[index]) for index in sorted(arm))
        return Variant(f"with {names} as before" if arm else "with all of the change", edit, (self.objects,))


async def felt_change(prepared: Prepared, suite: str, trials: Sequence[RunResult]) -> Change:
    """The units that differ between base and head; all that a suite cannot feel, by its trials, is one of them."""
    (head, git), (base, _) = await prepared.workspaces.tested(), await prepared.base_workspaces.tested()
    project = project_files(prepared.loaded, head.prefix.as_posix())
    chosen = [it for it in prepared.chosen if it.resolved.name == suite]
    known = evidence(chosen, project.folder, trials, prepared.environ)
    seen = {file.path for it in (prepared.workspaces, prepared.base_workspaces) for file in await it.session_files()}
    with temporary.folder() as place:
        both = units.prepare(place / "both", git, head.commit, head.objects, base.objects)
        changes = await read_changes(both, base.commit, head.commit, project.folder)

        def is_felt(path: str) -> bool | None:
            if path not in seen:
                return None
            own = tuple(it for it in changes.files if it.path == printable(path))
            return choose(replace(changes, files=own), known, project)[0].runs

        found = Change(await units.read_units(both, base.commit, head.commit, is_felt), base.objects)
    if not found.units:
        message = "Nothing can be taken back: but for submodules, sessions see the same files of base and head."
        raise StorageError(message, hint="Name the commit before the change by --against.", code="NOTHING_CHANGED")
    return found


class Investigation:
    """The sessions of a search: a schedule that asks for the next round when one is over."""

    def __init__(self, worse: Regressed, change: Change, suite: ResolvedSuite, redact: Redactor, *, emit: Emit) -> None:
        self._worse, self._change, self._suite, self._redact, self._emit = worse, change, suite, redact, emit
        lengths = [part.characters for part in change.found.parts] if worse.measure in RESOURCES else None
        self._base, self._head = worse.outcomes
        # Where nobody ran the base, who asks takes for granted that it met the criterion.
        self._search = Search(len(change.units), base=self._base or [100.0], head=self._head, lengths=lengths)
        self._without = cache(change.without)
        self._waiting, self._rounds = dict[int, Arm](), list[Round]()
        self._seen: list[tuple[Arm, float | None]] = []
        self._made, self._cost, self.budget = 0, 0.0, Budget()

    def go_on(self, known: Iterable[Attribution]) -> Attribution | None:
        """Begin where a search with the same question ended; returns what that one found, where it is decided."""
        new = self.attribution
        for it in (it for it in known if (it.suite, it.subject, it.units) == (new.suite, new.subject, new.units)):
            if it.verdict not in ("undecided", "between"):
                return it
            self._rounds, self._cost = [*it.rounds], it.cost_usd
            arms = [frozenset(each.reverted) for each in it.rounds for _ in each.outcomes]
            self._search.observe(arms, [outcome for each in it.rounds for outcome in each.outcomes])
            self._search.confirmations = [*(it.confirmation.outcomes if it.confirmation else ())]
        return None

    def next(self) -> Sequence[PlannedRun]:
        """The next round, as far as there is money for it, once the last one is over."""
        if self._waiting or (self._made and not self._learn()):
            return []
        arms, name = list(self._search.next_arms()), self._suite.name
        while arms and not self.budget.fits(Counter({name: len(arms)}), Counter()):
            arms.pop()
        self._waiting = dict(enumerate(arms, self._made + 1))
        self._made += len(arms)
        planned = ((number, label_of(name, number), arm) for number, arm in self._waiting.items())
        return [PlannedRun(self._suite, number, label, variant=self._without(arm)) for number, label, arm in planned]

    def take(self, planned: PlannedRun, result: RunResult | None) -> None:
        """Note what a session showed."""
        arm = self._waiting.pop(planned.trial)
        if result:
            self._cost += result.whole_cost_usd
        self._seen.append((arm, outcome(result, self._worse.subject, self._worse.measure) if result else None))

    def _learn(self) -> bool:
        """Learn from the round; whether it said anything."""
        seen, self._seen = self._seen, []
        known = [(arm, value) for arm, value in seen if value is not None]
        self._search.observe([arm for arm, _ in seen], [value for _, value in seen])
        for arm in dict.fromkeys(arm for arm, _ in known):
            self._rounds.append(self._round(arm, [value for other, value in known if other == arm]))
        if known:
            self._emit(self.attribution)
        return bool(known)

    def _round(self, arm: Iterable[int], values: Sequence[float]) -> Round:
        """Sessions of which those passed that were like the base's."""
        is_resource = self._worse.measure in RESOURCES
        limit = sqrt(geometric_mean(self._base) * geometric_mean(self._head)) if is_resource else 100
        passed = sum(value < limit if is_resource else value == limit for value in values)
        return Round(reverted=tuple(sorted(arm)), passed=passed, sessions=len(values), outcomes=tuple(values))

    @property
    def attribution(self) -> Attribution:
        """What is known by now."""
        search, confirming = self._search, self._search.confirming
        confirmed = None if confirming is None else self._round([confirming], search.confirmations)
        return Attribution(
            batch_id=self._worse.batch_id,
            suite=self._redact(self._worse.suite),
            subject=self._redact(self._worse.subject),
            units=self._change.units,
            suspicions=search.suspicions(),
            rounds=tuple(self._rounds),
            confirmation=confirmed if search.confirmations else None,
            verdict=search.verdict,
            cost_usd=self._cost,
        )


# With fewer first trials, "no difference" would say little.
PLAN = TrialPlan(first=6, looks=(10, 16, 24))
VERDICTS: dict[Verdict, Literal["worse", "better"]] = {Verdict.REGRESSED: "worse", Verdict.IMPROVED: "better"}


async def find_parts(prepared: Prepared, names: Iterable[str]) -> dict[str, tuple[Variant, Variant | None]]:
    """The tested files without each part, and, where it has words, with some that say nothing in its place.

    Raises `ConfigError` for a part that they do not have.
    """
    project, git = await prepared.workspaces.tested()
    folder, found = project.prefix.as_posix(), dict[str, tuple[Variant, Variant | None]]()

    async def edit(part: str, git: Git, head: str, *, is_inert: bool = False) -> str:
        removed = await units.without(git, head, part, folder)
        assert removed  # noqa: S101 - it was looked for before
        return removed[is_inert]

    with temporary.folder() as place:
        there = units.prepare(place / "objects", git, project.commit, project.objects)
        for part in names:
            if (removed := await units.without(there, project.commit, part, folder)) is None:
                hint = "Give a skill, rule or agent by its name, a file by its path, a section as CLAUDE.md:Heading."
                message = f"--without {part}: the tested files have no skill, rule, agent, file or section of it."
                raise ConfigError(message, hint=hint, code="UNKNOWN_PART")
            name, without = f"without {part}", partial(edit, part)
            inert = Variant(f"{name}, with inert text of its length", partial(without, is_inert=True))
            found[part] = Variant(name, without), inert if len({*removed}) > 1 else None
    return found


def order_beside(order: RunOrder, variant: Variant) -> RunOrder:
    """The order for a variant of the tested files, beside the files as they are."""
    planned = order.overrides.above(Overrides({"trials": Given(PLAN, "option", "--without")}))
    return replace(order, overrides=planned, variant=variant, against=BaseOrder("the tested files"))


def order_whole(order: RunOrder, varied: Prepared) -> RunOrder | None:
    """The order for so many trials of the files as they are as a variant's first ones lack beside them, if any."""
    known = ((plan_of(suite.trials), varied.order.stored.get(suite.name, StoredTrials())) for suite in varied.suites)
    lacking = (it.first - len(each.base) - len(each.stored) for it, each in known if isinstance(it, TrialPlan))
    missing = Given(max(lacking, default=0), "option", "--without")
    overrides = Overrides({"trials": missing}).above(order.overrides)
    return replace(order, overrides=overrides) if missing.value > 0 else None


def worth(part: str, gone: Comparison, inert: Comparison | None, redact: Redactor) -> Iterator[CriterionWorth]:
    """Of each suite, the criterion that fell most without a part."""
    suites = inert.suites if inert else ()
    controls = {(suite.suite, each.criterion): each.candidate for suite in suites for each in suite.criteria}
    for suite in gone.suites:
        sides = [(each, old, new) for each in suite.criteria if (old := each.baseline) and (new := each.candidate)]
        for each, old, new in sorted(sides, key=lambda side: side[2].mean - side[1].mean)[:1]:
            whole, without, control = _count(old), _count(new), controls.get((suite.suite, each.criterion))
            low, _ = of_pass_rates(
                *([100.0] * it.passed + [0.0] * (it.sessions - it.passed) for it in (whole, without))
            )
            yield CriterionWorth(
                part=redact(part),
                suite=redact(suite.suite),
                criterion=redact(each.criterion),
                whole=whole,
                without=without,
                inert=_count(control) if control else None,
                verdict=VERDICTS.get(each.verdict, "none"),
                at_most=max(0.0, -low),
            )


def _count(statistics: TrialStatistics) -> PassCount:
    return PassCount(passed=round(statistics.mean * statistics.trials / 100), sessions=statistics.trials)
