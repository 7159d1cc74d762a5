"""What somebody has accepted on a pull request: which findings of the gate it covers, and which it never does."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from zelda_ci.compare.sides import SuiteSide, sides
from zelda_ci.domain.comparison import (
    Acceptance,
    AcceptedReason,
    BelowMinimum,
    Comparison,
    CriterionDelta,
    CriterionFailed,
    GateReason,
    GateResult,
    MeasureDelta,
    Regression,
)
from zelda_ci.domain.measures import Measure
from zelda_ci.domain.run import RunResult

Accepted = Mapping[tuple[str, str], Acceptance]
"""By suite and text of the criterion."""


def failing_criteria(runs: Iterable[RunResult], suite: str) -> Mapping[int, str] | None:
    """The criteria of a suite that were not met in some trial, by their number in it; absent without a valid trial."""
    side = sides(run for run in runs if run.suite == suite).get(suite)
    if side is None or not side.readings:
        return None
    return {place: name for place, name in enumerate(side.criteria, 1) if 0.0 in side.outcomes(name)}


def is_about_criteria(found: GateResult) -> bool:
    """Whether the gate has a finding that can be accepted."""
    return any(_criterion(reason) is not None for reason in found.reasons) or any(map(_is_score, found.reasons))


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
    by_criterion = {(each.suite, each.criterion): each for each in reversed(acceptances)}
    if not by_criterion:
        return found
    covering = _Covering(by_criterion, comparison, sides(runs))
    covered = [(reason, covering.of(reason)) for reason in found.reasons]
    left = tuple(reason for reason, by in covered if by is None)
    noted = (AcceptedReason(reason=reason, acceptance=by) for reason, by in covered if by is not None)
    return found.replace(reasons=left, accepted=(*found.accepted, *noted))


class _Covering:
    """Which acceptance covers a finding."""

    def __init__(self, accepted: Accepted, comparison: Comparison | None, heads: Mapping[str, SuiteSide]) -> None:
        self._accepted, self._comparison, self._heads = accepted, comparison, heads

    def of(self, reason: GateReason) -> Acceptance | None:
        criterion = _criterion(reason)
        if criterion is not None:
            return self._accepted.get((reason.suite or "", criterion))
        if not _is_score(reason):
            return None
        lowering = list(self._worse(reason.suite) if isinstance(reason, Regression) else self._failed(reason.suite))
        causes = [self._accepted.get(each) for each in lowering]
        return causes[0] if causes and all(causes) else None

    def _worse(self, suite: str | None) -> Iterator[tuple[str, str]]:
        """The criteria, of one suite or of all, that lower the score, however sure that is."""
        for compared in self._comparison.suites if self._comparison else ():
            if suite in {None, compared.suite}:
                yield from ((compared.suite, delta.criterion) for delta in compared.criteria if _lowers(delta))

    def _failed(self, suite: str | None) -> Iterator[tuple[str, str]]:
        """The criteria that were not met in some trial: without them the score would be full."""
        if (side := self._heads.get(suite or "")) is not None:
            yield from ((side.suite, name) for name in side.criteria if 0.0 in side.outcomes(name))


def _lowers(delta: CriterionDelta) -> bool:
    """Whether it has become worse, or is new and not always met."""
    new = delta.candidate if delta.baseline is None else None
    return delta.effect == "worse" or (new is not None and new.mean < 100)


def _criterion(reason: GateReason) -> str | None:
    match reason:
        case CriterionFailed(criterion=criterion):
            return criterion
        case Regression(delta=CriterionDelta(criterion=criterion)):
            return criterion
        case _:
            return None


def _is_score(reason: GateReason) -> bool:
    """Whether it is about the score that criteria make; one that is missing says nothing of them."""
    match reason:
        case BelowMinimum(measure=measure, mean=mean):
            return measure is Measure.REQUIREMENT_FULFILLMENT and mean is not None
        case Regression(delta=MeasureDelta(measure=measure)):
            return measure is Measure.REQUIREMENT_FULFILLMENT
        case _:
            return False
