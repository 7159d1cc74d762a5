"""The comment's tables: what moved, in few columns and words, and every number of every suite."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import NamedTuple

from zelda_ci.domain import numbers
from zelda_ci.domain.comparison import Delta, MeasureDelta, Verdict
from zelda_ci.domain.details import CorrectnessDetails, CriterionVerdict, FulfillmentDetails
from zelda_ci.domain.measures import MEASURES, Measure
from zelda_ci.domain.measures import values as values_of
from zelda_ci.domain.outcome import Outcome, correctness_outcome, run_outcome
from zelda_ci.domain.run import RunResult
from zelda_ci.report.builders.anchors import suite_address
from zelda_ci.report.builders.phrases import measured_words
from zelda_ci.report.builders.run import hidden_findings
from zelda_ci.report.builders.standings import CALM, SuiteStanding, SuiteVerdict, of, untested_words
from zelda_ci.report.ci_report import CiReport
from zelda_ci.report.model import OUTCOMES, Cell, Column, Table, TableRow, Tone
from zelda_ci.report.text import visible, written

V = SuiteVerdict
TONES = dict.fromkeys((V.WORSE, V.NOT_TESTED, V.PERHAPS_WORSE, V.FAILS, V.NEW_FAILS), Tone.BAD)
TONES |= dict.fromkeys((V.UNCLEAR, V.ACCEPTED, V.ON_BASE), Tone.WARN)
TONES |= dict.fromkeys((V.BETTER, V.PASSES, V.PERHAPS_BETTER), Tone.GOOD)
MAX_SUITE_NAME_LENGTH = 60
MAX_ROWS = 12
MOVED = (*map(Column, ("Suite", "Criteria met", "Tests", "Tools")), Column("Session cost", right=True))


class Figure(NamedTuple):
    """A number before and after; absent on the side that does not have it."""

    after: float | None = None
    before: float | None = None
    of: float | None = None
    """All there are, where it is a part."""
    of_before: float | None = None
    unknown: float = 0.0
    """Of all, those of which nobody knows."""
    is_worse: bool = False

    def cell(self, write: Callable[[float], str], least: float = 0.0) -> Cell:
        """`3 → 2 of 3`: once where the change is gone after rounding, or less than a share of what was before."""
        if self.after is None:
            return Cell("", Tone.DIM)
        tone = Tone.BAD if self.is_worse else Tone.NEUTRAL
        of = "" if self.of is None else f" of {write(self.of)}"
        now = f"{write(self.after)}{of}{f', {write(self.unknown)} not known' if self.unknown else ''}"
        if self.before is None or abs(self.after - self.before) < least * self.before:
            return Cell(now, Tone.NEUTRAL if self.before is not None else tone)
        of_before = of if self.of_before is None else f" of {write(self.of_before)}"
        before = write(self.before)
        if f"{before}{of_before}" == now:
            return Cell(now, tone)
        return Cell(f"{before}{of_before * (of_before != of)} \u2192 {now}", tone)


def moved_table(report: CiReport, suites: Sequence[SuiteStanding]) -> Table:
    """A row per suite that stands out, the worst first; all that are as before, or pass, share one."""
    hiding = [each for each in suites if each.standing in CALM and _hidden(each)]
    notable = [*(each for each in suites if each.standing not in CALM), *hiding]
    rows = [_row(report, [each]) for each in notable[:MAX_ROWS]]
    if rest := notable[MAX_ROWS:]:
        counts = (f"{numbers.whole(len(those))} {word.value}" for word in V if (those := of(rest, word)))
        words = f"and {numbers.format_count(len(rest), 'more suite')}: {', '.join(counts)}"
        rows.append(TableRow((Cell(words, Tone.DIM, url=report.links.report), *[Cell("")] * (len(MOVED) - 1))))
    plain = [each for each in suites if each not in hiding]
    rows += [_row(report, alike) for word in V if word in CALM and (alike := of(plain, word))]
    columns = [place for place in range(len(MOVED)) if place == 0 or any(row.cells[place].text for row in rows)]
    lines = tuple(TableRow(tuple(row.cells[place] for place in columns)) for row in rows)
    return Table(tuple(MOVED[place] for place in columns), lines)


def _row(report: CiReport, alike: Sequence[SuiteStanding]) -> TableRow:
    """A suite, or several without a finding: sums of parts, means of the rest."""
    first = alike[0]
    if len(alike) == 1:
        words = f"{visible(first.suite, MAX_SUITE_NAME_LENGTH)}, {standing_words(first)}{_hidden(first)}"
        label = Cell(words, TONES.get(first.standing, Tone.NEUTRAL), url=suite_address(report, first.suite))
    else:
        word = {V.PASSES: "pass", V.RAN: "ran to the end"}.get(first.standing, first.standing.value)
        label = Cell(f"{numbers.format_count(len(alike), 'suite')} {word}", Tone.DIM, url=report.links.report)
    criteria, tests = (_together([count(each) for each in alike], sum) for count in (_criteria, _tests))
    of_measures = ([_measured(each, measure) for each in alike] for measure in (Measure.TOOL_USAGE, Measure.COST))
    tools, cost = (_together(figures, fmean) for figures in of_measures)
    # Of one session and the next, less than a fifth of the cost says nothing.
    cells = (tools.cell(numbers.whole), cost.cell(numbers.brief_money, 0.2))
    if tests.after is not None:
        return TableRow((label, criteria.cell(numbers.average), tests.cell(numbers.average), *cells))
    # Where tests are not counted, whether the commands succeeded.
    outcomes = set(map(correctness_outcome, first.valid))
    commands = Cell("fail", Tone.BAD) if Outcome.FAILED in outcomes else Cell("pass" * (Outcome.PASSED in outcomes))
    return TableRow((label, criteria.cell(numbers.average), commands, *cells))


def standing_words(each: SuiteStanding) -> str:
    """`worse`, `fails as before`, `new, fails`."""
    if each.standing is V.FAILS and each.compared:
        return "fails as before"
    if each.standing is V.NOT_TESTED:
        return untested_words([each])
    if each.standing is V.MEASURED:
        return f"{each.standing.value}: {measured_words(each.runs)}"
    fails = each.fails_by_itself and each.standing not in (V.WORSE, V.PERHAPS_WORSE, V.FAILS, V.NEW_FAILS)
    return f"{each.standing.value}{', fails' * fails}"


def _hidden(each: SuiteStanding) -> str:
    found = hidden_findings(each.valid) if each.outcome <= Outcome.PASSED else ""
    return f", but {found}" if found else ""


def _together(figures: Sequence[Figure], join: Callable[[Sequence[float]], float]) -> Figure:
    """A suite's own figure, or what those of several are together."""
    if len(figures) == 1:
        return figures[0]
    known = [it for it in figures if it.after is not None]
    of = [it.of for it in known if it.of is not None]
    return Figure(join([it.after or 0.0 for it in known]), of=join(of) if of else None) if known else Figure()


