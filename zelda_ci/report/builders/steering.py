"""Files that steer, in words: their size and their use, what their parts are worth, and which change did harm."""

from collections.abc import Iterable, Iterator, Sequence

from zelda_ci.domain.attribution import (
    MAX_SESSIONS,
    Attribution,
    CriterionWorth,
    PassCount,
    Suspicion,
    WorthReport,
    unit_words,
)
from zelda_ci.domain.check import ContextItem, ContextListing, ContextReport
from zelda_ci.domain.comparison import ContextTooLarge
from zelda_ci.domain.kinds import FOLLOWED, KINDS
from zelda_ci.domain.manifest import SteeringCoverage, SuiteUse
from zelda_ci.domain.measures import MEASURES, Measure
from zelda_ci.domain.numbers import brief_money, format_count, whole
from zelda_ci.domain.run import RunResult
from zelda_ci.model_proxy.pricing import cost_usd, is_known
from zelda_ci.report.builders.comparison import gate_sentence
from zelda_ci.report.builders.phrases import join, line, listed, quoted
from zelda_ci.report.model import Cell, Column, Line, Row, Section, Table, TableRow, Tone, plain
from zelda_ci.report.text import sentence, visible

# --- what it takes of the context --------------------------------------------------------------------------------

MAX_NAMED = 3
MAX_NAME_LENGTH = 60
# Those of a session of usual length, which reads again from the cache what its first request wrote there.
TURNS = 20
SESSIONS = 1000
ABSENT = ContextItem.model_validate({"kind": "claudeMd", "name": ""})
_Pair = tuple[ContextItem, ContextItem]


def context_report(report: ContextReport, *, limit: int | None = None) -> Section:
    """The listing, or what has changed of it, under the size of what is always there; `limit` is how large that may be.

    Sizes and limit are in tokens.
    """
    head, base, pairs = report.head, report.base, _pairs(report)
    lines, same = [], []
    for old, new in pairs:
        if base and (old.always, old.on_demand, old.cut) == (new.always, new.on_demand, new.cut):
            same.append(new)
            continue
        item = new if new.name else old
        state = " (new)" * bool(base and not old.name) or " (gone)" * (not new.name)
        kind = Cell(f"{KINDS[item.kind].word}{state}", Tone.DIM)
        both = [(it.always, it.on_demand) for it in ((old, new) if base else (new,))]
        sizes = (Cell(_sides(map(whole, size))) for size in zip(*both, strict=True))
        lines.append(TableRow((Cell(visible(_called(item), MAX_NAME_LENGTH)), kind, *sizes)))
    remarks = [Cell(f"Sizes are in tokens{', estimated' * head.is_estimated}.", Tone.DIM)] if lines else []
    if same:
        size = whole(sum(item.always for item in same))
        remarks.append(Cell(f"{format_count(len(same), 'unit')} as before: {size} tokens always.", Tone.DIM))
    found = too_large(head, limit)
    rows = [Row("Too large", (Cell(gate_sentence(found), Tone.BAD),))] if found else []
    columns = (Column("Name"), Column("Kind"), Column("Always", right=True), Column("On demand", right=True))
    table = Table(columns, tuple(lines), remarks=tuple(remarks))
    return Section(plain(size_line(report)), (*rows, *_context_rows(report, pairs)), table)


def size_line(report: ContextReport) -> Line:
    """`Always in context: 11,240 → 13,905 tokens (+2,665, +24%)`."""
    head, base = report.head, report.base
    change = head.always - base.always if base else 0
    notes = ["as before"] if base and not change else [_signed(change)] if change else []
    if base and change and base.always:
        notes.append(f"{_signed(100 * change / base.always, '+.0f')}%")
    notes += ["estimated"] * (head.is_estimated or (base is not None and base.is_estimated))
    sizes = _sides(whole(listing.always) for listing in (base, head) if listing)
    words = f"Always in context: {sizes} tokens"
    return line(f"{words} ({', '.join(notes)})" if notes else words)


def moved_line(report: ContextReport) -> Line:
    """The units that moved it most: `CLAUDE.md +1,900, skill deploy +310`; empty where nothing did."""
    moved = [pair for pair in _pairs(report) if report.base and pair[1].always != pair[0].always]
    named = [line(f"{{}} {_signed(new.always - old.always)}", _named(new if new.name else old)) for old, new in moved]
    return listed(named, MAX_NAMED, "unit") if named else ()


