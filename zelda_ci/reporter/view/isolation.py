"""How a run was confined, and what was tried against that."""

from collections.abc import Iterator, Sequence

from zelda_ci.domain.isolation import IsolationReport, Tripwire
from zelda_ci.domain.run import RunResult
from zelda_ci.reporter.view import numbers
from zelda_ci.reporter.view.escape import sentence, visible
from zelda_ci.reporter.view.nouns import Cell, Row, Tone

MOST_NAMED = 10
LONGEST_NAME = 120
TONES = {"full": Tone.GOOD, "none": Tone.BAD}
PHASES = ("setup", "session", "build", "test")


def isolation_rows(run: RunResult) -> Iterator[Row]:
    """Level and network; then only what there is to tell."""
    report = run.isolation
    if report is None:
        return
    level = Cell(report.level, TONES.get(report.level, Tone.WARN))
    reasons = tuple(Cell(sentence(reason), Tone.DIM) for reason in report.reasons)
    yield Row("Isolation", (level, Cell(_network(report), Tone.DIM)), reasons)
    if report.findings:
        names = [f"{finding.setting} ({finding.file})" for finding in report.findings]
        told = f"{numbers.count(len(names), 'setting')} of the project did not take effect"
        yield Row("Overruled", (Cell(told, Tone.WARN),), _listed(names))
    if report.protected:
        told = f"{numbers.count(len(report.protected), 'protected file')} changed by the session, and restored"
        yield Row("Protected", (Cell(told, Tone.WARN),), _listed(report.protected))
    if report.tripwire and report.tripwire.changes:
        yield _tripped(report.tripwire)


def _network(report: IsolationReport) -> str:
    closed = [phase for phase in PHASES if getattr(report.network, phase) == "none"]
    if not closed or report.level == "none":
        return "network open"
    return f"no network for {', '.join(closed)}"


def _tripped(tripwire: Tripwire) -> Row:
    count = len(tripwire.changes) + tripwire.more
    lines = _listed([f"{change.kind}: {change.path}" for change in tripwire.changes], count)
    told = f"{numbers.count(count, 'file')} of your project changed while it ran"
    return Row("Tripwire", (Cell(told, Tone.WARN),), lines)


def _listed(names: Sequence[str], count: int | None = None) -> tuple[Cell, ...]:
    shown = [Cell(visible(name, LONGEST_NAME), Tone.DIM) for name in names[:MOST_NAMED]]
    more = (len(names) if count is None else count) - len(shown)
    return (*shown, *((Cell(f"and {more} more", Tone.DIM),) if more > 0 else ()))
