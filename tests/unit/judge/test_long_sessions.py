"""Large transcripts: head and tail of long texts, for judges that can look up the rest."""

import re
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import safe, session, suite
from tests.support.judges import ScriptedJudge
from zelda_ci.domain.kinds import ItemKind
from zelda_ci.domain.manifest import ManifestItem, ToolsManifest
from zelda_ci.domain.run import EvalContext
from zelda_ci.domain.session import ApiUsage, SessionTranscript
from zelda_ci.judge.base import estimated_tokens
from zelda_ci.judge.lookups import SessionLookups
from zelda_ci.judge.rendering import SEPARATOR, limits, pieces, units
from zelda_ci.metrics.base import JudgeServices, run_evaluator
from zelda_ci.metrics.evidence import Criterion
from zelda_ci.metrics.panel import MAX_CALL_CHARS, MAX_WHOLE_TOKENS, EarlierFindings
from zelda_ci.metrics.requirement_fulfillment import CriteriaPanel, RequirementFulfillment
from zelda_ci.metrics.tool_usage import ToolUsage
from zelda_ci.redact import Redactor

NONCE = "0123456789abcdef0123456789abcdef"
MARK = NONCE[:8]
LEFT_OUT = re.compile(
    rf"\[{MARK} (\d+) characters are left out here; read_turn shows them: turn (\d+), call (\d+), first_line (\d+)\]"
)


def numbered(lines: int, what: str = "line") -> str:
    return "\n".join(f"{what} {number} of a long text" for number in range(1, lines + 1))


def told(transcript: SessionTranscript, most: int) -> str:
    return SEPARATOR.join(units(transcript, MARK, most))


def with_output(output: str) -> SessionTranscript:
    whole = session("Read a.py + Grep b.py -> x")
    turn = whole.turns[0]
    call = turn.tool_calls[1].model_copy(update={"output": safe(output)})
    return whole.model_copy(update={"entries": (turn.model_copy(update={"tool_calls": (turn.tool_calls[0], call)}),)})


def looked_up(transcript: SessionTranscript, turn: str, call: str, first_line: str, lines: int = 1) -> str:
    lookups = SessionLookups(transcript, None, NONCE, Redactor())
    asked = {"turn": int(turn), "call": int(call), "first_line": int(first_line), "lines": lines}
    return str(lookups.run("read_turn", asked))


# Nothing that is marked where it is shown.
PLAIN = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=40)
LINES = st.lists(PLAIN | st.sampled_from(["", "x" * 300]), max_size=60)


@settings(max_examples=50, deadline=None)
@given(lines=LINES, most=st.integers(min_value=200, max_value=600))
def test_nothing_but_the_middle_is_missing_and_the_look_up_begins_there(lines: list[str], most: int) -> None:
    whole = with_output("\n".join([*lines, "the end"]))
    (*_, call) = pieces(whole, MARK)
    (*_, shown) = pieces(whole, MARK, most)
    assert len(shown.text) <= most
    if len(call.text) <= most:
        assert shown == call
        return
    before, count, turn, number, first, after = LEFT_OUT.split(shown.text)
    head, tail = before.removesuffix("\n"), after.removeprefix("\n")
    assert len(head) + int(count) + len(tail) == len(call.text)
    assert call.text.startswith(head)
    assert call.text.endswith(tail)
    at = len(head) + 1 if call.text[len(head)] == "\n" else head.rfind("\n") + 1
    (line, _, _) = call.text[at:].partition("\n")
    assert f"\n{line}\n" in looked_up(whole, turn, number, first, lines=2)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\u2028", "\n\n"])
def test_lines_are_counted_as_look_ups_count_them(end: str) -> None:
    whole = with_output(end.join(f"line {number} of a long text" for number in range(1, 1000)))
    head, _, turn, call, first, _ = LEFT_OUT.split(told(whole, 1000))
    last = int(re.findall(r"line (\d+) of", head)[-1])
    assert f"line {last + 1} of" in looked_up(whole, turn, call, first, lines=3)


def test_long_inputs_are_shortened_too_and_the_short_fields_beside_them_stay() -> None:
    shown = told(session(f"Write {'x = 1;' * 2000}", "Read a.py"), 1000)
    assert len(LEFT_OUT.findall(shown)) == 1
    assert len(shown) < 2000
    # A single long line is cut within it and looked up from there.
    whole = with_output("a\n" + "word " * 2000)
    (_, _, turn, call, first, _) = LEFT_OUT.split(told(whole, 1000))
    assert "word word" in looked_up(whole, turn, call, first)


