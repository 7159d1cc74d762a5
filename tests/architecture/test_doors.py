"""What comes in stays typed: no open keyword arguments, no unchecked copies, secrets revealed where they are sent."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "zelda_ci"
DOORS = ("cli", "ci", "pipeline", "app.py", "overrides.py")

SENDERS = {
    "model_proxy/upstream.py": 1,  # the key, to the API
    "github/api.py": 1,  # the workflow's token, to GitHub
    "github/artifacts.py": 1,  # the job's token, to GitHub's artifact service
    "ci/base.py": 1,  # the workflow's token, to GitHub's git
    "github/workflow_commands.py": 1,  # every secret, to the runner, which masks it
    "redact.py": 1,  # to look for its spellings in texts
}
"""Module → calls in it that reveal a secret."""


def sources(*places: str) -> Iterator[tuple[str, ast.Module]]:
    for place in places or (".",):
        path = PACKAGE / place
        files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
        assert files
        for file in files:
            yield str(file.relative_to(PACKAGE)), ast.parse(file.read_text("utf-8"))


def open_arguments(tree: ast.AST) -> list[str]:
    """Functions that take whatever they are given by name."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    named = [(function.name, function.args.kwarg) for function in functions]
    return [name for name, kwarg in named if kwarg and "Any" in ast.unparse(kwarg.annotation or ast.Name("Any"))]


def calls(tree: ast.AST, method: str) -> list[int]:
    """Lines that call or hand on a method of that name."""
    return [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr == method]


@pytest.mark.parametrize(
    "source", ["def f(**order: Any): ...", "async def f(a, **more): ...", "def f(**x: 'Any'): ..."]
)
def test_open_arguments_are_seen(source: str) -> None:
    assert open_arguments(ast.parse(source)) == ["f"]


def test_no_door_takes_arguments_of_any_name_and_type() -> None:
    assert [(file, name) for file, tree in sources(*DOORS) for name in open_arguments(tree)] == []


def test_copies_with_other_values_are_validated() -> None:
    """pydantic's own `model_copy(update=...)` takes any name and any value; `Record.replace` does not."""
    assert [(file, line) for file, tree in sources() for line in calls(tree, "model_copy")] == []


def test_commands_print_through_the_one_function_that_makes_texts_harmless() -> None:
    printing = {file for file, tree in sources("cli") for name in ("echo", "secho") if calls(tree, name)}
    assert printing == {"cli/boundary.py", "cli/commands.py"}


def test_a_secret_is_revealed_where_it_is_sent_and_nowhere_else() -> None:
    assert Counter(file for file, tree in sources() for _ in calls(tree, "reveal")) == SENDERS
