"""What options of `zelda run` make of its order."""

from pathlib import Path
from typing import Any

import pytest

from zelda_ci.cli.commands import zelda
from zelda_ci.cli.run import run
from zelda_ci.pipeline.invocation import RunOrder
from zelda_ci.workspace.source import BaseOrder

USUAL = RunOrder(jobs=4, despite_failing=False, working_tree=True)


@pytest.mark.parametrize(
    ("arguments", "differs"),
    [
        ("", {}),
        ("a b --tag t", {"names": ("a", "b"), "tags": ("t",)}),
        ("--no-check --unsafe --yes", {"check": False, "unsafe": True, "despite_failing": True}),
        ("--commit", {"working_tree": False}),
        ("--commit main", {"working_tree": False, "commit": BaseOrder("main")}),
        ("--against HEAD~1 --budget-usd 2.5", {"against": BaseOrder("HEAD~1"), "budget_usd": 2.5}),
        ("--replay / --jobs 2 --max-failures 3", {"replay": Path("/"), "jobs": 2, "max_failures": 3}),
    ],
)
def test_an_option_enters_its_field_and_leaves_the_others(arguments: str, differs: dict[str, Any]) -> None:
    # Below the main command, as ever: click keeps the help option of the first context that a command meets.
    main = zelda.make_context("zelda", ["run", *arguments.split()])
    order = run.make_context("run", arguments.split(), parent=main).obj
    assert vars(order) == {**vars(USUAL), **differs}
