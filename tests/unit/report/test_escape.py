"""Every text is made harmless, and every way out does it again, whatever was forgotten before."""

import io
import unicodedata
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import partial

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jinja2 import Environment

from zelda_ci.cli.boundary import echo
from zelda_ci.domain import numbers
from zelda_ci.judge.characters import ACTING
from zelda_ci.report.html.rendering import environment
from zelda_ci.report.junit import clean
from zelda_ci.report.markdown import render
from zelda_ci.report.model import Cell, Column, Row, Table, TableRow
from zelda_ci.report.terminal.pages import Page, open_console
from zelda_ci.report.text import clock, sentence, visible

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
    assert sentence("three words here", 13) == "three words …"
    assert sentence("x" * 50, 40) == "x" * 40 + " …"
    assert sentence("\n" * 1_000_000 + "end") == ""


@given(st.text(max_size=300))
def test_nothing_that_comes_out_acts(text: str) -> None:
    for shown in (visible(text), sentence(text)):
        assert all(char.isprintable() or unicodedata.category(char) in {"Zs", "Cn"} for char in shown)
        assert "##[" not in shown


@given(st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126), max_size=200))
def test_ordinary_text_comes_out_as_it_went_in(text: str) -> None:
    assert visible(text) == text.replace("##[", "# #[")


@pytest.mark.parametrize(
    ("write", "shown"),
    [
        (numbers.duration, {-0.2: "0.0 s", 0.44: "0.4 s", 59.94: "59.9 s", 59.96: "1m 00s", 83.2: "1m 23s"}),
        (numbers.duration, {119.6: "2m 00s", 3599.4: "59m 59s", 3599.6: "1h 00m", 7265: "2h 01m", 90_000: "25h 00m"}),
        (numbers.money, {0: "$0.0000", 0.0123: "$0.0123", 0.00001: "less than $0.0001", 0.00005: "$0.0001"}),
        (numbers.money, {1234.5: "$1,234.5000"}),
        (partial(numbers.money, exact=False), {0.5: "about $0.5000"}),
        (numbers.format_score, {100: "100.0", 0: "0.0", -0.04: "0.0", 66.666: "66.7"}),
        (numbers.average, {9: "9", 9.8: "9.8", 10.04: "10", 1234.5: "1234.5"}),
        (clock, {0: "0:00", 42.9: "0:42", 83: "1:23", 3723: "1:02:03"}),
        (partial(numbers.format_count, noun="file"), {1: "1 file", 0: "0 files"}),
        (partial(numbers.format_count, noun="retry", plural="retries"), {2000: "2,000 retries"}),
        (numbers.whole, {10**400: "10" + ",000" * 133, -0.4: "-0", 1234.5: "1,234"}),
    ],
)
def test_numbers_are_written_for_people(write: Callable[[float], str], shown: dict[float, str]) -> None:
    """In the finest unit that matters, without a negative zero; a guessed price says so, nouns follow their number."""
    assert {value: write(value) for value in shown} == shown


def in_html(text: str) -> str:
    return environment().from_string("<p>{{ text }}</p>").render(text=text)


def in_markdown(text: str) -> str:
    table = Table((Column("A"),), (TableRow((Cell(text), Cell(text, whole=True)), notes=(Cell(text),)),))
    return render("table.md.j2", table=table)


def on_terminal(text: str) -> str:
    stream = io.StringIO()
    console = open_console(stream)
    page = Page(console)
    page.beside(page.write(text), (Cell(text), Cell(text, whole=True)), lines=(Cell(text),))
    page.rows((Row(text, (Cell(text),)),), indent=2)
    page.table(Table((Column("A"),), (TableRow((Cell(text),), notes=(Cell(text),)),)))
    page.show()
    return stream.getvalue()


def as_error(text: str) -> str:
    with redirect_stdout(io.StringIO()) as stream:
        echo(text)
    return stream.getvalue()


SINKS = {"html": in_html, "markdown": in_markdown, "terminal": on_terminal, "junit": clean, "error": as_error}


@pytest.mark.parametrize("name", SINKS)
@settings(max_examples=20)
@given(st.text(st.characters(codec="utf-8"), max_size=40))
@example("\x1b]0;owned\x07 \x9b31m \u202egnp.exe \u200b\u2028\r\n::error::x")
def test_nothing_acts_where_a_text_leaves(name: str, text: str) -> None:
    shown = SINKS[name](text)
    assert [char for char in shown if char not in "\n\t" and unicodedata.category(char) in ACTING] == []


def test_a_page_prints_texts_and_numbers_and_nothing_else() -> None:
    with pytest.raises(TypeError, match="prints a Cell"):
        Environment.from_string(environment(), "{{ cell }}").render(cell=Cell("a"))
