"""Does a suite pass less often than before, although nothing that steers it has changed? Pure: nights in, drifts out.

Every night each check (a criterion, or build and tests) of each suite is tested: the newest nights against those before
them, all checks of all suites as one family. A night counts once, as the share of its trials that passed: trials of one
night fail together where nights differ. So the test is Pitman's, which asks how rarely chance puts the low nights last.
It holds for nights that differ as for those that do not, since every night has as many trials, whatever they show.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import lru_cache

from zelda_ci.compare.exact_tests import OneSided, permutation_test
from zelda_ci.compare.multiplicity import adjust, significant
from zelda_ci.compare.pool import CLOCK_DIFFERENCE
from zelda_ci.compare.sides import RunMetrics
from zelda_ci.domain.fingerprint import PLATFORM
from zelda_ci.domain.nights import (
    MAX_ROWS,
    WINDOW,
    Drift,
    Night,
    NightlyHistory,
    Passes,
    Split,
    SuiteNight,
    nights_of,
    split_nights,
)
from zelda_ci.domain.outcome import Outcome, correctness_outcome, run_outcome
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.trials import MAX_TRIALS

MONTHLY_ALPHA = 0.04
NIGHTS_PER_MONTH = 31
NIGHTLY_ALPHA = MONTHLY_ALPHA / NIGHTS_PER_MONTH

# A drift is over where so much of the fall is made good.
RECOVERED = 0.75

# Trials of every suite in every night. Those that a night adds because of what it shows would be further looks.
TRIALS_A_NIGHT = 3

MAX_NIGHTS = 120

_NEVER = (datetime.min.replace(tzinfo=UTC), "")

# The name of build and tests among the checks; criteria are sentences of the user's.
COMMANDS = "build and tests"


def night_of(runs: Sequence[RunResult]) -> Night | None:
    """The row of the runs of one night; nothing where none of them says anything."""
    by_suite: dict[str, list[RunResult]] = {}
    for run in runs:
        if run.fingerprint and run.status.is_valid and run_outcome(run) is not Outcome.INCOMPLETE:
            by_suite.setdefault(run.suite, []).append(run)
    if not by_suite:
        return None
    commits = [run.source.commit for run in runs if run.source and run.source.commit]
    return Night(
        at=max(run.finished_at for run in runs),
        batch_id=runs[0].batch_id,
        commit=commits[-1] if commits else None,
        suites={name: _suite_night(trials) for name, trials in by_suite.items()},
    )


def _suite_night(runs: Sequence[RunResult]) -> SuiteNight:
    runs = sorted(runs, key=lambda run: (run.finished_at, run.run_id))[-MAX_TRIALS:]
    newest = runs[-1]
    assert newest.fingerprint  # noqa: S101 - others were left out
    state = newest.fingerprint
    # A commit, or a model that answers now and then, may lie between two runs of one night: the last one counts.
    same = [run for run in runs if run.fingerprint and run.fingerprint.outcome == state.outcome]
    checks: dict[str, list[bool]] = {}
    for run in same:
        for name, outcome in RunMetrics(run).outcomes.items():
            checks.setdefault(name, []).append(outcome > 0)
        if (commands := correctness_outcome(run)) is not Outcome.MEASURED:
            checks.setdefault(COMMANDS, []).append(commands is Outcome.PASSED)
    return SuiteNight(
        outcome=state.outcome,
        tree=state.tree,
        platform={part: state.parts[part] for part in PLATFORM if state.parts.get(part)},
        trials=len(same),
        whole=_counted(
            outcome is Outcome.PASSED for outcome in map(run_outcome, same) if outcome is not Outcome.MEASURED
        ),
        checks={name: _counted(passes) for name, passes in checks.items()},
        cost_usd=sum(run.api.cost_usd + (run.judge.cost_usd if run.judge else 0.0) for run in runs),
    )


def _counted(passes: Iterable[bool]) -> Passes:
    listed = list(passes)
    return Passes(passed=sum(listed), trials=len(listed))


def with_night(history: NightlyHistory, night: Night) -> NightlyHistory:
    """The history with one more row, in order and within its bounds; a night that is there already is replaced."""
    others = [each for each in history.nights if each.batch_id != night.batch_id]
    nights = sorted([*others, night], key=_age)
    return history.replace(nights=tuple(nights[-MAX_NIGHTS:]))


def merged(histories: Sequence[NightlyHistory], now: datetime) -> NightlyHistory:
    """The nights of several histories, each once, and what is known to have fallen.

    Nights of the future are left out: whoever's clock was wrong would decide for ever what is newest.
    """
    if not histories:
        return NightlyHistory()
    latest = now + CLOCK_DIFFERENCE
    histories = [
        history.replace(nights=tuple(night for night in history.nights if night.at <= latest)) for history in histories
    ]
    nights = {night.batch_id: night for history in histories for night in history.nights}
    drifts: dict[tuple[str, str], Drift] = {}
    seen: set[str] = set()
    ordered = sorted(histories, key=lambda history: max(map(_age, history.nights), default=_NEVER), reverse=True)
    for history in ordered:
        # What a newer history knew and does not list is over; a night without access to it knew nothing.
        if not {night.batch_id for night in history.nights[-1:]} <= seen or history is ordered[0]:
            drifts = {(drift.suite, drift.check): drift for drift in history.drifts} | drifts
        seen |= {night.batch_id for night in history.nights}
    return NightlyHistory(
        nights=tuple(sorted(nights.values(), key=_age)[-MAX_NIGHTS:]),
        drifts=tuple(drifts.values())[:MAX_ROWS],
        author=next((history.author for history in ordered if history.author), None),
    )


def _age(night: Night) -> tuple[datetime, str]:
    return night.at, night.batch_id


def watch(history: NightlyHistory) -> NightlyHistory:
    """The history with what its newest night shows: drifts that are new, still there, or over, which are left out."""
    if not history.nights:
        return history
    splits = {name: split_nights(history.nights, name) for name in history.nights[-1].suites}
    going_on = tuple(
        updated
        for drift in history.drifts
        if (updated := _updated(drift, splits.get(drift.suite, ()), history.nights)) is not None
    )
    known = {(drift.suite, drift.check) for drift in going_on}
    found = _found([split for each in splits.values() for split in each])
    new = (drift for drift in found if (drift.suite, drift.check) not in known)
    return history.replace(drifts=(*going_on, *new)[:MAX_ROWS])


def _found(splits: Sequence[Split]) -> list[Drift]:
    """What has fallen, with an error of `NIGHTLY_ALPHA` for all of it; where it is seen in several ways, the surest."""
    asked = [(split, check) for split in splits for check in sorted(split.newest.checks)]
    tests = {index: test for index, each in enumerate(asked) if (test := _lower(*each))}
    adjusted = adjust([(test, 1.0) for test in tests.values()], NIGHTLY_ALPHA)
    surest: dict[tuple[str, str], tuple[float, float, int]] = {}
    for (index, test), p in zip(tests.items(), adjusted, strict=True):
        if significant(p, NIGHTLY_ALPHA):
            key = (asked[index][0].suite, asked[index][1])
            surest[key] = min(surest.get(key, (2.0, 2.0, index)), (p, test.p, index))
    return [_drift(*asked[index], p) for p, _, index in surest.values()]


def _lower(split: Split, check: str) -> OneSided | None:
    """Whether the check passes less often in the newer nights; nothing where there are none to compare."""
    before, after = (tuple(sorted(split.rates(nights, check))) for nights in (split.before, split.after))
    return _tested(before, after) if before and after else None


@lru_cache(maxsize=10_000)
def _tested(before: tuple[float, ...], after: tuple[float, ...]) -> OneSided:
    return permutation_test(before, after).lower


def _drift(split: Split, check: str, p: float) -> Drift:
    earlier = split.previous
    before, after = (split.of(nights, check) for nights in (split.before, split.after))
    assert earlier  # noqa: S101 - there were trials before
    return Drift(
        suite=split.suite,
        check=check,
        outcome=split.newest.outcome,
        since=split.after[0].at,
        before=before,
        after=after,
        lately=split.of(split.after[-WINDOW:], check),
        p=p,
        platform_before=earlier.platform,
        platform_after=split.newest.platform,
        commit_before=split.before[-1].commit,
        commit_after=split.after[0].commit,
        code_changed=earlier.tree != split.after[0].suites[split.suite].tree,
    )


def _updated(drift: Drift, splits: Sequence[Split], nights: Sequence[Night]) -> Drift | None:
    """The drift with what was seen since then; nothing where it is over.

    It is over where the check passes again about as often as before, or where suite, check or steering files are not
    what they were. A suite that did not run in the newest night is waited for, a few nights: it may be gone.
    """
    if not splits:
        return drift if any(drift.suite in night.suites for night in nights[-WINDOW:]) else None
    split = splits[0]
    if split.newest.outcome != drift.outcome or drift.check not in split.newest.checks:
        return None
    newest = nights_of(nights, drift)
    lately = split.of(newest, drift.check)
    recovered = drift.before.rate - (1 - RECOVERED) * (drift.before.rate - drift.after.rate)
    if len(newest) == WINDOW and lately.rate >= recovered:
        return None
    return drift.replace(lately=lately)
