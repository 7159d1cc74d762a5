"""What steering takes of the context, in words: a line for the whole, a row for each unit, and what does not work."""

from collections.abc import Iterable, Iterator, Sequence

from zelda_ci.domain import numbers
from zelda_ci.domain.check import ContextFinding, ContextItem, ContextListing, ContextReport
from zelda_ci.domain.comparison import ContextTooLarge
from zelda_ci.domain.kinds import FOLLOWED, KINDS
from zelda_ci.domain.run import RunResult
from zelda_ci.model_proxy.pricing import cost_usd, is_known
from zelda_ci.report.builders.gate import gate_sentence
from zelda_ci.report.builders.phrases import line, listed
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
