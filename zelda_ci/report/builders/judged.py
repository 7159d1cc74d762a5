"""What the judges said of acceptance criteria and of tool usage, with the places where it can be checked."""

from collections.abc import Iterator, Mapping, Sequence

from zelda_ci.domain import numbers
from zelda_ci.domain.details import (
    Citation,
    CriterionJudgement,
    CriterionVerdict,
    FulfillmentDetails,
    RuleJudgement,
    RuleVerdict,
    ToolRemark,
    ToolUsageDetails,
    ToolUse,
)
from zelda_ci.domain.kinds import KINDS
from zelda_ci.domain.manifest import ManifestEntry
from zelda_ci.domain.outcome import failed_criteria
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.report.builders.usage import cost
from zelda_ci.report.model import Cell, Row, Tone
from zelda_ci.report.text import sentence
from zelda_ci.report.words import first

VERDICTS = {
    CriterionVerdict.PASS: Cell("PASS", Tone.GOOD),
    CriterionVerdict.FAIL: Cell("FAIL", Tone.BAD),
    CriterionVerdict.UNDECIDED: Cell("undecided", Tone.BAD),
    CriterionVerdict.NOT_JUDGED: Cell("not judged", Tone.BAD),
}

IGNORED = Cell("undecided, ignored", Tone.WARN)

MAX_CRITERION_LENGTH = 300
MAX_REASON_LENGTH = 400
MAX_QUOTE_LENGTH = 100
MAX_PLACES = 3


def judge_rows(run: RunResult) -> Iterator[Row]:
    """What judging used, apart from the session."""
    if run.judge:
        calls = Cell(numbers.format_count(run.judge.requests, "call"), Tone.DIM)
        tokens = Cell(f"{numbers.whole(run.judge.usage.total)} tokens", Tone.DIM)
        names = Cell(", ".join(run.judge.models) or "no answer", Tone.DIM)
        notices = tuple(Cell(sentence(notice), Tone.WARN) for notice in run.judge.notices)
        yield Row("Judge cost", (Cell(cost([run.judge])), calls, tokens, names), notices)


def criteria_title(suite: ResolvedSuite) -> str:
    """The heading above what a suite asks for."""
    if not suite.checks:
        return "Acceptance criteria"
    return "Criteria and checks" if suite.criteria else "Checks"


def criterion_rows(run: RunResult) -> Iterator[Row]:
    """A row per criterion, in the suite's order."""
    details = run.details(FulfillmentDetails)
    if details is None or not details.criteria:
        return
    for number, judgement in enumerate(details.criteria, start=1):
        is_ignored = run.config.undecided == "ignore" and judgement.verdict is CriterionVerdict.UNDECIDED
        votes = [Cell(_votes(judgement.split), Tone.WARN)] if judgement.split else []
        cells = (IGNORED if is_ignored else VERDICTS[judgement.verdict], *votes, _criterion(judgement))
        yield Row(str(number), cells, _grounds(judgement))
    yield from (Row("", (Cell(sentence(note), Tone.WARN),)) for note in details.notes)


def unmet_rows(run: RunResult) -> tuple[Row, ...]:
    """A row per criterion that is not met."""
    words = {CriterionVerdict.UNDECIDED: "Undecided"}
    return tuple(
        Row(words.get(judgement.verdict, "Not met"), (_criterion(judgement),), _grounds(judgement))
        for judgement in failed_criteria(run)
    )


def _criterion(judgement: CriterionJudgement) -> Cell:
    return Cell(sentence(judgement.criterion, MAX_CRITERION_LENGTH))


def _grounds(judgement: CriterionJudgement) -> tuple[Cell, ...]:
    """The judge's reason, and where it can be checked."""
    lines = (sentence(judgement.reasoning, MAX_REASON_LENGTH), *_places(judgement.evidence))
    return tuple(Cell(line, Tone.DIM) for line in lines if line)


def _places(evidence: Sequence[Citation]) -> Iterator[str]:
    for cited in evidence[:MAX_PLACES]:
        yield f"{cited.where}: {sentence(cited.quote, MAX_QUOTE_LENGTH)}" if cited.quote else cited.where


def _votes(split: Mapping[str, int]) -> str:
    return f"votes: {', '.join(f'{count} {name}' for name, count in split.items())}"


