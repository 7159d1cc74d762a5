"""How much a suite varies by itself, as finished strings."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from zelda_ci.domain.comparison import Calibration, CriterionNoise, Measure, MeasureNoise
from zelda_ci.reporter.view import numbers
from zelda_ci.reporter.view.deltas import LABELS, amount, difference
from zelda_ci.reporter.view.escape import sentence, visible
from zelda_ci.reporter.view.nouns import Cell, Tone
from zelda_ci.reporter.view.tables import Column, Line, Table

TRIALS = (1, 3, 5, 10)
_DROPS = tuple(Column(f"by {trials}", right=True) for trials in TRIALS)
CRITERIA = (Column("Criterion"), Column("Passed", right=True), Column("Flips", right=True), *_DROPS)
MEASURES = (Column("Metric"), Column("Mean", right=True), Column("Range", right=True), *_DROPS)
NONE = Cell("-", Tone.DIM)

EXPLANATION = (
    "Flips: pairs of equal runs that disagree. By 1, 3, 5, 10: the smallest worsening that so many trials per side can "
    "tell from noise; a dash where there is none, `any` where equal runs never differed."
)


@dataclass(frozen=True)
class CalibrationView:
    """Criteria and metrics in a table each, and what is to be said about them."""

    suite: str
    facts: tuple[Cell, ...]
    criteria: Table
    measures: Table
    remarks: tuple[Cell, ...]


def calibration_view(calibration: Calibration, stored: str) -> CalibrationView:
    """The view of a calibration that was stored in a file."""
    trials = calibration.trials
    commits = ", ".join(visible(commit[:12]) for commit in trials.commits)
    facts = [Cell(numbers.count(trials.valid, "trial")), *([Cell(f"commit {commits}", Tone.DIM)] if commits else [])]
    if trials.invalid:
        facts.append(Cell(f"{numbers.count(trials.invalid, 'more')} failed or interrupted, left out", Tone.WARN))
    return CalibrationView(
        visible(calibration.suite),
        tuple(facts),
        Table(CRITERIA, tuple(map(_criterion, calibration.criteria))),
        Table(MEASURES, tuple(map(_measure, calibration.measures))),
        tuple(_remarks(calibration, stored)),
    )


def _criterion(noise: CriterionNoise) -> Line:
    passed = round(noise.passes.mean * noise.passes.trials / 100)
    tone = Tone.WARN if noise.flip_rate else Tone.DIM
    cells = (
        Cell(sentence(noise.criterion)),
        Cell(f"{passed} of {noise.passes.trials}"),
        Cell(f"{numbers.score(noise.flip_rate)}%", tone),
    )
    return Line((*cells, *_drops(noise.detectable, lambda drop: f"{drop:.0f}%")))


def _measure(noise: MeasureNoise) -> Line:
    measure, found = noise.measure, noise.summary
    span = f"{amount(measure, found.minimum)} to {amount(measure, found.maximum)}"
    return Line(
        (
            Cell(LABELS[measure]),
            Cell(amount(measure, found.mean)),
            Cell(span) if found.minimum < found.maximum else NONE,
            *_drops(noise.detectable, lambda drop: _short(measure, drop)),
        )
    )


def _short(measure: Measure, drop: float) -> str:
    return difference(measure, drop).removesuffix(" turns").removesuffix(" turn")


def _drops(detectable: Mapping[int, float], spell: Callable[[float], str]) -> Iterator[Cell]:
    for trials in TRIALS:
        drop = detectable.get(trials)
        # Without any spread, whatever is seen is more than noise.
        yield NONE if drop is None else Cell(spell(drop) if drop else "any")


def _remarks(calibration: Calibration, stored: str) -> Iterator[Cell]:
    for reason in calibration.reasons:
        yield Cell(f"The runs are not alike, so the noise is overstated: {sentence(reason)}", Tone.WARN)
    if calibration.trials.replayed > 1:
        yield Cell(
            "The runs replay recorded sessions: they repeat each other, and the noise is understated.", Tone.WARN
        )
    if calibration.criteria or calibration.measures:
        yield Cell(EXPLANATION, Tone.DIM)
    yield Cell(f"Stored in {visible(stored, len(stored))}; comparisons of this suite quote it.", Tone.DIM)
