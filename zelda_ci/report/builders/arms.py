"""Two arms in words: what an invocation may cost, why a suite goes on, and the table at the end."""

from collections.abc import Iterator

from zelda_ci.domain.arms import Forecast, MoreTrials, SuiteArms, SuiteForecast
from zelda_ci.domain.comparison import BUDGET_ENDED, Comparison, SuiteComparison, Verdict
from zelda_ci.domain.numbers import brief_money, format_count
from zelda_ci.domain.run import BatchResult
from zelda_ci.domain.trials import DoneReason
from zelda_ci.report.builders.comparison import verdict, verdict_words
from zelda_ci.report.model import Cell, Column, Table, TableRow, Tone
from zelda_ci.report.text import sentence, visible

MAX_NAMED = 3
COLUMNS = (Column("Suite"), Column("Verdict"), Column("Yours", right=True), Column("Base", right=True), Column("Why"))

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
    unpriced = tuple(suite.suite for suite in forecast.suites if suite.price is None)
    if most and trials and unpriced:
        yield f"Without a stored trial, so not in these sums: {_named(unpriced)}"
    limits = sorted({each.limit_usd for each in forecast.suites if each.most and each.limit_usd is not None})
    if limits and not forecast.replayed:
        spread = " to ".join(dict.fromkeys(map(brief_money, (limits[0], limits[-1]))))
        yield f"Limit: a session is ended at {spread} (maxCostUsd), its judge not included"
    if forecast.budget_usd is not None:
        yield f"Budget: {brief_money(forecast.budget_usd)}, judges included; nothing is begun that does not fit"


def _named(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return ", ".join(map(visible, names[:MAX_NAMED])) + more


def forecast_table(forecast: Forecast) -> Table:
    """Suite by suite."""
    columns = [Column("Suite"), Column("Sessions", right=True)]
    if not forecast.replayed:
        columns += [Column(name, right=True) for name in ("Each", "All", "Stored trials")]
    rows = (TableRow(tuple(_forecast_cells(suite))[: len(columns)]) for suite in forecast.suites)
    return Table(tuple(columns), tuple(rows))


def _forecast_cells(suite: SuiteForecast) -> Iterator[Cell]:
    price = suite.price
    yield Cell(visible(suite.suite))
    yield Cell(str(suite.most) if suite.fewest == suite.most else f"{suite.fewest} to {suite.most}")
    yield Cell(brief_money(price.usual)) if price else Cell("not known", Tone.WARN)
    yield Cell(f"about {brief_money(suite.most * price.usual)}") if price else Cell("not known", Tone.WARN)
    yield Cell(str(price.trials) if price else "0", Tone.DIM)


def more_trials(event: MoreTrials) -> str:
    """Why a suite goes on, and with what."""
    causes = [f"{sentence(name, 80)!r} failed in {missed} of {of}" for name, missed, of in event.missed[:MAX_NAMED]]
    why = "; ".join(causes) or f"not decided after {format_count(event.made, 'trial')}"
    sides = [
        f"{count} {side}" for side, count in (("with your change", event.head), ("of the base", event.base)) if count
    ]
    return f"{why}: {' and '.join(sides)} more, side by side (round {event.look} of at most {event.looks})"


def suite_done(event: SuiteArms) -> str:
    """Why a suite has enough."""
    return f"{_trials(event.head, event.base)}: {REASONS[event.reason]}"


def _trials(head: int, base: int) -> str:
    return f"{head} + {base} trials" if base else format_count(head, "trial")


def headline(batch: BatchResult, comparison: Comparison) -> Cell:
    """The verdict in plain words, and what it rests on."""
    regressed = [suite.suite for suite in comparison.suites if suite.verdict is Verdict.REGRESSED]
    changed = [suite.suite for suite in comparison.suites if suite.verdict is Verdict.CHANGED]
    unsure = [suite.suite for suite in comparison.suites if suite.verdict is Verdict.INCONCLUSIVE]
    total = format_count(len(comparison.suites), "suite")
    if regressed:
        words, tone = f"worse in {len(regressed)} of {total}", Tone.BAD
    elif changed:
        words, tone = f"{verdict_words(Verdict.CHANGED)} in {len(changed)} of {total}", Tone.WARN
    elif unsure:
        words, tone = f"not enough evidence in {len(unsure)} of {total}", Tone.WARN
    else:
        words, tone = f"nothing got worse in {total}", Tone.GOOD
    sessions = len(batch.runs) + len(batch.base_runs)
    base = f", side by side with {batch.base.commit[:12]}" if batch.base and batch.base.commit else ""
    return Cell(f"{words}{base} · {format_count(sessions, 'session')} · {spent(batch)}", tone)


def spent(batch: BatchResult) -> str:
    """`$6.10 of $8.00`: of sessions and judges of both sides."""
    runs = (*batch.runs, *batch.base_runs)
    if runs and all(run.replayed for run in runs):
        return "replayed, nothing was spent"
    of = f" of {brief_money(batch.budget_usd)}" if batch.budget_usd else ""
    return f"{brief_money(batch.cost_usd)}{of}"


def cut_short(batch: BatchResult) -> Cell:
    """In place of a verdict, where the user ended it."""
    ran = format_count(len(batch.runs) + len(batch.base_runs), "session")
    return Cell(
        f"stopped after {ran}: not compared; run the same command again, it keeps the finished sessions", Tone.WARN
    )


def arms_table(batch: BatchResult, comparison: Comparison | None = None) -> Table:
    """A row per suite; those that are worse first. Without a comparison, how far each came."""
    found = {suite.suite: suite for suite in comparison.suites} if comparison else {}
    verdicts = {name: suite.verdict for name, suite in found.items()}
    order = [Verdict.REGRESSED, Verdict.CHANGED, Verdict.INCONCLUSIVE]
    rank = {value: place for place, value in enumerate(order)}
    arms = sorted(batch.arms, key=lambda each: rank.get(verdicts.get(each.suite, Verdict.INCONCLUSIVE), len(rank)))
    return Table(COLUMNS, tuple(_row(each, found.get(each.suite)) for each in arms))


def _row(arms: SuiteArms, found: SuiteComparison | None) -> TableRow:
    """All trials that the verdict rests on, also those of earlier invocations."""
    why = REASONS[arms.reason]
    sources = found.sources if found else None
    head, base = (sources.head, sources.base) if sources else (arms.head, arms.base)
    if sources and sources.stored:
        why += f"; {format_count(sources.stored, 'stored trial')} of the base"
    if arms.unpaid:
        why += f": {format_count(arms.unpaid, 'trial')} not run"
    cells = (
        Cell(visible(arms.suite)),
        verdict(found.verdict) if found else Cell("not compared" if head or base else "not run", Tone.WARN),
        Cell(str(head)),
        Cell(str(base) if base else "", Tone.DIM),
        Cell(why, Tone.DIM),
    )
    return TableRow(cells)
