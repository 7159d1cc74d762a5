"""Whether two sides differ in more than the steering files: then a difference has no single cause."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

from zelda_ci.compare.sides import RunMetrics
from zelda_ci.domain.details import CorrectnessDetails, FulfillmentDetails, JudgeIdentity, ToolUsageDetails
from zelda_ci.domain.kinds import ItemKind
from zelda_ci.domain.measures import METRIC_OF, Measure
from zelda_ci.domain.run import RunResult

Aspects = Mapping[str, Callable[[RunResult], Hashable]]


def _session_settings(run: RunResult) -> Hashable:
    config = run.config
    execution = tuple(value for name, value in config.execution if name != "model")
    return (execution, config.setup_command, config.shell if config.setup_command else None, config.history_depth)


def _commands(run: RunResult) -> Hashable:
    config = run.config
    commands = (config.build_command, config.test_command, config.command_timeout_seconds, config.coverage_threshold)
    # Of an older Zelda, an empty list meant that nothing was said.
    files = (config.test_report, config.coverage_report, config.protected_paths or None, config.keep_ignored)
    return (*commands, config.shell, *files)


def _test_formats(run: RunResult) -> str:
    """What counted the tests: packages of one runner cannot be compared with tests of another."""
    details = run.details(CorrectnessDetails)
    runners = details.tests.runners if details and details.tests else ()
    return ", ".join(sorted({f"{runner.format} ({runner.unit})" for runner in runners}))


def _judging(kind: type[FulfillmentDetails | ToolUsageDetails]) -> Aspects:
    def judge(run: RunResult) -> JudgeIdentity:
        details = run.details(kind)
        known = details.judge if details else None
        return known or JudgeIdentity(model=run.config.judge_model, prompt_version="")

    return {
        "judge models": lambda run: judge(run).model,
        "judge prompt versions": lambda run: judge(run).prompt_version,
        "numbers of judge votes": lambda run: run.config.judge.votes,
    }


# What shapes the session itself, and with it every number.
SESSION: Aspects = {
    "suite prompts": lambda run: run.config.prompt,
    "session models": lambda run: run.config.execution.model,
    "session settings": _session_settings,
    "sources of the model's words (live and replayed)": lambda run: run.replayed,
}

# What shapes one measure only.
EVALUATION: Mapping[Measure, Aspects] = {
    Measure.EFFICIENCY: {"efficiency targets": lambda run: run.config.efficiency_targets},
    Measure.FUNCTIONAL_CORRECTNESS: {"build and test settings": _commands},
    Measure.TESTS: {"build and test settings": _commands, "formats of test output": _test_formats},
    Measure.REQUIREMENT_FULFILLMENT: {
        "treatments of undecided criteria": lambda run: run.config.undecided,
        "acceptance criteria": lambda run: tuple(sorted(run.config.must_pass + run.config.acceptance_criteria)),
        "answer criteria": lambda run: run.config.answer_criteria,
        "checks": lambda run: tuple(sorted(check.text for check in run.config.checks)),
        **_judging(FulfillmentDetails),
    },
    Measure.TOOL_USAGE: _judging(ToolUsageDetails),
}


def _plugins(run: RunResult) -> str:
    uses = [use for use in run.steering or () if use.unit.kind is ItemKind.PLUGIN and use.loaded]
    return " and ".join(sorted({use.unit.name for use in uses})) or "none"


# Differences that are told but do not stand in the way.
NOTEWORTHY: Aspects = {
    "Claude Code versions": lambda run: run.versions.cli,
    "isolation levels": lambda run: run.isolation.level if run.isolation else None,
    "networks of the session": lambda run: run.isolation.network.session if run.isolation else None,
    "plugins of the session": _plugins,
    "models that answered": lambda run: ", ".join(run.models),
}

REPLAYED = "both sides replay recorded sessions: trials of one recording repeat it and are no evidence of their own"
MODELS = "models"
# What changes without anybody's commit, and with it the results.
PLATFORM: Mapping[str, Callable[[RunResult], Iterable[str]]] = {
    "Claude Code": lambda run: (run.versions.cli or "",),
    MODELS: lambda run: run.models,
    "system": lambda run: (run.fingerprint.parts.get("system", ""),) if run.fingerprint else (),
}


def platform_change(stored: Sequence[RunMetrics], today: Sequence[RunMetrics]) -> tuple[str, ...]:
    """A sentence where the stored trials of the base ran on another platform than those that are judged.

    What nobody recorded is not known to differ. Sub-agents may answer in one trial and not in the next, so models
    differ only where each side has one that the other never met.
    """
    found = []
    for name, of in PLATFORM.items():
        before, now = ({value for trial in side for value in of(trial.run) if value} for side in (stored, today))
        is_other = before - now and now - before if name == MODELS else before and now and before != now
        if is_other:
            found.append(f"{name} {', '.join(sorted(before))} before, {', '.join(sorted(now))} now")
    if not found:
        return ()
    return (f"the platform changed ({'; '.join(found)}): only new trials of the base show what is to blame",)


def measure_obstacles(measure: Measure, readings: Sequence[RunMetrics]) -> tuple[str, ...]:
    """Why one measure may not be compared; only trials that have it are asked."""
    metric = METRIC_OF[measure]
    versions: Aspects = {
        f"{metric} evaluator versions": lambda run: run.evaluations[metric].version if metric in run.evaluations else ""
    }
    having = [reading for reading in readings if measure in reading.values]
    return differences({**versions, **EVALUATION.get(measure, {})}, having)


def differences(aspects: Aspects, readings: Sequence[RunMetrics]) -> tuple[str, ...]:
    """A few words for each aspect in which trials differ; empty when they may be compared."""
    found = []
    for name, aspect in aspects.items():
        values = {aspect(reading.run) for reading in readings}
        if len(values) > 1:
            short = sorted(value for value in values if isinstance(value, str) and 0 < len(value) <= 60)
            is_short = len(short) == len(values) and name != "suite prompts"
            found.append(f"different {name}: {', '.join(short)}" if is_short else f"different {name}")
    return tuple(found)
