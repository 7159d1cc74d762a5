"""An invocation in words: what it may cost, why a suite goes on, its suites and their trials, the closing lines."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC
from functools import partial
from statistics import fmean

from zelda_ci.domain.comparison import BUDGET_ENDED, GateResult
from zelda_ci.domain.details import EfficiencyDetails
from zelda_ci.domain.measures import SCORES, Metric, own_measure
from zelda_ci.domain.numbers import average, brief_money, duration, format_count, format_score, money, some_of, whole
from zelda_ci.domain.outcome import Outcome, batch_outcome, run_outcome
from zelda_ci.domain.run import BatchResult, RunResult
from zelda_ci.domain.session import Usage
from zelda_ci.domain.trials import DoneReason, Forecast, MoreTrials, Side, SuiteArms
from zelda_ci.domain.workspace import TestedSource
from zelda_ci.report.builders.comparison import gate_sentence
from zelda_ci.report.builders.phrases import measured_words
from zelda_ci.report.builders.run import cost, hidden_findings, run_facts, run_problem, spent, used, wall_seconds
from zelda_ci.report.model import OUTCOMES, Cell, Column, Problem, Row, RunFiles, Section, Table, TableRow, Tone
from zelda_ci.report.text import sentence, visible, written

MAX_NAMED = 3
REASONS = {
    DoneReason.AS_EXPECTED: "as expected",
    DoneReason.REGRESSED: "a regression is proven",
    DoneReason.PLAN_ENDED: "all trials of the plan were made",
    DoneReason.NOT_PROVEN: "it looks worse, too little for more trials to prove it",
    DoneReason.NOT_COMPARABLE: "the sides differ in more than the steering files",
    DoneReason.NO_BASE: "something looks worse, and there is no base to compare with",
    DoneReason.FAILED: "too many trials failed",
    DoneReason.BUDGET: BUDGET_ENDED,
    DoneReason.ENDED: "nothing more was begun",
    DoneReason.INTERRUPTED: "interrupted",
}

FilesOf = Callable[[str], RunFiles]
"""Where the files of a run lie, by its id."""


def forecast_lines(forecast: Forecast) -> Iterator[str]:
    """What it may cost, in a line; others where a price is not known, for the suites' limits and for the budget."""
    fewest, most = forecast.fewest, forecast.most
    count = format_count(most, "session") if fewest == most else f"{fewest} to at most {format_count(most, 'session')}"
    trials = sum(suite.price.trials for suite in forecast.suites if suite.price)
    if forecast.replayed:
        yield f"Plan: {count}, replayed from a recording: nothing is spent"
    elif not most and forecast.suites:
        yield "Plan: no session; the trials that are stored decide"
    elif trials:
        costs = dict.fromkeys(map(brief_money, (forecast.usual_usd, forecast.most_usd)))
        yield f"Plan: {count}, about {' to '.join(costs)} by {format_count(trials, 'stored trial')}"
    else:
        yield f"Plan: {count}; what they cost is not known before the first"
    unpriced = [visible(suite.suite) for suite in forecast.suites if suite.price is None]
    if most and trials and unpriced:
        yield f"Without a stored trial, so not in these sums: {some_of(unpriced, MAX_NAMED)}"
    limits = sorted({each.limit_usd for each in forecast.suites if each.most and each.limit_usd is not None})
    if limits and not forecast.replayed:
        spread = " to ".join(dict.fromkeys(map(brief_money, (limits[0], limits[-1]))))
        yield f"Limit: a session is ended at {spread} (maxCostUsd), its judge not included"
    if forecast.budget_usd is not None:
        yield f"Budget: {brief_money(forecast.budget_usd)}, judges included; nothing is begun that does not fit"


def forecast_table(forecast: Forecast) -> Table:
    titles = ("Sessions", "Each", "All", "Stored trials")[: 1 if forecast.replayed else None]
    rows = []
    for suite in forecast.suites:
        sessions = str(suite.most) if suite.fewest == suite.most else f"{suite.fewest} to {suite.most}"
        costs, trials = [Cell("not known", Tone.WARN)] * 2, 0
        if price := suite.price:
            usual = brief_money(price.usual), f"about {brief_money(suite.most * price.usual)}"
            costs, trials = [*map(Cell, usual)], price.trials
        cells = (Cell(visible(suite.suite)), Cell(sessions), *costs, Cell(str(trials), Tone.DIM))
        rows.append(TableRow(cells[: len(titles) + 1]))
    return Table((Column("Suite"), *(Column(title, right=True) for title in titles)), tuple(rows))


