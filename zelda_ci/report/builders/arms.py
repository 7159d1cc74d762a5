"""What an invocation may cost, why a suite goes on, and why it has enough trials."""

from collections.abc import Iterator

from zelda_ci.domain.comparison import BUDGET_ENDED
from zelda_ci.domain.numbers import brief_money, format_count, some_of
from zelda_ci.domain.run import BatchResult
from zelda_ci.domain.trials import DoneReason, Forecast, MoreTrials, SuiteArms
from zelda_ci.report.model import Cell, Column, Table, TableRow, Tone
from zelda_ci.report.text import sentence, visible

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
    """Suite by suite."""
    titles = ("Sessions", "Each", "All", "Stored trials")[: 1 if forecast.replayed else None]
    rows = []
    for suite in forecast.suites:
        price = suite.price
        cells = (
            Cell(visible(suite.suite)),
            Cell(str(suite.most) if suite.fewest == suite.most else f"{suite.fewest} to {suite.most}"),
            Cell(brief_money(price.usual)) if price else Cell("not known", Tone.WARN),
            Cell(f"about {brief_money(suite.most * price.usual)}") if price else Cell("not known", Tone.WARN),
            Cell(str(price.trials) if price else "0", Tone.DIM),
        )
        rows.append(TableRow(cells[: len(titles) + 1]))
    return Table((Column("Suite"), *(Column(title, right=True) for title in titles)), tuple(rows))


def more_trials(event: MoreTrials) -> str:
    """Why a suite goes on, and with what."""
    causes = [f"{sentence(name, 80)!r} failed in {missed} of {of}" for name, missed, of in event.missed[:MAX_NAMED]]
    why = "; ".join(causes) or f"not decided after {format_count(event.made, 'trial')}"
    sides = [f"{count} of the {side}" for side, count in (("head", event.head), ("base", event.base)) if count]
    return f"{why}: {' and '.join(sides)} more, side by side (round {event.look} of at most {event.looks})"


def suite_done(event: SuiteArms) -> str:
    """Why a suite has enough."""
    trials = f"{event.head} + {event.base} trials" if event.base else format_count(event.head, "trial")
    return f"{trials}: {REASONS[event.reason]}"


def spent(batch: BatchResult) -> str:
    """`$6.10 of $8.00`: of sessions and judges of both sides."""
    runs = (*batch.runs, *batch.base_runs)
    if runs and all(run.replayed for run in runs):
        return "replayed, nothing was spent"
    of = f" of {brief_money(batch.budget_usd)}" if batch.budget_usd else ""
    return f"{brief_money(batch.cost_usd)}{of}"


def cut_short(batch: BatchResult) -> str:
    """In place of a verdict, where the user ended it."""
    ran = format_count(len(batch.runs) + len(batch.base_runs), "session")
    return f"stopped after {ran}: not compared; run the same command again, it keeps the finished sessions"
