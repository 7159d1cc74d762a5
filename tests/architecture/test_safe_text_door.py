"""Outside text has one door: nobody but `redact.py` makes `SafeText` or `SafeJson` out of a plain value."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "zelda_ci"
DOOR = PACKAGE / "redact.py"
SAFE = {"SafeText", "SafeJson"}


def passages(source: str) -> Iterator[int]:
    """Lines that turn a plain value into a safe one behind the door's back.

    A type is safe to name in an annotation, an alias or a subscript. Calling it, handing it to a function (`map`,
    `cast`, `TypeAdapter`) or giving it another name is not.
    """
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=function, args=arguments, keywords=keywords):
                handed = [function, *arguments, *(keyword.value for keyword in keywords)]
                if any(_is_safe_type(each) for each in handed):
                    yield node.lineno
            case ast.ImportFrom(names=names) if any(alias.name in SAFE and alias.asname for alias in names):
                yield node.lineno
            case ast.Assign(value=value) | ast.NamedExpr(value=value) if _is_safe_type(value):
                yield node.lineno


def _is_safe_type(node: ast.expr) -> bool:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Constant(value=str(name)):
            return name in SAFE
        case _:
            return False


@pytest.mark.parametrize(
    "source",
    [
        "SafeText(x)",
        "redact.SafeJson({})",
        "list(map(SafeText, lines))",
        "cast(SafeText, x)",
        "cast('SafeText', x)",
        "TypeAdapter(SafeText)",
        "from zelda_ci.redact import SafeText as Text",
        "Text = SafeText",
        "f(kind=SafeText)",
    ],
)
def test_a_way_around_the_door_is_seen(source: str) -> None:
    assert list(passages(source)) == [1]


@pytest.mark.parametrize(
    "source",
    [
        "from zelda_ci.redact import SafeText",
        "def f(x: SafeText) -> dict[str, SafeText]: ...",
        "class A:\n    x: SafeText | None = None",
        "Entry = tuple[SafeText, ...]",
        "redact(text)",
    ],
)
def test_naming_the_type_is_no_way_around(source: str) -> None:
    assert list(passages(source)) == []


def test_nobody_but_the_redactor_makes_safe_text() -> None:
    files = [file for file in PACKAGE.rglob("*.py") if file != DOOR]
    assert len(files) > 20
    found = [f"{file.relative_to(PACKAGE)}:{line}" for file in files for line in passages(file.read_text("utf-8"))]
    assert found == []
