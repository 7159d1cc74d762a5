"""JUnit XML, which nearly every runner can write and each writes a little differently."""

from dataclasses import dataclass
from typing import Any

from junitparser import JUnitXml, TestCase

from zelda_ci.test_output.reports.xml import check
from zelda_ci.test_output.tally import Tally, first_names

_FAILED = frozenset({"failure"})
_ERRORED = frozenset({"error"})
_SKIPPED = frozenset({"skipped"})
_FLAKY = frozenset({"flakyFailure", "flakyError"})
_NOT_RUN = frozenset({"notrun", "disabled", "skipped", "ignored"})


@dataclass(frozen=True)
class Outcome:
    """One test of a report."""

    name: str
    kind: str
    flaky: bool = False


def read(raw: bytes) -> list[Outcome]:
    """Every test of a report, in order, from the tests themselves: totals in attributes are often wrong.

    Raises:
        RefusedXmlError: The report should not be parsed.
        ValueError: It is XML, but not JUnit's.
    """
    check(raw)
    try:
        root = JUnitXml.fromstring(raw)
    except Exception as problem:  # the parser's own errors share no class
        raise ValueError("it is not JUnit XML") from problem
    # Tests are looked for at any depth: some runners nest suites, some leave tests outside of every suite.
    return [_outcome(element) for element in root._elem.iter("testcase")]  # noqa: SLF001


def _outcome(element: Any) -> Outcome:
    tags = {child.tag.rpartition("}")[2] for child in element if isinstance(child.tag, str)}
    status = str(element.get("status") or "").lower()
    name = _name(TestCase.fromelem(element))  # type: ignore[no-untyped-call] # the library's own gap
    if tags & _ERRORED:
        return Outcome(name, "errored")
    if tags & _FAILED:
        return Outcome(name, "failed")
    if tags & _SKIPPED or status in _NOT_RUN:
        return Outcome(name, "skipped")
    return Outcome(name, "passed", flaky=bool(tags & _FLAKY))


def _name(case: TestCase) -> str:
    group, name = str(case.classname or ""), str(case.name or "")
    return name if group in name or group == "test" else f"{group}::{name}"


def tally(outcomes: list[Outcome], *, succeeded: bool) -> Tally:
    """Counts of one runner's tests.

    Args:
        outcomes: Of one or several reports of the same runner.
        succeeded: Whether the command did. Then a failed test that is listed again as passed passed on a retry;
            otherwise the two may be different tests of the same name.
    """
    kept = _after_retries(outcomes) if succeeded else outcomes
    kinds = [outcome.kind for outcome in kept]
    return Tally(
        "JUnit XML", kinds.count("passed"), kinds.count("failed"), kinds.count("errored"), kinds.count("skipped"),
        sum(outcome.flaky for outcome in kept),
        first_names(outcome.name for outcome in kept if outcome.kind in {"failed", "errored"}),
    )  # fmt: skip


def _after_retries(outcomes: list[Outcome]) -> list[Outcome]:
    passed = {outcome.name for outcome in outcomes if outcome.kind == "passed"}
    lost = {outcome.name for outcome in outcomes if outcome.kind in {"failed", "errored"}}
    lucky = passed & lost
    kept = [outcome for outcome in outcomes if outcome.name not in lucky]
    return [*kept, *(Outcome(name, "passed", flaky=True) for name in sorted(lucky))]