def test_more_is_shown_of_errors_of_trouble_in_commands_and_of_what_ran_last_and_less_of_files() -> None:
    long = numbered(300)
    steps = [f"Bash make{number} -> {long}" for number in range(12)]
    steps[0] = f"Bash make0 -> {long}\n3 FAILED tests"
    whole = session(*steps, f"Read errors.py -> {long}\nerror", "Edit a.py", "Grep error", "Write a.py")
    shown = limits(whole, 1000)
    assert [shown[turn, 1] for turn in range(1, 17)] == [4000, 1000, *[4000] * 10, 333, 333, 1000, 333]
    failed = session("Read gone.py -> error", *["Read a.py"] * 3)
    assert limits(failed, 1000)[1, 1] == 4000


class Reading(CriteriaPanel):
    """Keeps what it is told of the session."""

    told = ""

    async def _conclude(self, earlier: EarlierFindings) -> dict[int, Any]:
        self.told = earlier.text
        return {}


def query(transcript: SessionTranscript, *, can_look_up: bool, context_tokens: int) -> tuple[str, tuple[str, ...], int]:
    """What the last question was told, what limits it, and the number of questions that were asked before."""
    judge = ScriptedJudge(lambda _: {"criteria": []}, context_tokens=context_tokens)
    asking = suite(acceptanceCriteria=["It works."], judge={"maxLookups": 20 * can_look_up})
    context = EvalContext(asking, None, transcript, ApiUsage(), None)
    reading = Reading(context, JudgeServices(judge, NONCE, Redactor()), {1: Criterion("It works.")})
    _, how = anyio.run(reading.judged)
    assert not any(LEFT_OUT.search(block) for question in judge.asked for block in question.blocks)
    return reading.told, how["notes"], len(judge.asked)


LONG = session(*(f"Grep a{number} -> {numbered(200)}" for number in range(30)))


def test_a_short_session_is_told_whole_whatever_is_in_it() -> None:
    whole = SEPARATOR.join(units(with_output(numbered(1500)), MARK))
    assert estimated_tokens(whole) < MAX_WHOLE_TOKENS
    assert query(with_output(numbered(1500)), can_look_up=True, context_tokens=200_000) == (whole, (), 0)


def test_a_long_session_is_told_with_head_and_tail_of_long_results_where_the_rest_can_be_looked_up() -> None:
    whole = SEPARATOR.join(units(LONG, MARK))
    text, notes, _ = query(LONG, can_look_up=True, context_tokens=200_000)
    assert len(LEFT_OUT.findall(text)) == 30
    assert len(text) < 0.7 * len(whole)
    assert any("head and tail" in note for note in notes)
    assert query(LONG, can_look_up=False, context_tokens=200_000) == (whole, (), 0)


@pytest.mark.parametrize(("context_tokens", "most"), [(60_000, MAX_CALL_CHARS[0]), (25_000, MAX_CALL_CHARS[1])])
def test_less_is_shown_only_where_it_does_not_fit_otherwise(context_tokens: int, most: int) -> None:
    text, _, parts = query(LONG, can_look_up=True, context_tokens=context_tokens)
    assert (text, parts) == (told(LONG, most), 0)


def test_parts_are_read_whole_because_their_readers_look_nothing_up() -> None:
    assert query(LONG, can_look_up=True, context_tokens=10_000)[2] > 1


def test_a_text_too_large_for_a_part_of_its_own_is_shown_by_head_and_tail_and_the_note_says_so() -> None:
    _, notes, _ = query(with_output("x" * 200_000), can_look_up=False, context_tokens=60_000)
    assert any("turns or calls that were too large" in note for note in notes)


@pytest.mark.parametrize("max_lookups", [0, 20])
def test_both_judges_are_told_the_same_and_all_where_they_may_not_look_up(max_lookups: int, tmp_path: Path) -> None:
    rule = ManifestItem(kind=ItemKind.RULE, name=safe("r.md"), file=safe("r.md"), loaded=True, text=safe("Test it."))
    resolved = suite(acceptanceCriteria=["It works."], judge={"maxLookups": max_lookups})
    context = EvalContext(resolved, None, LONG, ApiUsage(), None, manifest=ToolsManifest(items=(rule,)))
    judge = ScriptedJudge(lambda _: {"criteria": [], "findings": []})
    for kind in (RequirementFulfillment, ToolUsage):
        anyio.run(run_evaluator, kind(JudgeServices(judge, NONCE, Redactor())), context, Redactor())
    assert len({question.system for question in judge.asked}) == 2
    (blocks,) = {question.common.blocks for question in judge.asked}
    assert bool(LEFT_OUT.search("".join(blocks))) is bool(max_lookups)
    assert {question.lookups is not None for question in judge.asked} == {bool(max_lookups)}