def more_trials(event: MoreTrials) -> str:
    """Why a suite goes on, and with what."""
    causes = [f"“{sentence(name, 80)}” failed in {missed} of {of}" for name, missed, of in event.missed[:MAX_NAMED]]
    why = "; ".join(causes) or f"not decided after {format_count(event.made, 'trial')}"
    sides = [f"{count} of the {side}" for side, count in (("head", event.head), ("base", event.base)) if count]
    return f"{why}: {' and '.join(sides)} more, side by side (round {event.look} of at most {event.looks})"


def suite_done(event: SuiteArms) -> str:
    trials = f"{event.head} + {event.base} trials" if event.base else format_count(event.head, "trial")
    return f"{trials}: {REASONS[event.reason]}"


def spending(batch: BatchResult) -> str:
    """`$6.10 of $8.00`: of sessions and judges of both sides."""
    runs = (*batch.runs, *batch.base_runs)
    if runs and all(run.replayed for run in runs):
        return "replayed, nothing was spent"
    return brief_money(batch.cost_usd) + (f" of {brief_money(batch.budget_usd)}" if batch.budget_usd else "")


def cut_short(batch: BatchResult) -> str:
    """In place of a verdict, where the user ended it."""
    ran = format_count(len(batch.runs) + len(batch.base_runs), "session")
    return f"stopped after {ran}: not compared; run the same command again, it keeps the finished sessions"


# --- what ran ----------------------------------------------------------------------------------------------------


def by_name(runs: Iterable[RunResult], *, by_file: bool = False) -> dict[str, list[RunResult]]:
    """Runs by suite, in their order; where that is wanted, prompts of a routing suite by their file."""
    found: dict[str, list[RunResult]] = {}
    for run in runs:
        found.setdefault(run.config.file if by_file and run.config.kind == "routing" else run.suite, []).append(run)
    return found


def has_trials(runs: Sequence[RunResult]) -> bool:
    """Whether a suite ran several times; what it asks for may have been overruled, so that only its runs tell."""
    return max(run.trial for run in runs) > 1


def suite_facts(runs: Sequence[RunResult]) -> tuple[Cell, ...]:
    """How the trials of a suite ended, and what they took."""
    if not has_trials(runs):
        return run_facts(runs[0])
    outcomes, count = [run_outcome(run) for run in runs], format_count(len(runs), "trial")
    good = sum(outcome <= Outcome.PASSED for outcome in outcomes)
    ended = Cell(f"{good} of {count} passed", Tone.NEUTRAL if good == len(runs) else Tone.BAD)
    if set(outcomes) == {Outcome.MEASURED}:
        ended = Cell(f"{count} measured")
    found = hidden_findings(runs) if max(outcomes) <= Outcome.PASSED else ""
    hidden = [Cell(f"but {found}", Tone.WARN)] if found else []
    sums = cost(spent(runs)), duration(sum(map(wall_seconds, runs)))
    return (ended, *hidden, *(Cell(each, Tone.DIM) for each in sums if each))


def spread(runs: Sequence[RunResult]) -> Section | None:
    """Mean and range of each number, over trials that have it and whose session neither failed nor was interrupted."""
    valid = [run for run in runs if run_outcome(run) not in {Outcome.BROKEN, Outcome.INTERRUPTED}]
    if len(valid) < 2:
        return None
    measures: dict[str, tuple[Callable[[float], str], Iterable[float | None]]] = {}
    for metric in Metric:
        spec, results = own_measure(metric), (run.evaluations.get(metric) for run in valid)
        numbers = [spec.number(result) if result else None for result in results]
        measures[spec.heading] = partial(written, spec.unit.write), numbers
    costs = (sum(use.cost_usd for use in uses) if (uses := spent([run])) else None for run in valid)
    details = (run.details(EfficiencyDetails) for run in valid)
    measures["Cost"] = money, costs
    measures["Tokens"] = whole, (use.usage.total if use else None for use in map(used, valid))
    measures["Turns"] = average, (each.turns if each else None for each in details)
    measures["Time"] = duration, map(wall_seconds, valid)
    rows = []
    for name, (write, values) in measures.items():
        if present := [value for value in values if value is not None]:
            low, high = write(min(present)), write(max(present))
            cells = [Cell(write(fmean(present))), Cell("no spread" if low == high else f"{low} to {high}", Tone.DIM)]
            cells += [Cell(f"{len(present)} of them have it", Tone.WARN)] * (len(present) < len(valid))
            rows.append(Row(name, tuple(cells)))
    trials = format_count(len(runs), "trial")
    return Section(f"Spread over {f'{len(valid)} of ' * (len(valid) < len(runs))}{trials}", tuple(rows))


