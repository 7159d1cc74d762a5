"""What a session used against its targets, and the scores of its metrics."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from zelda_ci.domain import numbers
from zelda_ci.domain.details import EfficiencyDetails
from zelda_ci.domain.evaluation import EvalResult
from zelda_ci.domain.measures import Metric, own_measure
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.session import ModelUsage, Usage
from zelda_ci.report.model import Cell, Row, Tone
from zelda_ci.report.text import sentence, visible, written

MAX_TOOLS = 20


@dataclass(frozen=True)
class Used:
    """What is known about a session's use: all of it, or only what the model proxy counted."""

    tokens: Usage
    models: Mapping[str, ModelUsage]
    cost_usd: float
    cost_known: bool
    api_seconds: float
    retries: int
    details: EfficiencyDetails | None


def used(run: RunResult) -> Used | None:
    """What the session used; absent where it never reached the model."""
    if details := run.details(EfficiencyDetails):
        cost, is_known, models = details.cost_usd, details.cost_known, details.models
        return Used(details.usage, models, cost, is_known, details.api_seconds, details.api_retries, details)
    if not run.api.requests:
        return None
    models = run.api.models
    is_known = all(model.cost_known for model in models.values())
    tokens = sum(models.values(), Usage())
    return Used(tokens, models, run.api.cost_usd, is_known, run.api.api_seconds, run.api.retries, None)


def use_rows(run: RunResult, use: Used) -> Iterator[Row]:
    """Tokens, cost, turns, time, models, tools and errors, as far as they are known."""
    targets, details = run.config.efficiency_targets, use.details
    total = Cell(numbers.whole(use.tokens.total))
    yield Row("Tokens", (total, *_token_kinds(use.tokens), *_target(use.tokens.total, targets.tokens, numbers.whole)))
    cost = Cell(numbers.money(use.cost_usd, exact=use.cost_known))
    yield Row("Session cost", (cost, *_no_list_price(use), *_target(use.cost_usd, targets.cost_usd, numbers.money)))
    if details:
        yield Row("Turns", (*_turns(run, details), *_target(details.turns, targets.turns, numbers.whole)))
    yield Row("Session time", (*_time(use), *_waited(run), *_time_target(details, targets.duration_seconds)))
    yield from _model_rows(use.models)
    if details:
        yield Row("Tools", _tools(details.tool_calls))
    yield Row("Errors", _errors(run, use))


def _token_kinds(tokens: Usage) -> Iterator[Cell]:
    kinds = {
        "in": tokens.input_tokens,
        "out": tokens.output_tokens,
        "cache read": tokens.cache_read_tokens,
        "cache write": tokens.cache_write_tokens,
    }
    return (Cell(f"{numbers.whole(number)} {kind}", Tone.DIM) for kind, number in kinds.items() if number)


def _no_list_price(use: Used) -> Iterator[Cell]:
    if not use.cost_known:
        yield Cell("no list price known", Tone.WARN)


def _target(value: float, target: float | None, spell: Callable[[float], str]) -> Iterator[Cell]:
    if target is not None:
        met = value <= target
        yield Cell(f"target {spell(target)} {'met' if met else 'missed'}", Tone.GOOD if met else Tone.WARN)


def _turns(run: RunResult, details: EfficiencyDetails) -> Iterator[Cell]:
    limit = run.config.execution.max_turns
    yield Cell(f"{numbers.whole(details.turns)} of {numbers.whole(limit)}")
    if details.subagent_turns:
        yield Cell(f"{numbers.whole(details.subagent_turns)} more in sub-agents", Tone.DIM)


def _time(use: Used) -> Iterator[Cell]:
    if use.details:
        yield Cell(numbers.duration(use.details.wall_seconds))
    yield Cell(f"{numbers.duration(use.api_seconds)} in the API", Tone.DIM)


