"""Which trials to run next, by what the trials so far show. Pure: state in, next trials out."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, islice

from zelda_ci.compare.compatibility import platform_change, session_obstacles
from zelda_ci.compare.looks import Look, SuiteLooks, TrialGroup, grouped, interleaved, looks_of
from zelda_ci.compare.pool import StoredTrials
from zelda_ci.compare.sides import INVALID, RunMetrics, read_metrics
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.trials import DoneReason, Plan, Side, TrialPlan, plan_of

# Trials of a side that may fail before nothing more is tried.
MAX_FAILED = 3


@dataclass(frozen=True)
class SuiteTrials:
    """What is known of one suite; the trials of each kind are in any order, failed ones included.

    `read_metrics` makes the elements from results; read each result once, since this is asked after every round. What
    the trials show is read once as well, and kept by `dataclasses.replace`.
    """

    suite: str
    head: tuple[RunMetrics, ...] = ()
    """Of this head: of this job, and of earlier jobs whose fingerprint is the same. They add up."""
    base: tuple[RunMetrics, ...] = ()
    """Of the base commit's files, run in the same job as those of the head, side by side."""
    pool: tuple[RunMetrics, ...] = ()
    """Stored trusted trials of the base that may enter the test: same fingerprint, tree and platform."""
    hints: tuple[RunMetrics, ...] = ()
    """Stored trusted trials of the base on another platform or tree: they only decide when to stop."""
    plan: Plan | None = None
    """The suite's own, where it differs from that of the job."""
    has_base: bool = True
    """Whether trials of the base can be run: the base has the suite, and its files can be had."""

    def __post_init__(self) -> None:
        for kind in ("head", "base", "pool", "hints"):
            object.__setattr__(self, kind, grouped(getattr(self, kind)))

    @property
    def valid(self) -> dict[str, TrialGroup]:
        """Trials of each kind that count."""
        kinds = {"head": self.head, "base": self.base, "pool": self.pool, "hints": self.hints}
        return {kind: grouped(trials).valid for kind, trials in kinds.items()}


def suite_trials(
    head: Iterable[RunResult],
    base: Iterable[RunResult] = (),
    pool: Iterable[RunResult] = (),
    hints: Iterable[RunResult] = (),
    *,
    suites: Iterable[str] = (),
) -> list[SuiteTrials]:
    """Results by suite, each read once; the plan is the one that the head's trials were run with.

    Args:
        head: See `SuiteTrials`, as for the others.
        base: Run in the same job.
        pool: Stored, and may enter the test.
        hints: Stored, and only decide when to stop.
        suites: All that take part, also those that nothing was run of: each has its share of the error.
    """
    found: dict[str, dict[str, tuple[RunMetrics, ...]]] = {name: {} for name in suites}
    plans: dict[str, Plan] = {}
    for kind, runs in (("head", head), ("base", base), ("pool", pool), ("hints", hints)):
        for run in runs:
            kinds = found.setdefault(run.suite, {})
            kinds[kind] = (*kinds.get(kind, ()), read_metrics(run))
            if kind == "head":
                plans[run.suite] = plan_of(run.config.trials)
    return [
        SuiteTrials(
            name,
            kinds.get("head", ()),
            kinds.get("base", ()),
            kinds.get("pool", ()),
            kinds.get("hints", ()),
            plans.get(name),
        )
        for name, kinds in sorted(found.items())
    ]


@dataclass(frozen=True, slots=True)
class Wanted:
    """A trial to run; its number counts the trials of that side from 1."""

    suite: str
    side: Side
    number: int
    look: int = 1
    """Which look of the suite it leads to, from 1: stored trials count for those before."""


@dataclass(frozen=True)
class NextTrials:
    """What to run now, interleaved, the most useful first; suites that have enough are in `done`."""

    wanted: tuple[Wanted, ...] = ()
    done: dict[str, DoneReason] = field(default_factory=dict)


def next_trials(plan: Plan, suites: Sequence[SuiteTrials], about: Collection[str] | None = None) -> NextTrials:
    """The trials that lead every suite to its next look, or say why it needs none.

    May be asked at any time; trials under way are asked for again, under the same numbers. Whoever runs out of money
    stops asking: fewer trials never make a verdict wrong, only less certain.

    Args:
        plan: Of the job; a suite may have its own.
        suites: All suites of the comparison, those without any trials too: each has its share of the error.
        about: Those that are asked about; all where nothing is said.
    """
    suites = [on_this_platform(suite, plan) for suite in suites]
    wanted: list[list[Wanted]] = []
    done: dict[str, DoneReason] = {}
    for trials, looks in zip(suites, looks_of_all(plan, suites), strict=True):
        if about is not None and trials.suite not in about:
            continue
        step = _step(trials, looks, trials.plan or plan)
        if isinstance(step, DoneReason):
            done[trials.suite] = step
        else:
            wanted.append(_missing(trials, looks, step))
    return NextTrials(tuple(interleaved(wanted)), done)


