"""What the judges said of acceptance criteria and of tool usage, with the places where it can be checked."""

from collections.abc import Iterator, Sequence

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
from zelda_ci.domain.evaluation import EvalResult
from zelda_ci.domain.kinds import KINDS
from zelda_ci.domain.manifest import ManifestEntry
from zelda_ci.domain.measures import Metric
from zelda_ci.domain.outcome import failed_criteria
from zelda_ci.domain.run import JudgeUsage, RunResult
from zelda_ci.domain.session import Usage
from zelda_ci.report.model import Cell, Row, Section, Tone
from zelda_ci.report.text import sentence, visible

VERDICTS = {
    CriterionVerdict.PASS: Cell("PASS", Tone.GOOD),
    CriterionVerdict.FAIL: Cell("FAIL", Tone.BAD),
    CriterionVerdict.UNDECIDED: Cell("undecided", Tone.BAD),
    CriterionVerdict.NOT_JUDGED: Cell("not judged", Tone.BAD),
}

IGNORED = Cell("undecided, ignored", Tone.WARN)

MAX_CRITERION_LENGTH = 300
MAX_REASONING_LENGTH = 400
MAX_CRITERION_QUOTE = 100
MAX_CITATIONS = 3


def criteria_section(run: RunResult) -> tuple[Section, ...]:
    """A row per criterion, in the suite's order; no section where none was judged."""
    details = run.details(FulfillmentDetails)
    if details is None or not details.criteria:
        return ()
    ignores = run.config.undecided == "ignore"
    rows = [_row(number, judgement, ignores=ignores) for number, judgement in enumerate(details.criteria, start=1)]
    return (Section("Acceptance criteria", (*rows, *_notes(details))),)


def judge_rows(run: RunResult) -> Iterator[Row]:
    """What judging used, apart from the session."""
    if run.judge:
        names = ", ".join(visible(name) for name in run.judge.models) or "no answer"
        yield Row("Judge cost", (Cell(judge_cost([run.judge])), *_calls(run.judge), Cell(names, Tone.DIM)))
        yield from (Row("", (Cell(sentence(notice), Tone.WARN),)) for notice in run.judge.notices)


def is_cost_known(use: JudgeUsage) -> bool:
    """Whether every model that judged has a list price."""
    return all(model.cost_known for model in use.models.values())


def judge_cost(uses: Sequence[JudgeUsage]) -> str:
    """Of several judgings together."""
    return numbers.money(sum(use.cost_usd for use in uses), exact=all(map(is_cost_known, uses)))


def _calls(usage: JudgeUsage) -> Iterator[Cell]:
    yield Cell(numbers.format_count(usage.requests, "call"), Tone.DIM)
    yield Cell(f"{numbers.whole(sum(usage.models.values(), Usage()).total)} tokens", Tone.DIM)


def _row(number: int, judgement: CriterionJudgement, *, ignores: bool) -> Row:
    cells = [IGNORED if ignores and judgement.verdict is CriterionVerdict.UNDECIDED else VERDICTS[judgement.verdict]]
    if judgement.split:
        votes = ", ".join(f"{count} {visible(name)}" for name, count in judgement.split.items())
        cells.append(Cell(f"votes: {votes}", Tone.WARN))
    cells.append(Cell(sentence(judgement.criterion, MAX_CRITERION_LENGTH)))
    return Row(str(number), tuple(cells), tuple(_reasons(judgement)))


def unmet_rows(run: RunResult) -> tuple[Row, ...]:
    """A row per criterion that is not met."""
    return tuple(
        Row(
            "Undecided" if judgement.verdict is CriterionVerdict.UNDECIDED else "Not met",
            (Cell(sentence(judgement.criterion, MAX_CRITERION_LENGTH)),),
            tuple(_reasons(judgement)),
        )
        for judgement in failed_criteria(run)
    )


def _reasons(judgement: CriterionJudgement) -> Iterator[Cell]:
    """The judge's reason, and where it can be checked."""
    if judgement.reasoning:
        yield Cell(sentence(judgement.reasoning, MAX_REASONING_LENGTH), Tone.DIM)
    yield from (Cell(_citation(place), Tone.DIM) for place in judgement.evidence[:MAX_CITATIONS])


def _citation(place: Citation) -> str:
    where = visible(place.where)
    return f"{where}: {sentence(place.quote, MAX_CRITERION_QUOTE)}" if place.quote else where


def _notes(details: FulfillmentDetails) -> Iterator[Row]:
    for note in details.notes:
        yield Row("", (Cell(sentence(note), Tone.WARN),))


MAX_LINES = 12
MAX_PLACES = 2
MAX_TOOL_QUOTE = 80
STEERING = ("Skill(", "Agent(", "mcp__")


def tool_usage_section(run: RunResult) -> tuple[Section, ...]:
    """One section, or none where the project offers nothing, or nobody looked."""
    result = run.evaluations.get(Metric.TOOL_USAGE)
    details = run.details(ToolUsageDetails)
    if result is None or details is None or not details.manifest:
        return ()
    return (Section("Tool usage", tuple(_rows(result, details))),)


