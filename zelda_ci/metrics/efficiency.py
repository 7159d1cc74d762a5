"""What a session cost, and how well that compares with what the suite wants."""

from collections import Counter
from typing import Literal

from zelda_ci.domain.details import EfficiencyDetails
from zelda_ci.domain.measures import MEASURES, Measure, MeasureSpec, Metric
from zelda_ci.domain.run import EvalContext
from zelda_ci.domain.session import ApiUsage, Denied, ModelUsage, Retried, SessionStatus, SessionTranscript, Usage
from zelda_ci.domain.suite import EfficiencyTargets
from zelda_ci.metrics.base import Outcome, Scored, Services, Unscored

LIMITS = {SessionStatus.MAX_TURNS: "turns", SessionStatus.BUDGET_EXCEEDED: "budget", SessionStatus.TIMED_OUT: "time"}


class Efficiency:
    """Tokens, cost, turns and time of a session; needs no judge."""

    metric = Metric.EFFICIENCY
    version = "1"

    def __init__(self, _services: Services) -> None:
        """Need nothing."""

    async def evaluate(self, context: EvalContext) -> Outcome:
        """Score a session from 0 to 100: the mean of 100 * min(1, target / used) over the suite's `efficiencyTargets`.

        Without targets the turns that `maxTurns` allows are the measure: 100 * (1 - (turns - 1) / maxTurns). A session
        that used up its turns, budget or time without completing scores 0: all it was given went into unfinished work.
        One that failed or was interrupted is unscored: how little it used says nothing.
        """
        suite, transcript, api = context.suite, context.transcript, context.api
        details = _details(transcript, api)
        if limit := LIMITS.get(transcript.status):
            return Scored(0.0, f"The session used up its {limit} without completing.", details)
        if transcript.status is not SessionStatus.COMPLETED:
            reason = f": {transcript.reason}" if transcript.reason else "."
            return Unscored(f"The session did not complete{reason}", details)
        if not details.turns:
            return Unscored("The model gave no response.", details)
        targets = suite.efficiency_targets
        used = {
            "costUsd": (details.cost_usd, targets.cost_usd if details.cost_known else None),
            "tokens": (details.usage.total, targets.tokens),
            "turns": (details.turns, targets.turns),
            "durationSeconds": (details.wall_seconds, targets.duration_seconds),
        }
        wanted = ((name, amount, target) for name, (amount, target) in used.items() if target is not None)
        parts = [(name, amount, target, 100 * (target / max(amount, target))) for name, amount, target in wanted]
        if targets == EfficiencyTargets():
            allowed = suite.execution.max_turns
            parts = [("maxTurns", details.turns, allowed, 100 * max(0.0, 1 - (details.turns - 1) / allowed))]
        if not parts:
            return Unscored(f"The cost is not known: no list price of {', '.join(details.models)}.", details)
        told = ", ".join(_part(MEASURES[Measure(name.replace("maxT", "t"))], *numbers) for name, *numbers in parts)
        counted, proxied = details.usage.total, sum(usage.total for usage in api.models.values())
        differ = api.models and abs(proxied - counted) > 0.01 * max(proxied, counted)
        remark = f" Claude Code counted {counted} tokens and the model proxy {proxied}; the former are used."
        scored = details.replace(parts={name: score for name, _, _, score in parts})
        return Scored(sum(scored.parts.values()) / len(parts), f"{told}.{remark if differ else ''}", scored)


def _part(spec: MeasureSpec, amount: float, target: float, score: float) -> str:
    return f"{spec.label} {spec.unit.write(amount)} of {spec.unit.write(target)} ({score:.1f})"


def _spent(
    transcript: SessionTranscript, api: ApiUsage
) -> tuple[Literal["claudeCode", "proxy", "transcript"], dict[str, ModelUsage], float, float]:
    """What the session used, as its most trustworthy witness tells: by model, in dollars and in seconds of the API."""
    # Claude Code's own last result, unless the session went on after it and the proxy heard the rest.
    ended = transcript.ended
    went_on = ended is not None and any(turn.at > ended.at for turn in transcript.turns)
    if ended and ended.model_usage and not (went_on and api.models):
        cost = sum(used.cost_usd for used in ended.model_usage.values()) if ended.cost_usd is None else ended.cost_usd
        # The proxy guesses what an answer without a usage has cost; Claude Code takes it to be free.
        return "claudeCode", ended.model_usage, cost if api.cost_known else max(cost, api.cost_usd), ended.api_seconds
    if api.models:
        return "proxy", api.models, api.cost_usd, api.api_seconds
    heard: dict[str, Usage] = {}
    for turn in transcript.turns:
        if turn.usage:
            heard[turn.model] = heard.get(turn.model, Usage()) + turn.usage
    models = {model: ModelUsage(**used.model_dump(), cost_known=False) for model, used in heard.items()}
    return "transcript", models, 0.0, api.api_seconds


def _details(transcript: SessionTranscript, api: ApiUsage) -> EfficiencyDetails:
    by, models, cost_usd, api_seconds = _spent(transcript, api)
    answered = [turn for turn in transcript.turns if not turn.synthetic]
    main = [turn for turn in answered if turn.parent_tool_call_id is None]
    denials = [entry for entry in transcript.entries if isinstance(entry, Denied)]
    retried = sum(isinstance(entry, Retried) for entry in transcript.entries)
    return EfficiencyDetails(
        counted_by=by,
        usage=sum(models.values(), Usage()),
        models=dict(sorted(models.items())),
        cost_usd=cost_usd,
        cost_known=bool(models) and api.cost_known and all(used.cost_known for used in models.values()),
        turns=len(main),
        subagent_turns=len(answered) - len(main),
        # Waiting for the API's limits says nothing about the session; Claude Code does not know of it.
        wall_seconds=max(0.0, transcript.wall_seconds - api.wait_seconds),
        api_seconds=api.api_seconds if api.wait_seconds else api_seconds,
        tool_calls=dict(sorted(Counter(call.label for call in transcript.tool_calls).items())),
        tool_errors=sum(call.is_error and not call.denied for call in transcript.tool_calls),
        # Calls, however often their denial was told; a denial that names no call is one by itself.
        denied_calls=len({entry.tool_call_id or position for position, entry in enumerate(denials)}),
        api_retries=api.retries if api.requests else retried,
        parts={},
    )