def troubles(runs: Iterable[RunResult], files_of: FilesOf) -> list[tuple[Problem, list[RunResult]]]:
    """Problems with the runs that have them, alike ones once, the gravest first; the details are those of the first."""
    alike: dict[tuple[Outcome, str], tuple[Problem, list[RunResult]]] = {}
    for run in runs:
        if problem := run_problem(run, files_of(run.run_id)):
            alike.setdefault((run_outcome(run), problem.sentence), (problem, []))[1].append(run)
    return [alike[key] for key in sorted(alike, key=lambda key: key[0], reverse=True)]


def affected_names(runs: Iterable[RunResult], all_runs: Iterable[RunResult]) -> str:
    """The suites, with what they have of several trials; the first few of them."""
    suites, names = by_name(all_runs), []
    for suite, affected in by_name(runs).items():
        which = f"trial {affected[0].trial}" if len(affected) == 1 else format_count(len(affected), "trial")
        names.append(f"{suite} ({which})" if has_trials(suites[suite]) else suite)
    if len(names) > MAX_NAMED:
        names[MAX_NAMED:] = [f"and {format_count(len(names) - MAX_NAMED, 'more suite')}"]
    return ", ".join(names)


def suite_table(batch: BatchResult, *, by_file: bool = False) -> Table:
    """A line per suite: means over its trials; cost and time with judges and with what ran beside it for the base."""
    # A metric that no suite has takes no room.
    listed = {it: spec.listed for it, spec in SCORES.items() if spec.listed and _scores(batch.runs, it)}
    columns = (Column(title, right=True) for title in ("Passed", *listed.values(), "Cost", "Time"))
    beside, lines = by_name(batch.base_runs, by_file=by_file), []
    for suite, runs in by_name(batch.runs, by_file=by_file).items():
        outcomes, both = [run_outcome(run) for run in runs], (*runs, *beside.get(suite, ()))
        passed = f"{sum(outcome <= Outcome.PASSED for outcome in outcomes)} of {len(runs)}"
        values = [format_score(fmean(scores)) if (scores := _scores(runs, each)) else "-" for each in listed]
        values += cost(spent(both)) or "-", duration(sum(map(wall_seconds, both)))
        cells = (Cell(value, Tone.DIM if value == "-" else Tone.NEUTRAL) for value in values)
        of_trials = Cell(passed * (len(runs) > 1 or has_trials(runs)))
        lines.append(TableRow((OUTCOMES[max(outcomes)].verdict, Cell(suite), of_trials, *cells)))
    return Table((Column("Verdict"), Column("Suite"), *columns), tuple(lines), leading=1)


def _scores(runs: Iterable[RunResult], metric: Metric) -> list[float]:
    results = (run.evaluations.get(metric) for run in runs)
    return [result.score for result in results if result and result.score is not None]


def closing_outcome(batch: BatchResult, gate: GateResult) -> Outcome:
    """Outcome of everything that ran, and of what stands against it."""
    return max(batch_outcome(batch), Outcome.FAILED if gate.reasons else Outcome.MEASURED)


def incomplete_words(batch: BatchResult) -> str:
    """Words for a batch that is incomplete."""
    if not batch.unpaid or Outcome.INCOMPLETE in map(run_outcome, batch.runs):
        return "not everything could be judged"
    return "the budget ended before all sessions had run" if batch.runs else "the budget left no session"


def closing_line(batch: BatchResult, gate: GateResult) -> Iterator[Cell]:
    """The summary in one line."""
    yield from (cell for cell in _tally(_suite_outcomes(batch), "suite") if cell.tone is not Tone.DIM)
    yield from _not_started(batch, f": {batch.ended}" if batch.ended else "")
    if batch.runs:
        totals = cost(spent((*batch.runs, *batch.base_runs))), duration(wall_seconds(batch))
        yield from (Cell(total) for total in totals if total)
    yield from (Cell(gate_sentence(reason), Tone.BAD, whole=True) for reason in gate.reasons)
    yield Cell(f"exit code {closing_outcome(batch, gate).exit_code}", Tone.DIM)
    if batch.runs:
        yield Cell(f"batch {batch.batch_id}", Tone.DIM, whole=True)