def too_large(head: ContextListing, limit: int | None) -> ContextTooLarge | None:
    """The finding of the gate, where more is always there than it allows."""
    if limit is None or head.always <= limit:
        return None
    return ContextTooLarge(tokens=head.always, maximum=limit, is_estimated=head.is_estimated)


def context_line(report: ContextReport) -> Line:
    """The size, and what moved it: one paragraph of a comment."""
    moved = moved_line(report)
    return line("{}: {}.", size_line(report), moved) if moved else line("{}.", size_line(report))


def first_requests(size: ContextReport, runs: Iterable[RunResult], base: Iterable[RunResult]) -> Iterator[Row]:
    """How large the first requests of sessions were: the smallest of each side, by the API's own count."""
    sides = [[run.api.first_tokens for run in side if run.api.first_tokens] for side in (base, runs)]
    if sides[1]:
        shown = _sides(whole(min(side)) for side in sides if side)
        words = f"as the API counted them, with the prompt; listed {'and estimated ' * size.head.is_estimated}are "
        words += whole(size.head.own + size.head.always)
        yield Row("First requests", (Cell(f"{shown} tokens"), Cell(words, Tone.DIM)))


def _context_rows(report: ContextReport, pairs: Sequence[_Pair]) -> Iterator[Row]:
    """What is cut and what does not work, then the share of the window, and the price of what is always there."""
    head, base = report.head, report.base
    if cut := [new for old, new in pairs if new.cut and (base is None or new.cut != old.cut)]:
        lost = (f"{plain(_named(it))} loses {format_count(it.cut, 'character')} of its description" for it in cut)
        yield Row("Cut from the listing", (), tuple(Cell(words, Tone.WARN) for words in lost))
    known = {(it.file, it.problem) for it in base.findings} if base else set()
    new = [it for it in head.findings if (it.file, it.problem) not in known]
    if head.findings:
        old = len(head.findings) - len(new)
        others = (Cell(f"{whole(old)} that the base has, too", Tone.DIM),) if old else ()
        found = (f"{visible(it.file, 120)}:{it.line}: {sentence(it.problem)}. {sentence(it.fix)}" for it in new)
        yield Row("Does not work as written", others, tuple(Cell(words, Tone.WARN) for words in found))
    listings = [listing for listing in (base, head) if listing]
    window = f"{_sides(f'{100 * it.always / it.window:.1f}%' for it in listings)} of {whole(head.window)} tokens"
    own = f"Claude Code's own part takes {_sides(whole(it.own) for it in listings)} more"
    yield Row("Share of the window", (Cell(window), Cell(own, Tone.DIM)))
    costs = []
    for listing in listings:
        written, read = ({f"cache_{way}_input_tokens": listing.always} for way in ("creation", "read"))
        costs.append(SESSIONS * (cost_usd(head.model, written) + (TURNS - 1) * cost_usd(head.model, read)))
    guess = "" if is_known(head.model) else ", whose price is guessed"
    assumed = f"{TURNS} turns each, by list prices of {visible(head.model, MAX_NAME_LENGTH)}{guess}, without sub-agents"
    once = "written to the cache once and read from it at every other turn"
    words = f"{'estimated, ' * head.is_estimated}{assumed}; {once}"
    yield Row(f"{SESSIONS:,} sessions", (Cell(_sides(f"${usd:,.2f}" for usd in costs)), Cell(words, Tone.DIM)))


def _pairs(report: ContextReport) -> list[_Pair]:
    """Each unit as it was and as it is: what changed most first, then what is largest."""
    before = {item.key: item for item in report.base.items} if report.base else {}
    now = {item.key: item for item in report.head.items}

    def weight(pair: _Pair) -> tuple[int, int, int, str]:
        old, new = pair
        change = (abs(new.always - old.always), abs(new.on_demand - old.on_demand)) if report.base else (0, 0)
        return -change[0], -change[1], -max(old.always, new.always), new.name or old.name

    return sorted(((before.get(key, ABSENT), now.get(key, ABSENT)) for key in {**now, **before}), key=weight)


def _sides(shown: Iterable[str]) -> str:
    """What it was and what it is; once where that is the same."""
    return " \u2192 ".join(dict.fromkeys(shown))


def _called(item: ContextItem) -> str:
    """Skills and the like by name, the rest by file."""
    return item.file or item.name if item.kind in FOLLOWED else item.name


