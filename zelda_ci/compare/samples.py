"""The numbers of one suite on both sides, ready to be asked about."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from zelda_ci.compare.compatibility import measure_obstacles, session_obstacles
from zelda_ci.compare.questions import Sample
from zelda_ci.compare.readings import Reading
from zelda_ci.compare.sides import Side
from zelda_ci.domain.comparison import Measure
from zelda_ci.domain.judgement import CriterionVerdict
from zelda_ci.domain.suite import ScoreLimits


@dataclass(frozen=True)
class Pair:
    """One suite; one side may lack it."""

    suite: str
    baseline: Side | None
    candidate: Side | None
    mixed: bool
    """Compare in spite of obstacles."""

    @cached_property
    def present(self) -> tuple[Side, ...]:
        """The sides that have the suite."""
        return tuple(side for side in (self.baseline, self.candidate) if side)

    @cached_property
    def readings(self) -> tuple[Reading, ...]:
        """The valid trials of both sides."""
        return tuple(reading for side in self.present for reading in side.readings)

    @property
    def tolerance(self) -> ScoreLimits:
        """The newest run's: a changed gate is meant to take effect."""
        newest = self.readings[-1:]
        return newest[0].run.config.gate.tolerance if newest else ScoreLimits()

    def obstacles(self) -> tuple[str, ...]:
        """Why the suite as a whole cannot be compared."""
        empty = (
            f"no valid run on the {name}'s side: {side.trials.invalid} failed or interrupted"
            for name, side in (("baseline", self.baseline), ("candidate", self.candidate))
            if side and not side.readings
        )
        return (*empty, *session_obstacles(self.readings))


def measure_samples(pair: Pair, obstacles: tuple[str, ...]) -> dict[Measure, Sample]:
    """Measures that at least one side has."""
    samples = {}
    for measure in Measure:
        baseline, candidate = _values(pair.baseline, measure), _values(pair.candidate, measure)
        if baseline or candidate:
            found = (*obstacles, *measure_obstacles(measure, pair.readings), *_unscored(pair, measure))
            samples[measure] = Sample(baseline, candidate, found, pair.mixed)
    return samples


def criterion_samples(pair: Pair, obstacles: tuple[str, ...]) -> dict[str, Sample]:
    """Criteria that at least one side has, in the candidate's order, those removed last."""
    fulfillment = Measure.REQUIREMENT_FULFILLMENT
    common = (*obstacles, *measure_obstacles(fulfillment, pair.readings))
    samples = {}
    for name in dict.fromkeys((*_criteria(pair.candidate), *_criteria(pair.baseline))):
        missing = tuple(_missing(pair, name))
        found = (*common, *missing) if missing or _on_both(pair, name) else ()
        samples[name] = Sample(_outcomes(pair.baseline, name), _outcomes(pair.candidate, name), found, pair.mixed)
    return samples


def _values(side: Side | None, measure: Measure) -> tuple[float, ...]:
    return side.values(measure) if side else ()


def _outcomes(side: Side | None, criterion: str) -> tuple[float, ...]:
    return side.outcomes(criterion) if side else ()


def _criteria(side: Side | None) -> tuple[str, ...]:
    return side.criteria if side else ()


def _on_both(pair: Pair, criterion: str) -> bool:
    return all(criterion in _criteria(side) for side in (pair.baseline, pair.candidate))


def _unscored(pair: Pair, measure: Measure) -> Iterator[str]:
    for name, side in (("baseline", pair.baseline), ("candidate", pair.candidate)):
        if side and not side.values(measure) and (reason := side.unscored(measure)):
            yield f"unscored on the {name}'s side: {reason}"


def _missing(pair: Pair, criterion: str) -> Iterator[str]:
    """Reasons for a criterion that a side has and could not judge."""
    for name, side in (("baseline", pair.baseline), ("candidate", pair.candidate)):
        if side is None or side.outcomes(criterion):
            continue
        if criterion in side.criteria:
            yield f"{_silence(side, criterion)} on the {name}'s side"
        elif not side.readings:
            yield f"no valid run on the {name}'s side"
        elif reason := side.unscored(Measure.REQUIREMENT_FULFILLMENT):
            yield f"unscored on the {name}'s side: {reason}"


def _silence(side: Side, criterion: str) -> str:
    """Why no trial counts."""
    verdicts = {reading.judgements[criterion].verdict for reading in side.readings if criterion in reading.judgements}
    return "undecided" if verdicts == {CriterionVerdict.UNDECIDED} else "not judged"
