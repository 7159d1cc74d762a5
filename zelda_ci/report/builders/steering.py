"""Files that steer, in words: their size and their use, what their parts are worth, and which change did harm."""

from collections.abc import Iterable, Iterator, Sequence

from zelda_ci.domain import numbers
from zelda_ci.domain.attribution import Attribution, CriterionWorth, PassCount, Suspicion, WorthReport, unit_words
from zelda_ci.domain.comparison import ContextTooLarge
from zelda_ci.domain.context_size import ContextFinding, ContextItem, ContextListing, ContextReport
from zelda_ci.domain.kinds import FOLLOWED, KINDS
from zelda_ci.domain.measures import MEASURES, Measure
from zelda_ci.domain.numbers import brief_money, format_count
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.steering import SteeringCoverage, SuiteUse
from zelda_ci.model_proxy.pricing import cost_usd, is_known
from zelda_ci.report.builders.gate import gate_sentence
from zelda_ci.report.builders.phrases import joined, line, listed, quoted
from zelda_ci.report.model import Cell, Column, Details, Line, Row, Table, TableRow, Tone, plain
from zelda_ci.report.text import sentence, visible

MAX_NAMED = 3
MAX_NAME_LENGTH = 60
# Those of a session of usual length, which reads again from the cache what its first request wrote there.
TURNS = 20
SESSIONS = 1000
ABSENT = ContextItem.model_validate({"kind": "claudeMd", "name": ""})
_Pair = tuple[ContextItem, ContextItem]


def context_report(report: ContextReport, *, limit: int | None = None) -> Details:
    """The listing, or what has changed of it, under the size of what is always there.

    Args:
        report: The listing, with that of the base where there is one.
        limit: Tokens that may always be there.
    """
    head, base = report.head, report.base
    pairs = _pairs(report)
    shown = [pair for pair in pairs if base is None or _differs(pair)]
    rows = [row for row in (_over(head, limit), *_rows(report, pairs)) if row]
    columns = (Column("Name"), Column("Kind"), Column("Always", right=True), Column("On demand", right=True))
    lines = tuple(_table_row(pair, beside=base is not None) for pair in shown)
    remarks = [Cell(f"Sizes are in tokens{', estimated' * head.is_estimated}.", Tone.DIM)] if lines else []
    if same := [new for pair in pairs if pair not in shown for new in pair[1:]]:
        size = numbers.whole(sum(item.always for item in same))
        remarks.append(Cell(f"{numbers.format_count(len(same), 'unit')} as before: {size} tokens always.", Tone.DIM))
    return Details(plain(size_line(report)), tuple(rows), Table(columns, lines, remarks=tuple(remarks)))


def size_line(report: ContextReport) -> Line:
    """`Always in context: 11,240 → 13,905 tokens (+2,665, +24 %)`."""
    head, base = report.head, report.base
    is_estimated = head.is_estimated or (base is not None and base.is_estimated)
    words = f"Always in context: {numbers.whole(head.always)} tokens"
    notes = []
    if base and base.always != head.always:
        change = head.always - base.always
        words = f"Always in context: {numbers.whole(base.always)} \u2192 {numbers.whole(head.always)} tokens"
        share = [f"{_sign(change)}{100 * abs(change) / base.always:.0f} %"] if base.always else []
        notes = [_signed(change), *share]
    elif base:
        notes = ["as before"]
    notes += ["estimated"] if is_estimated else []
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


def finding_words(found: ContextFinding) -> str:
    """One line: the place, what does not work there, and what to do."""
    return f"{visible(found.file, 120)}:{found.line}: {sentence(found.problem)}. {sentence(found.fix)}"


def _over(head: ContextListing, limit: int | None) -> Row | None:
    found = too_large(head, limit)
    return Row("Too large", (Cell(gate_sentence(found), Tone.BAD),)) if found else None


