"""What a session cost, and how well that compares with what the suite wants."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from zelda_ci.domain.context import EvalContext
from zelda_ci.domain.details import EfficiencyDetails
from zelda_ci.domain.measures import Metric
from zelda_ci.domain.session import (
    ApiUsage,
    Denied,
    ModelUsage,
    Retried,
    SessionStatus,
    SessionTranscript,
    Usage,
)
from zelda_ci.domain.suite import EfficiencyTargets, ResolvedSuite
from zelda_ci.metrics.base import Outcome, Scored, Services, Unscored

LIMITS: Final = {
    SessionStatus.MAX_TURNS: "turns",
    SessionStatus.BUDGET_EXCEEDED: "budget",
    SessionStatus.TIMED_OUT: "time",
}


class Efficiency:
    """Tokens, cost, turns and time of a session; needs no judge."""

    metric: Final = Metric.EFFICIENCY
    version: Final = "1"

    def __init__(self, _services: Services) -> None:
        """Need nothing."""

    async def evaluate(self, context: EvalContext) -> Outcome:
        return score_efficiency(context.suite, context.transcript, context.api)


def score_efficiency(suite: ResolvedSuite, transcript: SessionTranscript, api: ApiUsage) -> Outcome:
    """Score a session from 0 to 100 against the suite's `efficiencyTargets`.

    Each target is a part, and the score is the mean of the parts:

        part = 100 * min(1, target / used)

    so a part has full marks up to its target, half at twice the target, and never falls to nothing. Without targets
    the turns that `maxTurns` allows are the measure, and each turn after the first costs the same:

        score = 100 * (1 - (turns - 1) / maxTurns)

    A session that used up its turns, budget or time without completing scores 0: all it was given went into unfinished
    work. One that failed or was interrupted is unscored: how little it used says nothing.
    """
    details = _details(transcript, api, _spent(transcript, api))
    if limit := LIMITS.get(transcript.status):
        return Scored(0.0, f"The session used up its {limit} without completing.", details)
    if transcript.status is not SessionStatus.COMPLETED:
        reason = f": {transcript.reason}" if transcript.reason else "."
        return Unscored(f"The session did not complete{reason}", details)
    if not details.turns:
        return Unscored("The model gave no response.", details)
    return _compared(details, list(_parts(suite, details)), _remark(details, api))


@dataclass(frozen=True)
class _Part:
    name: str
    used: float
    target: float
    score: float

    def __str__(self) -> str:
        return f"{self.name} {self.used:.6g} of {self.target:.6g} ({self.score:.1f})"


def _compared(details: EfficiencyDetails, parts: list[_Part], remark: str) -> Outcome:
    if not parts:
        return Unscored(f"The cost is not known: no list price of {', '.join(details.models)}.", details)
    mean = sum(part.score for part in parts) / len(parts)
    scored = details.replace(parts={part.name: part.score for part in parts})
    return Scored(mean, f"{', '.join(map(str, parts))}.{remark}", scored)


def _parts(suite: ResolvedSuite, details: EfficiencyDetails) -> Iterator[_Part]:
    targets = suite.efficiency_targets
    if targets == EfficiencyTargets():
        allowed = suite.execution.max_turns
        left = max(0.0, 1 - (details.turns - 1) / allowed)
        yield _Part("maxTurns", details.turns, allowed, 100 * left)
        return
    for name, used, target in (
        ("costUsd", details.cost_usd, targets.cost_usd if details.cost_known else None),
        ("tokens", details.usage.total, targets.tokens),
        ("turns", details.turns, targets.turns),
        ("durationSeconds", details.wall_seconds, targets.duration_seconds),
    ):
        if target is not None:
            yield _Part(name, used, target, 100 * (target / max(used, target)))


@dataclass(frozen=True)
class _Spent:
    """What the session used, as its most trustworthy witness tells."""

    by: Literal["claudeCode", "proxy", "transcript"]
    models: dict[str, ModelUsage]
    cost_usd: float
    api_seconds: float


def _spent(transcript: SessionTranscript, api: ApiUsage) -> _Spent:
    """Claude Code's own last result, unless the session went on after it and the proxy heard the rest."""
    ended = transcript.ended
    went_on = ended is not None and any(turn.at > ended.at for turn in transcript.turns)
    if ended and ended.model_usage and not (went_on and api.models):
        by_model = sum(used.cost_usd for used in ended.model_usage.values())
        cost = by_model if ended.cost_usd is None else ended.cost_usd
        return _Spent("claudeCode", ended.model_usage, cost, ended.api_seconds)
    if api.models:
        return _Spent("proxy", api.models, api.cost_usd, api.api_seconds)
    return _Spent("transcript", _heard(transcript), 0.0, api.api_seconds)


def _remark(details: EfficiencyDetails, api: ApiUsage) -> str:
    counted, proxied = details.usage.total, sum(used.total for used in api.models.values())
    if not api.models or abs(proxied - counted) <= 0.01 * max(proxied, counted):
        return ""
    return f" Claude Code counted {counted} tokens and the model proxy {proxied}; the former are used."


def _heard(transcript: SessionTranscript) -> dict[str, ModelUsage]:
    models: dict[str, Usage] = {}
    for turn in transcript.turns:
        if turn.usage:
            models[turn.model] = models.get(turn.model, Usage()) + turn.usage
    return {model: ModelUsage(**used.model_dump(), cost_known=False) for model, used in models.items()}


def _details(transcript: SessionTranscript, api: ApiUsage, spent: _Spent) -> EfficiencyDetails:
    answered = [turn for turn in transcript.turns if not turn.synthetic]
    main = [turn for turn in answered if turn.parent_tool_call_id is None]
    calls = transcript.tool_calls
    retried = sum(isinstance(entry, Retried) for entry in transcript.entries)
    return EfficiencyDetails(
        counted_by=spent.by,
        usage=sum(spent.models.values(), Usage()),
        models=dict(sorted(spent.models.items())),
        cost_usd=spent.cost_usd,
        cost_known=bool(spent.models) and all(used.cost_known for used in spent.models.values()),
        turns=len(main),
        subagent_turns=len(answered) - len(main),
        # Waiting for the API's limits says nothing about the session; Claude Code does not know of it.
        wall_seconds=max(0.0, transcript.wall_seconds - api.wait_seconds),
        api_seconds=api.api_seconds if api.wait_seconds else spent.api_seconds,
        tool_calls=dict(sorted(Counter(call.label for call in calls).items())),
        tool_errors=sum(call.is_error and not call.denied for call in calls),
        denied_calls=_denied(transcript),
        api_retries=api.retries if api.requests else retried,
        parts={},
    )


def _denied(transcript: SessionTranscript) -> int:
    """Calls, however often their denial was told; a denial that names no call is one by itself."""
    denials = [entry for entry in transcript.entries if isinstance(entry, Denied)]
    named = {entry.tool_call_id for entry in denials if entry.tool_call_id}
    return len(named) + sum(entry.tool_call_id is None for entry in denials)
