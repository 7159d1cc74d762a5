"""The guides "Add a metric" and "Add a setting" of CONTRIBUTING.md, done as they say: in a copy, which then runs."""

import ast
import json
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.scenarios.stage import FILES, GOOD
from tests.support.command import KEY, environment, zelda
from tests.support.patience import PATIENCE
from tests.support.projects import Project, repository
from tests.support.scripted_api import ScriptedApi

REPOSITORY = Path(__file__).parents[2]
CODE = re.compile(
    r"`(?P<file>zelda_ci/[\w/]+\.py)`(?:, at the end of `(?P<place>\w+)`)?.*?\n\n   ```python\n(?P<code>.*?)   ```",
    re.DOTALL,
)
USE = re.compile(r"`(zelda_ci/[\w/]+\.py)`, after `(\w+)`: the place that uses it, `(.*?)`")


def guide(title: str) -> str:
    return (REPOSITORY / "CONTRIBUTING.md").read_text("utf-8").partition(f"## {title}\n")[2].partition("\n## ")[0]


def follow(text: str, root: Path) -> None:
    """Put every code block where the guide has it, and its use where it says."""
    steps = CODE.findall(text)
    assert len(steps) == text.count("```python")
    for file, place, block in steps:
        target, code = root / file, textwrap.dedent(block)
        if not place:
            assert not target.exists()
            target.write_text(code, "utf-8")
            continue
        lines = target.read_text("utf-8").splitlines(keepends=True)
        if place == "imports":
            last = max(at for at, line in enumerate(lines) if line.startswith("from "))
            target.write_text("".join([*lines[: last + 1], code, *lines[last + 1 :]]), "utf-8")
            continue
        node = next(node for node in ast.parse("".join(lines)).body if name_of(node) == place)
        assert node.end_lineno
        # A table ends with its brace, a class with its last line.
        end = node.end_lineno - (lines[node.end_lineno - 1] == "}\n")
        lines.insert(end, textwrap.indent(code, "    "))
        target.write_text("".join(lines), "utf-8")
    for file, before, use in USE.findall(text):
        target = root / file
        used = re.sub(rf"^( +){before}=.*\n", rf"\g<0>\1{use}\n", target.read_text("utf-8"), flags=re.MULTILINE)
        target.write_text(used, "utf-8")


