"""Functions and files stay small enough to be read at once."""

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "zelda_ci"
LONGEST_FUNCTION = 50
LONGEST_FILE = 400


def files() -> list[Path]:
    found = sorted(PACKAGE.rglob("*.py"))
    assert len(found) > 20
    return found


def functions(file: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno:
            yield f"{file.relative_to(PACKAGE)}:{node.name}", node.end_lineno - node.lineno + 1


def test_no_function_is_longer_than_a_screen() -> None:
    lengths = [length for file in files() for length in functions(file)]
    assert [(name, lines) for name, lines in lengths if lines > LONGEST_FUNCTION] == []


def test_nine_functions_in_ten_are_short() -> None:
    lengths = sorted(lines for file in files() for _, lines in functions(file))
    assert lengths[len(lengths) * 9 // 10] <= 30


def test_no_file_is_longer_than_a_chapter() -> None:
    lengths = {str(file.relative_to(PACKAGE)): len(file.read_text("utf-8").splitlines()) for file in files()}
    assert {name: lines for name, lines in lengths.items() if lines > LONGEST_FILE} == {}
