"""What the judge said of each acceptance criterion, with the places where it can be checked."""

from collections.abc import Iterator

from zelda_ci.domain.judgement import Citation, CriterionJudgement, CriterionVerdict, FulfillmentDetails
from zelda_ci.domain.outcome import fulfillment
from zelda_ci.domain.run import JudgeUsage, RunResult
from zelda_ci.domain.session import Usage
from zelda_ci.reporter.view import numbers
from zelda_ci.reporter.view.escape import sentence, visible
from zelda_ci.reporter.view.nouns import Cell, Row, Section, Tone

VERDICTS = {
    CriterionVerdict.PASS: Cell("PASS", Tone.GOOD),
    CriterionVerdict.FAIL: Cell("FAIL", Tone.BAD),
    CriterionVerdict.UNDECIDED: Cell("undecided", Tone.BAD),
    CriterionVerdict.NOT_JUDGED: Cell("not judged", Tone.BAD),
}

IGNORED = Cell("undecided, ignored", Tone.WARN)

LONGEST_CRITERION = 300
LONGEST_REASONING = 400
LONGEST_QUOTE = 100
MOST_CITATIONS = 3


def criteria_section(run: RunResult) -> tuple[Section, ...]:
    """A row per criterion, in the suite's order; no section where none was judged."""
    details = fulfillment(run)
    if details is None or not details.criteria:
        return ()
    ignores = run.config.undecided == "ignore"
    rows = [_row(number, one, ignores=ignores) for number, one in enumerate(details.criteria, start=1)]
    return (Section("Acceptance criteria", (*rows, *_notes(details))),)


def judge_rows(run: RunResult) -> Iterator[Row]:
    """What judging used, apart from the session."""
    if run.judge:
        names = ", ".join(visible(name) for name in run.judge.models) or "no answer"
        yield Row("Judge", (Cell(judge_cost([run.judge])), *_calls(run.judge), Cell(names, Tone.DIM)))
        yield from (Row("", (Cell(sentence(notice), Tone.WARN),)) for notice in run.judge.notices)


def judge_cost(uses: list[JudgeUsage]) -> str:
    """Of several judgings together."""
    known = all(model.cost_known for use in uses for model in use.models.values())
    return numbers.money(sum(use.cost_usd for use in uses), known=known)


def _calls(usage: JudgeUsage) -> Iterator[Cell]:
    yield Cell(numbers.count(usage.requests, "call"), Tone.DIM)
    yield Cell(f"{numbers.whole(sum(usage.models.values(), Usage()).total)} tokens", Tone.DIM)


def _row(number: int, one: CriterionJudgement, *, ignores: bool) -> Row:
    cells = [IGNORED if ignores and one.verdict is CriterionVerdict.UNDECIDED else VERDICTS[one.verdict]]
    if one.split:
        votes = ", ".join(f"{count} {visible(name)}" for name, count in one.split.items())
        cells.append(Cell(f"votes: {votes}", Tone.WARN))
    cells.append(Cell(sentence(one.criterion, LONGEST_CRITERION)))
    lines = [Cell(sentence(one.reasoning, LONGEST_REASONING), Tone.DIM)] if one.reasoning else []
    lines += [Cell(_citation(place), Tone.DIM) for place in one.evidence[:MOST_CITATIONS]]
    return Row(str(number), tuple(cells), tuple(lines))


def _citation(place: Citation) -> str:
    where = visible(place.where)
    return f"{where}: {sentence(place.quote, LONGEST_QUOTE)}" if place.quote else where


def _notes(details: FulfillmentDetails) -> Iterator[Row]:
    for note in details.notes:
        yield Row("", (Cell(sentence(note), Tone.WARN),))
