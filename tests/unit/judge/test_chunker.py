"""Cutting transcripts: every unit exactly once, in order, never in pieces."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from zelda_ci.judge.characters import marked
from zelda_ci.judge.rendering import SEPARATOR, chunked, windowed

UNITS = st.lists(st.text(max_size=60), max_size=40)
BUDGETS = st.integers(min_value=1, max_value=200)
MARKER_ROOM = 200


@given(UNITS, BUDGETS)
def test_every_unit_is_in_one_chunk_in_order_and_whole_unless_it_is_too_large(units, budget):
    shown = [windowed(unit, budget) for unit in units]
    chunks = chunked(units, budget)
    assert SEPARATOR.join(chunks) == SEPARATOR.join(shown)
    assert all(len(chunk) <= budget or chunk in shown for chunk in chunks)


@given(st.lists(st.text("abc", min_size=1, max_size=60), max_size=40), st.integers(min_value=60, max_value=200))
def test_no_chunk_could_have_taken_the_next_unit_too(units, budget):
    for chunk, following in pairwise(chunked(units, budget)):
        assert len(chunk) + len(SEPARATOR) + len(following.partition(SEPARATOR)[0]) > budget


LONG = st.lists(st.sampled_from(["a line\n", "word ", "x" * 90, "\n"]), min_size=40, max_size=80).map("".join)


@given(st.text(max_size=2000).map(marked) | LONG, st.integers(min_value=MARKER_ROOM, max_value=1000))
def test_a_window_fits_and_says_exactly_what_it_leaves_out(text, budget):
    shown = windowed(text, budget)
    assert len(shown) <= budget
    if len(text) <= budget:
        assert shown == text
    else:
        head, _, rest = shown.partition("\n[... ")
        told, _, tail = rest.partition(" characters are left out here: this was too long to be shown whole ...]\n")
        assert text.startswith(head)
        assert text.endswith(tail)
        assert len(head) + int(told) + len(tail) == len(text)
