"""What somebody has accepted on a pull request: which findings of the gate it covers, and which it never does."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from zelda_ci.compare.gate import criterion_of
from zelda_ci.compare.sides import SuiteSide, sides
from zelda_ci.domain.comparison import (
    Acceptance,
    AcceptedReason,
    BelowMinimum,
    Comparison,
    GateReason,
    GateResult,
    MeasureDelta,
    Regression,
)
from zelda_ci.domain.measures import Measure
from zelda_ci.domain.run import RunResult


def failing_criteria(runs: Iterable[RunResult], suite: str) -> Mapping[int, str] | None:
    """The criteria of a suite that were not met in some trial, by their number in it; absent without a valid trial."""
    side = sides(runs).get(suite)
    return _failing(side) if side and side.readings else None


def _failing(side: SuiteSide) -> dict[int, str]:
    return {place: name for place, name in enumerate(side.criteria, 1) if 0.0 in side.outcomes(name)}


def is_about_criteria(found: GateResult) -> bool:
    """Whether the gate has a finding that can be accepted."""
    return any(criterion_of(reason) is not None or _is_score(reason) for reason in found.reasons)


def accept(
    found: GateResult, acceptances: Sequence[Acceptance], comparison: Comparison | None, runs: Iterable[RunResult]
) -> GateResult:
    """The gate's result with what was accepted taken out of its reasons.

    An acceptance covers its criterion, as long as the criterion has the same text. The score that the criteria make is
    covered where everything that lowers it is. Nothing else is: no other criterion, no command, no limit, no cost, and
    nothing that was not judged.

    Args:
        found: What the gate found.
        acceptances: Those that hold.
        comparison: Where there is one, what it says of each criterion.
        runs: All trials of the tested files.
    """
    accepted = {(each.suite, each.criterion): each for each in reversed(acceptances)}
    heads = sides(runs) if accepted else {}
    left: list[GateReason] = []
    noted = [*found.accepted]
    for reason in found.reasons:
        criterion = criterion_of(reason)
        about = [(reason.suite or "", criterion)] if criterion is not None else _lowering(reason, comparison, heads)
        by = [accepted.get(each) for each in about]
        if by and by[0] and all(by):
            noted.append(AcceptedReason(reason=reason, acceptance=by[0]))
        else:
            left.append(reason)
    return found.replace(reasons=tuple(left), accepted=tuple(noted))


def _lowering(
    reason: GateReason, comparison: Comparison | None, heads: Mapping[str, SuiteSide]
) -> Iterator[tuple[str, str]]:
    """The criteria that lower the score, where a finding is about it: those that became worse, however sure that is.

    Without them a score that is too low would be full.
    """
    if not _is_score(reason):
        return
    if isinstance(reason, BelowMinimum):
        yield from ((reason.suite, name) for name in _failing(heads.get(reason.suite, SuiteSide())).values())
        return
    for compared in comparison.suites if comparison else ():
        for delta in compared.criteria if reason.suite in {None, compared.suite} else ():
            new = delta.candidate if delta.baseline is None else None
            if delta.effect == "worse" or (new and new.mean < 100):
                yield compared.suite, delta.criterion


def _is_score(reason: GateReason) -> bool:
    """Whether it is about the score that criteria make; one that is missing says nothing of them."""
    if isinstance(reason, BelowMinimum):
        return reason.measure is Measure.REQUIREMENT_FULFILLMENT and reason.mean is not None
    delta = reason.delta if isinstance(reason, Regression) else None
    return isinstance(delta, MeasureDelta) and delta.measure is Measure.REQUIREMENT_FULFILLMENT
