"""Everything else that two sides have in numbers: no verdict hangs on these, and they say what is behind one."""

from collections.abc import Iterator, Mapping, Sequence

from zelda_ci.compare.sides import RunMetrics, mean
from zelda_ci.domain.comparison import FigureDelta
from zelda_ci.domain.details import EfficiencyDetails
from zelda_ci.domain.measures import MAX_PLAUSIBLE
from zelda_ci.domain.session import Usage

TOOL_CALLS = "toolCalls."


def figure_deltas(
    baseline: Sequence[RunMetrics], candidate: Sequence[RunMetrics], *, comparable: bool
) -> tuple[FigureDelta, ...]:
    """Means of both sides, over the trials that have the number; no difference where sides are not comparable."""
    old, new = _means(baseline), _means(candidate)
    found = []
    for name in _in_order(old, new):
        before, after = (_value(name, means) for means in (old, new))
        change = after - before if comparable and before is not None and after is not None else None
        found.append(FigureDelta(name=name, baseline=before, candidate=after, change=change))
    return tuple(found)


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
    details, judge = trial.correctness, trial.run.judge
    if details and details.build:
        yield "build", 100.0 * (details.build.exit_code == 0)
    if details and (tests := details.tests) and tests.recognised:
        yield from {
            "tests": tests.total,
            "tests.passed": tests.passed,
            "tests.failed": tests.failed + tests.errored,
            "tests.skipped": tests.skipped,
        }.items()
    if details and (coverage := details.coverage):
        shares = {"coverage.lines": coverage.lines, "coverage.branches": coverage.branches}
        yield from ((name, share) for name, share in shares.items() if share is not None)
    if session := trial.run.details(EfficiencyDetails):
        yield from {
            "toolCalls": sum(session.tool_calls.values()),
            **{f"{TOOL_CALLS}{tool}": calls for tool, calls in session.tool_calls.items()},
            "toolErrors": session.tool_errors,
            "deniedCalls": session.denied_calls,
            "apiRetries": session.api_retries,
            "tokens.input": session.usage.input_tokens,
            "tokens.output": session.usage.output_tokens,
            "tokens.cacheRead": session.usage.cache_read_tokens,
            "tokens.cacheWrite": session.usage.cache_write_tokens,
        }.items()
    if judge:
        yield "judge.costUsd", judge.cost_usd
        yield "judge.tokens", sum(judge.models.values(), Usage()).total
