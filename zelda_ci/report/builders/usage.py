"""What a session used against its targets, and the scores of its metrics."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from zelda_ci.domain import numbers
from zelda_ci.domain.details import EfficiencyDetails
from zelda_ci.domain.measures import Metric, own_measure
from zelda_ci.domain.run import RunResult
from zelda_ci.domain.session import ApiUsage
from zelda_ci.report.model import Cell, Row, Tone
from zelda_ci.report.text import sentence, written
from zelda_ci.report.words import first

MAX_TOOLS = 20

Used = EfficiencyDetails | ApiUsage


def used(run: RunResult) -> Used | None:
    """What the session used, as its metric or else the model proxy counted it; absent where it reached no model."""
    return run.details(EfficiencyDetails) or (run.api if run.api.requests else None)


def spent(runs: Iterable[RunResult]) -> list[Used]:
    """What sessions and judges used."""
    return [use for run in runs for use in (used(run), run.judge) if use]


def cost(uses: Sequence[Used]) -> str:
    """Cost of several together; empty where there are none."""
    total, is_known = sum(use.cost_usd for use in uses), all(use.cost_known for use in uses)
    return numbers.money(total, exact=is_known) if uses else ""


def use_rows(run: RunResult, use: Used) -> Iterator[Row]:
    """Tokens, cost, turns, time, models, tools and errors, as far as they are known."""
    targets, limit = run.config.efficiency_targets, run.config.execution.max_turns
    details = use if isinstance(use, EfficiencyDetails) else None
    tokens = use.usage
    counts = (tokens.input_tokens, tokens.output_tokens, tokens.cache_read_tokens, tokens.cache_write_tokens)
    kinds = zip(counts, ("in", "out", "cache read", "cache write"), strict=True)
    split = [Cell(f"{numbers.whole(count)} {kind}", Tone.DIM) for count, kind in kinds if count]
    total = Cell(numbers.whole(tokens.total))
    yield Row("Tokens", (total, *split, *_target(tokens.total, targets.tokens, numbers.whole)))
    guessed = [] if use.cost_known else [Cell("no list price known", Tone.WARN)]
    yield Row("Session cost", (Cell(cost([use])), *guessed, *_target(use.cost_usd, targets.cost_usd, numbers.money)))
    in_api = Cell(f"{numbers.duration(use.api_seconds)} in the API", Tone.DIM)
    waited = f"waited for the API's rate limit: {numbers.duration(run.api.wait_seconds)}"
    time = [in_api, *([Cell(waited, Tone.WARN)] if run.api.wait_seconds else [])]
    if details:
        turns = [Cell(f"{numbers.whole(details.turns)} of {numbers.whole(limit)}")]
        if details.subagent_turns:
            turns.append(Cell(f"{numbers.whole(details.subagent_turns)} more in sub-agents", Tone.DIM))
        yield Row("Turns", (*turns, *_target(details.turns, targets.turns, numbers.whole)))
        seconds = details.wall_seconds
        time = [Cell(numbers.duration(seconds)), *time, *_target(seconds, targets.duration_seconds, numbers.duration)]
    yield Row("Session time", tuple(time))
    models = [*use.models]
    if len(models) > 1:
        models = [f"{name} {numbers.money(model.cost_usd)}" for name, model in use.models.items()]
    yield Row("Models" if len(models) > 1 else "Model", tuple(map(Cell, models)))
    if details:
        ranked = sorted(details.tool_calls.items(), key=lambda item: (-item[1], item[0]))
        tools = [Cell(f"{name} {numbers.whole(times)}", Tone.DIM) for name, times in ranked]
        calls = numbers.format_count(sum(details.tool_calls.values()), "call")
        yield Row("Tools", (Cell(calls), *first(tools, MAX_TOOLS)))
    troubles = (
        (details.tool_errors if details else 0, "failed tool call", "failed tool calls"),
        (details.denied_calls if details else 0, "denied call", "denied calls"),
        (details.api_retries if details else run.api.retries, "API retry", "API retries"),
        (sum(run.api.errors.values()), "API error", "API errors"),
    )
    errors = tuple(Cell(numbers.format_count(*counted), Tone.WARN) for counted in troubles if counted[0])
    yield Row("Errors", errors or (Cell("none", Tone.DIM),))


def _target(value: float, target: float | None, write: Callable[[float], str]) -> Iterator[Cell]:
    if target is not None:
        met = value <= target
        yield Cell(f"target {write(target)} {'met' if met else 'missed'}", Tone.GOOD if met else Tone.WARN)


GOOD_FROM = 80.0
FAIR_FROM = 50.0
MAX_NOTE_LENGTH = 200


def metric_rows(run: RunResult) -> Iterator[Row]:
    """The metrics that were evaluated, in the order of `Metric`."""
    for result in (run.evaluations[metric] for metric in Metric if metric in run.evaluations):
        spec = own_measure(result.metric)
        score, points = Cell("unscored", Tone.BAD if result.failed else Tone.DIM), result.score
        if (number := spec.number(result)) is not None:
            tone = Tone.GOOD if (points or 0) >= GOOD_FROM else Tone.WARN if (points or 0) >= FAIR_FROM else Tone.BAD
            score = Cell(written(spec.unit.write, number), Tone.NEUTRAL if points is None else tone)
        note = Cell(sentence(result.reasoning, MAX_NOTE_LENGTH), Tone.DIM)
        yield Row(label(result.metric), (score, note) if note.text else (score,))


def label(metric: Metric) -> str:
    """The metric's name in words."""
    return own_measure(metric).heading