def _rows(report: ContextReport, pairs: Sequence[_Pair]) -> Iterator[Row]:
    head, base = report.head, report.base
    cut = [new for old, new in pairs if new.cut and (base is None or new.cut != old.cut)]
    if cut:
        lost = ((it, numbers.format_count(it.cut, "character")) for it in cut)
        lines = (f"{plain(_named(it))} loses {count} of its description" for it, count in lost)
        yield Row("Cut from the listing", (), tuple(Cell(words, Tone.WARN) for words in lines))
    known = {(it.file, it.problem) for it in base.findings} if base else set()
    new = [it for it in head.findings if (it.file, it.problem) not in known]
    if head.findings:
        old = len(head.findings) - len(new)
        others = (Cell(f"{numbers.whole(old)} that the base has, too", Tone.DIM),) if old else ()
        yield Row("Does not work as written", others, tuple(Cell(finding_words(it), Tone.WARN) for it in new))
    shares = [f"{100 * listing.always / listing.window:.1f} %" for listing in (base, head) if listing]
    window = f"{_sides(shares)} of {numbers.whole(head.window)} tokens"
    own = f"Claude Code's own part takes {numbers.whole(head.own)} more"
    yield Row("Share of the window", (Cell(window), Cell(own, Tone.DIM)))
    yield _cost(report)


def first_requests(size: ContextReport, runs: Iterable[RunResult], base: Iterable[RunResult]) -> Row | None:
    """How large the first requests of sessions were: the smallest of each side, by the API's own count."""
    sides = [[run.api.first_tokens for run in side if run.api.first_tokens] for side in (base, runs)]
    if not sides[1]:
        return None
    shown = _sides(numbers.whole(min(side)) for side in sides if side)
    listed = size.head.own + size.head.always
    words = f"as the API counted them, with the prompt; listed {'and estimated ' * size.head.is_estimated}are "
    return Row("First requests", (Cell(f"{shown} tokens"), Cell(f"{words}{numbers.whole(listed)}", Tone.DIM)))


def _cost(report: ContextReport) -> Row:
    """What the always-on part costs by list prices: written to the cache once, and read from it at each turn."""
    head, base = report.head, report.base
    costs = [_usd(head.model, listing.always) for listing in (base, head) if listing]
    shown = _sides(f"${cost:,.2f}" for cost in costs)
    guess = "" if is_known(head.model) else ", whose price is guessed"
    assumed = f"{TURNS} turns each, by list prices of {visible(head.model, MAX_NAME_LENGTH)}{guess}, without sub-agents"
    once = "written to the cache once and read from it at every other turn"
    words = f"{'estimated, ' * head.is_estimated}{assumed}; {once}"
    return Row(f"{SESSIONS:,} sessions", (Cell(shown), Cell(words, Tone.DIM)))


def _usd(model: str, tokens: int) -> float:
    first, later = {"cache_creation_input_tokens": tokens}, {"cache_read_input_tokens": tokens}
    return SESSIONS * (cost_usd(model, first) + (TURNS - 1) * cost_usd(model, later))


def _pairs(report: ContextReport) -> list[_Pair]:
    """Each unit as it was and as it is: what changed most first, then what is largest."""
    before = {item.key: item for item in report.base.items} if report.base else {}
    now = {item.key: item for item in report.head.items}
    pairs = [(before.get(key, ABSENT), now.get(key, ABSENT)) for key in dict.fromkeys((*now, *before))]
    return sorted(pairs, key=lambda pair: _weight(pair, report.base is not None))


def _weight(pair: _Pair, is_change: bool) -> tuple[int, int, int, str]:  # noqa: FBT001 - a key of sorting
    old, new = pair
    always, on_demand = (new.always - old.always, new.on_demand - old.on_demand) if is_change else (0, 0)
    return -abs(always), -abs(on_demand), -max(old.always, new.always), new.name or old.name


def _differs(pair: _Pair) -> bool:
    old, new = pair
    return (old.always, old.on_demand, old.cut) != (new.always, new.on_demand, new.cut)


def _table_row(pair: _Pair, *, beside: bool) -> TableRow:
    old, new = pair
    item = new if new.name else old
    name = Cell(visible(_called(item), MAX_NAME_LENGTH))
    state = " (new)" * (beside and not old.name) or " (gone)" * (not new.name)
    sizes = ((old.always, new.always), (old.on_demand, new.on_demand))
    cells = (Cell(_sides(map(numbers.whole, size if beside else size[1:]))) for size in sizes)
    return TableRow((name, Cell(f"{KINDS[item.kind].word}{state}", Tone.DIM), *cells))


