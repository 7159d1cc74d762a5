"""When commands are run, what of them is read, and what the result keeps."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.builders import safe, session, suite
from zelda_ci.domain.details import CommandResult, CorrectnessDetails, TestSummary
from zelda_ci.domain.run import EvalContext
from zelda_ci.domain.session import ApiUsage, SessionStatus
from zelda_ci.domain.workspace import Confinement, Workspace, WorkspaceSource
from zelda_ci.metrics.base import CommandRequest, Outcome, Ran, Scored, Services, Unscored
from zelda_ci.metrics.functional_correctness import FunctionalCorrectness
from zelda_ci.test_output.reports import ReportFile

HERE = Path("/nowhere")
WORKSPACE = Workspace(
    "run-1",
    HERE,
    HERE,
    HERE,
    HERE,
    HERE,
    HERE,
    "0" * 40,
    WorkspaceSource(kind="copy"),
    Confinement((), {}),
)
BOTH: dict[str, Any] = {"buildCommand": "make", "testCommand": ["make", "test"], "commandTimeoutSeconds": 7}
JUNIT = (
    b'<testsuite tests="3"><testcase name="a"/><testcase name="b"/><testcase name="c"><failure/></testcase></testsuite>'
)


def ran(code: int | None = 0, output: str = "", **fields: Any) -> CommandResult:
    given = {"command": safe("make"), "exit_code": code, "seconds": 1.0, "output_bytes": len(output), **fields}
    return CommandResult(output=safe(output), **given)


@dataclass
class Bench:
    """Answers as it was told to, and remembers what it was asked."""

    build: CommandResult = field(default_factory=ran)
    test: CommandResult = field(default_factory=lambda: ran(0, "===== 3 passed in 0.10s =====\n"))
    written: Mapping[str, tuple[ReportFile, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    printed: bytes = b""
    orders: list[CommandRequest] = field(default_factory=list)

    async def run(self, workspace: Workspace, order: CommandRequest) -> Ran:
        await anyio.lowlevel.checkpoint()
        self.orders.append(order)
        if order.step == "build":
            return Ran(self.build)
        assert order.buffer
        order.buffer.feed(self.printed or self.test.output.encode())
        return Ran(self.test, self.written, self.notes)


def evaluated(
    bench: Bench,
    *,
    status: SessionStatus = SessionStatus.COMPLETED,
    workspace: Workspace | None = WORKSPACE,
    **settings: Any,
) -> Outcome:
    context = EvalContext(suite(**settings), workspace, session('"Done."', status=status), ApiUsage(), None)
    return anyio.run(FunctionalCorrectness(Services(bench, safe)).evaluate, context)


def details(outcome: Outcome) -> CorrectnessDetails:
    assert isinstance(outcome, Scored)
    assert isinstance(outcome.details, CorrectnessDetails)
    return outcome.details


def test_build_and_tests_run_in_this_order_with_the_limit_of_the_suite() -> None:
    bench = Bench()
    outcome = evaluated(bench, **BOTH)
    assert [(order.step, order.command, order.timeout_seconds) for order in bench.orders] == [
        ("build", "make", 7),
        ("test", ("make", "test"), 7),
    ]
    assert details(outcome).passed


def test_tests_are_not_run_where_the_build_failed() -> None:
    bench = Bench(build=ran(2))
    outcome = evaluated(bench, **BOTH)
    assert [order.step for order in bench.orders] == ["build"]
    assert isinstance(outcome, Scored)
    assert "testCommand was not run" in outcome.reasoning


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"status": SessionStatus.FAILED, **BOTH},
        {"status": SessionStatus.INTERRUPTED, **BOTH},
        {"workspace": None, **BOTH},
    ],
)
def test_without_commands_a_whole_session_and_a_workspace_nothing_is_run_and_scored(given: dict[str, Any]) -> None:
    bench = Bench()
    outcome = evaluated(bench, **given)
    assert isinstance(outcome, Unscored)
    assert given or outcome.reason.startswith("not configured")
    assert bench.orders == []


def test_what_a_session_left_at_its_limit_is_built_and_tested() -> None:
    assert details(evaluated(Bench(), status=SessionStatus.MAX_TURNS, **BOTH)).passed


def test_well_known_places_are_watched_unless_the_suite_names_its_own() -> None:
    bench = Bench()
    evaluated(bench, testCommand="t")
    assert "**/*junit*.xml" in bench.orders[0].reports["test"]
    assert "coverage.xml" in bench.orders[0].reports["coverage"]
    evaluated(bench, testCommand="t", testReport="a.xml", coverageReport=["b.xml", "c.xml"])
    assert bench.orders[1].reports == {"test": ("a.xml",), "coverage": ("b.xml", "c.xml")}


def test_reports_are_preferred_to_the_output_and_what_the_bench_notes_is_told() -> None:
    lcov = ReportFile("lcov.info", b"SF:a.js\nDA:1,1\nDA:2,0\nLF:2\nLH:1\nend_of_record\n")
    bench = Bench(written={"test": (ReportFile("a.xml", JUNIT),), "coverage": (lcov,)}, notes=("One is too large.",))
    found = details(evaluated(bench, testCommand="t", coverageThreshold=60))
    assert found.tests is not None
    assert (found.tests.passed, found.tests.failed, {it.format for it in found.tests.runners}) == (2, 1, {"JUnit XML"})
    assert found.coverage is not None
    assert (found.coverage.lines, found.passed) == (50, False)
    assert found.notes[0] == "One is too large."


def test_output_with_a_gap_is_not_taken_for_whole() -> None:
    before, after = b"===== 2 passed in 0.1s =====\n", b"===== 3 passed in 0.1s =====\n"
    whole = details(evaluated(Bench(printed=before + after), testCommand="t"))
    cut = details(evaluated(Bench(printed=before + b"x" * (9 << 20) + b"\n" + after), testCommand="t"))
    assert whole.tests is not None
    assert whole.tests.recognised
    assert cut.tests is not None
    assert not cut.tests.recognised
    assert "too long" in (cut.tests.note or "")


def test_what_an_ended_runner_printed_is_no_result() -> None:
    bench = Bench(test=ran(None, "===== 3 passed in 0.1s =====\n", timed_out=True))
    outcome = evaluated(bench, testCommand="t")
    assert isinstance(outcome, Scored)
    assert outcome.score == 0
    assert not (details(outcome).tests or TestSummary()).recognised


def test_the_result_keeps_the_last_lines_of_the_output() -> None:
    output = "".join(f"line {number}\n" for number in range(1, 101))
    found = details(evaluated(Bench(build=ran(0, output)), buildCommand="make"))
    assert found.build is not None
    assert found.build.output.splitlines() == [f"line {number}" for number in range(81, 101)]
    assert found.build.output_bytes == len(output)
    endless = details(evaluated(Bench(build=ran(0, "x" * 400_000)), buildCommand="make"))
    assert endless.build is not None
    assert len(endless.build.output) == 4_000