def _named(item: ContextItem) -> Line:
    word = "" if item.kind in FOLLOWED else f"{KINDS[item.kind].word} "
    return line(f"{word}{{}}", Cell(visible(_called(item), MAX_NAME_LENGTH), whole=True))


def _signed(change: float, form: str = "+,") -> str:
    return f"{change:{form}}".replace("-", "\u2212")


# --- which suite uses what ---------------------------------------------------------------------------------------

# Beyond these, the suites that felt a unit stand in its row, and have no columns.
MAX_COLUMNS = 8
MAX_FELT = 6
MEANING = (
    "loaded: the session had it (of skills and sub-agents the description, of rules and CLAUDE.md files the text). "
    "used: it was called, its file was read, or the judge says that it applied. missed, broken: the judge says so. "
    "Numbers are trials."
)


def coverage_table(coverage: SteeringCoverage) -> Table:
    """A row for each file that steers, a column for each suite; what no suite touches comes first."""
    trials = {it.suite: it.trials for it in coverage.suites}
    wide = len(trials) <= MAX_COLUMNS
    titles = [f"{visible(name, 40)} ({count})" for name, count in trials.items()] if wide else ["Suites"]
    rows = []
    for row in coverage.units:
        by_suite = {part.suite: part for part in row.suites}
        cells = [_use(by_suite.get(suite)) for suite in trials]
        if not wide:
            parts = (part for part in row.suites if part.used or part.missed or part.broken)
            felt = [f"{visible(part.suite, 40)} {_use(part).text}" for part in parts]
            felt[MAX_FELT:] = [f"{len(felt) - MAX_FELT} more"] * (len(felt) > MAX_FELT)
            cells = [Cell("; ".join(felt) or (f"loaded by {len(row.suites)}" if row.suites else "-"))]
        # Skills and the like by name, the rest by file.
        name = visible(row.unit.path if row.unit.kind in FOLLOWED else row.unit.name, 60)
        kind = Cell(KINDS[row.unit.kind].word, Tone.DIM)
        rows.append(TableRow((Cell(name, Tone.NEUTRAL if row.touched else Tone.WARN), kind, *cells)))
    columns = (Column("Name"), Column("Kind"), *(Column(title, right=wide) for title in titles))
    remarks = []
    if untouched := sum(not row.touched for row in coverage.units):
        remarks.append(Cell(f"No suite touches {format_count(untouched, 'unit')}: the first of the table.", Tone.WARN))
    if idle := [it.suite for it in coverage.suites if not it.touches]:
        remarks.append(Cell(f"Suites that use nothing of it: {visible(', '.join(idle), 400)}.", Tone.WARN))
    if unknown := visible(", ".join(coverage.unknown), 400):
        remarks.append(Cell(f"No stored session of {unknown} says what it used: run it once more.", Tone.WARN))
    if coverage.units:
        remarks.append(Cell(MEANING, Tone.DIM))
    elif not unknown:
        remarks.append(Cell("No stored trial: `zelda run` makes some."))
    return Table(columns, tuple(rows), remarks=tuple(remarks))


def _use(part: SuiteUse | None) -> Cell:
    if part is None:
        return Cell("-", Tone.DIM)
    tone = Tone.BAD if part.broken else Tone.WARN if part.missed else Tone.GOOD if part.used else Tone.DIM
    counts = (("used", part.used), ("missed", part.missed), ("broken", part.broken))
    return Cell(", ".join(f"{word} {count}" for word, count in counts if count) or "loaded", tone)


# --- which part of a change made a suite worse, and what parts are worth -----------------------------------------


def attribution_line(found: Attribution) -> Line:
    """The answer, as comment and terminal give it."""
    sessions = sum(each.sessions for each in found.rounds)
    ran = format_count(sessions, "session")
    first, second = (*found.suspicions[:2], None, None)[:2]
    match found.verdict:
        case "only":
            return line("Only {} changed of what this suite can feel: no session was needed to tell.", _unit(found, 0))
        case "named" if first:
            return line("Most likely {} ({}, {}). {}", _of(found, first), _share(first), ran, _confirmed(found))
        case "between" if first and second:
            shares = f"{100 * first.probability:.0f} / {_share(second)}"
            return line("Between these two: {} and {} ({}, {}).", _of(found, first), _of(found, second), shares, ran)
        case "length" if first:
            words = "Most likely the length of what was added, and no part of it by itself"
            return line(f"{words} ({{}}, {{}}).", _share(first), ran)
        case "none":
            units = listed([_unit(found, index) for index in range(len(found.units))])
            return line("None of these: {}. It was chance, or something else ({}).", units, ran)
        case _ if sessions:
            more = f"More money may tell, up to {MAX_SESSIONS} sessions in all"
            more = more if sessions < MAX_SESSIONS else "More sessions would hardly tell"
            return line(f"Not decided after {{}}: {{}}. {more}.", ran, join(_likely(found), ", "))
        case _:
            return line("Not decided: no session could be paid and counted.")


