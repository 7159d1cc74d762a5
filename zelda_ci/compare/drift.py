"""Does a suite pass less often than before, although nothing that steers it has changed? Pure: nights in, drifts out.

Every night each check (a criterion, or build and tests) of each suite is tested: the newest nights against those before
them, all checks of all suites as one family. A night counts once, as the share of its trials that passed: trials of one
night fail together where nights differ. So the test is Pitman's, which asks how rarely chance puts the low nights last.
It holds for nights that differ as for those that do not, since every night has as many trials, whatever they show.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from operator import attrgetter

from zelda_ci.compare.inference import adjust, permutation_test, significant
from zelda_ci.compare.pool import CLOCK_DIFFERENCE
from zelda_ci.compare.sides import RunMetrics
from zelda_ci.domain import nights as nightly
from zelda_ci.domain.nights import WINDOW, Drift, Night, NightlyHistory, Split, SuiteNight
from zelda_ci.domain.outcome import Outcome, correctness_outcome, run_outcome
from zelda_ci.domain.run import PLATFORM, Fingerprint, RunResult
from zelda_ci.domain.trials import MAX_TRIALS

MONTHLY_ALPHA = 0.04
NIGHTS_PER_MONTH = 31
NIGHTLY_ALPHA = MONTHLY_ALPHA / NIGHTS_PER_MONTH
# A drift is over where so much of the fall is made good.
RECOVERED = 0.75
# Trials of every suite in every night. Those that a night adds because of what it shows would be further looks.
TRIALS_A_NIGHT = 3
MAX_NIGHTS = 120
# The name of build and tests among the checks; criteria are sentences of the user's.
COMMANDS = "build and tests"
_age = attrgetter("at", "batch_id")
_tested = lru_cache(maxsize=10_000)(permutation_test)


def night_of(runs: Sequence[RunResult]) -> Night | None:
    """The row of the runs of one night; nothing where none of them says anything."""
    usable = (run for run in runs if run.status.is_valid and run_outcome(run) is not Outcome.INCOMPLETE)
    counted = [(run, run.fingerprint) for run in usable if run.fingerprint]
    if not counted:
        return None
    names = dict.fromkeys(run.suite for run, _ in counted)
    commits = [run.source.commit for run in runs if run.source and run.source.commit]
    return Night(
        at=max(run.finished_at for run in runs),
        batch_id=runs[0].batch_id,
        commit=commits[-1] if commits else None,
        suites={name: _suite_night([each for each in counted if each[0].suite == name]) for name in names},
    )


def _suite_night(trials: Sequence[tuple[RunResult, Fingerprint]]) -> SuiteNight:
    trials = sorted(trials, key=lambda each: (each[0].finished_at, each[0].run_id))[-MAX_TRIALS:]
    _, state = trials[-1]
    # A commit, or a model that answers now and then, may lie between two runs of one night: the last one counts.
    same = [run for run, own in trials if own.outcome == state.outcome]
    checks: dict[str, list[bool]] = {}
    whole = [outcome is Outcome.PASSED for run in same if (outcome := run_outcome(run)) is not Outcome.MEASURED]
    for run in same:
        for name, value in RunMetrics(run).outcomes.items():
            checks.setdefault(name, []).append(value > 0)
        if (commands := correctness_outcome(run)) is not Outcome.MEASURED:
            checks.setdefault(COMMANDS, []).append(commands is Outcome.PASSED)
    return SuiteNight(
        outcome=state.outcome,
        tree=state.tree,
        platform={part: state.parts[part] for part in PLATFORM if state.parts.get(part)},
        trials=len(same),
        whole=nightly.Passes(passed=sum(whole), trials=len(whole)),
        checks={name: nightly.Passes(passed=sum(passes), trials=len(passes)) for name, passes in checks.items()},
        cost_usd=sum(run.whole_cost_usd for run, _ in trials),
    )


def with_night(history: NightlyHistory, night: Night) -> NightlyHistory:
    """The history with one more row, in order and within its bounds; a night that is there already is replaced."""
    others = [each for each in history.nights if each.batch_id != night.batch_id]
    return history.replace(nights=_newest([*others, night]))


def merged(histories: Sequence[NightlyHistory], now: datetime) -> NightlyHistory:
    """The nights of several histories, each once, and what is known to have fallen."""
    # Nights of the future are left out: whoever's clock was wrong would decide for ever what is newest.
    latest = now + CLOCK_DIFFERENCE
    known = [each.replace(nights=tuple(night for night in each.nights if night.at <= latest)) for each in histories]
    never = (datetime.min.replace(tzinfo=UTC), "")
    ordered = sorted(known, key=lambda history: max(map(_age, history.nights), default=never), reverse=True)
    drifts: dict[tuple[str, str], Drift] = {}
    seen: set[str] = set()
    for history in ordered:
        # What a newer history knew and does not list is over; a night without access to it knew nothing.
        if history is ordered[0] or not seen.issuperset(night.batch_id for night in history.nights[-1:]):
            drifts = {(drift.suite, drift.check): drift for drift in history.drifts} | drifts
        seen |= {night.batch_id for night in history.nights}
    return NightlyHistory(
        nights=_newest({night.batch_id: night for history in known for night in history.nights}.values()),
        drifts=tuple(drifts.values())[: nightly.MAX_ROWS],
        author=next((history.author for history in ordered if history.author), None),
    )


def _newest(nights: Iterable[Night]) -> tuple[Night, ...]:
    return tuple(sorted(nights, key=_age)[-MAX_NIGHTS:])


def watch(history: NightlyHistory) -> NightlyHistory:
    """The history with what its newest night shows: drifts that are new, still there, or over, which are left out."""
    splits = {name: nightly.split_nights(history.nights, name) for name in history.nights[-1].suites}
    updated = (_updated(drift, splits.get(drift.suite, ()), history.nights) for drift in history.drifts)
    going_on = [drift for drift in updated if drift is not None]
    known = {(drift.suite, drift.check) for drift in going_on}
    found = _found([split for each in splits.values() for split in each])
    new = (drift for drift in found if (drift.suite, drift.check) not in known)
    return history.replace(drifts=(*going_on, *new)[: nightly.MAX_ROWS])


def _found(splits: Sequence[Split]) -> Iterator[Drift]:
    """What has fallen, with an error of `NIGHTLY_ALPHA` for all of it; where it is seen in several ways, the surest."""
    asked = []
    for split in splits:
        for check in sorted(split.newest.checks):
            before, after = (tuple(sorted(split.rates(nights, check))) for nights in (split.before, split.after))
            if before and after:
                asked.append((split, check, _tested(before, after).lower))
    adjusted = adjust([(test, 1.0) for *_, test in asked], NIGHTLY_ALPHA)
    surest: dict[tuple[str, str], tuple[float, float, int]] = {}
    for index, ((split, check, test), p) in enumerate(zip(asked, adjusted, strict=True)):
        if significant(p, NIGHTLY_ALPHA):
            key = (split.suite, check)
            surest[key] = min(surest.get(key, (2.0, 2.0, 0)), (p, test.p, index))
    for p, _, index in surest.values():
        split, check, _ = asked[index]
        last, first = split.before[-1], split.after[0]
        earlier = last.suites[split.suite]
        yield Drift(
            suite=split.suite,
            check=check,
            outcome=split.newest.outcome,
            since=first.at,
            before=split.of(split.before, check),
            after=split.of(split.after, check),
            lately=split.of(split.after[-WINDOW:], check),
            p=p,
            platform_before=earlier.platform,
            platform_after=split.newest.platform,
            commit_before=last.commit,
            commit_after=first.commit,
            code_changed=earlier.tree != first.suites[split.suite].tree,
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
    newest = nightly.nights_of(nights, drift)
    lately = split.of(newest, drift.check)
    recovered = drift.before.rate - (1 - RECOVERED) * (drift.before.rate - drift.after.rate)
    is_over = len(newest) == WINDOW and lately.rate >= recovered
    return None if is_over else drift.replace(lately=lately)