def _waited(run: RunResult) -> Iterator[Cell]:
    """What the session did not take itself."""
    if run.api.wait_seconds:
        yield Cell(f"waited for the API's rate limit: {numbers.duration(run.api.wait_seconds)}", Tone.WARN)


def _time_target(details: EfficiencyDetails | None, target: float | None) -> Iterator[Cell]:
    if details:
        yield from _target(details.wall_seconds, target, numbers.duration)


def _model_rows(models: Mapping[str, ModelUsage]) -> Iterator[Row]:
    """The model's name; where there are several, also what each of them used, the dearest first."""
    if len(models) == 1:
        yield Row("Model", tuple(Cell(visible(name)) for name in models))
        return
    ranked = sorted(models.items(), key=lambda item: (-item[1].cost_usd, item[0]))
    for position, (name, usage) in enumerate(ranked):
        cost = Cell(numbers.money(usage.cost_usd, exact=usage.cost_known))
        yield Row("" if position else "Models", (Cell(visible(name)), cost, *_token_kinds(usage)))


def _tools(calls: Mapping[str, int]) -> tuple[Cell, ...]:
    """All calls, then the tools, the most used first."""
    ranked = sorted(calls.items(), key=lambda item: (-item[1], item[0]))
    total = Cell(numbers.format_count(sum(calls.values()), "call"))
    cells = [Cell(f"{visible(name, 80)} {numbers.whole(times)}", Tone.DIM) for name, times in ranked[:MAX_TOOLS]]
    if rest := len(ranked) - len(cells):
        cells.append(Cell(f"and {numbers.format_count(rest, 'more tool')}", Tone.DIM))
    return (total, *cells)


def _errors(run: RunResult, use: Used) -> tuple[Cell, ...]:
    details = use.details
    counts = [
        (details.tool_errors if details else 0, "failed tool call", "failed tool calls"),
        (details.denied_calls if details else 0, "denied call", "denied calls"),
        (use.retries, "API retry", "API retries"),
    ]
    cells = [Cell(numbers.format_count(*counted), Tone.WARN) for counted in counts if counted[0]]
    for status, times in sorted(run.api.errors.items()):
        kind = f"HTTP {status} answer" if status.isdigit() else f"{visible(status)} error"
        cells.append(Cell(numbers.format_count(times, kind), Tone.WARN))
    return tuple(cells) or (Cell("none", Tone.DIM),)


GOOD_FROM = 80.0
FAIR_FROM = 50.0
MAX_NOTE_LENGTH = 200
NEWER = Cell("A newer Zelda computed it.", Tone.DIM)


def metric_rows(run: RunResult) -> tuple[Row, ...]:
    """The metrics that were evaluated, in the order of `Metric`; those that only a newer Zelda knows come last."""
    rows = [_row(run.evaluations[metric]) for metric in Metric if metric in run.evaluations]
    left_out = [Row(label(visible(key)), (Cell("not read", Tone.DIM), NEWER)) for key in run.unknown_metrics]
    return (*rows, *left_out)


def label(metric: Metric | str) -> str:
    """The metric's name in words; one that only a newer Zelda knows is spelled out from its key."""
    if isinstance(metric, Metric):
        return own_measure(metric).heading
    return sentence("".join(f" {char.lower()}" if char.isupper() else char for char in metric)).capitalize()


def _row(result: EvalResult) -> Row:
    note = sentence(result.reasoning, MAX_NOTE_LENGTH)
    return Row(label(result.metric), (_score(result), *([Cell(note, Tone.DIM)] if note else [])))


def _score(result: EvalResult) -> Cell:
    spec = own_measure(result.metric)
    if (number := spec.number(result)) is None:
        return Cell("unscored", Tone.BAD if result.failed else Tone.DIM)
    return Cell(written(spec.unit.write, number), Tone.NEUTRAL if result.score is None else _tone(result.score))


def _tone(score: float) -> Tone:
    if score >= GOOD_FROM:
        return Tone.GOOD
    return Tone.WARN if score >= FAIR_FROM else Tone.BAD