def round_words(found: Attribution) -> str:
    ran = format_count(sum(each.sessions for each in found.rounds), "session")
    return f"{ran}: {', '.join(map(plain, _likely(found)))}"


def subject_words(found: Attribution) -> str:
    """What got worse: a criterion or a measure."""
    if str(found.subject) in MEASURES:
        return MEASURES[Measure(found.subject)].label
    return quoted(found.subject, 100)


def attribution_details(found: Attribution) -> Iterator[str]:
    """What the answer rests on, round by round."""
    for each in found.rounds:
        names = " and ".join(unit_words(found.units[index]) for index in each.reverted)
        yield f"{f'With {names} as before' if names else 'With all of the change'}: {each.passed} of {each.sessions}"
    if found.cost_usd:
        yield f"The search cost {brief_money(found.cost_usd)}."


def attribution_section(found: Attribution) -> Section:
    """The answer with what it rests on."""
    answer, rests_on = Cell(plain(attribution_line(found))), tuple(map(Cell, attribution_details(found)))
    title = sentence(f"Which part of the change: {found.suite}, {subject_words(found)}")
    return Section(title, (Row("Answer", (answer,), rests_on),))


def _likely(found: Attribution) -> Iterator[Line]:
    # Below 2 %, a suspicion is not worth a word.
    for suspicion in [it for it in found.suspicions if it.probability >= 0.02][:3]:
        yield line("{} ({})", _of(found, suspicion), _share(suspicion))


def _of(found: Attribution, suspicion: Suspicion) -> Cell:
    if suspicion.unit is not None:
        return _unit(found, suspicion.unit)
    return Cell("the length" if suspicion.hypothesis == "length" else "none of them")


def _unit(found: Attribution, index: int) -> Cell:
    return Cell(visible(unit_words(found.units[index]), 120), whole=found.units[index].kind != "code")


def _share(suspicion: Suspicion) -> str:
    # What is not certain is not called so.
    return f"{min(99, round(100 * suspicion.probability))}%"


def _confirmed(found: Attribution) -> str:
    again = found.confirmation
    if again is None:
        return ""
    start, end = found.units[again.reverted[0]].lines or (0, 0)
    back = "these lines as they were" if start != end else "it as it was"
    like = " like the base" if str(found.subject) in MEASURES else ""
    return f"With {back}: {again.passed} of {again.sessions}{like}."


def worth_table(report: WorthReport) -> Table:
    """A row for each part and suite, with the criterion that fell most without it."""
    columns = (*map(Column, ("Without", "Suite", "Criterion")), Column("Inert text", right=True), Column("Result"))
    rows = []
    for row in report.rows:
        cells = (visible(row.part), visible(row.suite), sentence(row.criterion, 50), _passed(row.inert) or "-")
        result = Cell(_worth(row), Tone.BAD if row.verdict == "worse" else Tone.NEUTRAL)
        rows.append(TableRow((*map(Cell, cells), result)))
    remarks = [Cell(f"The sessions cost {brief_money(report.cost_usd)}.", Tone.DIM)] if report.cost_usd else []
    if untold := visible(", ".join(report.untold), 400):
        why = "no criterion was judged in sessions with and without it. `zelda list` shows how they ended"
        remarks.append(Cell(f"Nothing is known of {untold}: {why}.", Tone.WARN))
    return Table(columns, tuple(rows), remarks=tuple(remarks))


def _worth(row: CriterionWorth) -> str:
    """`3 of 6 instead of 6 of 6`, or how much worse it may be at most."""
    both = f"{_passed(row.without)} instead of {_passed(row.whole)}"
    if row.verdict != "none":
        return both
    differs = row.without.passed * row.whole.sessions != row.whole.passed * row.without.sessions
    limit = f"at most {row.at_most:.0f} points with 95%"
    return f"{both}, not proven: {limit}" if differs else f"no difference was found: {limit}"


def _passed(count: PassCount | None) -> str:
    """`3 of 6`; empty where nothing was counted."""
    return f"{count.passed} of {count.sessions}" if count else ""