def _rows(result: EvalResult, details: ToolUsageDetails) -> Iterator[Row]:
    yield Row("Called", tuple(_called(details.uses)))
    remarked: dict[str, Sequence[ToolRemark]] = {
        "Missed": details.missed,
        "Misused": details.misused,
        "Used, but": details.instructions_ignored,
        "Not judged": details.not_judged,
    }
    for label, remarks in remarked.items():
        if remarks:
            ignored = ", instructions ignored" if remarks is details.instructions_ignored else ""
            count = Cell(f"{numbers.format_count(len(remarks), 'tool')}{ignored}", Tone.WARN)
            yield Row(label, (count,), _capped([_remark(remark) for remark in remarks]))
    if details.rules:
        tones = {RuleVerdict.BROKEN: Tone.BAD, RuleVerdict.NOT_JUDGED: Tone.WARN} if details.judge else {}
        wanted = [rule for rule in details.rules if rule.verdict in tones]
        wanted.sort(key=lambda rule: [*tones].index(rule.verdict))
        yield Row("Rules", tuple(_rules(details)), _capped([_rule(rule, tones[rule.verdict]) for rule in wanted]))
    if details.not_loaded:
        count = Cell(f"{len(details.not_loaded)} of {len(details.manifest)} that the project has", Tone.WARN)
        yield Row("Not loaded", (count,), _capped([_not_loaded(entry) for entry in details.not_loaded]))
    if noted := [entry for entry in details.manifest if entry.loaded and entry.note]:
        lines = [Cell(f"{_named(entry)}: {sentence(entry.note or '', 300)}", Tone.WARN) for entry in noted]
        yield Row("Loaded, but", (), _capped(lines))
    if result.score is not None:
        yield Row("Assessment", tuple(_assessment(result, details)))
    if details.notes:
        yield Row("Notes", (), tuple(Cell(sentence(note, 300), Tone.DIM) for note in details.notes))


def _called(uses: Sequence[ToolUse]) -> Iterator[Cell]:
    """The project's own tools each, the built-in ones in one number: the session's section has them all."""
    own = [use for use in uses if use.tool.startswith(STEERING)]
    for use in own[:MAX_LINES]:
        trouble = [f"{count} {outcome}" for count, outcome in ((use.errors, "failed"), (use.denied, "denied")) if count]
        calls = f"{visible(use.tool, 80)} {numbers.whole(use.calls)}"
        yield Cell(f"{calls} ({', '.join(trouble)})" if trouble else calls, Tone.WARN if trouble else Tone.NEUTRAL)
    if not own:
        yield Cell("no skill, sub-agent or MCP tool")
    elif len(own) > MAX_LINES:
        yield Cell(f"and {numbers.whole(len(own) - MAX_LINES)} more", Tone.DIM)
    if built_in := sum(use.calls for use in uses) - sum(use.calls for use in own):
        yield Cell(numbers.format_count(built_in, "call of built-in tools", "calls of built-in tools"), Tone.DIM)


def _remark(remark: ToolRemark) -> Cell:
    return Cell(f"{visible(remark.tool, 80)}: {_reasoned(remark)}", Tone.WARN)


def _rules(details: ToolUsageDetails) -> Iterator[Cell]:
    if details.judge is None:
        yield Cell(f"{numbers.whole(len(details.rules))} loaded, not judged", Tone.DIM)
        return
    words = {
        RuleVerdict.FOLLOWED: ("followed", Tone.GOOD),
        RuleVerdict.BROKEN: ("broken", Tone.BAD),
        RuleVerdict.NOT_APPLICABLE: ("not applicable", Tone.DIM),
        RuleVerdict.NOT_JUDGED: ("not judged", Tone.WARN),
    }
    for verdict, (word, tone) in words.items():
        if count := sum(rule.verdict is verdict for rule in details.rules):
            yield Cell(f"{numbers.whole(count)} {word}", tone)


def _rule(rule: RuleJudgement, tone: Tone) -> Cell:
    return Cell(f"{visible(rule.rule)}: {_reasoned(rule)}", tone)


def _reasoned(remark: ToolRemark | RuleJudgement) -> str:
    """Why, and where it can be looked up."""
    places = "; ".join(_place(cited) for cited in remark.evidence[:MAX_PLACES])
    where = f" ({places})" if places else ""
    votes = ", ".join(f"{count} {visible(name)}" for name, count in (remark.split or {}).items())
    return f"{sentence(remark.reasoning, 400)}{where}{f' (votes: {votes})' if votes else ''}"


def _place(cited: Citation) -> str:
    where = visible(cited.where, 40)
    return f"{where}: {sentence(cited.quote, MAX_TOOL_QUOTE)}" if cited.quote else where


def _not_loaded(entry: ManifestEntry) -> Cell:
    return Cell(f"{_named(entry)}: {sentence(entry.reason or 'no reason is known', 300)}", Tone.WARN)


def _named(entry: ManifestEntry) -> str:
    kind = KINDS[entry.kind].word
    name = visible(entry.file) if entry.name == entry.file else f"{visible(entry.name, 80)} ({visible(entry.file)})"
    return f"{kind} {name}"


def _assessment(result: EvalResult, details: ToolUsageDetails) -> Iterator[Cell]:
    yield Cell(sentence(result.reasoning))
    if details.judge:
        yield Cell(f"judged by {visible(details.judge.model, 80)}", Tone.DIM)


def _capped(lines: Sequence[Cell]) -> tuple[Cell, ...]:
    if len(lines) <= MAX_LINES:
        return tuple(lines)
    return (*lines[:MAX_LINES], Cell(f"and {numbers.whole(len(lines) - MAX_LINES)} more", Tone.DIM))
