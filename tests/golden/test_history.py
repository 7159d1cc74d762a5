"""Lists, comparisons, transcripts and patches against expected files, which people have looked at.

After a wanted change: `UPDATE_GOLDEN=1 pytest tests/golden`, then read the difference in
`tests/golden/expected_history/`.
"""

from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import cache
from pathlib import Path

import pytest
from rich.console import Console

from tests.builders import session
from tests.golden.test_reports import Print, expect_file, printed
from tests.unit.compare.runs import START, correctness, efficiency, fulfillment, run, tool_usage
from zelda_ci.compare.comparison import compare
from zelda_ci.compare.gate import gate, recorded_settings
from zelda_ci.domain.outcome import History, SkippedRun, at_a_glance
from zelda_ci.domain.run import RunResult, batch_of
from zelda_ci.domain.session import SessionStatus
from zelda_ci.report.builders.comparison import comparison_view
from zelda_ci.report.builders.history import history_table
from zelda_ci.report.builders.transcript import patch_lines, transcript_lines
from zelda_ci.report.markdown import render
from zelda_ci.report.model import ComparisonView
from zelda_ci.report.terminal.pages import print_comparison, print_lines, print_table

EXPECTED = Path(__file__).parent / "expected_history"

HOSTILE = "| a <b>&amp;</b> `x`\n::error::[link](http://x) \x1b[31m@octocat #1 \u202e"
CRITERIA = (
    "The endpoint answers 404 with a problem document when the order is unknown, never with a stack trace",
    "short",
    HOSTILE,
)


def expect(name: str, text: str, ending: str = "txt") -> None:
    expect_file(EXPECTED / f"{name}.{ending}", text)


def stored(suite: str, minute: int, evaluations: Sequence[object] = (), **fields: object) -> RunResult:
    name = f"{suite}-{START + timedelta(minutes=minute):%Y-%m-%dT%H-%M-%S}"
    return run(evaluations, suite=suite, run_id=name, at=minute, **fields)  # type: ignore[arg-type]


def side(
    first: int, verdicts: Sequence[str], *, cost: float, tools: dict[str, int], missed: Sequence[str] = ()
) -> list[RunResult]:
    return [
        stored(
            "rest-endpoint",
            first + n,
            [
                efficiency(cost=cost + 0.01 * n, turns=8 + n % 2, tools=tools),
                correctness(),
                fulfillment(letters, CRITERIA),
                tool_usage(used=tools, missed=missed),
            ],
        )
        for n, letters in enumerate(verdicts)
    ]


@cache
def old() -> list[RunResult]:
    return side(0, ["PPP"] * 10, cost=0.1, tools={"Read": 3})


@cache
def new() -> list[RunResult]:
    return side(60, ["FPP", "FPF"] * 5, cost=0.3, tools={"Bash": 1}, missed=["mcp__db__query", HOSTILE])


@cache
def calm() -> list[RunResult]:
    return [stored("receipt-tax", minute, [efficiency(), fulfillment("PP")]) for minute in range(10)]


def failed() -> RunResult:
    return stored("receipt-tax", 70, status=SessionStatus.FAILED)


def view(baseline: list[RunResult], candidate: list[RunResult]) -> ComparisonView:
    found = compare(baseline, candidate)
    return comparison_view(
        found, gate(batch_of(candidate), recorded_settings(candidate), found, baseline), baseline="old", candidate="new"
    )


def trials() -> ComparisonView:
    others = [stored("discount", 1, [efficiency()])], [stored("discount", 2, [efficiency(score=20)], model="model-2")]
    return view([*old(), *calm(), *others[0]], [*new(), failed(), *others[1]])


COMPARISONS: dict[str, Callable[[], ComparisonView]] = {
    "trials": trials,
    "single": lambda: view(old()[:1], new()[:1]),
    "same": lambda: view(calm(), calm()),
}


