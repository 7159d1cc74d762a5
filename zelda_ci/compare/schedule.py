"""Which trials to run next, by what the trials so far show. Pure: state in, next trials out."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count, islice, zip_longest

from zelda_ci.compare.looks import SuiteTrials, look_worse, missing_of_base, sharing
from zelda_ci.compare.sides import RunMetrics
from zelda_ci.domain.run import StoredTrials
from zelda_ci.domain.trials import DoneReason, Plan, Side


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


def next_trials(suites: Iterable[SuiteTrials], about: Collection[str] | None = None) -> NextTrials:
    """The trials that lead every suite to its next look, or say why it needs none.

    May be asked at any time; trials under way are asked for again, under the same numbers. Whoever runs out of money
    stops asking: fewer trials never make a verdict wrong, only less certain.

    Args:
        suites: All suites of the comparison, those without any trials too: each has its share of the error.
        about: Those that are asked about, each by itself; where nothing is said, all, and what is over all of them.
    """
    wanted: list[list[Wanted]] = []
    done: dict[str, DoneReason] = {}
    shared = sharing(suites)
    beside = _beside_all(shared) if about is None else {}
    for suite in shared if about is None else (suite for suite in shared if suite.suite in about):
        if suite.done is None:
            look, number = suite.looks[suite.completed], suite.completed + 1
            head, base, _ = suite.valid
            sides = ((Side.HEAD, suite.head, look.head - head), (Side.BASE, suite.base, look.base - base))
            missing = (_numbered(suite.suite, side, made, more, number) for side, made, more in sides)
            wanted.append(list(_interleaved(missing)))
        elif suite.suite in beside:
            wanted.append(beside[suite.suite])
        else:
            done[suite.suite] = suite.done
    return NextTrials(tuple(_interleaved(wanted)), done)


def trials_beside_all(suites: Iterable[SuiteTrials]) -> tuple[Wanted, ...]:
    """Where the first trials of all suites together look worse than stored ones, those of the base to compare with."""
    return tuple(_interleaved(_beside_all(sharing(suites)).values()))


def _beside_all(suites: Sequence[SuiteTrials]) -> dict[str, list[Wanted]]:
    if not all(suite.has_base for suite in suites) or not look_worse(suites):
        return {}
    return {
        it.suite: _numbered(it.suite, Side.BASE, it.base, missing) for it in suites if (missing := missing_of_base(it))
    }


def _numbered(suite: str, side: Side, made: Sequence[RunMetrics], wanted: int, look: int = 1) -> list[Wanted]:
    taken = {trial.run.trial for trial in made}
    free = (number for number in count(1) if number not in taken)
    return [Wanted(suite, side, number, look) for number in islice(free, max(0, wanted))]


def _interleaved(lists: Iterable[Sequence[Wanted]]) -> Iterator[Wanted]:
    """One of each in turn."""
    return (trial for row in zip_longest(*lists) for trial in row if trial is not None)


def of_stored(suite: str, plan: Plan, stored: StoredTrials, *, has_base: bool) -> SuiteTrials:
    """What is known of a suite before anything has run."""
    head, base, known = (tuple(map(RunMetrics, runs)) for runs in (stored.head, stored.base, stored.stored))
    return SuiteTrials(suite, head, base, known, plan, has_base)


def trials_to_come(suites: Sequence[SuiteTrials]) -> dict[str, tuple[int, int]]:
    """By suite, the fewest and the most trials that will run, if none fails."""
    answer = next_trials(suites)
    fewest = Counter(trial.suite for trial in answer.wanted)
    most = dict.fromkeys(answer.done, 0)
    for suite in suites:
        (head, base, _), last = suite.valid, suite.looks[-1]
        most.setdefault(suite.suite, max(0, last.head - head) + max(0, last.base - base))
    return {suite.suite: (fewest[suite.suite], most[suite.suite]) for suite in suites}


def to_decide(suite: SuiteTrials) -> int:
    """Trials of both sides by which most suites are decided that look worse: those of the last look but one."""
    look = suite.looks[max(0, len(suite.looks) - 2)]
    return look.head + look.base if suite.has_base else 0
