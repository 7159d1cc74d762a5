"""Nights in words: the trend of each suite, what fell, and the issue that tells of it."""

from collections.abc import Callable, Iterator, Sequence

from zelda_ci.domain.nights import (
    MIN_NIGHTS,
    SETTLING,
    WINDOW,
    Drift,
    Night,
    NightlyHistory,
    Passes,
    SuiteNight,
    nights_of,
    split_nights,
    summed,
)
from zelda_ci.domain.numbers import brief_money, format_count, whole
from zelda_ci.errors import GitHubError
from zelda_ci.report.model import (
    Cell,
    Column,
    Details,
    DriftView,
    HistoryView,
    Link,
    Row,
    Section,
    Table,
    TableRow,
    Tone,
)
from zelda_ci.report.text import sentence, visible

MAX_NAMED = 10
MAX_SUITES = 200
MAX_NOTES = 5
MAX_NAME_LENGTH = 60
MAX_CHECK_LENGTH = 80
SHORT_COMMIT = 9

# Parts of a platform as people call them.
PARTS = {
    "cli": "Claude Code",
    "agentSdk": "Agent SDK",
    "models": "answering models",
    "system": "system",
    "isolationLevel": "isolation level",
}
BARS = "▁▂▃▄▅▆▇█"
TOO_YOUNG = "too few nights"
GAP, CHANGE = "·", "¦"
NO_ISSUE = "The drift is told in no issue"
OVER = "This is over: what fell has recovered, or its suite or steering files were changed or removed."
LOST = "The history of the nights before is lost, so nobody knows whether this is over. A new fall opens a new issue."

NO_TOKEN = f"{NO_ISSUE}: no token was given (github-token)."


def not_readable(damage: str, older: int) -> str:
    """The newest history could not be read; an older artifact may have some nights."""
    what = f"goes on with {format_count(older, 'night')} of an older artifact" if older else "was begun anew"
    return f"The history of the nights before {what}: {damage}"


def no_issue(problem: GitHubError) -> str:
    """The issue could not be written, and what to do about it."""
    if problem.code == "GITHUB_NOT_PERMITTED":
        return f"{NO_ISSUE}: the token may not write issues (permissions: issues: write, or nightly: quiet)."
    if problem.code == "GITHUB_GONE":
        return f"{NO_ISSUE}: issues are switched off in this repository (nightly: quiet leaves them out)."
    return f"{NO_ISSUE}: {problem.message}"


def drift_notes(before: Sequence[Drift], now: Sequence[Drift]) -> Iterator[str]:
    """A sentence for each of the first drifts of this night; those that somebody has accepted are left out."""
    known = {(drift.suite, drift.check) for drift in before}
    told = [drift for drift in now if not drift.accepted]
    for drift in told[:MAX_NOTES]:
        word = "still" if (drift.suite, drift.check) in known else "new"
        yield f"Drift ({word}): {_fall(drift)}."
    if len(told) > MAX_NOTES:
        yield f"Drift: {len(told) - MAX_NOTES} more."


def _fall(drift: Drift) -> str:
    changed = ", ".join(_changes(drift))
    since = f" since {changed}" if changed else f" since {drift.since:%Y-%m-%d}"
    return f"{_subject(drift)} {drift.before} → {drift.lately}{since}"


def _subject(drift: Drift) -> str:
    return f"{visible(drift.suite, MAX_NAME_LENGTH)}, {sentence(drift.check, MAX_CHECK_LENGTH)}"


def _changes(drift: Drift) -> Iterator[str]:
    """What is other than before, named by what it is now."""
    for part, name in PARTS.items():
        old, new = drift.platform_before.get(part), drift.platform_after.get(part)
        if old != new and new:
            yield f"{name} {sentence(new, MAX_CHECK_LENGTH)}"


def issue_title(drifts: Sequence[Drift]) -> str:
    """What fell from what to what; `render_title` makes it harmless."""
    more = f" and {len(drifts) - 1} more" if len(drifts) > 1 else ""
    return f"Zelda: {_fall(drifts[0])}{more}"


UrlOf = Callable[[int], str]


