"""The guide "Add a metric" of CONTRIBUTING.md, done as it says: in a copy of the package, which then runs."""

import ast
import json
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.scenarios.stage import FILES, GOOD
from tests.support.command import KEY, environment
from tests.support.patience import PATIENCE
from tests.support.projects import Project, repository
from tests.support.scripted_api import ScriptedApi

REPOSITORY = Path(__file__).parents[2]
STEP = re.compile(
    r"`(?P<file>zelda_ci/[\w/]+\.py)`(?:, at the end of `(?P<place>\w+)`)?.*?\n\n   ```python\n(?P<code>.*?)   ```",
    re.DOTALL,
)
REPORTS = """
import os, sys
from pathlib import Path
from zelda_ci.compare.comparison import compare
from zelda_ci.compare.gate import gate
from zelda_ci.domain.ci import BaselineOrigin, BaselineState
from zelda_ci.report.told import CiReport
from zelda_ci.report.comment.view import ci_view
from zelda_ci.report.junit import render_junit
from zelda_ci.report.markdown import render_comment
from zelda_ci.domain.run import BatchResult
from zelda_ci.storage.codec import decode
batch = decode(BatchResult, Path(sys.argv[1]).read_bytes(), "results")
compared = compare(batch.runs, batch.runs)
origin = BaselineOrigin(state=BaselineState.FOUND, sentence="The base.")
report = CiReport(batch, gate(batch, {}), origin, compared)
print(render_comment(ci_view(report)), render_junit(report), sep="\\n=====\\n")
"""


def steps() -> list[tuple[str, str | None, str]]:
    """Every code block of the guide: the file, the class or table at whose end it goes, and the code."""
    guide = (REPOSITORY / "CONTRIBUTING.md").read_text("utf-8").partition("## Add a metric\n")[2].partition("\n## ")[0]
    blocks = [(step["file"], step["place"], textwrap.dedent(step["code"])) for step in STEP.finditer(guide)]
    assert len(blocks) == guide.count("```python")
    return blocks


def follow(guide: list[tuple[str, str | None, str]], root: Path) -> None:
    for file, place, code in guide:
        target = root / file
        if place is None:
            assert not target.exists()
            target.write_text(code, "utf-8")
            continue
        lines = target.read_text("utf-8").splitlines(keepends=True)
        node = next(node for node in ast.parse("".join(lines)).body if name_of(node) == place)
        assert node.end_lineno
        # A table ends with its brace, a class with its last line.
        end = node.end_lineno - (lines[node.end_lineno - 1] == "}\n")
        lines.insert(end, textwrap.indent(code, "    "))
        target.write_text("".join(lines), "utf-8")


def name_of(node: ast.stmt) -> str | None:
    if isinstance(node, ast.ClassDef):
        return node.name
    return node.target.id if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) else None


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package with the metric, and what `make schemas` needs."""
    root = tmp_path_factory.mktemp("copy")
    for part in ("zelda_ci", "scripts", "schemas", "docs", "runner"):
        shutil.copytree(REPOSITORY / part, root / part)
    shutil.copy(REPOSITORY / "action.yml", root)
    follow(steps(), root)
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


def test_a_run_and_everything_after_it_shows_the_metric(copy: Path, tmp_path: Path) -> None:
    shop = repository(tmp_path, FILES)
    with ScriptedApi(GOOD) as api:
        access = {"ANTHROPIC_BASE_URL": api.url, "ANTHROPIC_API_KEY": KEY}
        python(copy, shop, "-m", "zelda_ci", "run", **access)
    shown = python(copy, shop, "-m", "zelda_ci", "show", "latest")
    assert re.search(r"Patch size +1", shown), shown
    results = [json.loads(file.read_bytes()) for file in shop.path.glob(".zelda/runs/*/result.json")]
    sizes = [result["evaluations"]["patchSize"]["details"]["value"] for result in results]
    assert sizes == [1]

    listed = python(copy, shop, "-m", "zelda_ci", "list", "--json")
    assert [run["numbers"]["patchSize"] for run in json.loads(listed)["runs"]] == sizes
    assert "Lines" in python(copy, shop, "-m", "zelda_ci", "list")

    batch = results[0]["batchId"]
    compared = python(copy, shop, "-m", "zelda_ci", "compare", batch, batch)
    assert "Patch size" in compared

    everything = tmp_path / "results.json"
    invocation = {key: results[0][key] for key in ("schemaVersion", "batchId", "startedAt", "finishedAt")}
    everything.write_text(json.dumps({**invocation, "runs": results}))
    comment, junit = python(copy, shop, "-c", REPORTS, str(everything)).split("\n=====\n")
    assert "Lines" in comment
    assert 'name="score: Patch size"' in junit
    assert 'name="patchSize" value="1"' in junit

    # A Zelda without the metric reads the same results, and says what it left out.
    assert "A newer Zelda computed it." in python(REPOSITORY, shop, "-m", "zelda_ci", "show", results[0]["runId"])
