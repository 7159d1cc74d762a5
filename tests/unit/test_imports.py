"""Slow packages are imported by one thread at a time."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import zelda_ci

PACKAGE = Path(zelda_ci.__file__).parent
REPOSITORY = PACKAGE.parent


def test_every_late_import_of_a_foreign_package_waits_its_turn() -> None:
    """Also of our modules that import such a package; what is in the standard library is not slow."""
    free = [f"{file.relative_to(REPOSITORY)}:{line}" for file in PACKAGE.rglob("*.py") for line in _free_imports(file)]
    assert free == []


def test_the_agent_sdk_comes_without_what_no_session_needs_and_leaves_no_stand_in() -> None:
    program = (
        "import sys; from zelda_ci.execution import claude_code; claude_code.preload();"
        "left = {name.partition('.')[0] for name in sys.modules} & {'mcp', 'jsonschema'};"
        "import claude_agent_sdk, mcp.types, jsonschema;"
        "print(left, 'name' in mcp.types.Tool.model_fields, jsonschema.validate(1, {'type': 'integer'}))"
    )
    said = subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert (said.stderr, said.stdout) == ("", "set() True None\n")


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
