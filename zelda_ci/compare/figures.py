"""Everything else that two sides have in numbers: no verdict hangs on these, and they say what is behind one."""

from collections.abc import Sequence

from zelda_ci.compare.sides import RunMetrics, mean
from zelda_ci.domain.comparison import FigureDelta
from zelda_ci.domain.details import CorrectnessDetails, EfficiencyDetails
from zelda_ci.domain.measures import MAX_PLAUSIBLE
from zelda_ci.domain.session import Usage

TOOL_CALLS = "toolCalls."


def figure_deltas(
    baseline: Sequence[RunMetrics], candidate: Sequence[RunMetrics], *, comparable: bool
) -> tuple[FigureDelta, ...]:
    """Means of both sides, over the trials that have the number; no difference where sides are not comparable."""
    both = [[_figures(trial) for trial in side] for side in (baseline, candidate)]
    names = dict.fromkeys(name for side in reversed(both) for trial in side for name in trial)
    # As they are computed, but all tools together.
    tools = sorted(name for name in names if name.startswith(TOOL_CALLS))
    listed = [name for name in names if name not in tools]
    place = listed.index("toolCalls") + 1 if "toolCalls" in listed else len(listed)
    found = []
    for name in (*listed[:place], *tools, *listed[place:]):
        # A tool that a session does not name was not called in it.
        known = "toolCalls" if name in tools else name
        values = [[trial.get(name, 0.0) for trial in side if known in trial] for side in both]
        before, after = (mean(each) if each else None for each in values)
        change = after - before if comparable and before is not None and after is not None else None
        found.append(FigureDelta(name=name, baseline=before, candidate=after, change=change))
    return tuple(found)


def _figures(trial: RunMetrics) -> dict[str, float]:
    """The numbers of one trial by name; those that are missing or not plausible are left out."""
    commands, session = trial.run.details(CorrectnessDetails), trial.run.details(EfficiencyDetails)
    found: dict[str, float | None] = {}
    if commands:
        found["build"] = 100.0 * (commands.build.exit_code == 0) if commands.build else None
        if (tests := commands.tests) and tests.recognised:
            found |= {"tests": tests.total, "tests.passed": tests.passed}
            found |= {"tests.failed": tests.failed + tests.errored, "tests.skipped": tests.skipped}
        if coverage := commands.coverage:
            found |= {"coverage.lines": coverage.lines, "coverage.branches": coverage.branches}
    if session:
        found["toolCalls"] = sum(session.tool_calls.values())
        found |= {f"{TOOL_CALLS}{tool}": calls for tool, calls in session.tool_calls.items()}
        found |= {
            "toolErrors": session.tool_errors,
            "deniedCalls": session.denied_calls,
            "apiRetries": session.api_retries,
            "tokens.input": session.usage.input_tokens,
            "tokens.output": session.usage.output_tokens,
            "tokens.cacheRead": session.usage.cache_read_tokens,
            "tokens.cacheWrite": session.usage.cache_write_tokens,
        }
    if judge := trial.run.judge:
        found |= {"judge.costUsd": judge.cost_usd, "judge.tokens": sum(judge.models.values(), Usage()).total}
    return {name: float(value) for name, value in found.items() if value is not None and abs(value) < MAX_PLAUSIBLE}
