"""Everything else that two sides have in numbers: no verdict hangs on these, and they say what is behind one."""

from collections.abc import Iterator, Mapping, Sequence

from zelda_ci.compare.sides import RunMetrics, mean
from zelda_ci.domain.comparison import FigureDelta
from zelda_ci.domain.details import EfficiencyDetails
from zelda_ci.domain.measure_spec import MAX_PLAUSIBLE
from zelda_ci.domain.run import JudgeUsage
from zelda_ci.domain.session import Usage
from zelda_ci.domain.test_run import CorrectnessDetails

TOOL_CALLS = "toolCalls."


def figure_deltas(
    baseline: Sequence[RunMetrics], candidate: Sequence[RunMetrics], *, comparable: bool
) -> tuple[FigureDelta, ...]:
    """Means of both sides, over the trials that have the number; no difference where sides are not comparable."""
    old, new = _means(baseline), _means(candidate)
    return tuple(
        _delta(name, _value(name, old), _value(name, new), comparable=comparable) for name in _in_order(old, new)
    )


def _value(name: str, means: Mapping[str, float]) -> float | None:
    """A tool that a session does not name was not called in it."""
    return means.get(name, 0.0 if name.startswith(TOOL_CALLS) and "toolCalls" in means else None)


def _in_order(old: Mapping[str, float], new: Mapping[str, float]) -> list[str]:
    """As they are computed, but all tools together."""
    names = list(dict.fromkeys([*new, *old]))
    tools = sorted(name for name in names if name.startswith(TOOL_CALLS))
    others = [name for name in names if name not in tools]
    place = others.index("toolCalls") + 1 if "toolCalls" in others else len(others)
    return [*others[:place], *tools, *others[place:]]


def _delta(name: str, old: float | None, new: float | None, *, comparable: bool) -> FigureDelta:
    change = new - old if comparable and old is not None and new is not None else None
    return FigureDelta(name=name, baseline=old, candidate=new, change=change)


def _means(trials: Sequence[RunMetrics]) -> dict[str, float]:
    values: dict[str, list[float]] = {}
    for trial in trials:
        for name, value in _figures(trial):
            if abs(value) < MAX_PLAUSIBLE:
                values.setdefault(name, []).append(float(value))
    with_tools = len(values.get("toolCalls", ()))
    return {
        name: sum(numbers) / with_tools if name.startswith(TOOL_CALLS) else mean(numbers)
        for name, numbers in values.items()
    }


def _figures(trial: RunMetrics) -> Iterator[tuple[str, float]]:
    efficiency = trial.run.details(EfficiencyDetails)
    if trial.correctness:
        yield from _of_correctness(trial.correctness)
    if efficiency:
        yield from _of_session(efficiency)
    if trial.run.judge:
        yield from _of_judge(trial.run.judge)


def _of_correctness(details: CorrectnessDetails) -> Iterator[tuple[str, float]]:
    if details.build:
        yield "build", 100.0 * (details.build.exit_code == 0)
    if tests := details.tests if details.tests and details.tests.recognised else None:
        yield "tests", tests.total
        yield "tests.passed", tests.passed
        yield "tests.failed", tests.failed + tests.errored
        yield "tests.skipped", tests.skipped
    coverage = details.coverage
    if coverage and coverage.lines is not None:
        yield "coverage.lines", coverage.lines
    if coverage and coverage.branches is not None:
        yield "coverage.branches", coverage.branches


def _of_session(details: EfficiencyDetails) -> Iterator[tuple[str, float]]:
    yield "toolCalls", sum(details.tool_calls.values())
    for tool, calls in details.tool_calls.items():
        yield f"{TOOL_CALLS}{tool}", calls
    yield "toolErrors", details.tool_errors
    yield "deniedCalls", details.denied_calls
    yield "apiRetries", details.api_retries
    yield "tokens.input", details.usage.input_tokens
    yield "tokens.output", details.usage.output_tokens
    yield "tokens.cacheRead", details.usage.cache_read_tokens
    yield "tokens.cacheWrite", details.usage.cache_write_tokens


def _of_judge(usage: JudgeUsage) -> Iterator[tuple[str, float]]:
    yield "judge.costUsd", usage.cost_usd
    yield "judge.tokens", sum(usage.models.values(), Usage()).total
