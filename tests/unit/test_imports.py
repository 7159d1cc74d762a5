"""Slow packages are imported by one thread at a time."""

import ast
import re
import sys
from pathlib import Path

import zelda_ci

PACKAGE = Path(zelda_ci.__file__).parent
REPOSITORY = PACKAGE.parent


def test_every_late_import_of_a_foreign_package_waits_its_turn() -> None:
    """Also of our modules that import such a package; what is in the standard library is not slow."""
    free = [f"{file.relative_to(REPOSITORY)}:{line}" for file in PACKAGE.rglob("*.py") for line in _free_imports(file)]
    assert free == []


OURS_AND_LIGHT = ("zelda_ci.cli", "zelda_ci.sandbox", "zelda_ci.workspace")
"""Modules whose late import has other reasons."""


def _free_imports(file: Path) -> list[int]:
    if not re.search(r"^ +(import|from) ", file.read_text(), re.MULTILINE):
        return []
    functions = [
        node
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    guarded = {
        inner
        for function in functions
        for node in ast.walk(function)
        if isinstance(node, ast.With) and "one_at_a_time" in ast.unparse(node.items[0])
        for inner in ast.walk(node)
    }
    found = {
        node for function in functions for node in ast.walk(function) if isinstance(node, ast.Import | ast.ImportFrom)
    }
    return sorted(node.lineno for node in found - guarded if not _is_light(node))


def _is_light(node: ast.Import | ast.ImportFrom) -> bool:
    names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
    return all(name.partition(".")[0] in sys.stdlib_module_names or name.startswith(OURS_AND_LIGHT) for name in names)
