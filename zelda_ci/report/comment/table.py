"""The comment's tables: what moved, in few columns and words, and every number of every suite."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from zelda_ci.domain import numbers
from zelda_ci.domain.comparison import FigureDelta, MeasureDelta, SuiteComparison, TrialStatistics, Verdict
from zelda_ci.domain.details import CriterionVerdict, FulfillmentDetails
from zelda_ci.domain.measures import MEASURES, Measure
from zelda_ci.domain.measures import values as values_of
from zelda_ci.domain.outcome import Outcome, correctness_outcome, run_outcome
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.test_run import CorrectnessDetails
from zelda_ci.report.builders.anchors import suite_address
from zelda_ci.report.builders.findings import hidden_findings
from zelda_ci.report.builders.phrases import measured_words
from zelda_ci.report.builders.standings import CALM, SuiteRuns, SuiteStanding, SuiteVerdict, of, untested_words
from zelda_ci.report.model import Cell, Column, Table, TableRow, Tone
from zelda_ci.report.text import visible, written
from zelda_ci.report.told import CiReport
from zelda_ci.report.words import OUTCOMES

TONES = {
    SuiteVerdict.WORSE: Tone.BAD,
    SuiteVerdict.NOT_TESTED: Tone.BAD,
    SuiteVerdict.PERHAPS_WORSE: Tone.BAD,
    SuiteVerdict.FAILS: Tone.BAD,
    SuiteVerdict.NEW_FAILS: Tone.BAD,
    SuiteVerdict.UNCLEAR: Tone.WARN,
    SuiteVerdict.ACCEPTED: Tone.WARN,
    SuiteVerdict.ON_BASE: Tone.WARN,
    SuiteVerdict.BETTER: Tone.GOOD,
    SuiteVerdict.PASSES: Tone.GOOD,
    SuiteVerdict.PERHAPS_BETTER: Tone.GOOD,
}
TOOLS, COST = Measure.TOOL_USAGE, Measure.COST
ARROW = " \u2192 "
NOTHING = Cell("", Tone.DIM)
MAX_SUITE_NAME_LENGTH = 60
MAX_ROWS = 12
# Of one session and the next, less than this share says nothing.
NOTABLE_COST = 0.2


@dataclass(frozen=True)
class Figure:
    """A number before and after; absent on the side that does not have it."""

    before: float | None = None
    after: float | None = None
    of: float | None = None
    """All there are, where it is a part."""
    of_before: float | None = None
    unknown: float = 0.0
    """Of all, those of which nobody knows."""
    is_worse: bool = False

    def cell(self, write: Callable[[float], str], least: float = 0.0) -> Cell:
        """`3 → 2 of 3`: once where the change is gone after rounding, or less than a share of what was before."""
        if self.after is None:
            return NOTHING
        now, before = write(self.after), "" if self.before is None else write(self.before)
        of = "" if self.of is None else f" of {write(self.of)}"
        of_before = of if self.of_before is None else f" of {write(self.of_before)}"
        unknown = f", {write(self.unknown)} not known" if self.unknown else ""
        is_little = abs(self.after - (self.before or 0.0)) < least * (self.before or 0.0)
        tone = Tone.BAD if self.is_worse else Tone.NEUTRAL
        if not before or is_little or (before, of_before) == (now, of):
            return Cell(f"{now}{of}{unknown}", Tone.NEUTRAL if is_little else tone)
        return Cell(f"{before}{of_before if of_before != of else ''}{ARROW}{now}{of}", tone)


def _points(value: float) -> str:
    return f"{value:.0f}"


def _figures(criteria: Figure, tests: Cell, tools: Figure, cost: Figure) -> tuple[Cell, ...]:
    """The cells of a row; a cost is a change where it is one that anybody would care for."""
    moved = cost.cell(numbers.brief_money, NOTABLE_COST)
    return criteria.cell(numbers.average), tests, tools.cell(_points), moved


MOVED = (
    Column("Suite"),
    Column("Criteria met"),
    Column("Tests"),
    Column("Tools"),
    Column("Session cost", right=True),
)


def moved_table(report: CiReport, suites: Sequence[SuiteStanding]) -> Table:
    """A row per suite that stands out, the worst first; all that are as before, or pass, share one.

    Each leads to its place in the HTML report, where there is one.
    """
    hiding = [each for each in suites if each.standing in CALM and _hidden(each)]
    notable = [*(each for each in suites if each.standing not in CALM), *hiding]
    rows = [_row(report, each) for each in notable[:MAX_ROWS]]
    if rest := notable[MAX_ROWS:]:
        rows.append(_rest(report, rest))
    plain = [each for each in suites if each not in hiding]
    calm = ((standing, of(plain, standing)) for standing in SuiteVerdict if standing in CALM)
    rows += (_alike(report, alike, standing) for standing, alike in calm if alike)
    columns = [place for place in range(len(MOVED)) if place == 0 or any(row.cells[place].text for row in rows)]
    lines = tuple(TableRow(tuple(row.cells[place] for place in columns)) for row in rows)
    return Table(tuple(MOVED[place] for place in columns), lines)


def _row(report: CiReport, each: SuiteStanding) -> TableRow:
    tone = TONES.get(each.standing, Tone.NEUTRAL)
    label = f"{visible(each.suite, MAX_SUITE_NAME_LENGTH)}, {standing_words(each)}{_hidden(each)}"
    named = Cell(label, tone, url=suite_address(report, each.suite))
    if each.standing in (SuiteVerdict.REMOVED, SuiteVerdict.NOT_RUN, SuiteVerdict.CUT_SHORT):
        return TableRow((named, *[NOTHING] * (len(MOVED) - 1)))
    tests = _tests(each)
    commands = tests.cell(numbers.average) if tests else _commands(each)
    figures = _figures(_criteria(each), commands, _measured(each, TOOLS), _measured(each, COST))
    return TableRow((named, *figures))


def standing_words(each: SuiteStanding) -> str:
    """`worse`, `fails as before`, `new, fails`."""
    if each.standing is SuiteVerdict.FAILS and each.compared:
        return "fails as before"
    if each.standing is SuiteVerdict.NOT_TESTED:
        return untested_words([each])
    if each.standing is SuiteVerdict.MEASURED and each.ran:
        return f"{each.standing.value}: {measured_words(each.ran.runs)}"
    fails = each.fails_by_itself and each.standing not in (
        SuiteVerdict.WORSE,
        SuiteVerdict.PERHAPS_WORSE,
        SuiteVerdict.FAILS,
        SuiteVerdict.NEW_FAILS,
    )
    return f"{each.standing.value}{', fails' if fails else ''}"


def _hidden(each: SuiteStanding) -> str:
    """What a pass hides."""
    found = hidden_findings(each.ran.valid) if each.ran and each.ran.outcome <= Outcome.PASSED else ""
    return f", but {found}" if found else ""


def _rest(report: CiReport, rest: Sequence[SuiteStanding]) -> TableRow:
    words = list(dict.fromkeys(each.standing for each in rest))
    counts = (f"{numbers.whole(len(of(rest, word)))} {word.value}" for word in words)
    more = f"and {numbers.format_count(len(rest), 'more suite')}: {', '.join(counts)}"
    return TableRow((Cell(more, Tone.DIM, url=report.links.report), *[NOTHING] * (len(MOVED) - 1)))


def _alike(report: CiReport, alike: Sequence[SuiteStanding], standing: SuiteVerdict) -> TableRow:
    """Suites of which nothing has to be known but that they are there: sums of parts, means of the rest."""
    word = {SuiteVerdict.PASSES: "pass", SuiteVerdict.RAN: "ran to the end"}.get(standing, standing.value)
    if len(alike) == 1:
        return _row(report, alike[0])
    label = f"{numbers.format_count(len(alike), 'suite')} {word}"
    criteria = _sum([_criteria(each) for each in alike])
    tests = _sum([found for each in alike if (found := _tests(each))])
    tools, cost = (_mean([_measured(each, measure).after for each in alike]) for measure in (TOOLS, COST))
    cells = _figures(criteria, tests.cell(numbers.average), tools, cost)
    return TableRow((Cell(label, Tone.DIM, url=report.links.report), *cells))


def _sum(figures: Sequence[Figure]) -> Figure:
    known = [it for it in figures if it.after is not None]
    if not known:
        return Figure()
    return Figure(after=sum(it.after or 0.0 for it in known), of=sum(it.of or 0.0 for it in known))


def _mean(values: Sequence[float | None]) -> Figure:
    known = [value for value in values if value is not None]
    return Figure(after=fmean(known) if known else None)


def _criteria(each: SuiteStanding) -> Figure:
    """How many are met in a session on the mean."""
    compared = each.compared
    if compared is None or compared.candidate is None:
        return _criteria_alone(each.ran)
    now = [delta.candidate for delta in compared.criteria if delta.candidate]
    before = [delta.baseline for delta in compared.criteria if delta.baseline]
    if not now:
        return _criteria_alone(each.ran)
    is_worse = any(it.effect == "worse" and it.verdict in _WORSE for it in compared.criteria)
    asked = max(len(now), _asked(each.ran))
    if asked > len(now) or compared.reasons or not before:
        return Figure(after=_met(now), of=float(asked), unknown=float(asked - len(now)))
    return Figure(_met(before), _met(now), float(asked), float(len(before)), is_worse=is_worse)


_WORSE = {Verdict.REGRESSED, Verdict.CHANGED}


def _met(rates: Iterable[TrialStatistics]) -> float:
    return sum(rate.mean for rate in rates) / 100


def _asked(ran: SuiteRuns | None) -> int:
    """Criteria that the newest session was judged by, those that nobody could judge included."""
    details = ran.valid[-1].details(FulfillmentDetails) if ran and ran.valid else None
    return len(details.criteria) if details else 0


def _criteria_alone(ran: SuiteRuns | None) -> Figure:
    found = [
        it.criteria for run in (ran.valid if ran else ()) if (it := run.details(FulfillmentDetails)) and it.criteria
    ]
    if not found:
        return Figure()
    met = fmean(sum(it.verdict is CriterionVerdict.PASS for it in criteria) for criteria in found)
    return Figure(after=met, of=float(len(found[-1])))


def _tests(each: SuiteStanding) -> Figure | None:
    """Tests that passed, of all that ran; nothing where nobody counted them."""
    figures = {it.name: it for it in each.compared.figures} if each.compared else {}
    passed, total = figures.get("tests.passed"), figures.get("tests")
    if passed and total and passed.candidate is not None:
        old, of_old = (passed.baseline, total.baseline) if passed.change is not None else (None, None)
        return Figure(old, passed.candidate, total.candidate, of_old, is_worse=_has_failed_more(figures))
    counted = [
        it.tests for run in (each.ran.valid if each.ran else ()) if (it := run.details(CorrectnessDetails)) and it.tests
    ]
    known = [it for it in counted if it.recognised]
    if not known:
        return None
    return Figure(after=fmean(it.passed for it in known), of=fmean(it.total for it in known))


def _has_failed_more(figures: Mapping[str, FigureDelta]) -> bool:
    failed = figures.get("tests.failed")
    return bool(failed and failed.change and failed.change > 0)


def _commands(each: SuiteStanding) -> Cell:
    """Where tests are not counted, whether the commands succeeded."""
    outcomes = [correctness_outcome(run) for run in (each.ran.valid if each.ran else ())]
    if Outcome.FAILED in outcomes:
        return Cell("fail", Tone.BAD)
    return Cell("pass") if Outcome.PASSED in outcomes else NOTHING


def _measured(each: SuiteStanding, measure: Measure) -> Figure:
    delta = next((it for it in each.compared.measures if it.measure is measure), None) if each.compared else None
    if delta and delta.candidate:
        before = delta.baseline.mean if delta.baseline and delta.change is not None else None
        return Figure(before, delta.candidate.mean, is_worse=delta.effect == "worse" and delta.verdict in _WORSE)
    return Figure(after=means(each.ran.valid).get(measure) if each.ran else None)


def outcome_cell(runs: Sequence[RunResult]) -> Cell:
    """`passed`, or `3 of 5 passed`."""
    outcomes = [run_outcome(run) for run in runs]
    worst = OUTCOMES[max(outcomes)].cell
    if len(set(outcomes)) == 1:
        return worst
    return Cell(f"{outcomes.count(Outcome.PASSED)} of {numbers.whole(len(outcomes))} passed", worst.tone)


def means(runs: Iterable[RunResult]) -> dict[Measure, float]:
    """Over the runs that have the number."""
    collected: dict[Measure, list[float]] = {}
    for run in runs:
        for measure, value in values_of(run.evaluations).items():
            collected.setdefault(measure, []).append(value)
    return {measure: fmean(values) for measure, values in collected.items()}


FIRST = (Measure.REQUIREMENT_FULFILLMENT, Measure.TOOL_USAGE, Measure.FUNCTIONAL_CORRECTNESS)
SHOWN = (*FIRST, *(measure for measure, spec in MEASURES.items() if spec.column and measure not in FIRST))
NUMBERS = tuple(Column(MEASURES[measure].column, right=True) for measure in SHOWN)
COLUMNS = (Column("Suite"), *NUMBERS)
TRIAL_COLUMNS = (Column("Session"), Column("Status"), *NUMBERS)
MISSING = Cell("n/a", Tone.DIM)


def numbers_table(report: CiReport, suites: Sequence[SuiteStanding]) -> Table:
    """Every suite with every number, and what it was before; scores are points of 100."""
    lines = [TableRow((_name(report, each), *_numbers(each))) for each in suites]
    compared = [each.compared for each in suites if each.compared]
    if report.comparison and sum(any(row.change is not None for row in it.measures) for it in compared) > 1:
        deltas = {delta.measure: delta for delta in report.comparison.overall}
        overall = (_delta(measure, deltas.get(measure)) for measure in SHOWN)
        lines.append(TableRow((Cell("Mean of all"), *overall)))
    return Table(COLUMNS, tuple(lines))


def _name(report: CiReport, each: SuiteStanding) -> Cell:
    return Cell(visible(each.suite, MAX_SUITE_NAME_LENGTH), url=suite_address(report, each.suite))


def trial_table(runs: tuple[RunResult, ...]) -> Table:
    """A line per trial."""
    return Table(TRIAL_COLUMNS, tuple(TableRow(tuple(_trial(run))) for run in runs))


def _numbers(each: SuiteStanding) -> Iterator[Cell]:
    compared: SuiteComparison | None = each.compared
    if compared is None:
        values = means(each.ran.valid) if each.ran else {}
        return (_plain(measure, values) for measure in SHOWN)
    deltas = {delta.measure: delta for delta in compared.measures}
    return (_delta(measure, deltas.get(measure)) for measure in SHOWN)


def _trial(run: RunResult) -> Iterator[Cell]:
    yield Cell(numbers.whole(run.trial))
    yield outcome_cell([run])
    values = values_of(run.evaluations)
    for measure in SHOWN:
        yield _plain(measure, values)


def _plain(measure: Measure, values: Mapping[Measure, float]) -> Cell:
    return Cell(_spelled(measure, values[measure])) if measure in values else MISSING


def _delta(measure: Measure, delta: MeasureDelta | None) -> Cell:
    """`90.0 → 62.0`, or once where nothing is left of the change after rounding."""
    sides = [side for side in (delta.baseline, delta.candidate) if side] if delta else []
    if delta is None or not sides:
        return MISSING
    if delta.candidate is None:
        return Cell(f"(was {_spelled(measure, sides[0].mean)})", Tone.DIM)
    spelled = list(dict.fromkeys(_spelled(measure, side.mean) for side in sides))
    return Cell(ARROW.join(spelled), Tone.BAD if delta.verdict is Verdict.REGRESSED else Tone.NEUTRAL)


def _spelled(measure: Measure, value: float) -> str:
    return written(MEASURES[measure].unit.brief, value)