def drift_view(
    drifts: Sequence[Drift], nights: Sequence[Night], run: int, url_of: UrlOf, ending: str = ""
) -> DriftView:
    """The issue's body; `ending` says why it is closed."""
    lead = "Something passes less often than before, although its suite and the files that steer it are unchanged."
    alpha = (
        "Found by an exact test of nights over all suites, which errs in fewer than 5 % of quarters. Close this issue "
        "to hear no more of what it lists."
    )
    return DriftView(
        lead=ending or lead,
        sections=tuple(_section(drift, nights, url_of) for drift in drifts),
        closing="" if ending else alpha,
        links=(Link("workflow run", url_of(run)),),
    )


def kept_elsewhere(url: str) -> DriftView:
    """The body of a second issue about the same."""
    lead = "Two jobs opened an issue at the same time. The older one is kept."
    return DriftView(lead=lead, sections=(), closing="", links=(Link("the older issue", url),))


def _section(drift: Drift, nights: Sequence[Night], url_of: UrlOf) -> Section:
    newest = nights_of(nights, drift)
    runs = tuple(Cell(f"{night.at:%m-%d}", url=url_of(night.run)) for night in newest if night.run)
    counted = f"in the newest {format_count(len(newest), 'night')} of these files" if newest else "trials passed"
    rows = [
        Row("Before", (Cell(str(drift.before)), Cell("trials passed"))),
        Row("When it was found", (Cell(str(drift.after)), Cell(f"p {drift.p:.2g}, corrected"))),
        Row("Lately", (Cell(str(drift.lately)), Cell(counted), *runs)),
        Row("Since", (Cell(f"{drift.since:%Y-%m-%d %H:%M} UTC"),)),
    ]
    parts = {*drift.platform_before, *drift.platform_after}
    for part, name in PARTS.items():
        if part in parts:
            rows.append(Row(name[:1].upper() + name[1:], tuple(_versions(drift, part))))
    rows.append(Row("Code of the project", tuple(_code(drift))))
    return Section(_subject(drift), tuple(rows))


def _versions(drift: Drift, part: str) -> Iterator[Cell]:
    old, new = (sentence(side.get(part, "not known")) for side in (drift.platform_before, drift.platform_after))
    yield Cell(f"{old} → {new}", Tone.BAD) if old != new else Cell(f"{new}, unchanged")


def _code(drift: Drift) -> Iterator[Cell]:
    yield Cell("changed, too" if drift.code_changed else "unchanged")
    if drift.commit_before and drift.commit_after:
        old, new = (visible(each[:SHORT_COMMIT]) for each in (drift.commit_before, drift.commit_after))
        yield Cell(old if old == new else f"{old} → {new}")


TREND_COLUMNS = (
    Column("Suite"),
    Column(f"Last {SETTLING} nights"),
    Column("Before", right=True),
    Column("Lately", right=True),
    Column(""),
)
LEGEND = Section(
    "",
    (
        Row("A bar", (Cell("a night, as high as the share of criteria that were met, build and tests included"),)),
        Row(CHANGE, (Cell("Claude Code, the models, the suite or its steering files changed here"),)),
        Row("Lately", (Cell(f"the newest {WINDOW} nights, or all since Claude Code or the models changed"),)),
        Row(
            TOO_YOUNG, (Cell(f"fewer than {MIN_NIGHTS} of the same suite and steering files: no fall can be seen yet"),)
        ),
        Row("Before", (Cell("the nights before those, of the same suite and steering files"),)),
    ),
)


def trend_details(history: NightlyHistory) -> Iterator[Details]:
    """The trend of each suite of the newest night, what fell first."""
    if not history.nights:
        return
    fallen = {drift.suite for drift in history.drifts if not drift.accepted}
    names = sorted(history.nights[-1].suites, key=lambda name: (name not in fallen, name))
    lines = tuple(_trend(history.nights, name, has_fallen=name in fallen) for name in names[:MAX_SUITES])
    title = f"Trend over {format_count(len(history.nights), 'night')}"
    yield Details(title, (LEGEND,), (Table(TREND_COLUMNS, lines),), open=True)