def of_stored(suite: str, plan: Plan, stored: StoredTrials, *, has_base: bool) -> SuiteTrials:
    """What is known of a suite before anything has run."""
    return SuiteTrials(
        suite,
        head=tuple(map(read_metrics, stored.head)),
        base=tuple(map(read_metrics, stored.base)),
        pool=tuple(map(read_metrics, stored.pool)),
        hints=tuple(map(read_metrics, stored.hints)),
        plan=plan,
        has_base=has_base,
    )


def trials_to_come(plan: Plan, suites: Sequence[SuiteTrials]) -> dict[str, tuple[int, int]]:
    """By suite, the fewest and the most trials that will run, if none fails."""
    answer = next_trials(plan, suites)
    fewest = Counter(trial.suite for trial in answer.wanted)
    return {
        trials.suite: (fewest[trials.suite], 0 if trials.suite in answer.done else _most(trials, trials.plan or plan))
        for trials in suites
    }


def _most(trials: SuiteTrials, plan: Plan) -> int:
    """Up to the last look. Before the head has run, it may turn out that no stored trial is of its platform."""
    head, base = len(trials.valid["head"]), len(trials.valid["base"])
    pool = len(on_this_platform(trials, plan).valid["pool"]) if head else 0
    last = looks_of(plan, pool, has_base=trials.has_base)[-1]
    return max(0, last.head - head) + max(0, last.base - base)


def on_this_platform(suite: SuiteTrials, plan: Plan) -> SuiteTrials:
    """With stored trials of another platform than the head's first trials among the hints.

    Which models answer is known only once the head has run; nothing has been compared before that.
    """
    own = suite.plan or plan
    first = own.first if isinstance(own, TrialPlan) else own.trials
    today = suite.valid["head"][:first]
    platforms = grouped(suite.pool).by_platform if today else ()
    others = [trial for trials in platforms if platform_change(trials[:1], today) for trial in trials]
    if not others:
        return suite
    left = {id(trial) for trial in others}
    pool = tuple(trial for trial in suite.pool if id(trial) not in left)
    return replace(suite, pool=pool, hints=(*suite.hints, *others))


def looks_of_all(plan: Plan, suites: Sequence[SuiteTrials]) -> list[SuiteLooks]:
    """Every suite's trials, look by look, with equal shares of the error for all that can be tested."""
    testable = sum(suite.has_base or bool(suite.pool) for suite in suites)
    return [_looks(suite, suite.plan or plan, 1 / max(1, testable)) for suite in suites]


def _looks(suite: SuiteTrials, plan: Plan, share: float) -> SuiteLooks:
    counted = suite.valid
    looks = looks_of(plan, len(counted["pool"]), has_base=suite.has_base)
    return SuiteLooks(suite=suite.suite, looks=looks, share=share, **counted)


def _step(trials: SuiteTrials, looks: SuiteLooks, plan: Plan) -> Look | DoneReason:
    """The next look, or why there is none: decided on the same trials in the same order, whenever it is asked."""
    if looks.regressed:
        return DoneReason.REGRESSED
    if isinstance(plan, TrialPlan) and any(map(looks.as_expected, range(looks.made))):
        return DoneReason.AS_EXPECTED
    return _obstacle(trials, looks) or looks.looks[looks.made]


def _obstacle(trials: SuiteTrials, looks: SuiteLooks) -> DoneReason | None:
    """Why more trials cannot be had, or would not help."""
    if looks.made == len(looks.looks):
        return DoneReason.PLAN_ENDED
    if looks.made and not (trials.has_base or looks.pool):
        return DoneReason.NO_BASE
    if looks.head and session_obstacles((looks.head[0], *looks.base[:1], *looks.pool[:1])):
        return DoneReason.NOT_COMPARABLE
    if any(_failed(side) > max(MAX_FAILED, len(side) - _failed(side)) for side in (trials.head, trials.base)):
        return DoneReason.FAILED
    return None


def _missing(trials: SuiteTrials, looks: SuiteLooks, look: Look) -> list[Wanted]:
    first = Wanted(trials.suite, Side.HEAD, 1, looks.made + 1)
    head = _numbered(first, trials.head, look.head - len(looks.head))
    base = _numbered(replace(first, side=Side.BASE), trials.base, look.base - len(looks.base))
    return list(interleaved([head, base]))


def _numbered(first: Wanted, made: Sequence[RunMetrics], wanted: int) -> list[Wanted]:
    taken = {trial.run.trial for trial in made}
    free = (number for number in count(first.number) if number not in taken)
    return [replace(first, number=number) for number in islice(free, max(0, wanted))]


def _failed(trials: Sequence[RunMetrics]) -> int:
    return sum(trial.run.status in INVALID for trial in trials)