def listed() -> History:
    runs = [
        new()[0],
        stored("receipt-tax", 59, status=SessionStatus.INTERRUPTED),
        stored("a-suite-with-a-name-that-is-longer-than-what-is-shown-of-it", 58, [efficiency(cost=1234.5)]),
        stored("rest-endpoint", 57, [efficiency(), correctness(0)], status=SessionStatus.MAX_TURNS),
        failed().model_copy(update={"suite": "\x1b[31mred\n::error::x"}),
    ]
    damaged = SkippedRun(name="x", code="RESULT_DAMAGED", message="x\x1b/result.json is damaged: unexpected end.")
    return History(runs=tuple(map(at_a_glance, runs)), skipped=(damaged,), unfinished=1)


TRANSCRIPT = session(
    "Read a.py -> first\tline\nsecond \x1b[31mline\r\n\n::set-output name=x::y",
    "Bash make test -> error",
    "Agent reviewer",
    "> Grep x -> nothing",
    "Edit b.py -> denied",
    '!"API Error"',
    '"Done.\n\nAll of it \u202egnp.exe"',
    status=SessionStatus.MAX_TURNS,
)

PATCH = b"diff --git a/x b/x\n--- a/x\n+++ b/x\n"
PATCH += b"@@ -1,2 +1,2 @@ def f():\n \tsame\n-old \x1b[2J\n+new \xff\n+--- no header\n"


def listing(console: Console) -> None:
    print_table(console, console, history_table(listed(), of=9), unbroken=False)


def comparison(name: str) -> Print:
    return lambda console: print_comparison(console, COMPARISONS[name]())


PAGES: dict[str, Print] = {
    "list": listing,
    **{f"compare-{name}": comparison(name) for name in COMPARISONS},
}
SHOWN = [("list", 60), ("compare-trials", 60)]
SHOWN += [("compare-single", 100), ("compare-same", 100)]
ONCE: dict[str, Print] = {
    "list-nothing": lambda console: print_table(console, console, history_table(History(), of=0), unbroken=False),
    "compare-colour": comparison("trials"),
    "transcript-colour": lambda console: print_lines(console, transcript_lines(TRANSCRIPT)),
    "patch-colour": lambda console: print_lines(console, patch_lines(PATCH)),
}


@pytest.mark.parametrize(("name", "width"), SHOWN, ids=[f"{name}-{width}" for name, width in SHOWN])
def test_a_page_looks_as_it_should(name: str, width: int) -> None:
    text = printed(PAGES[name], width)
    expect(f"{name}-{width}", text)
    assert "\x1b" not in text
    assert not [line for line in text.splitlines() if line.lstrip().startswith("::")]


@pytest.mark.parametrize("name", ONCE)
def test_a_page_of_its_own_kind_looks_as_it_should(name: str) -> None:
    expect(name, printed(ONCE[name], 80, colour=name.endswith("colour")))


@pytest.mark.parametrize("width", [20, 60])
def test_a_run_id_is_never_cut(width: int) -> None:
    text = printed(listing, width)
    for found in listed().runs:
        assert found.run_id in text.replace("\n        ", "").replace("\n", "") if width == 20 else found.run_id in text


@pytest.mark.parametrize("name", COMPARISONS)
def test_a_comparison_is_markdown_too(name: str) -> None:
    expect(f"compare-{name}", render("comparison.md.j2", view=COMPARISONS[name](), attributions=[]), "md")


def test_every_expected_file_is_compared() -> None:
    names = {f"{name}-{width}.txt" for name, width in SHOWN} | {f"{name}.txt" for name in ONCE}
    assert {file.name for file in EXPECTED.iterdir()} == names | {f"compare-{name}.md" for name in COMPARISONS}


def test_a_transcript_leaves_out_no_word() -> None:
    text = "x" * 5000 + " end"
    shown = printed(lambda console: print_lines(console, transcript_lines(session(f'"{text}"'))), 60)
    assert text in shown
