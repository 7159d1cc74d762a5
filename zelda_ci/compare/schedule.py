"""Which trials to run next, by what the trials so far show. Pure: state in, next trials out."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, islice

from zelda_ci.compare.compatibility import session_obstacles
from zelda_ci.compare.looks import Look, SuiteLooks, interleaved, looks_of
from zelda_ci.compare.overall import look_worse, missing_of_base
from zelda_ci.compare.sides import RunMetrics, SuiteSide, read_metrics
from zelda_ci.domain.run import StoredTrials
from zelda_ci.domain.trials import DoneReason, Plan, Side, TrialPlan

# Trials of a side that may fail before nothing more is tried.
MAX_FAILED = 3


@dataclass(frozen=True)
class SuiteTrials:
    """What is known of one suite; the trials of each kind are in any order, failed ones included.

    `read_metrics` makes the elements from results; read each result once, since this is asked after every round.
    """

    suite: str
    head: tuple[RunMetrics, ...] = ()
    """Of this head: of this job, and of earlier jobs whose fingerprint is the same. They add up."""
    base: tuple[RunMetrics, ...] = ()
    """Of the base commit's files, run in the same job as those of the head, side by side."""
    stored: tuple[RunMetrics, ...] = ()
    """Trusted trials of the base that were made before: they say what to expect of the first trials, and no more."""
    plan: Plan | None = None
    """The suite's own, where it differs from that of the job."""
    has_base: bool = True
    """Whether trials of the base can be run: the base has the suite, and its files can be had."""


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
        about: Those that are asked about, each by itself; where nothing is said, all, and what is over all of them.
    """
    wanted: list[list[Wanted]] = []
    done: dict[str, DoneReason] = {}
    all_looks = looks_of_all(plan, suites)
    beside = _beside_all(suites, all_looks) if about is None else {}
    for trials, looks in zip(suites, all_looks, strict=True):
        if about is not None and trials.suite not in about:
            continue
        reason = reason_to_end(trials, looks, plan)
        if reason is None:
            wanted.append(_missing(trials, looks, looks.looks[looks.completed]))
        elif missing := beside.get(trials.suite):
            wanted.append(missing)
        else:
            done[trials.suite] = reason
    return NextTrials(tuple(interleaved(wanted)), done)


def trials_beside_all(plan: Plan, suites: Sequence[SuiteTrials]) -> tuple[Wanted, ...]:
    """Where the first trials of all suites together look worse than stored ones, those of the base to compare with."""
    return tuple(interleaved(_beside_all(suites, looks_of_all(plan, suites)).values()))


def _beside_all(suites: Sequence[SuiteTrials], all_looks: Sequence[SuiteLooks]) -> dict[str, list[Wanted]]:
    if not all(suite.has_base for suite in suites) or not look_worse(all_looks):
        return {}
    return {
        trials.suite: _numbered(Wanted(trials.suite, Side.BASE, 1), trials.base, missing)
        for trials, looks in zip(suites, all_looks, strict=True)
        if (missing := missing_of_base(looks))
    }


def of_stored(suite: str, plan: Plan, stored: StoredTrials, *, has_base: bool) -> SuiteTrials:
    """What is known of a suite before anything has run."""
    return SuiteTrials(
        suite,
        head=tuple(map(read_metrics, stored.head)),
        base=tuple(map(read_metrics, stored.base)),
        stored=tuple(map(read_metrics, stored.stored)),
        plan=plan,
        has_base=has_base,
    )


def trials_to_come(plan: Plan, suites: Sequence[SuiteTrials]) -> dict[str, tuple[int, int]]:
    """By suite, the fewest and the most trials that will run, if none fails."""
    answer = next_trials(plan, suites)
    fewest = Counter(trial.suite for trial in answer.wanted)
    return {
        looks.suite: (fewest[looks.suite], 0 if looks.suite in answer.done else _most(looks))
        for looks in looks_of_all(plan, suites)
    }


def _most(looks: SuiteLooks) -> int:
    """Up to the last look."""
    last = looks.looks[-1]
    return max(0, last.head - len(looks.head.readings)) + max(0, last.base - len(looks.base.readings))


def to_decide(trials: SuiteTrials) -> int:
    """Trials of both sides by which most suites are decided that look worse: those of the last look but one."""
    looks = looks_of(trials.plan or TrialPlan(), has_base=trials.has_base)
    return looks[max(0, len(looks) - 2)].head + looks[max(0, len(looks) - 2)].base if trials.has_base else 0


def looks_of_all(plan: Plan, suites: Sequence[SuiteTrials]) -> list[SuiteLooks]:
    """Every suite's trials, look by look, with equal shares of the error for all that can be tested."""
    testable = sum(suite.has_base for suite in suites)
    return [_looks(suite, suite.plan or plan, 1 / max(1, testable)) for suite in suites]


def _looks(suite: SuiteTrials, plan: Plan, share: float) -> SuiteLooks:
    head, base, stored = (SuiteSide(suite.suite, each) for each in (suite.head, suite.base, suite.stored))
    return SuiteLooks(suite.suite, looks_of(plan, has_base=suite.has_base), head, base, stored, share)


def reason_to_end(trials: SuiteTrials, looks: SuiteLooks, plan: Plan) -> DoneReason | None:
    """Why a suite has no further look: decided on the same trials in the same order, whenever it is asked."""
    plan = trials.plan or plan
    if isinstance(plan, int):
        return _obstacle(trials, looks)
    if looks.has_regressed:
        return DoneReason.REGRESSED
    if any(map(looks.as_expected, range(looks.completed))):
        return DoneReason.AS_EXPECTED
    return _obstacle(trials, looks) or (DoneReason.NOT_PROVEN if looks.is_futile else None)


def _obstacle(trials: SuiteTrials, looks: SuiteLooks) -> DoneReason | None:
    """Why more trials cannot be had, or would not help."""
    if looks.completed == len(looks.looks):
        return DoneReason.PLAN_ENDED
    if looks.completed and not trials.has_base:
        return DoneReason.NO_BASE
    if session_obstacles((*looks.head.readings[:1], *looks.base.readings[:1])):
        return DoneReason.NOT_COMPARABLE
    if any(_failed(side) > max(MAX_FAILED, len(side) - _failed(side)) for side in (trials.head, trials.base)):
        return DoneReason.FAILED
    return None


def _missing(trials: SuiteTrials, looks: SuiteLooks, look: Look) -> list[Wanted]:
    first = Wanted(trials.suite, Side.HEAD, 1, looks.completed + 1)
    head = _numbered(first, trials.head, look.head - len(looks.head.readings))
    base = _numbered(replace(first, side=Side.BASE), trials.base, look.base - len(looks.base.readings))
    return list(interleaved([head, base]))


def _numbered(first: Wanted, made: Sequence[RunMetrics], wanted: int) -> list[Wanted]:
    taken = {trial.run.trial for trial in made}
    free = (number for number in count(first.number) if number not in taken)
    return [replace(first, number=number) for number in islice(free, max(0, wanted))]


def _failed(trials: Sequence[RunMetrics]) -> int:
    return sum(not trial.run.status.is_valid for trial in trials)
