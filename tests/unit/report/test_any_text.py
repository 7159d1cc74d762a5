"""Whatever a session writes, and wherever, the lines of a report stay Zelda's own."""

import unicodedata

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.golden.batches import batch, command, efficiency, run, safe
from tests.golden.test_reports import rendered
from zelda_ci.domain.measures import Metric
from zelda_ci.domain.run import Failure, RunResult
from zelda_ci.domain.session import SessionStatus
from zelda_ci.domain.workspace import ChangeSummary

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


@settings(max_examples=15)
@given(text=OUTSIDE)
def test_any_text_can_be_shown_in_any_encoding(text: str) -> None:
    assert "Summary" in rendered(batch(hostile(text)), 80, encoding="ascii")
