"""The guide "Add a setting" of CONTRIBUTING.md: a key needs its field, its row, and the place that uses it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "zelda_ci"

NEW_KEY = {
    "domain/suite.py": (
        "    permission_mode: PermissionMode = Field(",
        '    max_steps: PositiveInt | None = Field(None, le=9, description="Most steps.")\n',
    ),
    "overrides.py": (
        "    max_cost_usd: Annotated[",
        '    steps: Annotated[Given[int] | None, Override("execution.maxSteps", "--max-steps", "in", "VAR")] = None\n',
    ),
}
"""File → what a line is put before, and the line."""

USE = """
import click
from zelda_ci.cli import options
from zelda_ci.config.schema import SuiteConfig, editor_schema
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.domain.trials import FixedTrials, TrialPlan, plan_of
from zelda_ci.overrides import apply, read

suite = ResolvedSuite(name="a", file="a", prompt="a", execution={"maxSteps": 2})

@click.command()
@options.overrides("run")
def run(overrides):
    ways = [overrides, read("input", {"in": "4"}.get), read("variable", {"VAR": "5"}.get)]
    print(suite.execution.max_steps, *(apply(suite, way).execution.max_steps for way in ways))
    print(read("input", {"in": "10"}.get).problems()[0])
    print(editor_schema(SuiteConfig)["$defs"]["ExecutionSettings"]["properties"]["maxSteps"]["description"])

run(["--max-steps", "3"])
"""


def test_a_new_key_needs_its_field_its_row_and_the_place_that_uses_it(tmp_path: Path) -> None:
    """With them it is a key of the files, an option, an input and a variable, checked alike."""
    copied = tmp_path / "zelda_ci"
    shutil.copytree(PACKAGE, copied, ignore=shutil.ignore_patterns("__pycache__", "demo_*"))
    for name, (place, line) in NEW_KEY.items():
        source = (copied / name).read_text()
        assert source.count(place) == 1
        (copied / name).write_text(source.replace(place, line + place))
    done = subprocess.run(
        [sys.executable, "-c", USE],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.splitlines() == [
        "2 3 4 5",
        "The input in is '10', which cannot be used: it must be a whole number from 1 to 9.",
        "Most steps.",
    ], done.stderr
