"""Several trials of one suite: how many passed, and how far their numbers lie apart."""

from collections.abc import Callable, Iterator, Sequence
from statistics import fmean

from zelda_ci.domain.evaluation import Metric
from zelda_ci.domain.outcome import Outcome, run_outcome
from zelda_ci.domain.run import RunResult
from zelda_ci.reporter.view import numbers
from zelda_ci.reporter.view.nouns import Cell, Spread, SpreadRow, Tone
from zelda_ci.reporter.view.run import wall_seconds
from zelda_ci.reporter.view.scores import label
from zelda_ci.reporter.view.usage import used

Measure = Callable[[RunResult], float | None]
Spell = Callable[[float], str]


def spread(runs: Sequence[RunResult]) -> Spread | None:
    """Mean and range of every metric and of cost, tokens, turns and time, over the trials that have the number.

    Sessions that failed or were interrupted say nothing about the suite and do not count.
    """
    valid = [run for run in runs if run_outcome(run) not in {Outcome.BROKEN, Outcome.INTERRUPTED}]
    if len(valid) < 2:
        return None
    rows = (_row(name, spell, [measure(run) for run in valid]) for name, measure, spell in _measures(valid))
    trials = numbers.count(len(runs), "trial")
    title = f"Spread over {trials}" if len(valid) == len(runs) else f"Spread over {len(valid)} of {trials}"
    return Spread(title, tuple(row for row in rows if row))


def passed(runs: Sequence[RunResult]) -> tuple[Cell, ...]:
    """Like "4 of 5 trials passed"."""
    outcomes = [run_outcome(run) for run in runs]
    if set(outcomes) == {Outcome.MEASURED}:
        return (Cell(f"{numbers.count(len(runs), 'trial')} measured"),)
    good = outcomes.count(Outcome.PASSED)
    tone = Tone.NEUTRAL if good == len(runs) else Tone.BAD
    return (Cell(f"{good} of {numbers.count(len(runs), 'trial')} passed", tone),)


def _measures(runs: Sequence[RunResult]) -> Iterator[tuple[str, Measure, Spell]]:
    present = {metric for run in runs for metric in run.evaluations}
    for metric in Metric:
        if metric in present:
            yield label(metric), _score_of(metric), numbers.score
    yield "Cost", _cost, numbers.money
    yield "Tokens", _tokens, numbers.whole
    yield "Turns", _turns, numbers.average
    yield "Time", wall_seconds, numbers.duration


def _score_of(metric: Metric) -> Measure:
    def measure(run: RunResult) -> float | None:
        result = run.evaluations.get(metric)
        return result.score if result else None

    return measure


def _cost(run: RunResult) -> float | None:
    use = used(run)
    return use.cost_usd if use else None


def _tokens(run: RunResult) -> float | None:
    use = used(run)
    return use.tokens.total if use else None


def _turns(run: RunResult) -> float | None:
    use = used(run)
    return use.details.turns if use and use.details else None


def _row(name: str, spell: Spell, values: Sequence[float | None]) -> SpreadRow | None:
    known = [value for value in values if value is not None]
    if not known:
        return None
    low, high = spell(min(known)), spell(max(known))
    span = [Cell("no spread" if low == high else f"{low} to {high}", Tone.DIM)]
    if len(known) < len(values):
        span.append(Cell(f"{len(known)} of them have it", Tone.WARN))
    return SpreadRow(name, spell(fmean(known)), tuple(span))
