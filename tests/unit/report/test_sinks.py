"""Every way out makes texts harmless, whatever was forgotten where they were built."""

import io
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jinja2 import Environment

from zelda_ci.cli.output import echo
from zelda_ci.judge.characters import ACTING
from zelda_ci.report.html.rendering import environment
from zelda_ci.report.junit import clean
from zelda_ci.report.markdown import FILTERS, render
from zelda_ci.report.model import Cell, Column, Table, TableRow
from zelda_ci.report.terminal import open_console
from zelda_ci.report.terminal.layout import Page, write_table


def in_html(text: str) -> str:
    return environment().from_string("<p>{{ text }}</p>").render(text=text)


def in_markdown(text: str) -> str:
    table = Table((Column("A"),), (TableRow((Cell(text), Cell(text, whole=True)), notes=(Cell(text),)),))
    return render("table.md.j2", FILTERS, table=table)


def on_terminal(text: str) -> str:
    stream = io.StringIO()
    console = open_console(stream)
    page = Page(console)
    page.beside(page.style.write(text), (Cell(text), Cell(text, whole=True)), lines=(Cell(text),))
    page.table(Table((Column("A"),), (TableRow((Cell(text),)),)))
    page.show()
    write_table(console, Table((Column("A"),), (TableRow((Cell(text),)),)))
    return stream.getvalue()


def as_error(text: str) -> str:
    stream = io.StringIO()
    echo(text, file=stream)
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
