"""Whether two sides differ in more than the steering files: then a difference has no single cause."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

from zelda_ci.compare.sides import RunMetrics
from zelda_ci.domain.details import JudgeIdentity
from zelda_ci.domain.kinds import ItemKind
from zelda_ci.domain.measures import METRIC_OF, Measure

Aspect = Callable[[RunMetrics], Hashable]


def _session_settings(reading: RunMetrics) -> Hashable:
    config = reading.run.config
    execution = tuple(value for name, value in config.execution if name != "model")
    return (execution, config.setup_command, config.shell if config.setup_command else None, config.history_depth)


def _commands(reading: RunMetrics) -> Hashable:
    config = reading.run.config
    commands = (config.build_command, config.test_command, config.command_timeout_seconds, config.coverage_threshold)
    # Of an older Zelda, an empty list meant that nothing was said.
    files = (config.test_report, config.coverage_report, config.protected_paths or None, config.keep_ignored)
    return (*commands, config.shell, *files)


def _test_formats(reading: RunMetrics) -> str:
    """What counted the tests: packages of one runner cannot be compared with tests of another."""
    tests = reading.correctness.tests if reading.correctness else None
    return ", ".join(sorted({f"{runner.format} ({runner.unit})" for runner in tests.runners})) if tests else ""


def _judge(identity: JudgeIdentity | None, reading: RunMetrics) -> tuple[str, str]:
    return (identity.model, identity.prompt_version) if identity else (reading.run.config.judge_model, "")


def _fulfillment_judge(reading: RunMetrics) -> tuple[str, str]:
    return _judge(reading.fulfillment.judge if reading.fulfillment else None, reading)


def _tool_usage_judge(reading: RunMetrics) -> tuple[str, str]:
    return _judge(reading.tool_usage.judge if reading.tool_usage else None, reading)


# What shapes the session itself, and with it every number.
SESSION: dict[str, Aspect] = {
    "suite prompts": lambda reading: reading.run.config.prompt,
    "session models": lambda reading: reading.run.config.execution.model,
    "session settings": _session_settings,
    "sources of the model's words (live and replayed)": lambda reading: reading.run.replayed,
}

# What shapes one measure only.
EVALUATION: dict[Measure, dict[str, Aspect]] = {
    Measure.EFFICIENCY: {
        "efficiency targets": lambda reading: reading.run.config.efficiency_targets,
    },
    Measure.FUNCTIONAL_CORRECTNESS: {"build and test settings": _commands},
    Measure.TESTS: {"build and test settings": _commands, "formats of test output": _test_formats},
    Measure.REQUIREMENT_FULFILLMENT: {
        "treatments of undecided criteria": lambda reading: reading.run.config.undecided,
        "acceptance criteria": lambda reading: tuple(sorted(_of_result(reading))),
        "answer criteria": lambda reading: reading.run.config.answer_criteria,
        "judge models": lambda reading: _fulfillment_judge(reading)[0],
        "judge prompt versions": lambda reading: _fulfillment_judge(reading)[1],
        "numbers of judge votes": lambda reading: reading.run.config.judge.votes,
    },
    Measure.TOOL_USAGE: {
        "judge models": lambda reading: _tool_usage_judge(reading)[0],
        "judge prompt versions": lambda reading: _tool_usage_judge(reading)[1],
        "numbers of judge votes": lambda reading: reading.run.config.judge.votes,
    },
}


def _of_result(reading: RunMetrics) -> tuple[str, ...]:
    config = reading.run.config
    return config.must_pass + config.acceptance_criteria


def _session_network(reading: RunMetrics) -> str | None:
    return reading.run.isolation.network.session if reading.run.isolation else None


def _plugins(reading: RunMetrics) -> str:
    uses = [use for use in reading.run.steering or () if use.unit.kind is ItemKind.PLUGIN and use.loaded]
    return " and ".join(sorted({use.unit.name for use in uses})) or "none"


# Differences that are told but do not stand in the way.
NOTEWORTHY: dict[str, Aspect] = {
    "Claude Code versions": lambda reading: reading.run.versions.cli,
    "isolation levels": lambda reading: reading.run.isolation.level if reading.run.isolation else None,
    "networks of the session": _session_network,
    "plugins of the session": _plugins,
    "models that answered": lambda reading: ", ".join(reading.run.models),
}

REPLAYED = "both sides replay recorded sessions: trials of one recording repeat it and are no evidence of their own"


def platform_change(stored: Sequence[RunMetrics], today: Sequence[RunMetrics]) -> tuple[str, ...]:
    """A sentence where the stored trials of the base ran on another platform than those that are judged.

    What nobody recorded is not known to differ. Sub-agents may answer in one trial and not in the next, so models
    differ only where each side has one that the other never met.
    """
    found = [
        f"{name} {', '.join(sorted(before))} before, {', '.join(sorted(now))} now"
        for name, of in PLATFORM.items()
        if (before := _all(of, stored)) and (now := _all(of, today)) and _is_other(name, before, now)
    ]
    return (f"the platform changed ({'; '.join(found)}): only new trials of the base show what is to blame",) * bool(
        found
    )


def _all(of: Callable[[RunMetrics], Iterable[str]], trials: Iterable[RunMetrics]) -> frozenset[str]:
    return frozenset(value for trial in trials for value in of(trial) if value)


def _is_other(name: str, before: frozenset[str], now: frozenset[str]) -> bool:
    return bool(before - now and now - before) if name == MODELS else before != now


def _system(reading: RunMetrics) -> tuple[str, ...]:
    return (reading.run.fingerprint.parts.get("system", ""),) if reading.run.fingerprint else ()


MODELS = "models"

# What changes without anybody's commit, and with it the results.
PLATFORM: dict[str, Callable[[RunMetrics], Iterable[str]]] = {
    "Claude Code": lambda reading: (reading.run.versions.cli or "",),
    MODELS: lambda reading: reading.run.models,
    "system": _system,
}


def session_obstacles(readings: Sequence[RunMetrics]) -> tuple[str, ...]:
    """Why nothing of these trials may be compared; empty when all may."""
    return tuple(_differences(SESSION, readings))


def measure_obstacles(measure: Measure, readings: Sequence[RunMetrics]) -> tuple[str, ...]:
    """Why one measure may not be compared; only trials that have it are asked."""
    having = [reading for reading in readings if measure in reading.values]
    aspects: dict[str, Aspect] = {
        f"{METRIC_OF[measure]} evaluator versions": lambda reading: _version(measure, reading),
        **EVALUATION.get(measure, {}),
    }
    return tuple(_differences(aspects, having))


def notes(readings: Sequence[RunMetrics]) -> tuple[str, ...]:
    """Differences worth knowing."""
    replayed = bool(readings) and all(reading.run.replayed for reading in readings)
    return (*_differences(NOTEWORTHY, readings), *((REPLAYED,) if replayed else ()))


def _version(measure: Measure, reading: RunMetrics) -> str:
    result = reading.run.evaluations.get(METRIC_OF[measure])
    return result.version if result else ""


def _differences(aspects: dict[str, Aspect], readings: Sequence[RunMetrics]) -> Iterator[str]:
    for name, aspect in aspects.items():
        values = {aspect(reading) for reading in readings}
        if len(values) > 1:
            short = sorted(value for value in values if isinstance(value, str) and 0 < len(value) <= 60)
            is_short = len(short) == len(values) and name != "suite prompts"
            yield f"different {name}: {', '.join(short)}" if is_short else f"different {name}"
