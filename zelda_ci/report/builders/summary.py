"""An invocation as a report: its runs, its trials, and the closing line."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC
from functools import partial
from statistics import fmean

from zelda_ci.domain import numbers
from zelda_ci.domain.comparison import BUDGET_ENDED, GateResult
from zelda_ci.domain.measures import SCORES, Metric, own_measure
from zelda_ci.domain.outcome import Outcome, batch_outcome, run_outcome
from zelda_ci.domain.run import BatchResult, JudgeUsage, RunResult
from zelda_ci.domain.session import Usage
from zelda_ci.domain.workspace import TestedSource
from zelda_ci.report.builders.findings import hidden_findings
from zelda_ci.report.builders.gate import gate_sentences
from zelda_ci.report.builders.judged import is_cost_known, judge_cost
from zelda_ci.report.builders.phrases import measured_words
from zelda_ci.report.builders.run import run_view, wall_seconds, whole_cost
from zelda_ci.report.builders.usage import Used, label, used
from zelda_ci.report.model import (
    NO_FILES,
    Cell,
    Column,
    ReportSummary,
    ReportView,
    Row,
    RunFiles,
    RunView,
    Section,
    SuiteView,
    Table,
    TableRow,
    Tone,
    Trouble,
)
from zelda_ci.report.text import visible, written
from zelda_ci.report.words import OUTCOMES

MAX_NAMES = 3


def summary(batch: BatchResult, suites: Sequence[SuiteView], gate: GateResult, *, stored: bool) -> ReportSummary:
    """Of everything that ran, and of what stands against it."""
    outcome = max(batch_outcome(batch), Outcome.FAILED if gate.reasons else Outcome.MEASURED)
    again = (_again(batch),) if stored and batch.runs else ()
    return ReportSummary(
        outcome,
        OUTCOMES[outcome].verdict,
        _troubles(suites),
        suite_table(batch, suites),
        (*_rows(batch, suites, gate, outcome), *again),
        tuple(_in_a_line(batch, suites, gate, outcome, stored=stored)),
    )


def _in_a_line(
    batch: BatchResult, suites: Sequence[SuiteView], gate: GateResult, outcome: Outcome, *, stored: bool
) -> Iterator[Cell]:
    yield from (cell for cell in _tally([suite.outcome for suite in suites], "suite") if cell.tone is not Tone.DIM)
    yield from _not_started(batch, f": {batch.ended}" if batch.ended else "")
    for row in _totals(batch):
        if row.label in {"Cost", "Elapsed"}:
            yield row.cells[0]
    yield from (Cell(text, Tone.BAD, whole=True) for text in gate_sentences(gate))
    yield Cell(f"exit code {outcome.exit_code}", Tone.DIM)
    if stored and batch.runs:
        yield Cell(f"batch {visible(batch.batch_id, len(batch.batch_id))}", Tone.DIM, whole=True)


SUITE_COLUMNS = (
    Column("Verdict"),
    Column("Suite"),
    Column("Passed", right=True),
    *(Column(spec.listed, right=True) for spec in SCORES.values() if spec.listed),
    Column("Cost", right=True),
    Column("Time", right=True),
)
SUITE = 1
NOTHING = Cell("-", Tone.DIM)


def suite_table(batch: BatchResult, suites: Sequence[SuiteView]) -> Table:
    """A line per suite: means over its trials; cost and time with judges and with what ran beside it for the base."""
    of_suites = {visible(name): of_suite for name, of_suite in by_name(batch.runs).items()}
    beside = {visible(name): of_suite for name, of_suite in by_name(batch.base_runs).items()}
    lines = [tuple(_line(suite, of_suites[suite.name], beside.get(suite.name, []))) for suite in suites]
    # A metric that no suite has takes no room.
    kept = [number for number in range(len(SUITE_COLUMNS)) if any(line[number] != NOTHING for line in lines)]
    rows = tuple(TableRow(tuple(line[number] for number in kept)) for line in lines)
    return Table(tuple(SUITE_COLUMNS[number] for number in kept), rows, SUITE)


def by_name(runs: Iterable[RunResult]) -> dict[str, list[RunResult]]:
    """Runs by suite, in their order."""
    found: dict[str, list[RunResult]] = {}
    for run in runs:
        found.setdefault(run.suite, []).append(run)
    return found


def _line(suite: SuiteView, runs: Sequence[RunResult], beside: Sequence[RunResult]) -> Iterator[Cell]:
    yield suite.verdict
    yield Cell(suite.name)
    several = max(run.trial for run in runs) > 1
    passed_trials = sum(run_outcome(run) <= Outcome.PASSED for run in runs)
    yield Cell(f"{passed_trials} of {len(runs)}" if several else "")
    for metric in (metric for metric, spec in SCORES.items() if spec.listed):
        scores = [
            score for run in runs if metric in run.evaluations and (score := run.evaluations[metric].score) is not None
        ]
        yield Cell(numbers.format_score(fmean(scores))) if scores else NOTHING
    costs = [cost for run in (*runs, *beside) if (cost := whole_cost(run)) is not None]
    yield Cell(numbers.money(sum(costs))) if costs else NOTHING
    yield Cell(numbers.duration(sum(map(wall_seconds, (*runs, *beside)))))


def _again(batch: BatchResult) -> Row:
    batch_id = visible(batch.batch_id, len(batch.batch_id))
    return Row("Batch", (Cell(batch_id, whole=True), Cell("`zelda show` takes this id", Tone.DIM)))


def about_run(run: RunResult) -> tuple[Row, ...]:
    """Of one stored run: which it is, what it tested and what made it."""
    which = [Cell(visible(run.run_id, len(run.run_id)), whole=True), Cell(f"trial {run.trial}", Tone.DIM)]
    began = Cell(f"{run.started_at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC")
    rows = (Row("Run", tuple(which)), Row("Batch", (Cell(visible(run.batch_id)),)), Row("Began", (began,)))
    return (*rows, *_tested(run), Row("Versions", tuple(_versions([run]))))


def _troubles(suites: Sequence[SuiteView]) -> tuple[Trouble, ...]:
    """Problems with the runs that have them, alike ones once, the gravest first."""
    alike: dict[tuple[Outcome, str], list[RunView]] = {}
    for run in (run for suite in suites for run in suite.runs):
        if run.problem:
            alike.setdefault((run.outcome, run.problem.sentence), []).append(run)
    ranked = sorted(alike.items(), key=lambda item: item[0][0], reverse=True)
    return tuple(
        Trouble(outcome, OUTCOMES[outcome].verdict, _names(affected), affected[0].problem, affected[0].unmet)
        for (outcome, _), affected in ranked
        if affected[0].problem
    )


def _names(runs: Sequence[RunView]) -> str:
    """The suites, with what they have of several trials; the first few of them."""
    trials: dict[str, list[str]] = {}
    for run in runs:
        trials.setdefault(run.suite, []).append(run.trial)
    names = [_name(suite, trials_of) for suite, trials_of in trials.items()]
    if len(names) > MAX_NAMES:
        names[MAX_NAMES:] = [f"and {numbers.format_count(len(names) - MAX_NAMES, 'more suite')}"]
    return ", ".join(names)


def _name(suite: str, trials: Sequence[str]) -> str:
    which = trials[0] if len(trials) == 1 else numbers.format_count(len(trials), "trial")
    return f"{suite} ({which})" if which else suite


def _rows(batch: BatchResult, suites: Sequence[SuiteView], gate: GateResult, outcome: Outcome) -> Iterator[Row]:
    yield Row("Suites", (*_tally([suite.outcome for suite in suites], "suite"), *_not_started(batch)))
    if len(batch.runs) > len(suites):
        yield Row("Trials", _tally([run.outcome for suite in suites for run in suite.runs], "trial"))
    if batch.runs:
        yield from _tested(batch.runs[0])
        yield from _totals(batch)
        yield Row("Versions", tuple(_versions(batch.runs)))
    if batch.unpaid:
        unpaid = [_name(visible(each.suite), [""] * each.unpaid) for each in batch.unpaid]
        yield Row("Not run", (Cell(f"{', '.join(unpaid)}: {batch.ended or BUDGET_ENDED}", Tone.BAD),))
    for text in gate_sentences(gate):
        yield Row("Gate", (Cell(text, Tone.BAD, whole=True),))
    by_suite = by_name(batch.runs)
    if outcome is Outcome.PASSED and (hiding := sum(bool(hidden_findings(runs)) for runs in by_suite.values())):
        words = f"passed, with findings in {hiding} of {numbers.format_count(len(by_suite), 'suite')}"
        yield Row("Exit code", (Cell(f"{outcome.exit_code}, {words}", Tone.WARN),))
        return
    words = OUTCOMES[outcome].meaning or f"measured: {measured_words(batch.runs)}"
    meaning = Cell(f"{outcome.exit_code}, {words}", OUTCOMES[outcome].tone)
    yield Row("Exit code", (meaning,))


def _not_started(batch: BatchResult, why: str = "") -> Iterator[Cell]:
    missing = (batch.planned or 0) - len(batch.runs)
    if missing > 0:
        yield Cell(f"{numbers.format_count(missing, 'run')} not started{why}", Tone.WARN)


def _tally(outcomes: Sequence[Outcome], noun: str) -> tuple[Cell, ...]:
    if not outcomes:
        return (Cell(f"no {noun} was run", Tone.BAD),)
    counts = Counter(outcomes)
    cells = [
        Cell(numbers.format_count(counts[outcome], words.word, words.several), words.tone)
        for outcome, words in OUTCOMES.items()
        if counts[outcome]
    ]
    return (*cells, Cell(f"{len(outcomes)} in all", Tone.DIM)) if len(cells) > 1 else tuple(cells)


def tested_name(source: TestedSource) -> str:
    """What was tested, by the commit that people know."""
    branch = f" ({visible(source.branch)})" if source.branch else ""
    known = source.parent or source.commit
    kind = "the working tree on commit" if source.parent else "commit"
    return f"{kind} {visible(known[:12])}{branch}" if known else "a copy of the folder, outside git"


def _tested(run: RunResult) -> Iterator[Row]:
    source = run.source
    if source is None:
        return
    dirty = source.dirty and source.kind == "worktree"
    cells = [Cell(tested_name(source))] + [Cell("uncommitted changes were not tested", Tone.WARN)] * dirty
    yield Row("Tested", tuple(cells))


def _totals(batch: BatchResult) -> Iterator[Row]:
    """Of both sides, where there are two."""
    runs = (*batch.runs, *batch.base_runs)
    uses = [use for use in map(used, runs) if use]
    judges = [run.judge for run in runs if run.judge]
    if uses or judges:
        yield Row("Cost", tuple(_costs(uses, judges)))
    if uses:
        yield Row("Tokens", (Cell(numbers.whole(sum((use.tokens for use in uses), Usage()).total)),))
    yield Row("Elapsed", (Cell(numbers.duration((batch.finished_at - batch.started_at).total_seconds())),))


def _costs(uses: Sequence[Used], judges: Sequence[JudgeUsage]) -> Iterator[Cell]:
    """All of it, then the parts where there are two."""
    if not judges:
        yield Cell(_cost(uses))
        return
    total = sum(use.cost_usd for use in uses) + sum(judge.cost_usd for judge in judges)
    yield Cell(numbers.money(total, exact=all(use.cost_known for use in uses) and all(map(is_cost_known, judges))))
    yield Cell(f"sessions {_cost(uses)}", Tone.DIM)
    yield Cell(f"judge {judge_cost(judges)}", Tone.DIM)


def _cost(uses: Sequence[Used]) -> str:
    return numbers.money(sum(use.cost_usd for use in uses), exact=all(use.cost_known for use in uses))


def _versions(runs: Sequence[RunResult]) -> Iterator[Cell]:
    yield Cell(f"zelda {visible(runs[0].versions.zelda)}", Tone.DIM)
    clis = sorted({run.versions.cli for run in runs if run.versions.cli})
    if clis:
        yield Cell(f"Claude Code {', '.join(map(visible, clis))}", Tone.DIM)


Measure = Callable[[RunResult], float | None]
Spell = Callable[[float], str]


def spread(runs: Sequence[RunResult]) -> Section | None:
    """Mean and range of every metric and of cost, tokens, turns and time, over the trials that have the number.

    Sessions that failed or were interrupted say nothing about the suite and do not count.
    """
    valid = [run for run in runs if run_outcome(run) not in {Outcome.BROKEN, Outcome.INTERRUPTED}]
    if len(valid) < 2:
        return None
    rows = (_row(name, spell, [measure(run) for run in valid]) for name, measure, spell in _measures(valid))
    trials = numbers.format_count(len(runs), "trial")
    title = f"Spread over {trials}" if len(valid) == len(runs) else f"Spread over {len(valid)} of {trials}"
    return Section(title, tuple(row for row in rows if row))


def passed(runs: Sequence[RunResult]) -> tuple[Cell, ...]:
    """Like "4 of 5 trials passed"."""
    outcomes = [run_outcome(run) for run in runs]
    if set(outcomes) == {Outcome.MEASURED}:
        return (Cell(f"{numbers.format_count(len(runs), 'trial')} measured"),)
    good = sum(outcome <= Outcome.PASSED for outcome in outcomes)
    tone = Tone.NEUTRAL if good == len(runs) else Tone.BAD
    return (Cell(f"{good} of {numbers.format_count(len(runs), 'trial')} passed", tone),)


def _sums(runs: Sequence[RunResult]) -> Iterator[Cell]:
    costs = [cost for run in runs if (cost := whole_cost(run)) is not None]
    if costs:
        yield Cell(numbers.money(sum(costs)), Tone.DIM)
    yield Cell(numbers.duration(sum(map(wall_seconds, runs))), Tone.DIM)


def _measures(runs: Sequence[RunResult]) -> Iterator[tuple[str, Measure, Spell]]:
    present = {metric for run in runs for metric in run.evaluations}
    for metric in Metric:
        if metric in present:
            yield label(metric), _number_of(metric), partial(written, own_measure(metric).unit.write)
    yield "Cost", whole_cost, numbers.money
    yield "Tokens", _tokens, numbers.whole
    yield "Turns", _turns, numbers.average
    yield "Time", wall_seconds, numbers.duration


def _number_of(metric: Metric) -> Measure:
    def measure(run: RunResult) -> float | None:
        result = run.evaluations.get(metric)
        return own_measure(metric).number(result) if result else None

    return measure


def _tokens(run: RunResult) -> float | None:
    use = used(run)
    return use.tokens.total if use else None


def _turns(run: RunResult) -> float | None:
    use = used(run)
    return use.details.turns if use and use.details else None


def _row(name: str, spell: Spell, values: Sequence[float | None]) -> Row | None:
    present = [value for value in values if value is not None]
    if not present:
        return None
    low, high = spell(min(present)), spell(max(present))
    cells = [Cell(spell(fmean(present))), Cell("no spread" if low == high else f"{low} to {high}", Tone.DIM)]
    if len(present) < len(values):
        cells.append(Cell(f"{len(present)} of them have it", Tone.WARN))
    return Row(name, tuple(cells))


NOTHING_AGAINST = GateResult()


def report_view(batch: BatchResult, files: Mapping[str, RunFiles], gate: GateResult = NOTHING_AGAINST) -> ReportView:
    """The report on one invocation; `files` says by run id where each run's files are."""
    suites = tuple(suite_view(name, runs, files) for name, runs in by_name(batch.runs).items())
    return ReportView(suites, summary(batch, suites, gate, stored=bool(files)))


def stored_run_view(run: RunResult, files: RunFiles) -> RunView:
    """One stored run in full, whichever trial it was."""
    view = run_view(run, files)
    return replace(view, sections=(*view.sections, Section("About", about_run(run))))


def suite_view(name: str, runs: Sequence[RunResult], files: Mapping[str, RunFiles], *, whole: bool = True) -> SuiteView:
    """Every trial of one suite, as for `run_view`."""
    # What the suite asks for may have been overruled: only the runs themselves tell how many trials there were.
    several = max(run.trial for run in runs) > 1
    views = tuple(run_view(run, files.get(run.run_id, NO_FILES), several=several, whole=whole) for run in runs)
    outcome = max(map(run_outcome, runs))
    found = hidden_findings(runs)
    hidden = (Cell(f"but {found}", Tone.WARN),) if found and outcome <= Outcome.PASSED else ()
    facts = (*passed(runs), *hidden, *_sums(runs)) if several else views[0].facts
    return SuiteView(visible(name), outcome, OUTCOMES[outcome].verdict, facts, spread(runs), views)