def _criteria(each: SuiteStanding) -> Figure:
    """How many are met in a session on the mean; those that nobody could judge are not known."""
    judged = [found.criteria for run in each.valid if (found := run.details(FulfillmentDetails)) and found.criteria]
    asked = float(len(judged[-1])) if judged else 0.0
    deltas = each.compared.criteria if each.compared and each.compared.candidate else ()
    now, before = ([side for delta in deltas if (side := getattr(delta, name))] for name in ("candidate", "baseline"))
    if not now:
        met = [sum(it.verdict is CriterionVerdict.PASS for it in criteria) for criteria in judged]
        unknown = [sum(it.verdict is CriterionVerdict.NOT_JUDGED for it in criteria) for criteria in judged]
        return Figure(fmean(met), of=asked, unknown=fmean(unknown)) if met else Figure()
    asked = max(float(len(now)), asked)
    met_now, met_before = (sum(side.mean for side in sides) / 100 for sides in (now, before))
    if asked > len(now) or not before or (each.compared and each.compared.reasons):
        return Figure(met_now, of=asked, unknown=asked - len(now))
    return Figure(met_now, met_before, asked, float(len(before)), is_worse=any(map(_is_worse, deltas)))


def _is_worse(delta: Delta) -> bool:
    return delta.effect == "worse" and delta.verdict in {Verdict.REGRESSED, Verdict.CHANGED}


