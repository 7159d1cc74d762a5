import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zelda_ci.report.text import sentence, visible

EXPECTED = [
    ("plain text", "plain text"),
    ("\x1b[2J", "\\x1b[2J"),
    ("\x9b31mred", "\\x9b31mred"),
    ("one\ntwo\r\tthree", "one\\ntwo\\r\\tthree"),
    ("a\u202eb\u2066c", "a\\u202eb\\u2066c"),
    ("a\u2028b\u2029c\x85d", "a\\u2028b\\u2029c\\x85d"),
    ("lone \udcff", "lone \\udcff"),
    ("filler\u3164", "filler\\u3164"),
    ("naïve 日本語 ελληνικά", "naïve 日本語 ελληνικά"),
    ("##[error]no", "# #[error]no"),
    ("ü ##[error]no", "ü # #[error]no"),
    ("e\u0301", "e\u0301"),
]


@pytest.mark.parametrize(("text", "shown"), EXPECTED)
def test_what_acts_is_spelled_out_and_what_is_only_foreign_stays(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_a_pile_of_marks_does_not_paint_over_other_lines() -> None:
    shown = visible("a" + "\u0301" * 50)
    assert sum(unicodedata.category(char) == "Mn" for char in shown) == 3


def test_long_names_keep_both_ends_and_prose_is_one_line_that_ends() -> None:
    assert visible("src/" + "x" * 500 + ".py", 20) == "src/xxxxxx…xxxxxxx.py"
    assert sentence("  Two\n\n lines\tand\u00a0more.\r\n") == "Two lines and more."
    assert sentence("word " * 100_000, 14) == "word word word …"
    assert sentence("\n" * 1_000_000 + "end") == ""


@given(st.text(max_size=300))
def test_nothing_that_comes_out_acts(text: str) -> None:
    for shown in (visible(text), sentence(text)):
        assert all(char.isprintable() or unicodedata.category(char) in {"Zs", "Cn"} for char in shown)
        assert "##[" not in shown


@given(st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126), max_size=200))
def test_ordinary_text_comes_out_as_it_went_in(text: str) -> None:
    assert visible(text) == text.replace("##[", "# #[")