def _trend(nights: Sequence[Night], suite: str, *, has_fallen: bool) -> TableRow:
    split = split_nights(nights, suite)[0]
    before, lately = (summed(_checks(night.suites[suite]) for night in part) for part in (split.before, split.after))
    return TableRow(
        (
            Cell(visible(suite, MAX_NAME_LENGTH)),
            Cell(sparkline(nights, suite)),
            Cell(str(before) if before.trials else "-"),
            Cell(str(lately) if lately.trials else "-"),
            Cell("fell", Tone.BAD) if has_fallen else Cell("" if _is_tested(nights, suite) else TOO_YOUNG),
        )
    )


def sparkline(nights: Sequence[Night], suite: str) -> str:
    """A bar per night, as high as the share of checks that passed; a bar between two where something changed."""
    drawn = ""
    last: SuiteNight | None = None
    for night in nights[-SETTLING:]:
        row = night.suites.get(suite)
        if row is None:
            drawn += GAP
            continue
        if last and (last.platform, last.outcome) != (row.platform, row.outcome):
            drawn += CHANGE
        passes = _checks(row)
        drawn += BARS[round(passes.rate * (len(BARS) - 1))] if passes.trials else GAP
        last = row
    return drawn


def _checks(row: SuiteNight) -> Passes:
    return summed(row.checks.values())


NOTHING_FELL = "Nothing fell by more than chance explains."
TOO_FEW = (
    f"Whether something fell is not known yet: that takes {MIN_NIGHTS} rows of the same suite, settings and steering "
    "files, or more."
)
NIGHT_COLUMNS = (
    Column("When"),
    Column("Trials", right=True),
    Column("Passed", right=True),
    Column("Checks", right=True),
    Column("Cost", right=True),
    Column("Commit"),
    Column("Changed"),
)


def nights_view(history: NightlyHistory, suite: str, limit: int) -> HistoryView:
    """The newest rows of one suite, newest first, with what changed against the row before."""
    rows = [night for night in history.nights if suite in night.suites]
    lines = [
        TableRow(tuple(_night_cells(night, suite, rows[index - 1] if index else None)))
        for index, night in enumerate(rows)
    ]
    return HistoryView(Table(NIGHT_COLUMNS, tuple(reversed(lines[-limit:]))), tuple(_remarks(history, suite, rows)))


def _night_cells(night: Night, suite: str, earlier: Night | None) -> Iterator[Cell]:
    row = night.suites[suite]
    checks = _checks(row)
    yield Cell(f"{night.at:%Y-%m-%d %H:%M}", whole=True)
    yield Cell(whole(row.trials))
    passed = Tone.NEUTRAL if row.whole.passed == row.whole.trials else Tone.WARN
    yield Cell(str(row.whole), passed) if row.whole.trials else Cell("-")
    yield Cell(str(checks) if checks.trials else "-")
    yield Cell(brief_money(row.cost_usd))
    yield Cell(visible(night.commit[:SHORT_COMMIT]) if night.commit else "-", Tone.DIM)
    yield Cell(", ".join(_differences(row, earlier.suites[suite])) if earlier else "", Tone.DIM)


def _differences(row: SuiteNight, earlier: SuiteNight) -> Iterator[str]:
    if row.outcome != earlier.outcome:
        yield "suite or steering files"
    if row.tree != earlier.tree:
        yield "code"
    for part, name in PARTS.items():
        if row.platform.get(part) != earlier.platform.get(part):
            yield f"{name} {sentence(row.platform.get(part, 'not known'), MAX_CHECK_LENGTH)}"


def _remarks(history: NightlyHistory, suite: str, rows: Sequence[Night]) -> Iterator[Cell]:
    yield Cell(f"{visible(suite, MAX_NAME_LENGTH)}: {sparkline(rows, suite)}", whole=True)
    for drift in history.drifts:
        if drift.suite == suite:
            yield Cell(f"Fell: {_fall(drift)} (p {drift.p:.2g}, corrected).", Tone.BAD)
    if not any(drift.suite == suite for drift in history.drifts):
        yield Cell(NOTHING_FELL if _is_tested(rows, suite) else TOO_FEW, Tone.DIM)


def _is_tested(rows: Sequence[Night], suite: str) -> bool:
    """Whether the newest row could be compared with anything."""
    return any(len(split.before) + len(split.after) >= MIN_NIGHTS for split in split_nights(rows, suite))
