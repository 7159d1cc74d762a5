"""What a session made of the project's skills, sub-agents, servers and rules."""

from collections.abc import Iterator, Sequence

from pydantic import ValidationError

from zelda_ci.domain.evaluation import EvalResult, Metric
from zelda_ci.domain.judgement import Citation, RuleJudgement, RuleVerdict, ToolRemark, ToolUsageDetails, ToolUse
from zelda_ci.domain.manifest import ManifestEntry
from zelda_ci.domain.run import RunResult
from zelda_ci.reporter.view import numbers
from zelda_ci.reporter.view.escape import sentence, visible
from zelda_ci.reporter.view.nouns import Cell, Row, Section, Tone

MOST_LINES = 12
MOST_PLACES = 2
LONGEST_QUOTE = 80
STEERING = ("Skill(", "Agent(", "mcp__")


def tool_usage_section(run: RunResult) -> tuple[Section, ...]:
    """One section, or none where the project offers nothing, or nobody looked."""
    result = run.evaluations.get(Metric.TOOL_USAGE)
    details = tool_details(result)
    if result is None or details is None or not details.manifest:
        return ()
    return (Section("Tool usage", tuple(_rows(result, details))),)


def tool_details(result: EvalResult | None) -> ToolUsageDetails | None:
    """A file of another Zelda may hold other details, and then they are not shown."""
    try:
        return ToolUsageDetails.model_validate(result.details) if result else None
    except ValidationError:
        return None


def _rows(result: EvalResult, details: ToolUsageDetails) -> Iterator[Row]:
    yield Row("Called", tuple(_called(details.uses)))
    for label, remarks in (("Missed", details.missed), ("Misused", details.misused)):
        if remarks:
            count = Cell(numbers.count(len(remarks), "tool"), Tone.WARN)
            yield Row(label, (count,), _capped([_remark(remark) for remark in remarks]))
    if details.rules:
        broken = [rule for rule in details.rules if rule.verdict is RuleVerdict.BROKEN]
        yield Row("Rules", tuple(_rules(details)), _capped([_broken(rule) for rule in broken]))
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
    for use in own[:MOST_LINES]:
        trouble = [f"{count} {what}" for count, what in ((use.errors, "failed"), (use.denied, "denied")) if count]
        told = f"{visible(use.tool, 80)} {numbers.whole(use.calls)}"
        yield Cell(f"{told} ({', '.join(trouble)})" if trouble else told, Tone.WARN if trouble else Tone.NEUTRAL)
    if not own:
        yield Cell("no skill, sub-agent or MCP tool")
    elif len(own) > MOST_LINES:
        yield Cell(f"and {numbers.whole(len(own) - MOST_LINES)} more", Tone.DIM)
    if built_in := sum(use.calls for use in uses) - sum(use.calls for use in own):
        yield Cell(numbers.count(built_in, "call of built-in tools", "calls of built-in tools"), Tone.DIM)


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


def _broken(rule: RuleJudgement) -> Cell:
    return Cell(f"{visible(rule.rule)}: {_reasoned(rule)}", Tone.BAD)


def _reasoned(said: ToolRemark | RuleJudgement) -> str:
    """Why, and where it can be looked up."""
    places = "; ".join(_place(cited) for cited in said.evidence[:MOST_PLACES])
    where = f" ({places})" if places else " (the evidence was not found)" if said.unverified else ""
    return f"{sentence(said.reasoning, 400)}{where}"


def _place(cited: Citation) -> str:
    where = visible(cited.where, 40)
    return f"{where}: {sentence(cited.quote, LONGEST_QUOTE)}" if cited.quote else where


def _not_loaded(entry: ManifestEntry) -> Cell:
    return Cell(f"{_named(entry)}: {sentence(entry.reason or 'no reason is known', 300)}", Tone.WARN)


def _named(entry: ManifestEntry) -> str:
    kind = {"mcpServer": "MCP server", "claudeMd": "CLAUDE.md", "agent": "sub-agent"}.get(entry.kind, entry.kind)
    name = visible(entry.file) if entry.name == entry.file else f"{visible(entry.name, 80)} ({visible(entry.file)})"
    return f"{kind} {name}"


def _assessment(result: EvalResult, details: ToolUsageDetails) -> Iterator[Cell]:
    yield Cell(sentence(result.reasoning))
    if details.judge:
        yield Cell(f"judged by {visible(details.judge.model, 80)}", Tone.DIM)


def _capped(lines: Sequence[Cell]) -> tuple[Cell, ...]:
    if len(lines) <= MOST_LINES:
        return tuple(lines)
    return (*lines[:MOST_LINES], Cell(f"and {numbers.whole(len(lines) - MOST_LINES)} more", Tone.DIM))
