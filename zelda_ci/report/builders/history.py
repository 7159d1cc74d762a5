"""What is stored, in words: runs as a table, the nights of a suite, and what fell."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from zelda_ci.domain.measures import LISTED, SCORES
from zelda_ci.domain.nights import MIN_NIGHTS, SETTLING, Drift, Night, NightlyHistory, Passes, nights_of, split_nights
from zelda_ci.domain.numbers import brief_money, format_count, format_score, money, whole
from zelda_ci.domain.outcome import History, StoredRun
from zelda_ci.domain.trials import Side
from zelda_ci.errors import GitHubError
from zelda_ci.report.builders.comparison import amount
from zelda_ci.report.model import ENDINGS, OUTCOMES, Cell, Column, Table, TableRow, Tone
from zelda_ci.report.text import plain_title, sentence, visible

MAX_SKIPPED = 10
MAX_NOTES = 5


def history_table(history: History, *, of: int) -> Table:
    """Runs that were chosen among `of` stored ones."""
    titles = (*(spec.listed for spec in SCORES.values() if spec.listed), "Cost", "Turns", *LISTED.values())
    columns = (
        *map(Column, ("Verdict", "Run", "Suite")),
        *(Column(title, right=True) for title in ("Trial", "Batch", "Commit")),
        Column("Session"),
        *(Column(title, right=True) for title in titles),
    )
    lines = tuple(TableRow(tuple(_cells(run))) for run in history.runs)
    # The first two stand together on a line of their own where a row is too wide.
    return Table(columns, lines, leading=1, remarks=tuple(_remarks(history, of)))


def _cells(run: StoredRun) -> Iterator[Cell]:
    yield OUTCOMES[run.outcome].verdict
    yield Cell(run.run_id, whole=True)
    yield Cell(visible(f"{run.suite}, {run.variant}" if run.variant else run.suite))
    yield Cell(f"base {run.trial}" if run.side is Side.BASE else whole(run.trial))
    yield Cell(run.batch_id, Tone.DIM, whole=True)
    yield Cell(run.commit[:7]) if run.commit else Cell("-", Tone.DIM)
    yield Cell(ENDINGS[run.status], Tone.DIM)
    scores = (run.scores.get(metric) for metric, spec in SCORES.items() if spec.listed)
    values = ((measure, (run.numbers or {}).get(measure)) for measure in LISTED)
    for text in (
        *(None if score is None else format_score(score) for score in scores),
        None if run.whole_cost_usd is None else money(run.whole_cost_usd, exact=run.cost_known),
        None if run.turns is None else whole(run.turns),
        *(None if value is None else amount(measure, value) for measure, value in values),
    ):
        yield Cell(text) if text else Cell("-", Tone.DIM)


def _remarks(history: History, of: int) -> Iterator[Cell]:
    stored = format_count(of, "stored run")
    if not of:
        yield Cell("There are no stored runs yet. Make one with `zelda run`, or watch `zelda demo`.")
    elif not history.runs:
        yield Cell(f"No stored run is of this suite and time. `zelda list` shows all {whole(of)}.")
    elif len(history.runs) < of:
        yield Cell(f"{whole(len(history.runs))} of {stored}.", Tone.DIM)
    if history.unfinished:
        more = format_count(history.unfinished, "more run has", "more runs have")
        yield Cell(f"{more} no result yet: under way, or killed and recovered by the next `zelda run`.", Tone.DIM)
    for skipped in history.skipped[:MAX_SKIPPED]:
        yield Cell(f"skipped: {sentence(skipped.message)}", Tone.WARN)
    if (rest := len(history.skipped) - MAX_SKIPPED) > 0:
        yield Cell(f"and {rest} more that could not be read; `zelda list --json` names all.", Tone.WARN)


# --- nights ------------------------------------------------------------------------------------------------------

# Parts of a platform as people call them.
PARTS = {
    "cli": "Claude Code",
    "agentSdk": "Agent SDK",
    "models": "answering models",
    "system": "system",
    "isolationLevel": "isolation level",
}
BARS = "▁▂▃▄▅▆▇█"
GAP, CHANGE = "·", "¦"
OVER = "This is over: what fell has recovered, or its suite or steering files were changed or removed."
LOST = "The history of the nights before is lost, so nobody knows whether this is over. A new fall opens a new issue."
KEPT_ELSEWHERE = "Two jobs opened an issue at the same time. The older one is kept."


def not_readable(damage: str, older: int) -> str:
    """The newest history could not be read; an older artifact may have some nights."""
    what = f"goes on with {format_count(older, 'night')} of an older artifact" if older else "was begun anew"
    return f"The history of the nights before {what}: {damage}"


def no_issue(problem: GitHubError) -> str:
    """The issue could not be written, and what to do about it."""
    why = {
        "GITHUB_NOT_PERMITTED": "the token may not write issues (permissions: issues: write, or nightly: quiet).",
        "GITHUB_GONE": "issues are switched off in this repository (nightly: quiet leaves them out).",
    }
    return f"The drift is told in no issue: {why.get(problem.code, problem.message)}"


def drift_notes(before: Sequence[Drift], now: Sequence[Drift]) -> Iterator[str]:
    """A sentence for each of the first drifts of this night; those that somebody has accepted are left out."""
    known = {(drift.suite, drift.check) for drift in before}
    told = [drift for drift in now if not drift.accepted]
    for drift in told[:MAX_NOTES]:
        yield f"Drift ({'still' if (drift.suite, drift.check) in known else 'new'}): {_fall(drift)}."
    if len(told) > MAX_NOTES:
        yield f"Drift: {len(told) - MAX_NOTES} more."


def issue_title(drifts: Sequence[Drift]) -> str:
    more = f" and {len(drifts) - 1} more" if len(drifts) > 1 else ""
    return plain_title(f"Zelda: {_fall(drifts[0])}{more}", 200)  # GitHub takes 256


def drift_issue(drifts: Sequence[Drift], nights: Sequence[Night], **told: Any) -> dict[str, Any]:
    """What the template of the issue reads.

    `place` is what `url` leads to, `ending` says why the issue is closed, `url_of` gives the address of a night's run.
    """
    known = {"parts": PARTS, "nights_of": nights_of, "subject": _subject, "ending": "", "place": "workflow run"}
    return {"drifts": drifts, "nights": nights, **known, **told}


def _subject(drift: Drift) -> str:
    return f"{visible(drift.suite, 60)}, {sentence(drift.check, 80)}"


def _fall(drift: Drift) -> str:
    """With what is other than before, named by what it is now."""
    changed = ", ".join(_platform_changes(drift.platform_before, drift.platform_after))
    return f"{_subject(drift)} {drift.before} → {drift.lately} since {changed or f'{drift.since:%Y-%m-%d}'}"


def _platform_changes(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    for part, name in PARTS.items():
        if after.get(part, "") != before.get(part, ""):
            yield f"{name} {sentence(after.get(part, 'not known'), 80)}"


def sparkline(nights: Sequence[Night], suite: str) -> str:
    """A bar per night, as high as the share of checks that passed; a bar between two where something changed."""
    drawn, rows = "", [night.suites.get(suite) for night in nights[-SETTLING:]]
    for place, row in enumerate(rows):
        last = next(filter(None, reversed(rows[:place])), None)
        if row and last and (last.platform, last.outcome) != (row.platform, row.outcome):
            drawn += CHANGE
        passes = sum(row.checks.values(), Passes()) if row else Passes()
        drawn += BARS[round(passes.rate * (len(BARS) - 1))] if passes.trials else GAP
    return drawn


def nights_view(history: NightlyHistory, suite: str, limit: int) -> Table:
    """The newest rows of one suite, newest first, with what changed against the row before."""
    nights = [night for night in history.nights if suite in night.suites]
    lines: list[TableRow] = []
    for night, before in zip(nights, [None, *nights], strict=False):
        row, earlier = night.suites[suite], before and before.suites[suite]
        checks = sum(row.checks.values(), Passes())
        changed = []
        if earlier:
            changed += ["suite, judge or steering files"] * (row.outcome != earlier.outcome)
            changed += ["code"] * (row.tree != earlier.tree)
            changed += _platform_changes(earlier.platform, row.platform)
        passed = Tone.NEUTRAL if row.whole.passed == row.whole.trials else Tone.WARN
        cells = (
            Cell(f"{night.at:%Y-%m-%d %H:%M}", whole=True),
            Cell(whole(row.trials)),
            Cell(str(row.whole), passed) if row.whole.trials else Cell("-"),
            Cell(str(checks) if checks.trials else "-"),
            Cell(brief_money(row.cost_usd)),
            Cell(visible(night.commit[:7]) if night.commit else "-", Tone.DIM),
            Cell(", ".join(changed), Tone.DIM),
        )
        lines.append(TableRow(cells))
    remarks = [Cell(f"{visible(suite, 60)}: {sparkline(nights, suite)}", whole=True)]
    fallen = [drift for drift in history.drifts if drift.suite == suite]
    remarks += (Cell(f"Fell: {_fall(drift)} (p {drift.p:.2g}, corrected).", Tone.BAD) for drift in fallen)
    if not fallen:
        words = f"takes {MIN_NIGHTS} rows of the same suite, settings and steering files, or more."
        words = f"Whether something fell is not known yet: that {words}"
        if any(len(it.before) + len(it.after) >= MIN_NIGHTS for it in split_nights(nights, suite)):
            words = "Nothing fell by more than chance explains."
        remarks.append(Cell(words, Tone.DIM))
    counted = (Column(title, right=True) for title in ("Trials", "Passed", "Checks", "Cost"))
    columns = (Column("When"), *counted, Column("Commit"), Column("Changed"))
    return Table(columns, tuple(lines[::-1][:limit]), remarks=tuple(remarks))
