"""What commands print, laid out in as much room as the terminal has, in its colours and characters."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TextIO

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from zelda_ci.domain import numbers
from zelda_ci.domain.check import CheckReport, Status
from zelda_ci.domain.comparison import GateResult
from zelda_ci.domain.outcome import Outcome, run_outcome
from zelda_ci.domain.run import BatchResult, RunResult
from zelda_ci.domain.trials import Forecast
from zelda_ci.report import model
from zelda_ci.report.builders import summary
from zelda_ci.report.builders.routing import routing_tables
from zelda_ci.report.builders.run import file_rows, run_facts, run_problem, run_sections, unmet_rows
from zelda_ci.report.builders.summary import FilesOf, forecast_lines, forecast_table
from zelda_ci.report.model import OUTCOMES, Cell, Detail, Problem, Row, RunFiles, Section, Table, Tone, first, plain
from zelda_ci.report.text import one_line, sentence, visible

LABEL, TITLE, DIM = "cyan", "bold", "dim"
STYLES = {Tone.GOOD: "green", Tone.BAD: "red", Tone.WARN: "yellow", Tone.NEUTRAL: "", Tone.DIM: DIM}
SEPARATOR, GUTTER, GAP = " · ", "│ ", "  "
# For terminals that know less than Unicode.
SPARE = str.maketrans({"✓": "+", "✗": "x", "·": "|", "│": "|", "…": "..."})

# Columns that text gets even where the terminal has fewer.
NARROWEST = 24
# Indent of what belongs to a label that stands alone, and of what belongs to the line above.
ALONE, STEP = 8, 2


def open_console(stream: TextIO) -> Console:
    """A console that takes outside text literally, and its colours and width from the terminal and NO_COLOR."""
    return Console(file=stream, markup=False, emoji=False, highlight=False)


def is_plain(console: Console) -> bool:
    """Whether lines cannot be redrawn: a file, a pipe, a dumb terminal. FORCE_COLOR gives colours, not a cursor."""
    return not (console.is_terminal and console.file.isatty()) or console.is_dumb_terminal


class Page:
    """Collects lines and prints them at once, so that no other output comes between them.

    What is written is text only: neither markup nor emoji codes mean anything in it, and nothing in it acts.
    """

    def __init__(self, console: Console, *, width: int | None = None) -> None:
        self.console, self.width = console, width or console.width
        self.unicode, self.lines = console.encoding.startswith("utf"), list[Text]()

    def write(self, text: str, style: str = "") -> Text:
        """The text in a style, with what the encoding lacks replaced, and what acts spelled out."""
        if not self.unicode:
            encoding = self.console.encoding
            text = text.translate(SPARE).encode(encoding, "backslashreplace").decode(encoding)
        # As a span: a style of the whole Text would spread to whatever is appended later.
        return Text().append(one_line(text), style)

    def cell(self, cell: Cell) -> Text:
        """A cell in the colour of its tone."""
        return self.write(cell.text, STYLES[cell.tone])

    def badge(self, outcome: Outcome) -> Text:
        """The verdict as a coloured plate."""
        words = OUTCOMES[outcome]
        ink, colour = "white" if words.tone is Tone.BAD else "black", STYLES[words.tone] or "white"
        return self.write(f" {words.badge} ", f"bold {ink} on {colour}")

    def mark(self, outcome: Outcome) -> Text:
        """The verdict as one character."""
        return self.write(OUTCOMES[outcome].mark, STYLES[OUTCOMES[outcome].tone])

    def show(self) -> None:
        """Print what was collected, each line as it is: the terminal itself wraps what is longer than it is wide."""
        if self.lines and self.console.is_terminal:
            self.console.print(Text("\n").join(self.lines), soft_wrap=True, markup=False, emoji=False, highlight=False)
        else:
            # At once, so that a list of ten thousand runs takes no time to lay out.
            self.console.file.write("".join(f"{line.plain}\n" for line in self.lines))
            self.console.file.flush()

    def blank(self) -> None:
        """An empty line, never two in a row."""
        if self.lines and self.lines[-1].plain:
            self.lines.append(Text())

    def line(self, text: Text | str = "") -> None:
        """A line of its own, without blanks at its end, and inert in the log of a CI service."""
        text = Text(text) if isinstance(text, str) else text.copy()
        text.rstrip()
        start = len(text.plain) - len(text.plain.lstrip())
        if text.plain.startswith("::", start):
            text = Text.assemble(text[:start], ": :", text[start + 2 :])
        self.lines.append(text)

    def title(self, title: str) -> None:
        """A title, with room above."""
        self.blank()
        self.line(Text("  ") + self.write(title, TITLE))

    def beside(self, label: Text | str, cells: Sequence[Cell], *, lines: Iterable[Cell] = ()) -> None:
        """Cells to the right of a label, then lines below the cells; a label that leaves no room stands alone."""
        label = Text(label) if isinstance(label, str) else label
        if label.cell_len > ALONE and self.width - label.cell_len < NARROWEST:
            for number, text in enumerate(self._wrapped(label, self._room(ALONE))):
                self.line(Text(" " * ALONE if number else "") + text)
            label = Text(" " * ALONE)
        indent = label.cell_len
        groups = (cells, *((line,) for line in lines))
        for text in [text for group in groups for text in self._flow(group, indent)] or [Text()]:
            self.line(label + text)
            label = Text(" " * indent)

    def rows(self, rows: Iterable[Row], *, indent: int) -> None:
        """Rows whose labels are aligned."""
        rows = tuple(rows)
        width = max((cell_len(row.label) for row in rows), default=0)
        for row in rows:
            label = self.write(set_cell_size(row.label, width), LABEL)
            self.beside(Text(" " * indent) + label + GAP, row.cells, lines=row.lines)

    def table(self, table: Table, *, indent: int = 0, unbroken: bool = False) -> None:
        """A table, each row on one line if there is room for all of them or programs read it; else flowing."""
        titles = [Cell(column.title, Tone.DIM) for column in table.columns]
        texts = [[*map(self.cell, cells)] for cells in (titles, *(row.cells for row in table.lines))]
        # A column in which nothing stands takes no room.
        shown = [(number, column) for number, column in enumerate(zip(*texts, strict=True)) if any(column[1:])]
        widths = {number: max(text.cell_len for text in column) for number, column in shown}
        if unbroken or indent + sum(widths.values()) + len(GAP) * (len(widths) - 1) <= self.width:
            for line, row in zip(texts, (None, *table.lines), strict=True):
                for number, width in widths.items():
                    line[number].align("right" if table.columns[number].right else "left", width)
                self.line(Text(" " * indent) + Text(GAP).join(line[number] for number in widths))
                self.notes(row.notes if row else (), indent=indent + STEP)
        else:
            for row in table.lines:
                self._flowing(row, table, indent)
        self.notes(table.remarks, indent=indent)

    def _flowing(self, row: model.TableRow, table: Table, indent: int) -> None:
        *marks, name = row.cells[: table.leading + 1]
        self.beside(Text(" " * indent) + Text().join(self.cell(mark) + GAP for mark in marks), (name,))
        facts = []
        for column, cell in [*zip(table.columns, row.cells, strict=True)][table.leading + 1 :]:
            # A number says what it is; a word does so itself.
            is_number = column.right or cell.text[:1].isdigit()
            title, percent, _ = column.title.lower().partition("%") if is_number else ("", "", "")
            if cell.text not in {"", "-"}:
                facts.append(Cell(f"{title.rstrip()} {cell.text}{percent}".lstrip(), cell.tone, cell.whole))
        self.beside(" " * (indent + STEP), facts)
        self.notes(row.notes, indent=indent + STEP)

    def notes(self, cells: Iterable[Cell], *, indent: int) -> None:
        """Each cell from a line of its own on."""
        for cell in cells:
            self.beside(" " * indent, (cell,))

    def quote(self, lines: Iterable[str], *, indent: int) -> None:
        """Output of a program, behind a gutter that it cannot cross."""
        gutter = Text(" " * indent) + self.write(GUTTER, DIM)
        for line in lines:
            for text in self._wrapped(self.write(line), self._room(gutter.cell_len)):
                self.line(gutter + text)

    def _room(self, indent: int) -> int:
        return max(self.width - indent, NARROWEST)

    def _flow(self, cells: Sequence[Cell], indent: int) -> Iterator[Text]:
        """Lines of cells; a cell goes to the next line whole, and is broken only where a line is too short for it."""
        room, separator, line = self._room(indent), self.write(SEPARATOR, DIM), Text()
        for cell in cells:
            for text in [self.cell(cell)] if cell.whole else self._wrapped(self.cell(cell), room):
                if line and line.cell_len + separator.cell_len + text.cell_len <= room:
                    line = line + separator + text
                    continue
                if line:
                    yield line
                line = text
        if line:
            yield line

    def _wrapped(self, text: Text, width: int) -> list[Text]:
        return [*text.wrap(self.console, width, overflow="fold")] if text.cell_len > width else [text]


def print_lines(console: Console, lines: Iterable[Cell]) -> None:
    """Print each line as soon as it is known: a transcript may have a million."""
    for cell in lines:
        page = Page(console)
        page.line(page.cell(cell))
        page.show()


# --- reports on runs --------------------------------------------------------------------------------------------


def print_closing(
    console: Console, batch: BatchResult, gate: GateResult | None, files_of: FilesOf, detail: Detail
) -> None:
    """Print what went wrong, what routing suites called, and the summary; none without a gate, as two sides follow."""
    page = Page(console)
    if detail is not Detail.QUIET:
        page.line()
    for problem, affected in summary.troubles(batch.runs, files_of) if detail is Detail.LINES else ():
        if len(page.lines) == 1:
            page.title("What went wrong")
        names, unmet = Cell(summary.affected_names(affected, batch.runs)), unmet_rows(affected[0])
        page.beside(Text("    ") + page.mark(run_outcome(affected[0])) + " ", (names,))
        page.rows((*unmet, *_problem_rows(replace(problem, sentence="") if unmet else problem)), indent=6)
        page.quote(problem.output, indent=12)
    if gate and batch.runs and detail is not Detail.QUIET:
        page.blank()
        page.table(summary.suite_table(batch, by_file=detail is Detail.LINES), indent=4)
    for title, table in routing_tables(batch.runs, batch.base_runs):
        if detail is Detail.QUIET:
            page.beside(" ", (Cell(title),))
        else:
            page.title(title)
            page.table(table, indent=4)
    if gate and detail is Detail.QUIET:
        badge = page.badge(summary.closing_outcome(batch, gate))
        page.beside(Text(" ") + badge + "  ", [*summary.closing_line(batch, gate)])
    elif gate:
        _section(page, Section("Summary", tuple(summary.closing_rows(batch, gate))))
    if any(line.plain for line in page.lines):
        page.show()


def print_run(console: Console, run: RunResult, files: RunFiles) -> None:
    """Print one stored run in full, whichever trial it was."""
    page = Page(console)
    page.line()
    _run(page, run, files, (*run_sections(run), summary.about_run(run)))
    page.show()


def print_head(page: Page, outcome: Outcome, suite: str, facts: Sequence[Cell]) -> None:
    """The verdict, the name, and how it went: of a suite that passed, all that need be said."""
    page.beside(Text(" ") + page.badge(outcome) + " " + page.write(suite, TITLE) + "  ", facts)


def print_suite(page: Page, runs: Sequence[RunResult], files_of: FilesOf) -> None:
    """A suite in full: its only run, or how its trials spread, and each in a line; `zelda show` has every detail."""
    if not summary.has_trials(runs):
        _run(page, runs[0], files_of(runs[0].run_id), run_sections(runs[0]))
        return
    print_head(page, max(map(run_outcome, runs)), runs[0].suite, summary.suite_facts(runs))
    if found := summary.spread(runs):
        _section(page, found)
    page.title("Trials")
    last_sentence = ""
    for run in runs:
        page.beside(Text("    ") + page.mark(run_outcome(run)) + f" trial {run.trial}  ", run_facts(run))
        files = files_of(run.run_id)
        if problem := run_problem(run, files):
            is_known, last_sentence = problem.sentence == last_sentence, problem.sentence
            page.rows(_problem_rows(replace(problem, sentence="", advice="") if is_known else problem), indent=6)
        elif files.result:
            page.beside("      ", (Cell(files.result, Tone.DIM, whole=True),))


def _run(page: Page, run: RunResult, files: RunFiles, sections: Iterable[Section]) -> None:
    print_head(page, run_outcome(run), run.suite, run_facts(run))
    if problem := run_problem(run, files):
        page.blank()
        page.rows(_problem_rows(problem), indent=2)
        page.quote(problem.output, indent=8)
    for section in (*sections, Section("Files", tuple(file_rows(run, files)))):
        _section(page, section)


def _section(page: Page, section: Section) -> None:
    if section.rows:
        page.title(section.title)
        page.rows(section.rows, indent=4)


def _problem_rows(problem: Problem) -> list[Row]:
    texts = {"Why": problem.sentence, "Next": problem.advice, "Look": problem.look or ""}
    return [Row(label, (Cell(text, whole=label == "Look"),)) for label, text in texts.items() if text]


# --- checks, forecasts, tables ----------------------------------------------------------------------------------

CHECKS: dict[Status, Cell] = {
    "passed": Cell("ok", Tone.GOOD),
    "warning": Cell("WARNING", Tone.WARN),
    "failed": Cell("ERROR", Tone.BAD),
    "skipped": Cell("skipped", Tone.DIM),
}
MAX_NAMED, MAX_MESSAGE = 3, 2_000


def print_checks(console: Console, report: CheckReport) -> None:
    """Print what was tried, how it went and how long it took, a line each, and below what is to be done."""
    page = Page(console)
    page.line()
    mark_width = max((len(CHECKS[check.status].text) for check in report.checks), default=0)
    width = max((cell_len(check.subject) for check in report.checks), default=0)
    for check in report.checks:
        mark = page.cell(CHECKS[check.status])
        mark.pad_right(mark_width - mark.cell_len)
        suites = ", ".join(cell.text for cell in first([*map(Cell, check.suites)], MAX_NAMED))
        time = "remembered" if check.remembered else numbers.duration(check.seconds)
        cost = numbers.brief_money(check.cost_usd) if check.cost_usd else ""
        facts = [Cell(fact, Tone.DIM) for fact in (suites, time, cost) if fact]
        label = page.write(set_cell_size(check.subject, width), LABEL)
        page.beside(Text("  ") + mark + "  " + label + "  ", (Cell(sentence(check.about, 60)), *facts))
    for check in report.checks:
        if check.status != "passed":
            status = CHECKS[check.status]
            page.blank()
            page.line(Text("  ") + page.cell(Cell(f"{status.text}  {check.origin or check.subject}", status.tone)))
            named = f"{check.subject} {check.about}: " if check.status == "skipped" else ""
            output = [Cell(visible(line, 300), Tone.DIM) for line in (check.output or "").splitlines()]
            hint = [Cell(sentence(check.hint))] if check.hint else []
            message = Cell(sentence(named + (check.message or check.about), MAX_MESSAGE))
            page.beside("    ", (message,), lines=(*output, *hint))
    page.blank()
    spent = numbers.brief_money(sum(check.cost_usd for check in report.checks))
    errors, warnings = len(report.failures), len(report.warnings)
    known = numbers.format_count(warnings, "warning") if warnings else "everything is there"
    refused = f"{numbers.format_count(errors, 'error')}: no run can begin like this" if errors else ""
    words, tone = refused or f"A run can begin: {known}", Tone.BAD if errors else Tone.GOOD
    page.beside("  ", (Cell(f"{words} ({numbers.duration(report.seconds)}, {spent}).", tone),))
    page.show()


def print_forecast(console: Console, forecast: Forecast) -> None:
    """Print what would run, suite by suite, and the sums."""
    page = Page(console)
    page.table(forecast_table(forecast), indent=2)
    page.blank()
    page.notes(map(Cell, forecast_lines(forecast)), indent=2)
    page.show()


def print_table(console: Console, remarks: Console, table: Table, *, unbroken: bool) -> None:
    """Print the table, and on the other console what is to be said about it."""
    if table.lines:
        page = Page(console)
        page.table(replace(table, remarks=()), unbroken=unbroken)
        page.show()
    if table.remarks:
        page = Page(remarks)
        if table.lines:
            page.line()
        page.notes(table.remarks, indent=0)
        page.show()


def print_details(console: Console, details: Section) -> None:
    """Print what can be opened elsewhere: its title, its rows and its table."""
    page = Page(console)
    page.line(page.write(details.title, TITLE))
    page.blank()
    page.rows(details.rows, indent=2)
    if details.table:
        page.blank()
        page.table(details.table, indent=2)
    page.show()


# --- two sides --------------------------------------------------------------------------------------------------


def print_verdict(console: Console, view: model.CiView, changed: Iterable[Row], gate: Section) -> None:
    """Print how two sides ended as the comment does, with what changed and what the gate says of it."""
    page = Page(console)
    page.line()
    tone = Tone.BAD if view.failed else Tone.WARN if view.causes else Tone.GOOD
    page.beside(" ", (Cell(view.sentence, tone),))
    page.rows(changed, indent=4)
    for cause, *others in view.causes:
        page.blank()
        page.beside("    ", (Cell(plain(cause)),), lines=(Cell(plain(line), Tone.DIM) for line in others))
    if view.more_causes:
        page.beside("    ", (Cell(view.more_causes, Tone.DIM),))
    page.blank()
    page.table(view.table, indent=4)
    for line in view.basis:
        page.blank()
        page.beside("    ", (Cell(plain(line), Tone.DIM),))
    _section(page, gate)
    page.show()


def print_comparison(console: Console, view: model.ComparisonView) -> None:
    """Print every suite, the overall numbers, how sure all of it is, and the gate."""
    page = Page(console)
    page.line()
    verdict = page.cell(view.verdict)
    verdict.stylize(TITLE)
    page.line(Text(" ") + verdict)
    page.rows(view.sides, indent=4)
    for suite in view.suites:
        page.blank()
        page.beside(Text(" ") + page.write(suite.name, TITLE) + "  ", (suite.verdict, *suite.facts))
        page.notes(suite.remarks, indent=4)
        for table in (suite.measures, suite.criteria):
            if table.lines:
                page.blank()
                page.table(table, indent=4)
        if suite.tools:
            page.blank()
            page.rows(suite.tools, indent=4)
    if view.overall.lines:
        page.title("All suites")
        page.table(view.overall, indent=4)
    for section in (view.certainty, view.gate):
        _section(page, section)
    page.show()
