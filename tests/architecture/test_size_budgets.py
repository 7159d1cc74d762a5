"""Functions and files stay small enough to be read at once, and modules are worth opening."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "zelda_ci"
MAX_FUNCTION_LINES = 50
MAX_FILE_LINES = 400
MIN_MODULE_LINES = 40
MAX_SMALL_MODULES = 15


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
    assert [(name, lines) for name, lines in lengths if lines > MAX_FUNCTION_LINES] == []


def test_nine_functions_in_ten_are_short() -> None:
    lengths = sorted(lines for file in files() for _, lines in functions(file))
    assert lengths[len(lengths) * 9 // 10] <= 30


def test_no_file_is_longer_than_a_chapter() -> None:
    lengths = {str(file.relative_to(PACKAGE)): len(file.read_text("utf-8").splitlines()) for file in files()}
    assert {name: lines for name, lines in lengths.items() if lines > MAX_FILE_LINES} == {}


def test_few_modules_are_splinters() -> None:
    lengths = {file: len(file.read_text("utf-8").splitlines()) for file in files() if file.name != "__init__.py"}
    small = [str(file.relative_to(PACKAGE)) for file, lines in lengths.items() if lines < MIN_MODULE_LINES]
    assert len(small) <= MAX_SMALL_MODULES, small


def test_a_class_name_has_one_meaning() -> None:
    trees = (ast.parse(file.read_text("utf-8")) for file in files() if "demo_project" not in file.parts)
    names = Counter(node.name for tree in trees for node in tree.body if isinstance(node, ast.ClassDef))
    assert [name for name, times in names.items() if times > 1] == []