MAX_LINES = 12
MAX_TEXT_LENGTH = 300
STEERING = ("Skill(", "Agent(", "mcp__")


def tool_usage_rows(run: RunResult) -> Iterator[Row]:
    """What of the project's skills, sub-agents, MCP tools and rules was used, missed or broken."""
    details = run.details(ToolUsageDetails)
    # No row where the project offers nothing, or nobody looked.
    if details is None or not details.manifest:
        return
    yield Row("Called", tuple(_called(details.uses)))
    for label, remarks, more in (
        ("Missed", details.missed, ""),
        ("Misused", details.misused, ""),
        ("Used, but", details.instructions_ignored, ", instructions ignored"),
        ("Not judged", details.not_judged, ""),
    ):
        if remarks:
            count = Cell(f"{numbers.format_count(len(remarks), 'tool')}{more}", Tone.WARN)
            yield Row(label, (count,), first([_remark(one.tool, one, Tone.WARN) for one in remarks], MAX_LINES))
    if details.rules:
        yield _rules(details)
    if details.not_loaded:
        count = Cell(f"{len(details.not_loaded)} of {len(details.manifest)} that the project has", Tone.WARN)
        lines = [_entry(entry, entry.reason or "no reason is known") for entry in details.not_loaded]
        yield Row("Not loaded", (count,), first(lines, MAX_LINES))
    if noted := [_entry(entry, entry.note) for entry in details.manifest if entry.loaded and entry.note]:
        yield Row("Loaded, but", (), first(noted, MAX_LINES))
    if details.notes:
        yield Row("Notes", (), tuple(Cell(sentence(note, MAX_TEXT_LENGTH), Tone.DIM) for note in details.notes))


def _called(uses: Sequence[ToolUse]) -> Iterator[Cell]:
    """The project's own tools each, the built-in ones in one number: the session's section has them all."""
    own = [use for use in uses if use.tool.startswith(STEERING)]
    cells = []
    for use in own:
        trouble = [f"{count} {outcome}" for count, outcome in ((use.errors, "failed"), (use.denied, "denied")) if count]
        calls = f"{use.tool} {numbers.whole(use.calls)}"
        cells.append(Cell(f"{calls} ({', '.join(trouble)})", Tone.WARN) if trouble else Cell(calls))
    yield from first(cells, MAX_LINES) or (Cell("no skill, sub-agent or MCP tool"),)
    if built_in := sum(use.calls for use in uses) - sum(use.calls for use in own):
        yield Cell(numbers.format_count(built_in, "call of built-in tools", "calls of built-in tools"), Tone.DIM)


def _rules(details: ToolUsageDetails) -> Row:
    if details.judge is None:
        return Row("Rules", (Cell(f"{numbers.whole(len(details.rules))} loaded, not judged", Tone.DIM),))
    words = {
        RuleVerdict.FOLLOWED: ("followed", Tone.GOOD),
        RuleVerdict.BROKEN: ("broken", Tone.BAD),
        RuleVerdict.NOT_APPLICABLE: ("not applicable", Tone.DIM),
        RuleVerdict.NOT_JUDGED: ("not judged", Tone.WARN),
    }
    counts, lines = [], []
    for verdict, (word, tone) in words.items():
        if rules := [rule for rule in details.rules if rule.verdict is verdict]:
            counts.append(Cell(f"{numbers.whole(len(rules))} {word}", tone))
        if verdict in {RuleVerdict.BROKEN, RuleVerdict.NOT_JUDGED}:
            lines += [_remark(rule.rule, rule, tone) for rule in rules]
    return Row("Rules", tuple(counts), first(lines, MAX_LINES))


def _remark(subject: str, remark: ToolRemark | RuleJudgement, tone: Tone) -> Cell:
    """Why it is remarkable, where that can be checked, and how the judges voted."""
    places, votes = "; ".join(_places(remark.evidence)), _votes(remark.split) if remark.split else ""
    around = "".join(f" ({words})" for words in (places, votes) if words)
    return Cell(f"{subject}: {sentence(remark.reasoning, MAX_REASON_LENGTH)}{around}", tone)


def _entry(entry: ManifestEntry, why: str) -> Cell:
    file = "" if entry.name == entry.file else f" ({entry.file})"
    return Cell(f"{KINDS[entry.kind].word} {entry.name}{file}: {sentence(why, MAX_TEXT_LENGTH)}", Tone.WARN)