def closing_rows(batch: BatchResult, gate: GateResult) -> Iterator[Row]:
    """What ran of which files, what it took, and what the exit code says."""
    suites, runs = by_name(batch.runs), (*batch.runs, *batch.base_runs)
    yield Row("Suites", (*_tally(_suite_outcomes(batch), "suite"), *_not_started(batch)))
    if len(batch.runs) > len(suites):
        yield Row("Trials", _tally([run_outcome(run) for run in batch.runs], "trial"))
    if batch.runs:
        yield from _tested(batch.runs[0])
        sessions, judges = [use for use in map(used, runs) if use], [run.judge for run in runs if run.judge]
        # All of it, then the parts where there are two.
        parts = {"sessions": cost(sessions), "judge": cost(judges)} if judges else {}
        cells = (Cell(f"{name} {part}", Tone.DIM) for name, part in parts.items())
        if sessions or judges:
            yield Row("Cost", (Cell(cost([*sessions, *judges])), *cells))
        if sessions:
            yield Row("Tokens", (Cell(whole(sum((use.usage for use in sessions), Usage()).total)),))
        yield Row("Elapsed", (Cell(duration(wall_seconds(batch))),))
        yield _versions(batch.runs)
    if batch.unpaid:
        unpaid = (f"{it.suite} ({it.unpaid} trials)" if it.unpaid > 1 else it.suite for it in batch.unpaid)
        yield Row("Not run", (Cell(f"{', '.join(unpaid)}: {batch.ended or BUDGET_ENDED}", Tone.BAD),))
    yield from (Row("Gate", (Cell(gate_sentence(reason), Tone.BAD, whole=True),)) for reason in gate.reasons)
    outcome = closing_outcome(batch, gate)
    own = {Outcome.INCOMPLETE: incomplete_words(batch), Outcome.MEASURED: f"measured: {measured_words(batch.runs)}"}
    words, tone = own.get(outcome) or OUTCOMES[outcome].meaning, OUTCOMES[outcome].tone
    if outcome is Outcome.PASSED and (hiding := sum(bool(hidden_findings(each)) for each in suites.values())):
        words, tone = f"passed, with findings in {hiding} of {format_count(len(suites), 'suite')}", Tone.WARN
    yield Row("Exit code", (Cell(f"{outcome.exit_code}, {words}", tone),))
    if batch.runs:
        yield Row("Batch", (Cell(batch.batch_id, whole=True), Cell("`zelda show` takes this id", Tone.DIM)))


def _suite_outcomes(batch: BatchResult) -> list[Outcome]:
    return [max(map(run_outcome, runs)) for runs in by_name(batch.runs).values()]


def _tally(outcomes: Sequence[Outcome], noun: str) -> tuple[Cell, ...]:
    if not outcomes:
        return (Cell(f"no {noun} was run", Tone.BAD),)
    counted = ((outcomes.count(outcome), words) for outcome, words in OUTCOMES.items())
    cells = [Cell(format_count(count, it.word, it.several or it.word), it.tone) for count, it in counted if count]
    return (*cells, *[Cell(f"{len(outcomes)} in all", Tone.DIM)] * (len(cells) > 1))


def _not_started(batch: BatchResult, why: str = "") -> Iterator[Cell]:
    if (missing := (batch.planned or 0) - len(batch.runs)) > 0:
        yield Cell(f"{format_count(missing, 'run')} not started{why}", Tone.WARN)


def about_run(run: RunResult) -> Section:
    """Of one stored run: which it is, what it tested and what made it."""
    of = " of the base" * (run.side is Side.BASE)
    which = (Cell(run.run_id, whole=True), Cell(f"trial {run.trial}{of}", Tone.DIM))
    began = Cell(f"{run.started_at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC")
    rows = (Row("Run", which), Row("Batch", (Cell(run.batch_id),)), Row("Began", (began,)))
    return Section("About", (*rows, *_tested(run), _versions([run])))


def tested_name(source: TestedSource) -> str:
    """What was tested, by the commit that people know."""
    branch = f" ({source.branch})" if source.branch else ""
    known = source.parent or source.commit
    kind = "the working tree on commit" if source.parent else "commit"
    return f"{kind} {known[:7]}{branch}" if known else "a copy of the folder, outside git"


def _tested(run: RunResult) -> Iterator[Row]:
    if source := run.source:
        dirty = [Cell("uncommitted changes were not tested", Tone.WARN)] * (source.dirty and source.kind == "worktree")
        yield Row("Tested", (Cell(tested_name(source)), *dirty))


def _versions(runs: Sequence[RunResult]) -> Row:
    clis = ", ".join(sorted({run.versions.cli for run in runs if run.versions.cli}))
    names = [f"zelda {runs[0].versions.zelda}", *[f"Claude Code {clis}"] * bool(clis)]
    return Row("Versions", tuple(Cell(name, Tone.DIM) for name in names))
