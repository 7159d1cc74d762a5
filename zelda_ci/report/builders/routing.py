"""Routing suites as a table: how often each skill, sub-agent and command was called when, and only when, it should."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from zelda_ci.domain.details import CriterionVerdict, FulfillmentDetails, ToolUsageDetails
from zelda_ci.domain.kinds import CALLED, KINDS, ItemKind, Shown
from zelda_ci.domain.manifest import LISTING
from zelda_ci.domain.numbers import format_count, some_of
from zelda_ci.domain.run import RunResult
from zelda_ci.report.model import Cell, Column, Table, TableRow, Tone
from zelda_ci.report.text import sentence, visible

NOTHING = "none"


@dataclass(frozen=True)
class Routed:
    """What one trial of one prompt called."""

    suite: str
    question: str
    """Suite and criterion: a prompt that moved, or is for something else now, is another one."""
    expected: tuple[str, ...]
    called: str

    @property
    def target(self) -> str:
        """What it counts for: of several that would have been right the one that was called, or else the first."""
        return self.called if self.called in self.expected else self.expected[0]


def routing_tables(runs: Sequence[RunResult], base: Sequence[RunResult] = ()) -> Iterator[tuple[str, Table]]:
    """A title with the sum, and a table, for each routing file that ran; before the arrow stands the base."""
    columns = (Column("Called"), Column("Precision", right=True), Column("Recall", right=True))
    for file in dict.fromkeys(run.config.file for run in runs if run.config.kind == "routing"):
        of_file = [run for run in runs if run.config.file == file]
        head, before = [*_routed(of_file)], [*_routed(run for run in base if run.config.file == file)]
        if head:
            targets = dict.fromkeys(name for each in head for name in (*each.expected, each.called))
            asked = {each.question for each in head}
            same = [each for each in before if each.question in asked]
            there = {each.question for each in same}
            both = same if there == asked else []
            rows = tuple(_row(name, head, same, both) for name in sorted(targets, key=lambda name: name == NOTHING))
            remarks = [Cell(sentence(text), Tone.WARN) for text in dict.fromkeys(_remarks(of_file, head))]
            if before and not both:
                told = f"The base has {len(there)} of {format_count(len(asked), 'prompt')}: its numbers are not shown"
                remarks.append(Cell(told, Tone.DIM))
            then, now = (sum(each.called == each.target for each in side) for side in (both, head))
            sums = _share((then, now), (len(both), len(head))).text
            yield f"Routing: {visible(file, 100)}: {sums} as expected", Table(columns, rows, remarks=tuple(remarks))


def _routed(runs: Iterable[RunResult]) -> Iterator[Routed]:
    found = [
        (run, check.routed, details.criteria[-1])
        for run in runs
        # The check of the prompt stands last.
        if (check := next(reversed(run.config.checks), None)) and check.routed
        if (details := run.details(FulfillmentDetails)) and details.criteria
    ]
    known = dict.fromkeys(name for _, expected, _ in found for name in expected)
    for run, expected, judged in found:
        if judged.verdict in {CriterionVerdict.PASS, CriterionVerdict.FAIL}:
            call = judged.evidence[0].quote if judged.evidence else ""
            yield Routed(run.suite, f"{run.suite}: {judged.criterion}", expected, _called(call, (*expected, *known)))


def _called(call: str, known: Iterable[str]) -> str:
    """`Skill(docs:changelog)` as the file calls it: `skill changelog`, where it does."""
    tool, _, name = call.removesuffix(")").partition("(")
    if not tool:
        return NOTHING
    kind = "skill" if tool == "Skill" else "agent"
    fits = (each for each in known if each.endswith((f" {name}", f" {name.rpartition(':')[2]}")))
    return next((each for each in fits if each.startswith("agent ") == (kind == "agent")), f"{kind} {name}")


def _row(name: str, head: Sequence[Routed], base: Sequence[Routed], both: Sequence[Routed]) -> TableRow:
    """What is said of a name; of the base what it has of these prompts, and all of it where that is every one."""
    right, called, asked = zip(_counts(name, both), _counts(name, head), strict=True)
    wrong = Counter((each.called, each.suite) for each in head if each.target == name and each.called != name)
    known, there = {(each.called, each.suite) for each in base}, {each.suite for each in base}
    went: dict[str, list[str]] = {}
    for (other, suite), times in wrong.items():
        is_new = suite in there and (other, suite) not in known
        went.setdefault(other, []).append(f"{suite}{f' {times} times' * (times > 1)}{' (new)' * is_new}")
    words = {NOTHING: "nothing was called"}
    notes = (f"{words.get(other, f'{other} instead')}: {some_of(suites)}" for other, suites in went.items())
    cells = (Cell(visible(name, 60)), _share(right, called), _share(right, asked))
    return TableRow(cells, tuple(Cell(sentence(note), Tone.WARN) for note in notes))


def _counts(name: str, routed: Sequence[Routed]) -> tuple[int, int, int]:
    """Of the trials, how many called it rightly, called it at all, and should have called it."""
    right = sum(each.called == name == each.target for each in routed)
    return right, sum(each.called == name for each in routed), sum(each.target == name for each in routed)


def _share(parts: tuple[int, int], wholes: tuple[int, int]) -> Cell:
    """Those of the base and of the head: `3 of 4 → 4 of 4`."""
    before, now = (f"{part} of {whole}" if whole else "" for part, whole in zip(parts, wholes, strict=True))
    tone = Tone.WARN if parts[1] < wholes[1] else Tone.NEUTRAL
    return Cell(f"{before} \u2192 {now or '-'}" if before and before != now else now or "-", tone)


def _remarks(runs: Iterable[RunResult], routed: Iterable[Routed]) -> Iterator[str]:
    """What of the listing the model did not see in full, and names that nothing has."""
    called = {NOTHING, *(each.called for each in routed)}
    for run in runs:
        details = run.details(ToolUsageDetails)
        entries = [it for it in details.manifest if it.kind in CALLED - {ItemKind.MCP_SERVER}] if details else []
        expected = {name: name.partition(" ")[2] for check in run.config.checks for name in check.routed or ()}
        for entry in entries:
            is_closed = entry.name in expected.values() and entry.shown in {Shown.HIDDEN, Shown.DENIED}
            why = (entry.note if entry.loaded else entry.reason) or ("the model cannot call it" if is_closed else "")
            if why and (is_closed or not entry.loaded or any(words in why for words in LISTING)):
                yield f"{KINDS[entry.kind].word} {entry.name}: {why}"
        names = {part for entry in entries for part in (str(entry.name), entry.name.rpartition(":")[2])}
        for target, name in expected.items():
            if entries and target not in called and name not in names:
                yield f"{target} is expected, and the project has none of that name"
