"""A quote begins and ends where words do; in pieces, one stands at its place, the others anywhere."""

import pytest

from tests.support.cited import place
from tests.unit.metrics.test_proof import RUN, sources
from zelda_ci.metrics.citable import Line, Passage, Standing, shortcoming
from zelda_ci.metrics.evidence import look_up


@pytest.mark.parametrize(
    ("quote", "holds"),
    [
        ("command: pytest -q\n[a1b2c3d4 returned]\n7 passed in 0.12s", True),
        ("7 passed in 0.12s\n[a1b2c3d4 returned]\nfirst line", False),  # of another turn
        ("7 passed in 0.12s\n[a1b2c3d4 returned]\n9 tests failed and nobody looked", False),
        ("9 tests failed and nobody looked\n[a1b2c3d4 returned]\n7 passed in 0.12s", False),
    ],
)
def test_every_piece_of_a_quote_was_shown(quote: str, holds: bool) -> None:  # noqa: FBT001
    assert (look_up(place("turn 2 call 1", quote), sources(RUN)).problem is None) is holds


LONG = "abcdefghijklmnopqrstuvwxyzABCD"


@pytest.mark.parametrize(
    ("text", "quote", "is_copy"),
    [
        ("xabc d", "abc", False),
        ("x abcd", "abc", False),
        ("x abc_", "abc", False),
        ("_abc x", "abc", False),
        ("x-abc.d", "abc", True),
        ("13 passed", "3 passed", False),
        ("a3 passed", "3 passed", False),
        ("_3 passed", "3 passed", False),
        ("1.5 passed", "5 passed", False),
        ("1,5 passed", "5 passed", False),
        ("x.5 passed", "5 passed", True),
        (".5 passed", "5 passed", True),
        ("1-5 passed", "5 passed", True),
        ("passed: 12", "passed: 1", False),
        ("passed: 1.5", "passed: 1", False),
        ("passed: 1. Done", "passed: 1", True),
        (f"{LONG}E", LONG, True),
        (f"{LONG}E", LONG[1:], False),
        (f"E{LONG}", LONG, True),
        (f"9{LONG}", LONG, False),
        (f"{LONG}9", LONG, False),
        (f"{LONG} 12", f"{LONG} 1", False),
        ("店の合計を計算", "合計", True),
        ("x ab", "ab", True),
        ("x a", "a", False),
        ("a", "a", True),
    ],
)
def test_a_quote_begins_and_ends_where_words_do_unless_it_is_long(text: str, quote: str, *, is_copy: bool) -> None:
    assert bool(list(Passage([Line(text)]).find(quote))) is is_copy
    assert bool(list(Passage([Line("before"), Line(text), Line("after")]).find(quote))) is is_copy


FACT, WORDS, FRAME, TASK = Standing.FACT, Standing.WORDS, Standing.FRAME, Standing.TASK
SHORT = "the quote is too short to prove anything; quote the whole line"


@pytest.mark.parametrize(
    ("pieces", "proving", "why"),
    [
        ([(FACT, "ab cd", False)], FACT, None),
        ([(FACT, "ab c", False)], FACT, SHORT),
        ([(FACT, "ab", False), (FACT, "cd", False)], FACT, None),
        ([(FACT, "a", True)], FACT, None),
        ([(FACT, "--", True)], FACT, SHORT),
        ([(WORDS, "All is well", True)], FACT, WORDS.value),
        ([(FRAME, "heading", True), (WORDS, "All is well", True)], FACT, WORDS.value),
        ([(TASK, "Do it all", True), (WORDS, "All is well", True)], FACT, TASK.value),
        ([(FACT, "ab", False), (FRAME, "heading", True)], FACT, FRAME.value),
        ([(FACT, "ab cd", False), (WORDS, "All is well", True)], FACT, None),
        ([(WORDS, "All is well", True)], WORDS, None),
        ([(FACT, "7 passed", True)], WORDS, SHORT),
    ],
)
def test_a_quote_proves_something_by_its_facts_and_else_it_is_told_what_it_is(
    pieces: list[tuple[Standing, str, bool]], proving: Standing, why: str | None
) -> None:
    made = [(text, is_whole, standing) for standing, text, is_whole in pieces]
    assert shortcoming(made, proving) == why
