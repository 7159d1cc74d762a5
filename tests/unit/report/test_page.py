import io

from rich.console import Console
from rich.text import Text

from zelda_ci.report.model import Cell, Row
from zelda_ci.report.terminal.layout import Page


def page(width: int) -> Page:
    return Page(Console(file=io.StringIO(), width=width, _environ={}))


def shown(page: Page) -> list[str]:
    page.show()
    assert isinstance(page.console.file, io.StringIO)
    return page.console.file.getvalue().splitlines()


def cells(*texts: str) -> tuple[Cell, ...]:
    return tuple(map(Cell, texts))


def test_a_sentence_wraps_under_itself() -> None:
    sheet = page(40)
    sheet.rows([Row("Why", cells("One sentence that is longer than a line of this page.")), Row("Next", ())], indent=2)
    assert shown(sheet) == ["  Why   One sentence that is longer than", "        a line of this page.", "  Next"]


def test_a_word_longer_than_the_line_is_broken_under_its_label() -> None:
    sheet = page(34)
    sheet.beside(Text("Label     "), cells("x" * 50))
    assert shown(sheet) == ["Label     " + "x" * 24, "          " + "x" * 24, "          " + "x" * 2]


def test_what_is_to_be_copied_is_never_broken() -> None:
    sheet = page(40)
    sheet.beside(Text("Label  "), (Cell("a/" * 100, whole=True),))
    assert shown(sheet) == ["Label  " + "a/" * 100]