def name_of(node: ast.stmt) -> str | None:
    if isinstance(node, ast.ClassDef):
        return node.name
    return node.target.id if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) else None


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package with the metric and the setting, and what `make schemas` and `make reference` need."""
    root = tmp_path_factory.mktemp("copy")
    for part in ("zelda_ci", "scripts", "schemas", "docs", "runner", ".github/workflows"):
        shutil.copytree(REPOSITORY / part, root / part)
    shutil.copy(REPOSITORY / "action.yml", root)
    for title in ("Add a metric", "Add a setting"):
        follow(guide(title), root)
    return root


def python(copy: Path, project: Project, *arguments: str, **environ: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=project.path,
        env=environment(project, PYTHONPATH=str(copy), COLUMNS="200", **environ),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


# Everything that shows what was run, in one process: starting one costs more than all of it.
SHOWN = """
import json, sys
from pathlib import Path
from click.testing import CliRunner
from zelda_ci.cli.commands import zelda
from zelda_ci.compare.comparison import compare
from zelda_ci.compare.gate import gate
from zelda_ci.domain.comparison import BaselineOrigin, BaselineState
from zelda_ci.domain.run import BatchResult
from zelda_ci.report.comment.view import ci_view
from zelda_ci.report.junit import render_junit
from zelda_ci.report.markdown import render_comment
from zelda_ci.report.ci_report import CiReport
from zelda_ci.storage.codec import decode
file, batch = sys.argv[1:]
commands = [["show", "latest"], ["list"], ["list", "--json"], ["compare", batch, batch]]
told = {" ".join(words[:2]): CliRunner().invoke(zelda, words).stdout for words in commands}
found = decode(BatchResult, Path(file).read_bytes(), "results")
origin = BaselineOrigin(state=BaselineState.FOUND, sentence="The base.")
report = CiReport(found, gate(found, {}), origin, compare(found.runs, found.runs))
told |= {"comment": render_comment(ci_view(report)), "junit": render_junit(report)}
print(json.dumps(told))
"""


def test_a_run_and_everything_after_it_shows_the_metric(copy: Path, tmp_path: Path) -> None:
    shop = repository(tmp_path, FILES)
    with ScriptedApi(GOOD) as api:
        access = {"ANTHROPIC_BASE_URL": api.url, "ANTHROPIC_API_KEY": KEY}
        python(copy, shop, "-m", "zelda_ci", "run", **access)
    (result,) = [json.loads(file.read_bytes()) for file in shop.path.glob(".zelda/runs/*/result.json")]
    assert result["evaluations"]["patchSize"]["details"]["value"] == 1
    everything = tmp_path / "results.json"
    invocation = {key: result[key] for key in ("schemaVersion", "batchId", "startedAt", "finishedAt")}
    everything.write_text(json.dumps({**invocation, "runs": [result]}))
    told: dict[str, Any] = json.loads(python(copy, shop, "-c", SHOWN, str(everything), result["batchId"]))
    assert re.search(r"Patch size +1", told["show latest"])
    assert [run["numbers"]["patchSize"] for run in json.loads(told["list --json"])["runs"]] == [1]
    assert "Lines" in told["list"]
    assert "Patch size" in told[f"compare {result['batchId']}"]
    assert "Lines" in told["comment"]
    assert 'name="patchSize" value="1"' in told["junit"]
    # A Zelda without the metric reads the same results.
    assert result["runId"] in zelda(shop, "show", result["runId"]).stdout


GENERATED = """
import json, runpy, sys
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from unittest import mock
root = sys.argv.pop(1)
sys.path.insert(0, f"{root}/scripts")
for script in ("scripts/schemas", "scripts/reference.py"):
    with suppress(SystemExit):
        runpy.run_path(f"{root}/{script}", run_name="__main__")
from zelda_ci.ci.settings import INPUTS
from zelda_ci.config.project import DECISIONS
from zelda_ci.domain.suite import ResolvedSuite
from zelda_ci.execution import claude_code
from zelda_ci.overrides import apply, read
suite = ResolvedSuite(name="a", file="zelda/test-a.yaml", prompt="x")
given = apply(suite, read("input", {"fallback-model": "claude-haiku-4-5"}.get)).execution
request = SimpleNamespace(execution=given, workspace=SimpleNamespace(path=Path()), session_id="1")
with mock.patch.object(claude_code, "launch"):
    options = claude_code._options(request, Path("claude"), print)
decision = DECISIONS["execution.fallbackModel"].by
print(json.dumps([options.fallback_model, "fallback-model" in INPUTS, decision]))
"""


def test_a_key_with_an_option_and_an_input_touches_two_files(copy: Path, tmp_path: Path) -> None:
    printed = python(copy, repository(tmp_path), "-c", GENERATED, str(copy))
    assert json.loads(printed.splitlines()[-1]) == ["claude-haiku-4-5", True, "head"]
    for action in ("action.yml", "runner/action.yml"):
        described = yaml.safe_load((copy / action).read_text())["inputs"]["fallback-model"]["description"]
        assert described.startswith("Model that answers where the session's own is overloaded: its full id. Overrides")
    commands = "`--fallback-model` (`zelda run`, `zelda check`, `zelda why`)"
    row = f"| `execution.fallbackModel` | {commands} | `fallback-model` | |"
    assert row in (copy / "docs/configuration.md").read_text()
    pages = {"docs/ci.md": "`execution.fallbackModel`", "docs/action.md": "| `fallback-model` |"}
    for page, words in {**pages, "docs/cli.md": "`--fallback-model MODEL`"}.items():
        assert words in (copy / page).read_text()
    schema = json.loads((copy / "schemas/zelda.suite.schema.json").read_text())
    assert "fallbackModel" in schema["$defs"]["ExecutionSettings"]["properties"]