def _sides(shown: Iterable[str]) -> str:
    """What it was and what it is; once where that is the same."""
    return " \u2192 ".join(dict.fromkeys(shown))


def _called(item: ContextItem) -> str:
    """Skills and the like by name, the rest by file."""
    return item.file or item.name if item.kind in FOLLOWED else item.name


def _named(item: ContextItem) -> Line:
    word = "" if item.kind in FOLLOWED else f"{KINDS[item.kind].word} "
    return line(f"{word}{{}}", Cell(visible(_called(item), MAX_NAME_LENGTH), whole=True))


def _sign(change: int) -> str:
    return "+" if change > 0 else "\u2212"


def _signed(change: int) -> str:
    return f"{_sign(change)}{numbers.whole(abs(change))}"


# Beyond these, the suites that felt a unit stand in its row, and have no columns.
MAX_COLUMNS = 8
MAX_FELT = 6

MEANING = (
    "loaded: the session had it (of skills and sub-agents the description, of rules and CLAUDE.md files the text). "
    "used: it was called, its file was read, or the judge says that it applied. missed, broken: the judge says so. "
    "Numbers are trials."
)


def coverage_table(coverage: SteeringCoverage) -> Table:
    """What no suite touches comes first."""
    trials = {it.suite: it.trials for it in coverage.suites}
    wide = len(trials) <= MAX_COLUMNS
    titles = [f"{visible(name, 40)} ({count})" for name, count in trials.items()] if wide else ["Suites"]
    rows = []
    for row in coverage.units:
        by_suite = {part.suite: part for part in row.suites}
        cells = [_cell(by_suite.get(suite)) for suite in trials] if wide else [Cell(_felt(row.suites))]
        # Skills and the like by name, the rest by file.
        by_file = row.unit.kind in FOLLOWED
        name = visible(row.unit.path if by_file else row.unit.name, 60)
        kind = Cell(KINDS[row.unit.kind].word, Tone.DIM)
        rows.append(TableRow((Cell(name, Tone.NEUTRAL if row.touched else Tone.WARN), kind, *cells)))
    columns = (Column("Name"), Column("Kind"), *(Column(title, right=wide) for title in titles))
    return Table(columns, tuple(rows), remarks=tuple(_coverage_remarks(coverage)))


def _cell(part: SuiteUse | None) -> Cell:
    if part is None:
        return Cell("-", Tone.DIM)
    tone = Tone.BAD if part.broken else Tone.WARN if part.missed else Tone.GOOD if part.used else Tone.DIM
    return Cell(_words(part), tone)


def _words(part: SuiteUse) -> str:
    counts = (("used", part.used), ("missed", part.missed), ("broken", part.broken))
    return ", ".join(f"{word} {count}" for word, count in counts if count) or "loaded"


def _felt(parts: tuple[SuiteUse, ...]) -> str:
    felt = [f"{visible(it.suite, 40)} {_words(it)}" for it in parts if it.used or it.missed or it.broken]
    more = [f"{len(felt) - MAX_FELT} more"] if len(felt) > MAX_FELT else []
    return "; ".join([*felt[:MAX_FELT], *more]) or (f"loaded by {len(parts)}" if parts else "-")


def _coverage_remarks(coverage: SteeringCoverage) -> Iterator[Cell]:
    if untouched := sum(not row.touched for row in coverage.units):
        yield Cell(f"No suite touches {numbers.format_count(untouched, 'unit')}: the first of the table.", Tone.WARN)
    if idle := [it.suite for it in coverage.suites if not it.touches]:
        yield Cell(f"Suites that use nothing of it: {visible(', '.join(idle), 400)}.", Tone.WARN)
    if coverage.unknown:
        names = visible(", ".join(coverage.unknown), 400)
        yield Cell(f"Nothing is known of {names}: run them once more with this version.", Tone.WARN)
    if coverage.units:
        yield Cell(MEANING, Tone.DIM)
    elif not coverage.unknown:
        yield Cell("No stored trial: `zelda run` makes some.")