def _tests(each: SuiteStanding) -> Figure:
    """Tests that passed, of all that ran; nothing where nobody counted them."""
    counts = {it.name: it for it in each.compared.figures} if each.compared else {}
    passed, total, failed = (counts.get(name) for name in ("tests.passed", "tests", "tests.failed"))
    if passed and total and passed.candidate is not None:
        before = (passed.baseline, total.baseline) if passed.change is not None else (None, None)
        is_worse = failed is not None and (failed.change or 0.0) > 0
        return Figure(passed.candidate, before[0], total.candidate, before[1], is_worse=is_worse)
    found = [details.tests for run in each.valid if (details := run.details(CorrectnessDetails))]
    known = [(it.passed, it.total) for it in found if it and it.recognised]
    return Figure(fmean(passed for passed, _ in known), of=fmean(total for _, total in known)) if known else Figure()


def _measured(each: SuiteStanding, measure: Measure) -> Figure:
    for delta in each.compared.measures if each.compared else ():
        if delta.measure is measure and delta.candidate:
            return _of_delta(delta)
    return Figure(means(each.valid).get(measure))


def _of_delta(delta: MeasureDelta) -> Figure:
    """The base's side only where the two can be compared."""
    before = delta.baseline.mean if delta.baseline and delta.change is not None else None
    return Figure(delta.candidate.mean if delta.candidate else None, before, is_worse=_is_worse(delta))


def outcome_cell(runs: Sequence[RunResult]) -> Cell:
    """`passed`, or `3 of 5 passed`."""
    outcomes = [run_outcome(run) for run in runs]
    words = OUTCOMES[max(outcomes)]
    worst = Cell(words.word, words.tone)
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


def numbers_table(report: CiReport, suites: Sequence[SuiteStanding]) -> Table:
    """Every suite that has numbers, with what they were before; scores are points of 100."""
    lines = []
    for each in suites:
        name = Cell(visible(each.suite, MAX_SUITE_NAME_LENGTH), url=suite_address(report, each.suite))
        lines.append(_numbers(name, {measure: _measured(each, measure) for measure in SHOWN}))
    compared = [each.compared.measures for each in suites if each.compared]
    if report.comparison and sum(any(row.change is not None for row in rows) for rows in compared) > 1:
        overall = {delta.measure: _of_delta(delta) for delta in report.comparison.overall}
        lines.append(_numbers(Cell("Mean of all"), overall))
    lines = [row for row in lines if any(cell.text for cell in row.cells[1:])]
    return Table((Column("Suite"), *NUMBERS), tuple(lines))


def trial_table(runs: Sequence[RunResult]) -> Table:
    lines = []
    for run in runs:
        figures = {measure: Figure(value) for measure, value in values_of(run.evaluations).items()}
        lines.append(_numbers(Cell(numbers.whole(run.trial)), figures, outcome_cell([run])))
    return Table((Column("Session"), Column("Status"), *NUMBERS), tuple(lines))


def _numbers(name: Cell, figures: Mapping[Measure, Figure], *beside: Cell) -> TableRow:
    briefs = {measure: partial(written, MEASURES[measure].unit.brief) for measure in SHOWN}
    cells = (figures.get(measure, Figure()).cell(brief) for measure, brief in briefs.items())
    return TableRow((name, *beside, *cells))
