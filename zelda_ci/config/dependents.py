"""Keys that mean something only where another one is set, or is not."""

from collections.abc import Iterator, Sequence
from typing import Any

from zelda_ci.config.problems import Problem, problem
from zelda_ci.config.resolver import Layer
from zelda_ci.domain.suite import MetricSwitches

OF_TESTS = ("coverageThreshold", "testReport", "coverageReport")
"""What is measured or written while the tests run."""


def untested(project: Layer, suites: Sequence[Layer], *, complete: bool) -> Iterator[Problem]:
    """Such keys without a testCommand; in the project's file they may be meant for those suites that have one.

    Args:
        project: The project's file.
        suites: The suites' files.
        complete: Whether these are all of them, or some could not be used.
    """
    for suite in suites:
        if not (_tests(suite) if "testCommand" in suite.places else _tests(project)):
            yield from _told(suite, "the suite has no testCommand")
    if complete and suites and not _tests(project) and not any(map(_tests, suites)):
        yield from _told(project, "no suite has a testCommand")


def switched_off(project: Layer, suites: Sequence[Layer]) -> Iterator[Problem]:
    """Suites of which nothing would be computed: what they cost would show nothing."""
    everything = {field.alias for field in MetricSwitches.model_fields.values()}
    for suite in suites:
        switches = {**_group(project, "metrics"), **_group(suite, "metrics")}
        if {name for name, on in switches.items() if on is False} == everything:
            layer = suite if "metrics" in suite.places else project
            yield problem(layer.file, layer.places["metrics"], "metrics are all off: leave at least one of them on")


def _group(layer: Layer, key: str) -> dict[str, Any]:
    return layer.values().get(key) or {}


def _tests(layer: Layer) -> bool:
    """Whether the file gives a command; one that is wrong is told about elsewhere."""
    return "testCommand" in layer.places and layer.values().get("testCommand") != ()


def _told(layer: Layer, why: str) -> Iterator[Problem]:
    for key in OF_TESTS:
        if key in layer.places and layer.values().get(key) not in {None, ()}:
            yield problem(layer.file, layer.places[key], f"{key} has no effect: {why}")