MAX_UNIT_LENGTH, MAX_SUBJECT_LENGTH = 120, 100
# Below, a suspicion is not worth a word.
WORTH_A_WORD = 0.02
MAX_SUSPICIONS = 3


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
            return line("Not decided after {}: {}. More money may tell.", ran, joined(_likely(found), ", "))
        case _:
            return line("Not decided: no session could be paid and counted.")


def round_words(found: Attribution) -> str:
    """What is known after a round."""
    ran = format_count(sum(each.sessions for each in found.rounds), "session")
    return f"{ran}: {', '.join(''.join(cell.text for cell in each) for each in _likely(found))}"


def subject_words(found: Attribution) -> str:
    """What got worse: a criterion or a measure."""
    if str(found.subject) in MEASURES:
        return MEASURES[Measure(found.subject)].label
    return quoted(found.subject, MAX_SUBJECT_LENGTH)


def details(found: Attribution) -> Iterator[str]:
    """What the answer rests on, round by round."""
    for each in found.rounds:
        names = " and ".join(unit_words(found.units[index]) for index in each.reverted)
        yield f"{f'With {names} as before' if names else 'With all of the change'}: {each.passed} of {each.sessions}"
    if found.cost_usd:
        yield f"The search cost {brief_money(found.cost_usd)}."


def _likely(found: Attribution) -> Iterator[Line]:
    worth = [it for it in found.suspicions if it.probability >= WORTH_A_WORD]
    for suspicion in worth[:MAX_SUSPICIONS]:
        yield line("{} {}", _of(found, suspicion), _share(suspicion))


def _of(found: Attribution, suspicion: Suspicion) -> Cell:
    if suspicion.unit is not None:
        return _unit(found, suspicion.unit)
    return Cell("the length" if suspicion.hypothesis == "length" else "none of them")


def _unit(found: Attribution, index: int) -> Cell:
    return Cell(visible(unit_words(found.units[index]), MAX_UNIT_LENGTH), whole=found.units[index].kind != "code")


def _share(suspicion: Suspicion) -> str:
    # What is not certain is not called so.
    return f"{min(99, round(100 * suspicion.probability))} %"


def _confirmed(found: Attribution) -> str:
    again = found.confirmation
    if again is None:
        return ""
    back = "these lines as they were" if found.units[again.reverted[0]].kind == "hunk" else "it as it was"
    like = " like the base" if str(found.subject) in MEASURES else ""
    return f"With {back}: {again.passed} of {again.sessions}{like}."


MAX_CRITERION_LENGTH = 50


def worth_table(report: WorthReport) -> Table:
    """A row for each part and suite, with the criterion that fell most without it."""
    columns = (*map(Column, ("Without", "Suite", "Criterion")), Column("Inert text", right=True), Column("Result"))
    rows = []
    for row in report.rows:
        cells = (visible(row.part), visible(row.suite), sentence(row.criterion, MAX_CRITERION_LENGTH))
        inert = of(row.inert) if row.inert else "-"
        tone = Tone.BAD if row.verdict == "worse" else Tone.NEUTRAL
        rows.append(TableRow((*map(Cell, cells), Cell(inert), Cell(worth_words(row), tone))))
    remarks = (Cell(f"The sessions cost {brief_money(report.cost_usd)}.", Tone.DIM),) if report.cost_usd else ()
    return Table(columns, tuple(rows), remarks=remarks)


def worth_words(row: CriterionWorth) -> str:
    """`3 of 6 instead of 6 of 6`, or how much worse it may be at most."""
    both = f"{of(row.without)} instead of {of(row.whole)}"
    if row.verdict != "none":
        return both
    differs = row.without.passed * row.whole.sessions != row.whole.passed * row.without.sessions
    limit = f"at most {row.at_most:.0f} points with 95 %"
    return f"{both}, not proven: {limit}" if differs else f"no difference was found: {limit}"


def of(count: PassCount) -> str:
    """`3 of 6`."""
    return f"{count.passed} of {count.sessions}"
