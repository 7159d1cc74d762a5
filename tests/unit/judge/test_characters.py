"""Characters that deceive a reader are marked for the judge, and do not stand in the way of a quote."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zelda_ci.judge.characters import acts, marked, unmarked

DECEIVING = st.text(st.sampled_from("a1 ./_\n\t\u0430\u03bf\uff41\u202e\u200b\U000e0041\u3164\x1b⟦⟧é"), max_size=40)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("if admin\u202e # user", "if admin⟦U+202E RIGHT-TO-LEFT OVERRIDE⟧ # user"),
        ("to\u200bken", "to⟦U+200B ZERO WIDTH SPACE⟧ken"),
        ("p\u0430yp\u0430l.com", "p\u0430⟦CYRILLIC letters⟧yp\u0430⟦CYRILLIC letters⟧l.com"),
        ("get_\u0441\u043e\u0440\u0443()", "get_\u0441\u043e\u0440\u0443⟦CYRILLIC letters⟧()"),
        ("\uff41\uff42(x)", "\uff41\uff42⟦FULLWIDTH letters⟧(x)"),
        ("hidden\U000e0041", "hidden⟦U+E0041 TAG LATIN CAPITAL LETTER A⟧"),
        ("a\u3164 = 1", "a⟦U+3164 HANGUL FILLER⟧ = 1"),
        ("\x1b[2J", "⟦U+001B Cc⟧[2J"),
    ],
)
def test_what_deceives_is_marked(text: str, shown: str) -> None:
    assert marked(text) == shown
    assert marked(shown) == shown


@pytest.mark.parametrize(
    "text",
    ["plain text\n\t1", "naïve café", "# \u043f\u0440\u0438\u0432\u0435\u0442", "日本語", "5 €", "👍"],
)
def test_what_is_what_it_looks_like_is_left_alone(text: str) -> None:
    assert marked(text) == text


@given(st.one_of(st.text(max_size=60), DECEIVING))
def test_nothing_acts_after_marking_and_a_copy_can_be_compared(text: str) -> None:
    shown = marked(text)
    assert [char for char in shown if acts(char) and char not in "\t\n\r"] == []
    assert marked(shown) == shown
    assert unmarked(shown) == unmarked(text)
