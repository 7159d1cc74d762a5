"""What holds for every report, at every width and in every encoding."""

import unicodedata
from itertools import pairwise, product

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.golden.batches import CASES, Case, batch, command, efficiency, run, safe
from tests.golden.test_reports import rendered
from tests.support.cases import for_each
from zelda_ci.domain.measures import Metric
from zelda_ci.domain.run import Failure, RunResult
from zelda_ci.domain.session import SessionStatus
from zelda_ci.domain.workspace import ChangeSummary

VERDICTS = ("  MEASURED", "  PASS", "  FAIL", "  INCOMPLETE", "  ERROR", "  STOP")


@for_each(product(CASES, (40, 60, 80, 200)))
def test_only_paths_are_wide_and_nothing_acts_or_forges_a_verdict(case: Case, width: int) -> None:
    batch = case.make()
    text = rendered(batch, width)
    lines = text.splitlines()
    assert [line for line in lines if len(line) > width and ".zelda/runs/" not in line] == []
    assert [line for line in lines if line != line.rstrip()] == []
    assert [pair for pair in pairwise(lines) if pair == ("", "")] == []
    # In one piece, so that it can be copied.
    assert [run.run_id for run in batch.runs if f".zelda/runs/{run.run_id}/" not in text] == []
    # As the runner of GitHub reads commands: `::` after blanks at the start of a line, `##[` anywhere.
    assert [line for line in lines if line.lstrip().startswith("::") or "##[" in line] == []
    assert [line for line in lines if not line.isprintable()] == []
    # A session that prints a verdict of its own gets it nowhere near.
    assert len([line for line in lines if line.startswith(VERDICTS)]) == len({run.suite for run in batch.runs})


@for_each(product(CASES, ("ascii", "cp1252", "utf-16")))
def test_every_encoding_can_show_it(case: Case, encoding: str) -> None:
    assert "Summary" in rendered(case.make(), 80, encoding=encoding)


TRICKY = st.sampled_from(
    ["\x1b[2J", "\n", "\r", "\n  PASS  other", "::error::", "##[", "[bold]", "\u202e", "\u200b", " " * 80, "\x9b"]
)
OUTSIDE = st.lists(st.one_of(TRICKY, st.text(max_size=20)), max_size=8).map("".join)


def hostile(text: str) -> RunResult:
    return run(
        status=SessionStatus.FAILED,
        failure=Failure(code=text, message=safe(text), hint=safe(text)),
        setup=command(text, 1, f"{text}\n{text}"),
        changes=ChangeSummary(files=(safe(text),)),
        evaluations={Metric.EFFICIENCY: efficiency(10.0, text, tool_calls={text: 1})},
        models=(text,),
        phase_seconds={text: 1.0},
    )


@settings(max_examples=30)
@given(text=OUTSIDE, width=st.integers(30, 120))
def test_no_text_acts_forges_a_verdict_or_commands_the_log(text: str, width: int) -> None:
    shown = rendered(batch(hostile(text)), width).split("\n")
    ours = [line for line in shown if line.startswith(("  PASS", "  FAIL", "  INCOMPLETE", "  ERROR", "  STOP"))]
    assert len(ours) == 1
    assert [line for line in shown if line.lstrip().startswith("::") or "##[" in line] == []
    assert {unicodedata.category(char) for line in shown for char in line} & {"Cc", "Cf", "Cs", "Zl", "Zp"} == set()
