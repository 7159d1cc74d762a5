"""The lines of `zelda check`: what was tried, how it went, how long it took, and below it what is to be done."""

from collections.abc import Iterator

from zelda_ci.domain import numbers
from zelda_ci.domain.check import Check, CheckReport, Status
from zelda_ci.report.model import Cell, CheckView, Row, Tone
from zelda_ci.report.text import sentence, visible

MARKS: dict[Status, Cell] = {
    "passed": Cell("ok", Tone.GOOD),
    "warning": Cell("WARNING", Tone.WARN),
    "failed": Cell("ERROR", Tone.BAD),
    "skipped": Cell("skipped", Tone.DIM),
}
MAX_NAMED = 3
MAX_MESSAGE = 2_000


def check_view(report: CheckReport) -> CheckView:
    """The view of all checks of an invocation."""
    lines = tuple((MARKS[check.status], Row(check.subject, tuple(_facts(check)))) for check in report.checks)
    return CheckView(lines, tuple(_details(report)), _summary(report))


def _facts(check: Check) -> Iterator[Cell]:
    yield Cell(sentence(check.about, 60))
    if check.suites:
        yield Cell(_suites(check), Tone.DIM)
    yield Cell("remembered" if check.remembered else numbers.duration(check.seconds), Tone.DIM)
    if check.cost_usd:
        yield Cell(numbers.brief_money(check.cost_usd), Tone.DIM)


def _suites(check: Check) -> str:
    more = len(check.suites) - MAX_NAMED
    listing = ", ".join(map(visible, check.suites[:MAX_NAMED]))
    return listing + (f" and {more} more" if more > 0 else "")


def _details(report: CheckReport) -> Iterator[tuple[Cell, tuple[Cell, ...]]]:
    """What is to be said of those that did not pass: a label, and what stands beside and below it."""
    for check in report.checks:
        if check.status == "passed":
            continue
        label = Cell(f"{MARKS[check.status].text}  {check.origin or check.subject}", MARKS[check.status].tone)
        named = f"{check.subject} {check.about}: " if check.status == "skipped" else ""
        said = [Cell(sentence(named + (check.message or check.about), MAX_MESSAGE))]
        said += [Cell(visible(line, 300), Tone.DIM) for line in (check.output or "").splitlines()]
        said += [Cell(sentence(check.hint))] if check.hint else []
        yield label, tuple(said)


def _summary(report: CheckReport) -> Cell:
    spent = sum(check.cost_usd for check in report.checks)
    facts = f"{numbers.duration(report.seconds)}, {numbers.brief_money(spent)}"
    if report.failures:
        count = numbers.format_count(len(report.failures), "error")
        return Cell(f"{count}: no run can begin like this ({facts}).", Tone.BAD)
    known = numbers.format_count(len(report.warnings), "warning")
    return Cell(f"A run can begin: {known if report.warnings else 'everything is there'} ({facts}).", Tone.GOOD)
